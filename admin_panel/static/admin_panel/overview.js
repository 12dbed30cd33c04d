/** Updates the overview every two seconds, and draws the messages per second. */

import { Chart } from "./chart.js";
import { Rates } from "./rates.js";
import { timeOf } from "./times.js";

const INTERVAL = 2000; // milliseconds
const SHOWN = 90; // values, so three minutes

const language = document.documentElement.lang;
const overview = document.getElementById("overview");
const live = document.getElementById("overview-live");
const state = document.getElementById("overview-state");
const section = document.getElementById("overview-rates");
const rates = new Rates();
const charts = [...section.querySelectorAll("[data-rate]")].map((figure) => ({
  name: figure.dataset.rate,
  output: figure.querySelector("output"),
  chart: new Chart(figure, SHOWN),
}));
const line = document.getElementById("panel-health");
let shown = "";
let judged = "";
let updated = new Date();

async function ask() {
  const response = await fetch(overview.dataset.url, { redirect: "error" });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

function format(value) {
  const digits = value < 100 ? 1 : 0;
  return value.toLocaleString(language, { maximumFractionDigits: digits });
}

function show({ available, html, health, nodes }) {
  if (health !== judged) {
    line.innerHTML = health;
    judged = health;
  }
  if (html !== shown) {
    const opened = live.querySelector("details[open]") !== null;
    live.innerHTML = html; // rendered and escaped by the server, like the page itself
    if (opened) live.querySelector("details")?.setAttribute("open", "");
    shown = html;
  }
  const rate = rates.add(nodes, performance.now() / 1000);
  if (rate !== null) {
    for (const { name, output, chart } of charts) {
      output.value = format(rate[name]);
      chart.add(rate[name]);
    }
  }
  section.hidden = !available;
  updated = new Date();
  say(available ? "live" : "waiting", available ? overview.dataset.textLive : overview.dataset.textWaiting);
}

function say(name, text) {
  state.dataset.state = name;
  // screen readers read a status again whenever it is set
  if (state.textContent !== text) state.textContent = text;
}

async function update() {
  if (!document.hidden) {
    try {
      show(await ask());
    } catch {
      const time = timeOf(updated);
      say("waiting", overview.dataset.textStale.replace("%s", time));
    }
  }
  setTimeout(update, INTERVAL);
}

// they get their space before the first response, so that nothing moves later
section.hidden = live.querySelector(".panel-notice") !== null;
say("connecting", overview.dataset.textConnecting);
state.hidden = false;
update();
