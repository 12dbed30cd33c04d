// @ts-check
// A client of the service for browsers: one connection, any number of channels.
//
//   import { Client } from "realtime"; // with {% realtime_importmap %}, or the URL of this file
//
//   const client = new Client();
//   const lobby = client.subscribe("chat:lobby");
//   lobby.on("publication", ({ data }) => console.log(data));
//   client.connect();
//
// It reconnects with a growing delay, restores subscriptions and recovers the publications that
// they missed, refreshes tokens, notices dead connections, and uses HTTP where the network blocks
// WebSocket.
//
// Inside, replies are given to functions; only callers get promises. One frame may hold several
// messages, and a reply must be handled before the pushes that follow it. Commands of one turn of
// the event loop leave in one frame.

const METHOD = {
  connect: 0,
  subscribe: 1,
  unsubscribe: 2,
  publish: 3,
  presence: 4,
  presence_stats: 5,
  history: 6,
  ping: 7,
  send: 8,
  rpc: 9,
  refresh: 10,
  sub_refresh: 11,
};
const PUSH = { publication: 0, unsub: 3, message: 4, sub: 5 };
/** @type {Record<number, "join" | "leave">} by the type of the push */
const MEMBER_EVENTS = { 1: "join", 2: "leave" };

// numbers in the minified module, which has no byte for their names
const TIMEOUT = 1;
const CONNECTION_LOST = 2;
const DISCONNECTED = 3;
const UNSUBSCRIBED = 4;
const OVERFLOW = 5;
const TOKEN = 6;
const LOAD = 7;
const INTERNAL = 100;
const PERMISSION_DENIED = 103;
const ALREADY_SUBSCRIBED = 105;
const TOKEN_EXPIRED = 109;
const EXPIRED = 110;

/** Codes from 100 on come from the server, those from 1000 on from functions of the site. */
export const ErrorCode = Object.freeze({
  /** No reply in time. A publication may have been published all the same. */
  TIMEOUT,
  /** The connection was lost before the reply came. */
  CONNECTION_LOST,
  /** The client is disconnected and does not try to reconnect. */
  DISCONNECTED,
  /** The subscription ended, or does not exist. */
  UNSUBSCRIBED,
  /** A loop over a subscription is too far behind. */
  OVERFLOW,
  /** The application's function for tokens failed. */
  TOKEN,
  /** The application's function that loads the state failed. */
  LOAD,

  INTERNAL,
  PERMISSION_DENIED,
  ALREADY_SUBSCRIBED,
  TOKEN_EXPIRED,
  EXPIRED,
});

/** @type {number[]} EXPIRED: the token expired while the server handled the command. */
const EXPIRED_TOKEN = [TOKEN_EXPIRED, EXPIRED];
const DISCONNECT_EXPIRED = 3005;
const DISCONNECT_INSUFFICIENT_STATE = 3010;
/** Final, also when an ASGI server or a reverse proxy has dropped the advice in the reason. */
const FINAL_DISCONNECTS = [3002, 3003, 3007, 3012, 3013];

// milliseconds
const TIMEOUTS = { open: 10_000, command: 5_000, ping: 5_000, token: 10_000, load: 30_000 };
const DEFAULTS = {
  minDelay: 500,
  maxDelay: 20_000,
  pingInterval: 25_000,
  privateChannelPrefix: "$",
};
const LONGEST_TIMER = 2 ** 31 - 1;
/** Milliseconds for which a fallback that works is preferred to a WebSocket that never did. */
const FALLBACK_KEPT = 300_000;

/** Failed attempts in a row to open a WebSocket, after which the fallback is tried. */
const FALLBACK_AFTER = 2;
/** The same for a client whose WebSocket has worked: the server may be restarting. */
const FALLBACK_AFTER_WORKING = 4;
/** The server refuses frames above 65536 bytes; a character has three bytes at most. */
const FRAME_CHARACTERS = 20_000;
/** Largest number of publications that wait for a slow loop, or for a state that is loaded. */
const LOOP_LIMIT = 1000;
/** The same for a state, at most: the limit doubles each time that more came. */
const HELD_LIMIT = 16 * LOOP_LIMIT;
/** Earlier names of events, which go on for one release, and the present ones. */
const RENAMED = { publish: "publication", subscribe: "subscribed" };
/** Events of the window after which the connection may be dead, or possible again. */
const WAKE_EVENTS = ["online", "offline", "pageshow", "pagehide", "visibilitychange"];
/** Milliseconds until a page that was reloaded is reloaded again: a cache may give an old one. */
const RELOAD_INTERVAL = 60_000;

/**
 * @typedef {"disconnected" | "connecting" | "connected"} State
 * @typedef {"unsubscribed" | "subscribing" | "subscribed"} SubscriptionState
 * @typedef {"websocket" | "eventsource"} TransportName
 *
 * @typedef {object} Position a place in a channel
 * @property {number} offset of the last publication received; 0: none
 * @property {string} epoch
 *
 * @typedef {object} ClientInfo
 * @property {string} user user ID; "" for anonymous users
 * @property {string} client client ID
 * @property {any} [connInfo] what the site attached to the connection; earlier `conn_info`
 * @property {any} [chanInfo] what it attached to the subscription; earlier `chan_info`
 *
 * @typedef {object} Publication
 * @property {string} channel
 * @property {any} data
 * @property {ClientInfo} [info] the publisher, when it is a client
 * @property {number} [offset] in channels with history
 * @property {Record<string, string>} [tags] what the publisher gave with it, by name
 * @property {string} [uid]
 * @property {boolean} recovered whether it was missed and received after a reconnect
 *
 * @typedef {{ client: string, version: string, data: any, transport: TransportName }} ConnectContext
 * @typedef {{ code: number, reason: string, reconnect: boolean }} DisconnectContext
 *
 * @typedef {object} StateContext
 * @property {State} state
 * @property {boolean} reconnecting whether the client tries to reconnect
 * @property {string} reason why it is disconnected; else ""
 * @property {number | null} delay milliseconds until the next attempt; null: none is planned
 *
 * @typedef {object} SubscribeContext
 * @property {string} channel
 * @property {boolean} isResubscribe restored after a reconnect
 * @property {boolean} recoverable
 * @property {boolean} recovered whether all missed publications are in `publications`
 * @property {Publication[]} publications oldest first; each is an event `publication`, too
 *
 * @typedef {object} LeftContext why a channel is not subscribed any more, or not yet
 * @property {string} channel
 * @property {number} code of the error or of the disconnect; UNSUBSCRIBED: by the page, 2000: by
 *   the server; 0: the page has asked for it
 * @property {string} reason
 *
 * @typedef {{ channel: string, info: ClientInfo }} MemberContext
 *
 * @typedef {{ sent?: string, received?: string }} FrameContext for tools: a command that leaves, or
 *   a frame that came, as text
 *
 * @typedef {object} ClientEvents
 * @property {StateContext} state
 * @property {ConnectContext} connect
 * @property {DisconnectContext} disconnect
 * @property {RealtimeError} error
 * @property {{ data: any }} message
 * @property {FrameContext} frame
 * @property {Publication} publication of server-side subscriptions, as are the following
 * @property {MemberContext} join
 * @property {MemberContext} leave
 * @property {LeftContext} subscribing
 * @property {SubscribeContext} subscribed
 * @property {LeftContext} unsubscribed
 * @property {Publication} publish the earlier name of `publication`
 * @property {SubscribeContext} subscribe the earlier name of `subscribed`
 * @property {LeftContext} unsubscribe earlier: after `subscribed`, one of the two others
 *
 * @typedef {object} SubscriptionEvents
 * @property {Publication} publication
 * @property {MemberContext} join
 * @property {MemberContext} leave
 * @property {LeftContext} subscribing
 * @property {SubscribeContext} subscribed
 * @property {LeftContext} unsubscribed
 * @property {RealtimeError} error
 * @property {Publication} publish the earlier name of `publication`
 * @property {SubscribeContext} subscribe the earlier name of `subscribed`
 * @property {LeftContext} unsubscribe earlier: after `subscribed`, one of the two others
 *
 * @typedef {object} HandlerOptions
 * @property {AbortSignal | undefined} [signal] ends it
 * @property {boolean} [once] whether it ends with the first event
 *
 * @typedef {object} WaitOptions
 * @property {number} [timeout] milliseconds; then the error has the code TIMEOUT
 * @property {AbortSignal | undefined} [signal] ends the waiting, and its reason is thrown
 *
 * @typedef {object} HistoryOptions
 * @property {number} [limit] publications at most
 * @property {Position} [since] those after this position; reverse: those before
 * @property {boolean} [reverse] newest first
 *
 * @typedef {{ numClients: number, numUsers: number }} PresenceStats
 *
 * @typedef {() => Promise<string | null> | string | null} GetToken empty: stop connecting
 *
 * @callback GetChannelToken
 * @param {{ client: string, channels: string[] }} asked client ID and private channels
 * @returns {Promise<Record<string, string>>} tokens by channel; a missing one means denied
 *
 * @callback GetSubscriptionToken
 * @param {{ client: string, channel: string }} asked
 * @returns {Promise<string | null> | string | null} empty means denied
 *
 * @typedef {object} Options
 * @property {string | null} [token] connection token; "" if the server knows the visitor without
 *   one. Default: `getToken` is called first
 * @property {GetToken} [getToken] returns a connection token, at first and when one expires
 * @property {GetChannelToken} [getChannelToken] returns tokens of several private channels
 * @property {any} [data] for the site's connect hook
 * @property {string} [name] of this client, for the same hook
 * @property {string} [version]
 * @property {Partial<typeof TIMEOUTS>} [timeouts] milliseconds: `open` a transport, `command`,
 *   `ping`, `token` and `load` (the application's functions)
 * @property {number} [minDelay] milliseconds before the first attempt to reconnect
 * @property {number} [maxDelay]
 * @property {number} [pingInterval] milliseconds of silence, then the connection is tested
 * @property {boolean | string} [fallback] the SockJS URL; true: next to that of the WebSocket
 * @property {TransportName[]} [transports] the transports that may be used
 * @property {string} [privateChannelPrefix]
 *
 * @typedef {object} SubscriptionOptions
 * @property {GetSubscriptionToken} [getToken] instead of the client's `getChannelToken`
 * @property {Position} [since] recover the publications after this position
 * @property {any} [data]
 * @property {Flow} [flow] for modules of this package: several commands subscribe
 *
 * @callback Flow called before the first command, and after each reply
 * @param {RealtimeError | null} [error]
 * @param {any} [result]
 * @returns {object | void} params that the next command changes; none: the reply is the last one
 *
 * @typedef {object} PageOptions
 * @property {(publication: Publication) => void} publish gets what the state does not have, in order
 * @property {(context: { channel: string, signal: AbortSignal }) => any} [load] loads and shows the
 *   state anew, when there is no position or publications after it are missing. What comes meanwhile
 *   is kept back, and given to `publish` afterwards; not what a returned position, or Response with a
 *   position, covers. After a failure, such as a Response with an error, it is called again; the
 *   signal is aborted before that and by `unsubscribe()`, and the state must not be shown then
 * @property {() => void} [reload] instead of `load`: replaces the page. Default: location.reload()
 * @property {Position | null} [since] instead of the position in the page
 * @property {GetSubscriptionToken} [getToken] instead of the token in the page
 * @property {any} [data]
 *
 * @typedef {object} Listener functions that a transport calls
 * @property {() => void} onopen
 * @property {(frame: string) => void} onframe "" for a heartbeat
 * @property {(code: number, reason: string) => void} onclose never after `close()`
 *
 * @typedef {object} Transport
 * @property {(frame: string) => void} send
 * @property {() => void} close
 *
 * @typedef {(error: RealtimeError | null, result: any) => void} OnReply
 * @typedef {ReturnType<typeof setTimeout> | undefined} Timer
 * @typedef {{ resolve: () => void, reject: (error: unknown) => void }} Waiter
 * @typedef {object} Loop a loop over the publications of a channel
 * @property {Publication[]} buffer
 * @property {number} limit
 * @property {boolean} ended
 * @property {RealtimeError | null} error why it ended
 * @property {() => void} wake
 */

/** Why a command, a subscription or a connection failed. */
export class RealtimeError extends Error {
  /**
   * @param {number} code see ErrorCode
   * @param {string} message
   * @param {{ channel?: string | undefined, temporary?: boolean, cause?: unknown }} [more]
   */
  constructor(code, message, { channel, temporary = false, cause } = {}) {
    super(message, { cause });
    this.name = "RealtimeError";
    this.code = code;
    this.channel = channel;
    /** Whether the client retries by itself. */
    this.temporary = temporary;
  }
}

/**
 * Returns functions that get tokens from views of the site, such as those of `realtime.urls`.
 *
 * @param {object} urls
 * @param {string} [urls.refresh] for connection tokens
 * @param {string} [urls.subscribe] for tokens of private channels
 * @param {Record<string, string>} [urls.headers] more headers, such as X-CSRFToken
 * @returns {{ getToken?: GetToken, getChannelToken?: GetChannelToken }}
 */
export function tokensFrom({ refresh, subscribe, headers = {} }) {
  /** @type {(url: string, body: object) => Promise<any>} */
  async function ask(url, body) {
    const response = await fetch(url, {
      method: "POST",
      credentials: "include",
      // the views refuse requests that a page of another origin can send without permission
      headers: {
        "Content-Type": "application/json",
        "X-Requested-With": "XMLHttpRequest",
        ...headers,
      },
      body: JSON.stringify(body),
    });
    return answered(response).json();
  }
  return {
    ...(refresh && { getToken: async () => (await ask(refresh, {})).token }),
    ...(subscribe && {
      getChannelToken: async (asked) => {
        const { channels } = await ask(subscribe, asked);
        return Object.fromEntries(
          channels.map((/** @type {any} */ { channel, token }) => [channel, token]),
        );
      },
    }),
  };
}

/**
 * Returns the position of a channel in the header `Realtime-Position`; null without one.
 *
 * @param {Response} response
 * @param {string} channel
 * @returns {Position | null}
 */
export function positionOf(response, channel) {
  try {
    const values = JSON.parse(`[${response.headers.get("Realtime-Position") ?? ""}]`);
    return positionIn(values.find((/** @type {any} */ each) => each.channel === channel));
  } catch {
    return null; // something on the way has changed it
  }
}

/** @template {object} Events */
class Emitter {
  /** @type {Map<keyof Events, Map<(context: any) => void, { once: boolean, off: () => void }>>} */
  #handlers = new Map();

  /**
   * Call a function for every event of a name. For a function that is called already, the newest
   * call of `on` says when that ends.
   *
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(context: Events[Name]) => void} handler
   * @param {HandlerOptions} [options]
   * @returns {() => void} stops it
   */
  on(name, handler, { signal, once = false } = {}) {
    const present = presentName(name);
    const handlers = this.#handlers.get(present) ?? new Map();
    const off = () => {
      signal?.removeEventListener("abort", off);
      if (handlers.get(handler)?.off === off) handlers.delete(handler);
    };
    if (!signal?.aborted) {
      this.#handlers.set(present, handlers.set(handler, { once, off }));
      signal?.addEventListener("abort", off);
    }
    return off;
  }

  /**
   * Call a function for the next event of a name.
   *
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(context: Events[Name]) => void} handler
   * @param {HandlerOptions} [options]
   * @returns {() => void} stops it
   */
  once(name, handler, options) {
    return this.on(name, handler, { ...options, once: true });
  }

  /**
   * Do not call a function any more.
   *
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {(context: Events[Name]) => void} handler
   */
  off(name, handler) {
    this.#handlers.get(presentName(name))?.get(handler)?.off();
  }

  /** @internal */
  _offAll() {
    for (const handlers of this.#handlers.values()) for (const { off } of handlers.values()) off();
  }

  /**
   * @internal
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {Events[Name]} context
   */
  _emit(name, context) {
    const handlers = this.#handlers.get(name);
    for (const [handler] of [...(handlers ?? [])]) {
      const entry = handlers?.get(handler);
      if (!entry) continue; // one before it has ended it
      if (entry.once) entry.off();
      try {
        handler(context);
      } catch (error) {
        // an error of the page goes to its console and window.onerror, and stops nothing here
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/**
 * What a client and a subscription emit about channels.
 *
 * @template {ClientEvents | SubscriptionEvents} Events
 * @extends {Emitter<Events>}
 */
class ChannelEmitter extends Emitter {
  /** @internal @param {number} type @param {string} channel @param {any} data */
  _member(type, channel, { info }) {
    const name = MEMBER_EVENTS[type];
    if (name) this._emit(name, /** @type {any} */ ({ channel, info: camelCase(info) }));
  }

  /**
   * @internal
   * @param {"subscribing" | "unsubscribed"} name
   * @param {LeftContext} context
   * @param {boolean} wasSubscribed
   */
  _leave(name, context, wasSubscribed) {
    this._emit(name, /** @type {any} */ (context));
    if (wasSubscribed) this._emit("unsubscribe", /** @type {any} */ (context));
  }
}

/**
 * A connection that is restored when it is lost, and its channels.
 *
 * @extends {ChannelEmitter<ClientEvents>}
 */
export class Client extends ChannelEmitter {
  /** @internal @type {Options & typeof DEFAULTS & { timeouts: typeof TIMEOUTS }} */
  _options;
  #url;
  /** @type {string | null} */
  #fallback;
  /** @type {string | null | undefined} undefined: call `getToken` */
  #token;
  /** @type {State} */
  #state = "disconnected";
  #reconnecting = false;
  /** @internal Whether the last connection was final, and `connect()` was not called since. */
  _stayingAway = false;
  #id = "";

  /** A new object for each attempt: results of work that began in an earlier one are dropped. */
  #life = {};
  /** @type {Transport | null} */
  #transport = null;
  /** @type {TransportName} */
  #using = "websocket";
  #worked = false;
  /** Whether a WebSocket of this client has worked. */
  #socketWorked = false;
  /** Failed attempts in a row to open a WebSocket. */
  #blocked = 0;
  #keepFallbackUntil = 0;

  /** @type {Map<number, { _onReply: OnReply, timer: Timer }>} */
  #calls = new Map();
  #waiting = new Waiting();
  /** @type {string[]} */
  #outgoing = [];
  /** @type {string[]} Messages, the first `#handled` done; shift() is slow in long arrays. */
  #inbox = [];
  #handled = 0;
  #answered = false;
  #paused = false;
  #lastId = 0;

  /** @type {Map<string, Subscription>} */
  #subscriptions = new Map();
  /** @type {Map<string, Stream>} */
  #serverSide = new Map();
  /** @type {{ channel: string, resolve: (token: string) => void, reject: (e: unknown) => void }[]} */
  #asked = [];

  #backOff;
  #refreshBackOff;
  /** @type {Timer} */
  #retryTimer;
  /** @type {Timer} */
  #openTimer;
  /** @type {Timer} */
  #pingTimer;
  /** @type {Timer} */
  #refreshTimer;

  /**
   * @param {string | URL} [url] of the WebSocket; a path is on the page's host
   * @param {Options} [options]
   */
  constructor(url = "/connection/websocket", options = {}) {
    super();
    const { fallback = true, transports = ["websocket", "eventsource"] } = options;
    const socket = new URL(url, globalThis.location?.href);
    socket.protocol = socket.protocol.replace("http", "ws");
    this.#url = transports.includes("websocket") ? socket.href : null;
    const beside = typeof fallback === "string" ? fallback : "sockjs";
    const sockjs = new URL(beside, socket.href.replace("ws", "http"));
    this.#fallback =
      fallback && transports.includes("eventsource") ? sockjs.href.replace(/\/$/, "") : null;
    if (!this.#url && !this.#fallback) throw new TypeError("no transport");
    this._options = { ...DEFAULTS, ...options, timeouts: { ...TIMEOUTS, ...options.timeouts } };
    this.#token = options.token ?? undefined;
    this.#backOff = new BackOff(this._options);
    this.#refreshBackOff = new BackOff(this._options);
    /** @type {any} */ (globalThis).realtimeInspector?.(this); // {% realtime_inspector %} in the page
  }

  /**
   * Returns a client with the URL and the token in the page's `{% realtime_config %}`.
   *
   * @param {Options} [options] override those of the page
   */
  static fromPage(options = {}) {
    const element = document.getElementById("realtime-config");
    if (!element) throw new Error("the page has no {% realtime_config %}");
    const { endpoint, token, refreshEndpoint, subscribeEndpoint } = JSON.parse(
      element.textContent ?? "",
    );
    const views = tokensFrom({ refresh: refreshEndpoint, subscribe: subscribeEndpoint });
    return new Client(endpoint, { token, ...views, ...options });
  }

  get state() {
    return this.#state;
  }

  /** Whether the client tries to reconnect. */
  get reconnecting() {
    return this.#reconnecting;
  }

  /** The client ID; "" while there is no connection. */
  get id() {
    return this.#id;
  }

  /** The transport in use; null while there is no connection. */
  get transport() {
    return this.#state === "connected" ? this.#using : null;
  }

  /** The subscriptions that the page has made. Server-side subscriptions are not among them. */
  get subscriptions() {
    return [...this.#subscriptions.values()];
  }

  /** Connect, and reconnect when the connection is lost. While waiting to reconnect: try now. */
  connect() {
    if (this.#state !== "disconnected") return;
    for (const name of WAKE_EVENTS) globalThis.addEventListener?.(name, this.#wake);
    this._stayingAway = false;
    this.#attempt(); // first: functions that hear of changes may connect or disconnect
    this.#changed(ASKED);
  }

  /** Close the connection, and do not reconnect until `connect()` is called. */
  disconnect() {
    if (this.#state === "disconnected" && !this.#reconnecting) return;
    this.#flush();
    this._lose({ code: DISCONNECTED, reason: "client", reconnect: false });
  }

  /**
   * Resolves when the client is connected; rejects when it gives up.
   *
   * @param {WaitOptions} [options]
   * @returns {Promise<void>}
   */
  async ready(options) {
    if (this.#state !== "connected") await this.#waiting.wait(options);
  }

  /** Use another connection token from the next connect on. @param {string} token */
  setToken(token) {
    this.#token = token;
  }

  /**
   * Subscribe to a channel, on this connection and on all later ones.
   *
   * @param {string} channel
   * @param {SubscriptionOptions} [options] ignored if the client has the channel already
   */
  subscribe(channel, options = {}) {
    const subscription =
      this.#subscriptions.get(channel) ?? new Subscription(this, checked(channel), options);
    subscription.subscribe();
    return subscription;
  }

  /**
   * Share a subscription with other parts of the page. It ends when all have released it, unless
   * `subscribe()` made it, too.
   *
   * @param {string} channel
   * @param {SubscriptionOptions} [options] ignored if the client has the channel already
   */
  channel(channel, options) {
    let subscription = this.#subscriptions.get(channel);
    if (!subscription) {
      subscription = this.subscribe(channel, options);
      subscription._kept = false;
    }
    return new ChannelHandle(subscription);
  }

  /**
   * Subscribe to a channel of the page, from the position in its `{% realtime_channel %}` on, and
   * connect.
   *
   * @param {string} name of the channel, or what the tag says after `as=`
   * @param {PageOptions} options
   */
  page(name, options) {
    const { channel, position, token } = inPage(name);
    const { since = position, data, getToken = token && this.#tokenOfPage(token) } = options;
    const before = this.#subscriptions.get(channel);
    const subscription = this.subscribe(channel, {
      ...(since && { since }),
      ...(getToken && { getToken }),
      data,
    });
    new Block(this, subscription, options, since, before !== undefined);
    if (this.#state === "disconnected" && !this.#reconnecting) this.connect();
    return subscription;
  }

  /** The token in the page at first, then those of `getChannelToken` if there is one.
   * @param {string} token @returns {GetSubscriptionToken} */
  #tokenOfPage(token) {
    let used = false;
    return ({ channel }) => {
      if (used && this._options.getChannelToken) return this._channelToken(channel);
      used = true;
      return token;
    };
  }

  /** @param {string} channel @param {any} data @param {object} [more] params @returns {Promise<void>} */
  async publish(channel, data, more) {
    if (data === undefined) throw new TypeError("data must not be undefined");
    await this.#request(METHOD.publish, { channel: checked(channel), data, ...more });
  }

  /** Returns the subscribers, by client ID. @param {string} channel */
  async presence(channel) {
    const { presence } = await this.#request(METHOD.presence, { channel: checked(channel) });
    Object.values(presence).forEach(camelCase);
    return /** @type {Record<string, ClientInfo>} */ (presence);
  }

  /** @param {string} channel @returns {Promise<PresenceStats>} */
  async presenceStats(channel) {
    return camelCase(await this.#request(METHOD.presence_stats, { channel: checked(channel) }));
  }

  /**
   * Returns history, oldest first.
   *
   * @param {string} channel
   * @param {HistoryOptions & WaitOptions} [options]
   * @returns {Promise<Publication[]>}
   */
  async history(channel, { limit, since, reverse, ...options } = {}) {
    // other clients of this generation get all, whatever they ask for, so the part has a name of its own
    const params = { channel: checked(channel), part: { limit, since, reverse } };
    const result = await this.#request(METHOD.history, params, options);
    return result.publications.map((/** @type {any} */ each) => toPublication(channel, each));
  }

  /**
   * Call a function of the site.
   *
   * @param {string} method
   * @param {any} [data]
   * @param {WaitOptions} [options]
   * @returns {Promise<any>}
   */
  async rpc(method, data, options) {
    return (await this.#request(METHOD.rpc, { method, data }, options)).data;
  }

  /** Send a message without a reply; it may be lost with the connection. @param {any} data */
  send(data) {
    if (this.#state !== "connected") throw disconnected();
    this.#queue({ method: METHOD.send, params: { data } });
  }

  // connecting

  async #attempt() {
    clearTimeout(this.#retryTimer);
    const life = (this.#life = {});
    this.#become("connecting");
    if (life !== this.#life) return;
    if (this.#token === undefined && this._options.getToken) {
      const renewed = await this.#renewToken((error) => {
        this._lose({ code: error.code, reason: error.message, reconnect: true });
        this._emit("error", error);
      });
      if (!renewed) return;
    }
    const fallbackFirst = this.#fallback && Date.now() < this.#keepFallbackUntil;
    this.#open(this.#url && !fallbackFirst ? "websocket" : "eventsource");
  }

  /** @param {TransportName} name */
  #open(name) {
    this.#using = name;
    this.#worked = false;
    this.#openTimer = setTimeout(
      () => this.#broken(advice("no answer"), true),
      this._options.timeouts.open,
    );
    const listener = {
      onopen: () => {
        clearTimeout(this.#openTimer);
        this.#login();
      },
      onframe: (/** @type {string} */ frame) => this.#receive(frame),
      onclose: (/** @type {number} */ code, /** @type {string} */ reason) => {
        const transport = this.#transport;
        this.#handle(false);
        if (transport === this.#transport) this.#broken(readAdvice(code, reason));
      },
    };
    try {
      this.#transport =
        name === "websocket"
          ? new WebSocketTransport(/** @type {string} */ (this.#url), listener)
          : new EventSourceTransport(/** @type {string} */ (this.#fallback), listener);
    } catch (error) {
      this.#broken(advice(String(error)));
    }
  }

  /**
   * The transport failed. A WebSocket that never worked may be blocked, so try the fallback at
   * once: a server that is reached only there is not simply down.
   *
   * @param {DisconnectContext} lost
   * @param {boolean} [hung] nothing was received at all
   */
  #broken(lost, hung = false) {
    if (this.#worked || lost.code >= 3000) {
      this._lose(lost);
      return;
    }
    if (this.#using === "eventsource") {
      this.#keepFallbackUntil = 0;
      // the server is down: that says nothing about WebSocket
      if (this.#socketWorked) this.#blocked = 0;
    } else {
      // an attempt that hung took long, so it counts as several
      this.#blocked += hung ? FALLBACK_AFTER : 1;
      const limit = this.#socketWorked ? FALLBACK_AFTER_WORKING : FALLBACK_AFTER;
      if (this.#fallback && this.#blocked >= limit) {
        this.#drop();
        this.#open("eventsource");
        return;
      }
    }
    this._lose(lost);
  }

  #login() {
    const { data, name, version } = this._options;
    /** @type {Record<string, object>} */
    const subs = {};
    for (const [channel, { position }] of this.#serverSide) subs[channel] = recovery(position);
    const params = { token: this.#token || undefined, data, subs, name, version };
    this._command(METHOD.connect, params, (error, result) => {
      if (!error) {
        this.#connected(result);
      } else if (error.code === TIMEOUT) {
        this.#broken(advice(error.message), true);
      } else if (error.code !== CONNECTION_LOST) {
        const renewable = this.#renewable;
        if (error.code === TOKEN_EXPIRED && renewable) this.#token = undefined;
        error.temporary = error.code !== TOKEN_EXPIRED || renewable;
        this._lose({ code: error.code, reason: error.message, reconnect: error.temporary });
        this._emit("error", error);
      }
    });
  }

  /** @param {any} result */
  #connected(result) {
    const life = this.#life;
    this.#id = result.client;
    this.#reconnecting = false;
    this.#backOff.reset();
    const keep = this.#using === "eventsource" && !this.#socketWorked;
    if (keep && Date.now() >= this.#keepFallbackUntil) {
      this.#keepFallbackUntil = Date.now() + FALLBACK_KEPT;
    }
    this.#refreshLater(result);
    this.#pingLater();
    this.#become("connected", () => {
      for (const subscription of this.#subscriptions.values()) subscription._start();
      this.#waiting.end();
    });
    if (life !== this.#life) return;
    const { client, version, data } = result;
    this._emit("connect", { client, version, data, transport: this.#using });
    if (life !== this.#life) return;
    const subs = result.subs ?? {};
    for (const channel of this.#serverSide.keys()) {
      if (!Object.hasOwn(subs, channel)) this.#serverUnsubscribed(channel);
    }
    for (const [channel, sub] of Object.entries(subs)) {
      if (life === this.#life) this.#serverSubscribed(channel, sub);
    }
  }

  /** @type {boolean} */
  get #renewable() {
    // a visitor who connects without a token is known by other means
    return this._options.getToken !== undefined && this.#token !== "";
  }

  /**
   * Get a connection token from the application.
   *
   * @param {(error: RealtimeError) => void} onFailure
   * @returns {Promise<boolean>} whether there is a token
   */
  async #renewToken(onFailure) {
    const life = this.#life;
    let token;
    try {
      token = await within(() => this._options.getToken?.(), this._options.timeouts.token);
    } catch (cause) {
      if (life === this.#life) onFailure(siteFailed(TOKEN, cause));
      return false;
    }
    if (life !== this.#life) return false;
    if (!token) {
      this._lose({ code: TOKEN, reason: "no token", reconnect: false });
      return false;
    }
    this.#token = token;
    return true;
  }

  /** @param {{ expires?: boolean, ttl?: number }} result */
  #refreshLater({ expires, ttl }) {
    clearTimeout(this.#refreshTimer);
    this.#refreshBackOff.reset();
    if (expires && this.#renewable) {
      this.#refreshTimer = setTimeout(() => this.#refresh(), untilRefresh(ttl));
    }
  }

  /** Refresh the connection, and retry after a failure. The server decides whether to close. */
  async #refresh() {
    const life = this.#life;
    const retry = (/** @type {RealtimeError} */ error) => {
      error.temporary = true;
      this.#refreshTimer = setTimeout(() => this.#refresh(), this.#refreshBackOff.next());
      this._emit("error", error);
    };
    if (!(await this.#renewToken(retry))) return;
    this._command(METHOD.refresh, { token: this.#token }, (error, result) => {
      if (life !== this.#life) return;
      if (error) retry(error);
      else this.#refreshLater(result);
    });
  }

  // losing the connection

  /**
   * End everything that belongs to the connection, then emit events.
   *
   * @internal
   * @param {DisconnectContext} lost
   */
  _lose({ code, reason, reconnect }) {
    const announced = this.#reconnecting; // one event per loss, however many attempts fail
    const serverSide = [...this.#serverSide].filter(([, stream]) => stream.end());
    for (const each of this.#subscriptions.values()) each._lost(!reconnect);
    this.#life = {};
    this.#id = "";
    this.#reconnecting = reconnect;
    this._stayingAway = !reconnect;
    if (code === DISCONNECT_EXPIRED && this.#renewable) this.#token = undefined;
    clearTimeout(this.#retryTimer);
    const delay = reconnect ? this.#backOff.next() : null;
    if (delay !== null) {
      this.#retryTimer = setTimeout(() => this.#attempt(), delay);
    } else {
      for (const name of WAKE_EVENTS) globalThis.removeEventListener?.(name, this.#wake);
      this.#waiting.end(disconnected(reason));
    }
    this.#drop();
    this.#become("disconnected", undefined, { reason, delay });
    this.#changed({ code, reason });
    for (const [channel] of serverSide) {
      this._leave(reconnect ? "subscribing" : "unsubscribed", { channel, code, reason }, true);
    }
    if (!announced) this._emit("disconnect", { code, reason, reconnect });
    if (!reconnect && code !== DISCONNECTED) warn({ code, reason });
  }

  /** Drop the transport and the commands sent through it. */
  #drop() {
    clearTimeout(this.#openTimer);
    clearTimeout(this.#pingTimer);
    clearTimeout(this.#refreshTimer);
    this.#transport?.close();
    this.#transport = null;
    this.#outgoing = [];
    this.#inbox = [];
    this.#handled = 0;
    this.#paused = false;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const { _onReply, timer } of calls) {
      clearTimeout(timer);
      _onReply(new RealtimeError(CONNECTION_LOST, "connection lost"), null);
    }
  }

  /**
   * @param {State} state
   * @param {() => void} [first] called in this state, before the event
   * @param {{ reason: string, delay: number | null }} [why]
   */
  #become(state, first, { reason, delay } = { reason: "", delay: null }) {
    this.#state = state;
    first?.();
    this._emit("state", { state, reconnecting: this.#reconnecting, reason, delay });
  }

  /** Have subscriptions emit the events of states that have changed.
   * @param {{ code: number, reason: string }} why */
  #changed(why) {
    for (const subscription of [...this.#subscriptions.values()]) subscription._changed(why);
  }

  /** The network has changed, or the page is seen again or kept by the browser for later. */
  #wake = (/** @type {Partial<PageTransitionEvent>} */ { type, persisted }) => {
    if (type === "pagehide") {
      // some browsers keep no page that has a connection
      if (persisted && this.#transport) this._lose(advice("page hidden"));
    } else if (type === "visibilitychange" && globalThis.document?.hidden) {
      return;
    } else if (this.#state === "connected") {
      this.ping();
    } else if (this.#reconnecting && globalThis.navigator?.onLine !== false) {
      this.connect();
    }
  };

  // commands

  /**
   * Run a command for a caller. It waits for a connection while the client reconnects.
   *
   * @param {number} method
   * @param {object} params
   * @param {WaitOptions} [options]
   * @returns {Promise<any>}
   */
  async #request(method, params, { timeout = this._options.timeouts.command, signal } = {}) {
    if (this.#state === "disconnected" && !this.#reconnecting) throw disconnected();
    if (this.#state !== "connected") await this.#waiting.wait({ timeout, signal });
    /** @type {() => Promise<any>} */
    const run = () =>
      new Promise((resolve, reject) => {
        const onReply = (/** @type {RealtimeError | null} */ error, /** @type {any} */ result) => {
          this.#answered = true;
          if (error) reject(error);
          else resolve(result);
        };
        this._command(method, params, onReply, timeout);
      });
    return within(run, undefined, signal);
  }

  /**
   * @internal
   * @param {number} method
   * @param {object | undefined} params
   * @param {OnReply} onReply
   * @param {number} [timeout] milliseconds
   */
  _command(method, params, onReply, timeout = this._options.timeouts.command) {
    const id = ++this.#lastId;
    this.#queue({ id, method, params });
    const timer = setTimeout(() => this.#answer(id, timedOut(), null), timeout);
    this.#calls.set(id, { _onReply: onReply, timer });
  }

  /** @param {object} command */
  #queue(command) {
    const text = JSON.stringify(command);
    this._emit("frame", { sent: text });
    if (!this.#outgoing.length) queueMicrotask(() => this.#flush());
    this.#outgoing.push(text);
  }

  #flush() {
    let frame = "";
    for (const command of this.#outgoing.splice(0)) {
      if (frame && frame.length + command.length > FRAME_CHARACTERS) {
        this.#transport?.send(frame);
        frame = "";
      }
      frame += frame ? `\n${command}` : command;
    }
    if (frame) this.#transport?.send(frame);
  }

  /** @param {number} id @param {RealtimeError | null} error @param {any} result */
  #answer(id, error, result) {
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    clearTimeout(call.timer);
    call._onReply(error, result);
  }

  // messages of the server

  /** @param {string} frame */
  #receive(frame) {
    this._emit("frame", { received: frame });
    this.#worked = true;
    if (this.#using === "websocket") {
      this.#socketWorked = true;
      this.#keepFallbackUntil = 0;
      this.#blocked = 0;
    }
    if (this.#state === "connected") this.#pingLater();
    for (const line of frame.split("\n")) if (line) this.#inbox.push(line);
    if (!this.#paused) this.#handle();
  }

  /** Handle messages in order. A caller that got a reply runs before the next message. */
  #handle(pausing = true) {
    while (this.#handled < this.#inbox.length) {
      const line = /** @type {string} */ (this.#inbox[this.#handled++]);
      this.#answered = false;
      try {
        const { id, error, result } = JSON.parse(line);
        if (!id) this.#push(result);
        else if (error) this.#answer(id, new RealtimeError(error.code, error.message), null);
        else this.#answer(id, null, result ?? {});
      } catch (error) {
        this._lose(advice(`unreadable message: ${error}`));
      }
      if (this.#answered && pausing && this.#handled < this.#inbox.length) {
        const life = this.#life;
        this.#paused = true;
        afterPromises(() => {
          if (life !== this.#life) return;
          this.#paused = false;
          this.#handle();
        });
        return;
      }
    }
    this.#inbox = [];
    this.#handled = 0;
  }

  /** @param {{ type?: number, channel?: string, data: any }} push */
  #push({ type = 0, channel = "", data }) {
    const stream = this.#serverSide.get(channel);
    if (type === PUSH.message) this._emit("message", { data: data.data });
    else if (type === PUSH.sub) this.#serverSubscribed(channel, data);
    else if (!stream) this.#subscriptions.get(channel)?._push(type, data);
    else if (type === PUSH.publication) this.#publication(stream, channel, data);
    else if (type === PUSH.unsub) this.#serverUnsubscribed(channel);
    else this._member(type, channel, data);
  }

  /** @param {string} channel */
  #serverUnsubscribed(channel) {
    this.#serverSide.delete(channel);
    this._leave("unsubscribed", { channel, ...BY_SERVER }, true);
  }

  /** @param {Stream} stream @param {string} channel @param {any} data */
  #publication(stream, channel, data) {
    const publication = toPublication(channel, data);
    const order = stream.follow(publication);
    if (order === "next") this._emit("publication", publication);
    else if (order === "gap") this._lose(GAP);
  }

  /** @param {string} channel @param {any} result */
  #serverSubscribed(channel, result) {
    const stream = this.#serverSide.get(channel) ?? new Stream();
    this.#serverSide.set(channel, stream);
    const context = stream.begin(channel, result);
    this._emit("subscribed", context);
    for (const publication of context.publications) this._emit("publication", publication);
  }

  // pings

  #pingLater() {
    clearTimeout(this.#pingTimer);
    this.#pingTimer = setTimeout(() => this.ping(), this._options.pingInterval);
  }

  /** Test the connection. Without an answer in time it is lost. */
  ping() {
    if (this.#state !== "connected") throw disconnected();
    const life = this.#life;
    const onReply = (/** @type {RealtimeError | null} */ error) => {
      if (error && life === this.#life) this._lose(advice("no answer"));
    };
    this._command(METHOD.ping, undefined, onReply, this._options.timeouts.ping);
  }

  // for subscriptions

  /** @internal @param {Subscription} subscription */
  _add(subscription) {
    const { channel } = subscription;
    if (this.#subscriptions.has(channel)) {
      throw new RealtimeError(ALREADY_SUBSCRIBED, "already subscribed", { channel });
    }
    this.#subscriptions.set(channel, subscription);
  }

  /** @internal @param {Subscription} subscription */
  _remove({ channel }) {
    this.#subscriptions.delete(channel);
  }

  /**
   * Returns a token for a private channel. Calls of one turn share one request.
   *
   * @internal
   * @param {string} channel
   * @returns {Promise<string>}
   */
  _channelToken(channel) {
    return new Promise((resolve, reject) => {
      if (!this.#asked.length) queueMicrotask(() => this.#askForTokens());
      this.#asked.push({ channel, resolve, reject });
    });
  }

  async #askForTokens() {
    const asked = this.#asked.splice(0);
    const question = { client: this.#id, channels: asked.map(({ channel }) => channel) };
    try {
      const { getChannelToken, timeouts } = this._options;
      const tokens = await within(() => getChannelToken?.(question), timeouts.token);
      for (const { channel, resolve } of asked) resolve(tokens?.[channel] ?? "");
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}

/**
 * One channel of a client, returned by `client.subscribe(channel)`.
 *
 * @extends {ChannelEmitter<SubscriptionEvents>}
 */
export class Subscription extends ChannelEmitter {
  #client;
  #options;
  /** @type {SubscriptionState} "subscribing" also while the client stays away */
  #state = "unsubscribed";
  /** @type {SubscriptionState} The state of the last event. */
  #told = "unsubscribed";
  /** @internal Whether it goes on when all handles are released. */
  _kept = true;
  /** @internal @type {Set<ChannelHandle>} */
  _handles = new Set();
  #stream = new Stream();
  /** @type {object | null} The subscribe of this connection; results of others are dropped. */
  #request = null;
  #backOff;
  /** @type {Timer} */
  #timer;
  #waiting = new Waiting();
  /** @type {Set<Loop>} */
  #loops = new Set();
  /** @type {RealtimeError | null} */
  #error = null;
  /** @internal @type {Set<(error: RealtimeError) => void>} Called when it ends. */
  _ends = new Set();

  /**
   * @internal
   * @param {Client} client
   * @param {string} channel
   * @param {SubscriptionOptions} options
   */
  constructor(client, channel, options) {
    super();
    this.channel = channel;
    this.#client = client;
    this.#options = options;
    this.#stream.position = options.since ?? null;
    this.#backOff = new BackOff(client._options);
  }

  /**
   * It is "subscribing" also while the client reconnects, and before the first `connect()`. While
   * the client stays disconnected it is "unsubscribed": the next `connect()` restores it.
   */
  get state() {
    return this.#state === "subscribing" && this.#client._stayingAway ? "unsubscribed" : this.#state;
  }

  /** @internal Whether no connection restores it. */
  get _ended() {
    return this.#state === "unsubscribed";
  }

  /** Position of the last publication, in channels with recovery; else null. */
  get position() {
    return this.#stream.position;
  }

  /** Subscribe again after `unsubscribe()` or an error, without recovery. */
  subscribe() {
    this._kept = true;
    if (!this._ended) return;
    this.#client._add(this);
    this.#state = "subscribing";
    this._changed(ASKED);
    if (this.#client.state === "connected" && !this._ended) this._start();
  }

  /** Unsubscribe at once. Later pushes of the channel are ignored. */
  unsubscribe() {
    this.#unsubscribe(BY_PAGE);
  }

  /** @param {{ code: number, reason: string }} why */
  #unsubscribe(why) {
    if (this._ended) return;
    if (this.#request) {
      const { channel } = this;
      const onReply = (/** @type {RealtimeError | null} */ error) => {
        if (error?.code === TIMEOUT) this.#client._lose(advice(error.message));
      };
      this.#client._command(METHOD.unsubscribe, { channel }, onReply);
    }
    this.#end(null, why);
  }

  /**
   * Resolves when subscribed; rejects when that fails or ends.
   *
   * @param {WaitOptions} [options]
   * @returns {Promise<void>}
   */
  async ready(options) {
    if (this._ended) throw this.#error ?? this.#unsubscribed();
    if (this.#state === "subscribing") await this.#waiting.wait(options);
  }

  /** @param {any} data */
  publish(data) {
    return this.#whenReady(() => this.#client.publish(this.channel, data));
  }

  presence() {
    return this.#whenReady(() => this.#client.presence(this.channel));
  }

  presenceStats() {
    return this.#whenReady(() => this.#client.presenceStats(this.channel));
  }

  /** Returns history, oldest first. @param {HistoryOptions & WaitOptions} [options] */
  history(options) {
    return this.#whenReady(() => this.#client.history(this.channel, options), options);
  }

  /**
   * Loop over the publications from now on. The loop goes on over reconnects, ends with the
   * subscription or with `client.disconnect()`, and throws when the subscription fails.
   *
   * @param {object} [options]
   * @param {number} [options.limit] publications that may wait for a slow loop. After one more the
   *   loop gets those that wait, then throws an error with the code OVERFLOW
   */
  publications({ limit = LOOP_LIMIT } = {}) {
    const ended = this._ended;
    /** @type {Loop} */
    const loop = { buffer: [], limit, ended, error: this.#error, wake: () => {} };
    if (!ended) this.#loops.add(loop);
    return this.#read(loop);
  }

  [Symbol.asyncIterator]() {
    return this.publications();
  }

  /** @param {Loop} loop */
  async *#read(loop) {
    try {
      for (;;) {
        for (let next = loop.buffer.shift(); next; next = loop.buffer.shift()) yield next;
        if (loop.ended && loop.error) throw loop.error;
        if (loop.ended) return;
        await new Promise((resolve) => {
          loop.wake = () => resolve(null);
        });
      }
    } finally {
      this.#loops.delete(loop);
    }
  }

  // for the client

  /** @internal */
  async _start() {
    const request = (this.#request = {});
    const { channel } = this;
    const { data, flow } = this.#options;
    /** @type {{ [name: string]: any, token?: string | null }} */
    const params = { channel, data, ...recovery(this.#stream.position), ...flow?.() };
    if (this.#hasToken) {
      try {
        params.token = await this.#token();
        if (request !== this.#request) return;
        if (!params.token) return this.#refused(denied(channel));
      } catch (cause) {
        return this.#retry(request, siteFailed(TOKEN, cause, channel), () => this._start());
      }
    }
    /** @param {object} asked */
    const ask = (asked) =>
      this.#client._command(METHOD.subscribe, asked, (error, result) => {
        if (request !== this.#request) return;
        const next = flow?.(error, result);
        if (next) ask({ ...params, ...next });
        else if (error) this.#failed(request, error);
        else this.#subscribed(result);
      });
    ask(params);
  }

  /**
   * The connection is lost.
   *
   * @internal
   * @param {boolean} final whether the client does not reconnect
   */
  _lost(final) {
    this.#state = "subscribing";
    this.#request = null;
    clearTimeout(this.#timer);
    if (final) this.#tellWaiting(disconnected(), null);
  }

  /** Emit the event of the state, if that has changed.
   * @internal @param {{ code: number, reason: string } | SubscribeContext} why */
  _changed(why) {
    const { state, channel } = this;
    const before = this.#told;
    if (state === before) return;
    this.#told = state;
    const context = /** @type {any} */ ({ channel, ...why });
    if (state === "subscribed") this._emit(state, context);
    else this._leave(state, context, before === "subscribed");
  }

  /**
   * @internal
   * @override
   * @template {keyof SubscriptionEvents} Name
   * @param {Name} name
   * @param {SubscriptionEvents[Name]} context
   */
  _emit(name, context) {
    super._emit(name, context);
    for (const handle of [...this._handles]) handle._emit(name, context);
  }

  /** @internal @param {ChannelHandle} handle */
  _release(handle) {
    // a part that is made anew in the same turn of the event loop goes on with the subscription
    if (this._handles.delete(handle)) setTimeout(() => {
      if (!this._kept && !this._handles.size) this.unsubscribe();
    });
  }

  /** @internal @param {number} type @param {any} data */
  _push(type, data) {
    const { channel } = this;
    if (type === PUSH.unsub) {
      // it is about an earlier subscription, and the server may still confirm this one
      if (this.#state === "subscribing") this.#unsubscribe(BY_SERVER);
      else this.#end(null, BY_SERVER);
    } else if (type === PUSH.publication) {
      const publication = toPublication(channel, data);
      // without recovery, publications may come before the reply to subscribe
      const order = this.#state === "subscribed" ? this.#stream.follow(publication) : "next";
      if (order === "next") this.#deliver(publication);
      else if (order === "gap") this.#client._lose(GAP);
    } else {
      this._member(type, channel, data);
    }
  }

  // subscribing

  /** @param {any} result */
  #subscribed(result) {
    const stream = this.#stream;
    const context = stream.begin(this.channel, result);
    this.#state = "subscribed";
    this.#refreshLater(result);
    this.#waiting.end();
    this._changed(context);
    for (const publication of context.publications) {
      // deliver even after a loss, because the position is already behind; not after unsubscribe()
      if (stream !== this.#stream) return;
      this.#deliver(publication);
    }
  }

  /** @param {object} request @param {RealtimeError} error */
  #failed(request, error) {
    error.channel = this.channel;
    const lose = () => this.#client._lose(advice(error.message));
    if (error.code === TIMEOUT) {
      lose();
    } else if (error.code === INTERNAL) {
      // the protocol demands a new connection; the delay spares the other channels
      this.#retry(request, error, lose);
    } else if (EXPIRED_TOKEN.includes(error.code) && this.#hasToken) {
      this.#retry(request, error, () => this._start());
    } else {
      this.#refused(error);
    }
  }

  /** @param {RealtimeError} error */
  #refused(error) {
    warn(error);
    this.#end(error, { code: error.code, reason: error.message });
  }

  /** @param {object | null} request @param {RealtimeError} error @param {() => void} again */
  #retry(request, error, again) {
    if (request !== this.#request) return;
    error.temporary = true;
    this.#timer = setTimeout(again, this.#backOff.next());
    this._emit("error", error);
  }

  get #hasToken() {
    const { getChannelToken, privateChannelPrefix: prefix } = this.#client._options;
    // as on the server, an empty prefix makes no channel private
    const isPrivate = prefix !== "" && this.channel.startsWith(prefix);
    return this.#options.getToken !== undefined || (isPrivate && getChannelToken !== undefined);
  }

  #token() {
    const { getToken } = this.#options;
    const asked = { client: this.#client.id, channel: this.channel };
    return getToken
      ? within(() => getToken(asked), this.#client._options.timeouts.token)
      : this.#client._channelToken(this.channel);
  }

  /** @param {{ expires?: boolean, ttl?: number }} result */
  #refreshLater({ expires, ttl }) {
    this.#backOff.reset();
    if (!expires || !this.#hasToken) return;
    this.#timer = setTimeout(() => this.#refresh(), untilRefresh(ttl));
  }

  async #refresh() {
    const request = this.#request;
    const { channel } = this;
    const again = () => this.#refresh();
    let token;
    try {
      token = await this.#token();
    } catch (cause) {
      this.#retry(request, siteFailed(TOKEN, cause, channel), again);
      return;
    }
    if (request !== this.#request) return;
    if (!token) {
      const error = denied(channel);
      warn(error);
      this.#unsubscribe({ code: error.code, reason: error.message });
      this._emit("error", error);
      return;
    }
    this.#client._command(METHOD.sub_refresh, { channel, token }, (error, result) => {
      if (request !== this.#request) return;
      if (error) this.#retry(request, error, again);
      else this.#refreshLater(result);
    });
  }

  // the rest

  /** @param {Publication} publication */
  #deliver(publication) {
    for (const loop of this.#loops) {
      if (loop.buffer.length < loop.limit) loop.buffer.push(publication);
      else this.#endLoop(loop, new RealtimeError(OVERFLOW, "the loop is too slow"));
      loop.wake();
    }
    this._emit("publication", publication);
  }

  /**
   * @param {RealtimeError | null} error why the subscription was not made
   * @param {{ code: number, reason: string }} why
   */
  #end(error, why) {
    this.#client._remove(this);
    this.#state = "unsubscribed";
    this.#stream = new Stream();
    this.#request = null;
    this.#error = error;
    clearTimeout(this.#timer);
    for (const end of this._ends) end(this.#unsubscribed());
    this.#tellWaiting(error ?? this.#unsubscribed(), error);
    this._changed(why);
    if (error) this._emit("error", error);
  }

  /** @param {RealtimeError} error @param {RealtimeError | null} loopError null: loops just end */
  #tellWaiting(error, loopError) {
    this.#waiting.end(error);
    for (const loop of this.#loops) this.#endLoop(loop, loopError);
  }

  /** @param {Loop} loop @param {RealtimeError | null} error */
  #endLoop(loop, error) {
    this.#loops.delete(loop);
    loop.ended = true;
    loop.error = error;
    loop.wake();
  }

  #unsubscribed() {
    const { channel } = this;
    return new RealtimeError(UNSUBSCRIBED, "not subscribed", { channel });
  }

  /** @template T @param {() => Promise<T>} run @param {WaitOptions} [options] @returns {Promise<T>} */
  async #whenReady(run, options) {
    if (this.#state !== "subscribed") {
      if (this.#client._stayingAway) throw disconnected();
      await this.ready({ timeout: this.#client._options.timeouts.command, ...options });
    }
    return run();
  }
}

/**
 * One part of the page and a subscription that it shares, returned by `client.channel(name)`. Its
 * handlers end with `release()`.
 *
 * @extends {Emitter<SubscriptionEvents>}
 */
export class ChannelHandle extends Emitter {
  /** The subscription, for commands that are not here. Its `unsubscribe()` ends all handles. */
  subscription;

  /** @internal @param {Subscription} subscription */
  constructor(subscription) {
    super();
    this.subscription = subscription;
    subscription._handles.add(this);
  }

  get channel() {
    return this.subscription.channel;
  }

  get state() {
    return this.subscription.state;
  }

  /** @param {any} data */
  publish(data) {
    return this.subscription.publish(data);
  }

  /** Stop all handlers; the last handle that is released ends the subscription. */
  release() {
    this._offAll();
    this.subscription._release(this);
  }
}

/**
 * A part of the page that shows a channel: a state, and the publications after it.
 *
 *   live ── publications are missing ──► loading ── state is shown, held ones are applied ──► live
 *                                        │    ▲
 *                                        └────┘ loading failed, or more are missing
 */
class Block {
  #client;
  #subscription;
  #options;
  /** @type {Emitter<{ publication: Publication }>} */
  #out = new Emitter();
  /** @type {Publication[] | null} Kept back while the state is loaded; null: live. */
  #held = null;
  /** Publications up to this offset are older than the state that is loaded. */
  #from = 0;
  /** How often publications were missed: a state counts if it is newer than the last time. */
  #losses = 0;
  #stale;
  #backOff;
  /** How many are kept back. */
  #limit = LOOP_LIMIT;
  /** @type {AbortController | undefined} Of the call of `load` under way, or of the last one. */
  #attempt;

  /**
   * @param {Client} client
   * @param {Subscription} subscription
   * @param {PageOptions} options
   * @param {Position | null} since
   * @param {boolean} shared whether the subscription was there before
   */
  constructor(client, subscription, options, since, shared) {
    this.#client = client;
    this.#subscription = subscription;
    this.#options = options;
    this.#backOff = new BackOff(client._options);
    this.#out.on("publication", options.publish);
    const { position, state } = subscription;
    const covered = position && since?.epoch === position.epoch && since.offset >= position.offset;
    /** Whether the subscription went on past the position of this part. */
    this.#stale = shared && !covered && (position !== null || state === "subscribed");
    subscription.on("publication", (publication) => this.#take(publication));
    subscription.on("subscribed", ({ recovered }) => {
      if (!recovered || this.#stale) this.#lose();
    });
    subscription._ends.add((error) => this.#attempt?.abort(error));
    if (this.#stale && state === "subscribed") this.#lose();
  }

  /** @param {Publication} publication */
  #take(publication) {
    if (!this.#held) {
      this.#out._emit("publication", publication);
    } else if ((publication.offset ?? Infinity) > this.#from) {
      if (this.#held.push(publication) > this.#limit) {
        this.#held = []; // a state that is loaded from now on has them
        this.#attempt?.abort(new Error(`more than ${this.#limit} publications`));
        this.#limit = Math.min(2 * this.#limit, HELD_LIMIT);
      }
    }
  }

  #lose() {
    const loading = this.#held !== null;
    this.#held = [];
    this.#from = this.#subscription.position?.offset ?? 0;
    this.#losses++;
    this.#stale = false;
    if (!loading) this.#load();
  }

  async #load() {
    const { channel } = this.#subscription;
    const { load, reload } = this.#options;
    if (!load) {
      reloadPage(reload); // it is kept back until the page ends
      return;
    }
    while (!this.#subscription._ended) {
      const losses = this.#losses;
      const attempt = (this.#attempt = new AbortController());
      const { signal } = attempt;
      try {
        const call = () => load({ channel, signal });
        const state = await within(call, this.#client._options.timeouts.load);
        signal.throwIfAborted();
        if (isResponse(state)) answered(state);
        if (losses !== this.#losses) continue;
        this.#show(state);
        return;
      } catch (cause) {
        const isIncomplete = signal.aborted;
        if (signal.reason?.code === UNSUBSCRIBED) continue;
        attempt.abort();
        this.#subscription._emit("error", siteFailed(LOAD, cause, channel));
        await new Promise((resolve) => setTimeout(resolve, this.#backOff.next()));
        if (isIncomplete) this.#held = [];
      }
    }
    this.#held = null;
  }

  /** @param {any} state what `load` returned */
  #show(state) {
    this.#backOff.reset();
    this.#limit = LOOP_LIMIT;
    const { channel, position } = this.#subscription;
    const covered = isResponse(state) ? positionOf(state, channel) : positionIn(state);
    const first = covered && covered.epoch === position?.epoch ? covered.offset : 0;
    const held = this.#held ?? [];
    this.#held = null;
    if (this.#subscription._ended) return;
    for (const publication of held) {
      if ((publication.offset ?? Infinity) > first) this.#take(publication);
    }
  }
}

/** Promises of callers that wait for one event, each for a limited time. */
class Waiting {
  /** @type {Set<Waiter>} */
  #waiters = new Set();

  /** @param {WaitOptions} [options] @returns {Promise<void>} */
  wait({ timeout, signal } = {}) {
    /** @type {Waiter} */
    let waiter;
    /** @type {() => Promise<void>} */
    const wait = () =>
      new Promise((resolve, reject) => {
        waiter = { resolve, reject };
        this.#waiters.add(waiter);
      });
    return within(wait, timeout, signal).finally(() => this.#waiters.delete(waiter));
  }

  /** @param {RealtimeError} [error] why the event will not come */
  end(error) {
    for (const { resolve, reject } of this.#waiters) {
      if (error) reject(error);
      else resolve();
    }
  }
}

/** The position in a channel. */
class Stream {
  /** @type {Position | null} null in channels without recovery */
  position = null;
  #begun = false;
  #active = false;

  /**
   * Take over the result of a subscribe.
   *
   * @param {string} channel
   * @param {any} result
   * @returns {SubscribeContext}
   */
  begin(channel, result) {
    const isResubscribe = this.#begun;
    this.#begun = this.#active = true;
    const recoverable = result.recoverable === true;
    this.position = recoverable ? { offset: offsetOf(result), epoch: result.epoch ?? "" } : null;
    /** @type {Publication[]} */
    const publications = (result.publications ?? []).map((/** @type {any} */ each) =>
      toPublication(channel, each, true),
    );
    // with seq and gen instead of offset, the server sends the newest one first
    publications.sort((a, b) => (a.offset ?? 0) - (b.offset ?? 0));
    return { channel, isResubscribe, recoverable, recovered: result.recovered === true, publications };
  }

  /** End with the connection; returns whether the channel was subscribed. */
  end() {
    const active = this.#active;
    this.#active = false;
    return active;
  }

  /**
   * Compare a publication with the position, and move the position if it is the next one.
   *
   * @param {Publication} publication
   * @returns {"next" | "seen" | "gap"}
   */
  follow({ offset }) {
    if (this.position && offset) {
      const distance = offset - this.position.offset;
      if (distance !== 1) return distance < 1 ? "seen" : "gap";
      this.position = { ...this.position, offset };
    }
    return "next";
  }
}

/** @implements {Transport} */
class WebSocketTransport {
  #socket;

  /** @param {string} url @param {Listener} listener */
  constructor(url, listener) {
    const socket = new WebSocket(url);
    socket.onopen = listener.onopen;
    // a binary frame is not from this service; as text it is unreadable
    socket.onmessage = ({ data }) => listener.onframe(String(data));
    socket.onclose = ({ code, reason }) => listener.onclose(code, reason);
    this.#socket = socket;
  }

  /** @param {string} frame */
  send(frame) {
    this.#socket.send(frame);
  }

  close() {
    const socket = this.#socket;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}

/**
 * SockJS: server-sent events from the server, POST requests to it.
 *
 * @implements {Transport}
 */
class EventSourceTransport {
  #url;
  /** @type {Listener | null} */
  #listener;
  /** @type {EventSource | undefined} */
  #source;
  #opened = false;
  /** @type {string[]} */
  #unsent = [];
  #sending = false;

  /** @param {string} prefix @param {Listener} listener */
  constructor(prefix, listener) {
    const session = crypto
      .getRandomValues(new Uint8Array(16))
      .reduce((word, byte) => word + byte.toString(16).padStart(2, "0"), "");
    this.#url = `${prefix}/${session.slice(0, 3)}/${session}`;
    this.#listener = listener;
    this.#attach();
  }

  /** @param {string} frame */
  send(frame) {
    this.#unsent.push(frame);
    if (!this.#sending) this.#post();
  }

  close() {
    this.#listener = null;
    this.#source?.close();
  }

  #attach() {
    const source = new EventSource(`${this.#url}/eventsource`, { withCredentials: true });
    let received = false;
    source.onmessage = ({ data }) => {
      received = true;
      try {
        this.#take(data);
      } catch (error) {
        this.#end(0, `unreadable message: ${error}`);
      }
    };
    source.onerror = () => {
      source.close();
      // the server ends each response after some time; the session goes on in the next one
      if (received && this.#listener) this.#attach();
      else this.#end(0, "");
    };
    this.#source = source;
  }

  /** @param {string} frame */
  #take(frame) {
    const content = frame.slice(1);
    if (frame[0] === "o") {
      // for the second time: the server has forgotten the session
      if (this.#opened) this.#end(0, "");
      else this.#listener?.onopen();
      this.#opened = true;
    } else if (frame[0] === "h") {
      this.#listener?.onframe("");
    } else if (frame[0] === "a") {
      for (const each of JSON.parse(content)) this.#listener?.onframe(each);
    } else if (frame[0] === "c") {
      const [code, reason] = JSON.parse(content);
      this.#end(code, reason);
    }
  }

  /** Send one request after another, to keep the order. */
  async #post() {
    this.#sending = true;
    try {
      while (this.#unsent.length) {
        const response = await fetch(`${this.#url}/xhr_send`, {
          method: "POST",
          credentials: "include",
          headers: { "Content-Type": "text/plain;charset=UTF-8" },
          body: JSON.stringify(this.#unsent.splice(0)),
        });
        answered(response);
      }
      this.#sending = false;
    } catch (error) {
      this.#end(0, String(error));
    }
  }

  /** @param {number} code @param {string} reason */
  #end(code, reason) {
    const listener = this.#listener;
    this.close();
    listener?.onclose(code, reason);
  }
}

/** Delays that grow. Half of each is random, so that clients do not reconnect all at once. */
class BackOff {
  #failures = 0;
  #options;

  /** @param {{ minDelay: number, maxDelay: number }} options milliseconds */
  constructor(options) {
    this.#options = options;
  }

  next() {
    const { minDelay, maxDelay } = this.#options;
    const longest = Math.min(maxDelay, minDelay * 2 ** this.#failures++);
    return longest / 2 + (Math.random() * longest) / 2;
  }

  reset() {
    this.#failures = 0;
  }
}

/** @type {DisconnectContext} */
const GAP = { code: DISCONNECT_INSUFFICIENT_STATE, reason: "insufficient state", reconnect: true };

/** The page calls `subscribe()` or `connect()`. */
const ASKED = { code: 0, reason: "client" };
/** The page calls `unsubscribe()`. */
const BY_PAGE = { code: UNSUBSCRIBED, reason: "client" };
const BY_SERVER = { code: 2000, reason: "server" };

/** @type {Set<number>} */
const warned = new Set();
/** Tell developers, once, what the client does not try again. @param {{ code: number, reason?: string }} why */
function warn(why) {
  const isNew = warned.size < warned.add(why.code).size;
  if (isNew) console.warn("realtime refused, see docs/javascript.md:", why);
}

/** @param {string} reason @returns {DisconnectContext} */
function advice(reason) {
  return { code: 0, reason, reconnect: true };
}

/**
 * Returns the disconnect advice in a close reason. Without advice: reconnect.
 *
 * @param {number} code
 * @param {string} text
 * @returns {DisconnectContext}
 */
function readAdvice(code, text) {
  try {
    const { reason, reconnect } = JSON.parse(text);
    if (typeof reconnect === "boolean") return { code, reason: String(reason), reconnect };
  } catch {
    // plain text, or empty
  }
  const reconnect = !FINAL_DISCONNECTS.includes(code);
  return { code, reason: text || "connection lost", reconnect };
}

/** Returns offset, or seq and gen as one. @param {any} position @returns {number} 0: none */
function offsetOf({ offset, seq = 0, gen = 0 }) {
  return offset ?? gen * 2 ** 32 + seq;
}

/**
 * @param {string} channel
 * @param {any} raw
 * @param {boolean} [recovered]
 * @returns {Publication}
 */
function toPublication(channel, raw, recovered = false) {
  const { seq, gen, ...publication } = raw;
  const offset = offsetOf(raw);
  camelCase(raw.info);
  return { channel, recovered, ...publication, ...(offset && { offset }) };
}

/** Names in an object of the server become those of JavaScript; the earlier ones go on unseen.
 * @param {any} values @returns {any} */
function camelCase(values) {
  for (const name of Object.keys(values ?? {})) {
    const present = name.replace(/_./, ([, letter = ""]) => letter.toUpperCase());
    if (present === name) continue;
    values[present] = values[name];
    Object.defineProperty(values, name, { enumerable: false });
  }
  return values;
}

/** @template {PropertyKey} Name @param {Name} name @returns {any} */
function presentName(name) {
  return RENAMED[/** @type {keyof typeof RENAMED} */ (name)] ?? name;
}

/** @param {any} values @returns {Position | null} null if they have none */
function positionIn(values) {
  const { offset, epoch } = values ?? {};
  return Number.isInteger(offset) && typeof epoch === "string" ? { offset, epoch } : null;
}

/** @param {any} value @returns {value is Response} */
function isResponse(value) {
  return value instanceof Response;
}

/** Returns a response if it is a success. @param {Response} response */
function answered(response) {
  if (!response.ok) throw new Error(`${response.url} answered with status ${response.status}`);
  return response;
}

/**
 * Returns the channel that elements of the page name, and the oldest of their positions.
 *
 * @param {string} name of the channel, or the one that the page gave it
 * @returns {{ channel: string, position: Position | null, token?: string }}
 */
function inPage(name) {
  const elements = globalThis.document?.querySelectorAll("script[data-realtime-channel]") ?? [];
  const all = [...elements].map((element) => ({
    name: element.getAttribute("data-realtime-channel"),
    ...JSON.parse(element.textContent ?? ""),
  }));
  const { channel = name } = all.find((each) => each.name === name) ?? {};
  const found = all.filter((each) => each.channel === channel);
  const position = found
    .map(positionIn)
    .reduce((a, b) => (a && b?.epoch === a.epoch ? (b.offset < a.offset ? b : a) : null), positionIn(found[0]));
  return { channel, position, token: found.find((each) => each.token)?.token };
}

/** Replace the page, soon: at once would be for ever where a cache gives the same one again.
 * @param {() => void} [reload] */
function reloadPage(reload = () => location.reload()) {
  const [navigation] = performance.getEntriesByType("navigation");
  const again = /** @type {any} */ (navigation)?.type === "reload";
  setTimeout(reload, again ? Math.max(RELOAD_INTERVAL - performance.now(), 0) : 0);
}

/** Returns params that ask for recovery. Servers that send seq and gen read an offset, too.
 * @param {Position | null} position */
function recovery(position) {
  return position ? { recover: true, offset: position.offset, epoch: position.epoch } : {};
}

/** Milliseconds. @param {number} [ttl] seconds */
function untilRefresh(ttl = 0) {
  return Math.min(Math.max(ttl, 1) * 1000, LONGEST_TIMER);
}

/** Refuse an empty name, for which the server would disconnect. @param {string} channel */
function checked(channel) {
  if (typeof channel !== "string" || !channel) throw new TypeError("channel must not be empty");
  return channel;
}

/**
 * Returns the result of a function, or throws if it takes longer than the timeout, or if the signal
 * is aborted.
 *
 * @template T
 * @param {() => T} run
 * @param {number} [timeout] milliseconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<Awaited<T>>}
 */
async function within(run, timeout, signal) {
  signal?.throwIfAborted();
  /** @type {Timer} */
  let timer;
  let abort = () => {};
  const late = new Promise((_, reject) => {
    if (timeout !== undefined) timer = setTimeout(() => reject(timedOut()), timeout);
    abort = () => reject(signal?.reason);
    signal?.addEventListener("abort", abort);
  });
  const running = new Promise((resolve) => resolve(run()));
  return Promise.race([running, late]).finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
}

/** Run later, without a timer: browsers delay those in hidden pages. @param {() => void} run */
function afterPromises(run) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    run();
  };
  port2.postMessage(null);
}

function timedOut() {
  return new RealtimeError(TIMEOUT, "no answer");
}

function disconnected(reason = "disconnected") {
  return new RealtimeError(DISCONNECTED, reason);
}

/** @param {string} channel */
function denied(channel) {
  return new RealtimeError(PERMISSION_DENIED, "permission denied", { channel });
}

/** A function of the application failed. It is called again.
 * @param {number} code @param {unknown} cause @param {string} [channel] */
function siteFailed(code, cause, channel) {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new RealtimeError(code, message, { channel, temporary: true, cause });
}
