/** Times with 24 hours, as the server writes them. */

const language = document.documentElement.lang || undefined;

/** @param {Date} date */
export function timeOf(date) {
  return date.toLocaleTimeString(language, { hourCycle: "h23" });
}

/** @param {Date} date */
export function dateAndTimeOf(date) {
  const style = { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" };
  return date.toLocaleString(language, style);
}
