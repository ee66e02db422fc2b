// The page of `minimind explore` in Chromium: its size, its first paint, and edits of Llama 3.1 405B, each until the text,
// the controls and the counts of the page follow, and until the answer of `fit` does.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { figure, median } from './measure.js';

export const title = 'explorer: a page with Llama 3.1 405B in Chromium';

const EDITS = 60;

/** Sliders of the edits, in turn. */
const SLIDERS = ['Depth', 'Width', 'Feed-forward width', 'KV heads', 'Vocabulary'];

export async function run() {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  const file = path.join(folder, 'page.html');
  const program = fileURLToPath(new URL('../bin/run.js', import.meta.url));
  const words = ['explore', 'llama/llama-3.1-405b', '--gpu', 'dgx-h100', '--save', file];
  execFileSync(process.execPath, [program, ...words], { stdio: 'ignore' });
  const browser = await chromium.launch({
    executablePath: process.env.MINIMIND_CHROMIUM ?? '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
  try {
    const page = await browser.newPage();
    const loads = [];
    for (let round = 0; round < 5; round++) {
      await page.goto('about:blank');
      await page.goto(pathToFileURL(file).href);
      await page.waitForSelector('.verdicts[aria-busy="false"]');
      loads.push(await page.evaluate(firstPaint));
    }
    const edits = [];
    for (let index = 0; index < EDITS; index++) {
      edits.push(await page.evaluate(timedEdit, [SLIDERS[index % SLIDERS.length], index]));
    }
    const times = {
      firstPaint: loads,
      editOnThePage: edits.map(({ page: time }) => time),
      editUntilFit: edits.map(({ fit }) => fit),
    };
    const row = (name, what, aim) =>
      figure({ name: `${name}, median`, value: median(times[what]), unit: 'ms', aim });
    return {
      milliseconds: Object.fromEntries(
        Object.entries(times).map(([name, all]) => [name, extremes(all)]),
      ),
      results: [
        figure({ name: 'size of the page', value: statSync(file).size / 1e6, unit: 'MB', aim: 1 }),
        row('first paint', 'firstPaint', 1000),
        row('an edit, until counts follow', 'editOnThePage', 100),
        row('an edit, until fit follows', 'editUntilFit'),
      ],
    };
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const extremes = (times) => ({
  minimum: Math.round(Math.min(...times)),
  maximum: Math.round(Math.max(...times)),
});

/** Runs in the page. */
function firstPaint() {
  return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN;
}

/** Runs in the page: moves a slider and waits for what follows. @returns milliseconds. */
async function timedEdit([label, index]) {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const find = (selector) => document.querySelector(selector);
  const labels = [...document.querySelectorAll('.slider label')];
  const input = document.getElementById(
    labels.find(({ textContent }) => textContent === label).htmlFor,
  );
  const text = find('.editor textarea').value;
  const start = performance.now();
  input.value = String((Number(input.value) + (index % 2 ? -1 : 1)) % Number(input.max));
  input.dispatchEvent(new Event('input', { bubbles: true }));
  while (find('.editor textarea').value === text || find('.tiles')?.ariaBusy !== 'false')
    await frame();
  const page = performance.now() - start;
  while (find('.verdicts').ariaBusy !== 'false') await frame();
  return { page, fit: performance.now() - start };
}
