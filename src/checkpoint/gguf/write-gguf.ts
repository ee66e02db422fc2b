import { usageError } from '../../base/errors.js';
import type { ByteChunks, ByteSink } from '../../base/files/write-whole.js';
import type { Shape } from '../../base/tensor/dtype.js';
import type { GgmlTypeName } from './ggml-types.js';
import { ggmlType } from './ggml-types.js';
import type { GgufKeyValues, GgufValue, ScalarType } from './gguf-scanner.js';
import { SCALAR_BYTES, VALUE_TYPES } from './gguf-scanner.js';
import { alignedUp, GGUF_MAGIC } from './read-gguf.js';

const VERSION = 3;
const ALIGNMENT = 32;

/** Longest name of a tensor that llama.cpp reads: GGML_MAX_NAME without the final zero. */
const MAX_NAME_BYTES = 63;

export interface GgufHeading {
  readonly name: string;
  readonly type: GgmlTypeName;
  readonly shape: Shape;
}

export interface GgufTensor extends GgufHeading {
  /** Yields all bytes of the tensor. Called once, in order. */
  chunks(): ByteChunks;
}

export interface GgufPlan {
  /** Everything before the data. */
  readonly header: Uint8Array;
  readonly fileBytes: number;
}

/** Bytes of a tensor in a file. */
export function ggufBytes({ type, shape }: Omit<GgufHeading, 'name'>): number {
  const { values, bytes } = ggmlType(type);
  return (shape.reduce((product, size) => product * size, 1) / values) * bytes;
}

/**
 * Header and size of a file.
 * @throws UserError for a name that llama.cpp cannot read.
 */
export function planGguf(keyValues: GgufKeyValues, tensors: readonly GgufHeading[]): GgufPlan {
  const parts = [Buffer.from(GGUF_MAGIC), number('u32', VERSION)];
  parts.push(number('u64', tensors.length), number('u64', keyValues.size));
  for (const [key, value] of keyValues) parts.push(encodedText(key), ...encodedValue(value));
  let offset = 0;
  for (const tensor of tensors) {
    const { name, shape, type } = tensor;
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw tooLong(name);
    parts.push(encodedText(name), number('u32', shape.length));
    for (const size of shape.toReversed()) parts.push(number('u64', size));
    parts.push(number('u32', ggmlType(type).id), number('u64', offset));
    offset += alignedUp(ggufBytes(tensor), ALIGNMENT);
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const header = Buffer.concat([...parts, Buffer.alloc(alignedUp(length, ALIGNMENT) - length)]);
  return { header, fileBytes: header.length + offset };
}

/**
 * Writes a GGUF file.
 * @throws Error if the chunks of a tensor do not match its size.
 */
export async function writeGguf(
  sink: ByteSink,
  keyValues: GgufKeyValues,
  tensors: readonly GgufTensor[],
): Promise<void> {
  await sink.write(planGguf(keyValues, tensors).header);
  for (const tensor of tensors) {
    const bytes = ggufBytes(tensor);
    let written = 0;
    for await (const chunk of tensor.chunks()) {
      written += chunk.length;
      await sink.write(chunk);
    }
    if (written !== bytes) {
      throw new Error(`the tensor ${JSON.stringify(tensor.name)} of ${bytes} bytes has ${written}`);
    }
    await sink.write(Buffer.alloc(alignedUp(bytes, ALIGNMENT) - bytes));
  }
}

function number(type: ScalarType, value: number | bigint | boolean): Buffer {
  const bytes = Buffer.alloc(SCALAR_BYTES[type]);
  const plain = Number(value);
  switch (type) {
    case 'f32':
      bytes.writeFloatLE(plain);
      break;
    case 'f64':
      bytes.writeDoubleLE(plain);
      break;
    case 'u64':
      bytes.writeBigUInt64LE(BigInt(value));
      break;
    case 'i64':
      bytes.writeBigInt64LE(BigInt(value));
      break;
    case 'bool':
    case 'u8':
    case 'u16':
    case 'u32':
      bytes.writeUIntLE(plain, 0, bytes.length);
      break;
    case 'i8':
    case 'i16':
    case 'i32':
      bytes.writeIntLE(plain, 0, bytes.length);
      break;
  }
  return bytes;
}

function encodedText(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number('u64', bytes.length), bytes]);
}

const typeNumber = (type: GgufValue['type']) => number('u32', VALUE_TYPES.indexOf(type));

function encodedValue(value: GgufValue): Buffer[] {
  const type = typeNumber(value.type);
  if (value.type === 'string') return [type, encodedText(value.value)];
  if (value.type !== 'array') return [type, number(value.type, value.value)];
  const { element, value: elements } = value;
  if (elements === null) throw new Error('an array whose elements were skipped cannot be written');
  const encoded = elements.map((each) =>
    element === 'string'
      ? encodedText(String(each))
      : number(element, each as number | bigint | boolean),
  );
  return [type, typeNumber(element), number('u64', elements.length), ...encoded];
}

const tooLong = (name: string) =>
  usageError(
    `a GGUF file cannot hold the tensor name ${JSON.stringify(name)}`,
    `names have at most ${MAX_NAME_BYTES} bytes; write safetensors instead`,
  );
