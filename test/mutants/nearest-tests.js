/** Test files by their distance from a source file along imports. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Tests of the built program in a process of its own, which does not contain the mutant, and long ones. */
const LEFT_OUT =
  /^test\/(adding-a|boundaries|claims|commands\/(?:convert-|hub|process)|convert\/conversion\/every|fuzz\/|kill\/|man-pages|package|readme|recipes|scale\/conversion-parts\/|terminal-picture|walk)/;

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s(?!type\b)[^'"]*?from\s*'(\.[^']+)'|(?<!typeof )\bimport\(\s*'(\.[^']+)'/g;

/**
 * The files that import each file.
 * @param root Folder of the package.
 */
export function readImporters(root) {
  const importers = new Map();
  const files = ['src', 'test'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name.replaceAll(path.sep, '/')}`),
  );
  for (const file of files) {
    for (const [, fixed, loaded] of readFileSync(path.join(root, file), 'utf8').matchAll(IMPORT)) {
      const target = path.posix.join(path.posix.dirname(file), fixed ?? loaded);
      const name = target.replace(/\.js$/, '.ts');
      importers.set(name, [...(importers.get(name) ?? []), file]);
    }
  }
  for (const file of files) {
    const command = /^src\/commands\/(.+)\.ts$/.exec(file)?.[1].replace('/', '-');
    if (command === undefined) continue;
    const own = files.filter((name) => isTestOf(name, command));
    importers.set(file, [...(importers.get(file) ?? []), ...own]);
  }
  return importers;
}

/** Whether a file tests a command by its name: `fit.test.ts` and `fit-axes.test.ts` do for `fit`. */
const isTestOf = (name, command) =>
  name.startsWith(`test/commands/${command}`) && /^[.-]/.test(name.slice(14 + command.length));

/**
 * Tests that import a file, directly or not: the nearest first, and first those in the folder that mirrors its own, then
 * in the one above it. Families are loaded on demand, so that many imports lie between them and their tests.
 */
export function nearestTests(file, importers) {
  const mirror = path.posix.dirname(file).replace(/^src/, 'test');
  const distances = new Map([[file, 0]]);
  for (const [name, distance] of distances) {
    for (const importer of importers.get(name) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1);
    }
  }
  const above = path.posix.dirname(mirror);
  const rank = (name) => {
    if (name.startsWith(`${mirror}/`)) return 0;
    return name.startsWith(`${above}/`) && above.includes('/') ? 0.5 : distances.get(name);
  };
  return [...distances.keys()]
    .filter((name) => name.endsWith('.test.ts') && !LEFT_OUT.test(name))
    .sort((a, b) => rank(a) - rank(b));
}
