// A small client of the wire protocol in JSON: one connection, one subscription, recovery.
//
// Replies come to callbacks, not promises: a frame may hold several messages, and a reply
// has to be handled before the pushes that follow it.

const METHODS = { connect: 0, subscribe: 1, publish: 3, presence: 4, history: 6, ping: 7, refresh: 10 };
const PUSHES = ["publication", "join", "leave", "unsubscribed"];

const INTERNAL_ERROR = 100;
const TOKEN_EXPIRED = 109;

// milliseconds
const PING_INTERVAL = 25_000;
const REPLY_TIMEOUT = 5_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 20_000;

/** Called with what happens: `on.state`, `on.subscribed`, `on.refused` and one per push. */
export class Connection {
  client = "";
  position = null; // {offset, epoch} of the last publication seen, for recovery

  #url;
  #channel;
  #token;
  #fetchToken;
  #on;
  #socket = null;
  #calls = new Map(); // id → {onReply, timer}
  #lastId = 0;
  #failures = 0;
  #reconnectTimer;
  #pingTimer;
  #refreshTimer;

  constructor({ url, channel, token, fetchToken, on }) {
    this.#url = url;
    this.#channel = channel;
    this.#token = token;
    this.#fetchToken = fetchToken;
    this.#on = on;
  }

  /** Connect now, whatever was planned. */
  open() {
    clearTimeout(this.#reconnectTimer);
    if (this.#socket) return;
    this.#on.state("connecting", {});
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    // until the first frame this timer is about the handshake
    this.#pingTimer = setTimeout(() => this.#lose(socket, "no answer"), 2 * REPLY_TIMEOUT);
    socket.onopen = () => this.#connect(socket);
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => {
      const { reason, reconnect } = readAdvice(event.reason);
      this.#lose(socket, reason, { reconnect });
    };
  }

  /** Drop the connection as a lost network would, and come back after a while. */
  cut(delay) {
    if (this.#socket) this.#lose(this.#socket, "cut", { delay });
  }

  /** Run a command on the channel; `onReply(error, result)`, one of them null. */
  call(method, params, onReply) {
    this.#send(method, { channel: this.#channel, ...params }, onReply);
  }

  #connect(socket) {
    this.#send("connect", { token: this.#token }, async (error, result) => {
      if (!error) {
        this.#failures = 0;
        this.client = result.client;
        this.#refreshLater(result);
        this.#subscribe(socket);
        return;
      }
      if (error.code === TOKEN_EXPIRED) await this.#renewToken();
      this.#lose(socket, error.message);
    });
  }

  #subscribe(socket) {
    const before = this.position;
    const params = before ? { recover: true, ...before } : {};
    this.call("subscribe", params, (error, result) => {
      if (error) {
        if (!error.code || error.code === INTERNAL_ERROR) {
          this.#lose(socket, error.message);
        } else {
          this.#on.state("connected", {});
          this.#on.refused(error);
        }
        return;
      }
      const { publications = [], recovered = false, recoverable, offset = 0, epoch } = result;
      this.position = recoverable ? { offset, epoch } : null;
      this.#on.state("connected", {});
      this.#on.subscribed({ again: before !== null, recovered, publications });
    });
  }

  #refreshLater({ expires, ttl }) {
    if (!expires) return;
    this.#refreshTimer = setTimeout(async () => {
      // when this fails the server closes the connection, and the next connect renews the token
      if (!(await this.#renewToken())) return;
      this.#send("refresh", { token: this.#token }, (error, result) => {
        if (!error) this.#refreshLater(result);
      });
    }, ttl * 1000);
  }

  async #renewToken() {
    try {
      this.#token = await this.#fetchToken();
      return true;
    } catch {
      return false;
    }
  }

  #send(method, params, onReply) {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) {
      onReply({ code: 0, message: "not connected" }, null);
      return;
    }
    const id = ++this.#lastId;
    const timer = setTimeout(() => this.#answer(id, { code: 0, message: "no answer" }, null), REPLY_TIMEOUT);
    this.#calls.set(id, { onReply, timer });
    socket.send(JSON.stringify({ id, method: METHODS[method], params }));
  }

  #answer(id, error, result) {
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    clearTimeout(call.timer);
    call.onReply(error, result);
  }

  #receive(frame) {
    this.#pingLater();
    for (const line of frame.split("\n")) {
      if (!line) continue;
      const { id, error = null, result = {} } = JSON.parse(line);
      if (id) this.#answer(id, error, error ? null : result);
      else this.#push(result);
    }
  }

  #push({ type = 0, channel, data }) {
    if (channel !== this.#channel) return;
    if (type === 0 && data.offset && this.position) this.position.offset = data.offset;
    this.#on[PUSHES[type]]?.(data);
  }

  #pingLater() {
    const socket = this.#socket;
    clearTimeout(this.#pingTimer);
    this.#pingTimer = setTimeout(() => {
      this.#send("ping", undefined, (error) => {
        if (error) this.#lose(socket, error.message);
      });
    }, PING_INTERVAL);
  }

  #lose(socket, reason, { reconnect = true, delay = null } = {}) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    clearTimeout(this.#pingTimer);
    clearTimeout(this.#refreshTimer);
    for (const id of [...this.#calls.keys()]) {
      this.#answer(id, { code: 0, message: "connection lost" }, null);
    }
    if (!reconnect) {
      this.#on.state("closed", { reason });
      return;
    }
    delay ??= backOff(this.#failures++);
    this.#reconnectTimer = setTimeout(() => this.open(), delay);
    this.#on.state("waiting", { reason, delay });
  }
}

/** The disconnect advice in the reason of a close frame; without one, come back. */
export function readAdvice(text) {
  try {
    const { reason, reconnect } = JSON.parse(text);
    return { reason: String(reason), reconnect: reconnect === true };
  } catch {
    return { reason: text || "connection lost", reconnect: true };
  }
}

/** Grows exponentially; the random half keeps many clients from coming back at once. */
function backOff(failures) {
  const longest = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures);
  return longest / 2 + (Math.random() * longest) / 2;
}
