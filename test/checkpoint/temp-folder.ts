import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Checkpoint, CheckpointOptions } from '../../src/checkpoint/checkpoint.js';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { onFileEnd, onTestEnd } from '../cleanup.js';

let root: string | undefined;

function rootFolder(): string {
  if (root !== undefined) return root;
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  onFileEnd(() => {
    fs.rmSync(made, { recursive: true });
    root = undefined;
  });
  root = made;
  return made;
}

/** Folder with these files, by their relative paths. It is removed after the last test of the calling file. */
export function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = fs.mkdtempSync(path.join(rootFolder(), 'folder-'));
  for (const [name, content] of Object.entries(files)) {
    const target = path.join(folder, name);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, content);
  }
  return folder;
}

/** Path of a file with this content, in a new folder. */
export const fileIn = (name: string, content: string | Uint8Array) =>
  path.join(folderOf({ [name]: content }), name);

/** Safetensors file of U8 tensors with one dimension. */
export function safetensors(
  tensors: Readonly<Record<string, readonly number[]>>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, values]) => {
    const begin = end;
    end += values.length;
    return [name, { dtype: 'U8', shape: [values.length], data_offsets: [begin, end] }] as const;
  });
  const header = Buffer.from(
    JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, Buffer.from(Object.values(tensors).flat())]);
}

/** Opens a checkpoint, and closes it after the test. */
export function opened(target: string, options?: CheckpointOptions): Checkpoint {
  const checkpoint = openCheckpoint(target, options);
  onTestEnd(() => checkpoint.close());
  return checkpoint;
}

/** Error of opening a path, if any. */
export function errorOf(target: string, options?: CheckpointOptions): unknown {
  try {
    opened(target, options);
  } catch (error) {
    return error;
  }
  return undefined;
}

/** Rule that refuses a path, if any. */
export const ruleBrokenBy = (target: string, options?: CheckpointOptions) =>
  ruleOf(errorOf(target, options));
