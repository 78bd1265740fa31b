// One case in a real browser: node browser.js CASE URL. It talks to the test
// that started it by lines: it asks for something on stdout, and gets a line of
// JSON on stdin. It prints {"ok":true} at last; anything else is a failure.

import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

import { cases } from './cases.js';

const [name, url] = process.argv.slice(2);
const shots = process.env.CONSOLE_SHOTS;

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Asks the test for something, such as to end the server. */
async function ask(what) {
  process.stdout.write(JSON.stringify({ ask: what }) + '\n');
  return JSON.parse((await answers.next()).value);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--enable-precise-memory-info',
  ],
});

/** What no page may do: throw, or be refused something by its own policy. */
const complaints = [];

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(45_000);
  const tab = async () => {
    const page = await context.newPage();
    page.on('pageerror', (e) => complaints.push(`${e.stack ?? e}`));
    page.on('console', (m) => {
      const text = m.text();
      // A server that is away, or that refuses, is what some cases are about.
      if (m.type() === 'error' && !text.startsWith('Failed to load resource')) complaints.push(text);
    });
    return page;
  };
  return { context, tab };
}

let picture = 0;
async function shot(page, what) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: `${shots}/${name}-${++picture}-${what}.png` });
}

try {
  const notes = await cases[name]({ url, ask, open, shot, browser });
  if (complaints.length > 0 && name !== 'hostile') throw new Error('the page complained:\n' + complaints.join('\n'));
  process.stdout.write(JSON.stringify({ ok: true, notes }) + '\n');
} catch (err) {
  process.stdout.write(JSON.stringify({ error: `${err.stack ?? err}`, complaints }) + '\n');
  process.exitCode = 1;
} finally {
  await browser.close();
  process.exit();
}
