// @ts-check
// What stands beside a run: the form that starts one, and the list of all.

import { badge, button, card, select, textArea, toneOf } from '../ui/components.js';
import { fill, h, setText } from '../ui/dom.js';

/** @typedef {import('../model/event.js').Overview} Overview */
/** @typedef {import('../model/event.js').RunInfo} RunInfo */

/** The names of the kinds of what can be started. */
const groups = /** @type {Record<string, string>} */ ({ script: 'Scripts', harness: 'Harnesses', agent: 'Agents' });

export class Sidebar {
  /** @type {Map<string, HTMLAnchorElement>} */
  links = new Map();
  shown = '';

  /** @param {(what: {kind: string, name: string, text: string}) => Promise<void>} start */
  constructor(start) {
    this.start = start;
    this.formPlace = h('div', { class: 'form-place' });
    this.list = h('ul', { class: 'runs' });
    this.empty = h('p', { class: 'muted' }, 'No run yet.');
    this.element = h('aside', { class: 'sidebar', 'aria-label': 'Runs' },
      this.formPlace, card('Runs', { class: 'runs-card' }, h('nav', { 'aria-label': 'All runs' }, this.list), this.empty));
  }

  /**
   * @param {Overview} overview
   * @param {string} current  the run that is shown
   */
  update(overview, current) {
    if (!this.form && overview.choices.length > 0) {
      this.form = startForm(overview, this.start);
      fill(this.formPlace, this.form);
    }
    this.empty.hidden = overview.runs.length > 0;
    for (const [id, link] of this.links) {
      if (!overview.runs.some((r) => r.id === id)) {
        link.parentElement?.remove();
        this.links.delete(id);
      }
    }
    overview.runs.forEach((info, i) => {
      let link = this.links.get(info.id);
      if (!link) {
        link = h('a', { class: 'run-link', href: `#/run/${info.id}` });
        this.links.set(info.id, link);
        this.list.insertBefore(h('li', {}, link), this.list.children[i] ?? null);
      }
      drawLink(link, info);
      if (info.id === current) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    });
  }
}

/**
 * A word on where a run is.
 * @param {RunInfo} info
 */
export function stateOf(info) {
  if (info.pendingRequests > 0 && info.active) return { word: 'asks', tone: /** @type {const} */ ('warn') };
  if (info.state) return { word: info.state, tone: toneOf(info.state) };
  if (info.active) return { word: 'running', tone: toneOf('running') };
  return { word: 'no terminal', tone: /** @type {const} */ ('bad') };
}

/**
 * @param {HTMLAnchorElement} link
 * @param {RunInfo} info
 */
function drawLink(link, info) {
  const { word, tone } = stateOf(info);
  const key = [word, info.events, info.phase].join();
  if (link.dataset.key === key) return;
  link.dataset.key = key;
  const when = new Date(info.startedAt).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
  fill(link,
    h('span', { class: 'run-name', title: info.name }, shortName(info)), badge(word, tone),
    h('span', { class: 'run-meta' }, `${info.kind === 'recorded' ? 'recorded' : when} · ${count(info.events, 'event')}`));
}

/**
 * A name that fits: of a path its end.
 * @param {RunInfo} info
 */
export const shortName = (info) => (info.kind === 'script' ? (info.name.split('/').pop() ?? info.name) : info.name);

/**
 * @param {number} n
 * @param {string} what
 */
export const count = (n, what) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;

/**
 * @param {Overview} overview
 * @param {Sidebar['start']} start
 */
function startForm(overview, start) {
  const options = overview.choices.map((c, i) => ({
    value: String(i), label: c.name.split('/').pop() ?? c.name, group: groups[c.kind] ?? c.kind,
  }));
  const what = select('Script or harness', options);
  const about = h('p', { class: 'muted about' });
  const describe = () => setText(about, overview.choices[Number(what.element.value)]?.description ?? '');
  what.element.addEventListener('change', describe);
  const happy = overview.choices.findIndex((c) => c.name === 'happy-path');
  if (happy >= 0) what.element.value = String(happy);
  describe();
  const text = textArea('What the agent is told', { value: overview.text, rows: 2, maxLength: 4000 });
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  const go = button('Start run', () => {}, { kind: 'primary', type: 'submit' });
  const form = h('form', {
    class: 'stack',
    onsubmit: async (/** @type {Event} */ e) => {
      e.preventDefault();
      go.disabled = true;
      error.hidden = true;
      const choice = overview.choices[Number(what.element.value)];
      try {
        await start({ kind: choice.kind, name: choice.name, text: text.area.value });
      } catch (err) {
        setText(error, err instanceof Error ? err.message : String(err));
        error.hidden = false;
      } finally {
        go.disabled = false;
      }
    },
  }, what.field, about, text.field, error, go);
  return card('Start a run', {}, form);
}
