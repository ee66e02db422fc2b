/** Config or checkpoint, by what the path leads to; and the file of a preset, by its name. */
import fs from 'node:fs';
import path from 'node:path';
import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import { FORMATS, hasWeightsExtension, isIndexName, isWeightsName } from '../checkpoint/formats.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { configIn } from '../files/config-names.js';

const INDEX_NAME = /\.index\.json$/i;
const CONFIG_NAME = /\.(?:ya?ml|json)$/i;

const MAGIC: readonly string[] = Object.values(FORMATS).flatMap(({ magic }) => [...magic]);

/** Whether a file begins like a checkpoint. No text does. */
function beginsLikeCheckpoint(head: Buffer): boolean {
  // Safetensors: the length of the header is far below 2^40, and its first character follows.
  if (head.readUIntBE(5, 3) === 0 && head[8] === '{'.charCodeAt(0)) return true;
  // A pickle, of a protocol that the reader refuses too.
  if (head[0] === 0x80) return true;
  const text = head.toString('latin1');
  return MAGIC.some((magic) => text.startsWith(magic));
}

const HEAD_BYTES = 9;

/** Whether `path` leads to a checkpoint: a folder with weights, or a file that by name or beginning is one. */
export function isCheckpointPath(path: string): boolean {
  if (path === '-') return false;
  try {
    const status = fs.statSync(path, { throwIfNoEntry: false });
    if (status?.isDirectory()) return hasWeights(path) || configIn(path) === undefined;
    if (hasWeightsExtension(path) || INDEX_NAME.test(path)) return true;
    // Of a pipe nothing is read: what is taken from it is gone.
    return !CONFIG_NAME.test(path) && status?.isFile() === true && beginsAsCheckpoint(path);
  } catch {
    // Whoever reads it will say what is wrong with it.
    return false;
  }
}

/** @throws when there is no such folder. */
export const hasWeights = (folder: string): boolean =>
  fs.readdirSync(folder).some((name) => isIndexName(name) || isWeightsName(name));

/** The file of a config: of a folder the one in it, where there is one. */
export function configPath(source: string): string {
  if (source === '-') return source;
  try {
    const isFolder = fs.statSync(source, { throwIfNoEntry: false })?.isDirectory() ?? false;
    return (isFolder ? configIn(source) : undefined) ?? source;
  } catch {
    // As above.
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

/** In the package the schema is in docs; a user's own file has it in the same folder. */
function withLocalSchema(text: string, family: string): string {
  return text.replace(/^(# yaml-language-server: \$schema=).*$/m, `$1./${family}.schema.json`);
}
