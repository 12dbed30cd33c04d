/** Entries that wait to be shown: the newest ones only, so memory is bounded. */
export class Held {
  #limit;
  #entries = [];
  #count = 0;

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** How many came, those that were dropped included. */
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

  /** The entries, oldest first; none of them waits any longer. */
  take() {
    const entries = this.#entries;
    this.#entries = [];
    this.#count = 0;
    return entries;
  }
}
