/** The live tail of a channel: publications, joins and leaves as they arrive. */

import { Client } from "../realtime/client.js";
import { copyFrom } from "./clipboard.js";
import { Held } from "./held.js";
import { Publishers } from "./publishers.js";
import { Painter, entryOf, lineOf, searchable } from "./tail_entry.js";

/** Limit of the waiting entries, and of the shown ones. */
const LIMIT = 500;
/** The shown entries, and a note about dropped ones. */
const SHOWN = LIMIT + 1;

/** Milliseconds between checks that the service answers, while the tail is connected. */
const CHECK_INTERVAL = 3000;

/** Statuses after which there is no token, and a retry is useless. */
const REFUSED = [401, 403, 404];

/**
 * Fetches an observer token; null if the operator may not have one, or is signed out. Throws other
 * errors, after which the client tries again.
 */
async function fetchToken(url) {
  const response = await fetch(url, { redirect: "manual" });
  // a redirect leads to the sign-in
  if (response.type === "opaqueredirect" || REFUSED.includes(response.status)) return null;
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()).token;
}

export class Tail {
  #texts;
  #language = document.documentElement.lang || undefined;
  #list = document.getElementById("tail-list");
  #empty = document.getElementById("tail-empty");
  #status = document.getElementById("tail-state");
  #pauseButton = document.getElementById("tail-pause");
  #connectButton = document.getElementById("tail-connect");
  #filter = document.getElementById("tail-filter");
  #count = document.getElementById("tail-count");
  #heldCount = document.getElementById("tail-held");
  #painter;
  #client;
  #held = new Held(LIMIT);
  #entries = new WeakMap(); // of the items in the list
  #publishers;
  #paused = false;
  #scheduled = false;
  #refused = false;
  #away = false;
  #lostAt = 0;

  /** @param {HTMLElement} section with texts and URLs in its data attributes */
  constructor(section) {
    this.#texts = section.dataset;
    this.#painter = new Painter(document.getElementById("tail-entry"), this.#texts);
    this.#publishers = new Publishers(this.#texts.publishersUrl, (entry, name) => this.#name(entry, name));
    const getToken = async () => {
      const token = await fetchToken(this.#texts.tokenUrl);
      this.#refused = token === null;
      return token;
    };
    this.#client = new Client(this.#texts.endpoint, { getToken, maxDelay: 2000 });
    this.#listen();
    this.#pauseButton.addEventListener("click", () => this.#pause(!this.#paused));
    this.#connectButton.addEventListener("click", () => this.#client.connect());
    this.#filter.addEventListener("input", () => this.#refilter());
    document.getElementById("tail-clear").addEventListener("click", () => this.#clear());
    const copy = document.getElementById("tail-copy");
    copy.addEventListener("click", () => this.#copy(copy));
  }

  start() {
    this.#updateCounts();
    this.#client.connect();
    setTimeout(() => this.#check(), CHECK_INTERVAL);
  }

  /** Checks the service: the connection stays open while the engine is away, and nothing arrives. */
  async #check() {
    if (!document.hidden && this.#client.state === "connected") {
      try {
        const response = await fetch(this.#texts.serviceUrl, { redirect: "error" });
        if (response.ok) this.#away = !(await response.json()).available;
      } catch {
        // signed out, or the server is away, which the connection shows
      }
      if (this.#client.state === "connected") this.#sayLive();
    }
    setTimeout(() => this.#check(), CHECK_INTERVAL);
  }

  // events of the client

  #listen() {
    const client = this.#client;
    client.on("state", (context) => this.#showState(context));
    client.on("disconnect", () => (this.#lostAt = performance.now()));
    client.on("subscribed", ({ isResubscribe, recovered }) => {
      if (!isResubscribe) return;
      const kind = recovered ? "recovered" : "gap";
      const seconds = (performance.now() - this.#lostAt) / 1000;
      const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
      const time = seconds.toLocaleString(this.#language, digits);
      const text = recovered ? this.#texts.textRecovered : this.#texts.textGap;
      this.#add(entryOf(kind, { note: text.replace("%s", time) }));
    });
    client.on("publication", (publication) => this.#add(entryOf("publish", publication)));
    client.on("join", (member) => this.#add(entryOf("join", member)));
    client.on("leave", (member) => this.#add(entryOf("leave", member)));
  }

  #showState({ state, reconnecting, reason }) {
    const texts = this.#texts;
    const stopped = state === "disconnected" && !reconnecting;
    this.#connectButton.hidden = !stopped;
    if (state === "connected") this.#sayLive();
    else if (stopped && this.#refused) this.#say("stopped", texts.textSignedOut);
    else if (stopped) this.#say("stopped", texts.textStopped.replace("%s", reason));
    else if (state === "disconnected") this.#say("waiting", texts.textWaiting.replace("%s", reason));
    else if (!reconnecting) this.#say("connecting", texts.textConnecting);
  }

  #sayLive() {
    if (this.#away) this.#say("waiting", this.#texts.textAway);
    else if (this.#paused) this.#say("paused", this.#texts.textPaused);
    else this.#say("live", this.#texts.textLive);
  }

  #say(state, text) {
    this.#status.dataset.state = state;
    if (this.#status.textContent !== text) this.#status.textContent = text;
  }

  // display

  #add(entry) {
    this.#held.add(entry);
    if (this.#paused) this.#updateCounts();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      requestAnimationFrame(() => {
        this.#scheduled = false;
        if (!this.#paused) this.#flush();
      });
    }
  }

  /** Shows the waiting entries, newest first. */
  #flush() {
    const { dropped } = this.#held;
    const entries = this.#held.take();
    if (dropped) {
      const note = this.#texts.textDropped.replace("%s", this.#number(dropped));
      entries.unshift(entryOf("dropped", { note }));
    }
    const items = entries.reverse().map((entry) => {
      const item = this.#painter.draw(entry);
      this.#entries.set(item, entry);
      item.hidden = !this.#matches(entry);
      if (entry.kind === "publish" && !entry.client && entry.offset) this.#publishers.ask(entry);
      return item;
    });
    this.#list.prepend(...items);
    while (this.#list.childElementCount > SHOWN) this.#list.lastElementChild.remove();
    this.#updateCounts();
  }

  /** Shows which operator published an entry, if it is still in the list. */
  #name(entry, name) {
    entry.operator = name;
    const item = [...this.#list.children].find((each) => this.#entries.get(each) === entry);
    if (!item) return;
    this.#painter.name(item, name);
    item.hidden = !this.#matches(entry);
    this.#updateCounts();
  }

  #pause(paused) {
    this.#paused = paused;
    this.#pauseButton.textContent = paused ? this.#texts.textResume : this.#texts.textPause;
    if (this.#client.state === "connected") this.#sayLive();
    if (!paused) this.#flush();
    this.#updateCounts();
  }

  #clear() {
    this.#held.take();
    this.#list.replaceChildren();
    this.#updateCounts();
  }

  #matches(entry) {
    const text = this.#filter.value.trim().toLowerCase();
    return !text || searchable(entry).includes(text);
  }

  #refilter() {
    for (const item of this.#list.children) item.hidden = !this.#matches(this.#entries.get(item));
    this.#updateCounts();
  }

  #updateCounts() {
    const all = this.#list.childElementCount;
    const shown = this.#list.querySelectorAll(":scope > :not([hidden])").length;
    const texts = this.#texts;
    const counted = this.#filter.value.trim() ? texts.textFiltered : texts.textShown;
    this.#count.textContent = all
      ? counted.replace("%s", this.#number(shown)).replace("%s", this.#number(all))
      : "";
    const { count, dropped } = this.#paused ? this.#held : { count: 0, dropped: 0 };
    this.#empty.hidden = all + count > 0;
    const held = dropped ? texts.textHeldMore : texts.textHeld;
    this.#heldCount.textContent = count
      ? held.replace("%s", this.#number(count)).replace("%s", this.#number(LIMIT))
      : "";
  }

  #number(value) {
    return value.toLocaleString(this.#language);
  }

  /** Copies the shown entries, oldest first, as one line of JSON each. */
  #copy(button) {
    const items = [...this.#list.children].filter((item) => !item.hidden).reverse();
    const lines = items.map((item) => lineOf(this.#entries.get(item)));
    const { textCopied: copied, textNotCopied: failed } = this.#texts;
    const state = document.getElementById("copy-state");
    copyFrom(button, lines.join("\n"), { copied, failed, state });
  }
}
