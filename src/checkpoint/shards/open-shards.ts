/** Finds and opens the shards of an index. */

import path, { dirname, join } from 'node:path';
import { allowedFolders, isAllowed } from '../../base/files/linked-files.js';
import { announceFiles, mountedPath, pathExists } from '../../base/files/mounted.js';
import { type ByteFile, bytesAt, realPath } from '../byte-file.js';
import type { CheckpointOptions, FileIndex, OpenedFiles } from '../checkpoint.js';
import { quoted, quotedNames, refusal, SMALL_FILE, tensorPlace } from '../checkpoint-rules.js';
import { openFile } from '../open-file.js';
import { aliasesIn } from '../safetensors/read-safetensors.js';
import type { StoredBytes, StoredTensor } from '../stored-tensor.js';
import { PickleBudget } from '../torch/pickle/pickle-machine.js';
import { NO_INDEX, readShardIndex, type ShardIndex } from './index-file.js';

/**
 * Path of each shard by name, in index order.
 * @param allowed Allowed folders, from `allowedFolders`.
 * @throws UserError if a shard is missing, or is a link to another folder.
 */
function locateShards(index: ShardIndex, allowed: readonly string[]): ReadonlyMap<string, string> {
  const folder = dirname(index.path);
  const paths = new Map<string, string>();
  const missing: string[] = [];
  for (const name of index.shards.keys()) {
    const path = join(folder, name);
    if (mountedPath(path)) {
      paths.set(name, path);
      if (!pathExists(path)) missing.push(name);
      continue;
    }
    const target = realPath(path);
    paths.set(name, path);
    if (target === undefined) missing.push(name);
    else if (!isAllowed(target, allowed)) throw outside(index, name, target);
  }
  if (missing.length > 0) {
    throw refusal(index.path, {
      rule: 'shard-exists',
      message: `names ${index.shards.size} files, and these are not there: ${quotedNames(missing)}`,
      suggestion: 'download them into the folder of the index',
    });
  }
  return paths;
}

/**
 * Checks the location of a shard again after opening: a link may have changed since.
 * @throws UserError if the file is in another folder, or its path leads to another file.
 */
function checkShardPlace(
  index: ShardIndex,
  allowed: readonly string[],
  name: string,
  file: ByteFile,
): void {
  if (mountedPath(file.path)) return;
  const target = file.locate();
  if (!isAllowed(target, allowed)) throw outside(index, name, target);
}

const outside = ({ path }: ShardIndex, name: string, target: string) =>
  refusal(path, {
    rule: 'shard-in-folder',
    place: `shard ${name}`,
    message: `is a link to ${quoted(target)}, which is outside of the folder`,
    suggestion: 'put the file itself into the folder',
  });

/**
 * Opens all shards of an index as one checkpoint. Each stays open with its own descriptor, unless this throws.
 * @param path The path of the index as the user wrote it.
 * @throws UserError if a file cannot be read or violates a rule, or index and shards disagree.
 */
export function openShards(path: string, options: CheckpointOptions): OpenedFiles {
  const index = readShardIndex(path);
  const files: ByteFile[] = [];
  try {
    const shards = new Map<string, FileIndex>();
    const allowed = allowedFolders(dirname(index.path));
    const places = locateShards(index, allowed);
    announceFiles([...places.values()]);
    checkTensorCount(index, places);
    const pickleBudget = new PickleBudget(() => bytesAt(places.values()));
    for (const [name, place] of places) {
      const check = (file: ByteFile) => checkShardPlace(index, allowed, name, file);
      const shard = openFile(place, { ...options, pickleBudget }, check);
      files.push(...shard.files);
      shards.set(name, shard.index);
      checkAgreement(index, name, shard.index);
      const [first = shard.index] = shards.values();
      checkLikeness(index, name, shard.index, first);
    }
    return { files, index: joinedShards(index, shards) };
  } catch (error) {
    for (const file of files) file.close();
    throw error;
  }
}

/** Tensors of a checkpoint whose shards have fewer bytes than `SMALL_FILE` together. */
export const MAX_SMALL_TENSORS = 50_000;

/** @throws UserError if small shards have more tensors than `MAX_SMALL_TENSORS`. */
function checkTensorCount(
  { path, weightMap }: ShardIndex,
  places: ReadonlyMap<string, string>,
): void {
  if (weightMap.size <= MAX_SMALL_TENSORS || bytesAt(places.values()) >= SMALL_FILE) return;
  throw refusal(path, {
    rule: 'shard-tensor-count',
    message: `names ${weightMap.size} tensors in shards below 16 MB; at most ${MAX_SMALL_TENSORS} are read`,
    suggestion: NO_INDEX,
  });
}

/** Suggestion when files of different versions of a checkpoint are mixed. */
const FETCH_SHARDS = 'download the index and all of its files together';

/**
 * Checks that a shard contains exactly the tensors that the index lists.
 * @throws UserError if it does not.
 */
function checkAgreement(
  { path, shards, weightMap }: ShardIndex,
  shard: string,
  { tensors }: FileIndex,
): void {
  const place = `shard ${shard}`;
  const absent = (shards.get(shard) ?? []).filter((name) => !tensors.has(name));
  if (absent.length > 0) {
    throw refusal(path, {
      rule: 'shard-tensor-present',
      place,
      message: `lacks tensors that the index places in it: ${quotedNames(absent)}`,
      suggestion: FETCH_SHARDS,
    });
  }
  const names = [...tensors.keys()];
  const unlisted = names.filter((name) => !weightMap.has(name));
  if (unlisted.length > 0) {
    throw refusal(path, {
      rule: 'shard-tensor-listed',
      place,
      message: `holds tensors that the index does not name: ${quotedNames(unlisted)}`,
      suggestion: FETCH_SHARDS,
    });
  }
  const misplaced = names.filter((name) => weightMap.get(name) !== shard);
  if (misplaced.length > 0) {
    throw refusal(path, {
      rule: 'shard-tensor-place',
      place,
      message: `holds tensors that the index places in another shard: ${quotedNames(misplaced)}`,
      suggestion: FETCH_SHARDS,
    });
  }
}

/**
 * Checks that a shard has the same format as the first one.
 * @throws UserError if it has not.
 */
function checkLikeness(
  { path }: ShardIndex,
  shard: string,
  { format, stateDict }: FileIndex,
  first: FileIndex,
): void {
  const place = `shard ${shard}`;
  if (format !== first.format) {
    throw refusal(path, {
      rule: 'shard-format',
      place,
      message: `has the format ${format}, but the first shard has ${first.format}`,
      suggestion: FETCH_SHARDS,
    });
  }
  if (stateDict.join('.') !== first.stateDict.join('.')) {
    throw refusal(path, {
      rule: 'shard-state-dict',
      place,
      message: `holds its tensors under ${keysText(stateDict)}, but the first shard under ${keysText(first.stateDict)}`,
      suggestion: 'save the shards as plain state dicts',
    });
  }
}

const keysText = (keys: readonly string[]) =>
  keys.length === 0 ? 'no key' : quoted(keys.join('.'));

/**
 * Joins shards into one index: tensors in the order of the shards, then in file order.
 * @param shards Shards by name; at least one, checked against each other and the index.
 */
function joinedShards(index: ShardIndex, shards: ReadonlyMap<string, FileIndex>): FileIndex {
  const parts = [...shards.values()];
  const { format, stateDict } = parts.reduce((first) => first);
  const tensors = new Map<string, StoredTensor>();
  for (const part of parts) for (const [name, tensor] of part.tensors) tensors.set(name, tensor);
  const warnings = [...shards].flatMap(([name, part]) =>
    part.warnings.map((warning) => `${name}: ${warning}`),
  );
  const metadata = union(shards, (part) => part.metadata, warnings);
  const content = union(shards, (part) => part.content, warnings);
  warnings.push(...totalWarnings(index, tensors));
  return {
    format,
    tensors,
    // A tied name may be in another shard than its tensor; huggingface_hub (save_torch_state_dict) notes it
    // only in the index.
    aliases: aliasesIn(new Map([...index.metadata, ...metadata]), tensors),
    metadata,
    stateDict,
    content,
    warnings,
  };
}

/** Union of the shards' entries by key; on conflict the first shard wins. */
function union<T>(
  shards: ReadonlyMap<string, FileIndex>,
  take: (part: FileIndex) => ReadonlyMap<string, T>,
  warnings: string[],
): ReadonlyMap<string, T> {
  const all = new Map<string, T>();
  for (const [name, part] of shards) {
    for (const [key, value] of take(part)) {
      if (!all.has(key)) all.set(key, value);
      else if (all.get(key) !== value) {
        warnings.push(`${name}: has its own ${quoted(key)}; that of an earlier shard is taken`);
      }
    }
  }
  return all;
}

/** Warns when the total size in the index is wrong. Nothing depends on it. */
function totalWarnings(
  { totalBytes }: ShardIndex,
  tensors: ReadonlyMap<string, StoredTensor>,
): string[] {
  if (totalBytes === undefined) return [];
  let each = 0;
  const storages = new Set<StoredBytes>();
  for (const { bytes, storage } of tensors.values()) {
    each += bytes;
    storages.add(storage);
  }
  const distinct = [...storages].reduce((sum, { bytes }) => sum + bytes, 0);
  // Writers count a tied tensor once or twice.
  if (totalBytes === each || totalBytes === distinct) return [];
  return [`metadata.total_size of the index is ${totalBytes}, but the tensors have ${each} bytes`];
}

// Models of several GGUF files, as llama.cpp splits them: NAME-00001-of-00003.gguf.

const PART = /^(.*)-(\d{5})-of-(\d{5})(\.gguf)$/i;

/** Keys that each file of a split model has. */
const NUMBER_KEY = 'split.no';
const COUNT_KEY = 'split.count';
const TENSORS_KEY = 'split.tensors.count';

const FETCH_PARTS = 'download all files of the model together';

/** Whether a file name is one of several GGUF files. */
export const isPartName = (name: string): boolean => Number(PART.exec(name)?.[3] ?? 1) > 1;

/** Whether all names are files of one split model. */
export function isCompleteSplit(names: readonly string[]): boolean {
  const models = new Set(names.map((name) => PART.exec(name)?.toSpliced(2, 1).slice(1).join('-')));
  return models.size === 1 && !models.has(undefined);
}

/** Number that a key states; undefined without the key. */
function statedIn({ keyValues }: FileIndex, key: string): number | undefined {
  const value = keyValues?.get(key)?.value;
  return typeof value === 'number' ? value : undefined;
}

/**
 * A single GGUF file, which must not be one of several.
 * @throws UserError when its metadata says that it is.
 */
export function refuseLonePart(file: string, index: FileIndex): void {
  const count = statedIn(index, COUNT_KEY) ?? 1;
  if (count <= 1) return;
  const number = (statedIn(index, NUMBER_KEY) ?? 0) + 1;
  throw refusal(file, {
    rule: 'gguf-part-name',
    place: `key ${quoted(COUNT_KEY)}`,
    message: `is file ${number} of ${count} of a split model, but its name does not say so`,
    suggestion: `restore the name that ends in -${digits(number)}-of-${digits(count)}.gguf`,
  });
}

const digits = (number: number) => String(number).padStart(5, '0');

/**
 * Opens all files of a split model as one checkpoint. They stay open, unless this throws.
 * @param named One of them, as the user wrote it.
 * @throws UserError if a file is missing or violates a rule, or they do not belong together.
 */
export function openSplit(named: string, options: CheckpointOptions): OpenedFiles {
  const [, stem = '', , total = '', ending = ''] = PART.exec(path.basename(named)) ?? [];
  const count = Number(total);
  const folder = path.dirname(named);
  const names = Array.from(
    { length: count },
    (_, at) => `${stem}-${digits(at + 1)}-of-${total}${ending}`,
  );
  const missing = names.filter((name) => !pathExists(path.join(folder, name)));
  if (missing.length > 0) {
    throw refusal(named, {
      rule: 'gguf-part-present',
      message: `is one of ${count} files, and these are not there: ${quotedNames(missing)}`,
      suggestion: FETCH_PARTS,
    });
  }
  announceFiles(names.map((name) => path.join(folder, name)));
  const files: ByteFile[] = [];
  try {
    const parts = names.map((name, at) => {
      const opened = openFile(path.join(folder, name), options);
      files.push(...opened.files);
      checkPart(path.join(folder, name), opened.index, at, count);
      return opened.index;
    });
    return { files, index: { ...joinedParts(named, parts) } };
  } catch (error) {
    for (const file of files) file.close();
    throw error;
  }
}

function checkPart(file: string, index: FileIndex, at: number, count: number): void {
  const found = [statedIn(index, NUMBER_KEY), statedIn(index, COUNT_KEY)];
  if (found[0] === at && found[1] === count) return;
  throw refusal(file, {
    rule: 'gguf-part-agrees',
    place: `key ${quoted(NUMBER_KEY)}`,
    message: `expected file ${at} of ${count}, counted from 0, found ${found[0] ?? 'no number'} of ${found[1] ?? 'no number'}`,
    suggestion: FETCH_PARTS,
  });
}

function joinedParts(file: string, parts: readonly FileIndex[]): FileIndex {
  const [first] = parts;
  if (first === undefined) throw new Error('no parts');
  const tensors = new Map<string, StoredTensor>();
  const stated = statedIn(first, TENSORS_KEY);
  const total = parts.reduce((sum, part) => sum + part.tensors.size, 0);
  for (const part of parts) for (const [name, tensor] of part.tensors) tensors.set(name, tensor);
  if (tensors.size !== total || (stated !== undefined && stated !== total)) {
    const seen = new Set<string>();
    const twice = parts
      .flatMap((part) => [...part.tensors.keys()])
      .find((name) => seen.size === seen.add(name).size);
    throw refusal(file, {
      rule: 'gguf-part-tensors',
      place: twice === undefined ? `key ${quoted(TENSORS_KEY)}` : tensorPlace(twice),
      message:
        twice === undefined
          ? `expected ${stated} tensors in all files, found ${total}`
          : 'found the name in two files',
      suggestion: FETCH_PARTS,
    });
  }
  return { ...first, tensors, warnings: parts.flatMap(({ warnings }) => warnings) };
}
