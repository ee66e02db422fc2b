/** Entries of a PyTorch file other than the model's tensors, as plain data of bounded size. */
import { decodeValues } from '../base/tensor/decode-values.js';
import type { StoredDtype } from '../base/tensor/dtype.js';
import { STORED_DTYPES } from '../base/tensor/dtype.js';
import type { StoredTensor } from './stored-tensor.js';
import type { Dict, Opaque, PickleValue } from './torch/pickle/values.js';
import { isKind } from './torch/pickle/values.js';

/** Dtypes by numpy type code: kind and number of bytes. */
const NUMPY_DTYPES: ReadonlyMap<PickleValue | undefined, StoredDtype> = new Map([
  ['b1', 'BOOL'],
  ['i1', 'I8'],
  ['i2', 'I16'],
  ['i4', 'I32'],
  ['i8', 'I64'],
  ['u1', 'U8'],
  ['u2', 'U16'],
  ['u4', 'U32'],
  ['u8', 'U64'],
  ['f2', 'F16'],
  ['f4', 'F32'],
  ['f8', 'F64'],
]);

/** Type of a loss or step that a training loop saves: `numpy.float64(0.25)`. */
const SCALAR = /^numpy\._?core\.multiarray\.scalar$/;

/** Value of a numpy scalar, integers beyond ±2^53 rounded; undefined for other objects, dtypes and byte orders. */
function numpyScalar({ type, args }: Opaque): number | undefined {
  const [dtype = null, bytes] = args.items;
  if (!SCALAR.test(type) || !(bytes instanceof Uint8Array)) return undefined;
  const stored = isKind(dtype, 'opaque') ? littleEndianDtype(dtype) : undefined;
  if (stored === undefined || bytes.length * 8 !== STORED_DTYPES[stored].bits) return undefined;
  const target = new Float64Array(1);
  decodeValues(stored, bytes, target);
  return target[0];
}

/** Dtype from `numpy.dtype('f8', False, True)`; its state has the byte order at index 1. */
function littleEndianDtype({ args, state = null }: Opaque): StoredDtype | undefined {
  const order = isKind(state, 'tuple') ? state.items[1] : undefined;
  return order === '<' || order === '|' ? NUMPY_DTYPES.get(args.items[0]) : undefined;
}

/** JSON without bigint. @fraction */
export type JsonLike =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonLike[]
  | { readonly [key: string]: JsonLike };

export interface ContentEntry {
  /** Python name of the type: `int`, `dict`, `argparse.Namespace`, `torch.Tensor`. */
  readonly type: string;
  /**
   * The value. Values that JSON cannot express become an object with one key: `{"bytes": 12}` (number of
   * bytes), `{"tensor": {dtype, shape}}`, `{"object": TYPE, "args": […], "state": …}`, `{"global": NAME}`. A
   * dict with other keys than strings becomes a list of pairs, a set or tuple a list, a numpy scalar its value.
   */
  readonly value: JsonLike;
  /** Whether only the beginning of the value is included. */
  readonly truncated?: true;
  /** Number of distinct tensors in the value, if any. @count */
  readonly tensors?: number;
  /** Bytes of the tensors in it. @count */
  readonly tensorBytes?: number;
}

/** Size limits of a written value. */
export interface JsonLikeLimits {
  readonly nodes: number;
  readonly depth: number;
  /** Maximum characters of a string. */
  readonly text: number;
}

const SHOWN: JsonLikeLimits = { nodes: 1000, depth: 16, text: 1000 };
/** Maximum nodes of all entries together. */
const ALL_NODES = 20_000;
/** Maximum values searched for tensors; shared values can make the search endless. */
const ALL_STEPS = 1_000_000;

/** Entries by key. The size of the result is bounded for any file. */
export function describeContent(
  content: ReadonlyMap<string, PickleValue>,
): ReadonlyMap<string, ContentEntry> {
  const left = { nodes: ALL_NODES, steps: ALL_STEPS };
  const entries = new Map<string, ContentEntry>();
  for (const [key, value] of content) {
    const writer = new PlainWriter({ ...SHOWN, nodes: Math.min(SHOWN.nodes, left.nodes) });
    const plain = writer.plain(value, 0);
    left.nodes -= writer.written;
    entries.set(key, {
      type: typeName(value),
      value: plain,
      ...(writer.truncated && { truncated: true as const }),
      ...tensorsWithin(value, left),
    });
  }
  return entries;
}

/** A value as plain data; undefined if it exceeds the limits. */
export function jsonLikeOf(value: PickleValue, limits: JsonLikeLimits): JsonLike | undefined {
  const writer = new PlainWriter(limits);
  const plain = writer.plain(value, 0);
  return writer.truncated ? undefined : plain;
}

export function typeName(value: PickleValue): string {
  if (value === null) return 'None';
  if (typeof value !== 'object') return PRIMITIVES[typeof value as keyof typeof PRIMITIVES];
  if (value instanceof Uint8Array) return 'bytes';
  if (value.kind === 'dict' || value.kind === 'set' || value.kind === 'opaque') return value.type;
  return KINDS[value.kind];
}

const PRIMITIVES = { boolean: 'bool', number: 'int', bigint: 'int', string: 'str' } as const;

const KINDS = {
  float: 'float',
  list: 'list',
  tuple: 'tuple',
  global: 'type',
  storage: 'torch.storage',
  tensor: 'torch.Tensor',
} as const;

/** Converts values to plain data within limits. */
class PlainWriter {
  truncated = false;
  written = 0;
  readonly #limits: JsonLikeLimits;

  constructor(limits: JsonLikeLimits) {
    this.#limits = limits;
  }

  /** @param depth Depth of the value in its entry; bounds the recursion. */
  plain(value: PickleValue, depth: number): JsonLike {
    this.written++;
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'number' || typeof value === 'bigint') return value;
    if (typeof value === 'string') return this.#text(value);
    if (value instanceof Uint8Array) return { bytes: value.length };
    switch (value.kind) {
      case 'float':
        return value.value;
      case 'list':
      case 'tuple':
      case 'set':
        return this.#list(value.items, depth);
      case 'dict':
        return this.#dict(value, depth);
      case 'opaque':
        return numpyScalar(value) ?? this.#object(value, depth);
      case 'global':
        return { global: this.#text(`${value.module}.${value.name}`) };
      case 'storage':
        return { storage: this.#text(value.key) };
      case 'tensor':
        return { tensor: { dtype: value.dtype, shape: value.shape } };
    }
  }

  #text(text: string): string {
    if (text.length <= this.#limits.text) return text;
    this.truncated = true;
    return text.slice(0, this.#limits.text);
  }

  #list(items: Iterable<PickleValue>, depth: number): JsonLike[] {
    const plain: JsonLike[] = [];
    for (const item of items) {
      if (this.#isSpent(depth)) break;
      plain.push(this.plain(item, depth + 1));
    }
    return plain;
  }

  #dict({ entries }: Dict, depth: number): JsonLike {
    const pairs: [JsonLike, JsonLike][] = [];
    for (const [key, value] of entries) {
      if (this.#isSpent(depth)) break;
      pairs.push([this.plain(key, depth + 1), this.plain(value, depth + 1)]);
    }
    const names = pairs.flatMap(([key]) => (isName(key) ? [String(key)] : []));
    const isObject = new Set(names).size === pairs.length;
    // Object.fromEntries also creates a key `__proto__`, an assignment would not.
    return isObject ? Object.fromEntries(pairs.map(([, value], at) => [names[at], value])) : pairs;
  }

  #object({ type, args, state }: Opaque, depth: number): JsonLike {
    return {
      object: this.#text(type),
      ...(args.items.length > 0 && { args: this.#list(args.items, depth) }),
      ...(state !== undefined && !this.#isSpent(depth) && { state: this.plain(state, depth + 1) }),
    };
  }

  /** Whether a limit is reached at this depth; if so, marks the value as truncated. */
  #isSpent(depth: number): boolean {
    const spent = depth >= this.#limits.depth || this.written >= this.#limits.nodes;
    if (spent) this.truncated = true;
    return spent;
  }
}

const isName = (key: JsonLike) => typeof key === 'string' || typeof key === 'number';

/** Tensors inside a value, found without recursion; the search stops when no steps are left. */
function tensorsWithin(
  root: PickleValue,
  left: { steps: number },
): Pick<ContentEntry, 'tensors' | 'tensorBytes'> {
  const tensors = new Set<StoredTensor>();
  const seen = new Set<PickleValue>();
  const waiting: PickleValue[] = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) continue;
    if (seen.has(value)) continue;
    seen.add(value);
    if (value.kind === 'tensor') tensors.add(value);
    for (const part of nestedValues(value)) {
      if (left.steps-- <= 0) return {};
      waiting.push(part);
    }
  }
  if (tensors.size === 0) return {};
  return {
    tensors: tensors.size,
    tensorBytes: [...tensors].reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

function* nestedValues(value: Exclude<PickleValue & object, Uint8Array>): Generator<PickleValue> {
  if ('items' in value) yield* value.items;
  else if ('entries' in value) {
    for (const entry of value.entries) yield* entry;
  } else if (value.kind === 'opaque') {
    yield* value.args.items;
    if (value.state !== undefined) yield value.state;
  }
}
