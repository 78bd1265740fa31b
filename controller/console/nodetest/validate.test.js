// @ts-check
// The validator of the page: each keyword by itself, and the schema of events.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { compile } from '../page/model/validate.js';

const schemas = join(import.meta.dirname, '..', '..', '..', 'protocol', 'schema');

test('each keyword accepts and refuses', () => {
  for (const [schema, good, bad] of /** @type {[any, unknown[], unknown[]][]} */ ([
    [{ type: 'integer' }, [1, -0, 2 ** 53], [1.5, '1', null, [], {}]],
    [{ type: ['string', 'null'] }, ['', null], [0, {}]],
    [{ const: 1 }, [1], ['1', 2, true]],
    [{ enum: ['a', 2] }, ['a', 2], ['2', 'b']],
    [{ required: ['a'] }, [{ a: undefined }, 1], [{}, { b: 1 }]],
    [{ properties: { a: { type: 'string' } } }, [{ a: '' }, {}, 1], [{ a: 1 }]],
    [{ items: { minimum: 3 } }, [[3, 'x'], 1], [[3, 2]]],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2, 'x'], [0, 3]],
    [{ anyOf: [{ const: 1 }, { const: 2 }] }, [1, 2], [3]],
    [{ oneOf: [{ minimum: 1 }, { maximum: 5 }] }, [0, 6], [3]],
    [{ not: { const: 1 } }, [2], [1]],
    [{ if: { const: 1 }, then: false, else: { const: 2 } }, [2], [1, 3]],
    [{ minLength: 2, maxLength: 3 }, ['ab', '😀😀😀', 5], ['a', '😀', 'abcd', '😀😀😀😀']],
    [{ pattern: '^a+$' }, ['aa', 1], ['ab', '']],
    [{ format: 'date-time' }, ['2024-02-29T23:59:60.5Z', '2026-01-01t00:00:00+14:00', 1],
      ['2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-01', '2026-01-01T24:00:00Z', '2026-01-01T00:00:00+24:00']],
    [{ $ref: '#/$defs/X', $defs: { X: { const: 1 } } }, [1], [2]],
    [true, [1, null], []],
    [false, [], [1, null]],
  ])) {
    const check = compile(schema);
    for (const v of good) assert.equal(check(v, '', []), true, `${JSON.stringify(schema)} accepts ${JSON.stringify(v)}`);
    for (const v of bad) {
      /** @type {{path: string, message: string}[]} */
      const faults = [];
      assert.equal(check(v, '', faults), false, `${JSON.stringify(schema)} refuses ${JSON.stringify(v)}`);
      assert.ok(faults.length > 0 && faults.every((f) => f.message !== ''), 'it says why');
    }
  }
});

test('a keyword that is not known is no rule that is passed over', () => {
  assert.throws(() => compile({ uniqueItems: true }), /uniqueItems/);
  assert.throws(() => compile({ format: 'email' }), /email/);
  assert.throws(() => compile({ $ref: 'other.json' }), /other\.json/);
});

test('the schema of events refuses what is wrong, with its place', () => {
  const check = compile(JSON.parse(readFileSync(join(schemas, 'event.json'), 'utf8')));
  const lines = readFileSync(join(schemas, '..', '..', 'fixtures', 'happy.jsonl'), 'utf8').trim().split('\n');
  const events = lines.map((l) => JSON.parse(l).message.event).filter(Boolean);
  const of = (/** @type {string} */ type) => structuredClone(events.find((e) => e.eventType === type));
  for (const [type, path, change] of /** @type {[string, string, (e: any) => void][]} */ ([
    ['workspace.ready', 'sourceSeq', (e) => (e.sourceSeq = 0)],
    ['workspace.ready', 'sourceSeq', (e) => (e.sourceSeq = '2')],
    ['workspace.ready', 'eventType', (e) => (e.eventType = 'workspace.lost')],
    ['workspace.ready', 'priority', (e) => (e.priority = 0)],
    ['workspace.ready', 'payload.workingDirectory', (e) => delete e.payload.workingDirectory],
    ['workspace.ready', 'runId', (e) => (e.runId = '')],
    ['workspace.ready', 'emittedAt', (e) => (e.emittedAt = '2026-01-01T00:00:00Z')],
    ['turn.submitted', 'turnId', (e) => delete e.turnId],
    ['run.terminal', 'payload.reconciliation.reason', (e) => (e.payload.reconciliation.reason = 'luck')],
    ['run.terminal', 'payload.runTerminalState', (e) => (e.payload.runTerminalState = 'done')],
    ['harness.exited', 'payload.processExit', (e) => (e.payload.processExit = { exitCode: 0, success: false, signal: null })],
    ['item.delta', 'payload', (e) => (e.payload = [])],
  ])) {
    const e = of(type);
    assert.equal(check(e, '', []), true, `${type} as it was recorded`);
    change(e);
    /** @type {{path: string, message: string}[]} */
    const faults = [];
    assert.equal(check(e, '', faults), false, `${type}: ${path}`);
    assert.ok(faults.some((f) => f.path === path), `${path}: ${JSON.stringify(faults)}`);
  }
});
