// Files: their rows are sent in batches, and shown as the answers arrive.

const job = {
  name: "", columns: [], records: [], rows: null, named: true,
  answers: [], // of the first rows, in order: tags and doubt, or a problem
  running: null,
  byDoubt: false, // the order of the table
  reviewed: new Set(), // rows whose tags were accepted or corrected
};
// Batches start small, and grow while the service is fast.
const FIRST_BATCH = 16, CHARACTERS_AT_ONCE = 200000, REQUESTS_AT_ONCE = 3, QUICK = 1500, SLOW = 6000;
const ROWS_SHOWN = 500;
const DOUBTED = 10; // tags of a row that its doubt is computed from, at least

// -- the file --------------------------------------------------------------------------------

async function openFile(file) {
  stopJob();
  try {
    const { columns, records, rows, named } = readFile(file.name, decoded(await file.arrayBuffer()));
    if (!records.length) throw new Error("It has no rows.");
    Object.assign(job, { name: file.name, columns, records, rows, named });
  } catch (error) {
    banner(`${file.name} cannot be read. ${error.message}`);
    return;
  }
  banner("");
  showFile();
}

// The page cannot know for sure whether the first row holds the column names, so the user decides.
function setNamed(named) {
  stopJob();
  Object.assign(job, asTable(job.rows, named));
  showFile();
}

function showFile() {
  $("names-row").hidden = !job.rows || job.rows.length < 2;
  if (job.rows) {
    const seemsData = looksLikeData(job.rows), cut = (cell) => (cell.length > 40 ? `${cell.slice(0, 39)}…` : cell);
    $(job.named ? "is-names" : "is-data").checked = true;
    $("names-row").classList.toggle("asks", seemsData);
    $("names-note").textContent = (seemsData ? "It looks like it: " : "It looks like column names: ")
      + job.rows[0].map(cut).join(" | ");
  }
  const length = (column) => job.records.slice(0, 50).reduce(
    (sum, one) => sum + String(one[column] ?? "").length, 0);
  const longest = job.columns.reduce((a, b) => (length(b) > length(a) ? b : a));
  const named = (...names) => job.columns.find((column) => names.includes(column.toLowerCase()));
  const text = named("text", "body", "content") ?? longest;
  fillSelect($("text-column"), job.columns, text);
  fillSelect($("id-column"), ["", ...job.columns],
    named("id", "uri", "identifier") ?? job.columns.find((one) => one !== text && isId(one)) ?? "");
  $("file-name").textContent = `${job.name}: ${plural(job.records.length, "row")}`;
  $("job").hidden = false;
  forgetAnswers();
  showJob();
}

// Whether a column has short, distinct values.
function isId(column) {
  const values = job.records.map((one) => String(one[column] ?? ""));
  return new Set(values).size === values.length && values.every((one) => one && one.length <= 80);
}

function fillSelect(select, values, chosen) {
  select.replaceChildren(...values.map((value) =>
    h("option", { value, selected: value === chosen }, value || "row number")));
}

// -- tagging ---------------------------------------------------------------------------------

const textOf = (record) => {
  const value = record[$("text-column").value];
  return value === undefined || value === null ? "" : String(value);
};
const idOf = (record, row) => {
  const column = $("id-column").value;
  return column ? String(record[column] ?? "") : String(row);
};

// The model's exact threshold, unless the user typed another one.
const least = () => {
  const typed = $("least").value;
  return typed === inPercent(threshold()) ? threshold() : (Number(typed) || 0) / 100;
};

async function tagRows({ resume = false } = {}) {
  stopJob();
  if (!resume) forgetAnswers();
  const running = (job.running = new AbortController());
  showJob();
  const most = Number($("most").value) || 5, lowest = Math.fround(least()); // as the service compares
  const query = new URLSearchParams({ limit: Math.max(most, DOUBTED) });
  const pending = []; // requests, in the order of their rows
  let batch = FIRST_BATCH, next = job.answers.length;
  try {
    while (pending.length || next < job.records.length) {
      while (pending.length < REQUESTS_AT_ONCE && next < job.records.length) {
        const documents = documentsFrom(next, Math.min(batch, modelFacts().max_batch));
        const request = timed(() => askPatiently(query, documents, running.signal));
        request.catch(() => {}); // reported below, in its turn
        pending.push(request);
        next += documents.length;
      }
      const { answers, took } = await pending.shift();
      if (job.running !== running) return;
      if (took < QUICK) batch = Math.min(2 * batch, modelFacts().max_batch);
      else if (took > SLOW) batch = Math.ceil(batch / 2);
      const start = job.answers.length;
      job.answers.push(...answers.map((one) => kept(one, most, lowest)));
      drawTags(start);
      showJob();
      if (start === 0) showFirstRow();
    }
  } catch (error) {
    running.abort();
    showError(error, () => tagRows({ resume: true }));
  } finally {
    if (job.running === running) job.running = null;
    showJob();
  }
}

function documentsFrom(start, most) {
  const documents = [];
  let size = 0;
  for (let i = start; i < job.records.length && documents.length < most; i++) {
    const text = textOf(job.records[i]);
    if (documents.length && size + text.length > CHARACTERS_AT_ONCE) break;
    size += text.length;
    documents.push({ text });
  }
  return documents;
}

async function timed(request) {
  const start = performance.now();
  return { answers: await request(), took: performance.now() - start };
}

// What is kept of the answer to a row: its tags, and the model's doubt, 1 minus the expected F1 of
// these tags. Without likely tags, it is 1 minus the chance that the row has no tag, or the expected F1
// of the best one, whichever is higher.
function kept(answer, most, lowest) {
  if (answer.problem) return answer;
  const tags = answer.filter((one, i) => one.score >= lowest && i < most);
  const sum = (ones) => ones.reduce((total, one) => total + one.score, 0);
  const expected = (ones) => (2 * sum(ones)) / (Math.max(1, ones.length) + sum(answer));
  const none = answer.reduce((product, one) => product * (1 - one.score), 1);
  return { tags, doubt: 1 - (tags.length ? expected(tags) : Math.max(none, expected(answer.slice(0, 1)))) };
}

// Retry a busy service after its Retry-After time; a row that is too large gets no tags.
async function askPatiently(query, documents, signal) {
  for (let tries = 0; ; tries++) {
    try {
      const request = asJson({ documents, ...chosenTags() }, signal);
      const answers = await ask(project(`suggest-batch?${query}`), request);
      return answers.map((one) => one.results);
    } catch (error) {
      if (error.status === 413 && documents.length === 1) return [{ problem: error.message }];
      if (error.status === 413) {
        const half = documents.length >> 1;
        return [...await askPatiently(query, documents.slice(0, half), signal),
          ...await askPatiently(query, documents.slice(half), signal)];
      }
      if (!error.wait || tries >= 20) throw error;
      await new Promise((done) => setTimeout(done, 1000 * error.wait));
      signal.throwIfAborted();
    }
  }
}

function stopJob() {
  job.running?.abort();
  job.running = null;
}

function forgetAnswers() {
  job.answers = [];
  job.byDoubt = false;
  job.reviewed.clear();
  endReview();
  drawTable();
}

// -- the table -------------------------------------------------------------------------------

function showJob() {
  const done = job.answers.length, all = job.records.length, running = job.running !== null;
  $("go").hidden = running;
  $("stop").hidden = !running;
  for (const one of ["as-csv", "as-jsonl"]) $(one).hidden = running || done === 0;
  $("review").hidden = running || done === 0 || filtering();
  const some = done < all ? ` of ${plural(done, "row")}` : "";
  $("as-csv").textContent = `Download CSV${some}`;
  $("as-jsonl").textContent = `Download JSON Lines${some}`;
  $("progress").value = all ? done / all : 0;
  $("progress-text").textContent = running || done
    ? `${number(done)} of ${number(all)} rows` : "";
  $("order-row").hidden = running || done === 0;
  $("row-order").value = job.byDoubt ? "doubt" : "file";
}

// The tagged rows, most doubtful first; last those that are too large.
function rowsByDoubt() {
  const doubt = (row) => job.answers[row].doubt ?? -1;
  return job.answers.map((_, i) => i).sort((a, b) => doubt(b) - doubt(a) || a - b);
}

function drawTable() {
  const all = job.records.length;
  const shown = (job.byDoubt ? rowsByDoubt() : [...job.records.keys()]).slice(0, ROWS_SHOWN);
  $("rows").replaceChildren(...shown.map((i) => h("tr", {},
    h("th", { scope: "row" }, idOf(job.records[i], i)),
    h("td", {}, textOf(job.records[i]).slice(0, 200)),
    h("td", {}, ...tagList(job.answers[i]), ...notesOn(i)))));
  $("more-rows").hidden = all <= ROWS_SHOWN;
  $("more-rows").textContent =
    `Only the first ${number(ROWS_SHOWN)} rows are shown. The download has all tagged rows.`;
}

// Only what is new: drawing every row for every batch takes longer than tagging them.
function drawTags(start) {
  for (let i = start; i < Math.min(job.answers.length, ROWS_SHOWN); i++) {
    $("rows").rows[i].cells[2].replaceChildren(...tagList(job.answers[i]));
  }
}

// On a small screen, the settings of the file leave no room for its rows.
function showFirstRow() {
  if ($("rows").getBoundingClientRect().top > 0.7 * window.innerHeight) {
    $("progress").scrollIntoView({ block: "start" });
  }
}

function notesOn(row) {
  const notes = [];
  if (job.byDoubt && job.answers[row].doubt !== undefined) notes.push(`doubt ${percent(job.answers[row].doubt)}`);
  if (job.reviewed.has(row)) notes.push("reviewed");
  return notes.length ? [h("small", {}, notes.join(", "))] : [];
}

function tagList(answer) {
  if (!answer) return [];
  if (answer.problem) return [h("span", { class: "bad" }, answer.problem)];
  if (!answer.tags.length) return [h("span", { class: "quiet" }, "none")];
  return [h("ul", { class: "chips" }, ...answer.tags.map((one) =>
    h("li", {}, h("span", {}, one.label), h("small", {}, ` ${percent(one.score)}`))))];
}

// -- downloads in the format of `ldsm predict` ---------------------------------------------

function results() {
  return job.answers.map((answer, row) => {
    const found = answer.tags ?? [], column = $("id-column").value;
    const name = ["row", "labels", "scores"].includes(column) ? `id (${column})` : column;
    return {
      row,
      ...(column && { [name]: idOf(job.records[row], row) }),
      labels: found.map((one) => one.uri),
      scores: found.map((one) => Number(one.score.toFixed(6))),
    };
  });
}

const written = (value) => (typeof value === "number" ? value.toFixed(6) : value);

function asCsv(records) {
  const between = modelFacts().separator ?? "\n";
  const cell = (value) => {
    const text = Array.isArray(value) ? value.map(written).join(between) : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = records.map((one) => Object.values(one).map(cell).join(","));
  return [Object.keys(records[0]).map(cell).join(","), ...lines].join("\n") + "\n";
}

function download(content, suffix, kind) {
  const url = URL.createObjectURL(new Blob([content], { type: kind }));
  const done = job.answers.length, some = done < job.records.length ? `-first-${done}-rows` : "";
  const name = `${job.name.replace(/\.[^.]*$/, "")}-tags${some}.${suffix}`;
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function startFiles() {
  const drop = $("drop");
  $("file").addEventListener("change", (event) => {
    const file = event.target.files[0];
    event.target.value = "";
    if (file) openFile(file);
  });
  for (const type of ["dragenter", "dragover"]) {
    drop.addEventListener(type, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const type of ["dragleave", "drop"]) {
    drop.addEventListener(type, () => drop.classList.remove("over"));
  }
  // A file dropped outside the box must not replace the page.
  for (const type of ["dragover", "drop"]) {
    window.addEventListener(type, (event) => event.preventDefault());
  }
  drop.addEventListener("drop", (event) => {
    if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
  });
  for (const one of ["is-data", "is-names"]) {
    $(one).addEventListener("change", () => setNamed($("is-names").checked));
  }
  $("go").addEventListener("click", () => tagRows());
  $("stop").addEventListener("click", () => (stopJob(), showJob()));
  for (const select of ["text-column", "id-column"]) {
    $(select).addEventListener("change", () => {
      stopJob();
      if (select === "text-column") forgetAnswers();
      else drawTable();
      showJob();
    });
  }
  $("row-order").addEventListener("change", () => {
    job.byDoubt = $("row-order").value === "doubt";
    drawTable();
  });
  $("as-csv").addEventListener("click", () => download(asCsv(results()), "csv", "text/csv"));
  $("as-jsonl").addEventListener("click", () => download(
    results().map((one) => JSON.stringify(one) + "\n").join(""), "jsonl", "application/jsonl"));
}
