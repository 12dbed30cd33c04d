/* The console: runs commands without leaving the page, and keeps the last ones in this tab. */

import { copyFrom } from "./clipboard.js";
import { Commands } from "./commands.js";
import { timeOf } from "./times.js";

const form = document.getElementById("console-form");
const method = form.elements.method;
const params = form.elements.params;
const button = form.querySelector("[type=submit]");
const answer = document.getElementById("answer");
const state = document.getElementById("console-state");
const section = document.getElementById("history");
const list = section.querySelector("ol");
const dialog = document.getElementById("ask");
const commands = new Commands(sessionStorage, `realtime-console:${form.dataset.history}`);

/* Characters of a request that the page shows. */
const LONGEST_REQUEST = 20000;

/* Field, and what is said about it. */
const HELP = { method: "console-meaning", params: "console-keys" };

const examples = new Set([...method.options].map((option) => option.dataset.example));

function describe() {
  document.getElementById("console-meaning").textContent =
    method.selectedOptions[0]?.dataset.meaning ?? "";
}

/* Another method's example is of no use; what the operator typed is left alone. */
function chooseMethod() {
  describe();
  if (params.value.trim() === "" || examples.has(params.value)) {
    params.value = method.selectedOptions[0].dataset.example;
  }
}

function showErrors(errors) {
  for (const [name, help] of Object.entries(HELP)) {
    const row = form.querySelector(`.field-${name}`);
    const field = form.elements[name];
    row.classList.toggle("errors", name in errors);
    row.querySelector("[role=alert]")?.remove();
    row.querySelector(".errorlist")?.remove(); // of a page that came with it
    field.removeAttribute("aria-invalid");
    field.setAttribute("aria-describedby", help);
    if (name in errors) {
      const problems = document.createElement("ul");
      problems.id = `${field.id}_error`; // as in Django
      problems.className = "errorlist";
      const alert = document.createElement("div"); // a list with this role is none
      alert.setAttribute("role", "alert");
      alert.append(problems);
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", `${problems.id} ${help}`);
      problems.append(Object.assign(document.createElement("li"), { textContent: errors[name] }));
      row.prepend(alert);
    }
  }
  const [first] = Object.keys(errors);
  if (first) form.elements[first]?.focus();
}

/* What changes something is asked about; what reads runs at once. */
function ask() {
  if (button.disabled || dialog.open) return;
  const [option] = method.selectedOptions;
  if (!("asks" in option.dataset)) {
    run();
    return;
  }
  const title = document.getElementById("ask-title");
  title.textContent = title.dataset.text.replace("%s", option.value);
  document.getElementById("ask-meaning").textContent = option.dataset.meaning;
  document.getElementById("ask-params").textContent = params.value;
  dialog.returnValue = "";
  dialog.showModal();
  dialog.querySelector("[data-action=cancel]").focus();
}

/* The key stays out of the page: the line has a word in its place. */
function offerCurl() {
  const copy = document.getElementById("copy-curl");
  if (copy === null || form.dataset.api === "") return;
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const shown = document.getElementById("request").textContent;
  const request = shown.replace(/\n */g, " "); // a line break in JSON is never part of a string
  const url = new URL(form.dataset.api, location.href);
  const key = "Authorization: apikey YOUR_API_KEY";
  const line = `curl -H ${quoted(key)} -d ${quoted(request)} ${quoted(url.href)}`;
  copy.hidden = shown.length >= LONGEST_REQUEST; // only its beginning is here
  copy.addEventListener("click", () => {
    copyFrom(copy, line, { ...copy.dataset, state });
  });
}

async function run() {
  if (button.disabled) return;
  const command = { method: method.value, params: params.value };
  button.disabled = true;
  state.textContent = form.dataset.textRunning;
  let response;
  let reply;
  try {
    response = await fetch(form.dataset.run, {
      method: "POST",
      body: new FormData(form),
      headers: { Accept: "application/json" },
      redirect: "error",
    });
    if (!(response.headers.get("Content-Type") ?? "").includes("json")) {
      state.textContent = form.dataset.textFailed.replace("%s", response.status);
      return;
    }
    reply = await response.json();
  } catch {
    state.textContent = form.dataset.textAway;
    return;
  } finally {
    button.disabled = false;
  }
  state.textContent = "";
  showErrors(reply.errors ?? {});
  if (reply.errors) {
    answer.replaceChildren(); // it would look like the answer to what was refused
    return;
  }
  // rendered and escaped by the server, with the template for pages without JavaScript
  answer.innerHTML = reply.html;
  offerCurl();
  if (!("ok" in reply)) {
    state.textContent = answer.querySelector("h2").textContent;
  } else {
    const outcome = reply.ok ? section.dataset.textOk : section.dataset.textError;
    state.textContent = form.dataset.textAnswered.replace("%s", outcome);
    commands.add({ ...command, ok: reply.ok, at: Date.now() });
    showHistory();
  }
}

function showHistory() {
  list.replaceChildren(...commands.all().map(entry));
  section.hidden = list.children.length === 0;
}

function entry(command) {
  const item = document.createElement("li");
  const choose = document.createElement("button");
  choose.type = "button";
  const name = Object.assign(document.createElement("code"), { textContent: command.method });
  const text = Object.assign(document.createElement("code"), { textContent: command.params });
  text.className = "quiet";
  text.dir = "ltr";
  const outcome = document.createElement("span");
  outcome.className = command.ok ? "panel-outcome" : "panel-outcome panel-failed";
  outcome.textContent = command.ok ? section.dataset.textOk : section.dataset.textError;
  const time = document.createElement("time");
  time.dateTime = new Date(command.at).toISOString();
  time.textContent = timeOf(new Date(command.at));
  choose.append(time, name, text, outcome);
  choose.addEventListener("click", () => {
    method.value = command.method;
    params.value = command.params;
    describe();
    showErrors({});
    params.focus();
    form.scrollIntoView({ block: "nearest" });
  });
  item.append(choose);
  return item;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    ask();
  }
});
dialog.querySelector("[data-action=cancel]").addEventListener("click", () => dialog.close());
dialog.querySelector("[data-action=run]").addEventListener("click", () => dialog.close("yes"));
dialog.addEventListener("close", () => {
  params.focus();
  if (dialog.returnValue === "yes") run();
});
method.addEventListener("change", chooseMethod);
document.getElementById("history-clear").addEventListener("click", () => {
  commands.clear();
  showHistory();
  method.focus();
});
document.getElementById("console-keys").hidden = false;
if (!params.hasAttribute("aria-describedby")) params.setAttribute("aria-describedby", HELP.params);
describe();
offerCurl();
showHistory();
