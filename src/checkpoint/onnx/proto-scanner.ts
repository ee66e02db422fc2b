/**
 * Reads messages of Protocol Buffers (https://protobuf.dev/programming-guides/encoding) in place: field by field,
 * through a window of fixed size. Bytes of a field are read only on request, so tensor data is skipped.
 */
import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../byte-file.js';
import type { CheckpointRule } from '../checkpoint-rules.js';
import { exactBytesText, refusal } from '../checkpoint-rules.js';

/** A part of the file: positions of the first byte, and of the one after the last. */
export interface ByteSpan {
  readonly from: number;
  readonly to: number;
}

/** How a value is stored. Groups (3 and 4) are not part of the format. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

export type Wire = (typeof WIRE)[keyof typeof WIRE];

export interface ProtoField extends ByteSpan {
  readonly number: number;
  readonly wire: Wire;
  /** Value of a varint, unsigned; 0 for other fields. */
  readonly value: Integer;
}

/** An integer of 64 bits: a bigint where a number is not exact. */
export type Integer = number | bigint;

const WINDOW_BYTES = 2 ** 16;
const MAX_VARINT_BYTES = 10;
/** Far above any model: a graph of 100,000 nodes has about two million. */
const MAX_FIELDS = 5_000_000;
const MAX_NAME_BYTES = 65_535;
const SHORT_NAME = 64;
const MAX_KEPT_BYTES = 2 ** 26;

export class ProtoScanner {
  readonly file: ByteFile;
  /** Part of what is read, in messages: `tensor "embed.weight"`. */
  place: string | undefined;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  #fields = 0;
  #keptBytes = 0;
  /** The last varint: its low and high 32 bits, and the position after it. */
  #low = 0;
  #high = 0;
  #end = 0;

  constructor(file: ByteFile) {
    this.file = file;
  }

  get whole(): ByteSpan {
    return { from: 0, to: this.file.size };
  }

  /** Visits the fields of a message in order. */
  fields({ from, to }: ByteSpan, visit: (field: ProtoField) => void): void {
    for (let at = from; at < to; ) {
      const field = this.#field(at, to);
      visit(field);
      at = field.to;
    }
  }

  /** Visits integers that are packed into a span: their low and high 32 bits, unsigned. */
  varints({ from, to }: ByteSpan, visit: (low: number, high: number) => void): void {
    for (let at = from; at < to; at = this.#end) {
      this.#varint(at, to);
      visit(this.#low, this.#high);
    }
  }

  /** A field of known type. @throws UserError when it has another one. */
  expect(field: ProtoField, wire: Wire, what: string): ProtoField {
    if (field.wire === wire) return field;
    throw this.refusal(
      'onnx-wire-type',
      `${what} (field ${field.number}) has the wire type ${field.wire}, expected ${wire}`,
    );
  }

  /** A signed integer, as sizes and versions are. */
  integer(field: ProtoField, what: string): number {
    return Number(signedInteger(this.expect(field, WIRE.varint, what).value));
  }

  /** Visits signed integers that are packed into one field, or stored one by one. */
  integers(field: ProtoField, what: string, visit: (value: Integer) => void): void {
    if (field.wire === WIRE.varint) {
      visit(signedInteger(field.value));
      return;
    }
    this.varints(this.expect(field, WIRE.bytes, what), (low, high) => {
      this.#countField();
      visit(signedInteger(integerOf(low, high)));
    });
  }

  /** A text to keep. All kept texts together are bounded. */
  text(field: ProtoField, what: string): string {
    const { from, to } = this.expect(field, WIRE.bytes, what);
    return this.#kept(this.#read(from, to));
  }

  /** A name: a text of bounded length. */
  name(field: ProtoField, what: string): string {
    const { from, to } = this.expect(field, WIRE.bytes, what);
    if (from === to) return '';
    const short = this.#shortName(from, to);
    if (short !== undefined) return short;
    const bytes = to - from <= MAX_NAME_BYTES ? this.#read(from, to) : undefined;
    if (bytes === undefined || !isUtf8(bytes)) {
      throw this.refusal(
        'onnx-name',
        `${what} has ${exactBytesText(to - from)}, expected up to ${MAX_NAME_BYTES} of UTF-8`,
      );
    }
    return this.#kept(bytes);
  }

  /** A short name of ASCII in the window, without an object for its bytes: a file has millions of them. */
  #shortName(from: number, to: number): string | undefined {
    const [start, end] = [from - this.#windowAt, to - this.#windowAt];
    if (end - start > SHORT_NAME || start < 0 || end > this.#window.length) return undefined;
    for (let at = start; at < end; at++) {
      if ((this.#window[at] ?? 0) >= 0x80) return undefined;
    }
    this.#keep(end - start);
    return this.#window.toString('latin1', start, end);
  }

  refusal(rule: CheckpointRule, message: string) {
    return refusal(this.file.path, { rule, place: this.place, message });
  }

  #kept(bytes: Buffer): string {
    this.#keep(bytes.length);
    return bytes.toString('utf8');
  }

  #keep(bytes: number): void {
    this.#keptBytes += bytes;
    if (this.#keptBytes <= MAX_KEPT_BYTES) return;
    throw this.refusal('onnx-strings', 'the names and texts up to here have more than 64 MiB');
  }

  #field(at: number, to: number): ProtoField {
    this.#countField();
    this.#varint(at, to);
    const wire = this.#low & 7;
    const number = (this.#low >>> 3) + this.#high * 2 ** 29;
    if (!isWire(wire) || number < 1 || number > 2 ** 29 - 1) {
      throw this.refusal(
        'onnx-field',
        `byte ${at}: field ${number} has the wire type ${wire}, expected a field from 1 on of type 0, 1, 2 or 5`,
      );
    }
    const from = this.#end;
    if (wire === WIRE.varint) {
      this.#varint(from, to);
      return { number, wire, value: integerOf(this.#low, this.#high), from, to: this.#end };
    }
    if (wire !== WIRE.bytes) {
      const size = wire === WIRE.fixed64 ? 8 : 4;
      if (from + size > to) throw this.#beyond(from, size, to);
      return { number, wire, value: 0, from, to: from + size };
    }
    this.#varint(from, to);
    const length = integerOf(this.#low, this.#high);
    if (length > to - this.#end) throw this.#beyond(this.#end, length, to);
    return { number, wire, value: 0, from: this.#end, to: this.#end + Number(length) };
  }

  /** Reads the integer at `from`, which ends before `to`. */
  #varint(from: number, to: number): void {
    this.#low = 0;
    this.#high = 0;
    for (let at = from; ; at++) {
      const index = at - from;
      if (at >= to) throw this.#beyond(from, at + 1 - from, to);
      if (index >= MAX_VARINT_BYTES) {
        throw this.refusal(
          'onnx-varint',
          `the integer at byte ${from} has more than ${MAX_VARINT_BYTES} bytes`,
        );
      }
      const byte = this.#byteAt(at);
      const bits = byte & 0x7f;
      // Shifts are modulo 32: the fifth byte has bits of both halves.
      if (index < 5) this.#low |= bits << (7 * index);
      if (index === 4) this.#high = bits >>> 4;
      else if (index > 4) this.#high |= bits << (7 * index - 32);
      if (byte < 0x80) {
        this.#low >>>= 0;
        this.#high >>>= 0;
        this.#end = at + 1;
        return;
      }
    }
  }

  #beyond(from: number, length: number | bigint, to: number) {
    return this.refusal(
      'onnx-whole',
      `needs ${exactBytesText(length)} from byte ${from} on, but its message ends at byte ${to}`,
    );
  }

  #countField(): void {
    this.#fields++;
    if (this.#fields <= MAX_FIELDS) return;
    throw this.refusal('onnx-fields', `has more than ${MAX_FIELDS} fields`);
  }

  #byteAt(at: number): number {
    const inWindow = at - this.#windowAt;
    if (inWindow >= 0 && inWindow < this.#window.length) return this.#window[inWindow] ?? 0;
    this.#windowAt = at;
    this.#window = this.file.read(at, Math.min(WINDOW_BYTES, this.file.size - at));
    return this.#window[0] ?? 0;
  }

  #read(from: number, to: number): Buffer {
    const [start, end] = [from - this.#windowAt, to - this.#windowAt];
    if (start >= 0 && end <= this.#window.length) return this.#window.subarray(start, end);
    return this.file.read(from, to - from);
  }
}

const isWire = (wire: number): wire is Wire => wire <= WIRE.bytes || wire === WIRE.fixed32;

const integerOf = (low: number, high: number): Integer =>
  high < 2 ** 21 ? high * 2 ** 32 + low : (BigInt(high) << 32n) | BigInt(low);

/** An unsigned integer of 64 bits read as a signed one. */
const signedInteger = (value: Integer): Integer =>
  typeof value === 'number' ? value : BigInt.asIntN(64, value);
