// Why a text has a tag or not: words marked in the text, stages, typical words.

const STAGES = {
  base: "starting point of every tag",
  trees: "decision trees",
  linear: "weights of the words for this tag",
  features: "words associated with this tag",
  "sub-words": "parts of words",
  name: "its name in the text",
  frequency: "frequency of the tag",
  tail: "similarity to its texts",
};
const WEAK_WORD = 0.1;
const MAX_EXPLAINED = 100000; // characters; the limit of the service
let explaining = null;

async function explain(uri) {
  const row = tagging.rows.get(uri);
  if (!row) return;
  if (tagging.open !== uri) closeReasons();
  tagging.open = uri;
  row.button.setAttribute("aria-expanded", "true");
  row.why.hidden = false;
  if (!row.why.childElementCount) row.why.replaceChildren(h("p", { class: "quiet" }, "…"));
  explaining?.abort();
  unmark();
  const text = $("text").value;
  const reason = tagging.unknown.has(uri) ? "The model does not know this tag yet."
    : text.length > MAX_EXPLAINED ? "This text is too long to explain." : "";
  if (reason) {
    row.why.replaceChildren(h("p", { class: "verdict" }, reason));
    return;
  }
  explaining = new AbortController();
  try {
    const values = { text, label: uri };
    const facts = await ask(project("explain"), asForm(values, explaining.signal));
    row.why.replaceChildren(...reasons(facts));
    if ($("text").value === text) mark(facts);
  } catch (error) {
    showError(error, () => explain(uri));
  }
}

function closeReasons() {
  const row = tagging.rows.get(tagging.open);
  tagging.open = null;
  unmark();
  if (!row) return;
  row.button.setAttribute("aria-expanded", "false");
  row.why.hidden = true;
  row.why.replaceChildren();
}

function reasons(facts) {
  const parts = [h("p", { class: "verdict" }, verdict(facts))];
  const stages = Object.entries(facts.shares);
  if (stages.length > 1) {
    const largest = Math.max(...stages.map(([, value]) => Math.abs(value)), 0.01);
    parts.push(
      h("h3", {}, "Contribution of each stage (log-odds)"),
      h("ul", { class: "stages" }, ...stages.map(([name, value]) => stage(name, value, largest))),
    );
  }
  const kinds = facts.bias === null
    ? [["Words that decided the path through the trees (the same for every tag)", 1, "here"]]
    : [["Words for it", 1, "for"], ["Words against it", -1, "against"]];
  for (const [title, sign, kind] of kinds) {
    const words = facts.words.filter((one) => one.weight * sign >= 0.005).slice(0, 10);
    if (words.length) parts.push(h("h3", {}, title), chips(words.map((one) => [
      one.word, kind, signed(one.weight)])));
  }
  if (facts.typical.length) {
    parts.push(h("h3", {}, "Its typical words"), chips(facts.typical.map((one) => [
      one.word, one.here ? "here" : "away", one.here ? "in the text" : ""])));
  }
  parts.push(h("p", {}, h("button", { class: "plain", onclick: () => openLabel(facts.uri) },
    "More about this tag")));
  return parts;
}

function verdict(facts) {
  const seen = facts.training_rows
    ? `Learned from ${plural(facts.training_rows, "text")}.`
    : "No training text had this tag: only its name is known.";
  const named = facts.matched_name && facts.name_share >= 0.34
    ? ` The text contains ${percent(facts.name_share)} of its name “${facts.matched_name}”.` : "";
  if (!facts.listed) {
    const margin = facts.margin === null ? "" : facts.margin > 0
      ? " The weights of the words favour it, though." : " The weights of the words are against it, too.";
    return `Not suggested: nothing in the text points to it.${margin}${named} ${seen}`;
  }
  if (!facts.certainty) {
    return `The text has no known words. ${percent(facts.score)} of all texts have this tag. ${seen}`;
  }
  const little = facts.certainty < 1
    ? " The text has few known words, so the frequency of the tag counts for more." : "";
  return `Rank ${facts.place}, ${percent(facts.score)} confident.${little}${named} ${seen}`;
}

function stage(name, value, largest) {
  const fill = h("i", { class: value < 0 ? "against" : "for" });
  fill.style.width = `${(50 * Math.abs(value)) / largest}%`;
  fill.style[value < 0 ? "right" : "left"] = "50%";
  return h("li", {}, h("span", {}, STAGES[name] || name),
    h("span", { class: "swing", "aria-hidden": "true" }, fill),
    h("span", { class: "score" }, signed(value)));
}

function chips(items) {
  return h("ul", { class: "chips" }, ...items.map(([text, kind, note]) =>
    h("li", { class: kind }, h("span", {}, text), note ? h("small", {}, ` ${note}`) : null)));
}

// -- marks in the text -----------------------------------------------------------------------

function mark(facts) {
  // If all weights are small, no word is marked strongly.
  const largest = facts.parts.reduce((most, part) => Math.max(most, Math.abs(part.weight)), WEAK_WORD);
  const pieces = document.createDocumentFragment();
  for (const part of facts.parts) {
    const strength = facts.bias === null && part.weight < 0 ? 0 : Math.abs(part.weight) / largest;
    if (strength < 0.04) {
      pieces.append(part.text);
      continue;
    }
    const piece = h("mark", { class: part.weight < 0 ? "against" : "for" }, part.text);
    piece.style.setProperty("--strength", `${Math.round(14 + 56 * strength)}%`);
    pieces.append(piece);
  }
  $("marks").replaceChildren(pieces, "\n");
  $("marks").scrollTop = $("text").scrollTop;
  $("marked-tag").textContent = facts.label;
  $("legend").hidden = facts.bias === null;
}

function unmark() {
  $("marks").replaceChildren();
  $("legend").hidden = true;
}

$("unmark").addEventListener("click", () => {
  closeReasons();
  $("text").focus();
});
