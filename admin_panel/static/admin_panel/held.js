/** Entries that wait to be shown: only the newest ones, to limit memory. */
export class Held {
  #limit;
  #entries = [];
  #count = 0;

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** Number of entries added, including dropped ones. */
  get count() {
    return this.#count;
  }

  get dropped() {
    return this.#count - this.#entries.length;
  }

  add(entry) {
    this.#count += 1;
    this.#entries.push(entry);
    if (this.#entries.length > this.#limit) this.#entries.shift();
  }

  /** Removes and returns the entries, oldest first. */
  take() {
    const entries = this.#entries;
    this.#entries = [];
    this.#count = 0;
    return entries;
  }
}
