// Shared by all parts of the page: elements, requests, messages.

const $ = (id) => document.getElementById(id);

// An element; children are set as text, so that tags and texts cannot inject markup.
function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && !key.startsWith("aria")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const number = (value) => value.toLocaleString("en");
const percent = (share) => (share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`);
const inPercent = (share) => String(Math.round(1000 * share) / 10); // for people, such as 26.6
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const plural = (n, thing) => `${number(n)} ${thing}${n === 1 ? "" : "s"}`;

// A debounced function; `never()` cancels it.
function later(work, milliseconds) {
  let timer = 0;
  const soon = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
  soon.never = () => clearTimeout(timer);
  return soon;
}

function announce(text) {
  $("spoken").textContent = text;
}

// -- requests ------------------------------------------------------------------------------

const state = { model: "", models: [], key: sessionStorage.getItem("ldsm-key") || "" };
const modelFacts = () => state.models.find((one) => one.project_id === state.model);
const threshold = () => modelFacts()?.threshold ?? 0.5; // of the model

class Problem extends Error {
  constructor(message, status, wait = 0) {
    super(message);
    this.status = status;
    this.wait = wait; // seconds before a retry
  }
}

let asking = null; // the dialog for the key, while it is open

// Ask for the key; throws a Problem if the dialog is closed without one.
function askForKey() {
  asking ??= new Promise((done, refuse) => {
    const dialog = $("key-dialog");
    $("key-wrong").hidden = !state.key;
    $("key").value = "";
    dialog.returnValue = "";
    dialog.onclose = () => {
      asking = null;
      state.key = dialog.returnValue === "ok" ? $("key").value.trim() : "";
      sessionStorage.setItem("ldsm-key", state.key);
      if (state.key) done();
      else refuse(new Problem("This service requires an API key.", 401));
    };
    dialog.showModal();
  });
  return asking;
}

// The parsed answer of the service; throws a Problem on failure.
async function ask(path, options = {}) {
  for (;;) {
    const headers = { ...(options.headers || {}), ...(state.key && { "X-API-Key": state.key }) };
    let answer;
    try {
      answer = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      offline(true);
      throw new Problem("The service is not responding.", 0, 2);
    }
    offline(false);
    if (answer.status === 401) {
      await askForKey();
      continue;
    }
    if (answer.ok) return answer.status === 204 ? null : answer.json();
    const facts = await answer.json().catch(() => ({}));
    const wait = Number(answer.headers.get("Retry-After")) || 0;
    throw new Problem(facts.title || facts.error || `Error ${answer.status}.`, answer.status, wait);
  }
}

const project = (rest) => `v1/projects/${encodeURIComponent(state.model)}${rest && "/"}${rest}`;
// A list of values is a field that is repeated.
const asForm = (values, signal) => ({ method: "POST", signal, body: new URLSearchParams(
  Object.entries(values).flatMap(([name, value]) => [value].flat().map((one) => [name, one]))) });
const asJson = (value, signal) => ({
  method: "POST",
  body: JSON.stringify(value),
  headers: { "Content-Type": "application/json" },
  signal,
});

// -- messages ------------------------------------------------------------------------------

let watching = 0;

function offline(is) {
  if (!is && watching) {
    clearInterval(watching);
    watching = 0;
    banner("");
    document.dispatchEvent(new Event("back-online"));
  } else if (is && !watching) {
    banner("The service is not responding. Retrying …");
    watching = setInterval(() => ask("v2/health/live").catch(() => {}), 2000);
  }
}

function banner(text, again = null) {
  const box = $("banner");
  box.replaceChildren(text);
  if (again) box.append(" ", h("button", { onclick: () => (banner(""), again()) }, "Try again"));
  box.hidden = !text;
}

// Show an error, unless its request was cancelled or the banner already shows it.
function showError(error, again = null) {
  if (error.name === "AbortError" || watching) return;
  banner(error.message, again);
}
