/**
 * Turns a textarea into a small JSON editor: line numbers, a mark at an error, indentation.
 *
 * The Tab key indents. After Escape the next Tab leaves the editor, for users of the keyboard. The
 * browser's undo works for all changes.
 */

import { check, compact, format } from "./json-text.js";

const STEP = "  ";
const PAUSE = 120; // milliseconds without typing, after which the text is checked

export class JSONEditor {
  #area;
  #state;
  #texts;
  #numbers = document.createElement("pre");
  #mark = document.createElement("div");
  #timer = 0;
  #free = false; // whether the next Tab leaves
  #lines = 0;

  /** @param {HTMLElement} root with textarea, buttons and state, and texts as data attributes */
  constructor(root) {
    this.#area = root.querySelector("textarea");
    this.#state = root.querySelector("[role=status]");
    this.#texts = root.dataset;
    this.#numbers.className = "panel-editor-numbers";
    this.#numbers.ariaHidden = "true";
    this.#mark.className = "panel-editor-mark";
    this.#mark.hidden = true;
    this.#area.before(this.#numbers, this.#mark);
    this.#area.wrap = "off"; // so that lines stay next to their numbers
    const keys = root.querySelector("#editor-keys");
    const described = this.#area.getAttribute("aria-describedby") ?? "";
    this.#area.setAttribute("aria-describedby", `${described} ${keys.id}`.trim());
    const bar = keys.parentElement;
    bar.hidden = this.#state.hidden = false;
    root.classList.add("is-ready");

    const buttons = { format: (text) => format(text, STEP), compact };
    for (const [name, change] of Object.entries(buttons)) {
      bar.querySelector(`[data-action=${name}]`).addEventListener("click", () => {
        if (this.isValid) this.#replaceAll(change(this.text));
        else this.showMistake();
      });
    }
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("scroll", () => this.#follow());
    this.#area.addEventListener("keydown", (event) => this.#key(event));
    this.#area.addEventListener("blur", () => this.#hold());
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
    this.#number();
    const mistake = check(this.text);
    const isWrong = mistake !== null && mistake.kind !== "empty";
    this.#mark.hidden = !isWrong;
    this.#state.classList.toggle("is-wrong", isWrong);
    if (isWrong) this.#area.setAttribute("aria-invalid", "true");
    else this.#area.removeAttribute("aria-invalid");
    if (mistake === null) {
      const bytes = new TextEncoder().encode(this.text).length;
      const language = document.documentElement.lang || undefined;
      this.#say(this.#texts.textOk.replace("%s", bytes.toLocaleString(language)));
      return;
    }
    if (!isWrong) {
      this.#say("");
      return;
    }
    const kind = mistake.kind[0].toUpperCase() + mistake.kind.slice(1);
    const at = this.#texts.textAt.replace("%l", mistake.line).replace("%c", mistake.column);
    this.#mark.style.setProperty("--line", String(mistake.line - 1));
    this.#say(`${at} ${this.#texts[`text${kind}`]}`);
  }

  #say(text) {
    // screen readers read a status again whenever it is set
    if (this.#state.textContent !== text) this.#state.textContent = text;
  }

  #typed() {
    this.#number();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh(), PAUSE);
  }

  #number() {
    const lines = this.text.split("\n").length;
    if (lines !== this.#lines) {
      this.#lines = lines;
      const digits = String(String(lines).length);
      this.#area.parentElement.style.setProperty("--digits", digits);
      this.#numbers.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
    }
    this.#follow();
  }

  #follow() {
    this.#numbers.scrollTop = this.#area.scrollTop;
    this.#mark.style.setProperty("--scrolled", `${this.#area.scrollTop}px`);
  }

  #hold() {
    this.#free = false;
  }

  #key(event) {
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") {
      this.refresh(); // now, because a later check would replace the text
      this.#free = true;
      this.#say(this.#texts.textFree);
    } else if (event.key === "Tab") {
      if (this.#free) return; // and the focus moves on
      event.preventDefault();
      if (event.shiftKey) this.#outdent();
      else this.#indent();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#breakLine();
    } else if (event.key !== "Shift") {
      if (this.#free) this.refresh();
      this.#hold();
    }
  }

  #breakLine() {
    const start = this.#area.selectionStart;
    const line = this.text.slice(this.text.lastIndexOf("\n", start - 1) + 1, start);
    const margin = /^[ \t]*/.exec(line)[0];
    const opens = /[{[]\s*$/.test(line);
    const closes = opens && /^[}\]]/.test(this.text.slice(this.#area.selectionEnd));
    this.#insert(`\n${margin}${opens ? STEP : ""}${closes ? `\n${margin}` : ""}`);
    if (closes) {
      const at = this.#area.selectionStart - margin.length - 1;
      this.#area.setSelectionRange(at, at);
    }
  }

  #indent() {
    const { selectionStart: start, selectionEnd: end } = this.#area;
    if (this.text.slice(start, end).includes("\n")) {
      this.#changeLines((line) => (line === "" ? line : STEP + line));
    } else {
      this.#insert(STEP);
    }
  }

  #outdent() {
    this.#changeLines((line) => line.replace(/^(?: {1,2}|\t)/, ""));
  }

  /** Changes each selected line, or the line of the cursor. */
  #changeLines(change) {
    const { selectionStart: start, selectionEnd: end } = this.#area;
    const first = this.text.lastIndexOf("\n", start - 1) + 1;
    const stop = this.text.indexOf("\n", Math.max(first, end > start ? end - 1 : end));
    const last = stop === -1 ? this.text.length : stop;
    const before = this.text.slice(first, last);
    const lines = before.split("\n");
    const after = lines.map(change).join("\n");
    if (after === before) return;
    const moved = change(lines[0]).length - lines[0].length;
    this.#area.setSelectionRange(first, last);
    this.#insert(after);
    const from = Math.max(first, start + moved);
    this.#area.setSelectionRange(from, Math.max(from, end + after.length - before.length));
  }

  #replaceAll(text) {
    this.#area.focus();
    this.#area.select();
    this.#insert(text);
    this.#area.setSelectionRange(0, 0);
    this.#area.scrollTop = 0;
    this.refresh();
  }

  /** Replaces the selection as typing does, so that undo works. */
  #insert(text) {
    const isDone =
      text === ""
        ? document.execCommand("delete")
        : document.execCommand("insertText", false, text);
    if (isDone) return;
    this.#area.setRangeText(text, this.#area.selectionStart, this.#area.selectionEnd, "end");
    this.#typed();
  }
}
