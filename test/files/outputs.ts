/** Outputs that are built through a staging folder, and what is on the disk of them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { Staging, StagingOptions } from '../../src/files/staging.js';

export type Texts = Readonly<Record<string, string>>;

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

/** A path in the folder of the test that runs. */
export const inFolder = (...names: string[]) => path.join(folder, ...names);

/** Where `out` is built. */
export const STAGING = '.out.minimind';

/** A folder `out` as it shall be. */
export const MODEL: Texts = { 'config.yaml': 'new config', 'model.safetensors': 'new weights' };
/** A file `out` with its companion. */
export const MODEL_FILE: Texts = { 'config.yaml': 'new config', out: 'new weights' };
/** What was in a folder `out` before. */
export const OLD: Texts = {
  'model.safetensors': 'old weights',
  'model.safetensors.index.json': '{}',
};

/** All files in the folder, or in a part of it, by their relative paths; links by where they lead. */
export function textsIn(...names: string[]): Texts {
  const root = inFolder(...names);
  const files = fs.readdirSync(root, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    files
      .filter((file) => !file.isDirectory())
      .map((file) => path.join(file.parentPath, file.name))
      .map((file) => [path.relative(root, file), textOf(file)])
      .sort(),
  );
}

const textOf = (file: string) =>
  fs.lstatSync(file).isSymbolicLink()
    ? `-> ${fs.readlinkSync(file)}`
    : fs.readFileSync(file, 'utf8');

export function putTexts(texts: Texts, ...names: string[]): void {
  for (const [name, text] of Object.entries(texts)) {
    const file = inFolder(...names, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  }
}

export const options = (changed: Partial<StagingOptions> = {}): StagingOptions => ({
  kind: 'folder',
  force: false,
  resume: false,
  identity: 'a',
  ...changed,
});

/** Writes the files that are not finished yet, and returns their names. */
export async function writeAll(staging: Staging, texts: Texts): Promise<string[]> {
  const written: string[] = [];
  for (const [name, text] of Object.entries(texts)) {
    if (staging.isFinished(name)) continue;
    await staging.write(name, (sink) => sink.write(Buffer.from(text)));
    written.push(name);
  }
  return written;
}
