// A box to search for tags, with a list of what is found, for the mouse and the keyboard.

// `find(wanted, signal)` gives the options and the number of tags found; `choose(option)` gets one.
function makeFinder(box, list, find, choose) {
  let options = [], at = -1, request = null;

  const search = later(async () => {
    const wanted = box.value.trim();
    request?.abort();
    if (!wanted) return close();
    request = new AbortController();
    try {
      show(await find(wanted, request.signal));
    } catch (error) {
      showError(error);
    }
  }, 120);

  function show(found) {
    options = found.options;
    at = -1;
    box.removeAttribute("aria-activedescendant");
    list.replaceChildren(...options.map((one, i) => h("li",
      { role: "option", id: `${list.id}-${i}`, "aria-selected": "false",
        onmousedown: (event) => (event.preventDefault(), take(one)) },
      h("span", {}, one.label), h("small", {}, one.note))));
    list.hidden = options.length === 0;
    list.scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-expanded", String(options.length > 0));
    announce(found.total ? `${plural(found.total, "tag")} found`
      : options.length ? "No such tag; you can add it as a new one" : "No such tag");
  }

  function close() {
    search.never();
    request?.abort();
    options = [];
    at = -1;
    list.hidden = true;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  }

  function move(step) {
    const n = options.length;
    if (!n) return;
    at = (at + step + n + (at < 0 && step < 0 ? 1 : 0)) % n;
    [...list.children].forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === at));
      if (i === at) item.scrollIntoView({ block: "nearest" });
    });
    box.setAttribute("aria-activedescendant", `${list.id}-${at}`);
  }

  function take(one) {
    box.value = "";
    close();
    choose(one);
  }

  box.addEventListener("input", search);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape") {
      if (review.on && list.hidden) $("accept").focus();
      close();
    } else if (event.key === "Enter" && options.length) take(options[Math.max(at, 0)]);
    else return;
    event.preventDefault();
  });
}

// The tags of the model whose name contains a text.
async function findLabels(wanted, signal) {
  const query = new URLSearchParams({ search: wanted, limit: 8 });
  const { labels, total } = await ask(project(`labels?${query}`), { signal });
  const options = labels.map((one) => ({ ...one, note: plural(one.training_rows, "text") }));
  return { options, total };
}
