/* The last commands of the console, newest first, as long as the browser's tab is open. */

const KEPT = 30;
const LONGEST = 20000;

export class Commands {
  /* `storage` may be full or forbidden: then nothing is kept. */
  constructor(storage, key) {
    this.storage = storage;
    this.key = key;
  }

  all() {
    try {
      const kept = JSON.parse(this.storage.getItem(this.key) ?? "[]");
      return Array.isArray(kept) ? kept.filter((command) => typeof command?.at === "number") : [];
    } catch {
      return [];
    }
  }

  /* One that was run before moves to the front. */
  add(command) {
    if (command.params.length > LONGEST) return;
    const others = this.all().filter(
      (known) => known.method !== command.method || known.params !== command.params,
    );
    this.keep([command, ...others].slice(0, KEPT));
  }

  clear() {
    this.keep([]);
  }

  keep(commands) {
    try {
      this.storage.setItem(this.key, JSON.stringify(commands));
    } catch {
      // the storage is full
    }
  }
}
