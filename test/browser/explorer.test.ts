import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { formatBytes, shortCount } from '../../src/base/text/units.js';
import { modelAnswers } from '../../src/explorer/answers.js';
import { filledPage } from '../../src/explorer/filled-page.js';
import { linkFragment } from '../../src/explorer/link.js';
import {
  NO_BROWSER,
  NO_BROWSER_NOTE,
  NO_LONG_TESTS,
  NO_LONG_TESTS_NOTE,
  withPage,
} from './chromium.js';
import {
  builtPage,
  configText,
  modelFile,
  presetsOfPage,
  settled,
  stateOf,
  TINY,
  tile,
  waitUntil,
  withExplorer,
} from './explorer-page.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Rules that the page breaks, with the elements. */
async function violationsOn(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' | ')))`);
}

/** Numbers from 0 to 1, the same for a seed (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const slider = (page: Page, name: string) => page.getByRole('slider', { name, exact: true });

const preset = (name: string) => {
  const found = presetsOfPage().find((each) => each.name === name);
  if (found === undefined) throw new Error(`no preset ${name}`);
  return found;
};

describe.skipIf(NO_BROWSER)(`explorer${NO_BROWSER_NOTE}`, () => {
  test.each([
    ['a program that does not start', 'throw new Error("broken");'],
    [
      'an error while it computes',
      'Array.prototype.toSorted = () => { throw new Error("broken"); };',
    ],
  ])('shows %s', async (_, code) => {
    const html = await filledPage(builtPage(), stateOf(TINY));
    await withPage({ '/': html }, async ({ page, url }) => {
      // The worker runs the script of the page out of a blob.
      await page.addInitScript(`const Own = Blob;
        Blob = class extends Own { constructor(parts, options) { super(options?.type === 'text/javascript' ? [${JSON.stringify(code)}, ...parts] : parts, options); } };`);
      await page.goto(url);
      await page.getByText('bug in minimind').first().waitFor();
      expect(await page.innerText('.verdict')).toMatch(/^This is a bug in minimind: .*broken/);
    });
  });

  test('shows an answer, without a request and without complaints of the browser', () =>
    withExplorer(stateOf(TINY, { gpu: 'rtx-4090' }), async ({ page, messages }) => {
      expect(await page.innerText('.verdict')).toMatch(/^Fits on 1 × .*4090/);
      expect(await tile(page, 'Parameters')).toBe('275K');
      await page.locator('.map title').first().waitFor({ state: 'attached' });
      expect(await page.locator('.map').textContent()).toMatch(/embedding.*in_proj/s);
      expect(await page.innerText('.problems')).toContain('Valid');
      expect(messages).toEqual([]);
    }));
});

describe.skipIf(NO_LONG_TESTS)(`explorer at length${NO_LONG_TESTS_NOTE}`, () => {
  test('keeps slider, text, form and figures alike', () =>
    withExplorer(stateOf(TINY), async ({ page, messages }) => {
      const before = await tile(page, 'Parameters');
      await slider(page, 'Depth').press('ArrowRight');
      await settled(page);
      expect(await configText(page)).toContain('num_layers: 3                         # blocks');
      expect(await tile(page, 'Parameters')).not.toBe(before);
      await page.click('.form summary');
      expect(await page.inputValue('#field-num_layers')).toBe('3');
      await page.fill('#field-num_layers', '5');
      await settled(page);
      expect(await configText(page)).toContain('num_layers: 5 ');
      expect(await slider(page, 'Depth').getAttribute('aria-valuetext')).toBe('5');
      await page.fill(
        '.editor textarea',
        (await configText(page)).replace('layers: 5', 'layers: 2'),
      );
      await settled(page);
      expect(await tile(page, 'Parameters')).toBe(before);
      expect(messages).toEqual([]);
    }));

  test('stays consistent through 60 random edits of the largest model', { timeout: 300_000 }, () =>
    withExplorer(
      stateOf(preset('llama/llama-3.1-405b'), { gpu: 'dgx-h100' }),
      async ({ page, messages }) => {
        const random = randomNumbers(7);
        const pick = <Item>(items: readonly Item[]) =>
          items[Math.floor(random() * items.length)] as Item;
        await page.click('.form summary');
        const edits: Readonly<Record<string, () => Promise<unknown>>> = {
          slider: () =>
            slider(page, pick(['Depth', 'Width', 'KV heads', 'Vocabulary'])).press(
              pick(['ArrowLeft', 'ArrowRight', 'PageUp', 'PageDown']),
            ),
          number: () =>
            page.fill('#field-num_hidden_layers', String(1 + Math.floor(random() * 200))),
          choice: () =>
            page.selectOption('#field-tie_word_embeddings', pick(['true', 'false', ''])),
          text: async () => {
            const text = await configText(page);
            const width = pick([1024, 4096, 8192]);
            await page.fill(
              '.editor textarea',
              text.replace(/(intermediate_size: )\d+/, `$1${width}`),
            );
          },
          undo: () => page.keyboard.press('Control+z'),
        };
        for (let edit = 0; edit < 60; edit++) {
          const kind = pick(Object.keys(edits));
          await edits[kind]?.();
          await page.waitForTimeout(20);
          await page.waitForSelector('.tiles[aria-busy="false"]');
          const text = await configText(page);
          const { described, profile } = await modelAnswers(modelFile('x.yaml', text), {});
          if (!profile || !('checks' in profile)) throw new Error(`${kind}: ${text}`);
          const written = described?.document.model as Record<string, unknown>;
          expect({
            kind,
            parameters: await tile(page, 'Parameters'),
            weights: await tile(page, 'Weights'),
            depth: await slider(page, 'Depth').getAttribute('aria-valuetext'),
            width: await page.getByLabel('Width, exact').first().inputValue(),
            form: await page.inputValue('#field-num_hidden_layers'),
          }).toEqual({
            kind,
            parameters: shortCount(profile.parameters.total.value),
            weights: formatBytes(profile.inference.weights.value),
            depth: String(written.num_hidden_layers),
            width: String(written.hidden_size),
            form: String(written.num_hidden_layers),
          });
        }
        await settled(page);
        expect(messages).toEqual([]);
      },
    ),
  );

  test('marks the lines of mistakes, and keeps the controls', () =>
    withExplorer(stateOf(TINY), async ({ page }) => {
      const text = (await configText(page)).replace('num_heads: 4', 'num_heads: 7');
      await page.fill('.editor textarea', text.replace('window_size', 'windowsize'));
      await page.waitForSelector('.problems [data-severity="error"]');
      const line = text.split('\n').findIndex((each) => each.includes('num_heads')) + 1;
      expect(await page.innerText('.problems')).toContain(`error ${line}:`);
      expect(await page.innerText('.problems')).toContain('window_size');
      const marked = await page.locator('.gutter [data-severity="error"]').allInnerTexts();
      expect(marked.map((each) => each.trim())).toContain(String(line));
      expect(await page.innerText('.verdict')).toMatch(/mistake/);
      await page.fill('.editor textarea', 'model: [');
      await page.waitForSelector('.controls fieldset:disabled');
      expect(await page.locator('.tile').count()).toBe(0);
    }));

  test('undoes and redoes, a drag as one step', () =>
    withExplorer(stateOf(TINY), async ({ page }) => {
      const text = await configText(page);
      for (let step = 0; step < 5; step++) await slider(page, 'Width').press('ArrowRight');
      await slider(page, 'Depth').press('ArrowRight');
      await settled(page);
      const changed = await configText(page);
      await page.keyboard.press('Control+z');
      expect(await configText(page)).toContain('num_layers: 2');
      await page.getByRole('button', { name: 'Undo' }).click();
      expect(await configText(page)).toBe(text);
      expect(await page.getByRole('button', { name: 'Undo' }).isDisabled()).toBe(true);
      await page.keyboard.press('Control+y');
      await page.keyboard.press('Control+Shift+z');
      expect(await configText(page)).toBe(changed);
    }));

  test('restores a state from its link', () =>
    withExplorer(stateOf(TINY), async ({ page, messages }) => {
      await slider(page, 'Depth').press('ArrowRight');
      await page.selectOption('.choice:has-text("GPU") select', 'h200');
      await settled(page);
      const verdict = await page.innerText('.verdict');
      const text = await configText(page);
      await waitUntil(page, `location.hash.startsWith('#1.')`);
      await page.waitForTimeout(500);
      const link = page.url();
      await page.goto('about:blank');
      await page.goto(link);
      await settled(page);
      expect(await configText(page)).toBe(text);
      expect(await page.innerText('.verdict')).toBe(verdict);
      // A link within the open page.
      const other = await linkFragment(stateOf(preset('minimind/minimind2-small')));
      await page.evaluate(`location.hash = ${JSON.stringify(other)}`);
      await waitUntil(page, `document.title.startsWith('minimind/')`);
      expect(messages).toEqual([]);
    }));

  test('ignores a broken link', () =>
    withExplorer(stateOf(TINY), async ({ page, url, messages }) => {
      for (const fragment of ['1.', '1.!!!', '1.AAAA', '2.x', '1.q1YqAA', '%00', '__proto__']) {
        await page.goto('about:blank');
        await page.goto(`${url}#${fragment}`);
        await settled(page);
        expect(await configText(page)).toBe(TINY.text);
      }
      expect(messages).toEqual([]);
    }));

  test('compares two models side by side', () =>
    withExplorer(stateOf(TINY), async ({ page }) => {
      await page.getByRole('button', { name: 'Compare' }).click();
      await slider(page, 'Depth').press('End');
      await settled(page);
      const rows = await page.locator('.comparison tbody tr').allInnerTexts();
      expect(rows[0]).toMatch(/^Parameters\t275K\t[\d.]+M\t×[\d.]+$/);
      expect(await configText(page)).toContain('num_layers: 256');
      await page.getByRole('radio', { name: /Edit A/ }).check();
      expect(await configText(page)).toBe(TINY.text);
      await page.getByRole('button', { name: 'Compare' }).click();
      await settled(page);
      expect(await tile(page, 'Parameters')).toBe('275K');
    }));

  test('downloads the config and the answers', () =>
    withExplorer(stateOf(TINY), async ({ page }) => {
      await page.click('.menu summary');
      const contentOf = async (button: RegExp) => {
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('button', { name: button }).click(),
        ]);
        return [download.suggestedFilename(), readFileSync(await download.path(), 'utf8')];
      };
      expect(await contentOf(/^Config/)).toEqual(['tiny.yaml', TINY.text]);
      const [profile, profileJson = ''] = await contentOf(/^Profile/);
      expect(profile).toBe('tiny.profile.json');
      expect(JSON.parse(profileJson)).toMatchObject({ schema: 'minimind/profile@1' });
      const [fit, fitJson = ''] = await contentOf(/^Fit/);
      expect(fit).toBe('tiny.fit.json');
      expect(JSON.parse(fitJson)).toMatchObject({ schema: 'minimind/fit@1', file: 'tiny.yaml' });
    }));

  test('shows the commands with the same figures', () =>
    withExplorer(stateOf(TINY), async ({ page }) => {
      await slider(page, 'Context').press('Home');
      await page.selectOption('.choice:has-text("Weights") select', 'q4_k_m');
      await settled(page);
      expect(await page.locator('.lines code').allInnerTexts()).toEqual([
        'minimind profile tiny.yaml --context 128',
        'minimind fit tiny.yaml --gpu h100-80gb --context 128 --dtype q4_k_m',
        'minimind validate tiny.yaml',
      ]);
    }));

  test.each([
    '</script><script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)>',
  ])('shows the name %s as text only', (name) => {
    const text = `model:\n  num_layers: ${name}\n  ${JSON.stringify(name)}: 1 # \u202e ${'x'.repeat(10_000)}\n`;
    return withExplorer(
      stateOf(modelFile(name, text), { gpu: name }),
      async ({ page, messages }) => {
        expect(await configText(page)).toBe(text);
        const elements = 'script[src], img, [onload], [onerror]';
        expect(await page.locator(elements).count()).toBe(0);
        expect(await page.locator('script').count()).toBe(6);
        await page.fill('.editor textarea', TINY.text);
        await page.waitForSelector('.verdict.bad');
        expect(messages).toEqual([]);
      },
    );
  });

  test('has a policy that allows its own script only', () =>
    withExplorer(stateOf(TINY), async ({ page, messages }) => {
      const policy = await page.getAttribute(
        'meta[http-equiv="Content-Security-Policy"]',
        'content',
      );
      expect(policy).not.toMatch(/unsafe/);
      await page.evaluate(`{
        const script = document.createElement('script');
        script.textContent = 'globalThis.planted = 1';
        document.body.append(script);
        fetch('/x').catch(() => {});
      }`);
      expect(await page.evaluate('globalThis.planted')).toBeUndefined();
      await expect.poll(() => messages.length).toBeGreaterThan(0);
      expect(messages.every((each) => each.includes('Content Security Policy'))).toBe(true);
    }));

  test('shows the answer as text without scripts', async () => {
    const { filledPage } = await import('../../src/explorer/filled-page.js');
    const html = await filledPage(builtPage(), stateOf(TINY));
    await withPage({ '/': html }, async ({ page, url }) => {
      const context = await page.context().browser()?.newContext({ javaScriptEnabled: false });
      const silent = await context?.newPage();
      await silent?.goto(url);
      const text = await silent?.innerText('body');
      expect(text).toContain('needs JavaScript');
      expect(text).toContain('275K');
      expect(text).toContain('Fits on 1 × NVIDIA H100');
    });
  });

  describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
    test.each([375, 1280])('has no barrier that axe finds at %i pixels', (width) =>
      withExplorer(stateOf(TINY, { gpu: 't4' }), async ({ page }) => {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 800 });
        await page.click('.form summary');
        await page.click('.facts summary');
        expect(await violationsOn(page)).toEqual([]);
        const wide = 'document.documentElement.scrollWidth - innerWidth';
        expect(await page.evaluate(wide)).toBeLessThanOrEqual(0);
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.fill('.editor textarea', 'model:\n  num_layers: 0\n');
        await page.waitForSelector('.verdict.bad');
        expect(await violationsOn(page)).toEqual([]);
        expect(await page.evaluate(wide)).toBeLessThanOrEqual(0);
      }),
    );
  });
});
