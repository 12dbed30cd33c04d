/** The publish page: editor, reach, suggestions, drafts, confirmation. */

import { Drafts } from "./drafts.js";
import { JSONEditor } from "./json-editor.js";
import { dateAndTimeOf } from "./times.js";

const PAUSE = 300; // milliseconds without typing before a request

const byId = (id) => document.getElementById(id);
const form = byId("publish-form");
const channels = form.elements.channel;
const editor = new JSONEditor(byId("editor"));

function later(work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, PAUSE);
  };
}

// reach

const section = byId("reach");
let requesting = new AbortController();
let isSending = false;

/** Requests and shows the reach; returns null if it failed or a later request replaced it. */
async function showReach() {
  requesting.abort();
  requesting = new AbortController();
  const { signal } = requesting;
  const body = new FormData();
  body.set("channel", channels.value);
  body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  try {
    const options = { method: "POST", body, redirect: "error", signal };
    const response = await fetch(form.dataset.reach, options);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const answer = await response.json();
    section.innerHTML = answer.html; // rendered and escaped by the server, like the page itself
    reveal();
    showTypes(answer.types);
    showWhetherItGoes();
    say(section.querySelector(".panel-reach-sum, .panel-notice h2, .errorlist")?.textContent ?? "");
    return answer;
  } catch {
    if (signal.aborted) return null;
    section.textContent = section.dataset.textFailed;
    reveal();
    say(section.textContent);
    return null;
  }
}

/** Sets the text for screen readers, in place of the whole list. */
function say(text) {
  const said = text.replace(/\s+/g, " ").replaceAll(" ,", ",").trim();
  if (byId("reach-said").textContent !== said) byId("reach-said").textContent = said;
}

/** Greys the button while nothing would be sent. It still works, and says what is wrong. */
function showWhetherItGoes() {
  const isWrong = !editor.isEmpty && !editor.isValid;
  const isRefused = section.querySelector(".panel-reach-refused, .errorlist") !== null;
  form.querySelector("[type=submit]").ariaDisabled = isWrong || isRefused ? "true" : null;
}

function reveal() {
  section.hidden = byId("reach-title").hidden = false;
}

const types = byId("types");
let shownTypes = "";

/** Shows the declared types of the channels; those that were opened stay open. */
function showTypes(html) {
  if (html === shownTypes) return;
  shownTypes = html;
  types.innerHTML = html; // rendered and escaped by the server
  offerExamples();
}

/** Puts a button below each example. */
function offerExamples() {
  for (const example of types.querySelectorAll("[data-example]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "panel-action";
    button.textContent = types.dataset.text;
    button.addEventListener("click", () => {
      editor.text = example.textContent;
      editor.element.dispatchEvent(new Event("input", { bubbles: true })); // for the draft
      editor.element.focus();
    });
    example.after(button);
  }
}
offerExamples();

const showReachLater = later(() => {
  if (!isSending) showReach(); // or it would abort the request before sending
});
channels.addEventListener("input", showReachLater);
if (channels.value.trim() !== "" && section.hidden) showReach();

// suggestions

const adding = byId("add-channel");
let suggested = [];

async function suggest() {
  const query = new URLSearchParams({ q: adding.value });
  try {
    const response = await fetch(`${form.dataset.channels}?${query}`, { redirect: "error" });
    if (!response.ok) return;
    suggested = (await response.json()).channels;
  } catch {
    return; // the operator can type the name
  }
  byId("known-channels").replaceChildren(
    ...suggested.map((name) => {
      const option = document.createElement("option");
      option.value = name;
      return option;
    }),
  );
}

/** Quotes a name as `channel_names` does; Python counts ASCII separators and U+0085 as spaces. */
function written(name) {
  return /[\s\x1c-\x1f\x85]|^"/.test(name) ? JSON.stringify(name) : name;
}

function add() {
  const name = adding.value.trim();
  adding.value = "";
  adding.focus();
  if (name === "") return;
  const before = channels.value.trimEnd();
  channels.value = before === "" ? written(name) : `${before}\n${written(name)}`;
  channels.dispatchEvent(new Event("input", { bubbles: true }));
}

const suggestLater = later(suggest);
adding.addEventListener("focus", suggest);
adding.addEventListener("input", (event) => {
  const isChosen = !(event instanceof InputEvent) || event.inputType === "insertReplacementText";
  if (isChosen && suggested.includes(adding.value)) add();
  else suggestLater();
});
adding.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault(); // of sending the form
  add();
});
byId("add").querySelector("button").addEventListener("click", add);
byId("add").hidden = false;

// drafts

const drafts = new Drafts(form.dataset.drafts);
const bar = byId("draft");
const address = new URL(location.href);
const sent = address.searchParams.get("sent");
let offered = null;

if (sent !== null) {
  drafts.forget(sent);
  address.searchParams.delete("sent");
  history.replaceState(null, "", address);
}
if (form.elements.draft.value === "") form.elements.draft.value = newName();

function newName() {
  // randomUUID exists on pages with TLS only
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");
}

function save() {
  const draft = { channel: channels.value, data: editor.text };
  drafts.save(form.elements.draft.value, draft);
}

function offer() {
  offered = drafts.newestExcept(form.elements.draft.value);
  bar.hidden = offered === null;
  if (offered === null) return;
  const time = dateAndTimeOf(new Date(offered.savedAt));
  bar.querySelector("span").textContent = bar.dataset.text.replace("%s", time);
}

bar.querySelector("[data-action=restore]").addEventListener("click", () => {
  channels.value = offered.channel;
  editor.text = offered.data;
  form.elements.draft.value = offered.id; // now it is the draft of this form
  bar.hidden = true;
  channels.focus();
  showReach();
});
bar.querySelector("[data-action=discard]").addEventListener("click", () => {
  drafts.forget(offered.id);
  offer();
  if (bar.hidden) channels.focus();
});

const saveLater = later(save);
let isChanged = false;
form.addEventListener("input", (event) => {
  if (event.target === adding) return;
  showWhetherItGoes();
  isChanged = true;
  saveLater();
});
addEventListener("pagehide", () => {
  if (isChanged) save();
});
offer();

// sending

const dialog = byId("confirm");

function send(isConfirmed) {
  if (isConfirmed) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = "confirmed";
    field.value = "1";
    form.append(field);
  }
  save();
  isChanged = false; // the response decides about the draft
  form.submit();
}

function setSending(is) {
  isSending = is;
  for (const button of form.querySelectorAll("[type=submit]")) button.disabled = is;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (event.submitter?.name === "check") {
    showReach();
    return;
  }
  if (isSending) return;
  if (!editor.isEmpty && !editor.isValid) {
    editor.showMistake();
    return;
  }
  setSending(true);
  const answer = channels.value.trim() === "" ? null : await showReach();
  if (answer === null || !answer.confirm) {
    send(false); // without a reach here, the server asks for confirmation on a page
    return;
  }
  const shown = dialog.querySelector(".panel-reach");
  shown.innerHTML = answer.html;
  byId("confirm-data").textContent = editor.text;
  dialog.querySelector("[data-action=publish]").textContent = answer.deed;
  dialog.returnValue = "";
  dialog.showModal();
  dialog.querySelector("[data-action=cancel]").focus();
});

dialog.querySelector("[data-action=cancel]").addEventListener("click", () => dialog.close());
dialog.querySelector("[data-action=publish]").addEventListener("click", () => dialog.close("yes"));
dialog.addEventListener("close", () => {
  if (dialog.returnValue === "yes") {
    send(true);
    return;
  }
  setSending(false);
  form.querySelector("[type=submit]").focus();
});

form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target !== adding) {
    event.preventDefault();
    form.requestSubmit();
  }
});

// a page from the back-forward cache
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  form.querySelector("[name=confirmed]")?.remove();
  setSending(false);
});

// focus the first error of a refused form
const refused = form.querySelector(".errors textarea");
if (refused === editor.element) editor.showMistake();
else refused?.focus();
