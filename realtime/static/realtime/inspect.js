// @ts-check
// An inspector for developers: what a client sends and receives, in a corner of the page.
//
//   import { inspect } from "realtime/inspect";
//   inspect(client);
//
// Or {% realtime_inspector %} in the page, before the scripts that make clients. It has a shadow DOM and a
// constructed style sheet, so it needs nothing of the page's Content-Security-Policy, and the page's
// styles do not reach it. It masks tokens.

/** @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Subscription} Subscription
 * @typedef {{ close: () => void }} Inspector
 *
 * @typedef {object} Entry a message, as the list of frames shows it
 * @property {number} number counted from 1
 * @property {string} time
 * @property {boolean} sent
 * @property {string} summary
 * @property {any} message without secrets
 *
 * @typedef {object} ChannelEntry
 * @property {string} kind
 * @property {string} state
 * @property {string} position
 * @property {number} recovered publications that were missed, and received after a reconnect
 * @property {string} recovery how the last recovery ended
 */

/** Entries that are kept. */
const FRAMES = 200;
const ERRORS = 50;
const CHANNELS = 200;
/** Commands without a reply yet. */
const CALLS = 200;
/** Characters of a message that are shown. */
const LENGTH = 20_000;

const METHODS = [
  "connect",
  "subscribe",
  "unsubscribe",
  "publish",
  "presence",
  "presence_stats",
  "history",
  "ping",
  "send",
  "rpc",
  "refresh",
  "sub_refresh",
];
const PUSHES = ["publication", "join", "leave", "unsubscribe", "message", "subscribe"];
const [CONNECT, SUBSCRIBE, PING] = [0, 1, 7];

const SECRETS =
  /token|passw|passphrase|pwd|secret|authori[sz]ation|cookie|session|credential|jwt|csrf|api.?key|bearer/i;
const JWT = /(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*/g;
const MASK = "***";

const STYLE = `
  :host { all: initial; color-scheme: light dark; position: fixed; inset: auto 12px 12px auto;
    z-index: 2147483647; font: 12px/1.5 system-ui, sans-serif; }
  .panel { box-sizing: border-box; width: min(34rem, calc(100vw - 24px)); max-height: min(70vh, 40rem);
    overflow: auto; border-radius: 8px; color: light-dark(#1b1f24, #e6e8eb);
    background: light-dark(#fff, #1b1f24); border: 1px solid light-dark(#8a929c, #646c76);
    box-shadow: 0 6px 24px rgb(0 0 0 / 0.3); }
  header { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: center;
    padding: 6px 10px; background: inherit; border-bottom: 1px solid light-dark(#d0d5db, #3a424c); }
  header p { flex: 1; margin: 0; min-width: 9rem; overflow-wrap: anywhere; }
  button, summary { font: inherit; color: inherit; cursor: pointer; }
  button { min-height: 24px; padding: 0 8px; border-radius: 4px; background: light-dark(#eef0f3, #2b323a);
    border: 1px solid light-dark(#8a929c, #646c76); }
  :focus-visible { outline: 2px solid light-dark(#0b57d0, #8ab4f8); outline-offset: 1px; }
  section > details { padding: 4px 10px; }
  section > details > summary { font-weight: 600; }
  table { border-collapse: collapse; width: 100%; }
  th, td { text-align: left; vertical-align: top; padding: 2px 8px 2px 0; }
  td:is(:first-child, :nth-child(3)) { overflow-wrap: anywhere; }
  ol { margin: 0; padding: 0; list-style: none; }
  li { border-top: 1px solid light-dark(#e3e6ea, #30373f); overflow-wrap: anywhere; }
  pre { margin: 0 0 4px; white-space: pre-wrap; overflow-wrap: anywhere; font: 11px/1.4 monospace; }
  time { color: light-dark(#59626d, #a3abb5); font-variant-numeric: tabular-nums; }
`;

/** @type {WeakMap<Client, Inspector>} */
const inspectors = new WeakMap();

/**
 * Show an inspector of a client. A client has one at most: a second call returns it.
 *
 * @param {Client} client
 * @returns {Inspector} `close()` removes it, and all its handlers
 */
export function inspect(client) {
  const inspector = inspectors.get(client) ?? new Panel(client, () => inspectors.delete(client));
  inspectors.set(client, inspector);
  return inspector;
}

/** What a client does, told by its frames. */
class Log {
  /** @type {Entry[]} The newest last. */
  frames = [];
  count = 0;
  /** @type {{ time: string, text: string }[]} */
  errors = [];
  /** @type {Map<string, ChannelEntry>} */
  channels = new Map();
  /** The last round trip, and of which command it was. */
  roundTrip = "";
  /** @type {Map<number, { method: number, params: any, at: number }>} by ID of the command */
  #calls = new Map();

  /** @param {string} text @param {boolean} sent */
  add(text, sent) {
    for (const line of text.split("\n")) {
      if (!line) continue;
      let message;
      try {
        message = JSON.parse(line, mask);
      } catch {
        this.#keep(sent, "unreadable", null);
        continue;
      }
      this.#keep(sent, sent ? this.#command(message) : this.#answer(message), message);
    }
  }

  /** @param {string} text */
  fail(text) {
    this.errors.push({ time: now(), text: text.replace(JWT, MASK) });
    if (this.errors.length > ERRORS) this.errors.shift();
  }

  /** No reply comes on a connection that is lost. */
  lose() {
    this.#calls.clear();
    for (const entry of this.channels.values()) {
      if (entry.kind === "server" && entry.state === "subscribed") entry.state = "subscribing";
    }
  }

  clear() {
    this.frames = [];
    this.errors = [];
  }

  /** @param {boolean} sent @param {string} summary @param {any} message */
  #keep(sent, summary, message) {
    this.frames.push({ number: ++this.count, time: now(), sent, summary, message });
    if (this.frames.length > FRAMES) this.frames.shift();
  }

  /** @param {any} command @returns {string} */
  #command({ id, method = CONNECT, params }) {
    if (id) {
      this.#calls.set(id, { method, params, at: performance.now() });
      if (this.#calls.size > CALLS) this.#calls.delete([...this.#calls.keys()][0] ?? 0);
    }
    return words(METHODS[method] ?? method, params?.channel);
  }

  /** @param {any} message @returns {string} */
  #answer({ id, error, result = {} }) {
    if (!id) return this.#push(result);
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (!call) return `reply ${id}`;
    const { method, params, at } = call;
    const took = `${(performance.now() - at).toFixed(1)} ms`;
    const name = METHODS[method] ?? String(method);
    if (method === PING || !this.roundTrip.startsWith("ping")) this.roundTrip = `${name} ${took}`;
    if (error) {
      this.fail(words(name, params?.channel, `error ${error.code}`, error.message));
      return words("reply to", name, params?.channel, `error ${error.code}`, took);
    }
    if (method === SUBSCRIBE) this.#subscribed(params.channel, "client", result, params.recover);
    if (method === CONNECT) {
      for (const [channel, entry] of this.channels) {
        if (entry.kind === "server" && !(channel in (result.subs ?? {}))) this.channels.delete(channel);
      }
      for (const [channel, sub] of Object.entries(result.subs ?? {})) {
        this.#subscribed(channel, "server", sub, params?.subs?.[channel]?.recover);
      }
    }
    return words("reply to", name, params?.channel, took);
  }

  /** @param {any} push @returns {string} */
  #push({ type = 0, channel, data }) {
    const entry = this.channels.get(channel);
    const offset = type === 0 && data ? offsetOf(data) : 0;
    if (entry && offset) entry.position = entry.position.replace(/^\d+/, String(offset));
    if (type === 5) this.#subscribed(channel, "server", data, false);
    if (type === 3) this.channels.delete(channel);
    return words(PUSHES[type] ?? type, channel, offset ? `offset ${offset}` : "");
  }

  /** @param {string} channel @param {string} kind @param {any} result @param {boolean} [asked] */
  #subscribed(channel, kind, result, asked) {
    const before = this.channels.get(channel);
    const came = result.recovered ? (result.publications?.length ?? 0) : 0;
    const outcome = result.recovered ? `last: ${came}` : "last: not possible";
    if (!before && this.channels.size >= CHANNELS) return;
    this.channels.set(channel, {
      kind,
      state: "subscribed",
      position: result.recoverable ? `${offsetOf(result)} of ${result.epoch ?? ""}` : "",
      recovered: (before?.recovered ?? 0) + came,
      recovery: asked ? outcome : (before?.recovery ?? ""),
    });
  }
}

/** The panel in the page. */
class Panel {
  #client;
  #log = new Log();
  #ended = new AbortController();
  #host = document.createElement("div");
  #state = element("span");
  #channels = element("tbody");
  #channelCount = element("span", "0");
  #frames = element("ol");
  #frameCount = element("span", "0");
  #errors = element("ol");
  #errorCount = element("span", "0");
  /** @type {HTMLButtonElement | undefined} */
  #ping;
  /** @type {WeakSet<Subscription>} Whose errors are listened to. */
  #heard = new WeakSet();
  #planned = 0;
  /** The number of the newest message that is shown. */
  #shown = 0;
  #onClose;

  /** @param {Client} client @param {() => void} onClose */
  constructor(client, onClose) {
    this.#client = client;
    this.#onClose = onClose;
    const root = this.#host.attachShadow({ mode: "open" });
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    root.adoptedStyleSheets = [style];
    const panel = this.#make();
    root.append(panel);
    const { signal } = this.#ended;
    panel.addEventListener("keydown", ({ key }) => key === "Escape" && this.close(), { signal });
    client.on("frame", (frame) => this.#frame(frame), { signal });
    client.on("state", () => this.#plan(), { signal });
    client.on("error", (error) => this.#failed(error), { signal });
    client.on(
      "disconnect",
      ({ code, reason }) => {
        this.#log.lose();
        this.#log.fail(words("disconnected", code, reason));
      },
      { signal },
    );
    document.documentElement.append(this.#host);
    if (client.state === "connected") client.ping();
    this.#show();
  }

  /** Element by element: a policy may forbid HTML as text. */
  #make() {
    const ping = this.#button("Ping", () => this.#client.ping());
    this.#ping = ping;
    const clear = this.#button("Clear", () => {
      this.#log.clear();
      this.#frames.replaceChildren();
      this.#plan();
    });
    const close = this.#button("Close", () => this.close());
    const title = element("p", element("strong", "Realtime"), " ", this.#state);
    const heads = ["Channel", "State", "Position", "Recovered"].map((name) => element("th", name));
    const channels = element("table", element("thead", element("tr", ...heads)), this.#channels);
    const panel = element(
      "div",
      element("header", title, ping, clear, close),
      section("Channels", this.#channelCount, channels, true),
      section("Frames", this.#frameCount, this.#frames, true),
      section("Errors", this.#errorCount, this.#errors, false),
    );
    panel.className = "panel";
    panel.role = "region";
    panel.ariaLabel = "Realtime inspector";
    return panel;
  }

  /** @param {string} text @param {() => void} handler */
  #button(text, handler) {
    const button = element("button", text);
    button.type = "button";
    button.addEventListener("click", handler, { signal: this.#ended.signal });
    return button;
  }

  close() {
    this.#ended.abort();
    cancelAnimationFrame(this.#planned);
    this.#host.remove();
    this.#onClose();
  }

  /** @param {{ sent?: string, received?: string }} frame */
  #frame({ sent, received }) {
    this.#log.add(sent ?? received ?? "", sent !== undefined);
    this.#listen();
    this.#plan();
  }

  /** Hear of the errors of subscriptions that are new. */
  #listen() {
    const { signal } = this.#ended;
    for (const subscription of this.#client.subscriptions) {
      if (this.#heard.has(subscription)) continue;
      this.#heard.add(subscription);
      subscription.on("error", (error) => this.#failed(error), { signal });
    }
  }

  /** @param {import("./client.js").RealtimeError} error */
  #failed({ code, message, channel }) {
    if (code < 100) this.#log.fail(words(channel, `error ${code}`, message)); // others are in replies
    this.#plan();
  }

  #plan() {
    cancelAnimationFrame(this.#planned);
    this.#planned = requestAnimationFrame(() => this.#show());
  }

  #show() {
    this.#listen();
    const { state, transport } = this.#client;
    const { roundTrip, frames, errors, count } = this.#log;
    this.#state.textContent = [state, transport, roundTrip].filter(Boolean).join(" · ");
    if (this.#ping) this.#ping.disabled = state !== "connected";
    this.#frameCount.textContent = String(count);
    this.#errorCount.textContent = String(errors.length);
    this.#errors.replaceChildren(
      ...errors.map(({ time, text }) => element("li", element("time", time), ` ${text}`)).reverse(),
    );
    this.#showChannels();
    const list = this.#frames;
    for (const entry of frames) if (entry.number > this.#shown) list.prepend(frameElement(entry));
    this.#shown = count;
    while (list.children.length > FRAMES) list.lastChild?.remove();
  }

  #showChannels() {
    const { channels } = this.#log;
    /** @type {Map<string, ChannelEntry>} */
    const all = new Map([...channels].filter(([, { kind }]) => kind === "server"));
    for (const { channel, state, position } of this.#client.subscriptions.slice(0, CHANNELS)) {
      const { recovered = 0, recovery = "" } = channels.get(channel) ?? {};
      const place = position ? `${position.offset} of ${position.epoch}` : "";
      all.set(channel, { kind: "client", state, position: place, recovered, recovery });
    }
    this.#channelCount.textContent = String(all.size);
    this.#channels.replaceChildren(
      ...[...all].map(([channel, { kind, state, position, recovered, recovery }]) =>
        element(
          "tr",
          element("td", channel),
          element("td", kind === "server" ? `${state} by the server` : state),
          element("td", position),
          element("td", recovery ? `${recovered} (${recovery})` : ""),
        ),
      ),
    );
  }
}

/** @param {Entry} entry */
function frameElement({ time, sent, summary, message }) {
  const details = element(
    "details",
    element("summary", element("time", time), sent ? " ↑ " : " ↓ ", summary),
  );
  details.addEventListener("toggle", () => {
    // written when it is asked for
    if (details.children.length === 1) {
      details.append(element("pre", JSON.stringify(message, null, 2).slice(0, LENGTH)));
    }
  });
  return element("li", details);
}

/** @param {string} name @param {Node} count @param {Node} content @param {boolean} open */
function section(name, count, content, open) {
  const details = element("details", element("summary", `${name} (`, count, ")"), content);
  details.open = open;
  return element("section", details);
}

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {(string | Node)[]} children
 */
function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** Values of secrets become `***`, also tokens within texts. @param {string} key @param {any} value */
function mask(key, value) {
  if (SECRETS.test(key) && value !== null && typeof value !== "boolean") return MASK;
  return typeof value === "string" ? value.replace(JWT, MASK) : value;
}

/** @param {any} result @returns {number} */
function offsetOf({ offset, seq = 0, gen = 0 }) {
  return offset ?? gen * 2 ** 32 + seq;
}

/** @param {any[]} parts */
function words(...parts) {
  return parts.filter((part) => part !== undefined && part !== "").join(" ");
}

function now() {
  return new Date().toTimeString().slice(0, 8);
}

if (globalThis.document?.querySelector("script[data-realtime-inspector]")) {
  // clients call it when they are made
  /** @type {any} */ (globalThis).realtimeInspector = inspect;
}
