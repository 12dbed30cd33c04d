/** Which operators published what the tail shows: the log has it a moment after the publication. */

/** Milliseconds that the log gets, and in which publications come together into one question. */
const PAUSE = 1000;
/** Publications in one question: the newest ones, where more arrived. */
const LIMIT = 100;

export class Publishers {
  #url;
  #found;
  #waiting = new Map(); // offset → entry

  /** @param {string} url @param {function(object, string)} found gets entries and their operators */
  constructor(url, found) {
    this.#url = url;
    this.#found = found;
  }

  /** Asks who published an entry that no client published. */
  ask(entry) {
    if (!this.#waiting.size) setTimeout(() => this.#send(), PAUSE);
    this.#waiting.set(entry.offset, entry);
    if (this.#waiting.size > LIMIT) this.#waiting.delete(this.#waiting.keys().next().value);
  }

  async #send() {
    const asked = this.#waiting;
    this.#waiting = new Map();
    try {
      const offsets = [...asked.keys()].join(",");
      const response = await fetch(`${this.#url}&offsets=${offsets}`, { redirect: "error" });
      if (!response.ok) return;
      for (const [offset, name] of Object.entries((await response.json()).publishers)) {
        const entry = asked.get(Number(offset));
        if (entry) this.#found(entry, name);
      }
    } catch {
      // signed out, or the server is away: the entries say "server", as before
    }
  }
}
