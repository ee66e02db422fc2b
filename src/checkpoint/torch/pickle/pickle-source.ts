import type { UserError } from '../../../errors.js';
import type { ByteFile } from '../../byte-file.js';
import type { Refusal } from '../../rules.js';
import { refusal, SAVE_TORCH_AGAIN } from '../../rules.js';

/** Far above real files: the pickle of 100,000 tensors has about 15 MB. */
const MAX_PICKLE_BYTES = 64 * 2 ** 20;
const WINDOW_BYTES = 64 * 1024;

/** A part of a file, read sequentially through a window. */
export class PickleSource {
  readonly file: Pick<ByteFile, 'path' | 'read' | 'size'>;
  position: number;
  readonly #start: number;
  readonly #end: number;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;
  /** Position of the current opcode, for messages. */
  #opcode = 0;

  /** @param end Maximum end position of the pickle in the file. */
  constructor(file: Pick<ByteFile, 'path' | 'read' | 'size'>, start: number, end: number) {
    this.file = file;
    this.position = start;
    this.#start = start;
    this.#end = end;
  }

  /** Error for a rule that is violated at the current opcode. */
  refusal(rule: Refusal['rule'], message: string, suggestion = SAVE_TORCH_AGAIN): UserError {
    const place = `pickle byte ${this.#opcode - this.#start}`;
    return refusal(this.file.path, { rule, place, message, suggestion });
  }

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
    if (this.position - this.#start > MAX_PICKLE_BYTES) {
      throw this.refusal('pickle-size', `is longer than ${MAX_PICKLE_BYTES} bytes`);
    }
  }
}
