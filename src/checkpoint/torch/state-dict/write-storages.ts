import { UserError } from '../../../errors.js';
import { STORED_DTYPES, type StoredDtype } from '../../../tensor/dtype.js';
import { TORCH_TYPES } from '../pickle/globals.js';
import type { Global, Storage } from '../pickle/values.js';
import type { Writable, WritableBytes, WritableTensor } from '../pickle/write-opcodes.js';
import { leavesOf } from '../pickle/write-opcodes.js';

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
  for (const { leaf, name } of leavesOf(value)) {
    const bytes = leaf.kind === 'tensor' ? leaf.storage : leaf.data;
    const uses = usesOf.get(bytes) ?? new Set();
    usesOf.set(bytes, uses.add(leaf.dtype));
    const obstacle = obstacleOf(leaf) ?? byteOrderObstacle(bytes, uses);
    if (obstacle) obstacles.push(`${leaf.kind} ${JSON.stringify(name)} ${obstacle}`);
  }
  if (obstacles.length > 0) {
    const more = obstacles.length > MAX_SHOWN ? ` and ${obstacles.length - MAX_SHOWN} more` : '';
    throw new UserError(
      'usage',
      `a PyTorch file cannot hold this: ${obstacles.slice(0, MAX_SHOWN).join('; ')}${more}`,
      { suggestion: 'write it as safetensors' },
    );
  }
  const storages = new Map<WritableBytes, WrittenStorage>();
  for (const [bytes, uses] of usesOf) storages.set(bytes, written(bytes, uses, `${storages.size}`));
  return storages;
}

function obstacleOf(leaf: WritableTensor | Storage): string | undefined {
  if (leaf.dtype !== undefined && TORCH_TYPES[leaf.dtype] === undefined) {
    return `has elements of type ${leaf.dtype}`;
  }
  const isPart = leaf.kind === 'storage' && leaf.length * widthOf(leaf.dtype) !== leaf.data.bytes;
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

function written(bytes: WritableBytes, uses: Uses, key: string): WrittenStorage {
  const [first] = uses;
  const storage = first === undefined ? undefined : TORCH_TYPES[first]?.storage;
  const isTyped = storage !== undefined && uses.size === 1 && bytes.bytes % widthOf(first) === 0;
  return {
    key,
    type: isTyped
      ? { kind: 'global', module: 'torch', name: storage }
      : { kind: 'global', module: 'torch.storage', name: 'UntypedStorage' },
    isTyped,
    length: isTyped ? bytes.bytes / widthOf(first) : bytes.bytes,
    bytes,
    words: isBigEndian(bytes) ? WORDS[wordBytesOf(first)] : 'U8',
  };
}

const widthOf = (dtype: StoredDtype | undefined) => (dtype ? STORED_DTYPES[dtype].bits / 8 : 1);
const wordBytesOf = (dtype: StoredDtype | undefined) =>
  dtype ? STORED_DTYPES[dtype].wordBytes : 1;
const isBigEndian = (bytes: WritableBytes) => 'isBigEndian' in bytes && bytes.isBigEndian;
const WORDS = { 1: 'U8', 2: 'U16', 4: 'U32', 8: 'U64' } as const;
