// @ts-check
// Making elements. Text is always text: nothing here reads HTML.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * An element with attributes and children. "class" is its class, functions are
 * listeners, true is an attribute without a value, and false or null is none.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...some(children));
  return element;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {unknown} value
 */
function set(element, name, value) {
  if (typeof value === 'function') {
    element.addEventListener(name.replace(/^on/, ''), /** @type {EventListener} */ (value));
  } else if (value === true) element.setAttribute(name, '');
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
}

/**
 * The children that are there.
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
const some = (children) => /** @type {(Node | string)[]} */ (children.filter((c) => c !== null && c !== undefined && c !== false));

/**
 * Changes the text of an element where it is another one.
 * @param {Element} element
 * @param {string} value
 */
export function setText(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...Child} children
 */
export const fill = (element, ...children) => element.replaceChildren(...some(children));

let ids = 0;

/**
 * An id that no other element has.
 * @param {string} what
 */
export const newID = (what) => `${what}-${++ids}`;

/**
 * Calls a function at most once a frame, however often it is asked for.
 * @param {() => void} draw
 */
export function everyFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
