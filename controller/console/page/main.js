// @ts-check
// The page: the list of runs on one side, the run that the address names on the
// other.

import { Refused, overview, schema, start, takeKey } from './api.js';
import { compile } from './model/validate.js';
import { button, card } from './ui/components.js';
import { fill, h, setText } from './ui/dom.js';
import { RunView } from './views/run.js';
import { Sidebar } from './views/sidebar.js';

/** How often the list is looked at while the page is seen, in milliseconds. */
const LIST = 1500;

class Page {
  /** @type {RunView | null} */
  view = null;
  current = '';
  /** @type {import('./model/event.js').Overview | null} */
  overview = null;

  /**
   * @param {import('./model/validate.js').Check} check
   * @param {HTMLElement} root
   */
  constructor(check, root) {
    this.check = check;
    this.live = h('div', { class: 'sr', 'aria-live': 'polite', id: 'announcements' });
    this.link = h('span', { class: 'muted' });
    this.main = h('main', { class: 'main', id: 'main', tabindex: '-1' });
    this.sidebar = new Sidebar(async (what) => {
      const { run } = await start(what);
      this.focusRun = true;
      location.hash = `#/run/${run.id}`;
      void this.refresh();
    });
    fill(root, h('a', { class: 'skip', href: '#main', onclick: (/** @type {Event} */ e) => {
      e.preventDefault();
      this.main.focus();
    } }, 'Skip to the run'), h('header', { class: 'top' }, h('span', { class: 'brand' }, h('img', { src: '/icon.svg', alt: '', width: 22, height: 22 }),
      h('strong', {}, 'prp'), ' console'), this.link), h('div', { class: 'body' }, this.sidebar.element, this.main), this.live);
    addEventListener('hashchange', () => this.route());
    document.addEventListener('visibilitychange', () => document.hidden || void this.refresh());
  }

  async run() {
    await this.refresh();
    this.route();
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, LIST));
      if (!document.hidden) await this.refresh();
    }
  }

  async refresh() {
    try {
      this.overview = await overview();
      setText(this.link, '');
      this.sidebar.update(this.overview, this.current);
    } catch (err) {
      setText(this.link, err instanceof Refused ? 'Locked out: open the address that the console printed' : 'The console does not answer');
    }
  }

  route() {
    const runs = this.overview?.runs ?? [];
    const named = /^#\/run\/([a-z0-9]+)$/.exec(location.hash)?.[1];
    const id = named ?? (runs.length === 1 ? runs[0].id : '');
    if (id === this.current && this.view) return;
    this.view?.stop();
    this.view = null;
    this.current = id;
    if (this.overview) this.sidebar.update(this.overview, id);
    if (id === '') {
      document.title = 'prp console';
      fill(this.main, this.welcome());
      return;
    }
    const view = new RunView(id, this.check, {
      announce: (text) => setText(this.live, text),
      changed: () => void this.refresh(),
    });
    this.view = view;
    fill(this.main, view.element);
    document.title = 'Run · prp console';
    void view.start();
    if (this.focusRun) view.title?.focus();
    this.focusRun = false;
  }

  welcome() {
    const choices = this.overview?.choices ?? [];
    const text = choices.length > 0
      ? 'Start a run, watch it live, answer its questions, and interrupt it when you have seen enough.'
      : 'Choose a run from the list.';
    const happy = choices.find((c) => c.name === 'happy-path');
    return h('div', { class: 'welcome' }, card('Nothing is shown yet', { level: 1 }, h('p', {}, text),
      happy && h('div', { class: 'row' }, button('Start happy-path', () => void this.sidebar.start({ kind: happy.kind, name: happy.name, text: '' }), { kind: 'primary' }))));
  }
}

const root = document.getElementById('app');
if (root) {
  try {
    takeKey();
    await new Page(compile(await schema()), root).run();
  } catch (err) {
    fill(root, h('p', { class: 'error', role: 'alert' }, err instanceof Error ? err.message : String(err)));
  }
}
