// @ts-check
// The components of the page. Their looks are in styles.css.

import { h, newID } from './dom.js';

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {'neutral' | 'info' | 'good' | 'warn' | 'bad'} Tone */

/**
 * A button; "kind" is plain, primary, danger or ghost.
 * @param {string} label
 * @param {() => void} press
 * @param {{kind?: string, title?: string, type?: string, disabled?: boolean}} [options]
 */
export function button(label, press, options = {}) {
  return h('button', {
    class: `button button-${options.kind ?? 'plain'}`,
    type: options.type ?? 'button', title: options.title, disabled: options.disabled ?? false, onclick: press,
  }, label);
}

/**
 * A short word on a state, with a dot that does not carry the meaning alone.
 * @param {string} word
 * @param {Tone} tone
 */
export function badge(word, tone = 'neutral') {
  return h('span', { class: `badge badge-${tone}` }, h('span', { class: 'badge-dot', 'aria-hidden': 'true' }), word);
}

/**
 * A section with a heading; aside stands at the right end of the heading.
 * @param {string} title
 * @param {{aside?: Child, class?: string, level?: number}} options
 * @param {...Child} children
 */
export function card(title, options, ...children) {
  const id = newID('card');
  const heading = h(/** @type {'h2'} */ (`h${options.level ?? 2}`), { class: 'card-title', id }, title);
  return h('section', { class: `card ${options.class ?? ''}`, 'aria-labelledby': id },
    h('header', { class: 'card-head' }, heading, options.aside ?? null), ...children);
}

/**
 * A labelled text area. Control-Enter submits its form.
 * @param {string} label
 * @param {{value?: string, rows?: number, placeholder?: string, maxLength?: number}} [options]
 */
export function textArea(label, options = {}) {
  const id = newID('text');
  const area = h('textarea', {
    class: 'textarea', id, rows: options.rows ?? 3, placeholder: options.placeholder, maxlength: options.maxLength, spellcheck: 'true',
    onkeydown: (/** @type {KeyboardEvent} */ e) => {
      if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) area.form?.requestSubmit();
    },
  });
  area.value = options.value ?? '';
  return { area, field: h('div', { class: 'field' }, h('label', { class: 'label', for: id }, label), area) };
}

/**
 * A labelled choice of one of several.
 * @param {string} label
 * @param {{value: string, label: string, group: string}[]} options
 */
export function select(label, options) {
  const id = newID('select');
  const element = h('select', { class: 'select', id });
  for (const group of new Set(options.map((o) => o.group))) {
    const own = options.filter((o) => o.group === group);
    element.append(h('optgroup', { label: group }, ...own.map((o) => h('option', { value: o.value }, o.label))));
  }
  return { element, field: h('div', { class: 'field' }, h('label', { class: 'label', for: id }, label), element) };
}

/**
 * A line with a name and a value.
 * @param {string} name
 * @param {Child} value
 */
export const fact = (name, value) => h('div', { class: 'fact' }, h('dt', {}, name), h('dd', {}, value));

/** @type {Record<string, Tone>} */
const tones = {
  succeeded: 'good', completed: 'good', resolved: 'good', done: 'good', closed: 'neutral', ended: 'neutral',
  failed: 'bad', rejected: 'bad', blocked: 'bad',
  cancelled: 'warn', interrupted: 'warn', expired: 'warn', yielded: 'warn', needs_review: 'warn', pending: 'warn',
  started: 'info', running: 'info', active: 'info', submitted: 'info', accepted: 'info', starting: 'info', executing: 'info',
};

/**
 * The tone of a state.
 * @param {string} state
 * @returns {Tone}
 */
export const toneOf = (state) => tones[state] ?? 'neutral';
