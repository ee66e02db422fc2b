import fs from 'node:fs';
import { expect, it } from 'vitest';
import { RULES } from '../../src/checkpoint/rules.js';
import { inPackage } from '../fixtures.js';

it('docs/checkpoint-formats.md lists every rule with its sentence', () => {
  const page = fs.readFileSync(inPackage('docs/checkpoint-formats.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].map(([, rule, text]) => [
    rule,
    text,
  ]);
  expect(rows).toEqual(Object.entries(RULES));
});

it('each rule is checked in one place', () => {
  const sources = fs
    .readdirSync(inPackage('src/checkpoint'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('rules.ts'))
    .map((name) => fs.readFileSync(inPackage('src/checkpoint', name), 'utf8'))
    .join('\n');
  const places = Object.keys(RULES).map((rule) => [rule, sources.split(`'${rule}'`).length - 1]);
  expect(places.filter(([, count]) => count !== 1)).toEqual([]);
});
