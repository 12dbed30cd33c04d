/** The channel page: copies data, refreshes lists without stopping the live tail. */

import { copyFrom } from "./clipboard.js";
import { Tail } from "./tail.js";

const PARTS = ["heading", "summary", "map", "history", "clients"].map((name) => `channel-${name}`);

const section = document.getElementById("channel-tail");
const state = document.getElementById("copy-state");

function reveal(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
}

/** Replaces parts of the page by those of a linked page; follows the link if that fails. */
async function replaceParts(link, parts) {
  try {
    const response = await fetch(link.href, { redirect: "error" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    // rendered and escaped by the server, like the page itself; scripts in it do not run
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of parts) document.getElementById(part).replaceWith(page.getElementById(part));
  } catch {
    location.assign(link.href);
    return;
  }
  for (const part of parts) reveal(document.getElementById(part));
}

document.addEventListener("click", async (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const button = event.target.closest("[data-copy]");
  if (button) {
    const { textCopied: copied, textNotCopied: failed } = section.dataset;
    const { textContent } = button.closest(".panel-entry").querySelector("[data-json]");
    copyFrom(button, textContent, { copied, failed, state });
  }
  const number = event.target.closest(".panel-pages a, .panel-more");
  if (number) {
    event.preventDefault();
    const { id } = number.closest("section");
    await replaceParts(number, [id]);
    document.getElementById(`${id}-title`)?.focus();
  }
  const refresh = event.target.closest("#channel-refresh");
  if (refresh) {
    event.preventDefault();
    await replaceParts(refresh, PARTS);
    document.getElementById("channel-refresh")?.focus();
  }
});

reveal(document);
section.querySelector(".panel-live").hidden = false;
new Tail(section).start();
