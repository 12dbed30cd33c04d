// @ts-check
// Maps: the newest data of each key, kept current.
//
//   import { map } from "realtime/maps";
//
//   const lobby = map(client, "lobby:7");
//   lobby.on("sync", ({ entries }) => showAll(entries));
//   lobby.on("update", ({ key, data, removed }) => show(key, data, removed));
//   await lobby.put("seat1", { user: 7 });
//
// A map that several parts of a page show is one subscription. It is read page by page, then each change
// comes as an update. A client that reconnects recovers the changes; where it cannot, it reads the map anew.

import { RealtimeError } from "./client.js";

/** @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").ChannelHandle} ChannelHandle
 * @typedef {import("./client.js").Position} Position
 * @typedef {import("./client.js").Publication} Publication
 * @typedef {import("./client.js").SubscriptionOptions} SubscriptionOptions
 *
 * @typedef {ReadonlyMap<string, any>} Entries key → data
 *
 * @typedef {SubscriptionOptions & { entries?: Record<string, any> }} MapOptions with `since`, `entries` are
 *   the map at that position, which the page has already
 *
 * @typedef {Publication & { key: string, removed: boolean }} Change a put, or with `removed` the removal of a
 *   key, whose data are null
 *
 * @typedef {object} MapEvents
 * @property {{ entries: Entries }} sync the map was read, at first and when changes are missing
 * @property {Change} update a change after that; the entries have it already
 */

const ALREADY_SUBSCRIBED = 105;
const UNRECOVERABLE = 112;
/** The type of subscriptions to maps, and the phases of replies that are not the last ones. */
const MAP = 1;
const STATE = 2;
const STREAM = 1;
/** How often a map is begun anew whose changes come faster than its pages. */
const ATTEMPTS = 5;
/** Entries of a page: the most that the server gives, since all pages have to come within seconds. */
const PAGE = 1000;
/** Milliseconds until a put fails because the map is not subscribed. */
const READY = 5000;

/** @type {WeakMap<Client, Map<string, SharedMap>>} */
const maps = new WeakMap();

/**
 * Share a map of the client with other parts of the page. It ends when all of them have released it.
 *
 * @param {Client} client
 * @param {string} channel
 * @param {MapOptions} [options] ignored if the client has the map already
 */
export function map(client, channel, options = {}) {
  const known = maps.get(client) ?? new Map();
  maps.set(client, known);
  const found = client.subscriptions.find((each) => each.channel === channel);
  let shared = known.get(channel);
  if (found && found !== shared?.subscription) {
    throw new RealtimeError(ALREADY_SUBSCRIBED, "already subscribed, and not as a map", { channel });
  }
  if (!found) known.set(channel, (shared = new SharedMap(client, channel, options)));
  return new MapHandle(client, shared);
}

/** The entries of a map, for all parts of the page. */
class SharedMap {
  /** @type {Map<string, any>} */
  entries;
  /** Whether `entries` have been those of the map. */
  synced;
  /** @type {Set<MapHandle>} */
  handles = new Set();
  /** @type {any[]} Replies of the subscribe under way. */
  #pages = [];
  #attempts = 0;
  /** @type {Position | null} */
  #since;
  /** @type {ChannelHandle | null} */
  #handle = null;

  /** @param {Client} client @param {string} channel @param {MapOptions} options */
  constructor(client, channel, { entries, ...options }) {
    this.entries = new Map(Object.entries(entries ?? {}));
    this.#since = options.since ?? null;
    this.synced = this.#since !== null;
    const flow = (/** @type {RealtimeError | null | undefined} */ error, /** @type {any} */ result) =>
      this.#next(error, result);
    this.#handle = client.channel(channel, { ...options, flow });
    const { subscription } = this.#handle;
    this.client = client;
    this.subscription = subscription;
    subscription.on("subscribed", ({ recovered }) => {
      if (!recovered) this.#sync();
      this.#pages = [];
    });
    subscription.on("publication", (publication) => {
      this.#tell("update", { ...publication, ...change(this.entries, publication.data) });
    });
    setTimeout(() => this.#handle?.release()); // the parts of the page have handles of their own
  }

  /** Returns params of the next command, none after the last reply.
   * @param {RealtimeError | null} [error] @param {any} [result] */
  #next(error, result) {
    if (error?.code === UNRECOVERABLE && this.#attempts++ < ATTEMPTS) return this.#begin(null);
    if (error) return;
    if (!result) return this.#begin(this.#handle ? this.#handle.subscription.position : this.#since);
    this.#pages.push(result);
    const { phase, cursor, epoch, seq = 0, gen = 0, offset = gen * 2 ** 32 + seq } = result;
    if (phase) return { phase: cursor ? STATE : STREAM, cursor, offset, epoch, recover: undefined };
    this.#attempts = 0;
  }

  /** @param {Position | null} position */
  #begin(position) {
    this.#pages = [];
    if (position) return { type: MAP, phase: STREAM };
    const none = undefined;
    const limit = PAGE;
    return { type: MAP, phase: STATE, limit, cursor: none, offset: none, epoch: none, recover: none };
  }

  #sync() {
    this.entries = new Map();
    this.synced = true;
    for (const { phase, state = [], publications = [] } of this.#pages) {
      for (const { data } of state) change(this.entries, data);
      // publications of the last reply come as updates
      if (phase) for (const { data } of publications) change(this.entries, data);
    }
    this.#tell("sync", { entries: this.entries });
  }

  /**
   * @template {keyof MapEvents} Name
   * @param {Name} name
   * @param {MapEvents[Name]} context
   */
  #tell(name, context) {
    for (const handle of [...this.handles]) handle._tell(name, context);
  }
}

/** One part of the page and a map that it shares, returned by `map(client, channel)`. */
export class MapHandle {
  #shared;
  #handle;
  /** @type {{ [Name in keyof MapEvents]: Set<(context: MapEvents[Name]) => void> }} */
  #handlers = { sync: new Set(), update: new Set() };

  /** @internal @param {Client} client @param {SharedMap} shared */
  constructor(client, shared) {
    this.#shared = shared;
    this.#handle = client.channel(shared.subscription.channel);
    shared.handles.add(this);
    if (shared.synced) queueMicrotask(() => this._tell("sync", { entries: shared.entries }));
  }

  get channel() {
    return this.#handle.channel;
  }

  /** The subscription, for its state, its other events, and `ready()`. */
  get subscription() {
    return this.#handle.subscription;
  }

  /** What the page knows of the map, also while the client reconnects. @returns {Entries} */
  get entries() {
    return this.#shared.entries;
  }

  /** @param {string} key @returns {any} undefined: there is no such key */
  get(key) {
    return this.#shared.entries.get(key);
  }

  /**
   * Call a function at each event. Returns a function that ends it.
   *
   * @template {keyof MapEvents} Name
   * @param {Name} name
   * @param {(context: MapEvents[Name]) => void} handler
   */
  on(name, handler) {
    this.#handlers[name].add(handler);
    return () => {
      this.#handlers[name].delete(handler);
    };
  }

  /** Set the data of a key, if clients may. The map has them when their update comes.
   * @param {string} key @param {any} data */
  async put(key, data) {
    await this.#publish(data, { key });
  }

  /** Remove a key, if clients may. @param {string} key */
  async remove(key) {
    await this.#publish(null, { key, removed: true });
  }

  /** Stop all handlers; the last handle that is released ends the subscription. */
  release() {
    this.#shared.handles.delete(this);
    this.#handle.release();
  }

  /** @param {any} data @param {object} more */
  async #publish(data, more) {
    await this.subscription.ready({ timeout: READY });
    await this.#shared.client.publish(this.channel, data, { type: MAP, ...more });
  }

  /**
   * @internal
   * @template {keyof MapEvents} Name
   * @param {Name} name
   * @param {MapEvents[Name]} context
   */
  _tell(name, context) {
    if (!this.#shared.handles.has(this)) return;
    for (const handler of [...this.#handlers[name]]) {
      try {
        handler(context);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** Apply a change, as the server wrote it. @param {Map<string, any>} entries @param {any} change */
function change(entries, { key, data = null, removed = false }) {
  if (removed) entries.delete(key);
  else entries.set(key, data);
  return { key, data, removed };
}
