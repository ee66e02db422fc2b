// Writes the tables of the documentation that follow from the code: families, checks, rules, keys of a config.json. With
// --check it compares only. In a page, a table is between `<!-- table: NAME -->` and `<!-- end of table -->`.
import { readFileSync, writeFileSync } from 'node:fs';
import { register } from 'tsx/esm/api';

register();
const { FAMILIES } = await import('../src/model/architecture/families.ts');
const { RULE_SETS } = await import('../src/checkpoint/checkpoint-rules.ts');
const { CONVERSION_RULES } = await import('../src/convert/conversion/conversion-rules.ts');
const { QUICK_TEST_CHECKS } = await import('../src/check/checks.ts');
const { configKeysPage } = await import('./config-keys.js');

const families = Object.fromEntries(
  await Promise.all(Object.entries(FAMILIES).map(async ([name, load]) => [name, await load()])),
);

const code = (text) => `\`${text}\``;

const table = (heads, rows) =>
  [heads, heads.map(() => '---'), ...rows]
    .map((cells, index) => (index === 1 ? `|${cells.join('|')}|` : `| ${cells.join(' | ')} |`))
    .join('\n');

const ARCHITECTURES = {
  dense: 'Dense',
  mixture: 'Mixture of experts',
  hybrid: 'Hybrid',
  recurrent: 'Recurrent',
};

/** The families of each architecture, with their models. */
const familyTables = () =>
  Object.entries(ARCHITECTURES)
    .map(([architecture, word]) => {
      const rows = Object.entries(families)
        .filter(([, family]) => (family.architecture ?? 'dense') === architecture)
        .map(([name, { title }]) => [code(name), title]);
      return `## ${word}\n\n${table(['type', 'models'], rows)}`;
    })
    .join('\n\n');

const FLAGS = {
  isCrossChecked: '`--cross-check`',
  isReduced: '`--compute f16`',
  isQuantized: '`--weights`',
};

const checkTable = () =>
  table(
    ['check', 'what must hold', 'runs'],
    Object.entries(QUICK_TEST_CHECKS).map(([name, { summary, usualWith }]) => [
      code(name),
      summary,
      usualWith ? `with ${FLAGS[usualWith]}` : 'always',
    ]),
  );

const ruleTable = (rules) =>
  table(
    ['rule', 'what must hold'],
    Object.entries(rules).map(([rule, text]) => [code(rule), text]),
  );

/** By the path of the page: a whole page, or its tables by their names. */
const PAGES = {
  'docs/models.md': { families: familyTables },
  'docs/running.md': { checks: checkTable },
  'docs/checkpoint-formats.md': {
    rules: () =>
      Object.values(RULE_SETS)
        .map(({ title, rules }) => `### ${title}\n\n${ruleTable(rules)}`)
        .join('\n\n'),
  },
  'docs/conversion.md': { rules: () => ruleTable(CONVERSION_RULES) },
  'docs/config-keys.md': () => configKeysPage(families),
};

/** The text of a page with its tables as they are now. */
function current(page, file, tables) {
  let text = page;
  for (const [name, write] of Object.entries(tables)) {
    const [begin, end] = [`<!-- table: ${name} -->`, '<!-- end of table -->'];
    const [before, rest] = text.split(begin);
    if (rest === undefined || !rest.includes(end))
      throw new Error(`${file} has no ${begin} … ${end}`);
    text = `${before}${begin}\n\n${write()}\n\n${rest.slice(rest.indexOf(end))}`;
  }
  return text;
}

for (const [file, tables] of Object.entries(PAGES)) {
  const place = new URL(`../${file}`, import.meta.url);
  const page = readFileSync(place, 'utf8');
  const text = typeof tables === 'function' ? tables() : current(page, file, tables);
  if (text === page) continue;
  if (process.argv.includes('--check')) {
    console.error(`${file} is not up to date: run npm run docs:tables`);
    process.exitCode = 1;
  } else writeFileSync(place, text);
}
