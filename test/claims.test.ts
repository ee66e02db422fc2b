import fs from 'node:fs';
import { expect, it } from 'vitest';
import { inPackage } from './fixtures.js';
import { runHere } from './run-here.js';

it('docs/claims.md has the current answers of the commands', { timeout: 60_000 }, async () => {
  const { claimsPage, PAGE } = await import(inPackage('scripts/claims.js'));
  const page: string = await claimsPage(async (args: readonly string[]) => {
    const { code, stdout, stderr } = await runHere(args);
    expect({ code, stderr, args }).toMatchObject({ code: 0 });
    return JSON.parse(stdout);
  });
  // npm run docs:claims writes the page.
  expect(fs.readFileSync(PAGE, 'utf8')).toBe(page);
  expect(page.match(/^\| (?!claim|---)/gm)?.length).toBeGreaterThanOrEqual(45);
});
