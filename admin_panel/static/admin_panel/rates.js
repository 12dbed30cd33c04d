/** Messages per second, from the counters that nodes report at intervals. */

export class Rates {
  #nodes = new Map();

  /**
   * Takes the counters of the nodes, read at `now` (seconds); returns the sums per second, or null
   * while no node has reported twice.
   *
   * A node reports every few seconds, so its counters are as old as its last report. The time
   * between two reports counts, and not the time between two readings.
   */
  add(nodes, now) {
    const kept = new Map();
    const sum = { published: 0, delivered: 0 };
    let known = false;
    for (const { uid, published, delivered, last_seen_seconds: silence } of nodes) {
      const said = { at: now - silence, published, delivered, rate: null };
      const before = this.#nodes.get(uid);
      if (before !== undefined) {
        const seconds = said.at - before.at;
        // a shorter interval is the same report, read with another network delay
        if (seconds < 0.5) Object.assign(said, before);
        else {
          said.rate = {
            published: Math.max(0, published - before.published) / seconds,
            delivered: Math.max(0, delivered - before.delivered) / seconds,
          };
        }
      }
      kept.set(uid, said);
      if (said.rate === null) continue;
      known = true;
      sum.published += said.rate.published;
      sum.delivered += said.rate.delivered;
    }
    this.#nodes = kept;
    return known ? sum : null;
  }
}
