// @ts-check
// Live elements: parts of a page that stay as the server would render them now. The template tag
// {% live %} writes them. No build step, no eval.
//
//   <script type="module" src="{% static 'realtime/live.js' %}"></script>
//
// Publications put, remove and swap HTML; fragments.js says what is taken out of it.
//
//   live ── publications are missing, or a key comes alone ──► loading ── loaded, held ones applied ──► live
//                                                              │    ▲
//                                                              └────┘ failed, or more are missing

import { Client } from "./client.js";
import { OPERATIONS, parsePage, positionIn, show, stateOf, TAG, valuesOf } from "./fragments.js";

/** @typedef {import("./client.js").Publication} Publication
 * @typedef {import("./client.js").Position | undefined} Since */
/** Publications that are kept for elements that come later, and while an element is loaded. */
const LIMIT = 1000;
/** Milliseconds: how long loading may take; delays after failures, which double up to `most`; over
 * how long the pages that got the same key spread their requests. */
const TIMES = { load: 30_000, first: 500, most: 60_000, spread: 1000 };
const OBSERVED = { attributeFilter: ["data-at"], childList: true, characterData: true, subtree: true };
/** @type {typeof HTMLElement} Without one, where a bundler looks at the module under Node. */
const Base = globalThis.HTMLElement ?? class {};

/** @type {Client | undefined} */ let client;

/** Returns the client of all live elements: scripts of the page need no second connection. */
export function liveClient() {
  if (client) return client;
  client = Client.fromPage();
  client.on("state", ({ state, reconnecting, reason }) => {
    // the server gives up on a page that slept while it connected
    const isLost = state === "disconnected" && !reconnecting && reason === "stale";
    if (isLost) setTimeout(() => client?.connect(), TIMES.first);
  });
  client.connect();
  return client;
}

/** A channel: its live elements share a subscription, and the publications that came lately. */
class Source {
  /** @type {Map<string, Source>} by channel */
  static all = new Map();
  /** @type {Set<RealtimeLive>} */ #elements = new Set();
  /** @type {Publication[]} The latest ones, without a gap. */ #latest = [];

  /** @param {RealtimeLive} live @param {any} values channel, and token @param {Since} since */
  constructor(live, { channel, token }, since) {
    Source.all.set(channel, this);
    this.#elements.add(live);
    let asked = false;
    const getToken = async () => {
      const [first] = this.#elements;
      if (asked) await first?.load(); // the page has a new one
      asked = true;
      return first?._token ?? null;
    };
    this.part = liveClient().channel(channel, { ...(since && { since }), ...(token && { getToken }) });
    this.part.on("unsubscribed", (why) => {
      Source.all.delete(channel); // elements that come later try anew
      this.#each((live) => live._tell("error", why));
    });
    this.part.on("publication", (publication) => {
      if (this.#latest.push(publication) > LIMIT) this.#latest.shift();
      this.#each((live) => live._take(publication));
    });
    this.part.on("subscribed", ({ recovered }) => {
      if (!recovered) this.#latest = [];
      this.#each((live) => (live._stale || !recovered) && live.load());
    });
  }

  /** @param {RealtimeLive} live @param {Since} since */
  join(live, since) {
    this.#elements.add(live);
    const { position } = this.part.subscription;
    const missed = this.#latest.filter(({ offset = 0 }) => since && offset > since.offset);
    const isWhole = // offsets have no gaps
      since && since.epoch === position?.epoch && since.offset + missed.length >= position.offset;
    if (isWhole && !live._stale) missed.forEach((publication) => live._take(publication));
    else if (this.part.state === "subscribed") live.load();
    else live._stale = true;
  }

  /** @param {RealtimeLive} live */
  leave(live) {
    this.#elements.delete(live);
    setTimeout(() => { // one that is moved, or swapped for a new one, joins in the same turn
      if (this.#elements.size) return;
      if (Source.all.get(this.part.channel) === this) Source.all.delete(this.part.channel);
      this.part.release();
    });
  }

  /** @param {(live: RealtimeLive) => void} run */
  #each(run) {
    // an error in one of them stops no other
    for (const live of [...this.#elements]) try { run(live); } catch (error) { reportError(error); }
  }
}

export class RealtimeLive extends Base {
  /** @internal Whether to load it once the channel is subscribed. */ _stale = false;
  /** @type {Element | undefined} Holds the position, also for copies of the page. */
  #script;
  /** @type {any} What it holds: channel, offset, epoch, token. */ #values = {};
  #seen = ""; #url = "";
  /** @type {Source | undefined} */ #source;
  /** @type {Publication[] | null} Kept back while it is loaded. */ #held = null;
  /** @type {AbortController | undefined} */ #loading;
  /** Whether the state that is being loaded may be too old. */ #again = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #observer = new MutationObserver(() => this.#check());

  connectedCallback() {
    const join = () => this.isConnected && !this.#source && this.#join();
    if (document.readyState !== "loading") join();
    else document.addEventListener("DOMContentLoaded", join, { once: true });
  }

  disconnectedCallback() {
    this._stale ||= (this.#loading ?? this.#timer) !== undefined;
    this.#loading = void this.#loading?.abort();
    this.#timer = void clearTimeout(this.#timer);
    this.#held = null;
    this.#observer.disconnect();
    this.#source?.leave(this);
    this.#source = undefined;
  }

  #join() {
    this.#read();
    const { channel, offset, epoch } = this.#values;
    if (!channel) throw new Error("<realtime-live> has no channel: write it with {% live %}");
    this.#url = new URL(this.getAttribute("src") ?? "", location.href).href;
    this.#observer.observe(this, OBSERVED);
    const since = Number.isInteger(offset) && epoch ? { offset, epoch } : undefined;
    this.#source = Source.all.get(channel) ?? new Source(this, this.#values, since);
    this.#source.join(this, since);
  }

  #read() {
    this.#script = positionIn(this);
    this.#seen = stateOf(this.#script);
    this.#values = valuesOf(this.#script);
  }

  get _token() { return this.#values.token; }

  /** Another library may have put a newer state here: go on from the position of that. */
  #check() {
    const script = positionIn(this);
    if (!script) this.prepend(this.#script ?? "");
    else if (stateOf(script) !== this.#seen) {
      this.disconnectedCallback();
      this.connectedCallback();
    }
  }

  /** @internal Returns false if a handler prevents it. @type {(name: string, detail: any) => boolean} */
  _tell(name, detail) {
    const about = { bubbles: true, cancelable: true, detail };
    return this.dispatchEvent(new CustomEvent(`realtime:${name}`, about));
  }

  /** @internal @param {Publication} publication */
  _take(publication) {
    const { offset, data } = publication;
    if (offset && offset <= this.#values.offset) return; // the page has it
    if (this.#held) {
      if (this.#held.push(publication) <= LIMIT) return;
      this.#held = []; // a state that is loaded from now on has them
      this.#again = true;
    } else {
      if (offset) this.#moveTo(offset);
      this.#apply(data);
    }
  }

  /** @param {number} offset */
  #moveTo(offset) {
    const { epoch } = this.#source?.part.subscription.position ?? {};
    Object.assign(this.#values, { offset, epoch });
    this.#script = positionIn(this) ?? this.#script;
    this.#script?.setAttribute("data-at", JSON.stringify({ offset, epoch }));
    this.#seen = stateOf(this.#script);
  }

  /** Load it as the server renders it now. */
  async load() {
    this._stale = false;
    this.#timer = void clearTimeout(this.#timer);
    this.#again = true;
    if (this.#loading) return;
    for (let delay = TIMES.first; this.#again; ) {
      this.#again = false;
      this.#held = [];
      const loading = (this.#loading = new AbortController());
      const timer = setTimeout(() => loading.abort(), TIMES.load);
      try {
        const fresh = await this.#fetch(loading.signal);
        if (this.#loading !== loading) return; // the element was removed
        if (this.#again) continue;
        show(this, fresh, { inner: true, morph: delay === TIMES.first }); // Idiomorph may have failed
        this.#read();
      } catch (error) {
        if (this.#loading !== loading) return;
        this._tell("error", error);
        await new Promise((resolve) => setTimeout(resolve, delay * (0.5 + Math.random() / 2)));
        if (this.#loading !== loading) return;
        delay = Math.min(2 * delay, TIMES.most);
        this.#again = true;
      } finally {
        clearTimeout(timer);
      }
    }
    const held = this.#held ?? [];
    this.#loading = undefined;
    this.#held = null;
    this._tell("reset", { channel: this.#values.channel });
    for (const publication of held) this._take(publication);
  }

  /** All pages of the channel have got the same: they do not ask at once. */
  #loadSoon() {
    this.#timer ??= setTimeout(() => this.load(), Math.random() * TIMES.spread);
  }

  /** @param {AbortSignal} signal */
  async #fetch(signal) {
    const response = await fetch(this.#url, { cache: "no-store", signal });
    if (!response.ok) throw new Error(`${this.#url} answered with status ${response.status}`);
    const fresh = parsePage(await response.text(), this.id);
    if (!fresh) throw new Error(`${this.#url} has no element with the ID ${this.id}`);
    return fresh;
  }

  /** @param {any} data of a publication */
  #apply(data) {
    const { op, key } = data ?? {};
    const run = OPERATIONS.get(op);
    const isWhole = op === "swap" ? typeof data.swap === "string" : typeof key === "string";
    if (!run || !isWhole) this._tell("unknown", data);
    else if (this._tell(`before-${op}`, data)) {
      const isKeyAlone = op === "put" && data.html === undefined && data.data === undefined;
      if (isKeyAlone) this.#loadSoon();
      try {
        this._tell(run(this, data) ? op : "unknown", data);
      } catch (error) { // what comes next is shown, and the server renders this one anew
        console.error(`A publication of ${this.#values.channel} cannot be shown:`, error);
        this._tell("error", error);
        this.#loadSoon();
      }
    }
  }
}

if (globalThis.customElements && !customElements.get(TAG)) customElements.define(TAG, RealtimeLive);
