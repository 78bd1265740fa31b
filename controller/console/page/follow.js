// @ts-check
// Keeps a run followed: a stream that is lost goes on from its index, after a
// while that grows.

import { Refused, stream } from './api.js';

/**
 * How the following goes.
 * @typedef {object} Link
 * @property {'connecting' | 'live' | 'waiting' | 'ended' | 'gone' | 'locked'} state
 * @property {string} detail
 * @property {number} retryAt  when the next try is, for waiting; by performance.now
 */

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

/**
 * Follows a run until its end, or until there is no way to.
 * @param {string} id
 * @param {import('./model/run.js').Run} run
 * @param {(link: Link) => void} tell
 * @param {() => void} changed  something was taken
 * @param {AbortSignal} signal
 * @param {{now: (() => void) | null}} retry  where to put what ends a wait early
 */
export async function follow(id, run, tell, changed, signal, retry) {
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    tell({ state: 'connecting', detail: '', retryAt: 0 });
    let detail = 'the connection was lost';
    try {
      await stream(id, run.next, (line) => {
        run.take(line);
        wait = FIRST_WAIT;
        if (!run.over) tell({ state: 'live', detail: '', retryAt: 0 });
        changed();
      }, signal);
      if (run.over) {
        tell({ state: 'ended', detail: '', retryAt: 0 });
        return;
      }
    } catch (err) {
      if (signal.aborted) return;
      if (err instanceof Refused && (err.status === 401 || err.status === 404)) {
        tell({ state: err.status === 401 ? 'locked' : 'gone', detail: err.message, retryAt: 0 });
        return;
      }
      detail = err instanceof Error ? err.message : String(err);
    }
    tell({ state: 'waiting', detail, retryAt: performance.now() + wait });
    await sleep(wait, signal, retry);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @param {{now: (() => void) | null}} retry
 */
function sleep(ms, signal, retry) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      retry.now = null;
      resolve(undefined);
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    retry.now = done;
  });
}
