/** Outputs that are built in a staging folder, and their texts on the disk. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { Staging, StagingOptions } from '../../../src/base/files/staging.js';

export type Texts = Readonly<Record<string, string>>;

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

/** A path in the folder of the current test. */
export const inFolder = (...names: string[]) => path.join(folder, ...names);

/** Where `out` is built. */
export const STAGING = '.out.minimind';

/** Expected content of a folder `out`. */
export const MODEL: Texts = { 'config.yaml': 'new config', 'model.safetensors': 'new weights' };
/** A file `out` with its companion. */
export const MODEL_FILE: Texts = { 'config.yaml': 'new config', out: 'new weights' };
/** Earlier content of a folder `out`. */
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
