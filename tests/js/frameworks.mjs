// Shows a channel in two components of a framework, and removes one after the other.
//
//   node frameworks.mjs <framework> <address of the server> <token> <channel>
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
const client = new Client("/connection/websocket", { token });
const main = document.querySelector("main");
const shown = () => [...main.querySelectorAll("p")].map((each) => each.textContent);

/** For each framework: shows components with these names, and returns what shows others. */
const FRAMEWORKS = {
  async react() {
    const { createElement, StrictMode, useState } = await import("react");
    const { createRoot } = await import("react-dom/client");
    const { useChannel } = await import("./hook.js");
    function Room({ name }) {
      const [texts, setTexts] = useState([]);
      const state = useChannel(client, channel, ({ data }) => setTexts((all) => [...all, data]));
      return createElement("p", null, [name, state, ...texts].join(" "));
    }
    const root = createRoot(main);
    return (names) => {
      const rooms = names.map((name) => createElement(Room, { key: name, name }));
      root.render(createElement(StrictMode, null, rooms));
    };
  },
  async vue() {
    const { createApp, h, ref } = await import("vue");
    const { useChannel } = await import("./hook.js");
    const Room = {
      props: ["name"],
      setup({ name }) {
        const texts = ref([]);
        const state = useChannel(client, () => channel, ({ data }) => texts.value.push(data));
        return () => h("p", [name, state.value, ...texts.value].join(" "));
      },
    };
    const names = ref([]);
    createApp(() => names.value.map((name) => h(Room, { key: name, name }))).mount(main);
    return (next) => (names.value = next);
  },
  async svelte() {
    const { channelStore } = await import("./hook.js");
    const rooms = new Map();
    return (names) => {
      for (const [name, { element, stop }] of rooms) {
        if (names.includes(name)) continue;
        stop();
        element.remove();
      }
      for (const name of names) {
        if (rooms.has(name)) continue;
        const element = main.appendChild(document.createElement("p"));
        const stop = channelStore(client, channel).subscribe(({ state, publications }) => {
          element.textContent = [name, state, ...publications.map(({ data }) => data)].join(" ");
        });
        rooms.set(name, { element, stop });
      }
    };
  },
};

/** Waits until the page shows these texts. */
async function until(...expected) {
  const deadline = Date.now() + 15_000;
  while (JSON.stringify(shown()) !== JSON.stringify(expected)) {
    if (Date.now() > deadline) throw new Error(`shown: ${JSON.stringify(shown())}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const frames = [];
const { send } = WebSocket.prototype;
WebSocket.prototype.send = function (frame) {
  frames.push(...frame.split("\n").map((line) => JSON.parse(line).method));
  send.call(this, frame);
};

client.connect();
await client.ready();
const show = await FRAMEWORKS[framework]();
show(["a", "b"]);
await until("a subscribed", "b subscribed");
await client.publish(channel, 1);
await until("a subscribed 1", "b subscribed 1");
show(["b"]);
await until("b subscribed 1");
await client.publish(channel, 2);
await until("b subscribed 1 2");
show([]);
await until();
while (!frames.includes(2)) await new Promise((resolve) => setTimeout(resolve, 5)); // unsubscribe
console.log(JSON.stringify(frames.filter((method) => method === 1 || method === 2)));
client.disconnect();
process.exit(0);
