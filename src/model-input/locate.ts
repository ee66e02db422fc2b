/** Finds configs, checkpoints and preset files by path or name. */
import fs from 'node:fs';
import path from 'node:path';
import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import {
  FILE_FORMATS,
  hasWeightsExtension,
  isIndexName,
  isWeightsName,
} from '../checkpoint/formats.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { configIn } from '../files/config-names.js';

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
    const status = fs.statSync(path, { throwIfNoEntry: false });
    if (status?.isDirectory()) return hasWeights(path) || configIn(path) === undefined;
    if (hasWeightsExtension(path) || INDEX_NAME.test(path)) return true;
    // Never reads from a pipe, whose data could not be read again.
    return !CONFIG_NAME.test(path) && status?.isFile() === true && beginsAsCheckpoint(path);
  } catch {
    // The error appears when the file is read.
    return false;
  }
}

/** @throws when the folder does not exist. */
export const hasWeights = (folder: string): boolean =>
  fs.readdirSync(folder).some((name) => isIndexName(name) || isWeightsName(name));

/** Path of a config; in a folder with a config, that file. */
export function configPath(source: string): string {
  if (source === '-') return source;
  try {
    const isFolder = fs.statSync(source, { throwIfNoEntry: false })?.isDirectory() ?? false;
    return (isFolder ? configIn(source) : undefined) ?? source;
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

/** The commented file of a preset in the package's configs folder. */
export interface PresetFile {
  /** `hybrid/recommended`. */
  readonly preset: string;
  readonly family: string;
  readonly text: string;
}

/**
 * @param root Folder of the package.
 * @param name `hybrid/recommended`, or `recommended` when only one family has it.
 * @throws UserError when there is no such preset.
 */
export async function readPresetFile(root: string, name: string): Promise<PresetFile> {
  const presets: { family: string; preset: string }[] = [];
  for (const family of FAMILY_NAMES) {
    const { presets: own } = await loadFamily(family);
    presets.push(...Object.keys(own).map((preset) => ({ family, preset })));
  }
  const full = ({ family, preset }: (typeof presets)[number]) => `${family}/${preset}`;
  const found = presets.filter((entry) => full(entry) === name || entry.preset === name);
  const [only] = found;
  if (!only || found.length > 1) {
    const names = presets.map(full);
    const close = nearest(name, [...names, ...presets.map(({ preset }) => preset)]);
    const [problem, choices] = only
      ? ['stands in several families', found.map(full).join(', ')]
      : ['is no preset', close ?? 'one that minimind list shows'];
    throw new UserError('usage', `${quote(name)} ${problem}`, {
      suggestion: `write ${choices}`,
    });
  }
  const text = fs.readFileSync(path.join(root, 'configs', `${full(only)}.yaml`), 'utf8');
  return { preset: full(only), family: only.family, text: withLocalSchema(text, only.family) };
}

/** Sets the schema's path: in docs for the package's presets, in the same folder for the user's file. */
function withLocalSchema(text: string, family: string): string {
  return text.replace(/^(# yaml-language-server: \$schema=).*$/m, `$1./${family}.schema.json`);
}
