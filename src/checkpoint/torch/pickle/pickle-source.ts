import type { UserError } from '../../../errors.js';
import type { ByteFile } from '../../byte-file.js';
import type { Refusal } from '../../rules.js';
import { refusal, SAVE_TORCH_AGAIN } from '../../rules.js';

/** No real file comes near: the pickle of 100,000 tensors has about 15 MB. */
const MAX_PICKLE_BYTES = 64 * 2 ** 20;
const WINDOW_BYTES = 64 * 1024;

/** A part of a file that is read from its beginning on, a window at a time. */
export class PickleSource {
  readonly file: Pick<ByteFile, 'path' | 'read' | 'size'>;
  /** Of the next byte, in the file. */
  position: number;
  readonly #start: number;
  readonly #end: number;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;
  /** Of the opcode that is at work, for messages. */
  #opcode = 0;

  /** @param end Of the part that the pickle may take, in the file. */
  constructor(file: Pick<ByteFile, 'path' | 'read' | 'size'>, start: number, end: number) {
    this.file = file;
    this.position = start;
    this.#start = start;
    this.#end = end;
  }

  /** The error of a pickle that breaks a rule at the opcode that is at work. */
  refusal(rule: Refusal['rule'], message: string, suggestion = SAVE_TORCH_AGAIN): UserError {
    const place = `pickle byte ${this.#opcode - this.#start}`;
    return refusal(this.file.path, { rule, place, message, suggestion });
  }

  opcode(): number {
    this.#opcode = this.position;
    return this.byte();
  }

  /** A frame only says how much may be read ahead; but that much must be there. */
  frame(length: number): void {
    const left = this.#end - this.position;
    if (length > left) {
      throw this.refusal(
        'pickle-frame',
        `announces a frame of ${length} bytes where ${left} are left`,
      );
    }
  }

  /** A pickle is mostly opcodes and small numbers: no object is made for each of them. */
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

  /** The next `length` bytes. They are overwritten by the next call: copy what is to stay. */
  take(length: number): Buffer {
    if (length > WINDOW_BYTES) {
      const at = this.position;
      this.#pass(length);
      return this.file.read(at, length);
    }
    const from = this.#advance(length);
    return this.#window.subarray(from, from + length);
  }

  /** Moves behind the next `length` bytes, at most those of a window. Returns where they begin in the window. */
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

  /** Moves behind the next `length` bytes, which must be there. */
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
