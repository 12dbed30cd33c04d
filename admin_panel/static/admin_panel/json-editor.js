/**
 * A field for JSON: it says where the text stops being JSON, and has buttons that lay it out.
 *
 * The browser's undo works for what the buttons do.
 */

import { check, compact, format } from "./json-text.js";

const PAUSE = 120; // milliseconds without typing, after which the text is checked

export class JSONEditor {
  #area;
  #state;
  #texts;
  #timer = 0;

  /** @param {HTMLElement} root with textarea, buttons and state, and texts as data attributes */
  constructor(root) {
    this.#area = root.querySelector("textarea");
    this.#state = root.querySelector("[role=status]");
    this.#texts = root.dataset;
    const bar = root.querySelector(".panel-editor-bar");
    bar.hidden = this.#state.hidden = false;
    root.classList.add("is-ready");

    for (const [name, change] of Object.entries({ format, compact })) {
      bar.querySelector(`[data-action=${name}]`).addEventListener("click", () => {
        if (this.isValid) this.#replaceAll(change(this.text));
        else this.showMistake();
      });
    }
    this.#area.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.refresh(), PAUSE);
    });
    this.refresh();
  }

  /** The textarea. */
  get element() {
    return this.#area;
  }

  get text() {
    return this.#area.value;
  }

  get isEmpty() {
    return this.text.trim() === "";
  }

  get isValid() {
    return check(this.text) === null;
  }

  /** Replaces the whole text; undo does not work for it. */
  set text(text) {
    this.#area.value = text;
    this.refresh();
  }

  /** Moves the cursor to the error. */
  showMistake() {
    const mistake = check(this.text);
    this.refresh();
    this.#area.focus();
    if (mistake !== null) this.#area.setSelectionRange(mistake.offset, mistake.offset);
  }

  /** Checks the text and shows the result. */
  refresh() {
    clearTimeout(this.#timer);
    const mistake = check(this.text);
    const isWrong = mistake !== null && mistake.kind !== "empty";
    this.#state.classList.toggle("is-wrong", isWrong);
    if (isWrong) this.#area.setAttribute("aria-invalid", "true");
    else this.#area.removeAttribute("aria-invalid");
    const said = isWrong ? this.#wordsOf(mistake) : mistake === null ? this.#size() : "";
    // screen readers read a status again whenever it is set
    if (this.#state.textContent !== said) this.#state.textContent = said;
  }

  #size() {
    const bytes = new TextEncoder().encode(this.text).length;
    const language = document.documentElement.lang || undefined;
    return this.#texts.textOk.replace("%s", bytes.toLocaleString(language));
  }

  #wordsOf({ kind, line, column }) {
    const at = this.#texts.textAt.replace("%l", line).replace("%c", column);
    return `${at} ${this.#texts[`text${kind[0].toUpperCase()}${kind.slice(1)}`]}`;
  }

  /** Replaces the text as typing does, so that undo works. */
  #replaceAll(text) {
    this.#area.focus();
    this.#area.select();
    if (!document.execCommand("insertText", false, text)) this.#area.value = text;
    this.#area.setSelectionRange(0, 0);
    this.#area.scrollTop = 0;
    this.refresh();
  }
}
