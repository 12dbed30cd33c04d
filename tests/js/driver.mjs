// Drives published client builds for tests/js_client.py, which documents the conversation.
//
// Listens on a port of this host, which it prints. Each connection is a conversation about clients
// of its own, which are disconnected when it ends. One JSON command a line comes in, one JSON object
// a line goes out:
//   {"reply": id, "result": ...} or {"reply": id, "error": {code, message}}  to every command
//   {"client": name, "event": ..., "channel"?: ..., "context": ...}          an event
//   {"client": name, "question": "refresh" | "private", "number": n, "data": ...}
//       the client wants a token; answered by the command "answer"
// The process ends with its stdin.

import http from 'node:http';
import Module, { createRequire } from 'node:module';
import net from 'node:net';
import { createInterface } from 'node:readline';

import { WebSocket } from 'ws';

import * as next from './next.mjs';

const require = createRequire(import.meta.url);

// protobufjs uses this package where it finds it; browsers have none
if (process.argv.includes('--as-in-browsers')) {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (name, ...rest) => {
    if (name === 'long') {
      throw new Error('not found');
    }
    return resolve(name, ...rest);
  };
}

// a connection for each request of SockJS, so that a proxy can count them
http.globalAgent = new http.Agent({ keepAlive: false });

// stdout is for the port
console.log = console.info = console.debug = console.error;

const CLIENT_EVENTS = [
  'connect', 'disconnect', 'subscribe', 'unsubscribe', 'publish', 'join', 'leave', 'message',
];
const SUBSCRIPTION_EVENTS = ['subscribe', 'error', 'unsubscribe', 'publish', 'join', 'leave'];

// Protobuf payloads are bytes of JSON, and 64 bit integers are objects.
function plain(value) {
  if (value instanceof Uint8Array) {
    return value.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(value));
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (value !== null && typeof value === 'object') {
    if (typeof value.toNumber === 'function') {
      return value.toNumber();
    }
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  }
  return value;
}

class Driven {
  constructor(name, write, { module, sockjs, url, token, page, options }) {
    this.name = name;
    this.write = write;
    this.binary = module.endsWith('.protobuf.js');
    this.subscriptions = new Map();
    this.questions = new Map();
    this.socket = { opened: 0, sent: 0, received: 0, protocol: null };
    const Centrifuge = require(module);
    this.centrifuge = new Centrifuge(url, {
      ...options,
      ...(sockjs ? { sockjs: require('sockjs-client'), sockjsTransports: [sockjs] } : {
        websocket: countingWebSocket(this.socket),
      }),
      ...(page ? { xmlhttprequest: requestsOf(page) } : {
        onRefresh: (context, answer) => this.ask('refresh', context, answer),
        onPrivateSubscribe: (context, answer) => this.ask('private', context.data, answer),
      }),
    });
    if (token !== null) {
      this.centrifuge.setToken(token);
    }
    for (const event of CLIENT_EVENTS) {
      this.centrifuge.on(event, (context) => this.report(event, context.channel, context));
    }
  }

  report(event, channel, context) {
    this.write({ client: this.name, event, channel, context: plain(context) });
  }

  ask(question, data, answer) {
    const number = this.questions.size + 1;
    this.questions.set(number, answer);
    this.write({ client: this.name, question, number, data });
  }

  payload(data) {
    return this.binary ? new TextEncoder().encode(JSON.stringify(data)) : data;
  }

  subscribe(channel) {
    const known = this.subscriptions.get(channel);
    if (known !== undefined) {
      known.subscribe();
      return;
    }
    const handlers = Object.fromEntries(SUBSCRIPTION_EVENTS.map(
      (event) => [event, (context) => this.report(event, channel, context)],
    ));
    this.subscriptions.set(channel, this.centrifuge.subscribe(channel, handlers));
  }
}

// XMLHttpRequest as scripts of a page have it: with the page's origin and cookies.
function requestsOf({ origin, cookie }) {
  return class {
    withCredentials = false;
    readyState = 0;
    status = 0;
    responseText = '';
    #request;
    #url;
    #abort = new AbortController();

    open(method, url) {
      this.#url = new URL(url, origin);
      this.#request = { method, headers: { origin }, signal: this.#abort.signal };
    }

    setRequestHeader(name, value) {
      this.#request.headers[name] = value;
    }

    abort() {
      this.#abort.abort();
    }

    async send(body) {
      if (this.withCredentials) {
        this.#request.headers.cookie = cookie;
      }
      try {
        const response = await fetch(this.#url, { ...this.#request, body });
        this.responseText = await response.text();
        this.status = response.status;
      } catch {
        this.status = 0; // as for any failure of the network
      }
      this.readyState = 4;
      if (!this.#abort.signal.aborted) {
        this.onreadystatechange();
      }
    }
  };
}

function countingWebSocket(counts) {
  return class extends WebSocket {
    constructor(...handshake) {
      super(...handshake);
      counts.opened += 1;
      this.on('open', () => { counts.protocol = this.protocol; });
      this.on('message', () => { counts.received += 1; });
    }

    send(...frame) {
      counts.sent += 1;
      super.send(...frame);
    }
  };
}

const ACTIONS = {
  connect: (client) => client.centrifuge.connect(),
  disconnect: (client) => client.centrifuge.disconnect(),
  subscribe: (client, { channel }) => client.subscribe(channel),
  unsubscribe: (client, { channel }) => client.subscriptions.get(channel).unsubscribe(),
  publish: (client, { channel, data }) => client.centrifuge.publish(channel, client.payload(data)),
  presence: (client, { channel }) => client.centrifuge.presence(channel),
  presenceStats: (client, { channel }) => client.centrifuge.presenceStats(channel),
  history: (client, { channel }) => client.centrifuge.history(channel),
  rpc: (client, { method, data }) => client.centrifuge.namedRPC(method, client.payload(data)),
  send: (client, { data }) => client.centrifuge.send(client.payload(data)),
  startBatching: (client) => client.centrifuge.startBatching(),
  stopBatching: (client) => client.centrifuge.stopBatching(),
  startSubscribeBatching: (client) => client.centrifuge.startSubscribeBatching(),
  stopSubscribeBatching: (client) => client.centrifuge.stopSubscribeBatching(),
  socket: (client) => client.socket,
  answer: (client, { number, response }) => client.questions.get(number)(response),
};

function make(name, write, params) {
  if (params.generation !== 2) {
    return new Driven(name, write, params);
  }
  const counts = { opened: 0, sent: 0, received: 0, protocol: null };
  const websocket = { counts, made: countingWebSocket(counts) };
  return new next.Driven(name, { write, plain, require, websocket }, params);
}

class Conversation {
  constructor(socket) {
    this.clients = new Map();
    this.socket = socket;
    const lines = createInterface({ input: socket });
    lines.on('line', (line) => this.run(JSON.parse(line)));
    lines.on('close', () => this.end());
    lines.on('error', () => this.end()); // the test is over, whatever it left unread
    socket.on('error', () => this.end());
  }

  write = (object) => {
    if (this.socket.writable) {
      this.socket.write(JSON.stringify(object) + '\n');
    }
  };

  async run({ id, client, action, params }) {
    try {
      if (action === 'create') {
        this.clients.set(client, make(client, this.write, params));
        this.write({ reply: id, result: null });
        return;
      }
      const driven = this.clients.get(client);
      const actions = driven instanceof next.Driven ? next.ACTIONS : ACTIONS;
      const result = await actions[action](driven, params);
      this.write({ reply: id, result: plain(result) ?? null });
    } catch (error) {
      if (error instanceof Error && error.code === undefined) {
        throw error; // a mistake of ours or the client's: end loudly
      }
      this.write({ reply: id, error: { code: error.code, message: error.message } });
    }
  }

  end() {
    this.socket.destroy();
    for (const { centrifuge } of this.clients.values()) {
      centrifuge.disconnect();
    }
    this.clients.clear();
  }
}

const server = net.createServer((socket) => new Conversation(socket));
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
