// Files: read in the browser, sent in batches of rows, shown as answers arrive.

const job = { name: "", columns: [], records: [], answers: [], rows: null, named: true, running: null };
const ROWS_AT_ONCE = 16, CHARACTERS_AT_ONCE = 150000, ROWS_SHOWN = 500;

// -- reading ---------------------------------------------------------------------------------

function readFile(name, content) {
  const text = content.replace(/^\uFEFF/, "");
  const suffix = name.toLowerCase().split(".").pop();
  if (["jsonl", "ndjson", "json"].includes(suffix)) return readJson(text);
  if (["csv", "tsv"].includes(suffix)) return readTable(text, suffix === "tsv" ? "\t" : null);
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  return { columns: ["text"], records: lines.map((line) => ({ text: line })) };
}

function readJson(text) {
  let records;
  if (text.trimStart().startsWith("[")) {
    records = JSON.parse(text, exactNumber);
  } else {
    records = text.split(/\r?\n/).flatMap((line, i) => {
      if (!line.trim()) return [];
      try {
        return [JSON.parse(line, exactNumber)];
      } catch (error) {
        throw new Error(`Line ${i + 1} ${error instanceof RangeError ? error.message : "is not JSON."}`);
      }
    });
  }
  records.forEach((one, i) => {
    if (one === null || typeof one !== "object" || Array.isArray(one)) {
      throw new Error(`Record ${i + 1} is not an object.`);
    }
  });
  return { columns: [...new Set(records.slice(0, 50).flatMap(Object.keys))], records };
}

// Long numbers, such as ids, are kept as strings, because numbers would be rounded.
function exactNumber(key, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value) || !Number.isInteger(value)) return value;
  if (context?.source) return context.source;
  throw new RangeError("has a number that is too large; put it in quotes.");
}

function readTable(text, delimiter) {
  const head = text.split(/\r?\n/, 1)[0];
  const count = (mark) => head.split(mark).length;
  delimiter ??= [",", ";", "\t"].reduce((a, b) => (count(b) > count(a) ? b : a));
  const rows = cells(text, delimiter).filter((row) => row.length > 1 || row[0] !== "");
  const width = rows[0]?.length ?? 0;
  rows.forEach((row, i) => {
    if (row.length > width) {
      throw new Error(`Row ${i + 1} has ${row.length} cells, but there are ${width} columns.`);
    }
  });
  return asTable(rows, !looksLikeData(rows));
}

// The records of a table, whose first row may hold the column names.
function asTable(rows, named) {
  const first = rows[0] ?? [];
  const columns = named ? first : first.map((_, i) => `column ${i + 1}`);
  const records = rows.slice(named ? 1 : 0).map((row) => Object.fromEntries(
    columns.map((column, i) => [column, row[i] ?? ""])));
  return { columns, records, rows, named };
}

const USUAL_NAMES = ["text", "body", "content", "title", "description", "id", "uri", "identifier",
  "labels", "label", "tags", "tag"];
const words = (cell) => cell.split(/\s+/).filter(Boolean).length;

// As in `datasets/tables.py`: data rows have repeated cells, numbers, or sentences as long as those below.
function looksLikeData([first = [], ...others]) {
  const names = first.map((cell) => cell.trim()), some = others.slice(0, 100);
  if (names.some((name) => USUAL_NAMES.includes(name.toLowerCase()))) return false;
  if (new Set(names).size < names.length) return true;
  const start = names[0] ? 0 : 1; // pandas numbers its columns, possibly after its index
  return names.some((name, i) => {
    const below = some.filter((row) => row.length > i).map((row) => row[i]);
    const lengths = below.map(words).sort((a, b) => a - b);
    return words(name) >= 8
      || (name !== "" && Number.isFinite(Number(name)) && name !== String(i - start))
      || (name !== "" && below.includes(name))
      || (lengths.length > 0 && words(name) >= Math.max(3, lengths[lengths.length >> 1] / 2));
  });
}

// The cells of a table; those in quotes may hold delimiters, quotes (doubled) and line ends.
function cells(text, delimiter) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === delimiter) row.push(cell), (cell = "");
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      rows.push([...row, cell]);
      row = [];
      cell = "";
    } else cell += c;
  }
  if (quoted) throw new Error("A quoted cell is not closed.");
  if (cell !== "" || row.length) rows.push([...row, cell]);
  return rows;
}

function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("It is not UTF-8; save it with that encoding.");
  }
}

async function openFile(file) {
  stopJob();
  try {
    const { columns, records, rows, named } = readFile(file.name, decoded(await file.arrayBuffer()));
    if (!records.length) throw new Error("It has no rows.");
    Object.assign(job, { name: file.name, columns, records, answers: [], rows, named });
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
  Object.assign(job, asTable(job.rows, named), { answers: [] });
  showFile();
}

function showFile() {
  $("names-row").hidden = !job.rows || job.rows.length < 2;
  if (job.rows) {
    $("named").checked = job.named;
    const first = job.rows[0].map((cell) => (cell.length > 40 ? `${cell.slice(0, 39)}…` : cell)).join(" | ");
    $("names-note").textContent = job.named
      ? `The first row is not tagged: ${first}`
      : `The first row is tagged like the others: ${first}`;
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
  if (!resume) job.answers = [];
  const running = (job.running = new AbortController());
  showJob();
  const atOnce = Math.min(ROWS_AT_ONCE, modelFacts().max_batch);
  const query = new URLSearchParams({ limit: $("most").value || 5, threshold: least() });
  try {
    while (job.answers.length < job.records.length && job.running === running) {
      const start = job.answers.length, documents = [];
      let size = 0;
      for (let i = start; i < job.records.length && documents.length < atOnce; i++) {
        const text = textOf(job.records[i]);
        if (documents.length && size + text.length > CHARACTERS_AT_ONCE) break;
        size += text.length;
        documents.push({ text });
      }
      const answers = await askPatiently(query, documents, running.signal);
      if (job.running !== running) return;
      job.answers.push(...answers);
      showJob();
    }
  } catch (error) {
    showError(error, () => tagRows({ resume: true }));
  } finally {
    if (job.running === running) job.running = null;
    showJob();
  }
}

// Retry a busy service after its Retry-After time; a row that is too large gets no tags.
async function askPatiently(query, documents, signal) {
  for (let tries = 0; ; tries++) {
    try {
      const answers = await ask(project(`suggest-batch?${query}`), asJson({ documents }, signal));
      return answers.map((one) => one.results);
    } catch (error) {
      if (error.status === 413 && documents.length === 1) return [{ problem: error.message }];
      if (error.status === 413) {
        const parts = await Promise.all(documents.map((one) => askPatiently(query, [one], signal)));
        return parts.flat();
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

function showJob() {
  const done = job.answers.length, all = job.records.length, running = job.running !== null;
  $("go").hidden = running;
  $("stop").hidden = !running;
  $("as-csv").hidden = $("as-jsonl").hidden = running || done === 0;
  const some = done < all ? ` of ${plural(done, "row")}` : "";
  $("as-csv").textContent = `Download CSV${some}`;
  $("as-jsonl").textContent = `Download JSON Lines${some}`;
  $("progress").value = all ? done / all : 0;
  $("progress-text").textContent = running || done
    ? `${number(done)} of ${number(all)} rows` : "";
  const body = $("rows");
  while (body.rows.length > Math.min(all, ROWS_SHOWN)) body.deleteRow(-1);
  for (let i = body.rows.length; i < Math.min(all, ROWS_SHOWN); i++) {
    body.append(h("tr", {}, h("th", { scope: "row" }), h("td"), h("td")));
  }
  [...body.rows].forEach((row, i) => {
    const [id, text, tags] = row.cells, record = job.records[i], answer = job.answers[i];
    id.textContent = idOf(record, i);
    text.textContent = textOf(record).slice(0, 200);
    tags.replaceChildren(...(answer ? tagList(answer) : []));
  });
  $("more-rows").hidden = all <= ROWS_SHOWN;
  $("more-rows").textContent =
    `Only the first ${number(ROWS_SHOWN)} rows are shown. The download has all tagged rows.`;
}

function tagList(answer) {
  if (answer.problem) return [h("span", { class: "bad" }, answer.problem)];
  if (!answer.length) return [h("span", { class: "quiet" }, "none")];
  return [h("ul", { class: "chips" }, ...answer.map((one) =>
    h("li", {}, h("span", {}, one.label), h("small", {}, ` ${percent(one.score)}`))))];
}

// -- downloads in the format of `ldsm predict` ---------------------------------------------

function results() {
  return job.answers.map((answer, row) => {
    const found = answer.problem ? [] : answer, column = $("id-column").value;
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
  $("named").addEventListener("change", () => setNamed($("named").checked));
  $("go").addEventListener("click", () => tagRows());
  $("stop").addEventListener("click", () => (stopJob(), showJob()));
  for (const select of ["text-column", "id-column"]) {
    $(select).addEventListener("change", () => {
      stopJob();
      if (select === "text-column") job.answers = [];
      showJob();
    });
  }
  $("as-csv").addEventListener("click", () => download(asCsv(results()), "csv", "text/csv"));
  $("as-jsonl").addEventListener("click", () => download(
    results().map((one) => JSON.stringify(one) + "\n").join(""), "jsonl", "application/jsonl"));
}
