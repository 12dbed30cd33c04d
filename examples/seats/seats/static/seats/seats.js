import { Client } from "realtime";
import { map } from "realtime/maps";

const SEND_EVERY = 50; // milliseconds: 20 a second, and the server takes 25
const RENEW_EVERY = 10_000; // a seat is kept for 30 seconds
const { room, name } = document.body.dataset;
const board = document.getElementById("room");
const client = Client.fromPage();
const seats = map(client, `seats:${room}`);
const cursors = map(client, `cursors:${room}`);

// seats: first come, first served, which the server decides

const isMine = (seat) => seats.get(seat)?.client === client.id;

function showSeats() {
  for (const button of board.querySelectorAll("button")) {
    const sitting = seats.get(button.value);
    button.querySelector("span").textContent = sitting?.name ?? "free";
    button.className = isMine(button.value) ? "mine" : sitting ? "taken" : "";
  }
}

seats.on("sync", showSeats);
seats.on("update", showSeats);
board.addEventListener("click", async (event) => {
  const seat = event.target.closest("button")?.value;
  if (!seat) return;
  await client.rpc(isMine(seat) ? "stand" : "sit", { room, seat, name }).catch(() => {});
});
setInterval(() => {
  for (const seat of seats.entries.keys()) {
    if (isMine(seat)) client.rpc("sit", { room, seat, name }).catch(() => {});
  }
}, RENEW_EVERY);

// cursors: each client puts one entry, whose key is its ID

const shown = new Map(); // client ID → element

function showCursor({ key, data, removed }) {
  if (removed || key === client.id) {
    shown.get(key)?.remove();
    shown.delete(key);
    return;
  }
  if (!shown.has(key)) {
    shown.set(key, document.getElementById("cursor").content.cloneNode(true).firstElementChild);
    board.append(shown.get(key));
  }
  const cursor = shown.get(key);
  cursor.querySelector("span").textContent = data.name;
  Object.assign(cursor.style, { left: `${data.x * 100}%`, top: `${data.y * 100}%` });
}

cursors.on("sync", ({ entries }) => {
  for (const key of shown.keys()) if (!entries.has(key)) showCursor({ key, removed: true });
  for (const [key, data] of entries) showCursor({ key, data });
});
cursors.on("update", showCursor);

let next = null; // the place that is sent when the timer ends
let timer = null;
board.addEventListener("pointermove", ({ clientX, clientY }) => {
  const { left, top, width, height } = board.getBoundingClientRect();
  const share = (value) => Math.min(1, Math.max(0, value));
  next = { name, x: share((clientX - left) / width), y: share((clientY - top) / height) };
  timer ??= setTimeout(() => {
    timer = null;
    cursors.put("", next).catch(() => {}); // the next one says more
  }, SEND_EVERY);
});

client.connect();
