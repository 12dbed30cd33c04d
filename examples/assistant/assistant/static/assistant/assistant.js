import { Client } from "realtime";
import { answer, answers } from "realtime/answers";

const find = (selector) => document.querySelector(selector);
const { channel } = document.body.dataset;
const client = Client.fromPage();
const shown = new Set();
let running = null;

function add(text, className) {
  const item = document.createElement("li");
  item.className = className;
  item.textContent = text;
  find("#messages").append(item);
  toEnd();
  return item;
}

function toEnd() {
  find("#log").scrollTop = find("#log").scrollHeight;
}

// an answer, from its beginning: also after a reload, and in a second tab

async function show(id) {
  if (shown.has(id)) return;
  shown.add(id);
  const tools = new Map();
  let item = null;
  running = answer(client, id);
  find("#stop").hidden = false;
  for await (const { text, parts, status } of running) {
    for (const part of parts) {
      if (part.type === "tool-input-available" && !tools.has(part.toolCallId)) {
        tools.set(part.toolCallId, add(`${part.toolName} …`, "tool"));
      } else if (part.type === "tool-output-available") {
        tools.get(part.toolCallId).textContent = part.output;
      }
    }
    item ??= add("", "answer");
    if (tools.size) find("#messages").append(item); // the text follows what was looked up
    item.textContent = text;
    item.className = `answer ${status}`;
    toEnd();
  }
  running = null;
  find("#stop").hidden = true;
}

(async () => {
  for await (const { id, status } of answers(client, channel)) {
    if (status === "queued") show(id);
  }
})();

// what is asked, in whichever tab; while the model runs, it steers the model

const talk = client.channel(channel);
talk.on("publication", ({ data }) => {
  if (data.text) add(data.text, "mine");
});

const form = find("#ask");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new FormData(form);
  const text = body.get("text");
  form.elements.text.value = "";
  await talk.subscription.ready().catch(() => null); // before that, the page misses its own question
  if (running) {
    await client.publish(channel, { text });
    return;
  }
  const response = await fetch(form.action, { method: "POST", body }).catch(() => null);
  if (!response?.ok) form.elements.text.value ||= text; // for another try
});

find("#stop").addEventListener("click", () => running?.stop());
client.connect();
