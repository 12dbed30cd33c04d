// The demo page. Whatever comes from the network enters the page as text, never as markup.

import { Client } from "../realtime/client.js";

const CUT_DELAY = 12_000; // milliseconds to publish with the other client
const LONGEST_LOG = 200;

/* One client of the page, with its state, its log and its buttons. */
class Pane {
  #root;
  #log;
  #entries;
  #user;
  #channel;
  #client;
  #subscription;
  #present = new Map(); // connection ID → client info
  #repeated = new Map(); // text → its line and how often it came since the connection was lost
  #epoch; // of the history that this client has seen
  #countdown;
  #cutTimer;

  /* root: the element with the parts; user: the name that others see beside what it publishes */
  constructor(root, { endpoint, channel, user, token, refreshEndpoint }) {
    this.#root = root;
    this.#log = this.#part("log");
    this.#entries = this.#part("entries");
    this.#user = user;
    this.#channel = channel;

    const getToken = () => fetchToken(refreshEndpoint);
    this.#client = new Client(endpoint, { token, getToken });
    this.#client.on("state", (change) => this.#showState(change));
    this.#client.on("error", (error) => {
      this.#note(`Connecting failed: ${error.message} (error ${error.code}).`);
    });

    this.#subscription = this.#client.subscribe(channel);
    this.#subscription.on("subscribed", (context) => this.#subscribed(context));
    this.#subscription.on("unsubscribed", () => this.#unsubscribed());
    this.#subscription.on("publication", (received) => this.#publication(received));
    this.#subscription.on("join", ({ info }) => this.#join(info));
    this.#subscription.on("leave", ({ info }) => this.#leave(info));
    this.#subscription.on("error", (error) => {
      this.#note(`Subscribing to ${channel} failed: ${error.message} (error ${error.code}).`);
    });

    this.#part("publish").addEventListener("submit", (event) => this.#publish(event));
    this.#part("cut").addEventListener("click", () => this.#cutOrReturn());
    this.#part("history").addEventListener("click", () => this.#showHistory());
    this.#client.connect();
  }

  // what the client tells

  #showState({ state, reason, delay }) {
    const cut = reason === "client"; // only the button calls disconnect()
    const waiting = cut ? CUT_DELAY : delay;
    const name = state === "disconnected" ? (waiting === null ? "closed" : "waiting") : state;
    const text = {
      connecting: "Connecting",
      connected: "Connected",
      disconnected: cut ? "Connection cut" : `Disconnected: ${reason}`,
    }[state];
    this.#part("status").dataset.state = name;
    this.#part("state").textContent = text;
    this.#part("client").textContent = this.#client.id || "–";
    this.#part("publish").querySelector("button").disabled = name !== "connected";
    this.#part("history").disabled = name !== "connected";
    const button = this.#part("cut");
    button.disabled = name === "connecting";
    button.textContent = name === "connected" ? "Cut the connection" : "Connect now";
    this.#count(name === "waiting" ? waiting : 0);
    if (name !== "connected") this.#showPresence([]);
    if (state === "connected") this.#repeated.clear();
    if (state === "disconnected") this.#note(`${text}.`);
  }

  async #subscribed({ isResubscribe, recovered, publications }) {
    const { position } = this.#subscription;
    const isNewHistory = this.#epoch !== undefined && this.#epoch !== position?.epoch;
    this.#epoch = position?.epoch;
    if (isResubscribe) {
      const missed = publications.length;
      const text = recovered
        ? `Recovered: ${missed} missed ${missed === 1 ? "message" : "messages"}`
        : isNewHistory
          ? "Not recovered: the server has begun a new history, and what the old one had is lost"
          : "Not recovered: history no longer holds everything that was missed";
      this.#part("recovery").textContent = recovered
        ? `recovered, ${missed} missed`
        : "not recovered";
      this.#note(`Reconnected. ${text}.`);
    }
    this.#showPosition();
    if (!isResubscribe) await this.#showKept(position?.offset ?? Infinity);
    try {
      this.#showPresence(Object.values(await this.#subscription.presence()));
    } catch (error) {
      this.#note(`Presence: ${error.message}`);
    }
  }

  #publication(received) {
    const badge = received.recovered && "recovered";
    this.#append(this.#item(received, { badge, time: new Date() }));
    this.#showPosition();
  }

  #join(info) {
    if (info.client !== this.#client.id) this.#note(`${nameOf(info)} joined.`);
    this.#showPresence([...this.#present.values(), info]);
  }

  #leave(info) {
    if (info.client !== this.#client.id) this.#note(`${nameOf(info)} left.`);
    const left = ({ client }) => client === info.client;
    this.#showPresence([...this.#present.values()].filter((other) => !left(other)));
  }

  #unsubscribed() {
    if (this.#client.state !== "connected") return; // the client has disconnected
    this.#note("The server unsubscribed this client. Reload the page to come back.");
    this.#showPresence([]);
  }

  // what the visitor does

  async #publish(event) {
    event.preventDefault();
    const input = event.target.elements.text;
    const text = input.value;
    let problem = "";
    try {
      await this.#client.publish(this.#channel, { text });
      if (input.value === text) input.value = "";
    } catch (error) {
      problem = `Not published: ${error.message}.`;
    }
    this.#part("form-error").textContent = problem;
  }

  #cutOrReturn() {
    clearTimeout(this.#cutTimer);
    if (this.#client.state === "connected") {
      this.#client.disconnect();
      this.#cutTimer = setTimeout(() => this.#client.connect(), CUT_DELAY);
    } else {
      this.#client.connect();
    }
  }

  async #showHistory() {
    try {
      const kept = await this.#client.history(this.#channel);
      byId("history-title").textContent = `History: ${kept.length} kept`;
      byId("history-list").replaceChildren(...kept.map((each) => this.#item(each)));
      byId("history-dialog").showModal();
    } catch (error) {
      this.#note(`History: ${error.message}.`);
    }
  }

  // what is shown

  /* What the channel kept before this page came, up to the offset from which the page is live. */
  async #showKept(offset) {
    try {
      const history = await this.#subscription.history();
      const kept = history.filter((each) => !(each.offset > offset)).slice(-LONGEST_LOG / 2);
      if (kept.length > 0) {
        const end = element("li", "live", "Live from here");
        this.#entries.prepend(...kept.map((each) => this.#item(each)), end);
        this.#log.scrollTop = this.#log.scrollHeight;
      }
    } catch (error) {
      this.#note(`History: ${error.message}.`);
    }
    this.#log.ariaLive = "polite";
  }

  #item({ data, info, offset }, { badge, time } = {}) {
    const item = element("li", "publication");
    if (info && nameOf(info) === this.#user) item.classList.add("own");
    const head = element("div", "meta");
    head.append(element("bdi", "who", info ? nameOf(info) : "Server"));
    if (time) head.append(element("time", "", time.toLocaleTimeString()));
    if (offset) head.append(element("span", "offset", `#${offset}`));
    if (badge) head.append(element("span", "badge", badge));
    const isText = typeof data?.text === "string";
    const content = isText ? data.text : JSON.stringify(data);
    const text = element("p", isText ? "text" : "text json", content);
    text.dir = isText ? "auto" : "ltr";
    item.append(head, text);
    return item;
  }

  /* While the connection is lost, a line that comes again is counted, and not repeated. */
  #note(text) {
    const known = this.#repeated.get(text);
    if (known) {
      known.count += 1;
      known.line.textContent = `${text} (${known.count} times)`;
      return;
    }
    const line = element("li", "note", text);
    line.dir = "auto";
    if (this.#client.state !== "connected") this.#repeated.set(text, { line, count: 1 });
    this.#append(line);
  }

  #append(item) {
    const log = this.#log;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    this.#entries.append(item);
    while (this.#entries.children.length > LONGEST_LOG) this.#entries.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  #showPresence(infos) {
    this.#present = new Map(infos.map((info) => [info.client, info]));
    const sorted = [...this.#present.values()].sort(
      (a, b) => nameOf(a).localeCompare(nameOf(b)) || a.client.localeCompare(b.client),
    );
    this.#part("count").textContent = String(sorted.length);
    this.#part("present").replaceChildren(
      ...sorted.map((info) => {
        const item = element("li", "");
        item.append(element("bdi", "", nameOf(info)));
        item.dataset.client = info.client;
        if (info.client === this.#client.id) item.append(element("span", "badge", "this client"));
        return item;
      }),
    );
  }

  #showPosition() {
    const { position } = this.#subscription;
    const { offset, epoch } = position ?? {};
    this.#part("position").textContent = offset ? `up to #${offset}` : position ? "nothing yet" : "–";
    this.#part("position").title = position ? `of the history with the epoch ${epoch}` : "";
  }

  #count(delay) {
    clearInterval(this.#countdown);
    const end = Date.now() + delay;
    const show = () => {
      const seconds = Math.ceil((end - Date.now()) / 1000);
      this.#part("countdown").textContent = seconds > 0 ? `back in ${seconds} s` : "";
    };
    show();
    if (delay) this.#countdown = setInterval(show, 250);
  }

  #part(name) {
    return this.#root.querySelector(`.${name}`);
  }
}

const { other, ...own } = JSON.parse(byId("realtime-config").textContent);
new Pane(byId("own"), own);
new Pane(byId("other"), { ...own, ...other });

byId("copy-button").addEventListener("click", copyLine);
byId("history-close").addEventListener("click", () => byId("history-dialog").close());

async function fetchToken(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return (await response.json()).token;
}

async function copyLine() {
  const button = byId("copy-button");
  try {
    await navigator.clipboard.writeText(byId("line").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1_500);
  } catch {
    // without TLS there is no clipboard, and a browser may refuse: the line is selected to be copied
    getSelection().selectAllChildren(byId("line"));
  }
}

function nameOf(info) {
  const name = info.connInfo?.name;
  return typeof name === "string" ? name : info.user || "Anonymous";
}

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function byId(id) {
  return document.getElementById(id);
}
