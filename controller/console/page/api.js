// @ts-check
// The server's interface: requests, and the stream of a run.

/** @typedef {import('./model/event.js').Overview} Overview */
/** @typedef {import('./model/event.js').RunInfo} RunInfo */

const root = '/api/localRunner/runs';

/** Where the key is kept: only pages of this origin, which has the port in it, can read it. */
const KEY = 'prp-console-key';

/** Takes the key out of the address that the printed one has led to. */
export function takeKey() {
  const given = /^#key=([A-Z2-7]+)$/.exec(location.hash)?.[1];
  if (!given) return;
  localStorage.setItem(KEY, given);
  history.replaceState(null, '', location.pathname);
}

/** What every request to the interface has beside the cookie, which other ports see as well. */
const credentials = () => ({ 'Prp-Console-Key': localStorage.getItem(KEY) ?? '' });

/** A refusal of the server, with its stable code. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Response>}
 */
async function accepted(response) {
  if (response.ok) return response;
  /** @type {{error?: {code: string, message: string}}} */
  const body = await response.json().catch(() => ({}));
  throw new Refused(response.status, body.error?.code ?? 'unknown', body.error?.message ?? `status ${response.status}`);
}

/** @param {string} path */
async function get(path) {
  return accepted(await fetch(root + path, { credentials: 'same-origin', headers: credentials() }));
}

/**
 * @param {string} path
 * @param {unknown} body
 */
async function post(path, body) {
  const response = await fetch(root + path, {
    method: 'POST', credentials: 'same-origin', headers: { ...credentials(), 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  });
  return (await accepted(response)).json();
}

/** @returns {Promise<Overview>} */
export const overview = async () => (await get('')).json();

/**
 * @param {{kind: string, name: string, text: string}} what
 * @returns {Promise<{run: RunInfo}>}
 */
export const start = (what) => post('', what);

/**
 * Does something to an active run: resolve, interrupt, stop, close or cancel.
 * @param {string} id
 * @param {string} action
 * @param {object} body
 */
export const act = (id, action, body = {}) => post(`/${id}/${action}`, body);

/**
 * The final trace as text: its snapshot is compared as it was written.
 * @param {string} id
 */
export const trace = async (id) => (await get(`/${id}/trace`)).text();

/** The schema of events. */
export const schema = async () => (await accepted(await fetch('/schema/event.json', { credentials: 'same-origin' }))).json();

/** A stream that is silent for so long is lost: the server's sign of life comes every 5 s. */
const SILENCE = 15_000;

/** How long lines are taken without giving way to the page, in milliseconds. */
const SLICE = 12;

/**
 * Follows the stream of a run from an index to its end. It ends when the server
 * ends it, and throws when it is lost.
 * @param {string} id
 * @param {number} from
 * @param {(line: string) => void} take
 * @param {AbortSignal} signal
 */
export async function stream(id, from, take, signal) {
  const lost = new AbortController();
  const either = AbortSignal.any([signal, lost.signal]);
  const response = await accepted(
    await fetch(`${root}/${id}/events?from=${from}`, { credentials: 'same-origin', headers: credentials(), signal: either }),
  );
  if (!response.body) throw new Error('the stream has no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const timer = setTimeout(() => lost.abort(new Error('the stream is silent')), SILENCE);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    let since = performance.now();
    for (const line of lines) {
      if (line === '') continue;
      take(line);
      if (performance.now() - since > SLICE) {
        await pause();
        if (signal.aborted) return;
        since = performance.now();
      }
    }
  }
}

/** Gives way to what else the page has to do. */
export function pause() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve(undefined);
    };
    channel.port2.postMessage(null);
  });
}
