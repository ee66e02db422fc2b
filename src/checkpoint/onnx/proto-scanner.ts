/**
 * Reads messages of Protocol Buffers (https://protobuf.dev/programming-guides/encoding) in place: field by field,
 * through a window of fixed size. Bytes of a field are read only on request, so tensor data is skipped.
 */
import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../byte-file.js';
import type { CheckpointRule } from '../checkpoint-rules.js';
import { exactBytesText, refusal } from '../checkpoint-rules.js';

/** A part of the file: positions of the first byte, and of the one behind the last. */
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
  /** Value of a varint; 0n for other fields. */
  readonly value: bigint;
}

const WINDOW_BYTES = 2 ** 16;
const MAX_VARINT_BYTES = 10;
/** Far above any model: a graph of 100,000 nodes has about two million. */
const MAX_FIELDS = 5_000_000;
const MAX_NAME_BYTES = 65_535;
const MAX_KEPT_BYTES = 2 ** 26;

export class ProtoScanner {
  readonly file: ByteFile;
  /** Part of what is read, in messages: `tensor "embed.weight"`. */
  place: string | undefined;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  #fields = 0;
  #keptBytes = 0;

  constructor(file: ByteFile) {
    this.file = file;
  }

  get whole(): ByteSpan {
    return { from: 0, to: this.file.size };
  }

  /** The fields of a message in order. */
  *fields({ from, to }: ByteSpan): Generator<ProtoField, undefined> {
    let at = from;
    while (at < to) {
      this.#countField();
      const tag = this.varint({ from: at, to });
      const number = Number(tag.value >> 3n);
      const wire = Number(tag.value & 7n);
      if (!isWire(wire) || number < 1 || number > 2 ** 29 - 1) {
        throw this.refusal(
          'onnx-field',
          `byte ${at}: field ${number} has the wire type ${wire}, expected a field from 1 on of type 0, 1, 2 or 5`,
        );
      }
      const field = this.#field(number, wire, { from: tag.to, to });
      yield field;
      at = field.to;
    }
  }

  /** The integer at the beginning of a span, and where it ends. */
  varint({ from, to }: ByteSpan): { readonly value: bigint; readonly to: number } {
    // Nearly all integers have one byte.
    const first = from < to ? this.#byteAt(from) : 0x80;
    if (first < 0x80) return { value: BigInt(first), to: from + 1 };
    let value = 0n;
    let shift = 0n;
    for (let at = from; ; at++) {
      if (at >= to) throw this.#beyond(from, at + 1 - from, to);
      if (at - from >= MAX_VARINT_BYTES) {
        throw this.refusal(
          'onnx-varint',
          `the integer at byte ${from} has more than ${MAX_VARINT_BYTES} bytes`,
        );
      }
      const byte = this.#byteAt(at);
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (byte < 0x80) return { value: BigInt.asUintN(64, value), to: at + 1 };
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
    return Number(BigInt.asIntN(64, this.expect(field, WIRE.varint, what).value));
  }

  /** Integers that are packed into one field, or stored one by one. */
  *integers(field: ProtoField, what: string): Generator<bigint, undefined> {
    if (field.wire === WIRE.varint) {
      yield BigInt.asIntN(64, field.value);
      return;
    }
    const { from, to } = this.expect(field, WIRE.bytes, what);
    for (let at = from; at < to; ) {
      this.#countField();
      const { value, to: end } = this.varint({ from: at, to });
      yield BigInt.asIntN(64, value);
      at = end;
    }
  }

  /** A text to keep. All kept texts together are bounded. */
  text(field: ProtoField, what: string): string {
    const { from, to } = this.expect(field, WIRE.bytes, what);
    this.#keptBytes += to - from;
    if (this.#keptBytes > MAX_KEPT_BYTES) {
      throw this.refusal('onnx-strings', 'the names and texts up to here have more than 64 MiB');
    }
    return this.#read(from, to).toString('utf8');
  }

  /** A name: a text of bounded length. */
  name(field: ProtoField, what: string): string {
    const { from, to } = this.expect(field, WIRE.bytes, what);
    const bytes = to - from <= MAX_NAME_BYTES ? this.#read(from, to) : undefined;
    if (bytes === undefined || !isUtf8(bytes)) {
      throw this.refusal(
        'onnx-name',
        `${what} has ${exactBytesText(to - from)}, expected up to ${MAX_NAME_BYTES} of UTF-8`,
      );
    }
    return this.text(field, what);
  }

  refusal(rule: CheckpointRule, message: string) {
    return refusal(this.file.path, { rule, place: this.place, message });
  }

  #field(number: number, wire: Wire, { from, to }: ByteSpan): ProtoField {
    if (wire === WIRE.varint) {
      const { value, to: end } = this.varint({ from, to });
      return { number, wire, value, from, to: end };
    }
    if (wire !== WIRE.bytes) {
      const size = wire === WIRE.fixed64 ? 8 : 4;
      if (from + size > to) throw this.#beyond(from, size, to);
      return { number, wire, value: 0n, from, to: from + size };
    }
    const length = this.varint({ from, to });
    const left = to - length.to;
    if (length.value > left) throw this.#beyond(length.to, length.value, to);
    return { number, wire, value: 0n, from: length.to, to: length.to + Number(length.value) };
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

const isWire = (wire: number): wire is Wire => Object.values<number>(WIRE).includes(wire);
