/**
 * Values of a pickle as plain data, without behaviour. Every object in a checkpoint becomes one of these; the
 * classes that the file names are never looked up.
 */
import type { StoredDtype } from '../../../tensor/dtype.js';
import type { StoredBytes, StoredTensor } from '../../stored-tensor.js';

/** Operations on the entries of a dict, common to Map and `Table`. */
export interface Entries extends Iterable<[Value, Value]> {
  readonly size: number;
  has(key: Value): boolean;
  get(key: Value): Value | undefined;
  set(key: Value, value: Value): unknown;
  keys(): Iterable<Value>;
  values(): Iterable<Value>;
}

/** Operations on the members of a set, common to Set and `Members`. */
export interface Items extends Iterable<Value> {
  readonly size: number;
  add(item: Value): unknown;
}

/** Safe integers are numbers, others bigints; a float is always a `Float`. */
export type Value =
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
  readonly items: Value[];
}

export interface Tuple {
  readonly kind: 'tuple';
  readonly items: readonly Value[];
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
  state: Value | undefined;
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

type Kinded = Exclude<Value, null | boolean | number | bigint | string | Uint8Array>;

/** Whether a value is an object of the given kind. */
export function isKind<K extends Kinded['kind']>(
  value: Value,
  kind: K,
): value is Extract<Kinded, { kind: K }> {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === kind;
}

export function nameOf(value: Value): string {
  if (value === null) return 'None';
  if (value instanceof Uint8Array) return 'bytes';
  if (typeof value === 'object') return `a ${value.kind}`;
  return typeof value === 'string' ? 'a text' : `${value}`;
}
