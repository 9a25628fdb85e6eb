// Which tags may be predicted: only some tags or groups, or all without some.

const filter = {
  only: new Map(), // tags and groups, with their names
  without: new Map(),
  groups: null, // of the model, once they are asked for
};
const MOST_GROUPS = 4; // shown above the tags that are found
const filtering = () => filter.only.size + filter.without.size > 0;

// The fields of a request.
const chosenTags = () => Object.fromEntries(["only", "without"]
  .filter((kind) => filter[kind].size).map((kind) => [kind, [...filter[kind].keys()]]));

async function findToFilter(wanted, signal) {
  const model = state.model;
  const groups = filter.groups ?? (await ask(project("groups"), { signal })).groups;
  const found = await findLabels(wanted, signal);
  if (model === state.model) filter.groups = groups;
  const matching = groups.filter((one) => one.group.toLowerCase().includes(wanted.toLowerCase()))
    .slice(0, MOST_GROUPS).map((one) => ({
      uri: one.group, label: one.group, note: `group of ${plural(one.labels, "tag")}` }));
  return { options: [...matching, ...found.options], total: matching.length + found.total };
}

function changeFilter() {
  showFilter();
  forgetChanges();
  suggest();
  if (job.running || job.answers.length) {
    stopJob();
    forgetAnswers();
  }
  showJob();
}

function showFilter() {
  document.body.classList.toggle("filtering", filtering());
  const counts = ["only", "without"].filter((kind) => filter[kind].size)
    .map((kind) => `${kind} ${number(filter[kind].size)}`);
  $("filter-note").textContent = counts.join(", ");
  $("filter-active").hidden = !filtering();
  for (const kind of ["only", "without"]) {
    $(`${kind}-chosen`).replaceChildren(...[...filter[kind]].map(([uri, label]) => h("li", {},
      h("button", { "aria-label": `Remove ${label} from the filter`, onclick: () => {
        filter[kind].delete(uri);
        changeFilter();
        $(kind).focus();
      } }, `${label} ×`))));
  }
}

function clearFilter() {
  filter.only.clear();
  filter.without.clear();
}

// One filter for texts and files, shown in the current view.
function placeFilter(view) {
  $(view === "file" ? "file-filter" : "text-filter").append($("filter"));
}

function startFilter() {
  for (const [kind, other] of [["only", "without"], ["without", "only"]]) {
    makeFinder($(kind), $(`${kind}-found`), findToFilter, (one) => {
      filter[other].delete(one.uri);
      filter[kind].set(one.uri, one.label);
      changeFilter();
    });
  }
  $("filter-clear").addEventListener("click", () => {
    clearFilter();
    changeFilter();
    $("filter").querySelector("summary").focus();
  });
}
