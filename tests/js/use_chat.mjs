// Plays a conversation of `useChat` with a site, in React and a document of jsdom.
//
//   node use_chat.mjs <package of useChat> <package of transports> <address> <chat> <play>
//
// Prints what happened, as one JSON object. The site is tests/site/scripts.py.

import { JSDOM } from "jsdom";

const [react, ai, address, id, play] = process.argv.slice(2);
const { window } = new JSDOM("<main></main>", { url: address, pretendToBeVisual: true });
globalThis.window = window;
globalThis.document = window.document;
Object.defineProperty(globalThis, "navigator", { value: window.navigator });
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import(react);
const { DefaultChatTransport } = await import(ai);

const secret = "x".repeat(32);
const csrf = { cookie: `csrftoken=${secret}`, "x-csrftoken": secret };

const post = async (path) => {
  const response = await fetch(address + path, { method: "POST", headers: csrf });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json().catch(() => null);
};

/** One page that shows the chat: `now` is what it shows. */
class Page {
  constructor(options = {}) {
    this.ends = [];
    this.replies = [];
    this.lines = [];
    const page = this;
    const transport = new DefaultChatTransport({
      api: `${address}/scripts/ui`,
      fetch: async (...request) => {
        const response = await fetch(...request);
        page.replies.push(response.status);
        const lines = response.clone().text();
        lines.then((text) => (page.lines = text.trim().split(/\n+/)), () => {});
        return response;
      },
    });
    function Chat() {
      page.now = useChat({
        id,
        transport,
        onFinish: ({ isAbort, isDisconnect, isError, finishReason }) =>
          page.ends.push({ isAbort, isDisconnect, isError, finishReason }),
        onError: () => {},
        ...options,
      });
      return null;
    }
    this.root = createRoot(document.querySelector("main").appendChild(document.createElement("p")));
    this.root.render(createElement(Chat));
  }

  get answer() {
    const last = this.now?.messages.at(-1);
    return last?.role === "assistant" ? last : undefined;
  }

  get text() {
    const texts = (this.answer?.parts ?? []).filter(({ type }) => type === "text");
    return texts.map(({ text }) => text).join("");
  }

  get tool() {
    return this.answer?.parts.find(({ type }) => type === "tool-weather");
  }

  async until(condition) {
    const deadline = Date.now() + 20_000;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`${condition}: ${JSON.stringify(this.now)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async begin(script) {
    await this.until(() => this.now);
    this.sending = this.now.sendMessage({ text: script });
    await this.until(() => this.now.status === "streaming");
  }

  /** A page that is loaded in place of this one; it has the messages of the user. */
  async reload() {
    const messages = this.now.messages.filter(({ role }) => role === "user");
    await this.now.stop();
    this.root.unmount();
    return new Page({ resume: true, messages });
  }

  async over() {
    await this.until(() => this.ends.length && ["ready", "error"].includes(this.now.status));
    return this.result;
  }

  get result() {
    const { messages, status, error } = this.now;
    return { messages, status, error: error?.message, ends: this.ends, replies: this.replies };
  }
}

const PLAYS = {
  async send() {
    const page = new Page();
    await page.begin("text");
    await page.until(() => page.text === "Hello ");
    await post(`/go/${id}`);
    return page.over();
  },

  async reload() {
    const first = new Page();
    await first.begin("text");
    await first.until(() => first.text === "Hello ");
    const second = await first.reload();
    await second.until(() => second.text === "Hello ");
    await post(`/go/${id}`);
    return { first: first.result, second: await second.over() };
  },

  async finished() {
    const first = new Page();
    await first.begin("text");
    await post(`/go/${id}`);
    await first.over();
    const { messages } = first.now;
    first.root.unmount();
    const second = new Page({ resume: true, messages });
    await second.until(() => second.replies.length && second.now.status === "ready");
    return { first: messages, second: second.result };
  },

  async stop() {
    const page = new Page();
    await page.begin("text");
    await page.until(() => page.text === "Hello ");
    const second = await page.reload();
    await second.until(() => second.text === "Hello ");
    const reply = await post(`/answers/${second.answer.id}/stop`);
    const over = await second.over();
    await second.until(() => second.lines.length);
    return { reply, first: page.result, second: over, lines: second.lines };
  },

  async tools() {
    const page = new Page();
    await page.begin("tools");
    await page.until(() => page.tool?.state === "input-streaming");
    const first = page.answer.id;
    const second = await page.reload();
    await second.until(() => second.tool?.state === "input-streaming");
    await post(`/go/${id}`);
    return { first, second: await second.over() };
  },

  async twice() {
    const page = new Page();
    await page.until(() => page.now);
    void page.now.sendMessage({ text: "twice" });
    await post(`/go/${id}`);
    return page.over();
  },

  async fails() {
    const page = new Page();
    await page.begin("fails");
    await page.until(() => page.text === "Half ");
    await post(`/go/${id}`);
    return page.over();
  },
};

process.stdout.write(JSON.stringify(await PLAYS[play]()), () => process.exit(0));
