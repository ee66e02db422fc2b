/** What a PyTorch file holds beside the tensors, as plain data of bounded size. */
import { decode } from '../tensor/decode.js';
import type { StoredDtype } from '../tensor/dtype.js';
import { STORED_DTYPES } from '../tensor/dtype.js';
import type { StoredTensor } from './stored-tensor.js';
import { isKind } from './torch/pickle/pickle-machine.js';
import type { Dict, Opaque, Value } from './torch/pickle/values.js';

/** By numpy's codes: a kind, and a number of bytes. */
const NUMPY_DTYPES: ReadonlyMap<Value | undefined, StoredDtype> = new Map([
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

/** What a training loop saves of a loss or a step: `numpy.float64(0.25)`. */
const SCALAR = /^numpy\._?core\.multiarray\.scalar$/;

/**
 * The value of a numpy scalar, integers beyond ±2^53 rounded; undefined when it is none, or none of a usual
 * little-endian type.
 */
function numpyScalar({ type, args }: Opaque): number | undefined {
  const [dtype = null, bytes] = args.items;
  if (!SCALAR.test(type) || !(bytes instanceof Uint8Array)) return undefined;
  const stored = isKind(dtype, 'opaque') ? littleEndianDtype(dtype) : undefined;
  if (stored === undefined || bytes.length * 8 !== STORED_DTYPES[stored].bits) return undefined;
  const target = new Float64Array(1);
  decode(stored, bytes, target);
  return target[0];
}

/** `numpy.dtype('f8', False, True)`, whose state has the order of bytes in its second place. */
function littleEndianDtype({ args, state = null }: Opaque): StoredDtype | undefined {
  const order = isKind(state, 'tuple') ? state.items[1] : undefined;
  return order === '<' || order === '|' ? NUMPY_DTYPES.get(args.items[0]) : undefined;
}

/** JSON, apart from bigints. */
export type Plain =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly Plain[]
  | { readonly [key: string]: Plain };

export interface ContentEntry {
  /** Python's name of its type: `int`, `dict`, `argparse.Namespace`, `torch.Tensor`. */
  readonly type: string;
  /**
   * Its value. What is no JSON becomes an object of one key: `{"bytes": 12}` for that many bytes,
   * `{"tensor": {dtype, shape}}`, `{"object": TYPE, "args": […], "state": …}`, `{"global": NAME}`; a dict
   * whose keys are no names a list of pairs; sets and tuples lists; a numpy scalar its value.
   */
  readonly value: Plain;
  /** Whether the value is only the beginning of what is there. */
  readonly truncated?: true;
  /** Distinct tensors within it, when there are any. */
  readonly tensors?: number;
  readonly tensorBytes?: number;
}

/** How much of a value is written. */
export interface PlainLimits {
  readonly nodes: number;
  readonly depth: number;
  /** Characters of a text. */
  readonly text: number;
}

/** What is shown of one entry. */
const SHOWN: PlainLimits = { nodes: 1000, depth: 16, text: 1000 };
/** Most values that are shown of all entries together. */
const ALL_NODES = 20_000;
/** Most values that are looked at for tensors: values can be shared, so that they have no end. */
const ALL_STEPS = 1_000_000;

/** The entries by their keys. A file can make its values as many and as deep as it likes, not the result. */
export function describeContent(
  content: ReadonlyMap<string, Value>,
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

/** A value as plain data; undefined when it is more than the limits allow. */
export function plainOf(value: Value, limits: PlainLimits): Plain | undefined {
  const writer = new PlainWriter(limits);
  const plain = writer.plain(value, 0);
  return writer.truncated ? undefined : plain;
}

/** Python's name of the type of a value. */
export function typeName(value: Value): string {
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

/** Turns values into plain data, as far as its limits let it. */
class PlainWriter {
  truncated = false;
  written = 0;
  readonly #limits: PlainLimits;

  constructor(limits: PlainLimits) {
    this.#limits = limits;
  }

  /** @param depth Of the value in its entry, which bounds the recursion. */
  plain(value: Value, depth: number): Plain {
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

  #list(items: Iterable<Value>, depth: number): Plain[] {
    const plain: Plain[] = [];
    for (const item of items) {
      if (this.#isSpent(depth)) break;
      plain.push(this.plain(item, depth + 1));
    }
    return plain;
  }

  #dict({ entries }: Dict, depth: number): Plain {
    const pairs: [Plain, Plain][] = [];
    for (const [key, value] of entries) {
      if (this.#isSpent(depth)) break;
      pairs.push([this.plain(key, depth + 1), this.plain(value, depth + 1)]);
    }
    const names = pairs.flatMap(([key]) => (isName(key) ? [String(key)] : []));
    const isObject = new Set(names).size === pairs.length;
    // It makes a key of `__proto__` too, where an assignment would not.
    return isObject ? Object.fromEntries(pairs.map(([, value], at) => [names[at], value])) : pairs;
  }

  #object({ type, args, state }: Opaque, depth: number): Plain {
    return {
      object: this.#text(type),
      ...(args.items.length > 0 && { args: this.#list(args.items, depth) }),
      ...(state !== undefined && !this.#isSpent(depth) && { state: this.plain(state, depth + 1) }),
    };
  }

  /** Whether nothing further may stand within a value at this depth; if so, that is noted. */
  #isSpent(depth: number): boolean {
    const spent = depth >= this.#limits.depth || this.written >= this.#limits.nodes;
    if (spent) this.truncated = true;
    return spent;
  }
}

const isName = (key: Plain) => typeof key === 'string' || typeof key === 'number';

/** The tensors below a value, found without recursion; none when there is no step left to look further. */
function tensorsWithin(
  root: Value,
  left: { steps: number },
): Pick<ContentEntry, 'tensors' | 'tensorBytes'> {
  const tensors = new Set<StoredTensor>();
  const seen = new Set<Value>();
  const waiting: Value[] = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) continue;
    if (seen.has(value)) continue;
    seen.add(value);
    if (value.kind === 'tensor') tensors.add(value);
    for (const part of partsOf(value)) {
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

function* partsOf(value: Exclude<Value & object, Uint8Array>): Generator<Value> {
  if ('items' in value) yield* value.items;
  else if ('entries' in value) {
    for (const entry of value.entries) yield* entry;
  } else if (value.kind === 'opaque') {
    yield* value.args.items;
    if (value.state !== undefined) yield value.state;
  }
}
