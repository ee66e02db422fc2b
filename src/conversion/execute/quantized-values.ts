/** Bytes of the tensors of a packed weight, computed from the bytes of the weight in whole rows. */
import type { PackedPart } from '../../checkpoint/packed-weights.js';
import { packedWords } from '../../checkpoint/packed-weights.js';
import { UserError } from '../../errors.js';
import { decodeValues } from '../../tensor/decode-values.js';
import { STORED_DTYPES } from '../../tensor/dtype.js';
import { encode } from '../../tensor/encode.js';
import type { QuantizedRows, ScaleDtype, WeightForm } from '../../tensor/group-quantization.js';
import {
  groupsIn,
  NotFiniteWeight,
  packCodes,
  quantizeRows,
} from '../../tensor/group-quantization.js';
import type { PlannedTensor } from '../plan/conversion-plan.js';

/** Values of whole rows at a time. */
const BLOCK_NUMBERS = 2 ** 18;

/** Rows whose zero points share words, for any number of bits. */
const ROW_STEP = 8;

interface PackedValues {
  readonly part: PackedPart;
  readonly form: WeightForm;
  /** The weight that is quantized, and its bytes. */
  readonly weight: PlannedTensor;
  readonly values: () => AsyncIterable<Uint8Array>;
  /** The file of the input, for messages. */
  readonly file: string;
}

/**
 * The bytes of one of the tensors, in order.
 * @throws UserError for a weight with a value that is not finite.
 */
export async function* packedValues(values: PackedValues): AsyncGenerator<Uint8Array, undefined> {
  const { part, form, weight, file } = values;
  const [rows = 0, columns = 0] = weight.shape;
  if (part === 'shape') {
    yield new Uint8Array(BigInt64Array.of(BigInt(rows), BigInt(columns)).buffer);
    return;
  }
  const rowBytes = weight.bytes / rows;
  const atOnce = Math.max(1, Math.floor(BLOCK_NUMBERS / columns / ROW_STEP)) * ROW_STEP;
  for await (const block of blocksOf(values.values(), atOnce * rowBytes)) {
    const numbers = new Float64Array(block.length / (STORED_DTYPES[weight.dtype].bits / 8));
    decodeValues(weight.dtype, block, numbers);
    yield partOf(
      part,
      quantized(numbers, columns, form, weight, file),
      form,
      weight.dtype as ScaleDtype,
    );
  }
}

function quantized(
  numbers: Float64Array,
  columns: number,
  form: WeightForm,
  { name, dtype }: PlannedTensor,
  file: string,
): QuantizedRows {
  try {
    return quantizeRows(numbers, columns, form, dtype as ScaleDtype);
  } catch (error) {
    if (!(error instanceof NotFiniteWeight)) throw error;
    throw new UserError('refused-file', `${file} has values that cannot be quantized`, {
      problems: [
        {
          severity: 'error',
          file,
          path: `tensor ${JSON.stringify(name)}`,
          message: `expected finite values, found ${error.value}`,
          suggestion: 'convert without --quantize, or repair the weights first',
        },
      ],
    });
  }
}

function partOf(
  part: Exclude<PackedPart, 'shape'>,
  rows: QuantizedRows,
  form: WeightForm,
  dtype: ScaleDtype,
): Uint8Array {
  switch (part) {
    case 'packed':
      // Rows are whole groups, and groups are whole words.
      return packCodes(rows.codes, rows.columns, form.bits);
    case 'scale': {
      const bytes = new Uint8Array((rows.scales.length * STORED_DTYPES[dtype].bits) / 8);
      encode(dtype, rows.scales, bytes);
      return bytes;
    }
    case 'zeroPoint':
      return packedZeroPoints(rows, form);
  }
}

/** Words [rows of words, groups], in which the zero points of consecutive rows follow each other. */
function packedZeroPoints({ rows, columns, zeroPoints }: QuantizedRows, form: WeightForm) {
  const { bits } = form;
  const groups = groupsIn(columns, form);
  const perWord = 32 / bits;
  const words = packedWords(rows, bits);
  const turned = new Uint8Array(words * groups * perWord);
  for (let row = 0; row < rows; row++) {
    const word = Math.floor(row / perWord) * groups;
    for (let group = 0; group < groups; group++) {
      turned[(word + group) * perWord + (row % perWord)] = zeroPoints[row * groups + group] ?? 0;
    }
  }
  return packCodes(turned, turned.length, bits);
}

/** Cuts a stream of bytes into blocks of one size; the last may be shorter. */
async function* blocksOf(
  chunks: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array, undefined> {
  const block = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const length = Math.min(size - filled, chunk.length - at);
      block.set(chunk.subarray(at, at + length), filled);
      filled += length;
      at += length;
      if (filled < size) continue;
      yield block;
      filled = 0;
    }
  }
  if (filled > 0) yield block.subarray(0, filled);
}
