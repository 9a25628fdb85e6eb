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

function chooseTag(one) {
  tagging.sent = false;
  tagging.removed.delete(one.uri);
  const known = tagging.suggestions.find((other) => other.uri === one.uri);
  if (!known || known.score < sure()) tagging.added.set(one.uri, one.label);
  if (one.isNew) tagging.unknown.add(one.uri);
  showTags();
  explain(one.uri);
  if (review.on) $("accept").focus();
}

// Tags of the model, or a new one of this name.
async function findOrCreate(wanted, signal) {
  const { options, total } = await findLabels(wanted, signal);
  if (!options.some((one) => one.label.toLowerCase() === wanted.toLowerCase())) {
    options.push({ uri: wanted, label: wanted, note: "a new tag", isNew: true });
  }
  return { options, total };
}

function startCorrecting() {
  makeFinder($("add"), $("found"), findOrCreate, chooseTag);
  $("send").addEventListener("click", sendAndReturn);
  $("undo").addEventListener("click", () => {
    forgetChanges();
    showTags();
  });
}
