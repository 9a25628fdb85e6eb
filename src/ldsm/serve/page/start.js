// Tabs, models and startup.

const TABS = ["text", "file", "labels"];

function selectTab(name) {
  for (const tab of TABS) {
    const chosen = tab === name, button = $(`tab-${tab}`);
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    $(`view-${tab}`).hidden = !chosen;
  }
  placeFilter(name);
  if (name === "labels" && !browser.shown) listLabels();
}

function startTabs() {
  TABS.forEach((tab, i) => {
    const button = $(`tab-${tab}`);
    button.addEventListener("click", () => selectTab(tab));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = TABS[(i + step + TABS.length) % TABS.length];
      selectTab(next);
      $(`tab-${next}`).focus();
      event.preventDefault();
    });
  });
}

function selectModel(name) {
  state.model = name;
  tagging.moved = false;
  $("sure").value = 100 * threshold();
  $("least").value = inPercent(threshold());
  showKnobs();
  browser.shown = 0;
  clearFilter();
  filter.groups = null;
  showFilter();
  stopJob();
  forgetAnswers();
  showJob();
  tagging.rows.clear();
  closeReasons();
  forgetChanges();
  showWelcome();
  suggest();
  if (!$("view-labels").hidden) listLabels();
}

async function start() {
  try {
    state.models = (await ask("v1/projects")).projects;
  } catch (error) {
    document.addEventListener("back-online", start, { once: true });
    showError(error, start);
    return;
  }
  fillSelect($("model"), state.models.map((one) => one.project_id), state.models[0].project_id);
  $("model").disabled = state.models.length === 1;
  selectModel(state.models[0].project_id);
}

startTabs();
startTagging();
startCorrecting();
startFilter();
startFiles();
startReviewing();
startLabels();
$("model").addEventListener("change", (event) => selectModel(event.target.value));
start();
