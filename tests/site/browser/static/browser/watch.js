// Watches a page with live blocks for its tests: events, errors, requests for the page, frames.

const NAMES = ["put", "remove", "swap", "reset", "unknown", "error"];
window.told = [];
window.failures = [];
window.ran = [];
window.commands = []; // methods, as numbers
window.gates = null; // while it is a list, answers to requests wait for the functions in it

window.addEventListener("error", ({ message }) => failures.push(message));
window.addEventListener("unhandledrejection", ({ reason }) => failures.push(String(reason)));
for (const name of NAMES)
  document.addEventListener(`realtime:${name}`, ({ target, detail }) =>
    told.push([name, target.id, detail instanceof Error ? detail.message : detail]),
  );

{
  const { fetch } = window;
  window.fetch = async (...args) => {
    if (window.gates) await new Promise((resolve) => window.gates.push(resolve));
    return fetch(...args);
  };

  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (frame) {
    if (location.search.includes("mute") && !commands.length) return void commands.push(0);
    commands.push(...frame.split("\n").map((line) => JSON.parse(line).method ?? 0));
    send.call(this, frame);
  };
}
