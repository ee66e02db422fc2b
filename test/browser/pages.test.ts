import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { render } from '../../src/report/render/render.js';
import { commandNames } from '../fixtures.js';
import { EVERY_BLOCK, withTexts } from '../report/pages/any-report.js';
import { runCli } from '../run-cli.js';
import {
  isWhole,
  NO_BROWSER,
  NO_BROWSER_NOTE,
  NO_LONG_TESTS,
  NO_LONG_TESTS_NOTE,
  withPage,
} from './chromium.js';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Files for the commands below, in their order. */
const PREPARED = [
  'export hybrid/tiny --random --save a.onnx',
  'export hybrid/tiny --random --seed 1 --save b.onnx',
  'convert-checkpoint a.onnx tiny',
  'kv-projector init p.safetensors --teacher A:64x2 --student 32',
];

/** A page that is also opened in the usual run of the tests. */
const SHORT: Readonly<Record<string, string>> = {
  compare: 'compare minimind2-small minimind2 minimind2-moe',
};

/** A command line for each command, and for answers with pictures of their own. */
const LINES: Readonly<Record<string, string>> = {
  ...SHORT,
  profile: 'profile minimind2-small --layers',
  fit: 'fit qwen3-8b --gpu h100',
  attention: 'attention minimind2-small',
  sweep:
    'compare minimind2-small --set model.num_hidden_layers=4,8,16 --set model.hidden_size=256,512',
  'compare-srte': 'compare-srte hybrid/original',
  'convert-checkpoint':
    'convert-checkpoint a.onnx pair.safetensors --to low-rank --rank 4 --dry-run',
  data: 'data stories.jsonl',
  diff: 'diff a.onnx b.onnx --values',
  doctor: 'doctor',
  draw: 'draw deepseek-v3',
  'draw against': 'draw hybrid/original --against hybrid/tiny',
  evaluate: 'evaluate hybrid/tiny --random --ids 5,17,3,9,1,30',
  export: 'export hybrid/tiny --random --save c.onnx',
  'fit without hardware': 'fit minimind2',
  'fit a list': 'fit minimind2 --gpu rtx-4090,h100 --context 2048,8192',
  generate: 'generate hybrid/tiny --random --ids 1,2,3 --max-tokens 4 --top-k 8 --explain-sampling',
  init: 'init',
  inspect: 'inspect tiny --stats',
  'kv-projector convert': 'kv-projector convert p.safetensors q.pt',
  'kv-projector init': 'kv-projector init r.safetensors --teacher A:64x2 --student 32',
  'kv-projector params': 'kv-projector params --teacher Qwen2-14B:5120x40 --student 1536',
  'kv-projector verify': 'kv-projector verify --teacher-width 64 --student 32 --steps 5',
  list: 'list',
  modules: 'modules online-softmax --context 7 --tile 3',
  plan: 'plan --max-params 26M --vocab 6400 --gpu h100-80gb',
  'quick-test': 'quick-test hybrid/tiny',
  overfit: 'quick-test hybrid/tiny --overfit',
  rope: 'rope minimind2-small --context 131072',
  'train-plan': 'train-plan minimind2-small --tokens 1B',
  validate: 'validate minimind2-small',
  verify: 'verify tiny --values a.onnx',
};

/**
 * Commands whose answer is a file in a format of its own, that need files of a model that runs, that serve other programs,
 * or whose page is a program (explorer.test.ts).
 */
const WITHOUT_PAGE = ['completion', 'schema', 'kv-projector project', 'mcp', 'explore'];

const lines = isWhole ? LINES : SHORT;

describe.skipIf(NO_BROWSER)(`pages of answers${NO_BROWSER_NOTE}`, () => {
  let folder = '';
  const fileOf = (name: string) => path.join(folder, `${name.replaceAll(' ', '-')}.html`);

  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pages-'));
    const stories = ['once upon a time', 'a story </script>', '\u202eevil'].map((text) =>
      JSON.stringify({ text }),
    );
    fs.writeFileSync(path.join(folder, 'stories.jsonl'), `${stories.join('\n')}\n`);
    if (isWhole)
      for (const line of PREPARED) expect(runCli(line.split(' '), { cwd: folder }).code).toBe(0);
  }, 120_000);

  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  test('are there for every command', () => {
    const named = new Set(Object.values(LINES).map((line) => commandOf(line)));
    expect([...named, ...WITHOUT_PAGE].sort()).toEqual(commandNames().map(inWords).sort());
  });

  test.each(Object.entries(lines))('%s', { timeout: 120_000 }, async (name, line) => {
    const { stderr, code } = runCli([...line.split(' '), '-o', fileOf(name)], { cwd: folder });
    expect([0, 1], stderr).toContain(code);
    await checkPage(fs.readFileSync(fileOf(name), 'utf8'));
  });

  test.skipIf(NO_LONG_TESTS)(
    `with hostile names run nothing${NO_LONG_TESTS_NOTE}`,
    { timeout: 120_000 },
    async () => {
      for (const text of [
        '</script><script>document.title = "run"</script>',
        '"><svg onload=document.title="run">',
        '\u202e'.repeat(9),
        'x'.repeat(10_240),
      ]) {
        const report = withTexts(EVERY_BLOCK, () => text);
        const source = { command: text, version: '1', json: [JSON.stringify({ text })] };
        const html = await render(report, 'html', { width: 80, colourLevel: 0, source });
        await checkPage(html, async (page) => {
          expect(await page.title()).not.toBe('run');
          const json = await page.textContent('#result');
          expect(JSON.parse(json ?? '')).toEqual({ text });
        });
      }
    },
  );

  test('are sorted by a click, and keep their totals', { timeout: 120_000 }, async () => {
    const source = { command: 'x', version: '1', json: ['null'] };
    const html = await render(EVERY_BLOCK, 'html', { width: 80, colourLevel: 0, source });
    await withPage({ '/': html }, async ({ page, url }) => {
      await page.goto(url);
      const table = page.locator('main > .parts table[data-sortable]').first();
      const names = () => table.locator('tr > :first-child').allTextContents();
      const orders: string[][] = [];
      for (let click = 0; click < 3; click++) {
        await table.locator('th button').nth(1).click();
        orders.push((await names()).slice(1));
      }
      expect(orders).toEqual([
        ['second', 'first', 'third', 'total'],
        ['first', 'second', 'third', 'total'],
        ['first', 'second', 'third', 'total'],
      ]);
    });
  });

  test('pictures are XML', { timeout: 120_000 }, async () => {
    const texts = ['</svg><script>', '\ufffe\0\x1b"\'&<>', ']]>', 'x'.repeat(10_240)];
    const pictures = EVERY_BLOCK.pictures?.() ?? [];
    const files = await Promise.all(
      texts.flatMap((text) =>
        pictures.map((picture) =>
          render(
            withTexts({ blocks: [], pictures: () => [picture] }, () => text),
            'svg',
            { width: 80, colourLevel: 0 },
          ),
        ),
      ),
    );
    await withPage({ '/': '<title>x</title>' }, async ({ page, url }) => {
      await page.goto(url);
      const found = await page.evaluate(`${JSON.stringify(files)}.map((file) => {
        const root = new DOMParser().parseFromString(file, 'image/svg+xml').documentElement;
        return [root.nodeName, root.querySelectorAll('parsererror, script, foreignObject').length];
      })`);
      expect(found).toEqual(files.map(() => ['svg', 0]));
    });
  });
});

const inWords = (name: string) => name.replaceAll(/[:/]/g, ' ');

const commandOf = (line: string) => {
  const words = line.split(' ');
  return words.slice(0, words[0] === 'kv-projector' ? 2 : 1).join(' ');
};

/** A page in both schemes, on a phone, a screen and paper; with scripts and without. */
async function checkPage(html: string, more?: (page: Page) => Promise<void>): Promise<void> {
  await withPage({ '/': html }, async ({ page, url, messages }) => {
    await page.goto(url);
    await more?.(page);
    await unfold(page);
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [375, 1280, 1920]) {
        await page.emulateMedia({ colorScheme, media: 'screen' });
        await page.setViewportSize({ width, height: 800 });
        expect(await overflow(page), `${colorScheme}, ${width} px`).toBeLessThanOrEqual(0);
        expect(await longestLine(page), `${colorScheme}, ${width} px`).toBeLessThan(LONGEST_LINE);
      }
      // Once in each scheme: colours depend on it, and structure on neither.
      expect(await violations(page), colorScheme).toEqual([]);
    }
    await page.emulateMedia({ media: 'print' });
    expect((await page.pdf()).length).toBeGreaterThan(1000);
    const text = await page.locator('main').textContent();
    const browser = page.context().browser();
    const still = await browser?.newContext({ javaScriptEnabled: false });
    const without = await still?.newPage();
    await without?.goto(url);
    expect(await without?.locator('main').textContent()).toBe(text);
    expect(await without?.locator('main h1').isVisible()).toBe(true);
    await still?.close();
    expect(messages).toEqual([]);
  });
}

const unfold = (page: Page) =>
  page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true;`);

const overflow = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - innerWidth');

/** Pixels of a line of about 130 characters, beyond which the eye misses the next one. */
const LONGEST_LINE = 1000;

/** Width of the widest text, in pixels. */
const longestLine = (page: Page): Promise<number> =>
  page.evaluate(
    `Math.max(...[...document.querySelectorAll('p, dd, pre, td')].map((each) => each.clientWidth))`,
  );

/** Violations that axe-core finds: the rule, and the first element. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations: found } = (await page.evaluate('axe.run(document)')) as AxeResults;
  return found.map(
    ({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`,
  );
}
