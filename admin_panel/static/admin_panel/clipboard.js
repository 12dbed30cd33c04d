/** Puts text into the clipboard; returns whether it worked. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // pages that came without TLS have no clipboard of their own
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "panel-offscreen";
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    focused?.focus();
    return copied;
  }
}

/** Copies, and says so for a moment: on the button, and in `state`, which is read out. */
export async function copyFrom(button, text, { copied, failed, state }) {
  const label = (button.dataset.label ??= button.textContent);
  button.textContent = state.textContent = (await copyText(text)) ? copied : failed;
  clearTimeout(button.timer);
  button.timer = setTimeout(() => {
    button.textContent = label;
    state.textContent = "";
  }, 1500);
}
