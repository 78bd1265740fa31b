// @ts-check
// How a run ended: the terminal with its reason, the result, the log tail, and
// how far all of it can be relied on.

import { badge, card, fact, toneOf } from '../ui/components.js';
import { fill, h } from '../ui/dom.js';
import { exitText, reasonText } from '../model/summary.js';
import { count } from './sidebar.js';

/** @typedef {import('../model/run.js').Run} Run */
/** @typedef {import('../model/reduce.js').Snapshot} Snapshot */

/**
 * The reconciliation as a sentence or three.
 * @param {NonNullable<Snapshot['terminal']>} t
 */
export function explain(t) {
  const r = t.reconciliation;
  const said = [reasonText(r.reason)];
  said.push(r.processExit ? `The harness process ended with ${exitText(r.processExit).replace('ended by ', '')}.` : 'There was no harness process.');
  said.push(r.semanticResultObserved ? 'A valid result was seen.' : 'No valid result was seen.');
  const proposal = /** @type {any} */ (t.harnessTerminalProposal && JSON.parse(t.harnessTerminalProposal.text));
  if (!proposal) said.push('The harness proposed no end.');
  else if (!r.proposalValid) said.push('The harness proposed an end of a wrong shape, which was not considered.');
  else if (r.proposalContradicted) {
    said.push(`The harness proposed that the run ${proposal.runTerminalState}; the facts say otherwise, and the facts decide.`);
  } else said.push('What the harness proposed agrees with the facts.');
  said.push(`The ${r.authority} decided.`);
  return said.join(' ');
}

export class Outcome {
  constructor() {
    this.element = h('div', { class: 'stack', hidden: true });
    this.key = '';
  }

  /** @param {Snapshot} s */
  update(s) {
    const key = [s.result !== null, s.terminal !== null].join();
    if (key === this.key) return;
    this.key = key;
    this.element.hidden = !s.result && !s.terminal;
    fill(this.element, s.terminal && terminalCard(s.terminal), s.result && resultCard(JSON.parse(s.result.text)));
  }
}

/** @param {NonNullable<Snapshot['terminal']>} t */
function terminalCard(t) {
  return card('How it ended', { class: `outcome outcome-${toneOf(t.runTerminalState)}`, aside: badge(`run ${t.runTerminalState}`, toneOf(t.runTerminalState)) },
    h('p', { class: 'explain' }, explain(t)),
    h('dl', { class: 'facts' },
      fact('Run', t.runTerminalState), fact('Turn', t.turnTerminalState), fact('Work', t.reportedWorkDisposition.replaceAll('_', ' ')),
      fact('Reason', h('code', {}, t.reconciliation.reason))));
}

/** @param {any} r  a valid result */
function resultCard(r) {
  const claim = r?.completionClaim ?? {};
  const left = Array.isArray(claim.remainingWork) ? claim.remainingWork : [];
  return card('Result, as the harness claims it', { aside: badge(String(r?.reportedWorkDisposition).replaceAll('_', ' '), toneOf(String(r?.reportedWorkDisposition))) },
    h('p', { class: 'result-summary' }, String(r?.summary ?? '')),
    h('dl', { class: 'facts' },
      fact('Objective', claim.objectiveSatisfied ? 'satisfied' : 'not satisfied'),
      fact('Criteria', String(claim.criteria?.length ?? 0)), fact('Evidence', String(r?.evidence?.length ?? 0)),
      fact('Verification', String(r?.verification?.length ?? 0)), fact('Artifacts', String(r?.artifacts?.length ?? 0))),
    r?.continuation && h('p', {}, h('strong', {}, 'Goes on with: '), String(r.continuation.summary)),
    r?.blocker && h('p', {}, h('strong', {}, 'Blocked by: '), String(r.blocker.summary ?? JSON.stringify(r.blocker))),
    left.length > 0 && h('ul', { class: 'plain-list' }, ...left.map((/** @type {any} */ w) => h('li', {}, String(w?.summary ?? JSON.stringify(w))))));
}

export class Logs {
  constructor() {
    this.place = h('div', { class: 'stack' });
    this.element = card('Log tail', {}, this.place);
    this.element.hidden = true;
    this.drawn = false;
  }

  /** @param {Run} run */
  update(run) {
    const exit = run.snapshot.exit;
    this.element.hidden = !exit;
    if (!exit || this.drawn) return;
    this.drawn = true;
    const { lines, droppedLines } = exit.logs;
    const c = exit.containment;
    fill(this.place,
      droppedLines > 0 && h('p', { class: 'muted' }, `${count(droppedLines, 'earlier line')} not kept`),
      lines?.length ? h('pre', { class: 'log', tabindex: '0', 'aria-label': 'The end of the log' }, lines.join('\n')) : h('p', { class: 'muted' }, 'The harness logged nothing.'),
      h('p', { class: 'muted' }, containmentText(c)));
  }
}

/** @param {NonNullable<Snapshot['exit']>['containment']} c */
function containmentText(c) {
  const means = c.means?.length ? ` Kept in by ${c.means.map((m) => m.replaceAll('_', ' ')).join(', ')}.` : '';
  const swept = c.swept > 0 ? `${count(c.swept, 'process')} left over and ended.`.replace('processs', 'processes') : 'No process was left over.';
  const survivors = c.survivors?.length ? ` ${c.survivors.length} could not be ended: ${c.survivors.map((s) => `${s.name} (${s.pid})`).join(', ')}.` : '';
  return swept + survivors + means;
}
