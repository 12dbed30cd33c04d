// @ts-check
// Answers of language models: read from their beginning, as they come, until their end.
//
//   import { answer, answers } from "realtime/answers";
//
//   for await (const { text, status } of answer(client, id)) show(text, status);
//   answer(client, id).stop();
//   for await (const { id, status } of answers(client, "chat:42")) …
//
// An answer that is read twice in a page is one subscription. A reader who is slower than the answer gets
// the newest state only. Publications may be joined, so offsets have holes, which is no loss.

/** @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").ChannelHandle} ChannelHandle
 * @typedef {import("./client.js").Publication} Publication
 *
 * @typedef {"waiting" | "queued" | "streaming" | "complete" | "stopped" | "failed" | "interrupted"} Status
 *
 * @typedef {object} AnswerState
 * @property {string} text so far
 * @property {any[]} parts its chunks, joined; empty in the form "text"
 * @property {Status} status
 */

const UNENDED = ["waiting", "queued", "streaming"];
/** Milliseconds until an answer is read anew, whose stream the engine has lost. */
const AGAIN = 1000;
/** Codes of errors after which the page asks again: no reply came in time, or the connection was lost. */
const LATER = [1, 2];
/** Publications of a channel that are looked through for answers which run. */
const LOOK_BACK = 100;

/** @type {Record<string, [string, string]>} type of a chunk → the field that is equal, and its text */
const JOINED = {
  "text-delta": ["id", "delta"],
  "reasoning-delta": ["id", "delta"],
  "tool-input-delta": ["toolCallId", "inputTextDelta"],
  TEXT_MESSAGE_CONTENT: ["messageId", "delta"],
  REASONING_MESSAGE_CONTENT: ["messageId", "delta"],
  TOOL_CALL_ARGS: ["toolCallId", "delta"],
};
const TEXTS = ["text-delta", "TEXT_MESSAGE_CONTENT"];

/** @type {WeakMap<Client, Map<string, Answer>>} those that are read */
const read = new WeakMap();

/** One answer, returned by `answer(client, id)`. */
class Answer {
  /** @type {ChannelHandle | null} */
  #handle = null;
  /** @type {AnswerState} */
  #state = { text: "", parts: [], status: "queued" };
  #version = 0;
  #readers = 0;
  #closed = false;
  /** @type {unknown} */
  #error = null;
  /** @type {Set<() => void>} */
  #waiting = new Set();

  /** @internal @param {Client} client @param {string} id */
  constructor(client, id) {
    /** @internal */
    this._client = client;
    this.id = id;
  }

  /** Have the answer end. Resolves with the status that it has then.
   * @returns {Promise<Status>} */
  async stop() {
    await this._client.ready();
    return (await this._client.rpc("realtime.stop", { id: this.id })).status;
  }

  /** Loops over the states of the answer: the newest one first, the last one at its end.
   * @returns {AsyncGenerator<AnswerState, void>} */
  async *[Symbol.asyncIterator]() {
    const first = read.get(this._client)?.get(this.id) ?? this;
    if (first !== this) return yield* first;
    if (!this.#readers++) this.#begin();
    try {
      for (let seen = 0; ; ) {
        if (seen !== this.#version) {
          seen = this.#version;
          yield { ...this.#state, parts: [...this.#state.parts] };
        } else if (this.#error) {
          throw this.#error;
        } else if (this.#ended) {
          return;
        } else {
          await new Promise((resolve) => this.#waiting.add(() => resolve(null)));
        }
      }
    } finally {
      if (!--this.#readers) this.#close();
    }
  }

  get #ended() {
    return !UNENDED.includes(this.#state.status);
  }

  #begin() {
    const known = read.get(this._client) ?? new Map();
    read.set(this._client, known.set(this.id, this));
    this.#closed = false;
    this.#error = null;
    this.#read();
  }

  #read() {
    this.#load().catch((error) => {
      if (LATER.includes(error?.code)) this.#again();
      else this.#fail(error);
    });
  }

  async #load() {
    await this._client.ready();
    const row = await this._client.rpc("realtime.answer", { id: this.id });
    if (this.#closed) return;
    const { text, parts, status, channel, offset, epoch } = row;
    this.#change({ text, parts, status });
    if (this.#ended) return;
    const handle = (this.#handle = this._client.channel(channel, { since: { offset, epoch } }));
    const current = (/** @type {() => void} */ run) => () => handle === this.#handle && run();
    handle.on("publication", (publication) => {
      if (handle === this.#handle) this.#take(publication);
    });
    handle.on("subscribed", ({ recovered }) => {
      if (!recovered) current(() => this.#again())();
    });
    handle.on("unsubscribed", ({ code, reason }) => {
      current(() => this.#fail(Object.assign(new Error(reason), { code })))();
    });
  }

  /** Read the answer anew: its row gets what a lost stream had. */
  #again() {
    this.#release();
    setTimeout(() => {
      if (!this.#closed) this.#read();
    }, AGAIN);
  }

  /** @param {Publication} publication */
  #take({ data, tags }) {
    const { parts, status } = this.#state;
    let { text } = this.#state;
    const chunks = Array.isArray(data) ? data : data?.events ?? [];
    if (typeof data === "string") text += data;
    for (const chunk of chunks) {
      if (TEXTS.includes(chunk?.type)) text += chunk.delta;
      if (!Array.isArray(data) || !join(parts, chunk)) parts.push(chunk);
    }
    const end = /** @type {Status | undefined} */ (tags?.["end"]);
    this.#change({ text, parts, status: end ?? (status === "queued" ? "streaming" : status) });
    if (end) this.#release();
  }

  /** @param {AnswerState} state */
  #change(state) {
    this.#state = state;
    this.#version++;
    this.#wake();
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#error = error;
    this.#wake();
  }

  #wake() {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #release() {
    const handle = this.#handle;
    this.#handle = null;
    handle?.release();
  }

  #close() {
    this.#closed = true;
    this.#release();
    const known = read.get(this._client);
    if (known?.get(this.id) === this) known.delete(this.id);
  }
}

/** Adds a chunk to the last one, if both mean the same as one.
 * @param {any[]} parts @param {any} chunk */
function join(parts, chunk) {
  const last = parts.at(-1);
  const [same, text] = JOINED[chunk?.type] ?? [];
  if (!same || !text || last?.type !== chunk.type || last[same] !== chunk[same]) return false;
  if (last.providerMetadata || chunk.providerMetadata) return false;
  parts[parts.length - 1] = { ...last, [text]: last[text] + chunk[text] };
  return true;
}

/**
 * Read an answer, and stop it.
 *
 * @param {Client} client
 * @param {string} id
 */
export function answer(client, id) {
  return read.get(client)?.get(id) ?? new Answer(client, id);
}

/**
 * Loop over the answers in a channel: those that run, then each that begins or ends.
 *
 * @param {Client} client
 * @param {string} channel such as "chat:42"
 * @returns {AsyncGenerator<{ id: string, status: Status }>}
 */
export async function* answers(client, channel) {
  const handle = client.channel(channel);
  /** @type {Publication[]} */
  const waiting = [];
  /** @type {Map<string, Status>} */
  const known = new Map();
  /** Whether publications were missed, which the history may have. */
  let missed = true;
  let wake = () => {};
  /** @type {unknown} */
  let error = null;
  handle.on("publication", (publication) => {
    waiting.push(publication);
    wake();
  });
  handle.on("subscribed", ({ recovered }) => {
    missed ||= !recovered;
    wake();
  });
  handle.on("unsubscribed", ({ code, reason }) => {
    error = Object.assign(new Error(reason), { code });
    wake();
  });
  try {
    for (let seen = 0; ; ) {
      const publication = missed ? undefined : waiting.shift();
      if (missed) {
        await handle.subscription.ready();
        missed = false;
        // where history cannot be read, the answers are those that begin from now on
        const before = await client.history(channel, { limit: LOOK_BACK, reverse: true }).catch(({ code }) => {
          missed = LATER.includes(code);
          return [];
        });
        seen = before[0]?.offset ?? 0;
        const found = new Map(before.reverse().filter(isAnswer).map(({ data }) => [data.answer, data.status]));
        for (const [id, status] of found) {
          const isNews = known.has(id) ? known.get(id) !== status : UNENDED.includes(status);
          known.set(id, status);
          if (isNews) yield { id, status };
        }
      } else if (publication) {
        const { answer: id, status } = isAnswer(publication) ? publication.data : {};
        if (id && known.get(id) !== status && (publication.offset ?? Infinity) > seen) {
          known.set(id, status);
          yield { id, status };
        }
      } else if (error) {
        throw error;
      } else {
        await new Promise((resolve) => (wake = () => resolve(null)));
      }
    }
  } finally {
    handle.release();
  }
}

/** Whether the service published this about an answer: what a client publishes has `info`.
 * @param {Publication} publication */
function isAnswer({ data, info }) {
  return !info && Boolean(data?.answer);
}
