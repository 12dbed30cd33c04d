/** Adds the frames that nodes have copied since the last question, until the time is over. */

const INTERVAL = 1000; // milliseconds; nodes end it when none asks for ten seconds
const SHOWN = 500; // entries

const section = document.getElementById("frames");
const list = document.getElementById("frames-list");
const template = document.getElementById("frames-entry");
const note = document.getElementById("frames-note");
const form = document.getElementById("frames-stop");
let taken = section.dataset.taken;
let isOver = false;

function add({ time, what, client, node, text }) {
  const entry = template.content.cloneNode(true);
  const parts = { time, span: what, "div code": client, bdi: node, "pre code": text };
  for (const [selector, value] of Object.entries(parts)) {
    entry.querySelector(selector).textContent = value;
  }
  if (!text) entry.querySelector("pre").remove();
  list.append(entry);
  while (list.children.length > SHOWN) list.firstElementChild.remove();
  document.getElementById("frames-empty").hidden = true;
}

async function update() {
  try {
    const url = `${section.dataset.url}&taken=${encodeURIComponent(taken)}`;
    const response = await fetch(url, { redirect: "error" });
    const answer = await response.json();
    if (answer.over) {
      isOver = true;
      form.hidden = true;
      document.getElementById("frames-state").textContent = section.dataset.textOver;
      return;
    }
    if (answer.taken) taken = JSON.stringify(answer.taken);
    (answer.entries ?? []).forEach(add);
    note.textContent = answer.note ?? "";
  } catch {
    // the next one tries again
  }
  setTimeout(update, INTERVAL);
}

// who leaves is done with it; without this nodes end it some seconds later
addEventListener("pagehide", () => {
  if (!isOver) navigator.sendBeacon(form.action, new FormData(form));
});

setTimeout(update, INTERVAL / 2);
