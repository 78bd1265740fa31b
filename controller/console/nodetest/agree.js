// @ts-check
// Folds the streams that a Go test sends, one a line as {"lines":[...],
// "snapshot":"..."}, and prints where its own snapshot differs from Go's.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { encode, indent } from '../page/model/json.js';
import { Run } from '../page/model/run.js';
import { compile } from '../page/model/validate.js';

const check = compile(JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', '..', 'protocol', 'schema', 'event.json'), 'utf8')));

for await (const text of createInterface({ input: process.stdin })) {
  const { lines, snapshot } = JSON.parse(text);
  const run = new Run(check);
  lines.forEach((/** @type {string} */ line, /** @type {number} */ index) => run.take(`{"index":${index},"line":${line}}`));
  const mine = encode(run.snapshot);
  if (mine === snapshot) continue;
  const [a, b] = [indent(snapshot).split('\n'), indent(mine).split('\n')];
  const at = a.findIndex((l, i) => l !== b[i]);
  console.log(JSON.stringify({ go: a.slice(Math.max(0, at - 4), at + 2), js: b.slice(Math.max(0, at - 4), at + 2), problems: run.problems.slice(0, 3) }));
}
