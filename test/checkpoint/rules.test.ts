import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RULES } from '../../src/checkpoint/checkpoint-rules.js';
import { CONVERSION_RULES } from '../../src/convert/conversion/conversion-rules.js';
import { inPackage } from '../fixtures.js';

/** Texts of the TypeScript files of a folder, by their path in the folder. */
const textsIn = (folder: string): [name: string, text: string][] =>
  fs
    .readdirSync(inPackage(folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => [name, fs.readFileSync(inPackage(folder, name), 'utf8')]);

/**
 * Rules that tests attack: of a row `['rule', 'what', …]` of a table that runs, of a function by its rule, or of an error
 * that must have the rule.
 */
const attackedIn = (text: string): ReadonlySet<string> =>
  new Set(
    [
      ...text.matchAll(
        /\[\s*'([a-z\d-]+)',\s|'([a-z\d-]+)': \(\) =>|\b(?:rule: |to(?:Be|Equal)\()'([a-z\d-]+)'/g,
      ),
    ].flatMap(([, ...named]) => named.filter((rule) => rule !== undefined)),
  );

const allRules = Object.keys({ ...RULES, ...CONVERSION_RULES }).sort();

/** Rules of every table in a source: `const X_RULES = { 'rule': 'text', … }`. */
const rulesIn = (source: string): string[] =>
  [...source.matchAll(/^(?:export )?const \w+_RULES\b[^={]*= \{\n([\s\S]*?)^\}/gm)].flatMap(
    ([, table = '']) => [...table.matchAll(/^ {2}'([\w-]+)':/gm)].map(([, rule = '']) => rule),
  );

describe('every rule', () => {
  it('is in the list of all rules, whatever its table', () => {
    expect(
      textsIn('src')
        .flatMap(([, text]) => rulesIn(text))
        .sort(),
    ).toEqual(allRules);
  });

  it('is attacked by a test', () => {
    const tests = textsIn('test').filter(([name]) => name.endsWith('.test.ts'));
    const attacked = attackedIn(tests.map(([, text]) => text).join('\n'));
    expect(allRules.filter((rule) => !attacked.has(rule))).toEqual([]);
  });

  it('of a new table is found, and missed while no test attacks it', () => {
    const table =
      "export const NEW_RULES = {\n  'new-a': 'A.',\n  'new-b':\n    'B.',\n} as const;\n";
    expect(rulesIn(table)).toEqual(['new-a', 'new-b']);
    const rows = "// 'new-a' is not tested.\n    ['new-b', 'no b', () => bytes],";
    expect([...attackedIn(rows)]).toEqual(['new-b']);
  });
});

it.each([
  ['src/checkpoint', RULES],
  ['src/convert/conversion', CONVERSION_RULES],
])('in %s each rule is checked in one place', (folder, rules) => {
  const sources = textsIn(folder)
    .filter(([name]) => !name.endsWith('rules.ts'))
    .map(([, text]) => text)
    .join('\n');
  const places = Object.keys(rules).map((rule) => [rule, sources.split(`'${rule}'`).length - 1]);
  expect(places.filter(([, count]) => count !== 1)).toEqual([]);
});
