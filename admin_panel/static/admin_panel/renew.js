/**
 * Shows new content of a part of the page.
 *
 * Details that are open stay as they are, for whoever reads them: they are new when they are opened
 * again. A control with the focus and an ID keeps it; without an ID it keeps the part from changing.
 *
 * @param {Element} part
 * @param {Element} next what holds the new content
 */
export function renew(part, next) {
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  if (part.innerHTML === next.innerHTML || focused?.id === "") return;
  const opened = [...part.querySelectorAll("details[open][id]")];
  part.replaceChildren(...next.childNodes);
  for (const details of opened) document.getElementById(details.id)?.replaceWith(details);
  if (focused !== null) document.getElementById(focused.id)?.focus({ preventScroll: true });
}
