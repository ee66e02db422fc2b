/**
 * Writes values as a pickle of protocol 2, as `torch.save` does. A value that is used several times is written
 * once and then referenced.
 */
import type { WrittenStorage } from '../state-dict/write-storages.js';
import { TORCH_TYPES } from './globals.js';
import type {
  Opcode,
  Writable,
  WritableBytes,
  WritableDict,
  WritableObject,
  WritableSequence,
  WritableSet,
  WritableTensor,
} from './write-opcodes.js';
import { OpcodeWriter } from './write-opcodes.js';

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
