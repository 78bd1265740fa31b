// What a person does in the page, and what there has to be seen.

import assert from 'node:assert/strict';

/** Goes in by the printed address. */
async function enter(tab, url) {
  const page = await tab();
  await page.goto(url);
  await page.waitForSelector('.sidebar');
  assert.ok(!/token|key/.test(page.url()), 'a secret stays in the address bar');
  return page;
}

/** Starts a script with the form. */
async function start(page, script) {
  await page.getByLabel('Script or harness').selectOption({ label: script });
  await page.getByRole('button', { name: 'Start run' }).click();
  await page.getByRole('heading', { level: 1, name: script }).waitFor();
}

const integrity = (page) => page.getByRole('region', { name: 'Integrity and replay' });
const verdict = (page, word) => integrity(page).getByText(word, { exact: true }).waitFor();
const ended = (page) => page.getByRole('region', { name: 'How it ended' });
const work = (page) => page.getByRole('region', { name: 'Work' });
const timeline = (page) => page.getByRole('listbox', { name: /Timeline/ });

/** Everything that is checked at the end was found good. */
async function verified(page) {
  await verdict(page, 'verified');
  const checks = await integrity(page).getByRole('listitem').allInnerTexts();
  assert.equal(checks.length, 6, checks.join('\n'));
  for (const c of checks) assert.match(c, /good:/, c);
}

async function happy({ url, open, shot }) {
  const { tab } = await open();
  const page = await enter(tab, url);
  await shot(page, 'welcome');
  await page.getByRole('button', { name: 'Start happy-path' }).click();
  await page.getByRole('list', { name: 'Items' }).getByText('FAIL: TestHello').waitFor();
  await shot(page, 'live');
  await verified(page);
  await shot(page, 'done');
  await ended(page).getByText('The harness ended well and left a valid result.').waitFor();
  await page.getByRole('region', { name: /Timeline/ }).getByText('19 events').waitFor();
  await page.getByRole('region', { name: 'Log tail' }).getByLabel('The end of the log').waitFor();
  assert.match(await page.locator('#announcements').innerText(), /Run succeeded/);

  // By keyboard alone: the list, an event as JSON, and back.
  await timeline(page).focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  const chosen = await timeline(page).getAttribute('aria-activedescendant');
  assert.match(await page.locator('#' + chosen).innerText(), /workspace\.ready/);
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  assert.equal(JSON.parse(await dialog.getByLabel('The event as JSON').innerText()).eventType, 'workspace.ready');
  await shot(page, 'event');
  await dialog.getByRole('button', { name: 'Next' }).click();
  await dialog.getByRole('heading', { name: /harness\.starting/ }).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('option', { name: /run\.terminal/ }).click();
  await dialog.getByRole('heading', { name: /run\.terminal/ }).waitFor();
  await page.keyboard.press('Escape');
}

async function questions({ url, open, shot }) {
  const { tab } = await open();
  const page = await enter(tab, url);
  await start(page, 'permission-input');
  const asked = page.getByRole('region', { name: 'Questions of the harness' });
  await asked.getByText('git push origin greeting').waitFor();
  await shot(page, 'permission');
  await asked.getByRole('button', { name: 'Allow' }).click();
  await asked.getByText('What shall the note').waitFor();
  // The keyboard goes on to the next question.
  await page.waitForFunction(() => document.activeElement?.closest('.request') && document.activeElement.tagName === 'TEXTAREA');
  const text = 'Twice. <b>&é "q" \u2028 9007199254740993';
  await asked.getByLabel('Your answer').fill(text);
  await shot(page, 'input');
  await page.keyboard.press('Control+Enter');
  await verified(page);
  await asked.getByText('Answer: allow').waitFor();
  assert.ok((await asked.innerText()).includes('Twice. <b>&é "q"'), 'the answer is shown as it was');
  await shot(page, 'answered');
}

async function interrupted({ url, open, shot }) {
  const { tab } = await open();
  const page = await enter(tab, url);
  await start(page, 'interrupted');
  await page.getByText('Run the long tests').first().waitFor();
  await shot(page, 'running');
  await page.getByRole('button', { name: 'Interrupt' }).click();
  await ended(page).getByText('The turn was interrupted by the controller.').waitFor();
  await ended(page).getByText('run cancelled').waitFor();
  await verified(page);
  await page.getByText('Goes on with:').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Interrupt' }).isDisabled());
  await shot(page, 'ended');
  await start(page, 'linger');
  await work(page).getByText('Watch the files').waitFor();
  await work(page).getByText('running', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Cancel run' }).click();
  await ended(page).getByText('The run was cancelled by the controller.').waitFor();
  await verified(page);
  // The harness has ended neither its turn nor its item: both end with the run.
  assert.equal(await work(page).getByText('ended with the run', { exact: true }).count(), 2, await work(page).innerText());
  assert.equal(await work(page).getByText(/^(running|started)$/).count(), 0, await work(page).innerText());
  await shot(page, 'cancelled');
  await start(page, 'error');
  await ended(page).getByText('The harness process failed.').waitFor();
  await verified(page);
  await shot(page, 'failed');
}

async function restart({ url, ask, open, shot }) {
  const { tab } = await open();
  const page = await enter(tab, url);
  await start(page, 'interrupted');
  await page.getByText('Run the long tests').first().waitFor();
  const { freeze } = await ask('kill');
  assert.ok(freeze);
  await page.getByText('The connection is lost').waitFor();
  await shot(page, 'lost');
  const { url: again } = await ask('up');
  await page.getByText('this page is locked out').waitFor();
  assert.ok(await page.getByText('Run the long tests').first().isVisible(), 'what came stays');
  assert.ok(await page.getByRole('button', { name: 'Cancel run' }).isDisabled());
  await shot(page, 'locked');
  await page.goto(again);
  await page.getByText('No run yet.').waitFor();
  await page.getByRole('button', { name: 'Start happy-path' }).click();
  await verified(page);
}

async function lost({ url, ask, open, shot }) {
  const { tab } = await open();
  const page = await enter(tab, url);
  await start(page, 'permission-input');
  await page.getByRole('button', { name: 'Allow' }).waitFor();
  await ask('cut');
  await page.getByText('The connection is lost').waitFor();
  await shot(page, 'cut');
  await ask('mend');
  await page.getByText('live', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByLabel('Your answer').fill('x');
  await ask('cut');
  await page.getByText('The connection is lost').waitFor();
  await ask('mend');
  await page.getByRole('button', { name: 'Try now' }).click({ timeout: 2000 }).catch(() => {}); // it may be back already
  await page.getByText('live', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Send answer' }).click();
  await verified(page);
}

async function tabs({ url, open, shot }) {
  const { tab } = await open();
  const one = await enter(tab, url);
  await start(one, 'permission-input');
  await one.getByRole('button', { name: 'Allow' }).waitFor();
  const two = await tab();
  await two.goto(one.url());
  await two.getByRole('button', { name: 'Deny' }).waitFor();
  // The second tab does not hear of the answer before it answers itself.
  await two.route('**/resolve', async (route) => {
    await one.getByRole('button', { name: 'Allow' }).click();
    await one.getByText('Answer: allow').waitFor();
    await route.continue();
  });
  const refused = two.waitForResponse('**/resolve');
  await two.getByRole('button', { name: 'Deny' }).click();
  const response = await refused;
  assert.equal(response.status(), 409, 'the late answer is refused');
  assert.equal((await response.json()).error.code, 'request_already_resolved');
  await two.getByText('Answer: allow').waitFor();
  await two.unroute('**/resolve');
  await two.getByLabel('Your answer').fill('from the second tab');
  await two.getByRole('button', { name: 'Send answer' }).click();
  await one.getByText('from the second tab').first().waitFor();
  await verified(one);
  await verified(two);
  await shot(two, 'second');
}

/** Loads pages of other origins that try what they can. */
async function hostile({ url, ask, open }) {
  const { context, tab } = await open();
  await enter(tab, url); // the browser has the cookie
  const { evil } = await ask('evil');
  const base = new URL(url).origin;
  for (const origin of evil) {
    const page = await context.newPage();
    await page.goto(origin);
    const got = await page.evaluate(async (base) => {
      const api = base + '/api/localRunner/runs';
      const body = '{"kind":"script","name":"happy-path"}';
      const read = async (options, path = api) => {
        try {
          const r = await fetch(path, options);
          return `${r.type} ${r.status} ${(await r.text()).slice(0, 200)}`;
        } catch (e) {
          return `threw ${e.name}`;
        }
      };
      const results = {
        key: localStorage.getItem('prp-console-key'),
        get: await read({ credentials: 'include' }),
        post: await read({ method: 'POST', credentials: 'include', headers: { 'Content-Type': 'application/json' }, body }),
        simple: await read({ method: 'POST', mode: 'no-cors', credentials: 'include', body }),
        blind: await read({ mode: 'no-cors', credentials: 'include' }),
      };
      const form = document.createElement('form');
      form.method = 'post';
      form.action = api;
      form.enctype = 'text/plain';
      form.target = 'sink';
      const field = document.createElement('input');
      field.name = '{"kind":"script","name":"happy-path","text":"';
      field.value = '"}';
      form.append(field);
      const sink = document.createElement('iframe');
      sink.name = 'sink';
      document.body.append(sink, form);
      form.submit();
      const tag = (name, attributes) =>
        new Promise((resolve) => {
          const e = Object.assign(document.createElement(name), attributes);
          e.onload = () => resolve('loaded');
          e.onerror = () => resolve('refused');
          document.body.append(e);
        });
      results.script = await tag('script', { src: base + '/main.js' });
      results.image = await tag('img', { src: base + '/icon.svg' });
      const frame = Object.assign(document.createElement('iframe'), { src: base + '/' });
      document.body.append(frame);
      await new Promise((resolve) => (frame.onload = resolve));
      return results;
    }, base);
    assert.equal(got.key, null, `${origin}: the key of the page can be read`);
    for (const how of ['get', 'post']) assert.equal(got[how], 'threw TypeError', `${origin}: ${how}: ${got[how]}`);
    for (const how of ['simple', 'blind']) assert.match(got[how], /^(opaque 0 $|threw)/, `${origin}: ${how}: ${got[how]}`);
    assert.equal(got.script, 'refused');
    assert.equal(got.image, 'refused');
    const framed = page.frames().find((f) => f !== page.mainFrame() && f.url().startsWith(base + '/') && !f.url().includes('api'));
    assert.equal(framed ? await framed.locator('.sidebar').count() : 0, 0, 'the page was framed');
    await page.close();
  }
  const { runs } = await ask('runs');
  assert.equal(runs, 0, 'a page of another origin has started a run');
}

/** A long run: what it costs, and that it stays in bounds. */
async function long({ url, open, shot }) {
  const { context, tab } = await open();
  const page = await enter(tab, url);
  await page.evaluate(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => list.getEntries().forEach((e) => window.longTasks.push(e.duration))).observe({ type: 'longtask' });
  });
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  const metrics = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
  const before = await metrics();
  const began = Date.now();
  await page.getByLabel('Script or harness').selectOption({ label: 'mine.json' });
  await page.getByRole('button', { name: 'Start run' }).click();
  await verified(page);
  const seconds = (Date.now() - began) / 1000;
  await integrity(page).getByText('the snapshot is equal byte for byte').waitFor();
  await shot(page, 'end');
  await session.send('HeapProfiler.enable');
  await session.send('HeapProfiler.collectGarbage');
  const after = await metrics();
  // Scrolling through all of it, and back to the end.
  await timeline(page).evaluate((e) => (e.scrollTop = e.scrollHeight / 2));
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
  await shot(page, 'middle');
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await page.getByRole('option', { name: /run\.terminal/ }).waitFor();
  const rows = await page.locator('.window-row').count();
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  const tasks = await page.evaluate(() => window.longTasks);
  const notes = {
    seconds, script: after.ScriptDuration - before.ScriptDuration, layout: after.LayoutDuration + after.RecalcStyleDuration - before.LayoutDuration - before.RecalcStyleDuration,
    heapMiB: after.JSHeapUsedSize / 2 ** 20, longTasks: tasks.length, longest: Math.max(0, ...tasks), rows, elements,
  };
  assert.match(await page.getByRole('region', { name: /Timeline/ }).innerText(), /50,0\d\d events/);
  assert.ok(rows < 80, `${rows} rows have elements`);
  assert.ok(elements < 3000, `${elements} elements`);
  assert.ok(notes.heapMiB < 300, `${notes.heapMiB} MiB`);
  return notes;
}

async function recorded({ url, open, shot }) {
  const { tab } = await open({ colorScheme: 'dark' });
  const page = await enter(tab, url);
  await page.locator('a', { hasText: 'source-gap' }).click();
  await verdict(page, 'problems');
  await integrity(page).getByText('1 gap; missing 11').waitFor();
  await integrity(page).getByText('1 problem', { exact: true }).click();
  await integrity(page).getByText('expected 11, got 12').waitFor();
  await shot(page, 'gap');
  await page.locator('a', { hasText: 'happy' }).click();
  await verified(page);
  assert.equal(await page.getByRole('button', { name: 'Cancel run' }).count(), 0, 'a recorded run has no actions');
  await page.locator('a', { hasText: 'torn' }).click();
  await verdict(page, 'problems');
  await integrity(page).getByText('The stream ended without run.terminal').waitFor();
  for (const width of [1440, 1100, 700, 360]) {
    await page.setViewportSize({ width, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `at ${width} pixels the page is ${wide} too wide`);
    await shot(page, `wide-${width}`);
  }
}

/** A run that outgrows its history: a page that comes late is told so. */
async function reduced({ url, ask, open, shot }) {
  const { tab } = await open();
  const page = await enter(tab, url);
  const { fragment } = await ask('reduced');
  await page.goto(new URL(fragment, page.url()).href);
  await verdict(page, 'verified');
  await integrity(page).getByText('does not keep').waitFor();
  await integrity(page).getByText('what the kept history tells is equal byte for byte').waitFor();
  await shot(page, 'told');
}

export const cases = { happy, questions, interrupted, restart, lost, tabs, hostile, long, recorded, reduced };
