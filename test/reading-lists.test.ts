/** Checks the reading lists of docs/architecture.md: each file exists and can be reached from the command. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

const page = fs.readFileSync(inPackage('docs/architecture.md'), 'utf8');
const [, after = ''] = page.split('\n## Following a command\n');
const [lists = ''] = after.split('\n## ');

/** Files of a command's list, relative to src. */
const listed = new Map(
  lists
    .split('\n### ')
    .slice(1)
    .map((section) => {
      const [heading = ''] = section.split('\n');
      const files = [...section.matchAll(/`([\w/-]+\.ts)`/g)].map(([, file]) => file ?? '');
      return [heading.replaceAll('`', ''), files] as const;
    }),
);

/** Files that a file imports, including types and lazy imports. */
function importsOf(file: string): string[] {
  const text = fs.readFileSync(inPackage('src', file), 'utf8');
  return [...text.matchAll(/'(\.{1,2}\/[^']+)\.js'/g)]
    .map(([, name]) => path.posix.join(path.posix.dirname(file), `${name}.ts`))
    .filter((name) => fs.existsSync(inPackage('src', name)));
}

function reachedFrom(entry: string): Set<string> {
  const reached = new Set([entry]);
  for (const file of reached) for (const next of importsOf(file)) reached.add(next);
  return reached;
}

it('each main command has a reading list', () => {
  expect([...listed.keys()]).toEqual(
    expect.arrayContaining(['convert-checkpoint', 'profile', 'fit', 'quick-test']),
  );
});

describe.each([...listed])('the list of %s', (command, files) => {
  it('has only existing files that the command reaches', () => {
    const reached = reachedFrom(`commands/${command}.ts`);
    expect(files.filter((file) => !reached.has(file))).toEqual([]);
  });

  it('begins with the command and has at most 40 files', () => {
    expect(files).toContain(`commands/${command}.ts`);
    expect(files.length).toBeLessThanOrEqual(40);
  });
});
