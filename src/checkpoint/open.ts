/** Opens a path to weights: a file, a shard index, or a folder. */

import { basename, dirname, join } from 'node:path';
import { UserError } from '../base/errors.js';
import { fileNamesIn, folderNamesIn, pathExists } from '../base/files/mounted.js';
import { setting } from '../base/text/setting.js';
import { sumOf } from '../base/values.js';
import { fileNamesAt } from './byte-file.js';
import type { Checkpoint, CheckpointOptions, Listing, OpenedFiles } from './checkpoint.js';
import { mostTensorBytes, quotedNames, refusal } from './checkpoint-rules.js';
import { zeroFilesIn } from './distributed/part-files.js';
import { openDcp } from './distributed/read-dcp.js';
import { openZero } from './distributed/read-zero.js';
import {
  DCP_METADATA,
  isDcpName,
  isDistributedFolder,
  isIndexName,
  isStandaloneName,
  isWeightsName,
  isZeroName,
} from './formats.js';
import { openFile } from './open-file.js';
import { withUnpackedWeights } from './packed-weights.js';
import { isShardIndex, readShardIndex } from './shards/index-file.js';
import {
  isCompleteSplit,
  isPartName,
  openShards,
  openSplit,
  refuseLonePart,
} from './shards/open-shards.js';
import { viewsOf } from './sharing.js';
import type { StoredTensor } from './stored-tensor.js';

// Choice of the checkpoint in a folder.

const SHARD = /-\d+-of-\d+\.\w+$/;

/**
 * Path of the checkpoint in a folder: a shard index or a single file.
 * @throws UserError if the folder contains none, or several.
 */
function weightsIn(folder: string, all: readonly string[]): string {
  const names = all.filter((name) => !name.startsWith('.'));
  const marked = markedIn(folder, names);
  const candidates = marked.length > 0 ? marked : names.filter(isWeightsName);
  const [first, ...others] = candidates;
  if (first === undefined) {
    throw refusal(folder, {
      rule: 'folder-holds-weights',
      message:
        'holds no weights: no .safetensors, .pt, .pth, .bin, .ckpt or .gguf file, and no shard index',
      suggestion: suggestionFor(folder, names),
    });
  }
  if (others.length > 0 && !isCompleteSplit(candidates)) {
    throw refusal(folder, {
      rule: 'folder-is-one',
      message: `holds ${candidates.length} possible checkpoints: ${quotedNames(candidates)}`,
      suggestion: candidates.every((name) => SHARD.test(name))
        ? 'add the index of these shards (*.index.json), or name one of them'
        : 'name one of them',
    });
  }
  return join(folder, first);
}

function suggestionFor(folder: string, names: readonly string[]): string {
  const steps = distributedFoldersIn(folder);
  if (steps.length > 0) return `name a folder of a training step in it: ${quotedNames(steps)}`;
  return names.includes('config.json')
    ? 'download the weights too: config.json only describes the model'
    : 'name the folder or the file that holds the weights';
}

/** Files whose names mark them as the complete checkpoint. */
function markedIn(folder: string, names: readonly string[]): string[] {
  const indexes = names.filter(isIndexName);
  const standalone = names.filter(isStandaloneName);
  const [index] = indexes;
  if (index === undefined || indexes.length > 1 || standalone.length === 0) {
    return [...indexes, ...standalone];
  }
  const { shards } = readShardIndex(join(folder, index));
  return [index, ...standalone.filter((name) => !shards.has(name))];
}

/** Error for a state dict that is named for an input without any. */
export class NoStateDicts extends UserError {
  constructor(message: string) {
    super('usage', message, { suggestion: `leave ${setting('stateDict')} out` });
  }
}

/**
 * Opens the checkpoint at `path` without reading tensor data: a weight file, whose first bytes give the format; a shard
 * index (`*.index.json`); or a folder with one of these. The files stay open until the checkpoint is closed.
 * @throws UserError if `path` does not exist, cannot be read, or violates a rule. No file stays open then.
 */
export function openCheckpoint(path: string, options: CheckpointOptions = {}): Checkpoint {
  const { listing = fileNamesAt(path) ?? 'file' } = options;
  const { files, index } =
    openDistributed(path, listing, options) ?? openSaved(path, listing, options);
  if (options.stateDict !== undefined && index.stateDict.length === 0) {
    for (const file of files) file.close();
    throw new NoStateDicts(
      `${path} has no state dicts to choose from: its format is ${index.format}`,
    );
  }
  const checkpoint: Checkpoint = {
    ...index,
    path,
    listing,
    files,
    close() {
      for (const file of files) file.close();
    },
  };
  try {
    const read = options.keepPacked ? checkpoint : withUnpackedWeights(checkpoint);
    refuseVirtual(read);
    return read;
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

/** Bytes of a tensor as commands read it: packed weights as floats, other encodings as they are stored. */
const readBytes = ({ bytes, encoding }: StoredTensor): number => encoding?.bytes ?? bytes;

/** @throws UserError for small files whose tensors are far larger: many views of the same bytes. */
function refuseVirtual({ path, files, tensors }: Checkpoint): void {
  const fileBytes = sumOf(files, ({ size }) => size);
  const most = mostTensorBytes(fileBytes);
  const isMore = (all: Iterable<StoredTensor>) => sumOf(all, readBytes) > most;
  // Tied tensors are read once. Finding them is only needed above the limit.
  if (!isMore(tensors.values()) || !isMore(viewsOf(tensors).map(({ tensor }) => tensor))) return;
  throw refusal(path, {
    rule: 'files-hold-tensors',
    message: `makes tensors of more than ${most} bytes out of files of ${fileBytes}`,
    suggestion: 'copy the files again, or save the checkpoint again',
  });
}

const openSaved = (path: string, listing: Listing, options: CheckpointOptions): OpenedFiles =>
  openFound(listing === 'file' ? path : weightsIn(path, listing), options);

function openFound(path: string, options: CheckpointOptions): OpenedFiles {
  if (isShardIndex(path)) return openShards(path, options);
  return isPartName(path) ? openSplit(path, options) : openAlone(path, options);
}

function openAlone(path: string, options: CheckpointOptions): OpenedFiles {
  const { files, index } = openFile(path, options);
  try {
    refuseLonePart(path, index);
  } catch (error) {
    for (const file of files) file.close();
    throw error;
  }
  const part = partOfSeveral(path);
  return { files, index: part ? { ...index, warnings: [part, ...index.warnings] } : index };
}

/** Hint for a shard that is opened alone; undefined for other files. */
function partOfSeveral(path: string): string | undefined {
  const name = basename(path);
  const [, number, count] = /-(\d+)-of-(\d+)\.\w+$/.exec(name) ?? [];
  if (Number(count ?? 1) <= 1) return undefined;
  return `${name} is shard ${Number(number)} of ${Number(count)}, and the others were not opened: name the folder or the index`;
}

// Finds checkpoints of several processes: a folder, or a file in one.

/**
 * Opens a folder that several processes wrote, by its path or by that of one of its files.
 * @returns Undefined for other files and folders.
 * @throws UserError that names the violated rule. No file stays open then.
 */
function openDistributed(
  named: string,
  names: Listing,
  options: CheckpointOptions,
): OpenedFiles | undefined {
  if (names === 'file') {
    const isPart = isDcpName(named) || isZeroName(named) || basename(named) === DCP_METADATA;
    if (!isPart || !pathExists(named)) return undefined;
    const folder = dirname(named);
    return openDistributed(folder, fileNamesAt(folder) ?? 'file', options);
  }
  // Weights that a trainer gathered are the whole model, and faster to read.
  if (names.some((name) => isIndexName(name) || isStandaloneName(name))) return undefined;
  if (names.includes(DCP_METADATA)) return openDcp(named, options);
  const zero = zeroFilesIn(named, names);
  if (zero) return openZero(zero);
  const parts = names.filter(isDcpName);
  if (parts.length === 0) return undefined;
  throw refusal(named, {
    rule: 'dcp-metadata',
    message: `holds parts of a distributed checkpoint, but no file ${DCP_METADATA}: ${quotedNames(parts)}`,
    suggestion: `copy ${DCP_METADATA} too, which the shell does not show; without one, saving was interrupted`,
  });
}

/** Folders that hold a checkpoint of several processes each: the steps of a training. */
const distributedFoldersIn = (folder: string): string[] =>
  folderNamesIn(folder)
    .slice(0, MOST_SEARCHED)
    .filter((name) => isDistributedFolder(readableNamesIn(join(folder, name))))
    .sort();

function readableNamesIn(folder: string): string[] {
  try {
    return fileNamesIn(folder);
  } catch {
    // Only for advice.
    return [];
  }
}

/** Folders that are searched for checkpoints. */
const MOST_SEARCHED = 1000;
