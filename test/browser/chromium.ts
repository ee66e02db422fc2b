/**
 * Pages in headless Chromium, for tests. The browser of the machine is used; nothing is downloaded.
 *
 * @example
 * describe.skipIf(NO_BROWSER)(`a page${NO_BROWSER_NOTE}`, () => {
 *   test('shows a heading', () =>
 *     withPage({ '/': html }, async ({ page, url, messages }) => {
 *       await page.goto(url);
 *       expect(await page.textContent('h1')).toBe('…');
 *       expect(messages).toEqual([]);
 *     }));
 * });
 */
import fs from 'node:fs';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { type Served, serve } from './serve.js';

/** Usual names of the program on Linux, in the order of preference. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Usual places on macOS and Windows. */
const PLACES = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  String.raw`C:\Program Files\Google\Chrome\Application\chrome.exe`,
];

/** Path of the browser: `MINIMIND_CHROMIUM` if it is set, or the first that is installed. */
function chromiumPath(): string | undefined {
  const { MINIMIND_CHROMIUM, PATH = '' } = process.env;
  if (MINIMIND_CHROMIUM) return MINIMIND_CHROMIUM;
  const folders = PATH.split(path.delimiter);
  const inPath = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return [...inPath, ...PLACES].find((file) => fs.existsSync(file));
}

/** Whether tests of pages have to be skipped. */
export const NO_BROWSER = chromiumPath() === undefined;

/** Reason in the title of skipped tests. */
export const NO_BROWSER_NOTE = NO_BROWSER ? ' (skipped: no Chromium found)' : '';

/** Whether all tests of pages run, as in `npm run test:browser`; the usual run of the tests has the quickest of them. */
export const isWhole = process.env.MINIMIND_BROWSER === 'all';

/** Whether tests have to be skipped that take long. */
export const NO_LONG_TESTS = NO_BROWSER || !isWhole;

/** Reason in the title of skipped tests that take long. */
export const NO_LONG_TESTS_NOTE =
  NO_BROWSER_NOTE || (isWhole ? '' : ' (skipped: run npm run test:browser)');

/** Starts the browser. The caller closes it. */
async function launchChromium(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === undefined) {
    throw new Error('no Chromium found: install it, or set MINIMIND_CHROMIUM to its path');
  }
  // The sandbox of Chromium refuses to run as root, as in most containers.
  const isRoot = process.getuid?.() === 0;
  // Containers often have only 64 MB of shared memory.
  const args = [...(isRoot ? ['--no-sandbox'] : []), '--disable-dev-shm-usage'];
  return chromium.launch({ executablePath, args });
}

/** A page in a browser, with a server for it. */
export interface OpenPage {
  readonly page: Page;
  /** Address of the server, with a slash at the end. */
  readonly url: string;
  /** Errors and warnings of the console, uncaught errors, and requests that failed or went elsewhere. */
  readonly messages: readonly string[];
}

/**
 * Serves files on a loopback port and opens a blank page for them. Everything is closed at the end. The page reaches no
 * other host: such requests fail and are listed in `messages`.
 * @param served Content of each path, see `serve`.
 */
export async function withPage<T>(served: Served, use: (open: OpenPage) => Promise<T>): Promise<T> {
  const server = await serve(served);
  try {
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const messages: string[] = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) messages.push(message.text());
      });
      page.on('pageerror', (error) => messages.push(error.message));
      await page.route('**', (route) => {
        const address = route.request().url();
        if (address.startsWith(server.url) || /^(data|blob|file):/.test(address)) {
          return route.continue();
        }
        messages.push(`request to ${address}`);
        return route.abort();
      });
      return await use({ page, url: server.url, messages });
    } catch (error) {
      throw withoutAddress(error, server.url);
    } finally {
      await browser.close();
    }
  } finally {
    await server.close();
  }
}

/**
 * The error without the lines of its stack in the page: vitest takes their address for a path, and when it cannot read a
 * file there, it reports only that.
 */
function withoutAddress(error: unknown, url: string): unknown {
  if (error instanceof Error && error.stack !== undefined) {
    const isFrame = (line: string) => /^\s*at /.test(line) && line.includes(url);
    error.stack = error.stack
      .split('\n')
      .filter((line) => !isFrame(line))
      .join('\n');
  }
  return error;
}
