import fs from 'node:fs';
import { expect, it } from 'vitest';
import { RULES } from '../../src/checkpoint/checkpoint-rules.js';
import { CONVERSION_RULES } from '../../src/conversion/conversion-rules.js';
import { inPackage } from '../fixtures.js';

it.each([
  ['docs/checkpoint-formats.md', RULES],
  ['docs/conversion.md', CONVERSION_RULES],
])('%s lists every rule with its text', (file, rules) => {
  const page = fs.readFileSync(inPackage(file), 'utf8');
  const [, listed = ''] = page.split('\n## Rules\n');
  const rows = [...listed.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].map(([, rule, text]) => [
    rule,
    text,
  ]);
  expect(rows).toEqual(Object.entries(rules));
});

it.each([
  [['src/checkpoint'], RULES],
  [['src/conversion'], CONVERSION_RULES],
])('in %j each rule is checked in one place', (folders, rules) => {
  const sources = folders
    .flatMap((folder) =>
      fs
        .readdirSync(inPackage(folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && !name.endsWith('rules.ts'))
        .map((name) => fs.readFileSync(inPackage(folder, name), 'utf8')),
    )
    .join('\n');
  const places = Object.keys(rules).map((rule) => [rule, sources.split(`'${rule}'`).length - 1]);
  expect(places.filter(([, count]) => count !== 1)).toEqual([]);
});
