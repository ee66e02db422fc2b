/**
 * What a pickle holds, as data. Every object that a checkpoint may contain becomes one of these; none of
 * them has behaviour, and the classes that the file names are never looked up anywhere.
 */
import type { StoredDtype } from '../../../tensor/dtype.js';
import type { StoredBytes, StoredTensor } from '../../stored-tensor.js';

/** What is read of the entries of a dict, and how they are set: a Map has it, and so has a `Table`. */
export interface Entries extends Iterable<[Value, Value]> {
  readonly size: number;
  has(key: Value): boolean;
  get(key: Value): Value | undefined;
  set(key: Value, value: Value): unknown;
  keys(): Iterable<Value>;
  values(): Iterable<Value>;
}

/** What is read of the members of a set, and how they are added: a Set has it, and so has `Members`. */
export interface Items extends Iterable<Value> {
  readonly size: number;
  add(item: Value): unknown;
}

/** Integers are numbers when they are safe, else bigints; a float is always a `Float`. */
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

/** A float, kept apart from the integers: 80.0 is no size. */
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
  /** Whether Python could hash it: no list, dict or set is in it. */
  readonly hashable: boolean;
}

/** A dict, or one of its kinds: OrderedDict, Counter, defaultdict. */
export interface Dict {
  readonly kind: 'dict';
  /** `dict`, `collections.OrderedDict`, … */
  readonly type: string;
  /** What a defaultdict makes of a key that it does not have. */
  readonly factory?: Global | undefined;
  /** Keys that Python holds equal (1, 1.0, True) are one key here too. */
  readonly entries: Entries;
}

export interface SetOf {
  readonly kind: 'set';
  readonly type: 'set' | 'frozenset';
  readonly items: Items;
}

/** A class or function by its name, as it stands in the allow-list. */
export interface Global {
  readonly kind: 'global';
  readonly module: string;
  readonly name: string;
}

/** An object whose class is allowed, but means nothing here: its parts, as they were written. */
export interface Opaque {
  readonly kind: 'opaque';
  /** The dotted name of its class. */
  readonly type: string;
  /** How it was made: by calling its class, or by `__new__`. */
  readonly made: 'reduce' | 'newobj';
  readonly of: Global;
  readonly args: Tuple;
  /** What BUILD gave it. */
  state: Value | undefined;
}

/** A storage of a PyTorch file, or the part of it that a legacy view shows. */
export interface Storage {
  readonly kind: 'storage';
  readonly key: string;
  /** Undefined when it is untyped; its elements are bytes then. */
  readonly dtype: StoredDtype | undefined;
  /** First element of the view; 0 for the whole. */
  readonly start: number;
  /** In elements. */
  readonly length: number;
  /** The bytes of the whole storage. */
  readonly data: StoredBytes;
}
