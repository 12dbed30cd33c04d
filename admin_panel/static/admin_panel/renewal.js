/**
 * Renews the verdict, and the parts of a page that have `data-renewed`: after how many seconds.
 *
 * On the list of the busiest channels it also makes the nodes go on counting.
 */

import { renew } from "./renew.js";

const parts = [...document.querySelectorAll("[data-renewed]")];
const interval = Number(parts[0]?.dataset.renewed) * 1000;
const ids = [...parts.map((part) => part.id), "panel-health"];

async function update() {
  if (!document.hidden) {
    try {
      const response = await fetch(location.href, { redirect: "error" });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const id of ids) {
        const [now, next] = [document, page].map((each) => each.getElementById(id));
        // an answer without this part is another page: what is shown stays
        if (now && next) renew(now, next);
      }
    } catch {
      // the next one tries again
    }
  }
  setTimeout(update, interval);
}

if (parts.length > 0) setTimeout(update, interval / 2);
