/** Builds tensors from the arguments of PyTorch's rebuild functions (torch/_utils.py). */
import type { StoredDtype } from '../../../base/tensor/dtype.js';
import { elementCount, STORED_DTYPES, storedBytes } from '../../../base/tensor/dtype.js';
import type { Refuse } from '../../checkpoint-rules.js';
import { exactBytesText } from '../../checkpoint-rules.js';
import type { StoredTensor } from '../../stored-tensor.js';
import { globalMeaning } from '../pickle/globals.js';
import type { Dict, PickleValue, Storage, Tuple } from '../pickle/values.js';
import { elementBytes, isKind, isNatural, wordBytesOf } from '../pickle/values.js';
import { pickleValueText } from './storages.js';

const MAX_RANK = 8;
/** Maximum elements of a tensor larger than its storage, such as an expanded one. */
const MAX_EXPANDED = 2 ** 20;
/** Maximum flags named in a message: PyTorch writes `neg` and `conj`. */
const MAX_SHOWN_FLAGS = 2;

/**
 * Builds a tensor from `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata])`,
 * or v3, which has a dtype before the metadata.
 */
export function buildTensor(args: Tuple, isTyped: boolean, refuse: Refuse): StoredTensor {
  const { items } = args;
  const [storage = null, offset = null, size = null, stride = null] = items;
  const [typed = null, flags = null] = isTyped ? items.slice(6) : [null, items[6]];
  const count = items.length - (isTyped ? 1 : 0);
  if (
    !isKind(storage, 'storage') ||
    !isKind(size, 'tuple') ||
    !isKind(stride, 'tuple') ||
    (flags !== null && !isKind(flags, 'dict')) ||
    count < 6 ||
    count > 7
  ) {
    throw refuse(
      'tensor-arguments',
      'rebuilds a tensor from something else than a storage, an offset, sizes and strides',
    );
  }
  const dtype = isTyped ? dtypeOf(typed) : storage.dtype;
  if (dtype === undefined) {
    throw refuse(
      'tensor-dtype',
      'rebuilds a tensor of an element type that files do not store',
      'save the tensors in another type',
    );
  }
  checkFlags(flags, dtype, refuse);
  checkByteOrder(storage, dtype, refuse);
  checkGradient(items[4] ?? null, dtype, refuse);
  return place(storage, dtype, numbers([offset], size.items, stride.items, refuse), refuse);
}

function dtypeOf(value: PickleValue): StoredDtype | undefined {
  const meaning = isKind(value, 'global') ? globalMeaning(value) : undefined;
  return meaning?.is === 'dtype' ? meaning.dtype : undefined;
}

/**
 * Checks `{'neg': …, 'conj': …}`. PyTorch negates or conjugates the stored bytes if the key exists, even when its value
 * is False. It fails on `conj` for a real dtype: then a file with both set to False has only one meaning.
 */
function checkFlags(flags: Dict | null, dtype: StoredDtype, refuse: Refuse): void {
  if (flags === null || flags.entries.size === 0) return;
  const { entries } = flags;
  const isReal = STORED_DTYPES[dtype].kind !== 'complex';
  const isPlain = entries.get('neg') === false && entries.get('conj') === false;
  if (isReal && isPlain && entries.size === 2) return;
  const names: string[] = [];
  for (const name of flags.entries.keys()) {
    if (names.push(pickleValueText(name)) === MAX_SHOWN_FLAGS) break;
  }
  throw refuse(
    'tensor-flags',
    `holds a tensor with flags (${names.join(', ')}), whose stored bytes are not its values`,
    'save a copy of it: tensor.clone(), or tensor.resolve_neg().resolve_conj()',
  );
}

/** PyTorch swaps the bytes of a storage by the word size of its own dtype, not of the tensor's. */
function checkByteOrder({ key, data, dtype }: Storage, read: StoredDtype, refuse: Refuse): void {
  const words = wordBytesOf(dtype);
  if (!data.isBigEndian || wordBytesOf(read) === words) return;
  throw refuse(
    'storage-words',
    `reads ${read} from storage ${key} of a big-endian file, whose words have ${exactBytesText(words)}`,
    'save it on a little-endian machine',
  );
}

/** PyTorch fails on a tensor that requires gradients if its dtype cannot have them. */
export function checkGradient(required: PickleValue, dtype: StoredDtype, refuse: Refuse): void {
  const { kind } = STORED_DTYPES[dtype];
  if (required === false) return;
  if (required === true && (kind === 'float' || kind === 'complex')) return;
  throw refuse(
    'tensor-gradient',
    `makes a tensor of type ${dtype} with requires_grad ${pickleValueText(required)}; expected False, or True for floats`,
  );
}

interface Geometry {
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

function numbers(
  [offset]: readonly [PickleValue],
  sizes: readonly PickleValue[],
  strides: readonly PickleValue[],
  refuse: Refuse,
): Geometry {
  if (
    !isNatural(offset) ||
    !areNatural(sizes) ||
    !areNatural(strides) ||
    sizes.length !== strides.length
  ) {
    const list = (values: readonly PickleValue[]) =>
      `(${values.slice(0, MAX_RANK).map(pickleValueText).join(', ')})`;
    throw refuse(
      'tensor-numbers',
      `rebuilds a tensor at offset ${pickleValueText(offset)} with sizes ${list(sizes)} and strides ${list(strides)}`,
    );
  }
  if (sizes.length > MAX_RANK) {
    throw refuse('tensor-rank', `rebuilds a tensor of ${sizes.length} dimensions`);
  }
  return { offset, shape: sizes, strides };
}

const areNatural = (values: readonly PickleValue[]): values is readonly number[] =>
  values.every(isNatural);

function place(
  storage: Storage,
  dtype: StoredDtype,
  { offset, shape, strides }: Geometry,
  refuse: Refuse,
): StoredTensor {
  const elements = shape.includes(0) ? 0 : elementCount(shape);
  const bytes = elements === undefined ? undefined : storedBytes(elements, dtype);
  if (elements === undefined || bytes === undefined) {
    throw refuse('tensor-elements', `rebuilds a tensor of sizes (${shape.join(', ')})`);
  }
  const storageBytes = storage.length * elementBytes(storage.dtype);
  const capacity = Math.floor(storageBytes / elementBytes(dtype));
  const last = elements === 0 ? -1 : lastElement(offset, shape, strides);
  if (last >= capacity) {
    throw refuse(
      'tensor-bounds',
      `rebuilds a tensor that reaches element ${last} of storage ${storage.key}, which has ${capacity}`,
    );
  }
  if (elements > Math.max(capacity, MAX_EXPANDED)) {
    throw refuse(
      'tensor-amplification',
      `makes ${elements} elements out of the ${capacity} of storage ${storage.key}`,
      'save a contiguous copy, or the smaller tensor that it was expanded from',
    );
  }
  return {
    kind: 'tensor',
    dtype,
    shape,
    elements,
    strides,
    offset: elements === 0 ? 0 : offset + firstElement(storage, dtype, refuse),
    storage: storage.data,
    bytes,
  };
}

/** Start of a storage in its bytes, in elements of the dtype that is read. */
function firstElement({ key, start, dtype }: Storage, read: StoredDtype, refuse: Refuse): number {
  const bytes = start * elementBytes(dtype);
  const first = bytes / elementBytes(read);
  if (Number.isInteger(first)) return first;
  throw refuse(
    'tensor-view',
    `reads ${read} from byte ${bytes} of storage ${key} on, which is not a multiple of ${exactBytesText(elementBytes(read))}`,
    'save a copy of it: tensor.clone()',
  );
}

/** Highest element index in the storage. A bigint only if a number would not be exact. */
function lastElement(
  offset: number,
  shape: readonly number[],
  strides: readonly number[],
): number | bigint {
  // All terms are ≥ 0, so a safe sum was safe at each step.
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * (strides[axis] ?? 0), offset);
  if (Number.isSafeInteger(last)) return last;
  return shape.reduce(
    (sum, size, axis) => sum + BigInt(size - 1) * BigInt(strides[axis] ?? 0),
    BigInt(offset),
  );
}
