// @ts-check
// What an event means to a person, in one line: the same words as Summarize of
// package controller.

import { rawAt } from './json.js';
import { Typed, deltaText, exitFact, harnessExited, itemKind, join, members, terminal, text } from './payload.js';

/** @typedef {import('./event.js').Event} Event */

/** Bounds a summary, in characters. */
const SUMMARY = 160;

/**
 * @param {Event} e
 * @param {() => string} rawPayload  the payload as it was written
 */
export function summarize(e, rawPayload) {
  return oneLine(summary(e, members(e.payload), rawPayload));
}

/**
 * @param {Event} e
 * @param {import('./payload.js').Members} p
 * @param {() => string} raw
 * @returns {string}
 */
function summary(e, p, raw) {
  switch (e.eventType) {
    case 'runtime.phase.changed':
      return text(p, 'phase').replaceAll('_', ' ');
    case 'workspace.ready':
      return text(p, 'workingDirectory');
    case 'harness.starting':
      return text(p, 'driverKind') + ' over ' + text(p, 'transport');
    case 'harness.ready':
      return trim(text(p, 'driverKind') + ' ' + text(p, 'driverVersion'));
    case 'harness.exited':
      return exitSummary(p, raw);
    case 'harness.diagnostic':
    case 'runner.diagnostic':
      return join(': ', text(p, 'code'), text(p, 'message', 'detail', 'text'));
    case 'session.started':
    case 'session.resumed':
    case 'session.closed':
    case 'session.failed':
      return text(p, 'reason', 'message', 'error');
    case 'turn.submitted':
      return join(': ', e.turnId ?? '', text(p, 'text'));
    case 'runtime_request.created': {
      const r = members(p.request);
      return `${text(r, 'type')} ${text(r, 'requestId')}: ${text(r, 'prompt')}`;
    }
    case 'runtime_request.resolved':
    case 'runtime_request.expired':
    case 'runtime_request.cancelled':
      return join(': ', text(p, 'requestId'), responseText(p, raw));
    case 'run.result.proposed': {
      const r = members(p.result);
      return join(': ', text(r, 'reportedWorkDisposition'), text(r, 'summary'));
    }
    case 'run.terminal':
      return terminalSummary(p, raw);
    case 'item.delta':
      return deltaText(p);
  }
  if (e.eventType.startsWith('turn.')) {
    return join(': ', e.turnId ?? '', text(p, 'reason', 'message', 'error', 'summary'));
  }
  if (e.eventType.startsWith('item.')) {
    const what = join(' ', itemKind(p), e.itemId ?? '');
    return join(': ', what, text(p, 'title', 'command', 'path', 'name', 'summary', 'text', 'message', 'error', 'reason'));
  }
  return compactText(raw());
}

/**
 * @param {import('./payload.js').Members} p
 * @param {() => string} raw
 */
function responseText(p, raw) {
  const inside = text(members(p.response), 'decision', 'text', 'choice', 'key');
  if (inside !== '') return inside;
  if (members(p.response).text === '') return '""'; // an answer, and nothing in it
  const outside = text(p, 'response', 'reason');
  if (outside !== '') return outside;
  return p.response == null ? '' : compactText(memberText(raw(), 'response'));
}

/**
 * @param {import('./payload.js').Members} p
 * @param {() => string} raw
 */
function exitSummary(p, raw) {
  const t = new Typed();
  const x = harnessExited(t, p);
  if (!t.ok) return compactText(raw());
  let s = exitText(x.processExit);
  if (!x.semanticResultObserved) s += ', no result';
  if (x.containment.swept > 0) s += `, ${x.containment.swept} left over and ended`;
  const left = x.containment.survivors?.length ?? 0;
  if (left > 0) s += `, ${left} could not be ended`;
  return s;
}

/**
 * How a process ended; null is one that never ran.
 * @param {import('./payload.js').ExitFact | null} x
 */
export function exitText(x) {
  if (x === null) return 'never ran';
  if (x.signal !== null) return `ended by signal ${x.signal}`;
  if (x.exitCode !== null) return `exit ${x.exitCode}`;
  return 'end unknown';
}

/** @param {unknown} v */
export const exitTextOf = (v) => (v == null ? exitText(null) : exitText(exitFact(new Typed(), v)));

/**
 * @param {import('./payload.js').Members} p
 * @param {() => string} raw
 */
function terminalSummary(p, raw) {
  const t = new Typed();
  const x = terminal(t, p, null);
  if (!t.ok) return compactText(raw());
  return `run ${x.runTerminalState}, turn ${x.turnTerminalState}, work ${x.reportedWorkDisposition}: ${x.reconciliation.reason}`;
}

/** @type {Record<string, string>} */
const reasons = {
  turn_interrupted: 'The turn was interrupted by the controller.',
  run_cancelled: 'The run was cancelled by the controller.',
  runner_shutdown: 'The runner was told to shut down.',
  controller_closed: "The controller closed the runner's stdin.",
  runner_terminated: 'The runner was told to end by a signal.',
  harness_start_failed: 'The harness could not be started.',
  harness_not_ready: 'The harness was not ready in time, or ended before it was.',
  harness_protocol_violation: 'The harness broke the protocol.',
  run_timed_out: 'The run took longer than it may.',
  event_budget_exceeded: 'The harness sent more events than it may.',
  successful_process_and_result: 'The harness ended well and left a valid result.',
  harness_process_failed: 'The harness process failed.',
  semantic_result_missing: 'The harness ended well but left no valid result.',
};

/**
 * A reason as a sentence; an unknown one as it is.
 * @param {string} reason
 */
export const reasonText = (reason) => reasons[reason] ?? JSON.stringify(reason);

/**
 * JSON as a summary; an empty object says nothing.
 * @param {string} raw
 */
const compactText = (raw) => (raw === '{}' || raw === 'null' ? '' : raw);

/** @param {string} s */
const trim = (s) => s.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '');

const space = /\p{White_Space}/u;
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const plain = /^[\x20-\x7e]*$/;

/**
 * A text on one line, without control or format characters, bounded, without
 * space at its ends.
 * @param {string} s
 */
export function oneLine(s) {
  const trimmed = trim(s);
  if (trimmed.length <= SUMMARY && plain.test(trimmed)) return trimmed;
  let out = '';
  let n = 0;
  for (const c of trimmed) {
    if (n >= SUMMARY) {
      out += '…';
      break;
    }
    if (c === '\n') {
      out += ' ⏎ ';
      n += 3;
      continue;
    }
    out += space.test(c) ? ' ' : printable.test(c) ? c : '\uFFFD';
    n++;
  }
  return out;
}

/**
 * @param {string} raw
 * @param {string} name
 */
const memberText = (raw, name) => rawAt(raw, [name]) ?? '';
