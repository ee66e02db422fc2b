/**
 * Values of a pickle as plain data, without behaviour. Every object in a checkpoint becomes one of these; the
 * classes that the file names are never looked up.
 */
import type { StoredDtype } from '../../../base/tensor/dtype.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import type { StoredBytes, StoredTensor } from '../../stored-tensor.js';

/** Operations on the entries of a dict, common to Map and `Table`. */
export interface Entries extends Iterable<[PickleValue, PickleValue]> {
  readonly size: number;
  has(key: PickleValue): boolean;
  get(key: PickleValue): PickleValue | undefined;
  set(key: PickleValue, value: PickleValue): unknown;
  keys(): Iterable<PickleValue>;
  values(): Iterable<PickleValue>;
}

/** Operations on the members of a set, common to Set and `Members`. */
export interface Items extends Iterable<PickleValue> {
  readonly size: number;
  add(item: PickleValue): unknown;
}

/** Safe integers are numbers, others bigints; a float is always a `Float`. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Float
  | List
  | Tuple
  | Dict
  | SetOf
  | Global
  | Opaque
  | Storage
  | StoredTensor;

/** A float, distinct from integers: 80.0 is not a valid size. */
export interface Float {
  readonly kind: 'float';
  readonly value: number;
}

export interface List {
  readonly kind: 'list';
  items: PickleValue[];
}

export interface Tuple {
  readonly kind: 'tuple';
  readonly items: readonly PickleValue[];
  /** Whether Python can hash it: it contains no list, dict or set. */
  readonly hashable: boolean;
}

/** A dict or a subclass: OrderedDict, Counter, defaultdict. */
export interface Dict {
  readonly kind: 'dict';
  /** `dict`, `collections.OrderedDict`, … */
  readonly type: string;
  readonly factory?: Global | undefined;
  /** Keys that Python treats as equal (1, 1.0, True) are one key here too. */
  readonly entries: Entries;
}

export interface SetOf {
  readonly kind: 'set';
  readonly type: 'set' | 'frozenset';
  readonly items: Items;
}

/** A class or function, by its name in the allow-list. */
export interface Global {
  readonly kind: 'global';
  readonly module: string;
  readonly name: string;
}

/** An object of an allowed class that is not interpreted: its parts as written. */
export interface Opaque {
  readonly kind: 'opaque';
  readonly type: string;
  /** Construction: by calling its class, or by `__new__`. */
  readonly made: 'reduce' | 'newobj';
  readonly of: Global;
  readonly args: Tuple;
  /** State set by BUILD. */
  state: PickleValue | undefined;
}

/** A storage of a PyTorch file, or the part used by a legacy view. */
export interface Storage {
  readonly kind: 'storage';
  readonly key: string;
  /** Undefined for an untyped storage, whose elements are bytes. */
  readonly dtype: StoredDtype | undefined;
  /** First element of the view; 0 without a view. */
  readonly start: number;
  /** Number of elements. */
  readonly length: number;
  /** Bytes of the complete storage. */
  readonly data: StoredBytes;
}

type Kinded = Exclude<PickleValue, null | boolean | number | bigint | string | Uint8Array>;

/** Whether a value is an object of the given kind. */
export function isKind<K extends Kinded['kind']>(
  value: PickleValue,
  kind: K,
): value is Extract<Kinded, { kind: K }> {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === kind;
}

export function globalName(value: PickleValue): string {
  if (value === null) return 'None';
  if (value instanceof Uint8Array) return 'bytes';
  if (typeof value === 'object') return `a ${value.kind}`;
  return typeof value === 'string' ? 'a text' : `${value}`;
}

/**
 * Entries of a dict from a file. JavaScript hashes numbers and digit strings without a seed, so a file could
 * choose keys that collide and make every look-up slow. Such keys are stored here as strings with a prefix,
 * which are hashed with a seed.
 */
export class Table implements Entries {
  readonly #values = new Map<unknown, PickleValue>();

  constructor(entries: Iterable<[PickleValue, PickleValue]> = []) {
    for (const [key, value] of entries) this.set(key, value);
  }

  get size(): number {
    return this.#values.size;
  }

  has(key: PickleValue): boolean {
    return this.#values.has(slotOf(key));
  }

  get(key: PickleValue): PickleValue | undefined {
    return this.#values.get(slotOf(key));
  }

  set(key: PickleValue, value: PickleValue): void {
    this.#values.set(slotOf(key), value);
  }

  *keys(): Generator<PickleValue> {
    for (const slot of this.#values.keys()) yield dictKey(slot);
  }

  values(): Iterable<PickleValue> {
    return this.#values.values();
  }

  *[Symbol.iterator](): Generator<[PickleValue, PickleValue]> {
    for (const [slot, value] of this.#values) yield [dictKey(slot), value];
  }
}

/** Members of a set from a file. */
export class Members implements Items {
  readonly #table = new Table();

  constructor(items: Iterable<PickleValue> = []) {
    for (const item of items) this.add(item);
  }

  get size(): number {
    return this.#table.size;
  }

  add(item: PickleValue): void {
    this.#table.set(item, null);
  }

  [Symbol.iterator](): Iterator<PickleValue> {
    return this.#table.keys()[Symbol.iterator]();
  }
}

const INTEGER = '#';
const TEXT = '$';

/** Key in the table: one string for all numbers that Python treats as equal (1, 1.0 and True), else the key itself. */
function slotOf(key: PickleValue): unknown {
  if (typeof key === 'boolean') return INTEGER + Number(key);
  if (isKind(key, 'float') && Number.isSafeInteger(key.value)) return INTEGER + key.value;
  if (typeof key === 'number' || typeof key === 'bigint') return `${INTEGER}${key}`;
  return typeof key === 'string' && isSigned(key) ? TEXT + key : key;
}

/** Whether a text begins with one of the two prefixes or a digit. */
function isSigned(text: string): boolean {
  const first = text.charCodeAt(0);
  return first === 0x23 || first === 0x24 || (first >= 0x30 && first <= 0x39);
}

function dictKey(slot: unknown): PickleValue {
  if (typeof slot !== 'string') return slot as PickleValue;
  if (slot.startsWith(TEXT)) return slot.slice(1);
  if (!slot.startsWith(INTEGER)) return slot;
  const number = Number(slot.slice(1));
  return Number.isSafeInteger(number) ? number : BigInt(slot.slice(1));
}

/** An object that is kept as data. */
export function opaque(of: Global, args: Tuple, made: Opaque['made']): Opaque {
  return { kind: 'opaque', type: `${of.module}.${of.name}`, made, of, args, state: undefined };
}

/** Whether a value is a safe integer ≥ 0. Unsafe integers are bigints. */
export const isNatural = (value: PickleValue | undefined): value is number =>
  typeof value === 'number' && value >= 0;

/** Bytes of an element of a storage; of an untyped one, 1. */
export const elementBytes = (dtype: StoredDtype | undefined): number =>
  dtype ? STORED_DTYPES[dtype].bits / 8 : 1;

/** Bytes of the words that a big-endian storage swaps. */
export const wordBytesOf = (dtype: StoredDtype | undefined) =>
  dtype ? STORED_DTYPES[dtype].wordBytes : 1;
