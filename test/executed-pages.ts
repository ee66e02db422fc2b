/** Pages of the docs with steps that tests run in a copy of the source. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { inPackage } from './fixtures.js';

/** Copy of the source that can be changed and run. The caller removes it. */
export function copyOfSource(...more: readonly string[]): string {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-page-'));
  for (const part of ['src', 'bin', 'package.json', 'tsconfig.json', ...more]) {
    const filter = (from: string) => !from.includes(path.join('docs', 'site'));
    fs.cpSync(inPackage(part), path.join(copy, part), { recursive: true, filter });
  }
  fs.symlinkSync(inPackage('node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

/** Inputs of the tables of the documentation, in addition to the source. */
export const DOCUMENTATION = [
  ...['docs', 'scripts', 'README.md', 'README.zh-CN.md', 'fixtures/config-keys.json'],
];

/** Writes the tables of the documentation of a copy from its code. */
export function writeTables(copy: string): void {
  execFileSync(process.execPath, [path.join(copy, 'scripts/doc-tables.js')]);
}

/** Section of a page below a heading, to the next one of its level. */
export function sectionOf(page: string, heading: string): string {
  const section = `\n${page}`.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0];
  if (section === undefined) throw new Error(`the page has no section ${heading}`);
  return section;
}

/** Writes the presets of a copy from its files. */
export function writePresets(copy: string): void {
  execFileSync(process.execPath, [path.join(copy, 'scripts/presets.js')]);
}

/** Errors of the compiler in these files of a copy. */
export function typeErrorsIn(copy: string, include: readonly string[]): string {
  const settings = path.join(copy, 'tsconfig.copy.json');
  fs.writeFileSync(settings, JSON.stringify({ extends: './tsconfig.json', include }));
  const compiler = inPackage('node_modules/typescript-7/bin/tsc');
  return spawnSync(process.execPath, [compiler, '-p', settings], { encoding: 'utf8' }).stdout;
}

/** Writes what a copy that is built knows of the flags of its commands. */
export function writeManifest(copy: string): void {
  execFileSync(process.execPath, [path.join(copy, 'scripts/manifest.js')]);
}

/** Builds the command line of a copy, with the commands of this package and their flags. */
export async function buildCopy(copy: string): Promise<void> {
  fs.cpSync(inPackage('oclif.manifest.json'), path.join(copy, 'oclif.manifest.json'));
  await build({
    absWorkingDir: copy,
    entryPoints: [
      ...[
        'src/base/files/cache-folder.ts',
        'src/cli/main.ts',
        'src/language/tokenizer/template-process.ts',
      ],
      'src/commands/**/*.ts',
    ],
    outbase: 'src',
    outdir: 'dist',
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
  });
}

/** Runs the command line of a copy, built or from its sources. */
export function runIn(
  copy: string,
  args: readonly string[],
  launcher: 'bin/run.js' | 'bin/dev.js' = 'bin/run.js',
) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(copy, launcher), ...args],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

export const readPage = (name: string): string => fs.readFileSync(inPackage(name), 'utf8');

/**
 * Applies every change of a page to a copy: a line with a file's name and a colon, then blocks. `ts` and `yaml` are new
 * files, `diff` is a change of an existing one.
 * @returns New and changed files.
 */
export function applySteps(page: string, copy: string): Set<string> {
  const touched = new Set<string>();
  let file: string | undefined;
  for (const [, named, language, code = ''] of page.matchAll(
    /^`([\w./-]+)`:$|^```(\w+)\n([\s\S]*?)^```$/gm,
  )) {
    if (named !== undefined) file = named;
    if (file === undefined || !['ts', 'yaml', 'diff'].includes(language ?? '')) continue;
    touched.add(file);
    const target = path.join(copy, file);
    if (language !== 'diff') {
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.writeFileSync(target, code, { flag: 'wx' });
    } else fs.writeFileSync(target, changed(fs.readFileSync(target, 'utf8'), code, file));
  }
  return touched;
}

/** Text with one change. The lines without `+` must occur in it exactly once. */
function changed(text: string, diff: string, file: string): string {
  const lines = diff.trimEnd().split('\n');
  const withSigns = (signs: string) =>
    lines.flatMap((line) => (line === '' || signs.includes(line[0] ?? '') ? [line.slice(1)] : []));
  const before = `\n${withSigns(' -').join('\n')}\n`;
  const [head = '', ...rest] = `\n${text}`.split(before);
  if (rest.length !== 1) throw new Error(`${file} has these lines ${rest.length} times:${before}`);
  return `${head}\n${withSigns(' +').join('\n')}\n${rest[0]}`.slice(1);
}
