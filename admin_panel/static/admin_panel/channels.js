/** Renews the list of the busiest channels every few seconds: nodes count while they are asked. */

const INTERVAL = 4000; // milliseconds

const ids = ["channels-live", "panel-health"];

async function update() {
  if (!document.hidden) {
    try {
      const response = await fetch(location.href, { redirect: "error" });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const id of ids) {
        const [now, next] = [document, page].map((each) => each.getElementById(id));
        // an answer without this part is another page: what is shown stays
        const isInUse = now?.contains(document.activeElement);
        if (next && !isInUse && now.innerHTML !== next.innerHTML) now.replaceWith(next);
      }
    } catch {
      // the next one tries again
    }
  }
  setTimeout(update, INTERVAL);
}

setTimeout(update, INTERVAL / 2);
