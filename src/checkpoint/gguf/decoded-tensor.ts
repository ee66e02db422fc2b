import { UserError } from '../../errors.js';
import { fillLittleEndian, viewOf } from '../../tensor/decode-values.js';
import type { Shape } from '../../tensor/dtype.js';
import type { ByteFile } from '../byte-file.js';
import { computedTensor } from '../computed-file.js';
import type { StoredTensor } from '../stored-tensor.js';
import type { GgmlTypeName } from './ggml-types.js';
import { decodeBlocks, ggmlType, isDecodable } from './ggml-types.js';

const FLOAT_BYTES = 4;

/** Bytes of blocks decoded at a time. */
const PIECE_BYTES = 2 ** 18;

/** Blocks of a file. */
interface StoredBlocks {
  readonly type: GgmlTypeName;
  readonly shape: Shape;
  readonly elements: number;
  readonly position: number;
  readonly bytes: number;
}

/** A tensor of blocks as float32 values, decoded where they are read. */
export function decodedTensor(file: ByteFile, blocks: StoredBlocks): StoredTensor {
  const { type, shape, elements, position, bytes } = blocks;
  return computedTensor(file, {
    ...{ dtype: 'F32', shape, elements },
    bytes: elements * FLOAT_BYTES,
    encoding: { type, file, position, bytes, isUnreadable: !isDecodable(type) },
    fill: (target, from) => fillDecoded(file, blocks, target, from),
  });
}

/** @param from Position in the decoded bytes, of a whole value. */
function fillDecoded(file: ByteFile, stored: StoredBlocks, target: Uint8Array, from: number): void {
  const { type, position } = stored;
  if (!isDecodable(type)) throw undecodable(file, type);
  const { values, bytes: blockBytes } = ggmlType(type);
  const first = from / FLOAT_BYTES;
  const end = first + target.length / FLOAT_BYTES;
  const piece = Math.max(1, Math.floor(PIECE_BYTES / blockBytes));
  for (let block = Math.floor(first / values); block * values < end; block += piece) {
    const count = Math.min(piece, Math.ceil(end / values) - block);
    const floats = new Float32Array(count * values);
    decodeBlocks(type, file.read(position + block * blockBytes, count * blockBytes), floats);
    const start = Math.max(first, block * values);
    const stop = Math.min(end, (block + count) * values);
    const part = target.subarray((start - first) * FLOAT_BYTES, (stop - first) * FLOAT_BYTES);
    const wanted = floats.subarray(start - block * values, stop - block * values);
    fillLittleEndian(part, FLOAT_BYTES, (words) => viewOf(Float32Array, words).set(wanted));
  }
}

const undecodable = (file: ByteFile, type: GgmlTypeName) =>
  new UserError('refused-file', `${file.path} has values of type ${type}, which cannot be read`, {
    suggestion:
      'use a file of another type, such as Q8_0, Q6_K or Q4_K; names, shapes and sizes can be shown',
  });
