// @ts-check
// A list of any length of which only what is seen has elements. It is a listbox:
// arrows, Page Up, Page Down, Home and End move the choice, Enter opens it.

import { h, newID } from './dom.js';

/** Rows beyond the edges that have elements as well, so that scrolling shows no holes. */
const MARGIN = 8;

export class WindowedList {
  length = 0;
  chosen = -1;
  /** Whether the end stays in sight when the list grows. */
  following = true;

  /**
   * @param {object} options
   * @param {string} options.label
   * @param {number} options.rowHeight  in pixels, as styles.css has it
   * @param {(row: HTMLElement, index: number) => void} options.draw  fills a row, which may have been another
   * @param {(index: number) => void} options.open
   * @param {() => void} options.moved  the end came in sight or went out of it
   */
  constructor({ label, rowHeight, draw, open, moved }) {
    this.rowHeight = rowHeight;
    this.draw = draw;
    this.open = open;
    this.moved = moved;
    this.prefix = newID('row');
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    this.space = h('div', { class: 'window-space', role: 'presentation' });
    this.element = h('div', {
      class: 'window', role: 'listbox', tabindex: '0', 'aria-label': label,
      onscroll: () => this.scrolled(),
      onkeydown: (/** @type {KeyboardEvent} */ e) => this.key(e),
      onfocus: () => this.focused(),
    }, this.space);
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /**
   * Shows this many rows. Rows that were drawn stay as they are.
   * @param {number} length
   */
  setLength(length) {
    if (length === this.length) return;
    this.length = length;
    this.space.style.height = `${length * this.rowHeight}px`;
    if (this.following) this.element.scrollTop = this.element.scrollHeight;
    this.render();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    const atEnd = scrollTop + clientHeight >= scrollHeight - this.rowHeight;
    if (atEnd !== this.following) {
      this.following = atEnd;
      this.moved();
    }
    this.render();
  }

  toEnd() {
    this.following = true;
    this.element.scrollTop = this.element.scrollHeight;
    this.moved();
  }

  /** The keyboard has come: it finds a choice. The mouse makes its own. */
  focused() {
    if (this.chosen >= 0 || this.length === 0 || !this.element.matches(':focus-visible')) return;
    this.choose(this.following ? this.length - 1 : this.firstSeen());
  }

  firstSeen() {
    return Math.floor(this.element.scrollTop / this.rowHeight);
  }

  render() {
    const first = Math.max(0, this.firstSeen() - MARGIN);
    const last = Math.min(this.length, first + Math.ceil(this.element.clientHeight / this.rowHeight) + 2 * MARGIN);
    /** @type {HTMLElement[]} */
    const free = [];
    for (const [i, row] of this.rows) {
      if (i >= first && i < last) continue;
      this.rows.delete(i);
      free.push(row);
    }
    for (let i = first; i < last; i++) {
      if (!this.rows.has(i)) this.place(free.pop() ?? this.newRow(), i);
    }
    for (const row of free) row.remove();
    this.mark();
  }

  newRow() {
    const row = h('div', { class: 'window-row', role: 'option' });
    row.addEventListener('click', () => {
      const i = Number(row.dataset.index);
      this.choose(i);
      this.open(i);
    });
    this.space.append(row);
    return row;
  }

  /**
   * @param {HTMLElement} row
   * @param {number} i
   */
  place(row, i) {
    row.dataset.index = String(i);
    row.id = `${this.prefix}-${i}`;
    row.style.transform = `translateY(${i * this.rowHeight}px)`;
    row.setAttribute('aria-posinset', String(i + 1));
    this.draw(row, i);
    this.rows.set(i, row);
  }

  mark() {
    for (const [i, row] of this.rows) {
      row.setAttribute('aria-setsize', String(this.length));
      row.setAttribute('aria-selected', String(i === this.chosen));
    }
    if (this.rows.has(this.chosen)) this.element.setAttribute('aria-activedescendant', `${this.prefix}-${this.chosen}`);
    else this.element.removeAttribute('aria-activedescendant');
  }

  /** @param {number} i */
  choose(i) {
    this.chosen = Math.max(0, Math.min(this.length - 1, i));
    const top = this.chosen * this.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.element.scrollTop = top + this.rowHeight - clientHeight;
    this.render();
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    /** @type {Record<string, number>} */
    const target = {
      ArrowDown: this.chosen + 1, ArrowUp: this.chosen - 1, PageDown: this.chosen + page, PageUp: this.chosen - page,
      Home: 0, End: this.length - 1,
    };
    if (this.length === 0) return;
    if (e.key in target) this.choose(target[e.key]);
    else if (e.key === 'Enter' && this.chosen >= 0) this.open(this.chosen);
    else return;
    e.preventDefault();
  }
}
