/** What can be written as a PyTorch file: all that can be read from one, and tensors that are yet to be. */
import type { Chunks } from '../../../files/byte-sink.js';
import type { Shape, StoredDtype } from '../../../tensor/dtype.js';
import type { StoredBytes } from '../../stored-tensor.js';
import type { Float, Global, Opaque, SetOf, Storage, Value } from './values.js';

/** `Value` is one of these, and so are trees of other tensors. */
export type Writable =
  | Exclude<Value, object>
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

export interface WritableDict {
  readonly kind: 'dict';
  /** `dict`, `collections.OrderedDict`, … */
  readonly type: string;
  /** Of a defaultdict. */
  readonly factory?: Global | undefined;
  readonly entries: Iterable<readonly [Writable, Writable]>;
}

export interface WritableSet {
  readonly kind: 'set';
  readonly type: SetOf['type'];
  readonly items: Iterable<Writable>;
}

export interface WritableObject {
  readonly kind: 'opaque';
  readonly made: Opaque['made'];
  readonly of: Global;
  readonly args: WritableSequence;
  readonly state?: Writable | undefined;
}

/** A tensor: one that lies in a file, or one whose bytes are made while they are written. */
export interface WritableTensor {
  readonly kind: 'tensor';
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  /** In elements, one for each dimension. */
  readonly strides: readonly number[];
  /** Of its first element in the storage, in elements. */
  readonly offset: number;
  /** Tensors share a storage by holding the same object; it is written once, and whole. */
  readonly storage: WritableBytes;
}

export type WritableBytes = StoredBytes | NewBytes;

/** Bytes that lie in no file yet. */
export interface NewBytes {
  readonly bytes: number;
  /** The bytes in order, little-endian; called once. */
  chunks(): Chunks;
}
