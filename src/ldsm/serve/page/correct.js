// Corrections: remove tags, add tags, search for tags.

function changeTag(one, chosen) {
  tagging.sent = false;
  if (tagging.added.has(one.uri)) tagging.added.delete(one.uri);
  else if (tagging.removed.has(one.uri)) tagging.removed.delete(one.uri);
  else if (chosen) tagging.removed.add(one.uri);
  else tagging.added.set(one.uri, one.label);
  showTags();
  (tagging.rows.get(one.uri)?.change ?? $("add")).focus();
}

function forgetChanges() {
  tagging.sent = false;
  tagging.removed.clear();
  tagging.added.clear();
  showChanges();
}

function showChanges() {
  const parts = [];
  if (tagging.removed.size) parts.push(`${number(tagging.removed.size)} removed`);
  if (tagging.added.size) parts.push(`${number(tagging.added.size)} added`);
  $("correction").hidden = parts.length === 0 || tagging.sent;
  $("changes").textContent = parts.length ? `Your correction: ${parts.join(", ")}.` : "";
  $("send").hidden = review.on; // its own button sends them
  $("accept").textContent = parts.length ? "Save correction" : "Accept";
}

function correctTags() {
  const sureOnes = tagging.suggestions.filter(
    (one) => one.score >= sure() && !tagging.removed.has(one.uri));
  return [...new Set([...sureOnes.map((one) => one.uri), ...tagging.added.keys()])];
}

// Send the tags as they are now; whether they were saved.
async function sendCorrection() {
  if ($("text").value !== tagging.text) {
    banner("The text has changed. Check the new tags first.");
    suggest();
    return false;
  }
  const tags = correctTags();
  if (!tags.length) {
    banner("A correction needs at least one tag. Add one first.");
    return false;
  }
  $("send").disabled = true;
  try {
    const correction = { text: tagging.text, subjects: tags.map((uri) => ({ uri })) };
    await ask(project("learn"), asJson([correction]));
    const { learns } = await ask(project(""));
    tagging.sent = true; // keep the corrected tags until the text changes
    showChanges();
    closeReasons();
    banner("");
    $("thanks").textContent = learns
      ? "Thank you. The model is learning it now."
      : "Thank you. It is saved until the model is next updated.";
    return true;
  } catch (error) {
    showError(error, review.on ? acceptRow : sendAndReturn);
    return false;
  } finally {
    $("send").disabled = false;
  }
}

async function sendAndReturn() {
  if (await sendCorrection()) $("text").focus();
}

// -- searching for a tag -------------------------------------------------------------------

const finder = { options: [], at: -1, request: null };

const findTags = later(async () => {
  const wanted = $("add").value.trim();
  finder.request?.abort();
  if (!wanted) return closeFinder();
  finder.request = new AbortController();
  try {
    const query = new URLSearchParams({ search: wanted, limit: 8 });
    const { labels, total } = await ask(
      project(`labels?${query}`), { signal: finder.request.signal });
    const options = labels.map((one) => ({ ...one, note: plural(one.training_rows, "text") }));
    if (!labels.some((one) => one.label.toLowerCase() === wanted.toLowerCase())) {
      options.push({ uri: wanted, label: wanted, note: "a new tag", isNew: true });
    }
    showFinder(options, total);
  } catch (error) {
    showError(error);
  }
}, 120);

function showFinder(options, total) {
  finder.options = options;
  finder.at = -1;
  $("add").removeAttribute("aria-activedescendant");
  $("found").replaceChildren(...options.map((one, i) => h("li",
    { role: "option", id: `found-${i}`, "aria-selected": "false",
      onmousedown: (event) => (event.preventDefault(), chooseTag(one)) },
    h("span", {}, one.label), h("small", {}, one.note))));
  $("found").hidden = false;
  $("found").scrollIntoView({ block: "nearest" });
  $("add").setAttribute("aria-expanded", "true");
  announce(total ? `${plural(total, "tag")} found` : "No such tag; you can add it as a new one");
}

function closeFinder() {
  findTags.never();
  finder.request?.abort();
  finder.options = [];
  finder.at = -1;
  $("found").hidden = true;
  $("add").setAttribute("aria-expanded", "false");
  $("add").removeAttribute("aria-activedescendant");
}

function moveInFinder(step) {
  const n = finder.options.length;
  if (!n) return;
  finder.at = (finder.at + step + n + (finder.at < 0 && step < 0 ? 1 : 0)) % n;
  [...$("found").children].forEach((item, i) => {
    item.setAttribute("aria-selected", String(i === finder.at));
    if (i === finder.at) item.scrollIntoView({ block: "nearest" });
  });
  $("add").setAttribute("aria-activedescendant", `found-${finder.at}`);
}

function chooseTag(one) {
  tagging.sent = false;
  tagging.removed.delete(one.uri);
  const known = tagging.suggestions.find((other) => other.uri === one.uri);
  if (!known || known.score < sure()) tagging.added.set(one.uri, one.label);
  if (one.isNew) tagging.unknown.add(one.uri);
  $("add").value = "";
  closeFinder();
  showTags();
  explain(one.uri);
  if (review.on) $("accept").focus();
}

function startCorrecting() {
  const box = $("add");
  box.addEventListener("input", findTags);
  box.addEventListener("blur", closeFinder);
  box.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") moveInFinder(1);
    else if (event.key === "ArrowUp") moveInFinder(-1);
    else if (event.key === "Escape") {
      if (review.on && $("found").hidden) $("accept").focus();
      closeFinder();
    } else if (event.key === "Enter" && finder.options.length) {
      chooseTag(finder.options[Math.max(finder.at, 0)]);
    } else return;
    event.preventDefault();
  });
  $("send").addEventListener("click", sendAndReturn);
  $("undo").addEventListener("click", () => {
    forgetChanges();
    showTags();
  });
}
