// Review of a file: its most doubtful rows first, each accepted or corrected with the keyboard.

const review = {
  on: false, queue: [], at: 0, saved: 0,
  ready: null, // when the tags of the row are shown
  saving: false,
};

function startReview() {
  review.queue = rowsByDoubt().filter((row) => !job.reviewed.has(row)
    && job.answers[row].doubt !== undefined && textOf(job.records[row]).trim());
  if (!review.queue.length) {
    $("review-note").textContent = "No row is left to review.";
    return;
  }
  Object.assign(review, { on: true, at: 0, saved: 0 });
  job.byDoubt = true;
  document.body.classList.add("reviewing");
  $("review-bar").hidden = false;
  selectTab("text");
  showReviewed();
}

function showReviewed() {
  const row = review.queue[review.at], record = job.records[row];
  $("review-place").textContent = `${number(review.at + 1)} of ${number(review.queue.length)}`;
  $("review-row").textContent = `${$("id-column").value || "row"} ${idOf(record, row)}: `
    + (job.reviewed.has(row) ? "saved" : `doubt ${percent(job.answers[row].doubt)}`);
  $("back").disabled = review.at === 0;
  setText(textOf(record));
  forgetChanges();
  closeReasons();
  // The tags of the last row must not be changed by a key that is meant for this one.
  for (const list of ["tags", "perhaps"]) $(list).replaceChildren();
  $("accept").focus();
  review.ready = suggestNow();
}

async function acceptRow() {
  if (review.saving) return;
  review.saving = true;
  const row = review.queue[review.at];
  await review.ready;
  const saved = await sendCorrection();
  review.saving = false;
  if (!saved) return;
  job.reviewed.add(row);
  review.saved++;
  move(1);
}

function move(step) {
  review.at = Math.max(review.at + step, 0);
  if (review.at < review.queue.length) showReviewed();
  else returnToFile();
}

// Leave the review; what is saved stays saved.
function endReview() {
  if (!review.on) return;
  review.on = false;
  document.body.classList.remove("reviewing");
  $("review-bar").hidden = true;
  setText("");
  showNothing();
}

function returnToFile() {
  endReview();
  $("review-note").textContent = `Reviewed: ${plural(review.saved, "row")}.`;
  drawTable();
  showJob();
  selectTab("file");
  $("review").focus();
}

function onReviewKey(event) {
  const inField = event.target.closest("input, textarea, select");
  if (!review.on || $("view-text").hidden || inField || $("key-dialog").open) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const key = event.key.toLowerCase();
  if (key >= "1" && key <= "9") changeByNumber(key);
  else if (key === "/") $("add").focus();
  else if (key === "s") move(1);
  else if (key === "b") move(-1);
  else if (key === "escape") returnToFile();
  else if (key === "enter" && !event.target.closest("button, a, summary")) acceptRow();
  else return;
  event.preventDefault();
}

function changeByNumber(key) {
  const line = [...$("results").querySelectorAll(".tag-row")].find((one) => one.dataset.key === key);
  if (!line) return;
  line.querySelector(".icon").click();
  $("accept").focus();
}

function startReviewing() {
  $("review").addEventListener("click", startReview);
  $("accept").addEventListener("click", acceptRow);
  $("skip").addEventListener("click", () => move(1));
  $("back").addEventListener("click", () => move(-1));
  $("end-review").addEventListener("click", returnToFile);
  document.addEventListener("keydown", onReviewKey);
}
