/** Updates the overview: its numbers every two seconds, the last hour every ten. */

import { renew } from "./renew.js";
import { timeOf } from "./times.js";

const INTERVAL = 2000; // milliseconds
const HOUR_INTERVAL = 10_000; // nodes take a sample as often

const overview = document.getElementById("overview");
const hour = document.getElementById("overview-hour");
const state = document.getElementById("overview-state");
let updated = new Date();
let asked = performance.now();

async function ask(url) {
  const response = await fetch(url, { redirect: "error" });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

/** Shows parts of the page, which the server rendered and escaped, as the page itself. */
function show(parts) {
  for (const [id, html] of Object.entries(parts)) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const holder = document.createElement("div");
    holder.append(template.content);
    renew(document.getElementById(id), holder);
  }
}

async function askForNumbers() {
  const { available, parts } = await ask(overview.dataset.url);
  show(parts);
  hour.classList.toggle("panel-past", !available);
  updated = new Date();
  say(available ? "live" : "waiting", available ? overview.dataset.textLive : overview.dataset.textWaiting);
}

async function askForHour() {
  if (performance.now() - asked < HOUR_INTERVAL) return;
  asked = performance.now();
  show((await ask(overview.dataset.hourUrl)).parts);
}

function say(name, text) {
  state.dataset.state = name;
  // screen readers read a status again whenever it is set
  if (state.textContent !== text) state.textContent = text;
}

async function update() {
  if (!document.hidden) {
    try {
      await askForNumbers();
      await askForHour();
    } catch {
      const time = timeOf(updated);
      say("waiting", overview.dataset.textStale.replace("%s", time));
    }
  }
  setTimeout(update, INTERVAL);
}

say("connecting", overview.dataset.textConnecting);
state.hidden = false;
update();
