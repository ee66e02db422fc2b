import { usageError } from '../../base/errors.js';
import type { ByteChunks, ByteSink } from '../../base/files/write-whole.js';
import type { Shape, StoredDtype } from '../../base/tensor/dtype.js';
import { elementCount, shapeText, storedBytes } from '../../base/tensor/dtype.js';
import { SMALL_FILE } from '../checkpoint-rules.js';
import {
  FORMAT_KEY,
  LENGTH_FIELD_BYTES,
  MAX_HEADER_BYTES,
  MAX_RANK,
  MAX_TENSORS,
  METADATA_KEY,
  SAFETENSORS_DTYPES,
} from './read-safetensors.js';

/** Header fields of a tensor. */
export interface TensorHeading {
  readonly name: string;
  readonly dtype: StoredDtype;
  readonly shape: Shape;
}

export interface TensorToWrite extends TensorHeading {
  /** Yields all bytes of the tensor. Called once, in file order. */
  chunks(): ByteChunks;
}

export interface PlacedTensor<Tensor extends TensorHeading> {
  readonly tensor: Tensor;
  /** Offset of the first byte from the start of the data. */
  readonly offset: number;
  readonly bytes: number;
}

export interface SafetensorsPlan<Tensor extends TensorHeading> {
  /** Everything before the data: length field and header. */
  readonly header: Uint8Array;
  readonly tensors: readonly PlacedTensor<Tensor>[];
  readonly fileBytes: number;
}

/** The header is padded so that the data begin at a multiple of this. */
const ALIGNMENT = 8;

/** Metadata entry for the library that uses the tensors. */
const FORMAT = [FORMAT_KEY, 'pt'] as const;

/**
 * Writes a safetensors file.
 * @param metadata Strings stored in the header; `format` is always `pt`.
 * @param leastBytes Bytes that the file has at least.
 * @throws UserError if the format cannot store a tensor.
 * @throws Error if the chunks of a tensor do not match the size of its shape and dtype.
 */
export async function writeSafetensors(
  sink: ByteSink,
  tensors: readonly TensorToWrite[],
  metadata?: ReadonlyMap<string, string>,
  leastBytes?: number,
): Promise<void> {
  const plan = planSafetensors(tensors, metadata, leastBytes);
  await sink.write(plan.header);
  for (const { tensor, bytes } of plan.tensors) {
    let written = 0;
    for await (const chunk of tensor.chunks()) {
      written += chunk.length;
      if (written > bytes) break;
      await sink.write(chunk);
    }
    if (written !== bytes) {
      const amount = written > bytes ? `at least ${written}` : `only ${written}`;
      throw new Error(`the tensor ${JSON.stringify(tensor.name)} of ${bytes} bytes has ${amount}`);
    }
  }
}

/**
 * Plans the file for `writeSafetensors`, without the data. The order is the one of the format's library: by
 * dtype, wide ones first, then by UTF-8 name.
 * @param leastBytes Bytes that the file has at least; the header is filled up with spaces.
 * @throws UserError if the format cannot store a tensor.
 */
export function planSafetensors<Tensor extends TensorHeading>(
  tensors: readonly Tensor[],
  metadata: ReadonlyMap<string, string> = new Map(),
  leastBytes = 0,
): SafetensorsPlan<Tensor> {
  const names = new Set(tensors.map(({ name }) => name));
  if (names.size < tensors.length) throw new Error('two tensors are to be written under one name');
  const placed: PlacedTensor<Tensor>[] = [];
  let end = 0;
  for (const tensor of inFileOrder(tensors)) {
    const bytes = headingBytes(tensor);
    placed.push({ tensor, offset: end, bytes });
    end += bytes;
  }
  const header = headerOf(placed, metadata, leastBytes);
  return { header, tensors: placed, fileBytes: header.length + end };
}

function inFileOrder<Tensor extends TensorHeading>(tensors: readonly Tensor[]): Tensor[] {
  const keyed = tensors.map((tensor) => ({
    tensor,
    dtype: SAFETENSORS_DTYPES.indexOf(tensor.dtype),
    name: Buffer.from(tensor.name),
  }));
  keyed.sort((a, b) => a.dtype - b.dtype || a.name.compare(b.name));
  return keyed.map(({ tensor }) => tensor);
}

function headingBytes(tensor: TensorHeading): number {
  const { name, dtype, shape } = tensor;
  if (!SAFETENSORS_DTYPES.includes(dtype)) {
    throw cannotHold(`the dtype ${dtype} of the tensor ${JSON.stringify(name)}`);
  }
  if (name === METADATA_KEY) throw cannotHold(`a tensor of the name ${METADATA_KEY}`);
  // Zeros count as ones: the strides of a tensor without elements must be exact too.
  const extent = elementCount(shape.map((size) => (size === 0 ? 1 : size)));
  const elements = shape.includes(0) ? 0 : extent;
  const bytes = elements === undefined ? undefined : storedBytes(elements, dtype);
  if (extent === undefined || bytes === undefined || shape.length > MAX_RANK) {
    throw cannotHold(`the tensor ${JSON.stringify(name)}, ${dtype} ${shapeText(shape)}`);
  }
  return bytes;
}

function headerOf(
  placed: readonly PlacedTensor<TensorHeading>[],
  metadata: ReadonlyMap<string, string>,
  leastBytes: number,
): Uint8Array {
  // First for its position, last so that `metadata` cannot replace it.
  const strings = new Map([FORMAT, ...metadata, FORMAT]);
  const members = [...strings].map(([key, value]) => `${literal(key)}:${literal(value)}`);
  const entries = placed.map(({ tensor: { name, dtype, shape }, offset, bytes }) => {
    const fields = `"dtype":"${dtype}","shape":[${shape.join()}],"data_offsets":[${offset},${offset + bytes}]`;
    return `,${literal(name)}:{${fields}}`;
  });
  const json = Buffer.from(`{"${METADATA_KEY}":{${members.join()}}${entries.join('')}}`);
  const least = leastHeaderBytes(placed, leastBytes);
  const length = Math.ceil(Math.max(json.length, least) / ALIGNMENT) * ALIGNMENT;
  if (length > MAX_HEADER_BYTES) {
    throw cannotHold(`${placed.length} tensors whose header has ${length} bytes`);
  }
  const header = Buffer.alloc(LENGTH_FIELD_BYTES + length, ' ');
  header.writeBigUInt64LE(BigInt(length));
  json.copy(header, LENGTH_FIELD_BYTES);
  return header;
}

/** Bytes that make a file large enough for its number of tensors, by the rules for reading it. */
function leastHeaderBytes(
  placed: readonly PlacedTensor<TensorHeading>[],
  leastBytes: number,
): number {
  const least = placed.length <= MAX_TENSORS.small ? leastBytes : SMALL_FILE;
  const last = placed.at(-1);
  return least - LENGTH_FIELD_BYTES - (last ? last.offset + last.bytes : 0);
}

/** Encodes a JSON string. */
function literal(text: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw cannotHold(`the text ${JSON.stringify(text)}, which has half a surrogate pair`);
  }
  return JSON.stringify(text);
}

const cannotHold = (what: string) =>
  usageError(`a safetensors file cannot hold ${what}`, 'write a PyTorch file instead');
