// Events of a page that a test waits for, and what the page did not catch.

const PATIENCE = 15_000; // milliseconds

const events = []; // told, and not asked for yet
const failures = []; // what nobody caught
let look = () => {};

addEventListener("error", ({ message }) => failures.push(message));
addEventListener("unhandledrejection", ({ reason }) => failures.push(String(reason)));

function tell(name, context) {
  events.push({ name, context });
  look();
}

/** The context of the oldest such event that was not asked for yet. */
function next(name) {
  return new Promise((resolve, reject) => {
    const missing = () => reject(new Error(`no ${name}, but ${JSON.stringify(events)}`));
    const timer = setTimeout(missing, PATIENCE);
    look = () => {
      const index = events.findIndex((event) => event.name === name);
      if (index < 0) return;
      look = () => {};
      clearTimeout(timer);
      resolve(events.splice(index, 1)[0].context);
    };
    look();
  });
}
