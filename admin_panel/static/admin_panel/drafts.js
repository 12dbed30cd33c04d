/**
 * Unsent input of one operator, in this browser only.
 *
 * Each form has a draft of its own, so two tabs do not overwrite each other.
 */

const KEPT = 5;
const LIFETIME = 7 * 24 * 3600 * 1000; // milliseconds

export class Drafts {
  #key;

  /** @param {string} owner name of the operator in this home of the panel */
  constructor(owner) {
    this.#key = `realtime-panel-drafts:${owner}`;
  }

  /** Stores `{ channel, data }` under an ID; removes it if both are empty. */
  save(id, draft) {
    const drafts = this.#read();
    delete drafts[id];
    if (draft.channel.trim() !== "" || draft.data.trim() !== "") {
      drafts[id] = { ...draft, savedAt: Date.now() };
    }
    this.#write(drafts);
  }

  has(id) {
    return id in this.#read();
  }

  forget(id) {
    const drafts = this.#read();
    delete drafts[id];
    this.#write(drafts);
  }

  /** Returns the newest draft except this one, `{ id, channel, data, savedAt }`, or null. */
  newestExcept(id) {
    const others = Object.entries(this.#read()).filter(([name]) => name !== id);
    others.sort(([, a], [, b]) => b.savedAt - a.savedAt);
    return others.length === 0 ? null : { id: others[0][0], ...others[0][1] };
  }

  #read() {
    let drafts;
    try {
      drafts = JSON.parse(localStorage.getItem(this.#key) ?? "{}");
    } catch {
      return {}; // no storage, or other content in it
    }
    const known = Object.entries(drafts ?? {}).filter(
      ([, draft]) =>
        typeof draft?.channel === "string" &&
        typeof draft.data === "string" &&
        draft.savedAt > Date.now() - LIFETIME,
    );
    return Object.fromEntries(known);
  }

  #write(drafts) {
    const newest = Object.entries(drafts).sort(([, a], [, b]) => b.savedAt - a.savedAt);
    try {
      if (newest.length === 0) localStorage.removeItem(this.#key);
      else localStorage.setItem(this.#key, JSON.stringify(Object.fromEntries(newest.slice(0, KEPT))));
    } catch {
      // without storage, or with a full one, there are no drafts; everything else works
    }
  }
}
