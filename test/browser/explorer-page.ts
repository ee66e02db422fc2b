/** The page of `explore` in a browser, for tests. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { ExploredModel, ExplorerState } from '../../src/explorer/explorer-state.js';
import { filledPage } from '../../src/explorer/filled-page.js';
import { inPackage } from '../fixtures.js';
import { withPage } from './chromium.js';

export const modelFile = (name: string, text: string): ExploredModel => ({ name, text });

/** A small model of all kinds of layers. */
export const TINY = modelFile(
  'tiny.yaml',
  readFileSync(inPackage('configs/hybrid/tiny.yaml'), 'utf8'),
);

/** Names and texts of the presets in the built page. */
export function presetsOfPage(): ExploredModel[] {
  const packed = /id="presets">(.*?)<\/script>/s.exec(builtPage())?.[1] ?? '';
  const json = gunzipSync(Buffer.from(packed, 'base64')).toString();
  const pairs: [string, string][] = JSON.parse(json);
  return pairs.map(([name, text]) => ({ name, text }));
}

export const builtPage = (): string => readFileSync(inPackage('dist/explorer.html'), 'utf8');

export const stateOf = (
  first: ExploredModel,
  setting: ExplorerState['setting'] = {},
  second?: ExploredModel,
): ExplorerState => ({
  models: second ? [first, second] : [first],
  edited: 0,
  setting,
});

export interface Explorer {
  readonly page: Page;
  readonly url: string;
  /** Complaints of the browser, and requests other than that of the page. */
  readonly messages: readonly string[];
}

/** Opens the page with a state, and waits for its first whole answer. */
export async function withExplorer<T>(
  state: ExplorerState,
  use: (explorer: Explorer) => Promise<T>,
): Promise<T> {
  const html = await filledPage(builtPage(), state);
  return withPage({ '/': html }, async ({ page, url, messages }) => {
    await page.setViewportSize({ width: 1280, height: 900 });
    const all = messages as string[];
    page.on('request', (request) => {
      const address = request.url();
      if (address !== url && !address.startsWith('blob:')) all.push(`request of ${address}`);
    });
    await page.goto(url);
    await settled(page);
    return use({ page, url, messages });
  });
}

/** Waits until the page has answered its last change. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector('.verdicts[aria-busy="false"] .verdict');
  await waitUntil(page, `!document.querySelector('.verdict').textContent.includes('…')`);
}

/**
 * Waits until an expression is true. `page.waitForFunction` asks again from within the page, where the policy of the
 * explorer forbids it.
 */
export const waitUntil = (page: Page, expression: string): Promise<void> =>
  expect.poll(() => page.evaluate(expression), { timeout: 30_000 }).toBe(true);

/** Text of the config on the page. */
export const configText = (page: Page): Promise<string> => page.inputValue('.editor textarea');

/** Text of the tile with a name. */
export const tile = (page: Page, name: string): Promise<string> =>
  page.innerText(`.tile:has(dt:text-is("${name}")) strong`);
