import { Client } from "realtime";

const WRITES_EVERY = 2000; // milliseconds
const WRITES_FOR = 4000;

const find = (selector) => document.querySelector(selector);
const user = document.body.dataset.user;
const client = Client.fromPage();

// messages

function show({ id, user: author, name, text }) {
  stopWriting(author);
  if (document.getElementById(`m${id}`)) return; // the page came with it
  const item = document.createElement("li");
  item.id = `m${id}`;
  item.classList.toggle("mine", author === user);
  const label = document.createElement("b");
  label.textContent = name;
  item.append(label, text);
  find("#messages").append(item);
  toEnd();
}

function toEnd() {
  find("#log").scrollTop = find("#log").scrollHeight;
}

// after a reload the messages are in the page, and the channel goes on where the page ends
const room = client.page("room", { publish: ({ data }) => show(data) });

const form = find("#say");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new FormData(form);
  form.reset();
  toldAt = 0;
  const options = { method: "POST", body, redirect: "error" }; // it would lead to the login
  const response = await fetch("", options).catch(() => null);
  if (!response?.ok) form.elements.text.value ||= body.get("text"); // for another try
});

// who is here: one entry for each user, in however many tabs

const people = new Map();

function showPeople() {
  const items = [...people].sort(([, one], [, other]) => one.localeCompare(other));
  find("#people ul").replaceChildren(
    ...items.map(([id, name]) => {
      const item = document.createElement("li");
      item.textContent = id === user ? `${name} (you)` : name;
      return item;
    }),
  );
}

room.on("subscribed", async () => {
  people.clear(); // first: some may come before the answer
  const clients = await room.presence().catch(() => ({})); // {}: the connection is lost again
  for (const info of Object.values(clients)) people.set(info.user, info.connInfo.name);
  showPeople();
});
room.on("join", ({ info }) => {
  people.set(info.user, info.connInfo.name);
  showPeople();
});
room.on("leave", ({ info }) => {
  people.delete(info.user);
  stopWriting(info.user);
  showPeople();
});

const STATES = { subscribing: "Connecting", subscribed: "", unsubscribed: "Disconnected" };
for (const [state, text] of Object.entries(STATES)) {
  room.on(state, () => find("#state").replaceChildren(text));
}

// who is writing

const typing = client.subscribe(room.channel.replace("chat:", "typing:"));
const writers = new Map(); // user → the timer that ends it
let toldAt = 0;

function showWriters() {
  const names = [...writers.keys()].map((id) => people.get(id) ?? "Someone");
  const verb = names.length > 1 ? "are" : "is";
  find("#writers").textContent = names.length ? `${names.join(", ")} ${verb} writing…` : "";
}

function stopWriting(id) {
  clearTimeout(writers.get(id));
  if (writers.delete(id)) showWriters();
}

typing.on("publication", ({ info }) => {
  if (info.user === user) return;
  clearTimeout(writers.get(info.user));
  writers.set(info.user, setTimeout(() => stopWriting(info.user), WRITES_FOR));
  showWriters();
});

form.elements.text.addEventListener("input", () => {
  if (Date.now() - toldAt < WRITES_EVERY) return;
  toldAt = Date.now();
  typing.publish({}).catch(() => {}); // it matters to no one a moment later
});

toEnd();
