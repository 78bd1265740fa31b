// @ts-check
// The work of the harness: the turns, and each item with its text as it streams.

import { badge, button, toneOf } from '../ui/components.js';
import { h, setText } from '../ui/dom.js';

/** @typedef {import('../model/reduce.js').Item} Item */

/** How many of the last items have elements; earlier ones are shown on demand. */
const SHOWN = 60;
const MORE = 200;

/** How much of a text has an element, from its end, in characters. */
const TEXT = 20_000;

/** The states of a turn that is not over. */
export const openTurn = ['submitted', 'accepted', 'started'];

/**
 * What is shown of a turn or an item that nobody has ended when the run was
 * over. Its state in the snapshot stays as the events say.
 */
const endedWithRun = 'ended with the run';

export class Items {
  shown = SHOWN;
  /** @type {Map<number, ItemView>} */
  views = new Map();

  constructor() {
    this.turns = h('div', { class: 'turns' });
    this.earlier = button('', () => {
      this.shown += MORE;
      this.redraw();
    }, { kind: 'ghost' });
    this.list = h('ol', { class: 'items', 'aria-label': 'Items' });
    this.empty = h('p', { class: 'muted' }, 'Nothing yet.');
    this.element = h('div', { class: 'stack' }, this.turns, this.empty, this.earlier, this.list);
    /** @type {import('../model/run.js').Run | null} */
    this.run = null;
  }

  redraw() {
    if (this.run) this.update(this.run);
  }

  /** @param {import('../model/run.js').Run} run */
  update(run) {
    this.run = run;
    const { snapshot } = run;
    const over = run.over || snapshot.terminal !== null;
    this.updateTurns(snapshot.turns ?? [], over);
    const items = snapshot.items ?? [];
    const first = Math.max(0, items.length - this.shown);
    for (const [i, view] of this.views) {
      if (i >= first) continue;
      view.element.remove();
      this.views.delete(i);
    }
    this.earlier.hidden = first === 0;
    setText(this.earlier, `Show ${Math.min(first, MORE)} of ${first.toLocaleString('en')} earlier items`);
    this.empty.hidden = items.length > 0 || (snapshot.turns ?? []).length > 0;
    // From the newest back, so that each has its successor to stand before.
    /** @type {Node | null} */
    let after = null;
    for (let i = items.length - 1; i >= first; i--) {
      let view = this.views.get(i);
      if (!view) {
        view = new ItemView();
        this.views.set(i, view);
        this.list.insertBefore(view.element, after);
      }
      view.update(items[i], over);
      after = view.element;
    }
  }

  /**
   * @param {import('../model/reduce.js').Turn[]} turns
   * @param {boolean} over
   */
  updateTurns(turns, over) {
    while (this.turns.children.length < turns.length) {
      this.turns.append(h('div', { class: 'turn' }, h('p', { class: 'turn-text' }), h('span', { class: 'turn-state' })));
    }
    turns.forEach((t, i) => {
      const [text, state] = this.turns.children[i].children;
      setText(text, t.text || t.id);
      const shown = over && openTurn.includes(t.state) ? endedWithRun : t.state;
      if (/** @type {HTMLElement} */ (state).dataset.state === shown) return;
      /** @type {HTMLElement} */ (state).dataset.state = shown;
      state.replaceChildren(badge(shown, toneOf(shown)));
    });
  }
}

class ItemView {
  shown = ''; // the state
  drawn = 0; // characters of the text

  constructor() {
    this.kind = h('span', { class: 'item-kind' });
    this.title = h('span', { class: 'item-title' });
    this.state = h('span', { class: 'item-state' });
    this.cut = h('p', { class: 'muted item-cut', hidden: true });
    this.node = document.createTextNode('');
    this.text = h('pre', { class: 'item-text', tabindex: '0', hidden: true }, this.node);
    this.element = h('li', { class: 'item' }, h('div', { class: 'item-head' }, this.kind, this.title, this.state), this.cut, this.text);
  }

  /**
   * @param {Item} item
   * @param {boolean} over
   */
  update(item, over) {
    setText(this.kind, item.kind.replaceAll('_', ' ') || 'item');
    setText(this.title, item.title || item.id);
    const open = item.status === 'started';
    const shown = !open ? item.status : over ? endedWithRun : 'running';
    if (shown !== this.shown) {
      this.shown = shown;
      this.state.replaceChildren(badge(shown, toneOf(shown)));
      this.element.classList.toggle('item-running', open && !over);
      this.text.setAttribute('aria-label', `Text of ${item.title || item.id}`);
    }
    if (item.text.length !== this.drawn) this.drawText(item.text);
  }

  /** @param {string} text */
  drawText(text) {
    const atEnd = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 8;
    if (text.length <= TEXT) {
      this.node.appendData(text.slice(this.drawn));
    } else {
      this.node.data = text.slice(-TEXT);
      setText(this.cut, `The last ${TEXT.toLocaleString('en')} of ${text.length.toLocaleString('en')} characters`);
      this.cut.hidden = false;
    }
    this.drawn = text.length;
    this.text.hidden = false;
    if (atEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
