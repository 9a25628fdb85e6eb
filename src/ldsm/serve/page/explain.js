// Why a text has a tag or not: what the service says, and marks in the text.

const WEAK_WORD = 0.1;
const MAX_EXPLAINED = 100000; // characters; the limit of the service
let explaining = null;

async function explain(uri, { again = false } = {}) {
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
    if (!again) {
      row.why.scrollIntoView({ block: "nearest" });
      row.line.scrollIntoView({ block: "nearest" }); // if both do not fit
    }
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
