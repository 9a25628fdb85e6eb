// The text and its tags, updated while the user types.

const tagging = {
  text: "", // of the last answer
  suggestions: [], // its tags
  removed: new Set(), // tags that the user removed
  added: new Map(), // tags that the user added, with their names
  unknown: new Set(), // added tags that the model does not know
  open: null, // the tag whose reasons are shown
  rows: new Map(), // the rows of the lists by tag
  mostFrequent: 0, // the share of the training texts that have the most frequent tag
  moved: false, // whether the confidence slider was moved
  sent: false, // whether the changes were sent
  request: null,
};
const LESS_SURE = 6; // tags shown below the confident ones
const SUGGESTED = 50;

// The model's exact threshold, which a slider cannot show, until the slider is moved.
const sure = () => (tagging.moved ? Number($("sure").value) / 100 : threshold());
const rare = () => Number($("rare").value) / 100;

function showKnobs() {
  $("sure-value").textContent = `${inPercent(sure())}%`;
  $("sure-reset").textContent = `Reset to ${inPercent(threshold())}%`;
  $("sure-reset").hidden = !tagging.moved;
  $("rare-value").textContent = rare() === 0 ? "off" : `${$("rare").value}%`;
}

async function suggestNow() {
  const text = $("text").value;
  tagging.request?.abort();
  if (!text.trim()) {
    showNothing();
    return;
  }
  const request = (tagging.request = new AbortController());
  $("results").setAttribute("aria-busy", "true");
  try {
    const values = { text, limit: SUGGESTED, tail: rare(), ...chosenTags() };
    const answer = await ask(project("suggest"), asForm(values, request.signal));
    tagging.suggestions = answer.results;
    tagging.text = text;
    banner("");
    showTags();
    noteUnknownWords(text, request.signal);
    if (tagging.open !== null) explain(tagging.open, { again: true });
  } catch (error) {
    showError(error, suggest);
  } finally {
    if (tagging.request === request) $("results").setAttribute("aria-busy", "false");
  }
}

const suggest = later(suggestNow, 200);

// Say it if no word of the text is known: its tags are then the most frequent ones of the model.
async function noteUnknownWords(text, signal) {
  $("unknown").hidden = true;
  const [best] = tagging.suggestions;
  // Explanations are slow; only a score that is no better than a tag's frequency needs one.
  if (best && best.score > tagging.mostFrequent || text.length > MAX_EXPLAINED) return;
  try {
    if (best) {
      const facts = await ask(project("explain"), asForm({ text, label: best.uri }, signal));
      if (facts.certainty > 0) return;
    }
    $("unknown").textContent = "The model knows no word of this text."
      + (best ? " These are only its most frequent tags." : "");
    $("unknown").hidden = false;
  } catch (error) {
    showError(error);
  }
}

function showNothing() {
  tagging.suggestions = [];
  tagging.text = "";
  tagging.open = null;
  forgetChanges();
  unmark();
  $("results").hidden = true;
  $("empty").hidden = false;
}

function showTags() {
  $("empty").hidden = true;
  $("results").hidden = false;
  const chosen = [], others = [];
  for (const one of tagging.suggestions) {
    if (tagging.added.has(one.uri)) continue;
    (one.score >= sure() || tagging.removed.has(one.uri) ? chosen : others).push(one);
  }
  const scores = new Map(tagging.suggestions.map((one) => [one.uri, one.score]));
  for (const [uri, label] of tagging.added) {
    chosen.push({ uri, label, score: scores.get(uri) ?? null, added: true });
  }
  const shown = others.slice(0, LESS_SURE);
  const kept = new Set([...chosen, ...shown].map((one) => one.uri));
  for (const uri of tagging.rows.keys()) if (!kept.has(uri)) tagging.rows.delete(uri);
  if (tagging.open !== null && !kept.has(tagging.open)) closeReasons();
  $("tags").replaceChildren(...chosen.map((one) => tagRow(one, true)));
  $("perhaps").replaceChildren(...shown.map((one) => tagRow(one, false)));
  $("perhaps-title").hidden = shown.length === 0;
  $("no-tags").hidden = chosen.length > 0;
  const n = chosen.filter((one) => !tagging.removed.has(one.uri)).length;
  $("tags-title").textContent = n ? plural(n, "tag") : "Tags";
  announce(n ? `${plural(n, "tag")}: ${chosen.slice(0, 3).map((one) => one.label).join(", ")}` : "No tags");
  [...chosen, ...shown].forEach((one, i) => {
    tagging.rows.get(one.uri).line.dataset.key = i < 9 ? i + 1 : ""; // for reviewing
  });
  showChanges();
}

// The row of a tag; rows are reused, so that open ones stay open.
function tagRow(one, chosen) {
  let row = tagging.rows.get(one.uri);
  if (!row) {
    const id = `why-${Math.random().toString(36).slice(2)}`;
    row = {
      name: h("span", { class: "name" }),
      fill: h("i"),
      score: h("span", { class: "score" }),
      why: h("div", { class: "why", id, hidden: true }),
      change: h("button", { class: "icon" }),
    };
    row.bar = h("span", { class: "bar", "aria-hidden": "true" }, row.fill);
    row.button = h(
      "button",
      { class: "tag", "aria-expanded": "false", "aria-controls": id },
      row.name, row.bar, row.score,
    );
    row.button.addEventListener("click", () =>
      tagging.open === one.uri ? closeReasons() : explain(one.uri),
    );
    row.change.addEventListener("click", () => changeTag(row.one, row.chosen));
    row.line = h("div", { class: "tag-row" }, row.button, row.change);
    row.item = h("li", {}, row.line, row.why);
    tagging.rows.set(one.uri, row);
  }
  row.one = one;
  row.chosen = chosen;
  const removed = tagging.removed.has(one.uri);
  row.name.textContent = one.label;
  row.button.title = one.uri === one.label ? "" : one.uri;
  row.score.textContent = one.score === null ? "not suggested" : percent(one.score);
  row.bar.hidden = one.score === null;
  row.fill.style.width = `${100 * (one.score ?? 0)}%`;
  row.item.className = removed ? "removed" : one.added ? "added" : "";
  const verb = !chosen || removed ? "Add" : "Remove";
  row.change.textContent = verb === "Add" ? "+" : "×";
  row.change.title = verb;
  row.change.setAttribute("aria-label", `${verb} ${one.label}`);
  return row.item;
}

// Whether less than half of the old text remains at its beginning and end.
function isAnother(old, text) {
  const most = Math.min(old.length, text.length);
  let start = 0, end = 0;
  while (start < most && old[start] === text[start]) start++;
  while (end < most - start && old.at(-1 - end) === text.at(-1 - end)) end++;
  return start + end < old.length / 2;
}

function setText(value) {
  $("text").value = value;
  $("text").scrollTop = 0;
  textChanged();
}

function textChanged() {
  const text = $("text").value, words = text.trim() ? text.trim().split(/\s+/).length : 0;
  $("count").textContent = words ? plural(words, "word") : "";
  $("clear").hidden = !text;
  $("thanks").textContent = "";
  unmark(); // the marks belong to the old text
}

function startTagging() {
  const text = $("text");
  text.addEventListener("input", () => {
    textChanged();
    if (tagging.sent || isAnother(tagging.text, text.value)) forgetChanges();
    suggest();
  });
  text.addEventListener("scroll", () => ($("marks").scrollTop = text.scrollTop));
  $("clear").addEventListener("click", () => {
    text.value = "";
    text.dispatchEvent(new Event("input"));
    text.focus();
  });
  const setSure = (moved) => {
    tagging.moved = moved;
    if (!moved) $("sure").value = 100 * threshold();
    showKnobs();
    if (tagging.suggestions.length || tagging.added.size) showTags();
  };
  $("sure").addEventListener("input", () => setSure(true));
  $("sure-reset").addEventListener("click", () => {
    setSure(false);
    $("sure").focus();
  });
  $("rare").addEventListener("input", () => (showKnobs(), suggest()));
  document.addEventListener("back-online", suggest);
}

// A summary of the model.
async function showWelcome() {
  const facts = modelFacts();
  const box = $("empty");
  box.replaceChildren(
    h("p", {}, `This model knows ${plural(facts.n_labels, "tag")} from `
      + `${plural(facts.n_training_rows, "text")}.`),
  );
  if (facts.problem) box.append(h("p", { class: "bad" }, facts.problem));
  try {
    const { labels } = await ask(project("labels?limit=12"));
    const most = Math.max(...labels.map((one) => one.training_rows));
    tagging.mostFrequent = (1.1 * most) / facts.n_training_rows; // it may have learned since
    box.append(
      h("p", { class: "quiet" }, "Its most frequent tags:"),
      h("ul", { class: "chips" }, ...labels.map((one) => h("li", {},
        h("button", { onclick: () => openLabel(one.uri) }, one.label)))),
    );
  } catch (error) {
    showError(error);
  }
}
