// @ts-check
// Every event in order, as one line each. A line opens the event as it was
// written.

import { button, card } from '../ui/components.js';
import { h, setText } from '../ui/dom.js';
import { indent } from '../model/json.js';
import { WindowedList } from '../ui/windowed.js';
import { count } from './sidebar.js';

/** The height of a row in pixels: --row-height of styles.css. */
const ROW = 30;

/**
 * The look of an event by its family.
 * @param {string} type
 */
const family = (type) => type.slice(0, type.indexOf('.'));

export class Timeline {
  /** @type {import('../model/run.js').Run | null} */
  run = null;

  constructor() {
    this.counter = h('span', { class: 'muted' });
    this.latest = button('Jump to latest', () => this.list.toEnd(), { kind: 'ghost' });
    this.latest.hidden = true;
    this.dialog = new EventDialog();
    this.list = new WindowedList({
      label: 'Timeline. Enter shows an event as JSON.', rowHeight: ROW,
      draw: (row, i) => this.draw(row, i),
      open: (i) => this.run && this.dialog.show(this.run, i),
      moved: () => (this.latest.hidden = this.list.following),
    });
    this.element = card('Timeline', { class: 'timeline-card', aside: h('span', { class: 'row' }, this.latest, this.counter) },
      this.list.element, this.dialog.element);
  }

  /** @param {import('../model/run.js').Run} run */
  update(run) {
    this.run = run;
    const n = run.snapshot.timeline?.length ?? 0;
    setText(this.counter, count(n, 'event'));
    this.list.setLength(n);
  }

  /**
   * @param {HTMLElement} row
   * @param {number} i
   */
  draw(row, i) {
    const e = this.run?.snapshot.timeline?.[i];
    if (!e) return;
    row.replaceChildren(
      h('span', { class: 'event-seq' }, String(e.seq)), h('span', { class: `event-type family-${family(e.eventType)}` }, e.eventType),
      h('span', { class: 'event-summary' }, e.summary));
    row.title = `${e.at}  ${e.eventType}  ${e.summary}`;
  }
}

/** An event as it was written. */
class EventDialog {
  at = 0;

  constructor() {
    this.title = h('h2', { class: 'card-title' });
    this.code = h('pre', { class: 'json', tabindex: '0', 'aria-label': 'The event as JSON' });
    this.before = button('Previous', () => this.go(-1));
    this.after = button('Next', () => this.go(1));
    this.copied = h('span', { class: 'muted', role: 'status' });
    this.element = h('dialog', { class: 'dialog', 'aria-label': 'Event' },
      h('header', { class: 'card-head' }, this.title, button('Close', () => this.element.close(), { kind: 'ghost' })),
      this.code, h('footer', { class: 'row' }, this.before, this.after, button('Copy', () => void this.copy()), this.copied));
    this.element.addEventListener('click', (e) => e.target === this.element && this.element.close());
  }

  /**
   * @param {import('../model/run.js').Run} run
   * @param {number} i
   */
  show(run, i) {
    this.run = run;
    this.at = i;
    const e = run.snapshot.timeline?.[i];
    if (!e) return;
    setText(this.title, `${e.seq} · ${e.eventType}`);
    setText(this.code, indent(run.eventText(i)));
    setText(this.copied, '');
    this.before.disabled = i === 0;
    this.after.disabled = i === (run.snapshot.timeline?.length ?? 0) - 1;
    if (!this.element.open) this.element.showModal();
  }

  /** @param {number} by */
  go(by) {
    if (this.run) this.show(this.run, this.at + by);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.run?.eventText(this.at) ?? '');
      setText(this.copied, 'Copied');
    } catch {
      setText(this.copied, 'The browser does not let the page copy');
    }
  }
}
