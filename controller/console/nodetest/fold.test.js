// @ts-check
// The fold of the page against the recorded runs and the golden snapshots that
// package controller keeps. Run by: node --test controller/console/nodetest

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { encode, indent } from '../page/model/json.js';
import { Run, verify } from '../page/model/run.js';
import { compile } from '../page/model/validate.js';

const top = join(import.meta.dirname, '..', '..', '..');
const fixtures = join(top, 'fixtures');
const check = compile(JSON.parse(readFileSync(join(top, 'protocol', 'schema', 'event.json'), 'utf8')));

/** Every recorded run, as a path below fixtures. */
const recorded = readdirSync(fixtures, { recursive: true }).map(String).filter((f) => f.endsWith('.jsonl')).sort();

/**
 * A run that has taken a recorded stream as the server would send it.
 * @param {string} name
 */
function follow(name) {
  const run = new Run(check);
  const lines = readFileSync(join(fixtures, name), 'utf8').split('\n').filter((l) => l.trim() !== '');
  lines.forEach((line, index) => {
    try {
      JSON.parse(line);
    } catch {
      line = '';
    }
    const problem = `{"index":${index},"problem":{"line":${index + 1},"rule":"line","detail":"not JSON"}}`;
    run.take(line === '' ? problem : `{"index":${index},"line":${line}}`);
  });
  return run;
}

test('there are recorded runs', () => assert.ok(recorded.length >= 9, recorded.join()));

for (const name of recorded) {
  test(`${name}: the fold gives the golden snapshot`, async () => {
    const run = follow(name);
    const golden = readFileSync(join(fixtures, name.replace(/\.jsonl$/, '.snapshot.json')), 'utf8');
    assert.equal(indent(encode(run.snapshot)) + '\n', golden);
    const verdict = await verify(run, encode(run.snapshot), async () => {});
    assert.deepEqual(verdict, { replayEqual: true, serverEqual: true, partly: false, difference: '' });
  });
}

for (const name of recorded.filter((f) => !f.startsWith('invalid'))) {
  test(`${name}: every event is valid`, () => {
    const run = follow(name);
    assert.deepEqual(run.problems, []);
    assert.equal(run.invalid, 0);
    assert.ok(run.valid > 0);
  });
}

test('an event of an unknown version is refused and not folded', () => {
  const run = follow(join('invalid', 'unsupported-version.jsonl'));
  assert.equal(run.valid, 0);
  assert.ok(run.invalid > 0);
  assert.match(run.problems[0].path, /schemaVersion/);
  assert.equal(run.snapshot.cursors, null);
});

test('a snapshot that differs is told with its place', async () => {
  const run = follow('happy.jsonl');
  const other = encode(run.snapshot).replace('"phase":"ended"', '"phase":"executing"');
  const verdict = await verify(run, other, async () => {});
  assert.equal(verdict.serverEqual, false);
  assert.equal(verdict.replayEqual, true);
  assert.equal(verdict.difference, 'phase');
});

test('events of another run or session are told', () => {
  const run = new Run(check);
  const info = { runId: 'run_2', sessionId: 'session_1', runnerId: 'runner_1' };
  run.take(JSON.stringify({ run: info }));
  const line = readFileSync(join(fixtures, 'happy.jsonl'), 'utf8').split('\n')[0];
  run.take(`{"index":0,"line":${line}}`);
  assert.equal(run.foreign, 1);
  assert.deepEqual(run.problems, [{ where: 'event 1', path: 'runId', message: 'expected "run_2", got "run_1"' }]);
});

test('a record that is not the next one is refused', () => {
  const run = new Run(check);
  assert.throws(() => run.take('{"index":1,"end":true}'), /expected the record 0, got 1/);
});

test('a gap adds the merged text, and what is left can still be compared', async () => {
  const lines = readFileSync(join(fixtures, 'happy.jsonl'), 'utf8').trim().split('\n');
  const whole = follow('happy.jsonl');
  const at = lines.findIndex((l) => l.includes('"item.delta"'));
  const event = JSON.parse(lines[at]).message.event;
  const run = new Run(check);
  lines.forEach((line, index) => {
    const text = [{ turnId: event.turnId, itemId: event.itemId, text: event.payload.delta ?? event.payload.text }];
    const gap = { events: 1, fromSeq: event.sourceSeq, toSeq: event.sourceSeq, cut: false, text };
    run.take(index === at ? JSON.stringify({ index, next: index + 1, gap }) : `{"index":${index},"line":${line}}`);
  });
  assert.equal(encode(run.snapshot.items), encode(whole.snapshot.items));
  assert.equal(run.snapshot.integrity.gaps?.length, 1);
  const verdict = await verify(run, encode(whole.snapshot), async () => {});
  assert.deepEqual(verdict, { replayEqual: true, serverEqual: true, partly: true, difference: '' });
});
