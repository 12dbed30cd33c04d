/**
 * JSON as text (RFC 8259): check, indent, compact. Values are not parsed into JavaScript values, so
 * the spelling of numbers, the order of names and duplicate names stay.
 */

const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const WORD = /true|false|null/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const CLOSING = { "{": "}", "[": "]" };

class Refused extends Error {
  constructor(kind, offset) {
    super(kind);
    this.kind = kind;
    this.offset = offset;
  }
}

function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

/** Returns the kind of error in the string that begins at an offset. */
function mistakeInString(text, start) {
  let at = start + 1;
  for (;;) {
    at += match(PLAIN, text, at).length;
    if (at >= text.length) return new Refused("string", start);
    if (text[at] !== "\\") return new Refused("control", at);
    const escape = match(ESCAPE, text, at);
    if (escape === "") return new Refused("escape", at);
    at += escape.length;
  }
}

function string(text, at) {
  const found = match(STRING, text, at);
  if (found === "") throw mistakeInString(text, at);
  return found;
}

/** Yields the tokens of a text. Throws `Refused` at the first error. */
function* tokens(text) {
  const open = []; // expected closing brackets: depth costs no stack
  let expected = "value"; // value, first (value or end), key, firstKey (key or end), colon, comma
  let at = 0;
  for (;;) {
    at += match(SPACE, text, at).length;
    const character = text[at] ?? "";
    if (expected === "end") {
      if (character !== "") throw new Refused("extra", at);
      return;
    }
    let token = character;
    const inner = () => (open.length === 0 ? "end" : "comma");
    if (
      character !== "" &&
      character === open.at(-1) &&
      ["first", "firstKey", "comma"].includes(expected)
    ) {
      open.pop();
      expected = inner();
    } else if (expected === "comma") {
      if (character !== ",") throw new Refused("comma", at);
      expected = open.at(-1) === "}" ? "key" : "value";
    } else if (expected === "colon") {
      if (character !== ":") throw new Refused("colon", at);
      expected = "value";
    } else if (expected === "key" || expected === "firstKey") {
      if (character !== '"') throw new Refused("key", at);
      token = string(text, at);
      expected = "colon";
    } else if (character in CLOSING) {
      open.push(CLOSING[character]);
      expected = character === "{" ? "firstKey" : "first";
    } else {
      token = character === '"' ? string(text, at) : match(NUMBER, text, at) || match(WORD, text, at);
      if (token === "") throw new Refused("value", at);
      expected = inner();
    }
    yield token;
    at += token.length;
  }
}

/**
 * Returns null for valid JSON, otherwise `{ kind, offset, line, column }` of the first character
 * that is not allowed there. Line and column start at 1; the column counts characters.
 */
export function check(text) {
  if (text.trim() === "") return { kind: "empty", offset: 0, line: 1, column: 1 };
  try {
    for (const _ of tokens(text));
    return null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const before = text.slice(0, error.offset);
    const line = before.split("\n").length;
    const column = [...before.slice(before.lastIndexOf("\n") + 1)].length + 1;
    return { kind: error.kind, offset: error.offset, line, column };
  }
}

/** Returns the same JSON value over several lines, indented by `step` for each level. */
export function format(text, step = "  ") {
  const parts = [];
  let margin = "\n";
  let before = "";
  for (const token of tokens(text)) {
    const isEmpty = (before === "{" || before === "[") && CLOSING[before] === token;
    if (token === "}" || token === "]") {
      margin = margin.slice(0, margin.length - step.length);
      if (!isEmpty) parts.push(margin);
    } else if (before === "{" || before === "[" || before === ",") {
      parts.push(margin);
    }
    parts.push(token);
    if (token === ":") parts.push(" ");
    if (token === "{" || token === "[") margin += step;
    before = token;
  }
  return parts.join("");
}

/** Returns the same JSON value without spaces between its parts. */
export function compact(text) {
  return [...tokens(text)].join("");
}
