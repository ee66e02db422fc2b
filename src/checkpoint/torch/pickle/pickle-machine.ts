import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../../byte-file.js';
import type { Refuse } from '../../checkpoint-rules.js';
import { refusal } from '../../checkpoint-rules.js';
import type { Storages } from '../state-dict/storages.js';
import type { Dict, PickleValue, SetOf, Tuple } from './values.js';
import { globalName, isKind } from './values.js';

/** Far above real files: the pickle of 100,000 tensors has about 15 MB. */
const MAX_PICKLE_BYTES = 64 * 2 ** 20;
const WINDOW_BYTES = 64 * 1024;
const MAX_LINE_BYTES = 1000;
const NEWLINE = 0x0a;

/** Limits of a pickle, instead of the usual ones. */
export interface PickleLimits {
  readonly pickleBytes?: number;
  readonly memo?: number;
  /** Most bytes of memory, however large the file is. */
  readonly memory?: number;
  /** Memory of all pickles of a checkpoint; by default the pickle is the only one. */
  readonly budget?: PickleBudget | undefined;
}

/** A part of a file, read sequentially through a window. */
export class PickleSource {
  readonly file: ByteFile;
  position: number;
  readonly #start: number;
  readonly #end: number;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;
  /** Position of the current opcode, for messages. */
  #opcode = 0;

  readonly limits: PickleLimits;

  /** @param end Maximum end position of the pickle in the file. */
  constructor(file: ByteFile, start: number, end: number, limits: PickleLimits = {}) {
    this.file = file;
    this.limits = limits;
    this.position = start;
    this.#start = start;
    this.#end = end;
  }

  /** Error for a rule that is violated at the current opcode. */
  readonly refusal: Refuse = (rule, message, suggestion) => {
    const place = `pickle byte ${this.#opcode - this.#start}`;
    return refusal(this.file.path, { rule, place, message, suggestion });
  };

  opcode(): number {
    this.#opcode = this.position;
    return this.byte();
  }

  /** A frame only bounds read-ahead, but its bytes must exist. */
  frame(length: number): void {
    const left = this.#end - this.position;
    if (length > left) {
      throw this.refusal(
        'pickle-frame',
        `announces a frame of ${length} bytes where ${left} are left`,
      );
    }
  }

  /** A pickle is mostly opcodes and small numbers, so this allocates no object. */
  byte(): number {
    const from = this.#advance(1);
    return this.#window[from] ?? 0;
  }

  u16(): number {
    const from = this.#advance(2);
    return this.#window.readUInt16LE(from);
  }

  u32(): number {
    const from = this.#advance(4);
    return this.#window.readUInt32LE(from);
  }

  i32(): number {
    const from = this.#advance(4);
    return this.#window.readInt32LE(from);
  }

  /** The next `length` bytes. The next call overwrites them: copy them to keep them. */
  take(length: number): Buffer {
    if (length > WINDOW_BYTES) {
      const at = this.position;
      this.#pass(length);
      return this.file.read(at, length);
    }
    const from = this.#advance(length);
    return this.#window.subarray(from, from + length);
  }

  /** The text up to the next newline, which is dropped. */
  line(): string {
    const at = this.position;
    const most = Math.min(MAX_LINE_BYTES + 1, this.#end - at);
    const from = this.#advance(most);
    const length = this.#window.subarray(from, from + most).indexOf(NEWLINE);
    this.position = at;
    if (length < 0 && most <= MAX_LINE_BYTES) this.#pass(most + 1);
    if (length < 0) throw this.refusal('pickle-line', 'holds a name without an end');
    this.position = at + length + 1;
    return this.#window.toString('utf8', from, from + length);
  }

  /** Skips `length` bytes, at most one window. Returns their offset in the window. */
  #advance(length: number): number {
    const at = this.position;
    const from = at - this.#windowStart;
    if (from + length <= this.#window.length) {
      this.position = at + length;
      return from;
    }
    this.#pass(length);
    this.#window = this.file.read(at, Math.min(WINDOW_BYTES, this.#end - at));
    this.#windowStart = at;
    return 0;
  }

  /** Skips `length` bytes, which must exist. */
  #pass(length: number): void {
    this.position += length;
    if (this.position > this.#end) {
      throw this.refusal(
        'pickle-whole',
        `ends after ${this.#end - this.#start} bytes, inside an opcode or its argument`,
        'the file is cut off or damaged: copy or download it again',
      );
    }
    const most = this.limits.pickleBytes ?? MAX_PICKLE_BYTES;
    if (this.position - this.#start > most) {
      throw this.refusal('pickle-size', `is longer than ${most} bytes`);
    }
  }
}

const MAX_NESTING = 200;

/** A container on the path from the root, and the progress within it. */
interface OpenContainer {
  readonly container: PickleValue;
  readonly parts: readonly PickleValue[];
  next: number;
  /** Height of the container tree, itself included. */
  height: number;
}

/** Checks for cycles and for nesting that is too deep, so that later traversals end. Visits each container once. */
export function checkStructure(root: PickleValue, source: PickleSource): void {
  const heights = new Map<PickleValue, number>();
  const open = new Set<PickleValue>();
  const path: OpenContainer[] = [];
  const enter = (container: PickleValue) => {
    if (container === null || typeof container !== 'object') return;
    // Most containers are sizes and offsets: looking at their few numbers again is faster than a table of them.
    const known = isShortAndFlat(container) ? 1 : heights.get(container);
    // Copying the parts of a large dict takes time, and a short file can refer to one dict many times.
    const parts = known === undefined ? containedValues(container) : undefined;
    if (known === undefined && parts === undefined) return;
    if (open.has(container)) throw source.refusal('pickle-cycle', 'holds a container in itself');
    if (path.length + (known ?? 1) > MAX_NESTING) {
      throw source.refusal('pickle-nesting', `is nested more than ${MAX_NESTING} deep`);
    }
    if (known !== undefined) grow(path.at(-1), known);
    else if (parts !== undefined) {
      open.add(container);
      path.push({ container, parts, next: 0, height: 1 });
    }
  };
  enter(root);
  for (let step = path.at(-1); step; step = path.at(-1)) {
    const part = step.parts[step.next++];
    if (part !== undefined) {
      enter(part);
      continue;
    }
    path.pop();
    open.delete(step.container);
    heights.set(step.container, step.height);
    grow(path.at(-1), step.height);
  }
}

const MAX_SHORT = 8;

/** Whether a value is a list or tuple of a few values that are not objects. */
const isShortAndFlat = (value: PickleValue): boolean =>
  (isKind(value, 'list') || isKind(value, 'tuple')) &&
  value.items.length <= MAX_SHORT &&
  value.items.every((item) => item === null || typeof item !== 'object');

function grow(step: OpenContainer | undefined, below: number): void {
  if (step) step.height = Math.max(step.height, below + 1);
}

/** Members of a container; undefined for other values. */
function containedValues(value: PickleValue): readonly PickleValue[] | undefined {
  if (isKind(value, 'list') || isKind(value, 'tuple')) return value.items;
  if (isKind(value, 'dict')) return [...value.entries.keys(), ...value.entries.values()];
  if (isKind(value, 'set')) return [...value.items];
  if (isKind(value, 'opaque')) return [value.args, value.state ?? null];
  return undefined;
}

/**
 * Approximate measured bytes in memory: a single value, an empty dict or set, and a reference in a growing
 * array or dict.
 */
const OBJECT_BYTES = 100;
export const TABLE_BYTES = 250;
const REFERENCE_BYTES = 20;
export const ENTRY_BYTES = 40;
/** Extra bytes of an integer key: its text in a table, created again at each look-up. */
const INTEGER_KEY_BYTES = 40;
const BIG_KEY_BYTES = 200;
/** Integer keys are numbers of steps, layers or parameters. */
const LEAST_KEY = -(2n ** 63n);
const MOST_KEY = 2n ** 64n - 1n;
/** Most memory for the values of one pickle. */
const MAX_BYTES = 640e6;
/**
 * Memory limit for all values of small files, plus BUDGET_PER_BYTE for each byte over their size. The small limit
 * fits about 50,000 tensors; training checkpoints are large, and their optimizer state has three more tensors per
 * parameter.
 */
const SMALL_BUDGET = 90e6;
const SMALL_FILES = 16e6;
const BUDGET_PER_BYTE = 30;
const MAX_MARKS = 200;
const MAX_MEMO = 2_000_000;
const MAX_TEXT_BYTES = 2 ** 20;

/** Memory for the values of all pickles of a checkpoint. Without it, many small files together would have no limit. */
export class PickleBudget {
  readonly #fileBytes: () => number;
  #most = SMALL_BUDGET;
  #spent = 0;

  /** @param fileBytes Bytes of all files of the checkpoint; called when those of small files are spent. */
  constructor(fileBytes: () => number) {
    this.#fileBytes = fileBytes;
  }

  /**
   * Counts bytes that are created.
   * @throws UserError beyond the limit.
   */
  spend(bytes: number, refuse: Refuse): void {
    this.#spent += bytes;
    if (this.#spent <= this.#most) return;
    this.#most = SMALL_BUDGET + BUDGET_PER_BYTE * Math.max(0, this.#fileBytes() - SMALL_FILES);
    if (this.#spent > this.#most) throw tooMuch(this.#most, refuse);
  }
}

const tooMuch = (most: number, refuse: Refuse) =>
  refuse('pickle-memory', `builds more than ${Math.floor(most / 1e6)} MB of objects`);

const PAYMENT_BYTES = 10_000;

/** A singleton, as in Python. */
const EMPTY_TUPLE: Tuple = { kind: 'tuple', items: [], hashable: true };

/** Stack, marks and memo of the pickle machine. Builds data, and never runs code. */
export class PickleMachine {
  readonly source: PickleSource;
  readonly storages: Storages | undefined;
  #stack: PickleValue[] = [];
  /** Stacks below the open marks. */
  readonly #below: PickleValue[][] = [];
  /** Entries that were set one after the other, as picklers do, and the others. */
  readonly #memo: PickleValue[] = [];
  readonly #sparseMemo = new Map<number, PickleValue>();
  readonly #budget: PickleBudget;
  readonly #maxBytes: number;
  #bytes = 0;
  /** Bytes that are not counted in the budget yet: most opcodes create only a few. */
  #unpaid = 0;

  constructor(source: PickleSource, storages: Storages | undefined) {
    this.source = source;
    this.storages = storages;
    this.#budget = source.limits.budget ?? new PickleBudget(() => source.file.size);
    this.#maxBytes = source.limits.memory ?? MAX_BYTES;
  }

  push(value: PickleValue): void {
    this.spend(REFERENCE_BYTES);
    this.#stack.push(value);
  }

  /**
   * Pushes a new value.
   * @param bytes Bytes of its content without references.
   */
  pushNew(value: PickleValue, bytes = 0): void {
    this.spend(OBJECT_BYTES + bytes);
    this.push(value);
  }

  pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined) throw this.#underflow();
    return value;
  }

  top(): PickleValue {
    const value = this.#stack.at(-1);
    if (value === undefined) throw this.#underflow();
    return value;
  }

  mark(): void {
    if (this.#below.length >= MAX_MARKS) {
      throw this.source.refusal('pickle-marks', `opens more than ${MAX_MARKS} marks`);
    }
    this.#below.push(this.#stack);
    this.#stack = [];
  }

  /** Pops the values above the last mark, and the mark. */
  popMark(): PickleValue[] {
    const below = this.#below.pop();
    if (below === undefined) {
      throw this.source.refusal('pickle-mark', 'takes the values above a mark, but there is none');
    }
    const items = this.#stack;
    this.#stack = below;
    return items;
  }

  get(index: number): void {
    const isDense = index < this.#memo.length;
    const value = isDense ? this.#memo[index] : this.#sparseMemo.get(index);
    if (value === undefined) {
      throw this.source.refusal(
        'pickle-memo',
        `reads entry ${index} of the memo, which was not set`,
      );
    }
    this.push(value);
  }

  put(index: number): void {
    if (index >= (this.source.limits.memo ?? MAX_MEMO)) {
      throw this.source.refusal('pickle-memo-index', `sets entry ${index} of the memo`);
    }
    if (index <= this.#memo.length) {
      this.spend(REFERENCE_BYTES);
      this.#memo[index] = this.top();
      this.#sparseMemo.delete(index);
    } else {
      this.spend(ENTRY_BYTES);
      this.#sparseMemo.set(index, this.top());
    }
  }

  memoize(): void {
    this.put(this.#memo.length + this.#sparseMemo.size);
  }

  /** The object that the pickle encodes. */
  result(): PickleValue {
    this.#pay();
    const [result, ...others] = this.#stack;
    if (result === undefined || others.length > 0 || this.#below.length > 0) {
      throw this.source.refusal(
        'pickle-rest',
        `ends with ${this.#stack.length} objects and ${this.#below.length} open marks, not with one object`,
      );
    }
    return result;
  }

  /** Decodes the next `length` bytes, which must be UTF-8. */
  text(length: number): string {
    const bytes = this.#textBytes(length);
    if (!isUtf8(bytes)) throw this.source.refusal('pickle-utf8', 'holds text that is not UTF-8');
    return bytes.toString('utf8');
  }

  /** Decodes a Python 2 string: text if it is valid UTF-8, otherwise bytes. */
  byteString(length: number): string | Uint8Array {
    const bytes = this.#textBytes(length);
    return isUtf8(bytes) ? bytes.toString('utf8') : new Uint8Array(bytes);
  }

  #textBytes(length: number): Buffer {
    if (length > MAX_TEXT_BYTES) {
      throw this.source.refusal('pickle-text-length', `holds a text of ${length} bytes`);
    }
    return this.source.take(length);
  }

  tuple(items: readonly PickleValue[]): void {
    if (items.length === 0) this.push(EMPTY_TUPLE);
    else this.pushNew({ kind: 'tuple', items, hashable: items.every(isHashable) });
  }

  /** @param items Not changed later by the caller: the list may keep the array. */
  append(items: PickleValue[]): void {
    const list = this.top();
    if (!isKind(list, 'list'))
      throw this.source.refusal('pickle-list', 'appends to a value that is not a list');
    this.spend(items.length * REFERENCE_BYTES);
    if (list.items.length === 0) list.items = items;
    else for (const item of items) list.items.push(item);
  }

  addItems(items: readonly PickleValue[]): void {
    const set = this.top();
    if (!isKind(set, 'set'))
      throw this.source.refusal('pickle-set', 'adds to a value that is not a set');
    this.addTo(set, items);
  }

  addTo(set: SetOf, items: readonly PickleValue[]): void {
    this.spend(items.length * ENTRY_BYTES);
    for (const item of items) set.items.add(this.#key(item));
  }

  setItems(pairs: readonly PickleValue[]): void {
    const dict = this.top();
    if (!isKind(dict, 'dict'))
      throw this.source.refusal('pickle-dict', 'sets items of a value that is not a dict');
    this.setIn(dict, pairs);
  }

  /** @param pairs Key, value, key, value, … */
  setIn(dict: Dict, pairs: readonly PickleValue[]): void {
    if (pairs.length % 2 !== 0) {
      throw this.source.refusal('pickle-pairs', 'sets a key without a value');
    }
    this.spend((pairs.length / 2) * ENTRY_BYTES);
    for (let index = 0; index < pairs.length; index += 2) {
      dict.entries.set(this.#key(pairs[index] ?? null), pairs[index + 1] ?? null);
    }
  }

  /** A key, checked to be hashable in Python. */
  #key(value: PickleValue): PickleValue {
    if (!isHashable(value)) {
      throw this.source.refusal(
        'pickle-key',
        `uses ${globalName(value)} as a key, which Python cannot hash`,
      );
    }
    if (!isShort(value)) {
      throw this.source.refusal(
        'pickle-integer-key',
        'uses an integer beyond 64 bits as a key, or as a member of a set',
        'save model.state_dict() alone',
      );
    }
    this.spend(keyBytes(value));
    return value;
  }

  /** Counts bytes that are created, or read again, as the arguments of a call are. */
  spend(bytes: number): void {
    this.#unpaid += bytes;
    if (this.#unpaid >= PAYMENT_BYTES) this.#pay();
  }

  #pay(): void {
    this.#bytes += this.#unpaid;
    this.#budget.spend(this.#unpaid, this.source.refusal);
    this.#unpaid = 0;
    if (this.#bytes > this.#maxBytes) throw tooMuch(this.#maxBytes, this.source.refusal);
  }

  #underflow() {
    return this.source.refusal('pickle-stack', 'takes an object from an empty stack');
  }
}

/** Whether a value is not an integer beyond 64 bits. */
const isShort = (value: PickleValue) =>
  typeof value !== 'bigint' || (value >= LEAST_KEY && value <= MOST_KEY);

/** Whether a value can be a dict key or set member. */
export const isKey = (value: PickleValue): boolean => isHashable(value) && isShort(value);

/** Approximate bytes of a key, each time it is inserted into a table. */
export function keyBytes(key: PickleValue): number {
  if (typeof key === 'number') return INTEGER_KEY_BYTES;
  return typeof key === 'bigint' ? BIG_KEY_BYTES : 0;
}

function isHashable(value: PickleValue): boolean {
  if (isKind(value, 'tuple')) return value.hashable;
  if (isKind(value, 'set')) return value.type === 'frozenset';
  return !isKind(value, 'list') && !isKind(value, 'dict');
}
