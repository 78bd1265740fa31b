// @ts-check
// One run: its head with the actions, its questions, its work, its end, and its
// timeline.

import { Refused, act, pause, trace } from '../api.js';
import { follow } from '../follow.js';
import { rawAt } from '../model/json.js';
import { Run, verify } from '../model/run.js';
import { badge, button, card, toneOf } from '../ui/components.js';
import { everyFrame, fill, h, setText } from '../ui/dom.js';
import { Integrity } from './integrity.js';
import { Items, openTurn } from './items.js';
import { Logs, Outcome } from './outcome.js';
import { Requests } from './requests.js';
import { count, shortName } from './sidebar.js';
import { Timeline } from './timeline.js';

/** @typedef {import('../follow.js').Link} Link */

/** @type {Record<Link['state'], {word: string, tone: import('../ui/components.js').Tone}>} */
const links = {
  connecting: { word: 'connecting', tone: 'info' },
  live: { word: 'live', tone: 'good' },
  waiting: { word: 'reconnecting', tone: 'warn' },
  ended: { word: 'all received', tone: 'neutral' },
  gone: { word: 'gone', tone: 'bad' },
  locked: { word: 'locked out', tone: 'bad' },
};

/** What can be done to a run, and what is said of it. */
const orders = [
  { name: 'interrupt', label: 'Interrupt', title: 'Interrupt the turn; the harness may save what it has', kind: 'plain', turn: true },
  { name: 'stop', label: 'Stop', title: 'Stop the turn', kind: 'plain', turn: true },
  { name: 'close', label: 'Close session', title: 'Close the session: the harness may end by itself', kind: 'plain', turn: false },
  { name: 'cancel', label: 'Cancel run', title: 'Cancel the run: the harness is ended', kind: 'danger', turn: false },
];

export class RunView {
  /** @type {Link} */
  link = { state: 'connecting', detail: '', retryAt: 0 };
  /** @type {import('./integrity.js').End | null} */
  end = null;
  stopping = new AbortController();
  retry = { now: /** @type {(() => void) | null} */ (null) };
  announced = '';

  /**
   * @param {string} id
   * @param {import('../model/validate.js').Check} check
   * @param {{announce: (text: string) => void, changed: () => void}} page
   */
  constructor(id, check, page) {
    this.id = id;
    this.page = page;
    this.run = new Run(check);
    this.requests = new Requests(id, page.announce);
    this.items = new Items();
    this.outcome = new Outcome();
    this.timeline = new Timeline();
    this.integrity = new Integrity();
    this.logs = new Logs();
    this.draw = everyFrame(() => this.update());
    this.element = this.build();
    this.clock = setInterval(() => this.updateHead(), 1000);
  }

  build() {
    this.title = h('h1', { class: 'run-title', tabindex: '-1' });
    this.state = h('span', { class: 'run-state' });
    this.meta = h('p', { class: 'muted run-ids' });
    this.orders = orders.map((o) => button(o.label, () => void this.order(o.name), { kind: o.kind, title: o.title, disabled: true }));
    this.error = h('p', { class: 'error', role: 'alert', hidden: true });
    this.banner = h('div', { class: 'banner', role: 'status', hidden: true });
    return h('div', { class: 'run' },
      h('header', { class: 'run-head' },
        h('div', { class: 'run-heading' }, h('div', { class: 'row' }, this.title, this.state), this.meta),
        h('div', { class: 'row run-orders', role: 'group', 'aria-label': 'Actions' }, ...this.orders)),
      this.error, this.banner, this.requests.element,
      h('div', { class: 'columns' },
        h('div', { class: 'stack' }, this.outcome.element, card('Work', { class: 'work-card' }, this.items.element)),
        h('div', { class: 'stack' }, this.timeline.element, this.integrity.element, this.logs.element)));
  }

  /** Follows the run to its end, then checks the whole. */
  async start() {
    await follow(this.id, this.run, (link) => {
      this.link = link;
      this.draw();
    }, this.draw, this.stopping.signal, this.retry);
    if (this.run.over && !this.stopping.signal.aborted) await this.finish();
  }

  async finish() {
    try {
      const text = await trace(this.id);
      const snapshot = rawAt(text, ['snapshot']) ?? 'null';
      const info = JSON.parse(text.replace(snapshot, 'null')); // it is compared as text
      this.run.info = info.run;
      const verdict = await verify(this.run, snapshot, pause);
      this.end = { trace: info, verdict };
    } catch (err) {
      this.fail(err);
    }
    this.draw();
    this.page.changed();
  }

  stop() {
    this.stopping.abort();
    clearInterval(this.clock);
  }

  /** @param {string} name */
  async order(name) {
    if (this.error) this.error.hidden = true;
    this.page.announce(`${name} sent`);
    try {
      await act(this.id, name, name === 'interrupt' || name === 'stop' ? { reason: 'asked for in the console' } : {});
    } catch (err) {
      this.fail(err);
    }
  }

  /** @param {unknown} err */
  fail(err) {
    const code = err instanceof Refused ? ` (${err.code})` : '';
    if (!this.error) return;
    setText(this.error, (err instanceof Error ? err.message : String(err)) + code);
    this.error.hidden = false;
  }

  get active() {
    return !this.run.over && this.link.state !== 'gone' && this.link.state !== 'locked';
  }

  update() {
    if (this.stopping.signal.aborted) return;
    const s = this.run.snapshot;
    this.updateHead();
    this.requests.update(this.run, this.active);
    this.items.update(this.run);
    this.outcome.update(s);
    this.timeline.update(this.run);
    this.integrity.update(this.run, this.end);
    this.logs.update(this.run);
    this.announceState();
  }

  updateHead() {
    const { run } = this;
    const s = run.snapshot;
    const turn = s.turns?.at(-1)?.state ?? '';
    const turnActive = openTurn.includes(turn) && s.terminal === null;
    if (this.title) setText(this.title, run.info ? shortName(run.info) : 'Run');
    if (this.meta) setText(this.meta, this.metaText());
    const word = s.terminal?.runTerminalState ?? (this.active ? (s.session === 'running' ? 'running' : s.phase.replaceAll('_', ' ') || 'starting') : 'unfinished');
    const link = links[this.link.state];
    const key = `${word} ${link.word}`;
    if (this.state && this.state.dataset.key !== key) {
      this.state.dataset.key = key;
      fill(this.state, badge(word, toneOf(word)), badge(link.word, link.tone));
    }
    orders.forEach((o, i) => {
      if (!this.orders) return;
      const possible = this.active && this.link.state === 'live' && s.terminal === null && run.info?.kind !== 'recorded';
      this.orders[i].disabled = !(possible && (o.turn ? turnActive : o.name === 'cancel' || s.session === 'running'));
      this.orders[i].hidden = run.info?.kind === 'recorded';
    });
    this.updateBanner();
  }

  metaText() {
    const { run } = this;
    if (!run.info) return '';
    const timeline = run.snapshot.timeline ?? [];
    const recorded = run.info.kind === 'recorded';
    const from = Date.parse(recorded ? (timeline[0]?.at ?? '') : run.info.startedAt);
    const ended = run.over ? Date.parse(timeline.at(-1)?.at ?? '') : Date.now();
    const seconds = Math.max(0, (ended - from) / 1000);
    const age = Number.isFinite(seconds) ? ` · ${seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`}` : '';
    return `${run.info.kind} · ${count(run.snapshot.timeline?.length ?? 0, 'event')}${age} · run ${run.info.runId} · session ${run.info.sessionId}`;
  }

  updateBanner() {
    if (!this.banner) return;
    const { state, detail, retryAt } = this.link;
    this.banner.hidden = !(state === 'waiting' || state === 'gone' || state === 'locked');
    this.banner.className = `banner ${state === 'waiting' ? 'banner-warn' : 'banner-bad'}`;
    if (this.banner.hidden) {
      this.banner.dataset.state = '';
      return;
    }
    const seconds = Math.max(0, Math.ceil((retryAt - performance.now()) / 1000));
    const text = {
      waiting: `The connection is lost (${detail}). What came so far stays; trying again in ${seconds} s from record ${this.run.next}.`,
      gone: 'The console does not have this run any more. It was started anew, or the run was one of the oldest. What came so far stays here.',
      locked: 'The console was started anew and this page is locked out. Open the address that it printed. What came so far stays here.',
    }[state === 'waiting' || state === 'gone' ? state : 'locked'];
    if (this.banner.dataset.state === state && this.banner.firstElementChild) {
      setText(this.banner.firstElementChild, text);
      return;
    }
    this.banner.dataset.state = state;
    fill(this.banner, h('span', {}, text), state === 'waiting' && button('Try now', () => this.retry.now?.()));
  }

  announceState() {
    const s = this.run.snapshot;
    const t = s.terminal;
    const text = t ? `Run ${t.runTerminalState}, ${t.reconciliation.reason.replaceAll('_', ' ')}` : s.session ? `Session ${s.session.replaceAll('_', ' ')}` : '';
    if (text === this.announced) return;
    this.announced = text;
    this.page.announce(text);
  }
}
