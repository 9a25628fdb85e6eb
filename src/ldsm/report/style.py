"""The style sheet and the only script of the page."""

STYLE = """
:root { --ink: #1b1e23; --soft: #5c636e; --line: #d9dce1; --page: #fff; --wash: #f5f6f8;
  --good: #00694d; --bad: #a94400; color-scheme: light; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #a0a7b2; --line: #3a3f47; --page: #16181c; --wash: #1f2227;
    --good: #3fc79b; --bad: #f0985a; color-scheme: dark; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 2rem 4rem; max-width: 100rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue",
  "Liberation Sans", Arial, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { margin: .5rem 0; max-width: 52rem; }
.lead, .note, figcaption { color: var(--soft); }
.note, figcaption { font-size: .88rem; line-height: 1.45; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem;
  margin: 1.2rem 0; }
.tiles > div { background: var(--wash); border-radius: .5rem; padding: .7rem 1rem; }
.tiles dt { color: var(--soft); font-size: .88rem; }
.tiles dd { margin: 0; color: var(--soft); font-size: .82rem; }
.tiles dd b { display: block; color: var(--ink); font-size: 1.7rem; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .88rem; }
th, td { padding: .28rem 1.2rem .28rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
td:first-child { min-width: 8rem; }
th { color: var(--soft); font-weight: 600; border-bottom-color: var(--soft); }
th button { all: unset; cursor: pointer; }
th button:focus-visible, input:focus-visible, summary:focus-visible {
  outline: 2px solid currentColor; outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.searchable > div { max-height: 36rem; overflow: auto; }
.searchable thead th { position: sticky; top: 0; background: var(--page); }
.searchable input { font: inherit; font-size: .9rem; color: inherit; background: var(--wash);
  border: 1px solid var(--line); border-radius: 4px; padding: .35rem .6rem;
  width: min(24rem, 100%); }
.searchable output { margin-left: .8rem; color: var(--soft); font-size: .88rem; }
.wide > table, .searchable table { width: 100%; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; }
code { white-space: nowrap; }
.share { white-space: nowrap; font-variant-numeric: tabular-nums; }
.facts { columns: 18rem 4; column-gap: 2.4rem; margin: 1rem 0; font-size: .88rem; }
.facts > div { padding: .3rem 0; border-bottom: 1px solid var(--line); display: flex;
  justify-content: space-between; gap: .8rem; break-inside: avoid; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; text-align: right; min-width: 0; font-variant-numeric: tabular-nums; }
.grid, section > figure { display: grid; gap: 1rem 3rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); }
.grid > * { min-width: 0; }
figure { margin: 0; }
figure svg, figcaption { max-width: 44rem; }
figure svg { display: block; width: 100%; height: auto; font-family: inherit; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { margin-top: .3rem; }
figcaption b { color: var(--ink); }
blockquote { margin: .6rem 0; padding: .5rem .9rem; background: var(--wash);
  border-left: 3px solid var(--line); font-size: .92rem; }
summary { cursor: pointer; }
summary h2 { display: inline-block; border: 0; padding: 0; }
details.more { margin: .5rem 0; }
details.more > summary { color: var(--soft); font-size: .88rem; }
body > section:last-of-type { margin-top: 2rem; border-top: 1px solid var(--line); }
.good { color: var(--good); }
.bad { color: var(--bad); }
@media screen and (max-width: 48rem) { body { padding: 1.5rem .9rem 3rem; }
  th, td { padding-right: .7rem; } table { font-size: .82rem; }
  td:first-child { min-width: 5rem; } .tiles { gap: .6rem; }
  .tiles > div { padding: .5rem .7rem; } .tiles dd b { font-size: 1.4rem; } }
@media screen and (max-width: 62rem) {
  .tiles { grid-template-columns: repeat(2, 1fr); }
  .cards, .cards tr, .cards td { display: block; } .cards thead { display: none; }
  .cards tbody { display: grid; gap: 0 2rem;
    grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
  .cards tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .cards td { border: 0; padding: .05rem 0; text-align: left; white-space: normal; }
  .cards td::before { content: attr(data-head) ": "; color: var(--soft); }
  .cards td:first-child { font-weight: 600; }
  .cards td:first-child::before { content: none; } }
@media print { html { font-size: 12px; } body { max-width: none; padding: 0; }
  figure, tr, blockquote { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .searchable > div { max-height: none; } }
"""


# Optional: the tables also work without it. Cells are text, never markup.
SCRIPT = """
for (const box of document.querySelectorAll(".searchable")) {
  const table = box.querySelector("table"), body = table.tBodies[0], rows = [...body.rows];
  const search = document.createElement("input"), found = document.createElement("output");
  const pane = document.createElement("div");
  search.type = "search";
  search.placeholder = "Search labels";
  search.setAttribute("aria-label", "Search labels");
  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      count += !row.hidden;
    }
    found.textContent = count.toLocaleString("en") + (count === 1 ? " label" : " labels");
  };
  const key = (row, column) => {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent;
    const value = parseFloat(cell.dataset.order ?? cell.textContent.replaceAll(",", ""));
    return Number.isNaN(value) ? -1 : value;
  };
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const first = column === 0 ? "ascending" : "descending";
      const other = column === 0 ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const compare = (a, b) => typeof a === "string" ? a.localeCompare(b) : a - b;
      const sorted = rows.slice().sort((a, b) => sign * compare(key(a, column), key(b, column)));
      body.replaceChildren(...sorted);
    });
  });
  search.addEventListener("input", show);
  pane.append(table);
  box.append(search, found, pane);
  show();
}
"""
