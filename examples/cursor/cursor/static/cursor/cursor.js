import { Client } from "realtime";

const SEND_EVERY = 50; // milliseconds: 20 a second, and the server takes 25
const STEP = 0.02; // of the board, with an arrow key

const find = (id) => document.getElementById(id);
const client = Client.fromPage({ data: { name: document.body.dataset.name } });
const board = client.subscribe(document.body.dataset.channel);
const people = new Map(); // client ID → { name, cursor }

// others

/** Give an element the colour of a client: a hue made of its ID. */
function colour(element, id) {
  const hue = [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
  element.style.setProperty("--hue", hue);
}

function enter({ client: id, connInfo }) {
  if (people.has(id)) return;
  people.set(id, { name: connInfo.name });
  showPeople();
}

function leave(id) {
  people.get(id)?.cursor?.remove();
  people.delete(id);
  showPeople();
}

function showPeople() {
  find("people").replaceChildren(
    ...[...people].map(([id, person]) => {
      const item = document.createElement("li");
      item.textContent = id === client.id ? `${person.name} (you)` : person.name;
      colour(item, id);
      return item;
    }),
  );
}

function move(id, { x, y, click }) {
  const person = people.get(id);
  if (!person) return;
  if (!person.cursor) {
    person.cursor = find("cursor").content.cloneNode(true).firstElementChild;
    person.cursor.querySelector("span").textContent = person.name;
  }
  if (!person.cursor.isConnected) find("board").append(person.cursor);
  put(person.cursor, id, x, y);
  if (click) showClick(id, x, y);
}

function put(element, id, x, y) {
  Object.assign(element.style, { left: `${x * 100}%`, top: `${y * 100}%` });
  colour(element, id);
}

function showClick(id, x, y) {
  const ring = document.createElement("div");
  ring.className = "click";
  put(ring, id, x, y);
  find("board").append(ring);
  setTimeout(() => ring.remove(), 800);
}

board.on("subscribed", async () => {
  for (const id of [...people.keys()]) leave(id); // first: some may come before the answer
  const clients = await board.presence().catch(() => ({})); // {}: the connection is lost again
  Object.values(clients).forEach(enter);
});
board.on("join", ({ info }) => {
  enter(info);
  if (place && info.client !== client.id) send(); // so that the newcomer sees this one
});
board.on("leave", ({ info }) => leave(info.client));
board.on("publication", ({ data, info }) => {
  enter(info); // its join may be older than this page
  if (info.client !== client.id) move(info.client, data);
});

const STATES = { subscribing: "Connecting", subscribed: "", unsubscribed: "Disconnected" };
for (const [state, text] of Object.entries(STATES)) {
  board.on(state, () => find("state").replaceChildren(text));
}

// this one

let place = null; // { x, y }, each from 0 to 1
let timer = null; // while it runs, a place waits
let again = false; // whether one does

function publish(data) {
  if (board.state === "subscribed") board.publish(data).catch(() => {}); // the next one says more
}

/** Send the place, at most once in SEND_EVERY; what is asked for meanwhile is sent then. */
function send() {
  again = timer !== null;
  if (again) return;
  publish(place);
  timer = setTimeout(() => {
    timer = null;
    if (again) send();
  }, SEND_EVERY);
}

function click() {
  publish({ ...place, click: true });
  showClick(client.id, place.x, place.y);
}

function inside(share) {
  return Math.min(1, Math.max(0, share));
}

function follow(event) {
  const { left, top, width, height } = find("board").getBoundingClientRect();
  place = { x: inside((event.clientX - left) / width), y: inside((event.clientY - top) / height) };
  people.get(client.id)?.cursor?.remove(); // the system shows this one
  send();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

find("board").addEventListener("pointermove", follow);
find("board").addEventListener("pointerdown", (event) => {
  follow(event);
  click();
});
find("board").addEventListener("keydown", (event) => {
  const [right, down] = ARROWS[event.key] ?? [0, 0];
  if (!ARROWS[event.key] && event.key !== "Enter") return;
  event.preventDefault();
  const { x, y } = place ?? { x: 0.5, y: 0.5 };
  place = { x: inside(x + right * STEP), y: inside(y + down * STEP) };
  move(client.id, place);
  if (event.key === "Enter") click();
  else send();
});

client.connect();
