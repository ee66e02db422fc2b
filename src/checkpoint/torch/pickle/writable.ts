import { usageError } from '../../../base/errors.js';
import type { ByteChunks } from '../../../base/files/write-whole.js';
import type { StoredDtype } from '../../../base/tensor/dtype.js';
import type { StoredBytes, StoredTensor } from '../../stored-tensor.js';
import { TORCH_TYPES } from './globals.js';
import type { Dict, Float, Global, Opaque, PickleValue, SetOf, Storage } from './values.js';
import { elementBytes, wordBytesOf } from './values.js';

export interface WritableLeaf {
  readonly leaf: WritableTensor | Storage;
  /** Keys from the root: `model.embed.weight`. */
  readonly name: string;
}

/** Yields every tensor and storage in a value once, in the order in which they are written. */
function* writableLeaves(root: Writable): Generator<WritableLeaf, void, void> {
  const seen = new Set<Writable>();
  const stack = [{ value: root, name: '' }];
  for (let step = stack.pop(); step; step = stack.pop()) {
    const { value, name } = step;
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) continue;
    if (seen.has(value)) continue;
    seen.add(value);
    if (value.kind === 'tensor' || value.kind === 'storage') yield { leaf: value, name };
    // A stack: the last pushed value is visited first.
    for (const [key, part] of writableEntries(value).reverse()) {
      stack.push({ value: part, name: name && key ? `${name}.${key}` : name || key });
    }
  }
}

/** Members of a container, each with the text of its key. */
function writableEntries(
  value: Exclude<Extract<Writable, object>, Uint8Array>,
): [string, Writable][] {
  switch (value.kind) {
    case 'dict':
      return [...value.entries].flatMap(([key, part]): [string, Writable][] => [
        ['', key],
        [keyText(key), part],
      ]);
    case 'list':
    case 'tuple':
      return value.items.map((part, index) => [`${index}`, part]);
    case 'set':
      return [...value.items].map((part) => ['', part]);
    case 'opaque':
      return [
        ['', value.args],
        ['', value.state ?? null],
      ];
    case 'float':
    case 'global':
    case 'storage':
    case 'tensor':
      return [];
  }
}

const keyText = (key: Writable) => (typeof key === 'object' ? '' : `${key}`);

// Values that can be written as a PyTorch file: everything that can be read, and new tensors.

/** A `PickleValue`, or a tree with other tensors. */
export type Writable =
  | Exclude<PickleValue, object>
  | Uint8Array
  | Float
  | Global
  | Storage
  | WritableSequence
  | WritableDict
  | WritableSet
  | WritableObject
  | WritableTensor;

export interface WritableSequence {
  readonly kind: 'list' | 'tuple';
  readonly items: readonly Writable[];
}

export interface WritableDict extends Omit<Dict, 'entries'> {
  readonly entries: Iterable<readonly [Writable, Writable]>;
}

export interface WritableSet extends Omit<SetOf, 'items'> {
  readonly items: Iterable<Writable>;
}

export interface WritableObject extends Pick<Opaque, 'kind' | 'made' | 'of'> {
  readonly args: WritableSequence;
  readonly state?: Writable | undefined;
}

/** A tensor stored in a file, or one whose bytes are computed during the write. */
export interface WritableTensor extends Omit<StoredTensor, 'elements' | 'bytes' | 'storage'> {
  /** Tensors that share a storage refer to the same object; it is written once and completely. */
  readonly storage: WritableBytes;
}

export type WritableBytes = StoredBytes | NewBytes;

export interface NewBytes {
  readonly bytes: number;
  /** Yields the bytes in order, little-endian; called once. */
  chunks(): ByteChunks;
}

export interface WrittenStorage {
  /** `0`, `1`, … in the order of first use. */
  readonly key: string;
  /** Storage class: `torch.FloatStorage`. */
  readonly type: Global;
  /** Whether the class gives the dtype; otherwise the elements are bytes. */
  readonly isTyped: boolean;
  readonly length: number;
  readonly bytes: WritableBytes;
  /** Integers of the size of the words to swap; bytes if no swap is needed. */
  readonly words: StoredDtype;
}

/** Dtypes that a storage is used with; undefined is untyped bytes. */
type Uses = Set<StoredDtype | undefined>;

const MAX_SHOWN = 5;

/**
 * All storages of a value, each once.
 * @throws UserError that names tensors which PyTorch files cannot store.
 */
export function collectStorages(value: Writable): ReadonlyMap<WritableBytes, WrittenStorage> {
  const usesOf = new Map<WritableBytes, Uses>();
  const obstacles: string[] = [];
  for (const { leaf, name } of writableLeaves(value)) {
    const bytes = leaf.kind === 'tensor' ? leaf.storage : leaf.data;
    const uses = usesOf.get(bytes) ?? new Set();
    usesOf.set(bytes, uses.add(leaf.dtype));
    const obstacle = obstacleOf(leaf) ?? byteOrderObstacle(bytes, uses);
    if (obstacle) obstacles.push(`${leaf.kind} ${JSON.stringify(name)} ${obstacle}`);
  }
  if (obstacles.length > 0) {
    const more = obstacles.length > MAX_SHOWN ? ` and ${obstacles.length - MAX_SHOWN} more` : '';
    throw usageError(
      `a PyTorch file cannot hold this: ${obstacles.slice(0, MAX_SHOWN).join('; ')}${more}`,
      'write it as safetensors',
    );
  }
  const storages = new Map<WritableBytes, WrittenStorage>();
  for (const [bytes, uses] of usesOf)
    storages.set(bytes, writtenStorage(bytes, uses, `${storages.size}`));
  return storages;
}

function obstacleOf(leaf: WritableTensor | Storage): string | undefined {
  if (leaf.dtype !== undefined && TORCH_TYPES[leaf.dtype] === undefined) {
    return `has elements of type ${leaf.dtype}`;
  }
  const isPart =
    leaf.kind === 'storage' && leaf.length * elementBytes(leaf.dtype) !== leaf.data.bytes;
  return isPart ? 'is a part of another storage' : undefined;
}

/** Reason why bytes cannot be swapped: a swap needs words of one size. */
function byteOrderObstacle(bytes: WritableBytes, uses: Uses): string | undefined {
  const sizes = new Set([...uses].map(wordBytesOf));
  const isClear = sizes.size === 1 && bytes.bytes % Math.max(...sizes) === 0;
  return isBigEndian(bytes) && !isClear
    ? 'shares big-endian bytes with tensors of another element size'
    : undefined;
}

function writtenStorage(bytes: WritableBytes, uses: Uses, key: string): WrittenStorage {
  const [first] = uses;
  const storage = first === undefined ? undefined : TORCH_TYPES[first]?.storage;
  const isTyped =
    storage !== undefined && uses.size === 1 && bytes.bytes % elementBytes(first) === 0;
  return {
    key,
    type: isTyped
      ? { kind: 'global', module: 'torch', name: storage }
      : { kind: 'global', module: 'torch.storage', name: 'UntypedStorage' },
    isTyped,
    length: isTyped ? bytes.bytes / elementBytes(first) : bytes.bytes,
    bytes,
    words: isBigEndian(bytes) ? WORDS[wordBytesOf(first)] : 'U8',
  };
}

const isBigEndian = (bytes: WritableBytes) => 'isBigEndian' in bytes && bytes.isBigEndian;
const WORDS = { 1: 'U8', 2: 'U16', 4: 'U32', 8: 'U64' } as const;
