// @ts-check
// A validator for the JSON Schemas of the project (draft 2020-12). It knows the
// keywords that these schemas use, and refuses a schema that uses another one:
// a keyword that is passed over would be a rule that nobody checks.

/** @typedef {{path: string, message: string}} Fault */
/** @typedef {(value: unknown, path: string, faults: Fault[] | null) => boolean} Check */
/** @typedef {boolean | {[keyword: string]: any}} Schema */

/** Keywords that say nothing about a value. */
const silent = new Set(['$schema', '$id', '$defs', 'title', 'description', 'then', 'else']);

/**
 * Compiles a schema. The check appends what is wrong to faults and returns
 * whether nothing was.
 * @param {Schema} root
 * @returns {Check}
 */
export function compile(root) {
  /** @type {Map<string, Check>} */
  const definitions = new Map();

  /**
   * A definition, compiled when it is first used.
   * @param {string} ref
   * @returns {Check}
   */
  const refer = (ref) => {
    const name = ref.startsWith('#/$defs/') ? ref.slice('#/$defs/'.length) : '';
    const target = typeof root === 'object' ? root.$defs?.[name] : undefined;
    if (target === undefined) throw new Error(`schema: expected a reference to a definition, got "${ref}"`);
    /** @type {Check | undefined} */
    let check;
    return (value, path, faults) => {
      check ??= definitions.get(name);
      if (!check) {
        check = build(target);
        definitions.set(name, check);
      }
      return check(value, path, faults);
    };
  };

  /**
   * @param {Schema} schema
   * @returns {Check}
   */
  const build = (schema) => {
    if (schema === true) return () => true;
    if (schema === false) return (_, path, faults) => fail(faults, path, () => 'expected nothing here');
    /** @type {Check[]} */
    const checks = [];
    for (const [keyword, argument] of Object.entries(schema)) {
      if (silent.has(keyword)) continue;
      const make = keywords[keyword];
      if (!make) throw new Error(`schema: the keyword "${keyword}" is not known here`);
      checks.push(make(argument, build, schema, refer));
    }
    if (checks.length === 1) return checks[0];
    return (value, path, faults) => {
      let ok = true;
      for (const check of checks) ok = check(value, path, faults) && ok;
      return ok;
    };
  };
  return build(root);
}

/**
 * Tells a fault, where anybody wants to know: a condition does not.
 * @param {Fault[] | null} faults
 * @param {string} path
 * @param {() => string} message
 */
function fail(faults, path, message) {
  faults?.push({ path, message: message() });
  return false;
}

/** @param {unknown} v */
function show(v) {
  const text = JSON.stringify(v) ?? 'nothing';
  return text.length > 60 ? text.slice(0, 60) + '…' : text;
}

/**
 * @param {string} path
 * @param {string | number} name
 */
const below = (path, name) => (path === '' ? String(name) : `${path}.${name}`);

/** @param {unknown} v */
function typeOf(v) {
  if (v === null) return 'null';
  if (Array.isArray(v)) return 'array';
  return typeof v;
}

/** @param {string} s */
function countCharacters(s) {
  let n = 0;
  for (const _ of s) n++;
  return n;
}

/** @typedef {(argument: any, build: (s: Schema) => Check, schema: any, refer: (ref: string) => Check) => Check} Maker */

/**
 * Whether a value passes, without a word on why it does not.
 * @param {Check} check
 * @param {unknown} value
 */
const passes = (check, value) => check(value, '', null);

/** @type {Record<string, Maker>} */
const keywords = {
  $ref: (ref, _build, _schema, refer) => refer(ref),

  type: (want) => {
    const types = Array.isArray(want) ? want : [want];
    const integer = types.includes('integer');
    return (v, path, faults) => {
      const got = typeOf(v);
      if (types.includes(got) || (integer && Number.isInteger(v))) return true;
      return fail(faults, path, () => `expected ${types.join(' or ')}, got ${show(v)}`);
    };
  },

  const: (want) => (v, path, faults) => v === want || fail(faults, path, () => `expected ${show(want)}, got ${show(v)}`),

  enum: (list) => {
    const values = new Set(list);
    return (v, path, faults) => values.has(v) || fail(faults, path, () => `expected one of ${list.map(show).join(', ')}, got ${show(v)}`);
  },

  required: (names) => (v, path, faults) => {
    if (typeOf(v) !== 'object') return true;
    let ok = true;
    for (const name of names) {
      if (!Object.hasOwn(/** @type {object} */ (v), name)) ok = fail(faults, below(path, name), () => 'expected a member, got none');
    }
    return ok;
  },

  properties: (properties, build) => {
    const list = Object.entries(properties).map(([name, schema]) => /** @type {[string, Check]} */ ([name, build(schema)]));
    return (v, path, faults) => {
      if (typeOf(v) !== 'object') return true;
      const object = /** @type {Record<string, unknown>} */ (v);
      let ok = true;
      for (const [name, check] of list) {
        if (Object.hasOwn(object, name)) ok = check(object[name], below(path, name), faults) && ok;
      }
      return ok;
    };
  },

  items: (schema, build) => {
    const check = build(schema);
    return (v, path, faults) => {
      if (!Array.isArray(v)) return true;
      let ok = true;
      for (let i = 0; i < v.length; i++) ok = check(v[i], below(path, i), faults) && ok;
      return ok;
    };
  },

  allOf: (schemas, build) => {
    const checks = schemas.map(build);
    return (v, path, faults) => {
      let ok = true;
      for (const check of checks) ok = check(v, path, faults) && ok;
      return ok;
    };
  },

  anyOf: (schemas, build) => {
    const checks = schemas.map(build);
    return (v, path, faults) =>
      checks.some((/** @type {Check} */ c) => passes(c, v)) || fail(faults, path, () => `expected one of ${checks.length} forms, got ${show(v)}`);
  },

  oneOf: (schemas, build) => {
    const checks = schemas.map(build);
    return (v, path, faults) => {
      const n = checks.filter((/** @type {Check} */ c) => passes(c, v)).length;
      return n === 1 || fail(faults, path, () => `expected exactly one of ${checks.length} forms, got ${n}: ${show(v)}`);
    };
  },

  not: (schema, build) => {
    const check = build(schema);
    return (v, path, faults) => !passes(check, v) || fail(faults, path, () => `expected another value than ${show(v)}`);
  },

  if: (condition, build, schema) => {
    const [when, then, otherwise] = [build(condition), build(schema.then ?? true), build(schema.else ?? true)];
    return (v, path, faults) => (passes(when, v) ? then : otherwise)(v, path, faults);
  },

  minLength: (n) => (v, path, faults) =>
    typeof v !== 'string' || v.length >= n * 2 || countCharacters(v) >= n || fail(faults, path, () => `expected at least ${n} characters`),

  maxLength: (n) => (v, path, faults) =>
    typeof v !== 'string' || v.length <= n || countCharacters(v) <= n || fail(faults, path, () => `expected at most ${n} characters, got more`),

  minimum: (n) => (v, path, faults) => typeof v !== 'number' || v >= n || fail(faults, path, () => `expected at least ${n}, got ${show(v)}`),

  maximum: (n) => (v, path, faults) => typeof v !== 'number' || v <= n || fail(faults, path, () => `expected at most ${n}, got ${show(v)}`),

  pattern: (source) => {
    const pattern = new RegExp(source, 'u');
    return (v, path, faults) => typeof v !== 'string' || pattern.test(v) || fail(faults, path, () => `expected a text like ${source}, got ${show(v)}`);
  },

  format: (name) => {
    if (name !== 'date-time') throw new Error(`schema: the format "${name}" is not known here`);
    return (v, path, faults) => typeof v !== 'string' || isDateTime(v) || fail(faults, path, () => `expected a date and time, got ${show(v)}`);
  },
};

/**
 * RFC 3339. Date.parse alone takes the 30th of February for the 2nd of March.
 * @param {string} s
 */
function isDateTime(s) {
  const m = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-](\d\d):(\d\d))$/.exec(s);
  if (!m) return false;
  const [year, month, day, hour, minute, second] = m.slice(1, 7).map(Number);
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate();
  // The hour and minute of the zone are absent with Z.
  const zone = Number(m[9] ?? 0) < 24 && Number(m[10] ?? 0) < 60;
  return month >= 1 && month <= 12 && day >= 1 && day <= days && hour < 24 && minute < 60 && second <= 60 && zone;
}
