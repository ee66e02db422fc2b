/** Models of several GGUF files, as llama.cpp splits them: NAME-00001-of-00003.gguf. */
import path from 'node:path';
import { announceFiles, pathExists } from '../../files/mounted.js';
import type { ByteFile } from '../byte-file.js';
import type { CheckpointOptions, FileIndex, OpenedFiles } from '../checkpoint.js';
import { listed, quoted, refusal, tensorPlace } from '../checkpoint-rules.js';
import { openFile } from '../open-file.js';
import type { StoredTensor } from '../stored-tensor.js';

const PART = /^(.*)-(\d{5})-of-(\d{5})(\.gguf)$/i;

/** Keys that each file of a split model has. */
const NUMBER_KEY = 'split.no';
const COUNT_KEY = 'split.count';
const TENSORS_KEY = 'split.tensors.count';

const FETCH_ALL = 'download all files of the model together';

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
      message: `is one of ${count} files, and these are not there: ${listed(missing)}`,
      suggestion: FETCH_ALL,
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
    suggestion: FETCH_ALL,
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
      suggestion: FETCH_ALL,
    });
  }
  return { ...first, tensors, warnings: parts.flatMap(({ warnings }) => warnings) };
}
