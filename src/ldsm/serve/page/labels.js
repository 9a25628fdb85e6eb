// The tags of the model: training texts, typical words, test results.

const browser = { shown: 0, total: 0, request: null };
const LABELS_AT_ONCE = 50;

async function listLabels(more = false) {
  browser.request?.abort();
  const request = (browser.request = new AbortController());
  const query = new URLSearchParams({
    search: $("label-search").value, order: $("label-order").value,
    offset: more ? browser.shown : 0, limit: LABELS_AT_ONCE });
  try {
    const answer = await ask(project(`labels?${query}`), { signal: request.signal });
    const rows = answer.labels.map(labelRow);
    if (more) $("labels").append(...rows);
    else $("labels").replaceChildren(...rows);
    browser.shown = (more ? browser.shown : 0) + rows.length;
    browser.total = answer.total;
    $("label-count").textContent = plural(answer.total, "tag");
    $("more-labels").hidden = browser.shown >= answer.total;
  } catch (error) {
    showError(error, listLabels);
  }
}

function labelRow(one) {
  const name = h("button", { class: "plain", "aria-expanded": "false" }, one.label);
  const row = h("tr", {}, h("th", { scope: "row" }, name),
    h("td", { class: "number" }, number(one.training_rows)), h("td", {}, ...foundBar(one)));
  row.dataset.uri = one.uri;
  name.addEventListener("click", () => toggleLabel(row, name, one));
  return row;
}

function foundBar(one) {
  if (!one.tested) return [h("span", { class: "quiet" }, "not tested")];
  const share = one.found / one.tested, fill = h("i");
  fill.style.width = `${100 * share}%`;
  return [h("span", { class: "bar", "aria-hidden": "true" }, fill),
    h("span", { class: "score" }, `${number(one.found)} of ${number(one.tested)}`)];
}

async function toggleLabel(row, button, one) {
  if (row.nextElementSibling?.classList.contains("details")) {
    row.nextElementSibling.remove();
    button.setAttribute("aria-expanded", "false");
    return;
  }
  try {
    const query = new URLSearchParams({ uri: one.uri });
    const facts = await ask(project(`label?${query}`));
    const parts = [];
    if (facts.uri !== facts.label) parts.push(h("p", { class: "quiet" }, facts.uri));
    if (facts.words.length) {
      parts.push(h("p", {}, "Most typical words:"), chips(facts.words.map((w) => [w, "", ""])));
    } else parts.push(h("p", {}, "The model has no typical words for this tag."));
    if (facts.tested) {
      parts.push(h("p", {}, `Of ${plural(facts.tested, "held-out text")} with this tag, `
        + `${number(facts.found)} had it in the top 5.`));
    }
    row.after(h("tr", { class: "details" }, h("td", { colSpan: 3 }, ...parts)));
    button.setAttribute("aria-expanded", "true");
  } catch (error) {
    showError(error);
  }
}

async function openLabel(uri) {
  selectTab("labels");
  const facts = await ask(project(`label?${new URLSearchParams({ uri })}`)).catch(showError);
  if (!facts) return;
  $("label-search").value = facts.label;
  await listLabels();
  const row = [...$("labels").rows].find((one) => one.dataset.uri === facts.uri);
  if (!row) return;
  const button = row.querySelector("button");
  button.click();
  button.focus();
}

function startLabels() {
  $("label-search").addEventListener("input", later(() => listLabels(), 150));
  $("label-order").addEventListener("change", () => listLabels());
  $("more-labels").addEventListener("click", () => listLabels(true));
}
