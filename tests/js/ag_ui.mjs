// Plays a run of `HttpAgent` with a site, whose events the client verifies.
//
//   node ag_ui.mjs <address> <thread> <play>
//
// Prints what happened, as one JSON object. The site is tests/site/scripts.py.

import { HttpAgent } from "@ag-ui/client";

const [address, threadId, play] = process.argv.slice(2);

const secret = "x".repeat(32);
const csrf = { cookie: `csrftoken=${secret}`, "x-csrftoken": secret };

const post = async (path) => {
  const response = await fetch(address + path, { method: "POST", headers: csrf });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
};

/** Joins a run that is under way: AG-UI 1.0 has no way of its own. */
class Joining extends HttpAgent {
  requestInit(input) {
    const { headers, signal } = super.requestInit(input);
    return { method: "GET", headers, signal };
  }
}

/** One run, with the events that its subscribers saw. */
class Run {
  constructor(script) {
    const url = `${address}/scripts/ag-ui` + (script ? "" : `/${threadId}/stream`);
    const messages = script ? [{ id: "u", role: "user", content: script }] : [];
    this.agent = new (script ? HttpAgent : Joining)({ url, threadId, initialMessages: messages });
    this.events = [];
    this.failures = [];
    this.done = this.agent
      .runAgent({}, { onEvent: ({ event }) => void this.events.push(event) })
      .catch((error) => this.failures.push(String(error)));
  }

  text() {
    const deltas = this.events.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT");
    return deltas.map(({ delta }) => delta).join("");
  }

  async until(condition) {
    const deadline = Date.now() + 20_000;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`${condition}: ${JSON.stringify(this.events)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async over() {
    await this.done;
    const types = this.events.map(({ type }) => type);
    const { events, failures } = this;
    return { types, text: this.text(), last: events.at(-1), failures, messages: this.agent.messages };
  }
}

const has = (run, type) => run.events.some((event) => event.type === type);

const PLAYS = {
  async run() {
    const run = new Run("text");
    await run.until(() => run.text() === "Hello ");
    await post(`/go/${threadId}`);
    return run.over();
  },

  async resume() {
    const first = new Run("tools");
    await first.until(() => has(first, "TOOL_CALL_ARGS"));
    first.agent.abortRun();
    const second = new Run();
    await second.until(() => has(second, "TOOL_CALL_ARGS"));
    await post(`/go/${threadId}`);
    return second.over();
  },

  async stop_text() {
    const run = new Run("text");
    await run.until(() => run.text() === "Hello ");
    await post(`/answers/${run.events[0].runId}/stop`);
    return run.over();
  },

  async stop_tool() {
    const run = new Run("tools");
    await run.until(() => has(run, "TOOL_CALL_ARGS"));
    await post(`/stop/${threadId}`);
    return run.over();
  },

  async twice() {
    const run = new Run("twice");
    await post(`/go/${threadId}`);
    return run.over();
  },

  async fails() {
    const run = new Run("fails");
    await run.until(() => run.text() === "Half ");
    await post(`/go/${threadId}`);
    return run.over();
  },
};

process.stdout.write(JSON.stringify(await PLAYS[play]()), () => process.exit(0));
