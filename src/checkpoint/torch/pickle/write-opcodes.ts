import type { Chunks } from '../../../files/write-whole.js';
import type { Shape, StoredDtype } from '../../../tensor/dtype.js';
import type { StoredBytes } from '../../stored-tensor.js';
import type { Float, Global, Opaque, SetOf, Storage, Value } from './values.js';

/** Opcodes of pickle protocol 2, from Python's Lib/pickletools.py. */
const OPCODES = {
  PROTO: 0x80,
  STOP: 0x2e,
  MARK: 0x28,
  NONE: 0x4e,
  NEWTRUE: 0x88,
  NEWFALSE: 0x89,
  BININT: 0x4a,
  BININT1: 0x4b,
  BININT2: 0x4d,
  LONG1: 0x8a,
  BINFLOAT: 0x47,
  BINUNICODE: 0x58,
  EMPTY_LIST: 0x5d,
  EMPTY_DICT: 0x7d,
  EMPTY_TUPLE: 0x29,
  TUPLE: 0x74,
  TUPLE1: 0x85,
  TUPLE2: 0x86,
  TUPLE3: 0x87,
  APPEND: 0x61,
  APPENDS: 0x65,
  SETITEM: 0x73,
  SETITEMS: 0x75,
  BINPUT: 0x71,
  LONG_BINPUT: 0x72,
  BINGET: 0x68,
  LONG_BINGET: 0x6a,
  GLOBAL: 0x63,
  REDUCE: 0x52,
  BUILD: 0x62,
  NEWOBJ: 0x81,
  BINPERSID: 0x51,
} as const;

export type Opcode = keyof typeof OPCODES;

/** Tuples of up to three items have their own opcodes, without a mark. */
const SHORT_TUPLES: readonly Opcode[] = ['EMPTY_TUPLE', 'TUPLE1', 'TUPLE2', 'TUPLE3'];

/** A growing buffer of opcodes with their arguments, and the memo. */
export class OpcodeWriter {
  #buffer = Buffer.alloc(2 ** 12);
  #length = 0;
  readonly #memo = new Map<unknown, number>();

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  op(opcode: Opcode): void {
    this.#grow(1)[0] = OPCODES[opcode];
  }

  /** Writes the header of protocol 2, which every Python since 2.3 can read. */
  start(): void {
    this.#withNumber('PROTO', 2, 1);
  }

  /** Writes an opcode and a number of `width` bytes. */
  #withNumber(opcode: Opcode, value: number, width: 1 | 2 | 4): void {
    this.op(opcode);
    this.#grow(width).writeUIntLE(value, 0, width);
  }

  /**
   * Writes an integer in the fewest bytes, as Python does.
   * @throws RangeError for fractions, and beyond 255 bytes.
   */
  int(value: number | bigint): void {
    if (typeof value === 'number' && !Number.isInteger(value))
      throw new RangeError(`${value} is no integer`);
    if (value >= 0 && value < 2 ** 8) this.#withNumber('BININT1', Number(value), 1);
    else if (value >= 0 && value < 2 ** 16) this.#withNumber('BININT2', Number(value), 2);
    else if (value >= -(2 ** 31) && value < 2 ** 31) {
      this.#withNumber('BININT', Number(value) >>> 0, 4);
    } else this.#long(BigInt(value));
  }

  /** Two's complement, in the fewest bytes that keep the sign. */
  #long(value: bigint): void {
    const bits = (value < 0n ? ~value : value).toString(2).length + 1;
    const width = Math.ceil(bits / 8);
    this.#withNumber('LONG1', width, 1);
    const digits = BigInt.asUintN(8 * width, value)
      .toString(16)
      .padStart(2 * width, '0');
    this.#append(Buffer.from(digits, 'hex').reverse());
  }

  float(value: number): void {
    this.op('BINFLOAT');
    this.#grow(8).writeDoubleBE(value);
  }

  text(value: string): void {
    const bytes = Buffer.from(value);
    this.#withNumber('BINUNICODE', bytes.length, 4);
    this.#append(bytes);
  }

  global(module: string, name: string): void {
    this.op('GLOBAL');
    this.#append(Buffer.from(`${module}\n${name}\n`));
  }

  /** Writes a tuple, calling `write` for each item. */
  tuple<Item>(items: readonly Item[], write: (item: Item) => void): void {
    const short = SHORT_TUPLES[items.length];
    if (short === undefined) this.op('MARK');
    for (const item of items) write(item);
    this.op(short ?? 'TUPLE');
  }

  /** Memoizes the last written value under `key`: the object itself, or a text. */
  remember(key: unknown): void {
    const index = this.#memo.size;
    this.#memo.set(key, index);
    if (index < 2 ** 8) this.#withNumber('BINPUT', index, 1);
    else this.#withNumber('LONG_BINPUT', index, 4);
  }

  /** Writes a reference to a memoized value; false if there is none. */
  recall(key: unknown): boolean {
    const index = this.#memo.get(key);
    if (index === undefined) return false;
    if (index < 2 ** 8) this.#withNumber('BINGET', index, 1);
    else this.#withNumber('LONG_BINGET', index, 4);
    return true;
  }

  #append(bytes: Buffer): void {
    bytes.copy(this.#grow(bytes.length));
  }

  /** Appends `count` bytes and returns them to be filled. */
  #grow(count: number): Buffer {
    const start = this.#length;
    this.#length += count;
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(this.#length, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, start);
      this.#buffer = larger;
    }
    return this.#buffer.subarray(start, this.#length);
  }
}

export interface Leaf {
  readonly leaf: WritableTensor | Storage;
  /** Keys from the root: `model.embed.weight`. */
  readonly name: string;
}

/** Yields every tensor and storage in a value once, in the order in which they are written. */
export function* leavesOf(root: Writable): Generator<Leaf, void, void> {
  const seen = new Set<Writable>();
  const stack = [{ value: root, name: '' }];
  for (let step = stack.pop(); step; step = stack.pop()) {
    const { value, name } = step;
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) continue;
    if (seen.has(value)) continue;
    seen.add(value);
    if (value.kind === 'tensor' || value.kind === 'storage') yield { leaf: value, name };
    // A stack: the last pushed value is visited first.
    for (const [key, part] of partsOf(value).reverse()) {
      stack.push({ value: part, name: name && key ? `${name}.${key}` : name || key });
    }
  }
}

/** Members of a container, each with the text of its key. */
function partsOf(value: Exclude<Extract<Writable, object>, Uint8Array>): [string, Writable][] {
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

/** A `Value`, or a tree with other tensors. */
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

/** A tensor stored in a file, or one whose bytes are computed during the write. */
export interface WritableTensor {
  readonly kind: 'tensor';
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  /** Strides in elements, one per dimension. */
  readonly strides: readonly number[];
  /** Index of the first element in the storage. */
  readonly offset: number;
  /** Tensors that share a storage refer to the same object; it is written once and completely. */
  readonly storage: WritableBytes;
}

export type WritableBytes = StoredBytes | NewBytes;

export interface NewBytes {
  readonly bytes: number;
  /** Yields the bytes in order, little-endian; called once. */
  chunks(): Chunks;
}
