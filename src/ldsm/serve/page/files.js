// Reading a file in the browser: its columns, and its rows as records.

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
  const rows = rowsOf(text, delimiter).filter((row) => row.length > 1 || row[0] !== "");
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

// As in `datasets/documents/table_columns.py`: data rows have repeated cells, numbers, or sentences as long as those below.
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

// Tables of tabs often have quotes within their texts, and none around cells.
function rowsOf(text, delimiter) {
  try {
    return cells(text, delimiter);
  } catch (error) {
    if (delimiter !== "\t") throw error;
    return text.replace(/\r?\n$/, "").split(/\r?\n/).map((line) => line.split(delimiter));
  }
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
      else if ([delimiter, "\n", "\r", undefined].includes(text[i + 1])) quoted = false;
      else throw new Error(`Row ${rows.length + 1} has more text behind a quoted cell.`);
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
