/**
 * The palette "Go to": a field that finds pages, channels in use, options, and any user.
 *
 * A combobox: the focus stays in the field, and one entry is marked. Every entry is a link. Each
 * text is asked for once, after a pause; the answer to an earlier text is ignored.
 */

const PAUSE = 150; // milliseconds without typing before a request
const NOTHING = { channels: [], options: [], missing: [] };

const byId = (id) => document.getElementById(id);
const opener = byId("palette-opener");
const dialog = byId("palette");
const field = byId("palette-field");
const list = byId("palette-list");
const said = byId("palette-said");
const texts = dialog.dataset;
const isApple = /Mac|iP(?:hone|ad|od)/.test(navigator.platform);

let found = NOTHING;
let isAsking = false;
let asking = new AbortController();
let timer = 0;
let marked = 0; // index of an entry
let isMoved = false; // whether the operator chose the marked entry

const typed = () => field.value.trim();
const contains = (name, text) => name.toLowerCase().includes(text.toLowerCase());

// entries

/** The pages of the tabs: those that this operator may open. */
function pages(text) {
  const begins = (page) => page.name.toLowerCase().startsWith(text.toLowerCase());
  return [...document.querySelectorAll(".panel-tabs a")]
    .map((tab) => ({ name: tab.textContent.trim(), url: tab.href, kind: texts.textPage }))
    .filter((page) => contains(page.name, text))
    .sort((a, b) => Number(begins(b)) - Number(begins(a)));
}

function entries() {
  const text = typed();
  if (text === "") return pages("");
  const user = new URLSearchParams({ user: text });
  return [
    ...pages(text),
    ...(found.channels ?? []).map((channel) => ({ ...channel, kind: texts.textChannel })),
    ...found.options.map((option) => ({ ...option, kind: texts.textOption })),
    { name: text, url: `${texts.user}?${user}`, phrase: texts.textUser },
    { name: text, url: `${texts.why}?${user}`, phrase: texts.textWhy },
  ];
}

function linkTo(entry, index) {
  const link = document.createElement("a");
  link.id = `palette-entry-${index}`;
  link.href = entry.url;
  link.role = "option";
  link.tabIndex = -1; // the focus stays in the field
  link.draggable = false;
  const name = document.createElement("bdi");
  name.className = "panel-name";
  name.textContent = entry.name;
  const [before, after] = (entry.phrase ?? "%s").split("%s");
  const words = document.createElement("span");
  words.append(before, name, after);
  link.append(words);
  if (entry.kind !== undefined) {
    const kind = document.createElement("small");
    kind.textContent = entry.kind;
    link.append(" ", kind);
  }
  return link;
}

function show() {
  const before = isMoved ? list.children[marked]?.href : undefined;
  const links = entries().map(linkTo);
  list.replaceChildren(...links);
  isMoved = before !== undefined && links.some((link) => link.href === before);
  mark(isMoved ? links.findIndex((link) => link.href === before) : 0);
  if (isAsking) return; // screen readers hear how it ends
  const parts = [texts.textCount.replace("%s", () => links.length)];
  if (found.channels === null) parts.push(texts.textUnknown);
  if (found.missing.length > 0) {
    parts.push(texts.textMissing.replace("%s", () => found.missing.join(", ")));
  }
  said.textContent = parts.join(". ").replaceAll("..", ".");
}

function mark(index) {
  marked = index;
  for (const [i, link] of [...list.children].entries()) link.ariaSelected = String(i === index);
  const link = list.children[index];
  if (link === undefined) return;
  field.setAttribute("aria-activedescendant", link.id);
  link.scrollIntoView({ block: "nearest" });
}

// asking

/** Drops what does not fit the text, and asks when the operator stops typing. */
function type() {
  clearTimeout(timer);
  asking.abort();
  const text = typed();
  const fits = ({ name }) => text !== "" && contains(name, text);
  found = {
    channels: (found.channels ?? []).filter(fits),
    options: found.options.filter(fits),
    missing: [],
  };
  isMoved = false;
  isAsking = text !== "";
  show();
  if (isAsking) timer = setTimeout(ask, PAUSE);
}

async function ask() {
  asking = new AbortController();
  const { signal } = asking;
  let answer;
  try {
    const query = new URLSearchParams({ q: typed() });
    const response = await fetch(`${texts.find}?${query}`, { redirect: "error", signal });
    if (!response.ok) throw new Error(`status ${response.status}`);
    answer = await response.json();
  } catch {
    answer = { ...NOTHING, channels: null };
  }
  if (signal.aborted) return; // a later text is asked for, or the dialog was closed
  isAsking = false;
  found = answer;
  show();
}

// opening and closing

function open() {
  field.value = "";
  dialog.showModal();
  field.focus();
  type();
}

/** Whether a key is the shortcut. On Apple's keyboards, Ctrl+K cuts a line in every field. */
function isShortcut(event) {
  const { ctrlKey, metaKey, shiftKey, altKey, key, code } = event;
  if (shiftKey || altKey || ctrlKey === isApple || metaKey !== isApple) return false;
  // other alphabets have another letter on this key
  return key.toLowerCase() === "k" || (code === "KeyK" && !/^[a-z]$/i.test(key));
}

addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented || !isShortcut(event)) return;
  const current = document.querySelector("dialog[open]");
  if (current !== null && current !== dialog) return; // a question has to be answered first
  event.preventDefault();
  if (current === dialog) field.select();
  else open();
});

opener.addEventListener("click", open);
byId("palette-closer").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // beside it
});
dialog.addEventListener("close", () => {
  clearTimeout(timer);
  asking.abort();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) dialog.close(); // a page from the back-forward cache
});

field.addEventListener("input", type);
field.addEventListener("keydown", (event) => {
  if (event.isComposing || event.altKey || event.shiftKey) return;
  const last = list.children.length - 1;
  if (event.key === "Enter") {
    event.preventDefault();
    const link = list.children[marked];
    if (link === undefined) return;
    if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
    else link.click();
    return;
  }
  if (event.ctrlKey || event.metaKey) return;
  const to = {
    ArrowDown: marked === last ? 0 : marked + 1,
    ArrowUp: marked === 0 ? last : marked - 1,
    Home: 0,
    End: last,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  isMoved = true;
  mark(to);
});

list.addEventListener("mousedown", (event) => {
  if (event.button === 0) event.preventDefault(); // the focus stays in the field
});
list.addEventListener("click", (event) => {
  // the link may be to a place on this page
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) dialog.close();
});

if (isApple) {
  opener.title = "⌘K";
  opener.setAttribute("aria-keyshortcuts", "Meta+K");
}
opener.hidden = false;
