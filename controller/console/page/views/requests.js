// @ts-check
// The questions of the harness: one card each, with its choices or a text field.

import { Refused, act } from '../api.js';
import { badge, button, textArea, toneOf } from '../ui/components.js';
import { fill, h, setText } from '../ui/dom.js';

/** @typedef {import('../model/reduce.js').Request} Request */
/** @typedef {import('../model/run.js').Run} Run */

/** What a permission offers where the harness names no choices. */
const usualChoices = [{ key: 'allow', label: 'Allow' }, { key: 'deny', label: 'Deny' }];

/** How many answered questions are shown beside those that are open. */
const ANSWERED = 4;

export class Requests {
  /** @type {Map<string, {element: HTMLElement, status: string}>} */
  cards = new Map();

  /**
   * @param {string} runID
   * @param {(text: string) => void} announce
   */
  constructor(runID, announce) {
    this.runID = runID;
    this.announce = announce;
    this.all = false;
    this.answered = false;
    this.list = h('div', { class: 'requests' });
    this.more = button('', () => {
      this.all = true;
      this.hideOld();
    }, { kind: 'ghost' });
    this.element = h('section', { class: 'stack', 'aria-label': 'Questions of the harness', hidden: true }, this.more, this.list);
  }

  /** Answered questions give way to newer ones. */
  hideOld() {
    const answered = [...this.cards.values()].filter((c) => c.status !== 'pending');
    const old = this.all ? 0 : Math.max(0, answered.length - ANSWERED);
    answered.forEach((c, i) => (c.element.hidden = i < old));
    this.more.hidden = old === 0;
    setText(this.more, `Show ${old} answered before`);
  }

  /**
   * @param {Run} run
   * @param {boolean} active
   */
  update(run, active) {
    const requests = run.snapshot.requests ?? [];
    this.element.hidden = requests.length === 0;
    for (const r of requests) {
      const status = r.status === 'pending' && !active ? 'unanswered' : r.status;
      const known = this.cards.get(r.id);
      if (known?.status === status) continue;
      const element = this.draw(r, status, run.choices.get(r.id) ?? []);
      if (known) {
        known.element.replaceWith(element);
      } else {
        this.list.append(element);
        if (status === 'pending') this.announce(`The harness asks: ${r.prompt}`);
      }
      this.cards.set(r.id, { element, status });
    }
    this.hideOld();
    if (this.answered) this.goOn();
  }

  /**
   * Who has answered goes on to the next question, when it comes, unless they
   * have gone elsewhere meanwhile.
   */
  goOn() {
    const at = document.activeElement;
    const stayed = at === null || at === document.body || this.element.contains(at);
    const next = this.list.querySelector('.request-pending button:enabled, .request-pending textarea');
    if (stayed && !next) return;
    if (stayed) /** @type {HTMLElement} */ (next).focus();
    this.answered = false;
  }

  /**
   * @param {Request} r
   * @param {string} status
   * @param {{key: string, label: string}[]} choices
   */
  draw(r, status, choices) {
    const head = h('header', { class: 'card-head' },
      h('h3', { class: 'card-title' }, r.type === 'permission' ? 'Permission' : 'Question'), badge(status, toneOf(status)));
    const prompt = h('p', { class: 'request-prompt' }, r.prompt);
    const element = h('article', { class: `card request request-${status}`, 'aria-label': `${r.type}: ${r.prompt}` }, head, prompt);
    if (status === 'pending') element.append(...this.form(r, choices));
    else if (r.response) element.append(h('p', { class: 'request-answer' }, 'Answer: ', h('strong', {}, answerText(r.response.text))));
    return element;
  }

  /**
   * @param {Request} r
   * @param {{key: string, label: string}[]} choices
   */
  form(r, choices) {
    const error = h('p', { class: 'error', role: 'alert', hidden: true });
    const place = h('div', { class: 'request-form' });
    const send = async (/** @type {object} */ response) => {
      place.querySelectorAll('button').forEach((b) => (b.disabled = true));
      error.hidden = true;
      try {
        await act(this.runID, 'resolve', { requestId: r.id, response });
        this.answered = true;
      } catch (err) {
        setText(error, refusalText(err));
        error.hidden = false;
        place.querySelectorAll('button').forEach((b) => (b.disabled = false));
      }
    };
    if (r.type === 'permission') {
      const list = choices.length > 0 ? choices : usualChoices;
      fill(place, ...list.map((c, i) =>
        button(c.label, () => void send({ decision: c.key }), { kind: i === 0 ? 'primary' : 'plain' })));
      place.setAttribute('role', 'group');
      place.setAttribute('aria-label', 'Choices');
    } else {
      const text = textArea('Your answer', { rows: 2, maxLength: 4000 });
      fill(place, h('form', {
        class: 'stack',
        onsubmit: (/** @type {Event} */ e) => {
          e.preventDefault();
          void send({ text: text.area.value });
        },
      }, text.field, h('div', { class: 'row' }, button('Send answer', () => {}, { kind: 'primary', type: 'submit' }),
        h('span', { class: 'muted hint' }, 'Ctrl + Enter'))));
    }
    return [place, error];
  }
}

/** @param {unknown} err */
function refusalText(err) {
  if (err instanceof Refused && err.code === 'request_already_resolved') return 'This was answered elsewhere a moment ago.';
  if (err instanceof Refused && (err.code === 'run_over' || err.code === 'run_ending')) return 'The run is ending; it takes no answer any more.';
  return err instanceof Error ? err.message : String(err);
}

/**
 * An answer as a person reads it.
 * @param {string} json
 */
function answerText(json) {
  const v = JSON.parse(json);
  const said = v?.decision ?? v?.text ?? v?.choice ?? v?.key ?? v;
  return typeof said === 'string' ? said : json;
}
