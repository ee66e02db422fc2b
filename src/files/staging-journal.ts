/** What an unfinished output says of itself to the next run. */
import fs from 'node:fs';
import path from 'node:path';
import { syncFolder } from './names.js';
import type { OutputKind } from './output-place.js';

export interface Journal {
  readonly kind: OutputKind;
  /** What the result depends on. */
  readonly identity: string;
  /** The names of all files, the main one last, once they are all written; moving them may have begun. */
  readonly complete?: readonly string[];
}

/** Changes with what it means. A journal of another version is none. */
const VERSION = 1;

/** Undefined when there is none that makes sense. */
export function readJournal(file: string): Journal | undefined {
  try {
    const { version, kind, identity, complete } = JSON.parse(fs.readFileSync(file, 'utf8'));
    if (version !== VERSION || typeof identity !== 'string') return undefined;
    if (kind !== 'file' && kind !== 'folder') return undefined;
    if (complete === undefined) return { kind, identity };
    return isNameList(complete) ? { kind, identity, complete } : undefined;
  } catch {
    return undefined;
  }
}

/** It is on the disk, and whole, before this returns. */
export function writeJournal(file: string, journal: Journal): void {
  const temporary = `${file}.new`;
  const descriptor = fs.openSync(temporary, 'w');
  try {
    fs.writeSync(descriptor, JSON.stringify({ version: VERSION, ...journal }));
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
  fs.renameSync(temporary, file);
  syncFolder(path.dirname(file));
}

const isNameList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isPlainName);

/** Whether it names something in a folder, and nothing above or below. */
export const isPlainName = (name: unknown) =>
  typeof name === 'string' &&
  name !== '' &&
  name !== '.' &&
  name !== '..' &&
  !name.includes('/') &&
  path.basename(name) === name;
