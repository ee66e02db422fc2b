/** Finds the location of an output, and checks whether an existing file there may be replaced. */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { formatBytes } from '../text/units.js';
import { sumOf } from '../text/words.js';
import { isConvertedName, isConvertedWeights } from './config-names.js';
import { alreadyExists } from './file-system.js';
import { linkTarget, refuseInput, refuseInputsIn } from './input-registry.js';
import { folderError } from './write-whole.js';

export type OutputKind = 'file' | 'folder';

export interface OutputTarget {
  /** The path as the user wrote it. */
  readonly target: string;
  readonly kind: OutputKind;
  /** Absolute path, with the link resolved if `target` is one. It need not exist. */
  readonly file: string;
}

/** @throws UserError if nothing can be written there; rethrows system errors. */
export function resolveOutputTarget(target: string, kind: OutputKind): OutputTarget {
  if (target === '') throw new UserError('usage', `the name of the ${kind} to write is empty`);
  const place = linkTarget(target);
  // Path as the system resolves it: `..` is the parent of a link's target.
  const isPlain = !/^\.{1,2}$/.test(path.basename(place));
  const file = isPlain
    ? path.join(fs.realpathSync.native(path.dirname(place)), path.basename(place))
    : fs.realpathSync.native(place);
  if (path.dirname(file) === file) throw new UserError('usage', `${target} is the whole disk`);
  return { target, kind, file };
}

/** @throws UserError if the existing file must not, or cannot, be replaced. */
export function checkReplaceable({ target, kind, file }: OutputTarget, force: boolean): void {
  const existing = fs.statSync(file, { throwIfNoEntry: false });
  if (existing === undefined) return;
  if (kind === 'folder' && existing.isDirectory()) refuseInputsIn(file, target);
  else refuseInput(file, target);
  if (kind === 'folder') checkFolder(target, file, existing, force);
  else checkFile(target, existing, force);
}

/** @throws UserError if --save has the ending of another kind of file. `model` has none, nor `model-0.5b`. */
export function refuseOtherEnding(save: string, ending: '.onnx' | '.safetensors'): void {
  if (!/\.[a-z]\w*$/i.test(save) || save.toLowerCase().endsWith(ending)) return;
  const { dir, name } = path.parse(save);
  throw new UserError('usage', `--save: expected a ${ending} file, found ${save}`, {
    suggestion: `write --save ${path.join(dir, name)}${ending}`,
  });
}

function checkFile(target: string, existing: fs.Stats, force: boolean): void {
  if (existing.isDirectory()) throw folderError(target);
  if (!existing.isFile()) throw new UserError('usage', `${target} is neither a file nor a folder`);
  if (!force) throw alreadyExists(target);
}

function checkFolder(target: string, file: string, existing: fs.Stats, force: boolean): void {
  if (!existing.isDirectory()) {
    throw new UserError('usage', `${target} is a file`, { suggestion: 'name a folder' });
  }
  if (existing.dev !== fs.statSync(path.dirname(file)).dev) {
    throw new UserError('usage', `${target} is a disk of its own, which cannot be replaced`, {
      suggestion: 'name a folder in it',
    });
  }
  const entries = fs.readdirSync(file, { withFileTypes: true });
  if (entries.length === 0) return;
  if (!force) throw alreadyExists(target);
  const strange = entries.find((entry) => entry.isDirectory() || !isConvertedName(entry.name));
  if (strange === undefined && entries.some(({ name }) => isConvertedWeights(name))) return;
  const why = strange ? `holds ${strange.name}` : 'holds no weights';
  throw new UserError('usage', `${target} is not a folder written by a conversion: it ${why}`, {
    suggestion: 'only such a one is replaced; choose another name, or move what is to stay',
  });
}

/**
 * Checks that the disk has enough space.
 * @param target The output: a file, or a folder that may not exist yet.
 * @throws UserError if the files need more than the free space.
 */
export function refuseFullDisk(target: string, files: readonly { readonly bytes: number }[]): void {
  const neededBytes = sumOf(files, ({ bytes }) => bytes);
  const freeBytes = freeBytesOf(path.dirname(path.resolve(target)));
  if (freeBytes === undefined || neededBytes <= freeBytes) return;
  throw new UserError(
    'system',
    `cannot write ${target}: it takes ${formatBytes(neededBytes)}, and the disk has ${formatBytes(freeBytes)} free`,
    { suggestion: 'free some space, or write to another disk' },
  );
}

/** Free bytes of the disk; undefined if the system does not report them. */
function freeBytesOf(folder: string): number | undefined {
  try {
    const { blocks, bavail, bsize } = fs.statfsSync(folder);
    return blocks === 0 ? undefined : bavail * bsize;
  } catch {
    return undefined;
  }
}
