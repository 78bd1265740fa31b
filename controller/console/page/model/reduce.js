// @ts-check
// The fold of a run: events in, state out. It is the same as Snapshot.Apply of
// package controller, and gives the same JSON, byte for byte.

import { Raw, rawAt } from './json.js';
import { Typed, deltaText, harnessExited, isObject, itemKind, itemTitle, lastWord, members, terminal, text } from './payload.js';
import { summarize } from './summary.js';

/** @typedef {import('./event.js').Event} Event */
/** @typedef {{id: string, state: string, text: string}} Turn */
/** @typedef {{id: string, turnId: string, kind: string, title: string, status: string, text: string}} Item */
/** @typedef {{id: string, type: string, prompt: string, status: string, response: Raw | null}} Request */
/** @typedef {{source: string, seq: number, at: string, eventType: string, summary: string}} TimelineEntry */
/** @typedef {{source: string, from: number, to: number}} SequenceGap */

/**
 * The lists are null before the first event.
 * @typedef {object} Snapshot
 * @property {string} runId
 * @property {string} sessionId
 * @property {string} phase
 * @property {string} session
 * @property {Turn[] | null} turns
 * @property {Item[] | null} items
 * @property {Request[] | null} requests
 * @property {Raw | null} result
 * @property {ReturnType<typeof harnessExited> | null} exit
 * @property {ReturnType<typeof terminal> | null} terminal
 * @property {TimelineEntry[] | null} timeline
 * @property {Map<string, number> | null} cursors
 * @property {Integrity} integrity
 */

/**
 * @typedef {object} Integrity
 * @property {boolean} complete
 * @property {string[] | null} duplicates
 * @property {string[] | null} outOfOrder
 * @property {SequenceGap[] | null} gaps
 * @property {string[] | null} foreign
 * @property {string[] | null} unreadable
 * @property {string[] | null} afterTerminal
 */

/**
 * A run without events.
 * @returns {Snapshot}
 */
export function emptySnapshot() {
  return {
    runId: '', sessionId: '', phase: '', session: '',
    turns: null, items: null, requests: null, result: null, exit: null, terminal: null, timeline: null, cursors: null,
    integrity: {
      complete: false, duplicates: null, outOfOrder: null, gaps: null, foreign: null, unreadable: null, afterTerminal: null,
    },
  };
}

/** A fold in progress. */
export class Fold {
  /** @type {Snapshot} */
  snapshot = emptySnapshot();

  /**
   * Adds one event.
   * @param {Event} e
   * @param {() => string} rawPayload  the payload as it was written
   */
  apply(e, rawPayload) {
    const s = this.snapshot;
    if (s.cursors === null) begin(s, e);
    const integrity = s.integrity;
    if (e.runId !== s.runId || e.normalizedSessionId !== s.sessionId) {
      addOnce(integrity.foreign, e.sourceEventId);
    } else if (place(s, e)) {
      if (s.terminal !== null) addOnce(integrity.afterTerminal, e.sourceEventId);
      else fold(s, e, rawPayload);
    }
    integrity.complete = s.terminal !== null && clean(integrity);
  }

  /**
   * Adds the text of deltas that came merged. It is no event: the missing
   * numbers become a gap when the next event comes.
   * @param {string} turnId
   * @param {string} itemId
   * @param {string} added
   */
  addMerged(turnId, itemId, added) {
    if (this.snapshot.items === null) return;
    itemOf(this.snapshot.items, turnId, itemId).text += added;
  }
}

/**
 * @param {Snapshot} s
 * @param {Event} e
 */
function begin(s, e) {
  s.cursors = new Map();
  s.runId = e.runId;
  s.sessionId = e.normalizedSessionId;
  s.session = 'not_started';
  s.turns = [];
  s.items = [];
  s.requests = [];
  s.timeline = [];
  s.integrity = {
    complete: false, duplicates: [], outOfOrder: [], gaps: [], foreign: [], unreadable: [], afterTerminal: [],
  };
}

/** @param {Integrity} i */
function clean(i) {
  return [i.duplicates, i.outOfOrder, i.gaps, i.foreign, i.unreadable, i.afterTerminal].every((l) => l?.length === 0);
}

/**
 * Decides by the event's number whether it is to be applied.
 * @param {Snapshot} s
 * @param {Event} e
 */
function place(s, e) {
  const source = e.sourceInstanceId;
  const cursors = /** @type {Map<string, number>} */ (s.cursors);
  const cursor = cursors.get(source) ?? 0;
  if (e.sourceSeq > cursor + 1) {
    s.integrity.gaps?.push({ source, from: cursor + 1, to: e.sourceSeq - 1 });
  } else if (e.sourceSeq !== cursor + 1) {
    const missing = s.integrity.gaps?.some((g) => g.source === source && g.from <= e.sourceSeq && e.sourceSeq <= g.to);
    addOnce(missing ? s.integrity.outOfOrder : s.integrity.duplicates, e.sourceEventId);
    return false;
  }
  cursors.set(source, e.sourceSeq);
  return true;
}

/**
 * @param {string[] | null} list
 * @param {string} id
 */
function addOnce(list, id) {
  if (list && !list.includes(id)) list.push(id);
}

/**
 * @param {Snapshot} s
 * @param {Event} e
 * @param {() => string} rawPayload
 */
function fold(s, e, rawPayload) {
  const readable = foldPayload(s, e, members(e.payload), rawPayload);
  if (!readable || !isObject(e.payload)) addOnce(s.integrity.unreadable, e.sourceEventId);
  s.timeline?.push({
    source: e.sourceInstanceId, seq: e.sourceSeq, at: e.emittedAt, eventType: e.eventType, summary: summarize(e, rawPayload),
  });
}

/**
 * The table of the event types that change the state; false is a payload of the
 * wrong shape.
 * @param {Snapshot} s
 * @param {Event} e
 * @param {import('./payload.js').Members} p
 * @param {() => string} rawPayload
 */
function foldPayload(s, e, p, rawPayload) {
  switch (e.eventType) {
    case 'runtime.phase.changed':
      s.phase = text(p, 'phase');
      return s.phase !== '';
    case 'session.starting':
      s.session = 'starting';
      return true;
    case 'session.started':
    case 'session.resumed':
      s.session = 'running';
      return true;
    case 'session.closed':
      s.session = 'closed';
      return true;
    case 'session.failed':
      s.session = 'failed';
      return true;
    case 'runtime_request.created':
      return foldRequest(s, p);
    case 'runtime_request.resolved':
    case 'runtime_request.expired':
    case 'runtime_request.cancelled':
      return endRequest(s, e, p, rawPayload);
    case 'run.result.proposed':
      s.result = rawMember(p, 'result', rawPayload);
      return s.result !== null;
    case 'harness.exited': {
      const t = new Typed();
      s.phase = 'exited';
      s.exit = harnessExited(t, e.payload);
      return t.ok;
    }
    case 'run.terminal': {
      const t = new Typed();
      s.phase = 'ended';
      s.terminal = terminal(t, e.payload, rawMember(p, 'harnessTerminalProposal', rawPayload));
      return t.ok;
    }
  }
  if (turnTypes.has(e.eventType)) foldTurn(s, e, p);
  else if (itemTypes.has(e.eventType)) foldItem(s, e, p);
  return true;
}

const turnTypes = new Set(
  ['submitted', 'accepted', 'started', 'completed', 'failed', 'interrupted', 'cancelled'].map((w) => 'turn.' + w),
);
const itemTypes = new Set(['started', 'delta', 'completed', 'failed'].map((w) => 'item.' + w));

/**
 * A member as it was written; null where it is absent or null.
 * @param {import('./payload.js').Members} p
 * @param {string} name
 * @param {() => string} rawPayload
 */
function rawMember(p, name, rawPayload) {
  if (p[name] == null) return null;
  return new Raw(rawAt(rawPayload(), [name]) ?? 'null');
}

/**
 * @param {Snapshot} s
 * @param {Event} e
 * @param {import('./payload.js').Members} p
 */
function foldTurn(s, e, p) {
  const turns = s.turns ?? [];
  const id = e.turnId ?? '';
  let turn = turns.find((t) => t.id === id);
  if (!turn) {
    turn = { id, state: '', text: '' };
    turns.push(turn);
  }
  turn.state = lastWord(e.eventType);
  if (e.eventType === 'turn.submitted') turn.text = text(p, 'text');
}

/**
 * Where the items of a list are, since a run may have very many.
 * @type {WeakMap<Item[], Map<string, Item>>}
 */
const places = new WeakMap();

/**
 * @param {string} turnId
 * @param {string} id
 */
const itemKey = (turnId, id) => JSON.stringify([turnId, id]);

/**
 * The item of that id; a new one where there is none. The item that is under
 * way is one of the last.
 * @param {Item[]} items
 * @param {string} turnId
 * @param {string} id
 */
function itemOf(items, turnId, id) {
  const last = items.at(-1);
  if (last && last.id === id && last.turnId === turnId) return last;
  let known = places.get(items);
  if (!known || known.size !== items.length) {
    known = new Map(items.map((i) => [itemKey(i.turnId, i.id), i]));
    places.set(items, known);
  }
  const key = itemKey(turnId, id);
  const found = known.get(key);
  if (found) return found;
  const item = { id, turnId, kind: '', title: '', status: 'started', text: '' };
  items.push(item);
  known.set(key, item);
  return item;
}

/**
 * @param {Snapshot} s
 * @param {Event} e
 * @param {import('./payload.js').Members} p
 */
function foldItem(s, e, p) {
  const item = itemOf(s.items ?? [], e.turnId ?? '', e.itemId ?? '');
  const kind = itemKind(p);
  if (kind !== '') item.kind = kind;
  if (item.title === '') item.title = itemTitle(p);
  if (e.eventType === 'item.delta') {
    item.text += deltaText(p);
    return;
  }
  item.status = lastWord(e.eventType);
  if (item.text === '') item.text = text(p, 'text');
}

/**
 * @param {Snapshot} s
 * @param {import('./payload.js').Members} p
 */
function foldRequest(s, p) {
  if (!isObject(p.request)) return false;
  const t = new Typed();
  const r = p.request;
  const id = t.string(r.requestId);
  const request = { id, type: t.string(r.type), prompt: t.string(r.prompt), status: 'pending', response: null };
  for (const name of ['schema', 'requestKind', 'status']) t.string(r[name]);
  if (!t.ok || id === '') return false;
  if (!s.requests?.some((one) => one.id === id)) s.requests?.push(request);
  return true;
}

/**
 * @param {Snapshot} s
 * @param {Event} e
 * @param {import('./payload.js').Members} p
 * @param {() => string} rawPayload
 */
function endRequest(s, e, p, rawPayload) {
  const id = text(p, 'requestId');
  const r = s.requests?.find((one) => one.id === id);
  if (!r) return false;
  r.status = lastWord(e.eventType);
  r.response = rawMember(p, 'response', rawPayload);
  return true;
}
