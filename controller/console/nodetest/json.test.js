// @ts-check
// JSON as text: what is cut out stays as it was, and what is written is what
// encoding/json of Go writes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Raw, compact, encode, indent, rawAt } from '../page/model/json.js';

test('a member is cut out as it was written', () => {
  const s = '{ "a\\"}" : [1, {"b": "x\\\\"}], "big": 9007199254740993 ,"s":"\\u0061","e":{}, "n":null,"last":-1.50e+3}';
  for (const [path, want] of /** @type {[string[], string | undefined][]} */ ([
    [['a"}'], '[1, {"b": "x\\\\"}]'], [['big'], '9007199254740993'], [['s'], '"\\u0061"'], [['e'], '{}'], [['n'], 'null'],
    [['last'], '-1.50e+3'], [['none'], undefined], [['big', 'deeper'], undefined], [['e', 'none'], undefined], [[], s],
  ])) {
    assert.equal(rawAt(s, path), want, path.join('.'));
  }
});

test('of members of one name it is the last, as for JSON.parse', () => {
  assert.equal(rawAt('{"a":1,"\\u0061":2}', ['a']), '2');
  assert.equal(rawAt('{"a":{"b":1},"a":{"b":[2]}}', ['a', 'b']), '[2]');
});

test('every member of any value is found', () => {
  const value = { x: [1, [], {}, 'a,b:{}"\\', null, true], 'ключ': { deep: { er: ' ' } }, '': 0 };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 3)]) {
    for (const [name, want] of Object.entries(value)) assert.deepEqual(JSON.parse(rawAt(text, [name]) ?? ''), want);
    assert.deepEqual(JSON.parse(compact(text)), value);
    assert.deepEqual(JSON.parse(indent(text)), value);
    assert.equal(compact(text), JSON.stringify(value));
  }
});

test('values are written as Go writes them', () => {
  assert.equal(encode('<a href="x">&\u2028\u2029\u0000\u001f\b\f\n\r\t\u007f\\é😀'),
    '"\\u003ca href=\\"x\\"\\u003e\\u0026\\u2028\\u2029\\u0000\\u001f\\b\\f\\n\\r\\t\u007f\\\\é😀"');
  assert.equal(encode({ a: null, b: [true, 1, ''], c: new Raw('{ "x" : "<" }'), d: new Map([['z', 1], ['a', 2]]) }),
    '{"a":null,"b":[true,1,""],"c":{"x":"\\u003c"},"d":{"a":2,"z":1}}');
});

test('names of maps are in the order of their UTF-8', () => {
  assert.equal(encode(new Map([['\u{1f600}', 1], ['\uffee', 2], ['a', 3]])), '{"a":3,"\uffee":2,"\u{1f600}":1}');
});
