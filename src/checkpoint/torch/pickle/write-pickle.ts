/**
 * Writes values as a pickle of protocol 2, as `torch.save` does. A value that is used several times is written
 * once and then referenced.
 */
import { TORCH_TYPES } from './globals.js';
import type {
  Writable,
  WritableBytes,
  WritableDict,
  WritableObject,
  WritableSequence,
  WritableSet,
  WritableTensor,
  WrittenStorage,
} from './writable.js';

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
class OpcodeWriter {
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
      throw new RangeError(`${value} is not an integer`);
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

/** More than the reader accepts. */
const MAX_NESTING = 500;
/** Items between two marks, as in Python's pickler. */
const BATCH = 1000;
/** Longer texts are rarely names, so they are not memoized. */
const MAX_REMEMBERED_CHARACTERS = 1000;

/**
 * @param storages All storages of the value, by their bytes.
 * @throws Error if a container contains itself, or the nesting is too deep.
 */
export function writePickle(
  value: Writable,
  storages: ReadonlyMap<WritableBytes, WrittenStorage>,
): Uint8Array {
  return new PickleWriter(storages).write(value);
}

class PickleWriter {
  readonly #to = new OpcodeWriter();
  readonly #storages: ReadonlyMap<WritableBytes, WrittenStorage>;
  #depth = 0;

  constructor(storages: ReadonlyMap<WritableBytes, WrittenStorage>) {
    this.#storages = storages;
  }

  write(value: Writable): Uint8Array {
    this.#to.start();
    this.#value(value);
    this.#to.op('STOP');
    return this.#to.bytes;
  }

  #value(value: Writable): void {
    if (typeof value === 'string') this.#text(value);
    else if (typeof value === 'number' || typeof value === 'bigint') this.#to.int(value);
    else if (typeof value === 'boolean') this.#to.op(value ? 'NEWTRUE' : 'NEWFALSE');
    else if (value === null) this.#to.op('NONE');
    else this.#nested(value);
  }

  #nested(value: Extract<Writable, object>): void {
    this.#depth++;
    if (this.#depth > MAX_NESTING) throw new Error(`nested deeper than ${MAX_NESTING} levels`);
    this.#object(value);
    this.#depth--;
  }

  #object(value: Extract<Writable, object>): void {
    if (value instanceof Uint8Array) this.#once(value, () => this.#bytes(value));
    else if (value.kind === 'float') this.#to.float(value.value);
    else if (value.kind === 'global') this.#global(value.module, value.name);
    else if (value.kind === 'storage') this.#storage(this.#storageOf(value.data));
    else this.#once(value, () => this.#shared(value));
  }

  /** Values that Python compares by identity. */
  #shared(
    value: WritableSequence | WritableDict | WritableSet | WritableObject | WritableTensor,
  ): void {
    switch (value.kind) {
      case 'list':
        this.#list(value.items);
        break;
      case 'tuple':
        this.#tuple(value.items);
        break;
      case 'dict':
        this.#dict(value);
        break;
      case 'set':
        this.#set(value);
        break;
      case 'opaque':
        this.#opaque(value);
        break;
      case 'tensor':
        this.#tensor(value);
        break;
    }
  }

  /** Writes a value the first time, and a reference afterwards. */
  #once(key: unknown, write: () => void): void {
    if (this.#to.recall(key)) return;
    write();
    this.#to.remember(key);
  }

  #text(text: string): void {
    if (text.length > MAX_REMEMBERED_CHARACTERS) this.#to.text(text);
    else this.#once(`text ${text}`, () => this.#to.text(text));
  }

  #global(module: string, name: string): void {
    this.#once(`global ${module} ${name}`, () => this.#to.global(module, name));
  }

  #call(module: string, name: string, args: readonly Writable[]): void {
    this.#global(module, name);
    this.#tuple(args);
    this.#to.op('REDUCE');
  }

  /** Protocol 2 has no bytes: they are text with one character per byte. */
  #bytes(bytes: Uint8Array): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    this.#call('_codecs', 'encode', [text, 'latin1']);
  }

  #tuple(items: readonly Writable[]): void {
    this.#to.tuple(items, (item) => this.#value(item));
  }

  #list(items: readonly Writable[]): void {
    this.#to.op('EMPTY_LIST');
    this.#fill(items, (item) => this.#value(item), 'APPEND', 'APPENDS');
  }

  #dict({ type, factory, entries }: WritableDict): void {
    if (type === 'dict') {
      this.#to.op('EMPTY_DICT');
    } else {
      const dot = type.lastIndexOf('.');
      this.#call(type.slice(0, dot), type.slice(dot + 1), factory ? [factory] : []);
    }
    const write = ([key, value]: readonly [Writable, Writable]) => {
      this.#value(key);
      this.#value(value);
    };
    this.#fill([...entries], write, 'SETITEM', 'SETITEMS');
  }

  /** Writes a call of the class with a list, under its module name in protocol 2. */
  #set({ type, items }: WritableSet): void {
    this.#call('__builtin__', type, [{ kind: 'list', items: [...items] }]);
  }

  #fill<Item>(
    items: readonly Item[],
    write: (item: Item) => void,
    one: Opcode,
    several: Opcode,
  ): void {
    for (let start = 0; start < items.length; start += BATCH) {
      const batch = items.slice(start, start + BATCH);
      if (batch.length > 1) this.#to.op('MARK');
      for (const item of batch) write(item);
      this.#to.op(batch.length > 1 ? several : one);
    }
  }

  #opaque({ of, args, made, state }: WritableObject): void {
    this.#global(of.module, of.name);
    this.#value(args);
    this.#to.op(made === 'reduce' ? 'REDUCE' : 'NEWOBJ');
    if (state === undefined) return;
    this.#value(state);
    this.#to.op('BUILD');
  }

  /**
   * Writes `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`, or v3 with the dtype at
   * the end without a typed storage class (torch/_tensor.py, `_reduce_ex_internal`).
   */
  #tensor({ dtype, shape, strides, offset, storage }: WritableTensor): void {
    const to = this.#to;
    const written = this.#storageOf(storage);
    const version = written.isTyped ? 'v2' : 'v3';
    this.#global('torch._utils', `_rebuild_tensor_${version}`);
    const parts = [
      () => this.#storage(written),
      () => to.int(offset),
      () => to.tuple(shape, (size) => to.int(size)),
      () => to.tuple(strides, (stride) => to.int(stride)),
      () => to.op('NEWFALSE'),
      () => this.#call('collections', 'OrderedDict', []),
      ...(written.isTyped ? [] : [() => this.#global('torch', TORCH_TYPES[dtype]?.name ?? dtype)]),
    ];
    to.tuple(parts, (part) => part());
    to.op('REDUCE');
  }

  /** Writes a persistent id: `('storage', class, key, location, length)`. */
  #storage({ type, key, length }: WrittenStorage): void {
    this.#tuple(['storage', type, key, 'cpu', length]);
    this.#to.op('BINPERSID');
  }

  #storageOf(bytes: WritableBytes): WrittenStorage {
    const storage = this.#storages.get(bytes);
    if (storage === undefined) throw new Error('a tensor lies in a storage that is not written');
    return storage;
  }
}
