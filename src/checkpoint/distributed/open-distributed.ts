/** Finds checkpoints of several processes: a folder, or a file in one. */
import path from 'node:path';
import { fileNamesIn, folderNamesIn, pathExists } from '../../files/mounted.js';
import type { CheckpointOptions, OpenedFiles } from '../checkpoint.js';
import { listed, refusal } from '../checkpoint-rules.js';
import {
  DCP_METADATA,
  isDcpName,
  isDistributedFolder,
  isIndexName,
  isStandaloneName,
  isZeroName,
} from '../formats.js';
import { openDcp } from './read-dcp.js';
import { openZero } from './read-zero.js';
import { namesIn, zeroFilesIn } from './zero-files.js';

/**
 * Opens a folder that several processes wrote, or a file in it that stands for all.
 * @returns Undefined for other files and folders.
 * @throws UserError that names the violated rule. No file stays open then.
 */
export function openDistributed(
  named: string,
  options: CheckpointOptions,
): OpenedFiles | undefined {
  const names = namesIn(named);
  if (names === undefined) {
    const isPart = isDcpName(named) || isZeroName(named) || path.basename(named) === DCP_METADATA;
    return isPart && pathExists(named) ? openDistributed(path.dirname(named), options) : undefined;
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
    message: `holds parts of a distributed checkpoint, but no file ${DCP_METADATA}: ${listed(parts)}`,
    suggestion: `copy ${DCP_METADATA} too, which the shell does not show; without one, saving was interrupted`,
  });
}

/** Folders that hold a checkpoint of several processes each: the steps of a training. */
export const distributedFoldersIn = (folder: string): string[] =>
  folderNamesIn(folder)
    .slice(0, MOST_SEARCHED)
    .filter((name) => isDistributedFolder(readableNamesIn(path.join(folder, name))))
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
