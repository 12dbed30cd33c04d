/** Entries of the live tail, and their display. */

const ONE_LINE = 80;
const UNFOLDED = 600;
const UNFOLDED_LINES = 12;
const PREVIEW = 120;
const LONGEST = 20_000; // characters; 500 such entries take some 20 MB

/** @param {string} kind publish, join, leave, recovered, gap or dropped */
export function entryOf(kind, { info, data, offset, uid, tags = {}, recovered = false, note = "" } = {}) {
  const text = kind === "publish" ? onOneLine(data) : "";
  return {
    kind,
    at: new Date(),
    offset,
    uid,
    tags,
    user: info?.user,
    client: info?.client,
    operator: undefined, // who published it in the panel, as soon as that is known
    late: recovered,
    note,
    text: text.slice(0, LONGEST),
    isCut: text.length > LONGEST,
    length: text.length,
  };
}

/** Lays JSON out like the server does in the history: a space after each colon and comma. */
function onOneLine(value) {
  // line breaks in strings are escaped, so these are between tokens
  return JSON.stringify(value, null, 1)
    .replace(/([[{])\n */g, "$1")
    .replace(/\n *([\]}])/g, "$1")
    .replace(/\n */g, " ");
}

/** Returns one line of JSON for the clipboard. */
export function lineOf({ kind, at, offset, uid, tags, user, client, operator, note, text, isCut }) {
  const given = Object.keys(tags).length ? tags : undefined;
  const head = JSON.stringify({ time: at, kind, offset, uid, tags: given, user, client, operator, note: note || undefined });
  if (!text) return head;
  return `${head.slice(0, -1)},"data":${isCut ? JSON.stringify(text) : text}}`;
}

/** Returns the text that the filter searches, in lower case. */
export function searchable({ kind, offset, uid, tags, user, client, operator, note, text }) {
  const named = Object.entries(tags).map((tag) => tag.join("="));
  return [kind, offset, uid, ...named, user, client, operator, note, text].join(" ").toLowerCase();
}

/** Makes list items of entries, from the template of the page. */
export class Painter {
  #template;
  #texts;
  #language = document.documentElement.lang;
  #time = new Intl.DateTimeFormat(this.#language || undefined, {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
  });

  /** @param {HTMLTemplateElement} template @param {DOMStringMap} texts of the page */
  constructor(template, texts) {
    this.#template = template;
    this.#texts = texts;
  }

  draw(entry) {
    const item = this.#template.content.firstElementChild.cloneNode(true);
    item.dataset.kind = entry.kind;
    const time = item.querySelector("time");
    time.dateTime = entry.at.toISOString();
    time.textContent = this.#time.format(entry.at);
    const copy = item.querySelector("[data-copy]");
    if (entry.kind !== "publish") copy.remove();
    if (entry.note) {
      item.querySelector(".panel-entry-head").append(entry.note);
      return item;
    }
    if (entry.offset !== undefined) show(item, "offset", `#${entry.offset}`);
    if (entry.kind !== "publish") show(item, "kind", this.#texts[`text${capital(entry.kind)}`]);
    if (entry.client !== undefined) {
      show(item, "user").append(this.#user(entry.user));
      show(item, "client", entry.client);
    } else if (entry.kind === "publish") {
      show(item, "server");
    }
    if (entry.late) show(item, "late");
    const tag = item.querySelector('[data-part="tag"]');
    tag.after(...Object.entries(entry.tags).map(([name, value]) => this.#tag(tag, name, value)));
    tag.remove();
    if (entry.kind === "publish") {
      const which = entry.offset === undefined ? time.textContent : `#${entry.offset}`;
      copy.setAttribute("aria-label", this.#texts.textCopy.replace("%s", which));
      item.append(this.#json(entry));
    }
    return item;
  }

  /** Shows on an item which operator published it. */
  name(item, name) {
    item.querySelector('[data-part="server"]').hidden = true;
    show(item, "is-operator");
    const link = element("a");
    link.href = `${this.#texts.logUrl}&operator=${encodeURIComponent(name)}`;
    link.append(element("bdi", "panel-name", name));
    show(item, "operator").append(link);
  }

  #tag(template, name, value) {
    const tag = template.cloneNode();
    tag.hidden = false;
    tag.append(element("bdi", "", name), "=", element("bdi", "", value));
    return tag;
  }

  #user(user) {
    if (!user) return element("span", "quiet", this.#texts.textAnonymous);
    const link = element("a");
    link.href = `${this.#texts.userUrl}?user=${encodeURIComponent(user)}`;
    link.append(element("bdi", "panel-name", user));
    return link;
  }

  #json({ text, isCut, length }) {
    if (text.length <= ONE_LINE) return block(text);
    const pretty = isCut ? text : JSON.stringify(JSON.parse(text), null, 2).slice(0, LONGEST);
    const lines = pretty.split("\n", UNFOLDED_LINES + 1).length;
    if (pretty.length <= UNFOLDED && lines <= UNFOLDED_LINES) return block(pretty);
    const preview = element("code", "", text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text);
    preview.dir = "ltr";
    const summary = element("summary");
    const unit = this.#texts.textCharacters;
    const count = length.toLocaleString(this.#language || undefined);
    const size = element("small", "quiet", unit.replace("%s", count));
    summary.append(preview, " ", size);
    const details = element("details", "panel-fold");
    const whole = block(isCut ? `${pretty}…` : pretty);
    whole.tabIndex = 0;
    details.append(summary, whole);
    return details;
  }
}

function show(item, part, text) {
  const found = item.querySelector(`[data-part="${part}"]`);
  found.hidden = false;
  if (text !== undefined) found.textContent = text;
  return found;
}

function block(text) {
  const pre = element("pre", "panel-json");
  pre.dir = "ltr";
  const code = element("code", "", text);
  code.dataset.json = "";
  pre.append(code);
  return pre;
}

function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}
