/** The metadata of a distributed checkpoint of PyTorch: torch/distributed/checkpoint/metadata.py, filesystem.py. */
import type { Shape, StoredDtype } from '../../base/tensor/dtype.js';
import { elementCount, shapeText, storedBytes } from '../../base/tensor/dtype.js';
import { ByteFile } from '../byte-file.js';
import type { Refuse } from '../checkpoint-rules.js';
import { quoted, refusal, refuseAt, tensorPlace } from '../checkpoint-rules.js';
import { globalMeaning } from '../torch/pickle/globals.js';
import { readPickle } from '../torch/pickle/pickle.js';
import { type PickleBudget, PickleSource } from '../torch/pickle/pickle-machine.js';
import type { Dict, PickleValue } from '../torch/pickle/values.js';
import { globalName, isKind, isNatural } from '../torch/pickle/values.js';
import type { PartBox } from './sharded-tensor.js';

/** Where a part is: one PyTorch archive in a file of several. */
export interface PartPlace {
  /** Path below the folder, as the metadata states it. */
  readonly file: string;
  readonly offset: number;
  readonly length: number;
}

export interface DcpTensor {
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  readonly elements: number;
  readonly bytes: number;
  readonly boxes: readonly PartBox[];
}

export interface DcpEntry {
  /** Keys that lead to the value in the nested state dict that was saved. */
  readonly path: readonly PickleValue[];
  /** Undefined for an object that is not a tensor. */
  readonly tensor: DcpTensor | undefined;
}

export interface DcpMetadata {
  /** The metadata file, already closed. */
  readonly file: ByteFile;
  /** By name, in the order of saving. */
  readonly entries: ReadonlyMap<string, DcpEntry>;
  /** Place of a part by the name of its tensor and `offsetKey`. */
  readonly places: ReadonlyMap<string, ReadonlyMap<string, PartPlace>>;
}

export const offsetKey = (offsets: readonly number[]): string => offsets.join(',');

/**
 * Measured with 128,000 parts: a part takes 140 bytes of the metadata, 7 memo entries and 25 times its bytes in memory. It
 * also takes a kilobyte or more of another file, so the memory is that of large files.
 */
const LIMITS = { pickleBytes: 2 ** 28, memory: 2e9, memo: 20_000_000 };
const MAX_RANK = 8;
/**
 * Maximum keys of a path, and maximum numbers of a shape before it is checked. State dicts are nested a few dicts deep.
 */
const MAX_PATH = 100;

/**
 * Reads the metadata of a folder. Nothing in it is run: records of PyTorch's classes are data.
 * @param budget Memory of all pickles of the folder; by default the metadata are the only one.
 * @throws UserError that names the violated rule.
 */
export function readDcpMetadata(path: string, budget?: PickleBudget): DcpMetadata {
  const file = ByteFile.open(path);
  try {
    const root = readPickle(new PickleSource(file, 0, file.size, { ...LIMITS, budget }));
    return { file, ...new MetadataReader(path).read(root) };
  } finally {
    file.close();
  }
}

export const partNotStored = (refuse: Refuse, message: string) =>
  refuse('dcp-part-stored', message);

class MetadataReader {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  read(root: PickleValue): Omit<DcpMetadata, 'file'> {
    const fields = this.#record(root, 'Metadata', 'the metadata');
    const stored = fields.get('state_dict_metadata') ?? null;
    const storage = fields.get('storage_data') ?? null;
    const planned = fields.get('planner_data') ?? null;
    if (!isKind(stored, 'dict')) return this.#wrong('state_dict_metadata', stored);
    if (!isKind(storage, 'dict')) return this.#wrong('storage_data', storage);
    const paths = isKind(planned, 'dict') ? planned : undefined;
    const places = this.#places(storage);
    const entries = new Map<string, DcpEntry>();
    for (const [name, value] of stored.entries) {
      if (typeof name !== 'string') return this.#wrong('state_dict_metadata', name);
      const tensor = this.#tensor(name, value, places.get(name)?.size ?? 0);
      entries.set(name, { path: this.#pathOf(name, paths), tensor });
    }
    return { entries, places };
  }

  /** State of a record of a class, by field. */
  #record(value: PickleValue | undefined, name: string, place: string): Dict['entries'] {
    const isRecord =
      value !== undefined && isKind(value, 'opaque') && value.type.endsWith(`.${name}`);
    const state = isRecord ? (value.state ?? null) : null;
    if (isKind(state, 'dict')) return state.entries;
    return this.#wrong(place, value, name);
  }

  #wrong(place: string, found: PickleValue | undefined, expected?: string): never {
    const text = found === undefined ? 'nothing' : describe(found);
    throw refusal(this.#path, {
      rule: 'dcp-record',
      place,
      message: `is ${text}${expected ? `; expected a record ${expected}` : ''}`,
    });
  }

  #pathOf(name: string, paths: Dict | undefined): readonly PickleValue[] {
    const path = paths?.entries.get(name);
    if (path === undefined) return [name];
    const keys = isKind(path, 'tuple') && path.items.length <= MAX_PATH ? path.items : [];
    if (keys.length === 0 || !keys.every((key) => typeof key === 'string' || isNatural(key))) {
      return this.#wrong(`planner_data of ${tensorPlace(name)}`, path);
    }
    return keys;
  }

  /**
   * Undefined for an object that is not a tensor.
   * @param placed Number of its parts that have a place. All tensors can share one list of parts, but not the places.
   */
  #tensor(name: string, value: PickleValue, placed: number): DcpTensor | undefined {
    if (isKind(value, 'opaque') && value.type.endsWith('.BytesStorageMetadata')) return undefined;
    const place = tensorPlace(name);
    const fields = this.#record(value, 'TensorStorageMetadata', place);
    const dtype = this.#dtype(place, fields.get('properties'));
    const shape = this.#sizes(place, fields.get('size'));
    const elements = shape.includes(0) ? 0 : elementCount(shape);
    const bytes = elements === undefined ? undefined : storedBytes(elements, dtype);
    if (elements === undefined || bytes === undefined || shape.length > MAX_RANK) {
      throw refusal(this.#path, {
        rule: 'dcp-shape',
        place,
        message: `has the sizes ${shapeText(shape)}; expected at most ${MAX_RANK}, of a number of bytes that can be counted`,
      });
    }
    const chunks = fields.get('chunks') ?? null;
    if (!isKind(chunks, 'list')) return this.#wrong(place, chunks);
    if (chunks.items.length > placed) {
      const message = `has ${chunks.items.length} parts, and places for ${placed}`;
      throw partNotStored(refuseAt(this.#path, place), message);
    }
    const boxes = chunks.items.map((chunk) => this.#box(place, chunk, shape));
    return { dtype, shape, elements, bytes, boxes };
  }

  #dtype(place: string, properties: PickleValue | undefined): StoredDtype {
    const isProperties =
      properties !== undefined &&
      isKind(properties, 'opaque') &&
      properties.type.endsWith('.TensorProperties');
    const state = isProperties ? (properties.state ?? null) : null;
    const [dtype = null, layout = null] = isKind(state, 'tuple') ? state.items : [];
    const meaning = isKind(dtype, 'global') ? globalMeaning(dtype) : undefined;
    if (!isKind(state, 'tuple')) return this.#wrong(place, properties, 'TensorProperties');
    const isStrided = isKind(layout, 'opaque') && layout.args.items[0] === 'torch.strided';
    if (meaning?.is !== 'dtype' || meaning.dtype === undefined || !isStrided) {
      throw refusal(this.#path, {
        rule: 'dcp-dtype',
        place,
        message: `has the type ${describe(dtype)} and the layout ${isKind(layout, 'opaque') ? describe(layout.args.items[0] ?? null) : describe(layout)}; expected a type that files store, and torch.strided`,
        suggestion: 'save the tensors dense, in another type',
      });
    }
    return meaning.dtype;
  }

  /** The numbers of a torch.Size. */
  #sizes(place: string, value: PickleValue | undefined): readonly number[] {
    const isSize = value !== undefined && isKind(value, 'opaque') && value.type === 'torch.Size';
    const [numbers = null] = isSize ? value.args.items : [];
    const items = isKind(numbers, 'tuple') || isKind(numbers, 'list') ? numbers.items : undefined;
    // One long list can be the sizes of many parts.
    const isShort = items !== undefined && items.length <= MAX_PATH;
    if (isShort && items.every((item) => isNatural(item))) return items as readonly number[];
    return this.#wrong(place, value, 'torch.Size of natural numbers');
  }

  #box(place: string, chunk: PickleValue, shape: Shape): PartBox {
    const fields = this.#record(chunk, 'ChunkStorageMetadata', place);
    const offsets = this.#sizes(place, fields.get('offsets'));
    const sizes = this.#sizes(place, fields.get('sizes'));
    const isInside =
      offsets.length === shape.length &&
      sizes.length === shape.length &&
      shape.every((size, axis) => (offsets[axis] ?? 0) + (sizes[axis] ?? 0) <= size);
    if (isInside) return { offsets, sizes };
    throw refusal(this.#path, {
      rule: 'dcp-part-inside',
      place,
      message: `has a part of sizes ${shapeText(sizes)} at ${shapeText(offsets)}, which is not inside ${shapeText(shape)}`,
    });
  }

  #places(storage: Dict): DcpMetadata['places'] {
    const places = new Map<string, Map<string, PartPlace>>();
    for (const [key, value] of storage.entries) {
      const index = this.#record(key, 'MetadataIndex', 'storage_data');
      const name = index.get('fqn');
      if (typeof name !== 'string') return this.#wrong('storage_data', name);
      const place = tensorPlace(name);
      const at = index.get('offset') ?? null;
      const offsets = at === null ? [] : this.#sizes(place, at);
      const info = this.#record(value, '_StorageInfo', place);
      const known = places.get(name) ?? new Map<string, PartPlace>();
      places.set(name, known);
      if (known.has(offsetKey(offsets))) {
        throw refusal(this.#path, {
          rule: 'dcp-part-once',
          place,
          message: `has two places for the part at ${shapeText(offsets)}`,
        });
      }
      known.set(offsetKey(offsets), this.#place(place, info));
    }
    return places;
  }

  #place(place: string, info: Dict['entries']): PartPlace {
    const [file, offset, length] = ['relative_path', 'offset', 'length'].map((key) =>
      info.get(key),
    );
    if (typeof file !== 'string') return this.#wrong(place, file);
    if (!isNatural(offset)) return this.#wrong(place, offset);
    if (!isNatural(length)) return this.#wrong(place, length);
    const changes = info.get('transform_descriptors') ?? null;
    const isPlain = changes === null || (isKind(changes, 'list') && changes.items.length === 0);
    if (!isPlain) {
      throw refusal(this.#path, {
        rule: 'dcp-part-plain',
        place,
        message: 'is stored after a transformation, such as compression',
        suggestion: 'save the checkpoint without extensions of the writer',
      });
    }
    return { file, offset, length };
  }
}

function describe(value: PickleValue): string {
  if (isKind(value, 'opaque')) return `an object ${value.type}`;
  if (isKind(value, 'global')) return `${value.module}.${value.name}`;
  return typeof value === 'string' ? quoted(value) : globalName(value);
}
