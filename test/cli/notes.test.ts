import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { userFolder } from './user-folder.js';

it('writes notes about choices after the answer', () => {
  const words = ['fit', 'hybrid/tiny', '--gpu', 'h100', '--for', 'serving'];
  // Both streams in one file, in the order in which they are written.
  const file = path.join(userFolder(), 'both.txt');
  const both = fs.openSync(file, 'w');
  execFileSync(process.execPath, [inPackage('bin/run.js'), ...words], {
    stdio: ['ignore', both, both],
  });
  const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(lines[0]).toMatch(/^Fits on 1 × /);
  expect(lines.at(-1)).toMatch(/^--gpu h100: using h100-80gb/);
});

it('writes a card in Markdown without the next step, which stdout has', async () => {
  const cwd = userFolder();
  const words = ['profile', 'my.yaml', '--format', 'markdown'];
  expect((await runHere(words, { cwd })).stdout).toMatch(/^Next: `minimind /m);
  await runHere([...words, '-o', 'card.md'], { cwd });
  const card = fs.readFileSync(path.join(cwd, 'card.md'), 'utf8');
  expect(card).toMatch(/^## my · hybrid · 275K parameters/);
  expect(card).not.toContain('Next:');
});
