// Writes src/model/architecture/preset-data.ts, the presets without comments, from the files of configs. With --check it
// compares only. The build takes them from the files too.
//
// The last lines of a file are comments: `# title: TEXT`, the description in lists, and where the names have another
// order, `# order: NUMBER`, the place among the presets of the family. Presets without a number follow by name.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = 'src/model/architecture/preset-data.ts';

/** Content of `configs` next to the folders of families: hardware, and the published models, all in one file. */
const OTHERS = ['hardware', 'published.yaml'];

/** @param text The file of a preset. @throws Error for a file without a title, or an order that is not a number. */
export function presetOf(file, text) {
  const noteOf = (key) => new RegExp(`^# ${key}: (.*)$`, 'm').exec(text)?.[1].trim();
  const title = noteOf('title');
  if (!title) throw new Error(`${file} has no line "# title: TEXT", which minimind list shows`);
  const order = noteOf('order');
  if (order !== undefined && !/^\d+$/.test(order)) {
    throw new Error(`${file}: expected a number in "# order: NUMBER", found "${order}"`);
  }
  const preset = { name: path.basename(file, '.yaml'), title, document: parse(text) };
  return { order: order === undefined ? Number.POSITIVE_INFINITY : Number(order), preset };
}

/** Presets of a family in the order of lists. */
function presetsIn(folder) {
  const files = readdirSync(path.join(ROOT, folder)).filter((name) => name.endsWith('.yaml'));
  return files
    .sort()
    .map((name) => presetOf(name, readFileSync(path.join(ROOT, folder, name), 'utf8')))
    .sort((one, other) => (one.order === other.order ? 0 : one.order - other.order))
    .map(({ preset }) => preset);
}

/** Source of the module with the presets of all families. */
export function presetModule() {
  const families = readdirSync(path.join(ROOT, 'configs')).filter((name) => !OTHERS.includes(name));
  const lines = families.sort().map((family) => {
    const presets = presetsIn(`configs/${family}`).map((preset) => JSON.stringify(preset));
    return `${JSON.stringify(family)}: [\n${presets.join(',\n')},\n],\n`;
  });
  return `// Written by scripts/presets.js from the files of configs: npm run presets.
import type { Preset } from './family.js';

export const PRESETS: Readonly<Record<string, readonly Preset[]>> = {
${lines.join('')}};
`;
}

/** The published models as JSON, which is read two hundred times faster than YAML. */
export const publishedJson = () =>
  JSON.stringify(parse(readFileSync(path.join(ROOT, 'configs/published.yaml'), 'utf8')));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const written = path.join(ROOT, FILE);
  const text = presetModule();
  if (!process.argv.includes('--check')) writeFileSync(written, text);
  else if (readFileSync(written, 'utf8') !== text) {
    console.error(`${FILE} is not up to date: run npm run presets`);
    process.exitCode = 1;
  }
}
