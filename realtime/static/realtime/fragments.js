// @ts-check
// HTML of the server for live elements, see live.js: how it is parsed, and how it is shown.
//
// It is parsed where nothing runs. Before it is shown it loses its scripts, its attributes that handle
// events, and its URLs that are scripts. Attributes in which libraries see code, such as those of htmx
// and Alpine, stay: like the page, fragments come from the templates of the site, which escape.
//
// An input hides the property of its form that has its name: `<input name="children">`. So what may
// be a form is read by way of `real`.

const ACTIVE =
  "script:not([type='application/json' i]), base, meta, object, embed, " +
  "#realtime-config, #realtimeInspector, [attributeName*='href' i]";
/** Elements that hide the property of the document that has their name. */
const NAMED = "form[name], iframe[name], img[name]";
/** Names of inputs that many forms have, and that libraries do not read as properties. */
const HARMLESS = /^(id|role|slot|prefix)$/;
const URLS = /^(href|src|action|formaction|data)$/i;
const SCRIPT_URL = /^(javascript|vbscript|data):/i;
const PICTURE = /^data:image\//i;
const POSITION = "script[data-realtime-channel]";
const TYPED = "textarea, input:not([type=checkbox], [type=radio], [type=button], [type=submit])";

export const TAG = "realtime-live";
const SWAPS = ["replace", "inner", "append", "prepend", "before", "after", "morph", "remove"];
/** Those of the live element itself, which stays. */
const OWN_SWAPS = ["replace", "inner", "append", "prepend", "morph"];

/** @type {any} The page, which may have `Idiomorph`, `htmx` and trusted types. */
const page = globalThis;
/** @type {{ createHTML: (html: string) => any } | undefined} */
let policy;

/** Returns the nodes of a fragment. @param {string} html */
export function parse(html) {
  return clean(inert(html));
}

/** Returns a live element of a page; null without it. @param {string} html @param {string} id */
export function parsePage(html, id) {
  const found = inert(html).querySelector(`${TAG}#${CSS.escape(id)}`);
  return found && clean(found);
}

/** @param {string} html */
function inert(html) {
  const template = document.createElement("template");
  template.innerHTML = trusted(html);
  return template.content;
}

/** Returns a node whose properties are not hidden: a form is read as its prototype has it.
 * @template {Node | null | undefined} T @param {T} node @returns {T} */
function real(node) {
  return node instanceof HTMLFormElement ? /** @type {any} */ (new Proxy(node, REAL)) : node;
}

/** Whether the page has it: elements hide what a window lacks. @param {unknown} value */
function isFunction(value) {
  return typeof value === "function";
}

/** @type {ProxyHandler<HTMLFormElement>} */
const REAL = {
  get(form, name) {
    const value = Reflect.get(HTMLFormElement.prototype, name, form);
    return isFunction(value) ? value.bind(form) : value;
  },
  set: (form, name, value) => Reflect.set(HTMLFormElement.prototype, name, value, form),
};

/** Where a content security policy demands it, text becomes HTML by a policy with this name.
 * @param {string} html @returns {any} */
function trusted(html) {
  if (isFunction(page.trustedTypes?.createPolicy))
    policy ??= page.trustedTypes.createPolicy("realtime-live", { createHTML: String });
  return policy ? policy.createHTML(html) : html;
}

/** Take out what could run. @template {Element | DocumentFragment} T @param {T} root @returns {T} */
function clean(root) {
  for (const each of root.querySelectorAll(ACTIVE)) real(each).remove();
  for (const each of root.querySelectorAll(NAMED)) {
    const { id, name } = real(/** @type {any} */ (each));
    if (id in Document.prototype || name in Document.prototype) real(each).removeAttribute("name");
  }
  for (const each of root.querySelectorAll("*")) {
    const element = real(each);
    if (each instanceof HTMLTemplateElement) clean(each.content);
    for (const { name, localName, value } of [...element.attributes]) {
      const url = URLS.test(localName) ? value.replace(/[\0-\x20]+/g, "") : "";
      const isPicture = PICTURE.test(url) && element.localName === "img";
      if (/^(on|srcdoc$)/i.test(name) || (SCRIPT_URL.test(url) && !isPicture))
        element.removeAttribute(name);
    }
  }
  return root;
}

/**
 * What publications do to a live element. Each function returns whether there is a place for it.
 *
 * @type {Map<string, (live: Element, data: any) => boolean>}
 */
export const OPERATIONS = new Map(
  /** @type {[string, any][]} */ ([["put", put], ["remove", remove], ["swap", swap]]),
);

/** @type {(live: Element, data: { key: string, html?: unknown }) => boolean} */
function put(live, { key, html }) {
  if (typeof html !== "string") return true; // for scripts of the page
  const fragment = parse(html);
  const fresh = rowIn(fragment, key) ?? fragment.firstElementChild;
  if (!fresh) return false;
  real(fresh).setAttribute("data-key", key);
  const old = rowIn(live, key);
  const order = old && orderOf(old);
  if (old) show(old, fresh);
  const row = rowIn(live, key) ?? fresh;
  if (!old || orderOf(row) !== order) place(live, row);
  return true;
}

/** @type {(live: Element, data: { key: string }) => boolean} */
function remove(live, { key }) {
  real(rowIn(live, key))?.remove();
  return true;
}

/** @type {(live: Element, data: { swap: string, target?: unknown, html?: unknown }) => boolean} */
function swap(live, { swap, target, html }) {
  const place = target === undefined ? live : find(live, `${target}`);
  const isOwn = place === live;
  if (!place || !(isOwn ? OWN_SWAPS : SWAPS).includes(swap)) return false;
  const fragment = parse(`${html ?? ""}`);
  if (swap === "remove") real(place).remove();
  else if (swap === "replace" || swap === "inner" || swap === "morph") {
    const position = isOwn && positionIn(live);
    if (position) fragment.prepend(position);
    show(place, fragment, { inner: isOwn || swap === "inner", morph: swap === "morph" });
  } else add(live, place, /** @type {any} */ (swap), fragment);
  return true;
}

/** @param {Element} live @param {Element} place @param {"append" | "prepend" | "before" | "after"} how
 * @param {DocumentFragment} fragment */
function add(live, place, how, fragment) {
  // what is there already takes its own place: the page may be newer than the publication
  for (const each of [...fragment.children]) {
    const { id } = real(each);
    const key = real(each).getAttribute("data-key");
    const old = id ? find(live, `#${CSS.escape(id)}`) : key !== null && rowIn(live, key);
    if (old) show(old, each);
  }
  const added = [...fragment.childNodes];
  const position = place === live && how === "prepend" && positionIn(live);
  if (position) position.after(...added);
  else real(place)[how](...added);
  process(added);
}

/** Put a row where it belongs among the others. @param {Element} live @param {Element} row */
function place(live, row) {
  const parent = real(find(live, "[data-rows]") ?? live);
  const isReversed = live.getAttribute("data-add") === "prepend";
  const order = orderOf(row);
  const isRow = (/** @type {Element} */ each) => real(each).hasAttribute("data-key");
  const rows = [...parent.children].filter((each) => each !== row && isRow(each));
  const isAfter = (/** @type {Element} */ each) => {
    const difference = compare(orderOf(each) ?? "", order ?? "");
    return isReversed ? difference < 0 || order === null : difference > 0 && order !== null;
  };
  const next = rows.find(isAfter) ?? real(rows.at(-1))?.nextSibling ?? null;
  // a move that keeps the focus, where the browser knows it
  if (real(row).isConnected && "moveBefore" in Element.prototype)
    /** @type {any} */ (parent).moveBefore(row, next);
  else parent.insertBefore(row, next);
  process([row]);
}

/** @param {Element} row */
function orderOf(row) {
  return real(row).getAttribute("data-order");
}

/** @param {string} a @param {string} b texts, or numbers if both are */
function compare(a, b) {
  const difference = Number(a) - Number(b);
  return a && b && !Number.isNaN(difference) ? difference : a < b ? -1 : Number(a > b);
}

/** Returns what is in a live element, or is it; null: there is none, or no such selector.
 * @param {Element} live @param {string} selector */
function find(live, selector) {
  try {
    if (live.matches(selector)) return live;
    return [...live.querySelectorAll(selector)].find((each) => isOf(live, each)) ?? null;
  } catch {
    return null;
  }
}

/** @param {Element | DocumentFragment} root @param {string} key */
function rowIn(root, key) {
  const rows = real(root).querySelectorAll(`[data-key="${CSS.escape(key)}"]`);
  return [...rows].find((row) => isOf(root, row));
}

/** Whether it is in no live element within this one. @param {Node} root @param {Element} element */
function isOf(root, element) {
  return (real(real(element).parentElement)?.closest(TAG) ?? root) === root;
}

/**
 * Show new nodes in place of an element, or of its children. Focus, caret, what was typed and scrolled
 * places stay, as far as the new nodes have the same shape.
 *
 * @param {Element} old
 * @param {Element | DocumentFragment} fresh
 * @param {{ inner?: boolean, morph?: boolean }} [how] `morph`: change only what differs, if the page
 *   has Idiomorph
 */
export function show(old, fresh, { inner = false, morph = true } = {}) {
  const isAll = inner || fresh instanceof DocumentFragment;
  const added = isAll ? [...fresh.childNodes] : [fresh];
  const restore = [...(inner ? scrolled(old) : []), focused(old)];
  const now = real(old);
  if (morph && isFunction(page.Idiomorph?.morph) && !hides(old) && !hides(fresh)) {
    const morphStyle = inner ? "innerHTML" : "outerHTML";
    page.Idiomorph.morph(old, added, { morphStyle, ignoreActiveValue: true });
  } else if (inner) now.replaceChildren(...added);
  else now.replaceWith(...added);
  const shown = now.isConnected ? [old] : added.filter((each) => each instanceof Element);
  for (const each of restore) each(shown[0]);
  process(shown);
}

/** Whether inputs hide what a library reads of their forms: it could fail, or go round in a circle.
 * @param {any} root */
function hides(root) {
  const forms = [real(root).closest?.("form"), ...real(root).querySelectorAll("form")];
  return forms.some((form) => Object.getOwnPropertyNames(form ?? {}).some(
    (name) => name in Element.prototype && !HARMLESS.test(name),
  ));
}

/** htmx looks at new elements only when it is told. @param {Node[]} nodes */
function process(nodes) {
  if (!isFunction(page.htmx?.process)) return;
  for (const each of nodes)
    if (each instanceof Element) try { page.htmx.process(each); } catch (error) { reportError(error); }
}

/** Returns a function that gives the focus back. @param {Element} root */
function focused(root) {
  const found = document.activeElement;
  if (!real(root).contains(found)) return () => {};
  const active = /** @type {any} */ (real(found));
  const find = finder(root, /** @type {Element} */ (found));
  const { selectionStart, selectionEnd, value, defaultValue } = active;
  const isTyped = active.matches(TYPED) && value !== defaultValue;
  return (/** @type {Element | undefined} */ fresh) => {
    const now = find(fresh);
    if (!now || now === document.activeElement) return;
    if (isTyped) now.value = value;
    real(now).focus({ preventScroll: true });
    if (typeof selectionStart === "number") now.setSelectionRange(selectionStart, selectionEnd);
  };
}

/** Returns functions that scroll to where it was scrolled to. @param {Element} root */
function scrolled(root) {
  const all = [root, ...real(root).querySelectorAll("*")];
  return all.flatMap((each) => {
    const { scrollTop, scrollLeft } = real(each);
    if (!scrollTop && !scrollLeft) return [];
    const find = finder(root, each);
    return (/** @type {Element | undefined} */ fresh) => {
      Object.assign(real(find(fresh)) ?? {}, { scrollTop, scrollLeft });
    };
  });
}

/** Returns a function that finds an element again: by its ID, or by its row and its place in that.
 * @param {Element} root @param {Element} element
 * @returns {(fresh: Element | undefined) => any} */
function finder(root, element) {
  const { id, localName } = real(element);
  const row = real(element).closest("[data-key]");
  const top = row && row !== root && real(root).contains(row) ? row : root;
  const key = real(top).getAttribute("data-key");
  /** @type {number[]} */
  const path = [];
  for (let each = element; each !== top; ) {
    const parent = /** @type {Element} */ (real(each).parentElement);
    path.unshift([...real(parent).children].indexOf(each));
    each = parent;
  }
  return (fresh) => {
    if (real(element).isConnected) return element;
    const isRow = `[data-key="${CSS.escape(key ?? "")}"]`;
    const start = top === root ? fresh : real(fresh)?.querySelector(isRow);
    /** @type {any} */
    let found = id ? document.getElementById(id) : start;
    if (!id) for (const index of path) found = real(found)?.children[index];
    return real(found)?.localName === localName ? found : undefined;
  };
}

/** Returns the element with the position of a live element. @param {Element} live */
export function positionIn(live) {
  return live.querySelector(`:scope > ${POSITION}`) ?? undefined;
}

/** Returns channel and position: that of the rendering, or the one that the live element has come to.
 * @param {Element | undefined} script @returns {any} */
export function valuesOf(script) {
  const [rendered, present] = [script?.textContent, script?.getAttribute("data-at")];
  return { ...JSON.parse(rendered ?? "{}"), ...JSON.parse(present ?? "{}") };
}

/** Returns a text that changes with both. @param {Element | undefined} script */
export function stateOf(script) {
  return `${script?.textContent} ${script?.getAttribute("data-at")}`;
}
