// Shows a map in a component of a framework, changes the map, and removes the component.
//
//   node map_hooks.mjs <framework> <address of the server> <token> <channel>
//
// It runs in a directory where `./hook.js` is the hook of docs/frameworks.md, and prints what was shown.

import { JSDOM } from "jsdom";

const [framework, address, token, channel] = process.argv.slice(2);
const { window } = new JSDOM("<main></main>", { url: address, pretendToBeVisual: true });
const GLOBALS = ["document", "location", "navigator", "WebSocket", "Element", "SVGElement", "Node"];
for (const name of GLOBALS) globalThis[name] = window[name];
globalThis.window = window;
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const { Client } = await import("realtime");
const { map } = await import("realtime/maps");
const client = new Client("/connection/websocket", { token });
const main = document.querySelector("main");
const text = (entries) => [...(entries ?? [])].map(([key, data]) => `${key}=${data}`).join(" ");

/** For each framework: shows the component, and returns what removes it. */
const FRAMEWORKS = {
  async react() {
    const { createElement, StrictMode } = await import("react");
    const { createRoot } = await import("react-dom/client");
    const { useMap } = await import("./hook.js");
    const Seats = () => createElement("p", null, text(useMap(client, channel)));
    const root = createRoot(main);
    root.render(createElement(StrictMode, null, createElement(Seats)));
    return () => root.unmount();
  },
  async vue() {
    const { createApp, h } = await import("vue");
    const { useMap } = await import("./hook.js");
    const setup = () => {
      const entries = useMap(client, channel);
      return () => h("p", text(entries.value));
    };
    const app = createApp({ setup });
    app.mount(main);
    return () => app.unmount();
  },
  async svelte() {
    const { mapStore } = await import("./hook.js");
    const element = main.appendChild(document.createElement("p"));
    const stop = mapStore(client, channel).subscribe((entries) => {
      element.textContent = text(entries);
    });
    return () => {
      stop();
      element.remove();
    };
  },
};

const found = [];

/** Waits until a condition holds, and keeps what the page shows then. */
async function until(condition, name) {
  const deadline = Date.now() + 15_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`shown: ${main.innerHTML}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  found.push(name ?? main.querySelector("p").textContent);
}

client.connect();
await client.ready();
const own = map(client, channel);
await own.put("a", 1);
await own.put("b", 2);
const remove = await FRAMEWORKS[framework]();
await until(() => main.querySelector("p")?.textContent === "a=1 b=2");
await own.put("a", 3);
await own.remove("b");
await until(() => main.querySelector("p").textContent === "a=3");
remove();
own.release();
await until(() => !main.querySelector("p") && !client.subscriptions.length, "gone");
console.log(JSON.stringify(found));
client.disconnect();
process.exit(0);
