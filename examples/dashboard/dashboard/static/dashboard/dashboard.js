import { Client } from "realtime";

const SHOWN = 60; // seconds in the chart
const WIDTH = 600; // of the chart, in its own units
const HEIGHT = 200;

const find = (id) => document.getElementById(id);
const client = Client.fromPage();
const number = new Intl.NumberFormat();
const euros = new Intl.NumberFormat(undefined, {
  style: "currency", currency: "EUR", maximumFractionDigits: 0,
});

// what the page shows, at first as the server wrote it

let state = JSON.parse(find("page-state").textContent);

/** Take up one more second; one that is there already changes nothing. */
function add({ second, totals }, recovered) {
  if (second.id <= (state.seconds.at(-1)?.id ?? 0)) return;
  const seconds = [...state.seconds, { ...second, recovered }].slice(-SHOWN);
  state = { totals, seconds };
  draw();
}

function draw() {
  const { totals, seconds } = state;
  const recent = seconds.reduce((sum, { orders }) => sum + orders, 0);
  const most = Math.max(1, ...seconds.map(({ revenue }) => revenue));
  find("orders").textContent = number.format(totals.orders);
  find("revenue").textContent = euros.format(totals.revenue);
  find("recent").textContent = number.format(recent);
  find("chart").setAttribute("aria-label", `Between 0 and ${euros.format(most)} a second`);
  find("chart").replaceChildren(...seconds.map((second, index) => bar(second, index, most)));
}

/** The bar of one second; the newest is at the right. */
function bar({ revenue, recovered }, index, most) {
  const step = WIDTH / SHOWN;
  const height = (HEIGHT * revenue) / most;
  const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const place = {
    x: (SHOWN - state.seconds.length + index) * step,
    y: HEIGHT - height,
    width: step * 0.75,
    height,
  };
  for (const [name, value] of Object.entries(place)) rect.setAttribute(name, value);
  rect.classList.toggle("recovered", Boolean(recovered));
  return rect;
}

// the channel: what comes after the page, and the whole state where the channel does not reach back

const sales = client.page("sales", {
  publish: ({ data, recovered }) => add(data, recovered),
  load: async ({ signal }) => {
    const response = await fetch("state", { signal, cache: "no-store" });
    state = await response.json();
    draw();
    return response; // its header says which publications it has already
  },
});

const STATES = { subscribing: "Connecting", subscribed: "Live", unsubscribed: "Cut off" };
for (const [name, text] of Object.entries(STATES)) {
  sales.on(name, () => {
    find("status").textContent = text;
    find("status").classList.toggle("live", name === "subscribed");
    find("cut").textContent = name === "unsubscribed" ? "Connect again" : "Cut the connection";
  });
}

// the buttons

find("cut").addEventListener("click", () => {
  if (client.state === "disconnected") client.connect();
  else client.disconnect();
});

find("sell").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  fetch(form.action, { method: "POST", body: new FormData(form) }).catch(() => {
    find("status").textContent = "The server does not answer";
  });
});

draw();
