/**
 * JSON as text (RFC 8259): where it is wrong, indented, compact. Values are never read into
 * JavaScript's own, so the spelling of numbers, the order of names and double names are kept.
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

/** Which mistake a string has that begins at an offset. */
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

/** The tokens of a text, in order. Throws `Refused` where it stops being one JSON value. */
function* tokens(text) {
  const open = []; // closing brackets that are awaited: depth costs no stack
  let awaited = "value"; // value, first (value or end), key, firstKey (key or end), colon, comma
  let at = 0;
  for (;;) {
    at += match(SPACE, text, at).length;
    const character = text[at] ?? "";
    if (awaited === "end") {
      if (character !== "") throw new Refused("extra", at);
      return;
    }
    let token = character;
    const inner = () => (open.length === 0 ? "end" : "comma");
    if (
      character !== "" &&
      character === open.at(-1) &&
      ["first", "firstKey", "comma"].includes(awaited)
    ) {
      open.pop();
      awaited = inner();
    } else if (awaited === "comma") {
      if (character !== ",") throw new Refused("comma", at);
      awaited = open.at(-1) === "}" ? "key" : "value";
    } else if (awaited === "colon") {
      if (character !== ":") throw new Refused("colon", at);
      awaited = "value";
    } else if (awaited === "key" || awaited === "firstKey") {
      if (character !== '"') throw new Refused("key", at);
      token = string(text, at);
      awaited = "colon";
    } else if (character in CLOSING) {
      open.push(CLOSING[character]);
      awaited = character === "{" ? "firstKey" : "first";
    } else {
      token = character === '"' ? string(text, at) : match(NUMBER, text, at) || match(WORD, text, at);
      if (token === "") throw new Refused("value", at);
      awaited = inner();
    }
    yield token;
    at += token.length;
  }
}

/**
 * Returns null for valid JSON, otherwise `{ kind, offset, line, column }` of the first character
 * that cannot stand there: line and column count from 1, the column in characters.
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

/** The same JSON value over several lines, `step` more in front for each level. */
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

/** The same JSON value without space between its parts. */
export function compact(text) {
  return [...tokens(text)].join("");
}
