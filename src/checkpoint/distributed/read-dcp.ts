/** Opens a distributed checkpoint of PyTorch (torch.distributed.checkpoint) as one checkpoint. */

import path from 'node:path';
import { UserError } from '../../base/errors.js';
import type { ByteRange } from '../../base/files/mounted.js';
import type { StoredDtype } from '../../base/tensor/dtype.js';
import { isSameShape, shapeText } from '../../base/tensor/dtype.js';
import { groupBy } from '../../base/values.js';
import { ByteFile, bytesAt, fileNamesAt, folderNamesAt } from '../byte-file.js';
import type { CheckpointOptions, OpenedFiles } from '../checkpoint.js';
import type { Refuse } from '../checkpoint-rules.js';
import { quoted, quotedNames, refusal, refuseAt, tensorPlace } from '../checkpoint-rules.js';
import { DCP_METADATA } from '../formats.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides } from '../stored-tensor.js';
import { PickleBudget, TABLE_BYTES } from '../torch/pickle/pickle-machine.js';
import type { Dict, PickleValue } from '../torch/pickle/values.js';
import { globalName, isKind, Table } from '../torch/pickle/values.js';
import { readTorchObject } from '../torch/read-torch.js';
import { findStateDict } from '../torch/state-dict/state-dict.js';
import type { DcpMetadata, DcpTensor, PartPlace } from './dcp-metadata.js';
import { offsetKey, partNotStored, readDcpMetadata } from './dcp-metadata.js';
import { PartFiles } from './part-files.js';
import type { PartBox, TensorPart } from './sharded-tensor.js';
import { boxText, checkCover, shardedTensor } from './sharded-tensor.js';

const COPY_ALL = 'copy the files of all processes into the folder';

/**
 * Opens the folder of a distributed checkpoint: the file `.metadata`, and the files that it names. Reads the metadata
 * and the heads of the model's parts, not the values.
 * @throws UserError that names the violated rule. No file stays open then.
 */
export function openDcp(folder: string, { stateDict }: CheckpointOptions): OpenedFiles {
  const metadataPath = path.join(folder, DCP_METADATA);
  const budget = new PickleBudget(() => bytesAt(pathsBelow(folder)));
  const metadata = readDcpMetadata(metadataPath, budget);
  const refuse = refuseAt(metadataPath);
  const files = new PartFiles(folder);
  try {
    const names = new Set(
      [...metadata.places.values()].flatMap((all) => [...all.values()].map(({ file }) => file)),
    );
    const missing = files.openAll(names, (name) => checkName(name, refuse));
    if (missing.length > 0) {
      throw refuse(
        'dcp-file-exists',
        `names ${names.size} files, and these are not there: ${quotedNames(missing)}`,
        COPY_ALL,
      );
    }
    checkPlaces(metadata, files, metadataPath);
    const placeholders = new Map<PickleValue, readonly [name: string, tensor: DcpTensor]>();
    const makeDict = () => newDict(budget, refuse);
    const root = nested(
      metadata,
      new Objects(metadata, files, budget),
      placeholders,
      makeDict,
      refuse,
    );
    const found = findStateDict(root, stateDict, { path: folder, size: files.bytes });
    const tensors = new Map(
      [...found.tensors].map(([key, placeholder]) => {
        const [name, tensor] = placeholders.get(placeholder) ?? [];
        if (name === undefined || tensor === undefined) throw new Error(`${key} has no parts`);
        return [key, assembled(name, tensor, metadata, files, budget)] as const;
      }),
    );
    return {
      files: files.all,
      index: { ...found, tensors, aliases: new Map(), metadata: new Map(), format: 'dcp' },
    };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Folders that are searched for part files: writers can make one for each process. */
const MOST_FOLDERS = 10_000;

/** Files in a folder and in those below it. */
function* pathsBelow(folder: string): Generator<string> {
  const folders = [folder];
  for (const each of folders) {
    for (const name of fileNamesAt(each) ?? []) yield path.join(each, name);
    if (folders.length >= MOST_FOLDERS) continue;
    for (const name of folderNamesAt(each)) folders.push(path.join(each, name));
  }
}

function checkName(name: string, refuse: Refuse): void {
  const isPlain = (part: string) => part !== '' && part !== '.' && part !== '..';
  if (!/[\p{Cc}:\\]/u.test(name) && name.split('/').every(isPlain)) return;
  throw refuse(
    'dcp-file-name',
    `names the file ${quoted(name)}; expected a path below the folder, without a drive, a root, "." or ".."`,
    'do not use this checkpoint unless you know who made it',
  );
}

/** Checks that each part lies in its file, and shares no bytes with another. */
function checkPlaces({ places }: DcpMetadata, files: PartFiles, file: string): void {
  const all = [...places].flatMap(([name, own]) =>
    Array.from(own.values(), (place) => ({ name, place })),
  );
  const byFile = groupBy(all, ({ place }) => place.file);
  for (const [partFile, parts] of byFile) {
    const opened = files.get(partFile);
    const { size } = opened;
    let end = 0;
    for (const { name, place } of parts.sort((a, b) => a.place.offset - b.place.offset)) {
      const refuse = refuseAt(file, tensorPlace(name));
      const last = place.offset + place.length;
      if (last > size) {
        throw refuse(
          'dcp-part-bytes',
          `has a part up to byte ${last} of ${quoted(partFile)}, which has ${size} bytes`,
          'copy the file again: it was cut off, or is of another save',
        );
      }
      if (place.offset < end) {
        throw refuse(
          'dcp-part-apart',
          `has a part at byte ${place.offset} of ${quoted(partFile)}, where another one goes on up to byte ${end}`,
        );
      }
      end = last;
    }
    opened.willRead(parts.flatMap(({ place }) => edgesOf(place.offset, place.length)));
  }
}

/** The nested state dict that was saved, with a placeholder without values for each tensor. */
function nested(
  metadata: DcpMetadata,
  objects: Objects,
  placeholders: Map<PickleValue, readonly [string, DcpTensor]>,
  makeDict: () => Dict,
  refuse: Refuse,
): Dict {
  const root = makeDict();
  for (const [name, entry] of metadata.entries) {
    const value = entry.tensor ? placeholderOf(entry.tensor, metadata) : objects.valueOf(name);
    if (entry.tensor) placeholders.set(value, [name, entry.tensor]);
    let dict = root;
    for (const key of entry.path.slice(0, -1)) {
      const next = dict.entries.get(key) ?? makeDict();
      if (!isKind(next, 'dict')) throw sameKey(name, refuse);
      dict.entries.set(key, next);
      dict = next;
    }
    const last = entry.path.at(-1) ?? name;
    if (dict.entries.has(last)) throw sameKey(name, refuse);
    dict.entries.set(last, value);
  }
  return root;
}

function newDict(budget: PickleBudget, refuse: Refuse): Dict {
  budget.spend(TABLE_BYTES, refuse);
  return { kind: 'dict', type: 'dict', entries: new Table() };
}

const sameKey = (name: string, refuse: Refuse) =>
  refuse('dcp-keys', `puts ${quoted(name)} where another value of the state dict is`);

/**
 * Maximum bytes and number of the objects that are read. Numbers of steps and settings of optimizers have a kilobyte.
 */
const MAX_OBJECT_BYTES = 2 ** 16;
const MAX_OBJECTS = 1000;

/** Objects of the state dict other than tensors, read where they are small and hold only data. */
class Objects {
  readonly #metadata: DcpMetadata;
  readonly #files: PartFiles;
  readonly #budget: PickleBudget;
  #left = MAX_OBJECTS;

  constructor(metadata: DcpMetadata, files: PartFiles, budget: PickleBudget) {
    this.#metadata = metadata;
    this.#files = files;
    this.#budget = budget;
  }

  valueOf(name: string): PickleValue {
    const place = this.#metadata.places.get(name)?.get('');
    if (place === undefined || place.length > MAX_OBJECT_BYTES || this.#left-- <= 0) return UNREAD;
    try {
      return archiveAt(place, this.#files, this.#budget);
    } catch (error) {
      if (error instanceof UserError) return UNREAD;
      throw error;
    }
  }
}

const UNREAD: PickleValue = {
  kind: 'global',
  module: 'torch.distributed.checkpoint.metadata',
  name: 'BytesStorageMetadata',
};

/** Placeholder for a tensor, without its values, in the search for the state dict. */
function placeholderOf(
  { dtype, shape, elements, bytes }: DcpTensor,
  { file }: DcpMetadata,
): StoredTensor {
  const storage = { file, position: 0, bytes, isBigEndian: false };
  const strides = contiguousStrides(shape);
  return { kind: 'tensor', dtype, shape, elements, strides, offset: 0, storage, bytes };
}

/**
 * Part of the budget that every archive takes. Opening one takes a fraction of a millisecond, so a small folder can have
 * at most about 2,500: whole models of that size have a tenth.
 */
const ARCHIVE_BYTES = 30_000;

/** The object of an archive in a file of several. */
function archiveAt(
  { file, offset, length }: PartPlace,
  files: PartFiles,
  budget: PickleBudget,
): PickleValue {
  const slice = new FileSlice(files.get(file), offset, length);
  budget.spend(ARCHIVE_BYTES, refuseAt(slice.path));
  return readTorchObject(slice, budget).root;
}

/** The tensor of a name, made of its parts. */
function assembled(
  name: string,
  { dtype, shape, boxes }: DcpTensor,
  { file, places }: DcpMetadata,
  files: PartFiles,
  budget: PickleBudget,
): StoredTensor {
  const refuse = refuseAt(file.path, tensorPlace(name));
  checkCover(shape, boxes, refuse);
  const own = places.get(name);
  const parts = boxes.map((box): TensorPart => {
    const isWhole = box.offsets.every((offset) => offset === 0);
    const place = own?.get(offsetKey(box.offsets)) ?? (isWhole ? own?.get('') : undefined);
    if (place === undefined) {
      throw partNotStored(refuse, `has no place for its part ${boxText(box)}`);
    }
    return { ...box, values: partIn(place, dtype, box, files, name, budget) };
  });
  return shardedTensor(file.path, dtype, shape, parts);
}

/** The values of a part: a tensor that was saved alone. */
function partIn(
  place: PartPlace,
  dtype: StoredDtype,
  box: PartBox,
  files: PartFiles,
  name: string,
  budget: PickleBudget,
): StoredTensor {
  const where = `${tensorPlace(name)}, part at byte ${place.offset}`;
  const root = placedAt(where, () => archiveAt(place, files, budget));
  if (!isKind(root, 'tensor') || root.dtype !== dtype || !isSameShape(root.shape, box.sizes)) {
    const found = isKind(root, 'tensor')
      ? `a tensor of ${root.dtype} ${shapeText(root.shape)}`
      : globalName(root);
    throw refusal(files.get(place.file).path, {
      rule: 'dcp-part-tensor',
      place: where,
      message: `holds ${found}; expected a tensor of ${dtype} ${shapeText(box.sizes)}`,
    });
  }
  const { file, position } = root.storage;
  const isSlice = file instanceof FileSlice;
  return isSlice
    ? { ...root, storage: { ...root.storage, file: file.origin, position: position + file.start } }
    : root;
}

/** Errors in one archive of a file that holds several. */
function placedAt<Result>(where: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const problems = error.problems.map((problem) => ({
      ...problem,
      path: [where, problem.path].filter(Boolean).join(': '),
    }));
    throw new UserError(error.code, error.message, { problems });
  }
}

/** Bytes at the beginning and the end that are read at once: the records of an archive around its values. */
const EDGE_BYTES = 1024;

/** Ranges that are read of each part: its beginning and its end. */
function edgesOf(start: number, length: number): ByteRange[] {
  const edge = Math.min(EDGE_BYTES, length);
  return [
    { position: start, length: edge },
    { position: start + length - edge, length: edge },
  ];
}

/** A part of a file, as a file: one archive of several that follow each other. */
class FileSlice extends ByteFile {
  readonly origin: ByteFile;
  /** Position of the first byte in the file. */
  readonly start: number;
  #head: Buffer | undefined;
  #tail: Buffer | undefined;

  constructor(origin: ByteFile, start: number, length: number) {
    super(origin.path, { size: length, mtimeMs: origin.changedAt });
    this.origin = origin;
    this.start = start;
  }

  /** Small reads copy nothing: new buffers would take most of the time of opening thousands of small archives. */
  override read(position: number, length: number): Buffer {
    return this.#edge(position, length) ?? super.read(position, length);
  }

  override readInto(target: Uint8Array, position: number): void {
    const edge = this.#edge(position, target.length);
    if (edge) target.set(edge);
    else this.#readPlaced(target, position);
  }

  /** Bytes at the beginning or the end, which are read once; undefined for others. */
  #edge(position: number, length: number): Buffer | undefined {
    const end = position + length;
    const edge = Math.min(EDGE_BYTES, this.size);
    if (end <= edge) {
      this.#head ??= this.#readEdge(this.start, edge);
      return this.#head.subarray(position, end);
    }
    const from = this.size - edge;
    if (position < from || end > this.size) return undefined;
    this.#tail ??= this.#readEdge(this.start + from, edge);
    return this.#tail.subarray(position - from, end - from);
  }

  #readEdge(position: number, length: number): Buffer {
    // From the pool of Node.
    const bytes = Buffer.allocUnsafe(length);
    this.origin.readInto(bytes, position);
    return bytes;
  }

  override async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    this.#readPlaced(target, position);
  }

  override hasChanged(): boolean {
    return this.origin.hasChanged();
  }

  override close(): void {
    // The file is closed by its owner.
  }

  #readPlaced(target: Uint8Array, position: number): void {
    if (position + target.length > this.size) throw new RangeError('read beyond the end of a part');
    this.origin.readInto(target, this.start + position);
  }
}
