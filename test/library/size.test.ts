/** Size of the code that a page loads which bundles the library for browsers. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inPackage } from '../fixtures.js';

const LIBRARY = inPackage('dist/browser/browser.js');
const work = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
afterAll(() => fs.rmSync(work, { recursive: true }));

/** Prints the URL of each module that is loaded. */
const HOOKS = `
  import fs from 'node:fs';
  export async function load(url, context, next) {
    if (url.startsWith('file:')) fs.writeSync(1, url + '\\n');
    return next(url, context);
  }`;
const [hooks, register] = ['hooks.mjs', 'register.mjs'].map((name) => path.join(work, name)) as [
  string,
  string,
];

beforeAll(() => {
  fs.writeFileSync(hooks, HOOKS);
  fs.writeFileSync(
    register,
    "import { register } from 'node:module';\nregister('./hooks.mjs', import.meta.url);",
  );
});

/** Bundles some exports for browsers, and returns the folder. @param splitting Whether later loads have files of their own. */
async function bundled(names: string, splitting: boolean): Promise<string> {
  const folder = fs.mkdtempSync(path.join(work, 'page-'));
  await build({
    stdin: {
      contents: `export ${names} from ${JSON.stringify(LIBRARY)};`,
      resolveDir: folder,
    },
    absWorkingDir: folder,
    outdir: folder,
    entryNames: 'page',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    logLevel: 'error',
    splitting,
    minify: true,
    platform: 'browser',
    format: 'esm',
    legalComments: 'none',
  });
  return folder;
}

/** Gzipped bytes of the files of a bundle that a program loads. @param code Uses the library as `minimind`. */
function loadedBytes(folder: string, code = ''): number {
  const program = path.join(work, 'program.mjs');
  const page = `./${path.basename(folder)}/page.mjs`;
  fs.writeFileSync(program, `import * as minimind from '${page}';\n${code}`);
  const urls = execFileSync(process.execPath, ['--import', register, program], {
    encoding: 'utf8',
  });
  const files = urls
    .trim()
    .split('\n')
    .map((url) => fileURLToPath(url));
  return files
    .filter((file) => file.startsWith(folder))
    .reduce((sum, file) => sum + gzipSync(fs.readFileSync(file), { level: 9 }).length, 0);
}

describe('minimind/browser, bundled, minified and gzipped', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await bundled('*', true);
  });

  test('first loads at most 170 kB: all exports, without what their first call loads', () => {
    const bytes = loadedBytes(folder);
    expect(bytes).toBeLessThan(170e3);
    expect(bytes).toBeGreaterThan(50e3);
  });

  test('loads at most 250 kB in all for a page that describes, profiles and fits a config', () => {
    const text = fs.readFileSync(inPackage('configs/hybrid/tiny.yaml'), 'utf8');
    const code = `
      const model = await minimind.describeModel(${JSON.stringify(text)});
      minimind.profile(model);
      minimind.fit(model, { gpu: 'h100-80gb' });`;
    const bytes = loadedBytes(folder, code);
    expect(bytes).toBeLessThan(250e3);
    expect(bytes).toBeGreaterThan(loadedBytes(folder));
  });
});

describe('one function of minimind/browser, bundled into one file, minified and gzipped', () => {
  test.each([
    ['countParameters', 3e3],
    ['profile', 55e3],
    ['fit', 115e3],
  ])('%s has at most %d bytes', async (name, most) => {
    const folder = await bundled(`{ ${name} }`, false);
    expect(fs.readdirSync(folder)).toEqual(['page.mjs']);
    const bytes = loadedBytes(folder);
    expect(bytes).toBeLessThan(most);
    expect(bytes).toBeGreaterThan(100);
  });
});
