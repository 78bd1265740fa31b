// @ts-check
// How far what is shown can be relied on: what was checked, and what was found.

import { badge, card } from '../ui/components.js';
import { fill, h } from '../ui/dom.js';
import { count } from './sidebar.js';

/** @typedef {import('../model/run.js').Run} Run */
/** @typedef {import('../model/run.js').Verdict} Verdict */

/**
 * What is known of the end, beside the stream.
 * @typedef {object} End
 * @property {import('../model/event.js').Trace} trace
 * @property {Verdict} verdict
 */

export class Integrity {
  constructor() {
    this.state = h('span', {});
    this.list = h('ul', { class: 'checks' });
    this.details = h('div', { class: 'stack' });
    this.element = card('Integrity and replay', { aside: this.state }, this.list, this.details);
    this.key = '';
  }

  /**
   * @param {Run} run
   * @param {End | null} end
   */
  update(run, end) {
    const i = run.snapshot.integrity;
    const key = JSON.stringify([run.valid, run.invalid, run.foreign, run.problemCount, run.gaps.length, run.over, i.gaps?.length,
      i.duplicates?.length, i.outOfOrder?.length, i.unreadable?.length, i.afterTerminal?.length, run.diagnostics.length, end !== null]);
    if (key === this.key) return;
    this.key = key;
    const rows = [schemaRow(run), bindingRow(run), sequenceRow(run), ...keptRow(run), ...terminalRow(run), ...verdictRows(end)];
    const bad = rows.some((r) => r.tone === 'bad');
    const waiting = rows.some((r) => r.tone === 'info') || !end;
    fill(this.state, bad ? badge('problems', 'bad') : waiting ? badge('watching', 'info') : badge('verified', 'good'));
    fill(this.list, ...rows.map(draw));
    fill(this.details, problems(run, end), diagnostics(run), endFaults(end));
  }
}

/** @typedef {{tone: 'good' | 'bad' | 'warn' | 'info', text: string}} Row */

const signs = { good: '✓', bad: '✕', warn: '!', info: '…' };
const words = { good: 'good', bad: 'bad', warn: 'note', info: 'open' };

/** @param {Row} r */
const draw = (r) =>
  h('li', { class: `check check-${r.tone}` }, h('span', { class: 'check-sign', 'aria-hidden': 'true' }, signs[r.tone]),
    h('span', {}, h('span', { class: 'sr' }, `${words[r.tone]}: `), r.text));

/**
 * @param {Run} run
 * @returns {Row}
 */
function schemaRow(run) {
  if (run.invalid > 0) return { tone: 'bad', text: `${count(run.invalid, 'event')} do not fit the schema` };
  return { tone: 'good', text: `${count(run.valid, 'event')} fit the schema` };
}

/**
 * @param {Run} run
 * @returns {Row}
 */
function bindingRow(run) {
  const n = run.foreign + (run.snapshot.integrity.foreign?.length ?? 0);
  if (n > 0) return { tone: 'bad', text: 'Events of another run, session or source' };
  return { tone: 'good', text: 'All of this run and session' };
}

/**
 * @param {Run} run
 * @returns {Row}
 */
function sequenceRow(run) {
  const i = run.snapshot.integrity;
  /** @type {[number, string][]} */
  const found = [
    [i.gaps?.length ?? 0, 'gap'], [i.duplicates?.length ?? 0, 'duplicate'], [i.outOfOrder?.length ?? 0, 'late event'],
    [i.unreadable?.length ?? 0, 'unreadable event'], [i.afterTerminal?.length ?? 0, 'event after the end'],
  ];
  const told = found.filter(([n]) => n > 0).map(([n, what]) => count(n, what));
  if (told.length === 0) return { tone: 'good', text: 'Numbered without gaps or doubles' };
  const missing = (i.gaps ?? []).slice(0, 5).map((g) => (g.from === g.to ? `${g.from}` : `${g.from}–${g.to}`)).join(', ');
  const own = run.gaps.length > 0 && found.slice(1).every(([n]) => n === 0);
  return { tone: own ? 'warn' : 'bad', text: told.join(', ') + (missing ? `; missing ${missing}` : '') };
}

/**
 * @param {Run} run
 * @returns {Row[]}
 */
function keptRow(run) {
  if (run.gaps.length === 0) return [];
  const events = run.gaps.reduce((n, g) => n + g.events, 0);
  const cut = run.gaps.some((g) => g.cut);
  return [{ tone: 'warn', text: `The console does not keep ${count(events, 'event')} of this long run singly; ${cut ? 'some of their text is gone' : 'their text is kept'}` }];
}

/**
 * @param {Run} run
 * @returns {Row[]}
 */
function terminalRow(run) {
  if (run.snapshot.terminal) return [{ tone: 'good', text: 'One terminal, the last event' }];
  return [run.over ? { tone: 'bad', text: 'The stream ended without run.terminal' } : { tone: 'info', text: 'The run is not over' }];
}

/**
 * @param {End | null} end
 * @returns {Row[]}
 */
function verdictRows(end) {
  if (!end) return [];
  const v = end.verdict;
  const what = v.partly ? 'what the kept history tells' : 'the snapshot';
  return [
    v.replayEqual ? { tone: 'good', text: 'Replaying the whole list gives the same snapshot' }
      : { tone: 'bad', text: `Replaying the whole list gives another snapshot, first at ${v.difference}` },
    v.serverEqual ? { tone: 'good', text: `The server folded the same: ${what} is equal byte for byte` }
      : { tone: 'bad', text: `The server folded another snapshot, first at ${v.difference}` },
  ];
}

/**
 * @param {Run} run
 * @param {End | null} end
 */
function problems(run, end) {
  const server = end?.trace.problems.map((p) => ({ where: `line ${p.line}`, path: p.path ?? '', message: p.detail })) ?? [];
  const list = server.length > 0 ? server : run.problems;
  const total = Math.max(run.problemCount, end?.trace.problemCount ?? 0);
  if (list.length === 0) return null;
  return h('details', { class: 'details' }, h('summary', {}, count(total, 'problem')),
    h('ul', { class: 'plain-list' }, ...list.slice(0, 50).map((p) => h('li', {}, h('strong', {}, p.where), ' ', p.path && h('code', {}, p.path), p.path ? ': ' : '', p.message))));
}

/** @param {Run} run */
function diagnostics(run) {
  if (run.diagnostics.length === 0) return null;
  return h('details', { class: 'details' }, h('summary', {}, count(run.diagnostics.length, 'diagnostic')),
    h('ul', { class: 'plain-list' }, ...run.diagnostics.map((d) => h('li', {}, h('code', {}, d.code || d.level), ' ', d.message))));
}

/** @param {End | null} end */
function endFaults(end) {
  if (!end) return null;
  const { fault, forced, runnerStderr } = end.trace;
  if (!fault && !forced && !runnerStderr) return null;
  return h('details', { class: 'details', open: true }, h('summary', {}, 'The runner'),
    fault && h('p', {}, fault), forced && h('p', {}, `It had to be ended by force: ${forced}.`),
    runnerStderr && h('pre', { class: 'log' }, runnerStderr));
}
