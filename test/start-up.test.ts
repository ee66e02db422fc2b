import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const dist = fileURLToPath(new URL('../dist', import.meta.url));

/** All files that a file of the bundle imports before it runs, itself included, with their texts. */
function loadedBy(entry: string): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const read = (file: string) => {
    if (texts.has(file)) return;
    const text = readFileSync(file, 'utf8');
    texts.set(file, text);
    for (const [, from = ''] of text.matchAll(/^(?:import|\}) ?(?:[^"']* from )?"(\.[^"]+)";$/gm)) {
      read(path.join(path.dirname(file), from));
    }
  };
  read(path.join(dist, entry));
  return texts;
}

const kilobytes = (texts: ReadonlyMap<string, string>): number =>
  [...texts.values()].reduce((sum, { length }) => sum + length, 0) / 1000;

/** Sources of packages in the bundle, as esbuild names them in comments. */
const sourcesIn = (texts: ReadonlyMap<string, string>): string[] =>
  [...texts.values()].flatMap((text) =>
    [...text.matchAll(/^\/\/ (?:\.\.\/)*(node_modules\/\S+)$/gm)].map(([, name = '']) => name),
  );

const commands = readdirSync(path.join(dist, 'commands'), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith('.js'));

describe('code that a command loads', () => {
  /** kB, about a tenth more than when they were set: a start takes 30 to 50 µs for each kB. */
  const BOUNDS = {
    'cli/main.js': 340,
    'commands/profile.js': 1200,
    'commands/compare.js': 1390,
    'commands/fit.js': 1770,
  };

  it.each(Object.entries(BOUNDS))('%s: at most %i kB', (entry, bound) => {
    const loaded = loadedBy(entry);
    expect(loaded.size).toBeGreaterThan(10);
    expect(kilobytes(loaded)).toBeLessThanOrEqual(bound);
  });

  it('has one language of the messages of schemas', () => {
    const all = commands.flatMap((file) => sourcesIn(loadedBy(path.join('commands', file))));
    const locales = all.filter((name) => name.startsWith('node_modules/zod/v4/locales/'));
    expect([...new Set(locales)]).toEqual(['node_modules/zod/v4/locales/en.js']);
  });

  it('has nothing of the command library that is never called', () => {
    const sources = sourcesIn(loadedBy('commands/profile.js'));
    expect(sources).toContain('node_modules/@oclif/core/lib/command.js');
    const unused =
      /node_modules\/(?:ejs|cli-spinners|debug|color-convert|@oclif\/core\/lib\/help\/index)/;
    expect(sources.filter((name) => unused.test(name))).toEqual([]);
  });
});
