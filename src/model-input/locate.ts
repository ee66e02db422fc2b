/** Finds configs and checkpoints by path or name. */
import fs from 'node:fs';
import {
  FILE_FORMATS,
  hasWeightsExtension,
  isDistributedFolder,
  isIndexName,
  isOnnxName,
  isWeightsName,
} from '../checkpoint/formats.js';
import { configIn } from '../files/config-names.js';
import { fileNamesIn, mountedPath, pathKind } from '../files/mounted.js';
import { presetPath } from './presets.js';

const INDEX_NAME = /\.index\.json$/i;
const CONFIG_NAME = /\.(?:ya?ml|json)$/i;

const MAGIC: readonly string[] = Object.values(FILE_FORMATS).flatMap(({ magic }) => [...magic]);

/** Whether a file begins like a checkpoint, which text never does. */
function beginsLikeCheckpoint(head: Buffer): boolean {
  // Safetensors: the length of the header is far below 2^40, and its first character follows.
  if (head.readUIntBE(5, 3) === 0 && head[8] === '{'.charCodeAt(0)) return true;
  // A pickle, including protocols that the reader refuses.
  if (head[0] === 0x80) return true;
  const text = head.toString('latin1');
  return MAGIC.some((magic) => text.startsWith(magic));
}

const HEAD_BYTES = 9;

/** Whether `path` is a checkpoint: a folder with weights, or a file with the name or beginning of one. */
export function isCheckpointPath(path: string): boolean {
  if (path === '-') return false;
  try {
    const kind = pathKind(path);
    if (kind === 'folder') return hasWeights(path) || configIn(path) === undefined;
    if (hasWeightsExtension(path) || isOnnxName(path) || INDEX_NAME.test(path)) return true;
    if (mountedPath(path)) return false;
    // Never reads from a pipe, whose data could not be read again.
    return !CONFIG_NAME.test(path) && kind === 'file' && beginsAsCheckpoint(path);
  } catch {
    // The error appears when the file is read.
    return false;
  }
}

/** @throws when the folder does not exist. */
export function hasWeights(folder: string): boolean {
  const names = fileNamesIn(folder);
  return (
    names.some((name) => isIndexName(name) || isWeightsName(name)) || isDistributedFolder(names)
  );
}

/**
 * Path of a config: in a folder with a config, that file; for the name of a preset without a file of that name, the
 * preset's file.
 */
export function configPath(source: string): string {
  if (source === '-') return source;
  try {
    const kind = pathKind(source);
    if (kind === undefined) return presetPath(source) ?? source;
    return (kind === 'folder' ? configIn(source) : undefined) ?? source;
  } catch {
    // See above.
    return source;
  }
}

function beginsAsCheckpoint(path: string): boolean {
  const head = Buffer.alloc(HEAD_BYTES);
  const descriptor = fs.openSync(path, 'r');
  try {
    fs.readSync(descriptor, head, 0, HEAD_BYTES, 0);
  } finally {
    fs.closeSync(descriptor);
  }
  return beginsLikeCheckpoint(head);
}
