// The demo page. Whatever comes from the network enters the page as text, never as markup.

import { Client } from "../realtime/client.js";

const CUT_DELAY = 8_000; // milliseconds to publish something elsewhere
const LONGEST_LOG = 200;

const log = byId("log");
const entries = byId("entries");
const { endpoint, token, refreshEndpoint, channel, user } = JSON.parse(
  byId("realtime-config").textContent,
);

const present = new Map(); // connection ID → client info
const repeated = new Map(); // text → its line and how often it came since the connection was lost
let epoch; // of the history that this page has seen
let countdown;
let cutTimer;

const client = new Client(endpoint, { token, getToken });
client.on("state", showState);
client.on("error", (error) => note(`Connecting failed: ${error.message} (error ${error.code}).`));

const subscription = client.subscribe(channel);
subscription.on("subscribed", subscribed);
subscription.on("unsubscribed", unsubscribed);
subscription.on("publication", publication);
subscription.on("join", join);
subscription.on("leave", leave);
subscription.on("error", (error) => {
  note(`Subscribing to ${channel} failed: ${error.message} (error ${error.code}).`);
});

byId("publish-form").addEventListener("submit", publish);
byId("cut-button").addEventListener("click", cutOrReturn);
byId("history-button").addEventListener("click", showHistory);
byId("copy-button").addEventListener("click", copyLine);
byId("history-close").addEventListener("click", () => byId("history-dialog").close());
client.connect();

// what the client tells

function showState({ state, reason, delay }) {
  const cut = reason === "client"; // only the button calls disconnect()
  const waiting = cut ? CUT_DELAY : delay;
  const name = state === "disconnected" ? (waiting === null ? "closed" : "waiting") : state;
  const text = {
    connecting: "Connecting",
    connected: "Connected",
    disconnected: cut ? "Connection cut" : `Disconnected: ${reason}`,
  }[state];
  byId("status").dataset.state = name;
  byId("status-text").textContent = text;
  byId("client").textContent = client.id || "–";
  byId("publish-button").disabled = byId("history-button").disabled = name !== "connected";
  const button = byId("cut-button");
  button.disabled = name === "connecting";
  button.textContent = name === "connected" ? "Cut the connection" : "Connect now";
  count(name === "waiting" ? waiting : 0);
  if (name !== "connected") showPresence([]);
  if (state === "connected") repeated.clear();
  if (state === "disconnected") note(`${text}.`);
}

async function subscribed({ isResubscribe, recovered, publications }) {
  const isNewHistory = epoch !== undefined && epoch !== subscription.position?.epoch;
  epoch = subscription.position?.epoch;
  if (isResubscribe) {
    const missed = publications.length;
    const text = recovered
      ? `Recovered: ${missed} missed ${missed === 1 ? "message" : "messages"}`
      : isNewHistory
        ? "Not recovered: the server has begun a new history, and what the old one had is lost"
        : "Not recovered: history no longer holds everything that was missed";
    byId("recovery").textContent = recovered ? `recovered, ${missed} missed` : "not recovered";
    note(`Reconnected. ${text}.`);
  }
  showPosition();
  if (!isResubscribe) await showKept(subscription.position?.offset ?? Infinity);
  try {
    showPresence(Object.values(await subscription.presence()));
  } catch (error) {
    note(`Presence: ${error.message}`);
  }
}

function publication(received) {
  showPublication(received, received.recovered && "missed");
  showPosition();
}

function join({ info }) {
  if (info.client !== client.id) note(`${nameOf(info)} joined.`);
  showPresence([...present.values(), info]);
}

function leave({ info }) {
  if (info.client !== client.id) note(`${nameOf(info)} left.`);
  showPresence([...present.values()].filter((other) => other.client !== info.client));
}

function unsubscribed() {
  if (client.state !== "connected") return; // this page has disconnected
  note("The server unsubscribed this page. Reload it to come back.");
  showPresence([]);
}

// what the visitor does

async function publish(event) {
  event.preventDefault();
  const input = byId("text");
  const text = input.value;
  let problem = "";
  try {
    await client.publish(channel, { text });
    if (input.value === text) input.value = "";
  } catch (error) {
    problem = `Not published: ${error.message}.`;
  }
  byId("publish-error").textContent = problem;
}

function cutOrReturn() {
  clearTimeout(cutTimer);
  if (client.state === "connected") {
    client.disconnect();
    cutTimer = setTimeout(() => client.connect(), CUT_DELAY);
  } else {
    client.connect();
  }
}

async function showHistory() {
  try {
    const kept = await client.history(channel);
    byId("history-title").textContent = `History: ${kept.length} kept`;
    byId("history-list").replaceChildren(...kept.map((each) => publicationItem(each)));
    byId("history-dialog").showModal();
  } catch (error) {
    note(`History: ${error.message}.`);
  }
}

async function getToken() {
  const response = await fetch(refreshEndpoint);
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

// what is shown

/* What the channel kept before this page came, up to the offset from which the page is live. */
async function showKept(offset) {
  try {
    const kept = (await subscription.history()).filter((each) => !(each.offset > offset));
    if (kept.length > 0) {
      const end = element("li", "live", "Live from here");
      entries.prepend(...kept.slice(-LONGEST_LOG / 2).map((each) => publicationItem(each)), end);
      log.scrollTop = log.scrollHeight;
    }
  } catch (error) {
    note(`History: ${error.message}.`);
  }
  log.ariaLive = "polite";
}

function showPublication(publication, badge) {
  append(publicationItem(publication, { badge, time: new Date() }));
}

function publicationItem({ data, info, offset }, { badge, time } = {}) {
  const item = element("li", "publication");
  if (info && nameOf(info) === user) item.classList.add("own");
  const head = element("div", "meta");
  head.append(element("bdi", "who", info ? nameOf(info) : "Server"));
  if (time) head.append(element("time", "", time.toLocaleTimeString()));
  if (offset) head.append(element("span", "offset", `#${offset}`));
  if (badge) head.append(element("span", "badge", badge));
  const isText = typeof data?.text === "string";
  const text = element("p", isText ? "text" : "text json", isText ? data.text : JSON.stringify(data));
  text.dir = isText ? "auto" : "ltr";
  item.append(head, text);
  return item;
}

/* While the connection is lost, a line that comes again is counted, and not repeated. */
function note(text) {
  const known = repeated.get(text);
  if (known) {
    known.count += 1;
    known.line.textContent = `${text} (${known.count} times)`;
    return;
  }
  const line = element("li", "note", text);
  line.dir = "auto";
  if (client.state !== "connected") repeated.set(text, { line, count: 1 });
  append(line);
}

function append(item) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  entries.append(item);
  while (entries.children.length > LONGEST_LOG) entries.firstElementChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function showPresence(infos) {
  present.clear();
  for (const info of infos) present.set(info.client, info);
  const sorted = [...present.values()].sort(
    (a, b) => nameOf(a).localeCompare(nameOf(b)) || a.client.localeCompare(b.client),
  );
  byId("presence-count").textContent = String(sorted.length);
  byId("presence").replaceChildren(
    ...sorted.map((info) => {
      const item = element("li", "");
      const name = element("span", "", nameOf(info));
      name.dir = "auto";
      item.append(name);
      item.dataset.client = info.client;
      if (info.client === client.id) item.append(element("span", "badge", "this page"));
      return item;
    }),
  );
}

function showPosition() {
  const { position } = subscription;
  byId("position").textContent = position ? `up to #${position.offset}` : "–";
  byId("position").title = position ? `of the history with the epoch ${position.epoch}` : "";
}

function count(delay) {
  clearInterval(countdown);
  const end = Date.now() + delay;
  const show = () => {
    const seconds = Math.ceil((end - Date.now()) / 1000);
    byId("countdown").textContent = seconds > 0 ? `back in ${seconds} s` : "";
  };
  show();
  if (delay) countdown = setInterval(show, 250);
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
