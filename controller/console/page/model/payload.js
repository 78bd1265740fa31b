// @ts-check
// Reading payloads as package controller does: what is absent, null or of
// another type is empty, and nothing ever fails.

/** @typedef {Record<string, unknown>} Members */

/**
 * @param {unknown} v
 * @returns {v is Members}
 */
export function isObject(v) {
  return typeof v === 'object' && v !== null && !Array.isArray(v);
}

/**
 * The members of an object; none where it is no object.
 * @param {unknown} v
 * @returns {Members}
 */
export function members(v) {
  return isObject(v) ? v : {};
}

/**
 * The first of the named members that is a string, and not empty.
 * @param {Members} p
 * @param {...string} names
 */
export function text(p, ...names) {
  for (const name of names) {
    const v = p[name];
    if (typeof v === 'string' && v !== '') return v;
  }
  return '';
}

/** @param {Members} p */
export const itemKind = (p) => text(p, 'itemType', 'itemKind', 'kind', 'type');

/** @param {Members} p */
export const itemTitle = (p) => text(p, 'title', 'command', 'path', 'name', 'summary');

/** @param {Members} p */
export const deltaText = (p) => text(p, 'delta', 'text', 'content', 'output');

/**
 * What stands after the last dot of an event type.
 * @param {string} type
 */
export const lastWord = (type) => type.slice(type.lastIndexOf('.') + 1);

/**
 * The parts that are not empty, with a separator between them.
 * @param {string} separator
 * @param {...string} parts
 */
export const join = (separator, ...parts) => parts.filter((p) => p !== '').join(separator);

/**
 * A reader of typed members. It takes null for absent, and remembers whether
 * anything was of another type.
 */
export class Typed {
  ok = true;

  /**
   * @template T
   * @param {T} empty
   * @returns {T}
   */
  bad(empty) {
    this.ok = false;
    return empty;
  }

  /** @param {unknown} v */
  string(v) {
    if (typeof v === 'string') return v;
    return v == null ? '' : this.bad('');
  }

  /** @param {unknown} v */
  bool(v) {
    if (typeof v === 'boolean') return v;
    return v == null ? false : this.bad(false);
  }

  /** @param {unknown} v */
  int(v) {
    if (Number.isInteger(v)) return /** @type {number} */ (v);
    return v == null ? 0 : this.bad(0);
  }

  /** @param {unknown} v */
  intOrNull(v) {
    return v == null ? null : this.int(v);
  }

  /** @param {unknown} v */
  object(v) {
    if (isObject(v)) return v;
    return v == null ? {} : this.bad(/** @type {Members} */ ({}));
  }

  /**
   * @template T
   * @param {unknown} v
   * @param {(one: unknown) => T} each
   * @returns {T[] | null}
   */
  list(v, each) {
    if (Array.isArray(v)) return v.map(each);
    return v == null ? null : this.bad(null);
  }
}

/**
 * How a process ended.
 * @typedef {{exitCode: number | null, success: boolean, signal: number | null}} ExitFact
 */

/**
 * @param {Typed} t
 * @param {unknown} v
 * @returns {ExitFact}
 */
export function exitFact(t, v) {
  const m = t.object(v);
  return { exitCode: t.intOrNull(m.exitCode), success: t.bool(m.success), signal: t.intOrNull(m.signal) };
}

/**
 * The payload of harness.exited.
 * @param {Typed} t
 * @param {unknown} v
 */
export function harnessExited(t, v) {
  const m = t.object(v);
  const logs = t.object(m.logs);
  const containment = t.object(m.containment);
  return {
    processExit: exitFact(t, m.processExit),
    semanticResultObserved: t.bool(m.semanticResultObserved),
    logs: {
      lines: t.list(logs.lines, (s) => t.string(s)),
      retainedLines: t.int(logs.retainedLines),
      retainedBytes: t.int(logs.retainedBytes),
      droppedLines: t.int(logs.droppedLines),
    },
    containment: {
      means: t.list(containment.means, (s) => t.string(s)),
      swept: t.int(containment.swept),
      survivors: t.list(containment.survivors, (s) => {
        const one = t.object(s);
        return { pid: t.int(one.pid), name: t.string(one.name), state: t.string(one.state) };
      }),
    },
  };
}

/**
 * The payload of run.terminal.
 * @param {Typed} t
 * @param {unknown} v
 * @param {import('./json.js').Raw | null} proposal
 */
export function terminal(t, v, proposal) {
  const m = t.object(v);
  const r = t.object(m.reconciliation);
  return {
    schema: t.string(m.schema),
    turnTerminalState: t.string(m.turnTerminalState),
    runTerminalState: t.string(m.runTerminalState),
    reportedWorkDisposition: t.string(m.reportedWorkDisposition),
    harnessTerminalProposal: proposal,
    reconciliation: {
      authority: t.string(r.authority),
      reason: t.string(r.reason),
      proposalValid: t.bool(r.proposalValid),
      proposalContradicted: t.bool(r.proposalContradicted),
      processExit: r.processExit == null ? null : exitFact(t, r.processExit),
      semanticResultObserved: t.bool(r.semanticResultObserved),
    },
  };
}
