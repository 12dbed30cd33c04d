import { Client } from "realtime";

const find = (id) => document.getElementById(id);
const title = document.title;

// each publication says one fact, and a fact that comes twice changes nothing

function add(id, text) {
  if (row(id)) return; // the page came with it
  const item = find("new").content.cloneNode(true).firstElementChild;
  item.dataset.id = id;
  item.querySelector("span").textContent = text;
  item.querySelector("button").setAttribute("formaction", `read/${id}`);
  find("list").prepend(item);
}

function markRead(id) {
  row(id)?.classList.remove("unread");
  row(id)?.querySelector("button")?.remove();
}

function row(id) {
  return find("list").querySelector(`[data-id="${id}"]`);
}

/** The count is never sent: it is that of the rows, so it cannot differ from them. */
function count() {
  const unread = find("list").querySelectorAll(".unread").length;
  find("count").textContent = unread || "";
  document.title = unread ? `(${unread}) ${title}` : title;
}

const inbox = Client.fromPage().page("inbox", {
  publish: ({ data }) => {
    if (data.new) add(data.new, data.text);
    for (const id of data.read ?? []) markRead(id);
    count();
  },
});

function say(text) {
  find("state").textContent = text;
}

const STATES = { subscribing: "Connecting", subscribed: "", unsubscribed: "Disconnected" };
for (const [state, text] of Object.entries(STATES)) inbox.on(state, () => say(text));

// forms stay on the page: what they do comes back by the channel, here as in all other tabs

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.id === "leave") return;
  event.preventDefault();
  const action = event.submitter?.getAttribute("formaction") ?? form.action;
  const options = { method: "POST", body: new FormData(form), redirect: "manual" };
  await fetch(action, options).catch(() => say("Not sent: the server does not answer"));
});

count();
