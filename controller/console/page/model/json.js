// @ts-check
// JSON as text. JSON.parse gives values and loses how they were written: big
// numbers, the order of members, escapes. What has to stay exact is cut out of
// the text here, and written as encoding/json of Go writes it.

/** A JSON value that is kept as it was written. */
export class Raw {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

const BACKSLASH = 92;

/**
 * The index after the string that begins at i.
 * @param {string} s
 * @param {number} i
 */
function skipString(s, i) {
  for (;;) {
    const end = s.indexOf('"', i + 1);
    if (end < 0) return s.length;
    let before = end;
    while (s.charCodeAt(before - 1) === BACKSLASH) before--;
    // Backslashes in pairs stand for themselves; before the string is a quote.
    if ((end - before) % 2 === 0) return end + 1;
    i = end;
  }
}

/**
 * The index of the next character that is no white space.
 * @param {string} s
 * @param {number} i
 */
function skipSpace(s, i) {
  while (i < s.length && s.charCodeAt(i) <= 32) i++;
  return i;
}

/**
 * The index after the value that begins at i. The text is valid JSON.
 * @param {string} s
 * @param {number} i
 */
function skipValue(s, i) {
  let depth = 0;
  for (;;) {
    i = skipSpace(s, i);
    switch (s[i]) {
      case '"':
        i = skipString(s, i);
        break;
      case '{':
      case '[':
        depth++;
        i++;
        continue;
      case '}':
      case ']':
        depth--;
        i++;
        break;
      case ',':
      case ':':
        i++;
        continue;
      default:
        while (i < s.length && !',:]}'.includes(s[i]) && s.charCodeAt(i) > 32) i++;
    }
    if (depth === 0 || i >= s.length) return i;
  }
}

/**
 * The text of a member, at any depth, of the object that the text is; undefined
 * where there is none. Of members of the same name it is the last.
 * @param {string} s
 * @param {string[]} path
 * @returns {string | undefined}
 */
export function rawAt(s, path) {
  let from = 0;
  for (const name of path) {
    const at = findMember(s, skipSpace(s, from), name);
    if (at < 0) return undefined;
    from = at;
  }
  from = skipSpace(s, from);
  return s.slice(from, skipValue(s, from));
}

/**
 * Where the value of a member begins; -1 where there is none.
 * @param {string} s
 * @param {number} i  where the object begins
 * @param {string} name
 */
function findMember(s, i, name) {
  if (s[i] !== '{') return -1;
  let found = -1;
  for (i = skipSpace(s, i + 1); s[i] === '"'; ) {
    const end = skipString(s, i);
    const key = s.slice(i + 1, end - 1);
    const value = skipSpace(s, skipSpace(s, end) + 1);
    if (key === name || (key.includes('\\') && JSON.parse(s.slice(i, end)) === name)) found = value;
    i = skipSpace(s, skipValue(s, value));
    if (s[i] === ',') i = skipSpace(s, i + 1);
  }
  return found;
}

/** @type {Record<string, string>} */
const escapes = {
  '"': '\\"', '\\': '\\\\', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t',
};

// What Go escapes in strings: also what would end a script element.
const escaped = /["\\\u0000-\u001f<>&\u2028\u2029]/g;

// The same as a test: one that remembers its place is none.
const special = /["\\\u0000-\u001f<>&\u2028\u2029]/;

/** @param {string} c */
const escapeOne = (c) => escapes[c] ?? '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0');

/** @param {string} s */
function quote(s) {
  if (!special.test(s)) return '"' + s + '"';
  return '"' + s.replace(escaped, escapeOne) + '"';
}

/**
 * Valid JSON without white space between its tokens.
 * @param {string} s
 */
export function compact(s) {
  let out = '';
  for (let i = 0; i < s.length; ) {
    const start = i;
    if (s[i] === '"') {
      i = skipString(s, i);
      out += s.slice(start, i).replace(/[<>&\u2028\u2029]/g, escapeOne);
    } else if (s.charCodeAt(i) <= 32) {
      i++;
    } else {
      while (i < s.length && s[i] !== '"' && s.charCodeAt(i) > 32) i++;
      out += s.slice(start, i);
    }
  }
  return out;
}

/**
 * Valid JSON, each member on a line of its own, indented by two spaces.
 * @param {string} text
 */
export function indent(text) {
  const s = compact(text);
  let out = '';
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  for (let i = 0; i < s.length; ) {
    const c = s[i];
    if (c === '"') {
      const end = skipString(s, i);
      out += s.slice(i, end);
      i = end;
      continue;
    }
    i++;
    if (c === '{' || c === '[') {
      if (s[i] === '}' || s[i] === ']') {
        out += c + s[i++];
        continue;
      }
      depth++;
      out += c + line();
    } else if (c === '}' || c === ']') {
      depth--;
      out += line() + c;
    } else {
      out += c === ',' ? ',' + line() : c === ':' ? ': ' : c;
    }
  }
  return out;
}

/**
 * A value as Go writes it: members in their order, maps sorted. The names of
 * members, but not of maps, are plain words.
 * @param {unknown} v
 * @returns {string}
 */
export function encode(v) {
  if (v === null || v === undefined) return 'null';
  if (v instanceof Raw) return compact(v.text);
  if (typeof v === 'string') return quote(v);
  if (Array.isArray(v)) return '[' + v.map(encode).join(',') + ']';
  if (v instanceof Map) {
    const keys = [...v.keys()].sort(byCodePoint);
    return '{' + keys.map((k) => quote(k) + ':' + encode(v.get(k))).join(',') + '}';
  }
  if (typeof v === 'object') {
    let out = '';
    for (const k in v) out += (out === '' ? '"' : ',"') + k + '":' + encode(/** @type {any} */ (v)[k]);
    return '{' + out + '}';
  }
  return String(v);
}

/**
 * Strings in the order of their code points, which is that of their UTF-8.
 * @param {string} a
 * @param {string} b
 */
function byCodePoint(a, b) {
  const x = Array.from(a, (c) => c.codePointAt(0) ?? 0);
  const y = Array.from(b, (c) => c.codePointAt(0) ?? 0);
  for (let i = 0; i < x.length && i < y.length; i++) {
    if (x[i] !== y[i]) return x[i] - y[i];
  }
  return x.length - y.length;
}
