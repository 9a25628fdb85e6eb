// The reasons for a tag: a sentence for people first, the numbers behind it folded away.

const STAGES = {
  base: "starting point of every tag",
  trees: "decision trees",
  linear: "weights of the words for this tag",
  features: "words associated with this tag",
  "sub-words": "parts of words",
  name: "its name in the text",
  frequency: "frequency of the tag",
  tail: "similarity to its texts",
  meaning: "meaning of the text",
};
const MOST_WORDS = 3; // words of a sentence
const LEAST_SHARE = 0.15; // of the strongest word's weight: weaker words are left out
const NAMED = 0.34; // of a name: less is hardly a match
const folding = { open: false }; // whether the numbers are shown, for this tag and the next

function reasons(facts) {
  return [
    h("p", { class: "verdict" }, ...sentence(facts)),
    h("p", { class: "quiet" }, ...learnedFrom(facts)),
    numbers(facts),
    h("p", {}, h("button", { class: "plain", onclick: () => openLabel(facts.uri) },
      "More about this tag")),
  ];
}

// Such as: Suggested because of cod and quota; the name catch quota is in the text.
function sentence(facts) {
  if (facts.listed && !facts.certainty) {
    return [`No word of the text is known. ${percent(facts.score)} of all texts have this tag.`];
  }
  const reasons = [...becauseOf(facts), ...nameInText(facts)];
  const against = facts.bias === null ? [] : strongest(facts.words, -1);
  const but = against.length ? [" Against it: ", ...listed(against), "."] : [];
  if (!facts.listed) {
    return ["Not suggested: the text does not point to it.", ...but];
  }
  if (facts.score >= sure()) {
    return ["Suggested ", ...(reasons.length ? between(reasons, "; ") : [mainStage(facts)]), "."];
  }
  return [`Less likely (${percent(facts.score)}).`,
    ...(reasons.length ? [" Considered ", ...between(reasons, "; "), "."] : []), ...but];
}

function becauseOf(facts) {
  const words = strongest(facts.words, 1);
  return words.length ? [["because of ", ...listed(words)]] : [];
}

function nameInText(facts) {
  if (!facts.matched_name || facts.name_share < NAMED) return [];
  const part = facts.name_share >= 0.995 ? "" : `${percent(facts.name_share)} of `;
  return [[`${part}the name `, h("em", {}, facts.matched_name), " is in the text"]];
}

// The stage that adds most, for a text whose words say little by themselves.
function mainStage(facts) {
  const [name] = Object.entries(facts.shares).reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
  return { trees: "because similar texts have it", tail: "because similar texts have it",
    frequency: "because many texts have it", "sub-words": "because of parts of words",
    meaning: "because of what the text means" }[name]
    ?? "for many small reasons";
}

// The words with the largest weights of this sign, without words that are part of another one.
function strongest(words, sign) {
  const able = words.filter((one) => one.weight * sign > 0);
  const least = LEAST_SHARE * Math.abs(able[0]?.weight ?? 0);
  const chosen = [];
  for (const { word, weight } of able) {
    const parts = word.split(" ");
    const shares = (other) => other.split(" ").some((part) => parts.includes(part));
    if (chosen.length < MOST_WORDS && Math.abs(weight) >= least && !chosen.some(shares)) chosen.push(word);
  }
  return chosen;
}

const listed = (words) => words.flatMap((word, i) => [
  i === 0 ? "" : i === words.length - 1 ? " and " : ", ", h("em", {}, word)]);
const between = (parts, mark) => parts.flatMap((part, i) => (i ? [mark, ...part] : part));

function learnedFrom(facts) {
  const few = facts.listed && facts.certainty > 0 && facts.certainty < 1
    ? " The text has few known words, so the frequency of the tag counts for more." : "";
  const place = facts.listed ? `${percent(facts.score)} confident, rank ${facts.place}. ` : "";
  return [place, facts.training_rows
    ? `Learned from ${plural(facts.training_rows, "text")}.`
    : "No training text had this tag: only its name is known.", few];
}

// The numbers behind the sentence.
function numbers(facts) {
  const parts = [], stages = Object.entries(facts.shares);
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
  const fold = h("details", { class: "numbers", open: folding.open }, h("summary", {}, "Details"), ...parts);
  fold.addEventListener("toggle", () => {
    folding.open = fold.open;
    if (fold.open) fold.scrollIntoView({ block: "nearest" });
  });
  return fold;
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
