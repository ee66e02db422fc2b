import fs from 'node:fs';
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { isWhole, NO_BROWSER, NO_BROWSER_NOTE, withPage } from './chromium.js';

/** All ready configs in files. */
const FILES = fs
  .readdirSync(inPackage('configs'), { recursive: true, encoding: 'utf8' })
  .map((name) => `configs/${name}`)
  .filter((name) => /^configs\/(?!hardware\/).*\/.*\.yaml$/.test(name))
  .sort();

/** Further texts: the same configs with one more layer each way. */
const CASES = [
  ...FILES.map((file) => ({ file, set: {} })),
  ...FILES.map((file) => ({ file, set: { 'model.vocab_size': 12_800 } })),
].slice(0, isWhole ? 50 : 6);

const PAGE = `<script type="module">
  import * as minimind from '/dist/browser.js';
  import { toJson } from '/to-json.js';
  globalThis.answerFor = async ({ file, set, text }) => {
    const model = await minimind.describeModel(text, { file, set });
    return [minimind.profile(model, { context: 128 }), minimind.fit(model, { gpu: 'h100-80gb', context: 128 })].map(toJson);
  };
  globalThis.isReady = true;
</script>`;

/** The module that writes the JSON of the commands, for the page. */
async function jsonModule(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [inPackage('src/base/text/escape.ts')],
    bundle: true,
    format: 'esm',
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}

const commandJson = async (...args: string[]) =>
  (await runHere([...args, '--json', '--quiet'])).stdout;

describe.skipIf(NO_BROWSER)(`minimind/browser${NO_BROWSER_NOTE}`, () => {
  test(
    `gives the numbers of the command line for ${CASES.length} configs`,
    {
      timeout: 600_000,
    },
    async () =>
      withPage(
        {
          '/': PAGE,
          '/to-json.js': await jsonModule(),
          '/dist/': { folder: inPackage('dist/browser') },
        },
        async ({ page, url, messages }) => {
          await page.goto(url);
          await page.waitForFunction('globalThis.isReady');
          for (const { file, set } of CASES) {
            const text = fs.readFileSync(inPackage(file), 'utf8');
            const words = Object.entries(set).flatMap(([key, value]) => [
              '--set',
              `${key}=${value}`,
            ]);
            const [profile, fit] = (await page.evaluate(
              `globalThis.answerFor(${JSON.stringify({ file, set, text })})`,
            )) as [string, string];
            const common = [file, ...words, '--context', '128'];
            expect(profile, file).toBe(await commandJson('profile', ...common));
            const onGpu = await commandJson('fit', ...common, '--gpu', 'h100-80gb');
            expect(fit, file).toBe(onGpu);
          }
          expect(messages).toEqual([]);
        },
      ),
  );
});
