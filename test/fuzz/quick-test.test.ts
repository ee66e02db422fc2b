import fs from 'node:fs';
import { expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { COMPARES } from './settings.js';

const CASES = fs
  .readdirSync(inPackage('fixtures/hf'))
  .filter((name) => fs.existsSync(inPackage('fixtures/hf', name, 'case.json')));

it.runIf(COMPARES).each(CASES)('quick-test passes for %s', { timeout: 60_000 }, async (name) => {
  const { code, stderr } = await runHere([
    ...['quick-test', `fixtures/hf/${name}`, '--json', '--quiet', '--repeat', '1'],
  ]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
});
