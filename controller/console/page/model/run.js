// @ts-check
// A run as this page sees it: every line of its stream is checked, bound and
// folded, and kept as text, so that the whole can be replayed.

import { encode, rawAt } from './json.js';
import { Fold } from './reduce.js';

/** @typedef {import('./event.js').Event} Event */
/** @typedef {import('./event.js').StreamRecord} StreamRecord */
/** @typedef {import('./validate.js').Fault} Fault */

/**
 * Something that this page found wrong.
 * @typedef {{where: string, path: string, message: string}} Problem
 */

/** Bounds the problems that are kept; all are counted. */
const PROBLEMS = 200;

/** Bounds the diagnostics of the runner that are kept, the last ones. */
const DIAGNOSTICS = 100;

/**
 * What was learned of one record. Replaying takes the same path.
 * @typedef {{text: string, event: Event | null}} Entry
 */

export class Run {
  /** @type {import('./event.js').RunInfo | null} */
  info = null;
  fold = new Fold();
  /** The text of each record, in order. */
  /** @type {string[]} */
  records = [];
  /** For each entry of the timeline the place of its record. */
  /** @type {number[]} */
  recordOf = [];
  /** The index of the next record: where a lost stream goes on. */
  next = 0;
  over = false;
  valid = 0;
  invalid = 0;
  foreign = 0;
  /** @type {Problem[]} */
  problems = [];
  problemCount = 0;
  /** @type {import('./event.js').Gap[]} */
  gaps = [];
  /** @type {{level: string, code: string, message: string}[]} */
  diagnostics = [];
  /** @type {Map<string, {key: string, label: string}[]>} */
  choices = new Map();

  /** @param {import('./validate.js').Check} check */
  constructor(check) {
    this.check = check;
  }

  get snapshot() {
    return this.fold.snapshot;
  }

  /**
   * Takes one line of the stream. The error is a stream that cannot be
   * followed: the caller connects again.
   * @param {string} text
   */
  take(text) {
    /** @type {StreamRecord} */
    const record = JSON.parse(text);
    if (record.run) {
      if (this.info && (record.run.runId !== this.info.runId || record.run.sessionId !== this.info.sessionId)) {
        throw new Error('the server has another run under this id');
      }
      this.info = record.run;
      return;
    }
    if (record.index !== this.next) {
      throw new Error(`expected the record ${this.next}, got ${record.index}`);
    }
    if (record.end) {
      this.over = true;
      return;
    }
    this.next = record.next ?? this.next + 1;
    this.records.push(text);
    if (record.gap) this.takeGap(record.gap);
    else if (record.problem) this.problem(`line ${record.problem.line}`, record.problem.path ?? '', record.problem.detail);
    else if (record.line) this.takeLine(text, record.line.message);
  }

  /** @param {import('./event.js').Gap} gap */
  takeGap(gap) {
    this.gaps.push(gap);
    applyGap(this.fold, gap);
  }

  /**
   * @param {string} text
   * @param {NonNullable<StreamRecord['line']>['message']} message
   */
  takeLine(text, message) {
    if (message?.kind === 'diagnostic') {
      this.diagnostics.push({ level: message.level ?? '', code: message.code ?? '', message: message.message ?? '' });
      if (this.diagnostics.length > DIAGNOSTICS) this.diagnostics.shift();
    }
    if (message?.kind !== 'event' || !message.event) return;
    const e = message.event;
    if (!this.accept(e)) return;
    const before = this.snapshot.timeline?.length ?? 0;
    this.fold.apply(e, () => payloadText(text));
    if ((this.snapshot.timeline?.length ?? 0) > before) this.recordOf.push(this.records.length - 1);
    if (e.eventType === 'runtime_request.created') this.rememberChoices(e);
  }

  /**
   * Checks an event against the schema and its binding; false is an event that
   * is not to be folded.
   * @param {Event} e
   */
  accept(e) {
    /** @type {Fault[]} */
    const faults = [];
    const where = `event ${e.sourceSeq}`;
    if (this.check(e, '', faults)) this.valid++;
    else this.invalid++;
    for (const f of faults) this.problem(where, f.path, f.message);
    for (const [path, got, want] of [
      ['runId', e.runId, this.info?.runId],
      ['normalizedSessionId', e.normalizedSessionId, this.info?.sessionId],
      ['sourceInstanceId', e.sourceInstanceId, this.info?.runnerId],
    ]) {
      if (want && got !== want) {
        this.foreign++;
        this.problem(where, path ?? '', `expected "${want}", got "${got}"`);
      }
    }
    return foldable(faults);
  }

  /**
   * @param {string} where
   * @param {string} path
   * @param {string} message
   */
  problem(where, path, message) {
    this.problemCount++;
    if (this.problems.length < PROBLEMS) this.problems.push({ where, path, message });
  }

  /** @param {Event} e */
  rememberChoices(e) {
    const request = /** @type {any} */ (e.payload)?.request;
    if (typeof request?.requestId !== 'string' || !Array.isArray(request.choices)) return;
    const list = [];
    for (const c of request.choices) {
      const key = typeof c === 'string' ? c : c?.key;
      if (typeof key === 'string' && key !== '') list.push({ key, label: typeof c?.label === 'string' && c.label ? c.label : key });
    }
    this.choices.set(request.requestId, list);
  }

  /**
   * The event behind an entry of the timeline, as it was written.
   * @param {number} i
   */
  eventText(i) {
    const text = this.records[this.recordOf[i]];
    return text === undefined ? '' : (rawAt(text, ['line', 'message', 'event']) ?? '');
  }
}

/**
 * Whether an event with these faults is folded: its payload may be wrong, which
 * the fold tells by itself, but not what it is.
 * @param {Fault[]} faults
 */
const foldable = (faults) => faults.every((f) => f.path === 'payload' || f.path.startsWith('payload.'));

/** @param {string} text */
const payloadText = (text) => rawAt(text, ['line', 'message', 'event', 'payload']) ?? 'null';

/**
 * @param {Fold} fold
 * @param {import('./event.js').Gap} gap
 */
function applyGap(fold, gap) {
  for (const t of gap.text) fold.addMerged(t.turnId, t.itemId, t.text);
}

/** How long is worked without giving way to the page, in milliseconds. */
const SLICE = 10;

/**
 * Gives way to the page when it is time. The calls in between are cheap.
 * @param {() => Promise<unknown>} pause
 */
function pacer(pause) {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < SLICE) return;
    await pause();
    since = performance.now();
  };
}

/** How many records or entries are worked on between two looks at the clock. */
const STEP = 100;

/**
 * Folds all records anew.
 * @param {Run} run
 * @param {() => Promise<unknown>} pause  gives way to the page
 */
async function replay(run, pause) {
  const fold = new Fold();
  const pace = pacer(pause);
  for (let i = 0; i < run.records.length; i++) {
    if (i % STEP === 0) await pace();
    const text = run.records[i];
    /** @type {StreamRecord} */
    const record = JSON.parse(text);
    if (record.gap) applyGap(fold, record.gap);
    const e = record.line?.message.event;
    /** @type {Fault[]} */
    const faults = [];
    if (!e || record.line?.message.kind !== 'event') continue;
    run.check(e, '', faults);
    if (foldable(faults)) fold.apply(e, () => payloadText(text));
  }
  return fold.snapshot;
}

/**
 * A snapshot as JSON, in slices: its timeline may be long.
 * @param {import('./reduce.js').Snapshot} s
 * @param {() => Promise<unknown>} pause
 */
async function encodeSlowly(s, pause) {
  const list = s.timeline;
  if (list === null) return encode(s);
  const pace = pacer(pause);
  /** @type {string[]} */
  const parts = [];
  for (let i = 0; i < list.length; i += STEP) {
    parts.push(list.slice(i, i + STEP).map(encode).join(','));
    await pace();
  }
  // The members before and after it are written apart, in their order.
  const names = /** @type {(keyof typeof s)[]} */ (Object.keys(s));
  const members = names.map((name) => `"${name}":${name === 'timeline' ? `[${parts.join(',')}]` : encode(s[name])}`);
  return `{${members.join(',')}}`;
}

/**
 * What the replay at the end has shown.
 * @typedef {object} Verdict
 * @property {boolean} replayEqual   the live fold and the replay are the same
 * @property {boolean} serverEqual   they are the same as the server's
 * @property {boolean} partly        the history was reduced: only what it still can tell was compared
 * @property {string} difference     where the first difference is
 */

/**
 * Replays the whole list and compares the live snapshot, the replayed one and
 * the server's.
 * @param {Run} run
 * @param {string} serverSnapshot  as JSON text
 * @param {() => Promise<unknown>} pause
 * @returns {Promise<Verdict>}
 */
export async function verify(run, serverSnapshot, pause) {
  const live = await encodeSlowly(run.snapshot, pause);
  const again = await encodeSlowly(await replay(run, pause), pause);
  const reduced = run.gaps.length > 0 || run.info?.reduced === true;
  const mine = reduced ? essence((name) => encode(run.snapshot[name])) : live;
  const theirs = reduced ? essence((name) => rawAt(serverSnapshot, [name])) : serverSnapshot;
  const serverEqual = mine === theirs;
  return {
    replayEqual: live === again,
    serverEqual,
    partly: reduced,
    difference: live !== again ? firstDifference(live, again) : serverEqual ? '' : firstDifference(mine, theirs),
  };
}

/**
 * The parts of a snapshot that a reduced history still tells in full.
 * @type {(keyof import('./reduce.js').Snapshot)[]}
 */
const essential = ['runId', 'sessionId', 'phase', 'session', 'turns', 'requests', 'result', 'exit', 'terminal'];

/** @param {(name: typeof essential[number]) => string | undefined} text */
const essence = (text) => '{' + essential.map((name) => `"${name}":${text(name)}`).join(',') + '}';

/**
 * The path of the first difference of two JSON texts.
 * @param {string} a
 * @param {string} b
 */
function firstDifference(a, b) {
  /**
   * @param {unknown} x
   * @param {unknown} y
   * @param {string} path
   * @returns {string}
   */
  const walk = (x, y, path) => {
    if (typeof x === 'object' && typeof y === 'object' && x !== null && y !== null) {
      for (const key of new Set([...Object.keys(x), ...Object.keys(y)])) {
        const found = walk(/** @type {any} */ (x)[key], /** @type {any} */ (y)[key], path === '' ? key : `${path}.${key}`);
        if (found !== '') return found;
      }
      return '';
    }
    return Object.is(x, y) ? '' : path;
  };
  return walk(JSON.parse(a), JSON.parse(b), '') || 'the way a value is written';
}
