import type { ByteFile } from '../byte-file.js';
import type { FileIndex } from '../checkpoint.js';
import type { StoredTensor } from '../stored-tensor.js';
import { readEntries } from './entries.js';
import { LENGTH_FIELD_BYTES, readHeader } from './header.js';
import { checkTiling } from './tiling.js';

/**
 * The index of a safetensors file. Reads the header and nothing else, and checks all that the format
 * demands (https://huggingface.co/docs/safetensors), some of it more strictly than other readers:
 * SAFETENSORS_RULES lists it.
 *
 * Memory: up to about ten times the bytes of the header, which are there and 100 MB at most; no number
 * in it makes anything larger.
 * @throws UserError when the file breaks a rule.
 */
export function readSafetensors(file: ByteFile): FileIndex {
  const header = readHeader(file);
  const { tensors, metadata } = readEntries(file, header);
  checkTiling(file, tensors, LENGTH_FIELD_BYTES + header.length);
  return {
    format: 'safetensors',
    tensors,
    ambiguous: [],
    aliases: aliasesIn(metadata, tensors),
    metadata,
    stateDict: [],
    content: new Map(),
    warnings: [],
  };
}

/** Says which library a file is for, and so is never the name of a tensor. */
export const FORMAT_KEY = 'format';

/** The metadata that tell of a tied tensor that was left out: its name, and that of the tensor it equals. */
export function aliasesIn(
  metadata: ReadonlyMap<string, string>,
  tensors: ReadonlyMap<string, StoredTensor>,
): Map<string, string> {
  const aliases = new Map<string, string>();
  for (const [key, value] of metadata) {
    if (key !== FORMAT_KEY && !tensors.has(key) && tensors.has(value)) aliases.set(key, value);
  }
  return aliases;
}
