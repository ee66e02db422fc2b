import type { ByteFile } from '../byte-file.js';
import type { CheckpointOptions, FileIndex } from '../checkpoint.js';
import { FETCH_AGAIN, refusal, refuseAt } from '../checkpoint-rules.js';
import { readPickle } from './pickle/pickle.js';
import { PickleBudget, PickleSource } from './pickle/pickle-machine.js';
import type { PickleValue, Storage } from './pickle/values.js';
import { isKind } from './pickle/values.js';
import { findStateDict } from './state-dict/state-dict.js';
import type { DeferredBytes } from './state-dict/storages.js';
import { pickleValueText, Storages } from './state-dict/storages.js';
import { readTorchArchive } from './zip/torch-archive.js';

/** Parts of an index that only safetensors files have. */
const NO_METADATA = { aliases: new Map(), metadata: new Map() } as const;

/**
 * Index of a torch.save file since PyTorch 1.6: an archive with a pickle and one record per storage. Reads the
 * directory and the pickle, not the values.
 * @throws UserError that names the violated rule.
 */
export function readTorchZip(
  file: ByteFile,
  { stateDict, pickleBudget }: CheckpointOptions = {},
): FileIndex {
  const { root, warnings } = readTorchObject(file, pickleBudget);
  const found = findStateDict(root, stateDict, file);
  return {
    ...NO_METADATA,
    ...found,
    format: 'torch-zip',
    warnings: [...warnings, ...found.warnings],
  };
}

/**
 * The object in a torch.save file since PyTorch 1.6, with the places of its tensors.
 * @param budget Memory of all pickles of the checkpoint; by default this one is the only one.
 * @throws UserError that names the violated rule.
 */
export function readTorchObject(
  file: ByteFile,
  budget?: PickleBudget,
): {
  readonly root: PickleValue;
  /** Unusual but harmless findings. */
  readonly warnings: readonly string[];
} {
  const { records, isBigEndian, warnings } = readTorchArchive(file);
  const pickle = records.get('data.pkl') ?? { position: 0, bytes: 0 };
  const source = new PickleSource(file, pickle.position, pickle.position + pickle.bytes, {
    budget,
  });
  const refuse = source.refusal;
  const storages = new Storages(
    refuse,
    (key, bytes) => {
      const record = records.get(`data/${key}`);
      if (record === undefined) {
        throw refuse('storage-record', `names storage ${key}, which the archive does not hold`);
      }
      if (record.bytes !== bytes) {
        throw refuse(
          'storage-size',
          `says that storage ${key} has ${bytes} bytes; its record has ${record.bytes}`,
        );
      }
      return { file, position: record.position, bytes, isBigEndian };
    },
    false,
  );
  return { root: readPickle(source, storages), warnings };
}

/** torch/serialization.py: MAGIC_NUMBER and PROTOCOL_VERSION. */
const MAGIC = 0x1950a86a20f9469cfc6cn;
const PROTOCOL = 1001;

/**
 * Index of a torch.save file before PyTorch 1.6: pickles of a magic number, a protocol, the system, the object
 * and its storage keys; then each storage after its length.
 * @throws UserError that names the violated rule.
 */
export function readTorchLegacy(
  file: ByteFile,
  { stateDict, pickleBudget: budget = new PickleBudget(() => file.size) }: CheckpointOptions = {},
): FileIndex {
  const source = new PickleSource(file, headerEnd(file, budget), file.size, { budget });
  const refuse = source.refusal;
  const deferred = new Map<string, DeferredBytes>();
  const storages = new Storages(
    refuse,
    (key, bytes) => {
      const place = { file, position: 0, bytes, isBigEndian: false };
      deferred.set(key, place);
      return place;
    },
    true,
  );
  const root = readPickle(source, storages);
  const found = findStateDict(root, stateDict, file);
  const { value, end } = plainPickle(file, source.position, budget);
  placeStorages(file, end, keysIn(file, value, deferred), deferred, storages.all);
  return { ...NO_METADATA, ...found, format: 'torch-legacy' };
}

/** Reads a pickle without storages, and returns the position after it. */
function plainPickle(
  file: ByteFile,
  start: number,
  budget: PickleBudget,
): { value: PickleValue; end: number } {
  const source = new PickleSource(file, start, file.size, { budget });
  const value = readPickle(source);
  return { value, end: source.position };
}

/** Checks the three pickles before the object, and returns the position after them. */
function headerEnd(file: ByteFile, budget: PickleBudget): number {
  const refuse = refuseAt(file.path, 'header');
  const magic = plainPickle(file, 0, budget);
  if (magic.value !== MAGIC) {
    throw refuse(
      'legacy-magic',
      'is a pickle, but not of torch.save: the magic number is missing',
      'save model.state_dict() with torch.save',
    );
  }
  const protocol = plainPickle(file, magic.end, budget);
  if (protocol.value !== PROTOCOL) {
    throw refuse(
      'legacy-protocol',
      `is of protocol ${pickleValueText(protocol.value)}, not ${PROTOCOL}`,
    );
  }
  const system = plainPickle(file, protocol.end, budget);
  const isLittle = isKind(system.value, 'dict') && system.value.entries.get('little_endian');
  if (isLittle !== true) {
    throw refuse('legacy-system', 'does not say that it was written on a little-endian machine');
  }
  return system.end;
}

/** Storage keys in file order: every storage of the object, each once. */
function keysIn(
  file: ByteFile,
  value: PickleValue,
  used: ReadonlyMap<string, DeferredBytes>,
): readonly string[] {
  const items = isKind(value, 'list') ? value.items : [];
  const keys = items.filter((key) => typeof key === 'string');
  const distinct = new Set(keys);
  const isWhole = distinct.size === items.length && keys.every((key) => used.has(key));
  if (!isWhole || distinct.size !== used.size || !isKind(value, 'list')) {
    throw refusal(file.path, {
      rule: 'legacy-keys',
      place: 'list of storages',
      message: `lists ${items.length} storages, and the object uses ${used.size}; they are not the same`,
    });
  }
  return keys;
}

/** Places each storage: its number of elements as int64, then the bytes. The last one ends the file. */
function placeStorages(
  file: ByteFile,
  start: number,
  keys: readonly string[],
  deferred: ReadonlyMap<string, DeferredBytes>,
  storages: ReadonlyMap<string, Storage>,
): void {
  let position = start;
  const need = (place: string, bytes: number) => {
    if (position + bytes <= file.size) return;
    throw refusal(file.path, {
      rule: 'legacy-whole',
      place,
      message: `ends at byte ${file.size}; ${position + bytes} bytes are needed`,
      suggestion: FETCH_AGAIN,
    });
  };
  for (const key of keys) {
    const place = `storage ${key}`;
    need(place, LENGTH_BYTES);
    const length = file.read(position, LENGTH_BYTES).readBigInt64LE();
    position += LENGTH_BYTES;
    const expected = storages.get(key)?.length;
    const stored = deferred.get(key);
    if (stored === undefined || expected === undefined || length !== BigInt(expected)) {
      throw refusal(file.path, {
        rule: 'legacy-length',
        place,
        message: `has ${length} elements; the object says ${expected}`,
      });
    }
    need(place, stored.bytes);
    stored.position = position;
    position += stored.bytes;
  }
  if (position !== file.size) {
    throw refusal(file.path, {
      rule: 'legacy-end',
      place: `byte ${position}`,
      message: `goes on for ${file.size - position} bytes after its last storage`,
    });
  }
}

const LENGTH_BYTES = 8;
