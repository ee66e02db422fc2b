import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../byte-file.js';
import type { CheckpointRule } from '../checkpoint-rules.js';
import { exactBytesText, quoted, refusal } from '../checkpoint-rules.js';

/** Value types of the metadata, by their numbers in a file (docs/gguf.md of ggml: gguf_metadata_value_type). */
export const VALUE_TYPES = [
  'u8',
  'i8',
  'u16',
  'i16',
  'u32',
  'i32',
  'f32',
  'bool',
  'string',
  'array',
  'u64',
  'i64',
  'f64',
] as const;

export type ValueType = (typeof VALUE_TYPES)[number];
export type ScalarType = Exclude<ValueType, 'array' | 'string'>;

/** A value with its type in the file. An array that is too long to keep has the value null. */
export type GgufValue =
  | { readonly type: ScalarType; readonly value: number | bigint | boolean }
  | { readonly type: 'string'; readonly value: string }
  | {
      readonly type: 'array';
      readonly element: ScalarType | 'string';
      readonly length: number;
      readonly value: readonly (number | bigint | boolean | string)[] | null;
    };

/** Metadata: typed values by key. */
export type GgufKeyValues = ReadonlyMap<string, GgufValue>;

/** Bytes of the types of fixed size. */
export const SCALAR_BYTES: Readonly<Record<ScalarType, number>> = {
  u8: 1,
  i8: 1,
  u16: 2,
  i16: 2,
  u32: 4,
  i32: 4,
  f32: 4,
  bool: 1,
  u64: 8,
  i64: 8,
  f64: 8,
};

/** Bytes read at a time. */
const WINDOW_BYTES = 2 ** 18;

/** Reads the header of a GGUF file in order, through a window of fixed size. Every length is checked against the file. */
export class GgufScanner {
  readonly file: ByteFile;
  #position = 0;
  /** Part of what is read, in messages: `key "general.name"`. A function, where the text is rarely needed. */
  place: string | (() => string) | undefined;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;

  constructor(file: ByteFile) {
    this.file = file;
  }

  get position(): number {
    return this.#position;
  }

  /** Bytes from here to the end of the file. */
  get left(): number {
    return this.file.size - this.#position;
  }

  scalar(type: ScalarType): number | bigint | boolean {
    const at = this.#take(SCALAR_BYTES[type]);
    const bytes = this.#window;
    switch (type) {
      case 'u8':
        return bytes.readUInt8(at);
      case 'i8':
        return bytes.readInt8(at);
      case 'u16':
        return bytes.readUInt16LE(at);
      case 'i16':
        return bytes.readInt16LE(at);
      case 'u32':
        return bytes.readUInt32LE(at);
      case 'i32':
        return bytes.readInt32LE(at);
      case 'f32':
        return bytes.readFloatLE(at);
      case 'f64':
        return bytes.readDoubleLE(at);
      case 'u64':
        return integerOf(bytes, at);
      case 'i64':
        return exact(bytes.readBigInt64LE(at));
      case 'bool':
        return this.#boolean(bytes.readUInt8(at));
    }
  }

  u32(): number {
    const at = this.#take(4);
    return this.#window.readUInt32LE(at);
  }

  /** A bigint where a number is not exact. */
  u64(): number | bigint {
    const at = this.#take(8);
    return integerOf(this.#window, at);
  }

  /** Length of the next string. @throws UserError when it goes beyond the file. */
  stringLength(): number {
    return this.#fitting(this.u64());
  }

  /** A string; bytes that are not UTF-8 are replaced. */
  string(): string {
    const length = this.stringLength();
    const at = this.#take(length);
    return this.#window.toString('utf8', at, at + length);
  }

  /** Text of a string. @param rule Rule that it violates when it is not UTF-8, or too short or long. */
  text(rule: CheckpointRule, [least, most] = ANY_LENGTH): string {
    const length = this.stringLength();
    if (length < least || length > most) {
      throw this.refusal(rule, `has ${exactBytesText(length)}, expected ${least} to ${most}`);
    }
    const at = this.#take(length);
    const bytes = this.#window.subarray(at, at + length);
    if (!isUtf8(bytes))
      throw this.refusal(rule, `has bytes that are not UTF-8: ${quotedBytes(bytes)}`);
    return bytes.toString('utf8');
  }

  skip(bytes: number | bigint): void {
    this.#position += this.#fitting(bytes);
  }

  refusal(rule: CheckpointRule, message: string) {
    const named = typeof this.place === 'function' ? this.place() : this.place;
    const place = named ?? `byte ${this.#position}`;
    return refusal(this.file.path, { rule, place, message });
  }

  #boolean(byte: number): boolean {
    if (byte > 1) throw this.refusal('gguf-boolean', `is ${byte}, expected 0 or 1`);
    return byte === 1;
  }

  #fitting(bytes: number | bigint): number {
    if (bytes > this.left) {
      throw this.refusal(
        'gguf-whole',
        `needs ${exactBytesText(bytes)} from byte ${this.#position} on, but only ${this.left} follow`,
      );
    }
    return Number(bytes);
  }

  /** Takes the next bytes. @returns Their position in the window. */
  #take(length: number): number {
    this.#fitting(length);
    const from = this.#position - this.#windowAt;
    this.#position += length;
    if (from >= 0 && from + length <= this.#window.length) return from;
    this.#windowAt = this.#position - length;
    const most = Math.max(length, WINDOW_BYTES);
    this.#window = this.file.read(this.#windowAt, Math.min(most, this.file.size - this.#windowAt));
    return 0;
  }
}

const ANY_LENGTH: readonly [number, number] = [0, Number.POSITIVE_INFINITY];

/** An unsigned integer of 64 bits. */
function integerOf(bytes: Buffer, at: number): number | bigint {
  const high = bytes.readUInt32LE(at + 4);
  return high < 2 ** 21 ? high * 2 ** 32 + bytes.readUInt32LE(at) : bytes.readBigUInt64LE(at);
}

/** A number where it is exact. */
const exact = (value: bigint): number | bigint => {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
};

const quotedBytes = (bytes: Buffer): string => quoted(bytes.subarray(0, 64).toString('latin1'));
