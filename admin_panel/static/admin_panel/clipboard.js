/** Copies text to the clipboard; returns whether it worked. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // pages without TLS have no clipboard API
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

/** Copies text, and shows it for a moment on the button and in `state`, for screen readers. */
export async function copyFrom(button, text, { copied, failed, state }) {
  const label = (button.dataset.label ??= button.textContent);
  button.textContent = state.textContent = (await copyText(text)) ? copied : failed;
  clearTimeout(button.timer);
  button.timer = setTimeout(() => {
    button.textContent = label;
    state.textContent = "";
  }, 1500);
}
