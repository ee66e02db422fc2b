/** Weights in MXFP4, which transformers stores as pairs of byte tensors: gpt-oss, and others of its layout. */

import { counted, nameText } from '../../base/text/words.js';
import type { TensorSummary } from '../../checkpoint/summary.js';
import type { Fact } from '../kit/report.js';

/** Bytes of the 32 values of 4 bits that share a scale. */
const BLOCK_BYTES = 16;
/** Type of both tensors of a pair in a file. */
export const MXFP4_DTYPE = 'U8';
const [BLOCKS, SCALES] = ['_blocks', '_scales'];

type Tensors = Readonly<Record<string, Pick<TensorSummary, 'dtype' | 'shape'>>>;

/** Name of the values that the scales in tensor `name` belong to; undefined for other tensors. */
export function mxfp4ValuesOf(name: string, tensors: Tensors): string | undefined {
  const scales = tensors[name];
  if (!name.endsWith(SCALES) || scales?.dtype !== MXFP4_DTYPE) return undefined;
  const values = name.slice(0, -SCALES.length) + BLOCKS;
  const blocks = Object.hasOwn(tensors, values) ? tensors[values] : undefined;
  if (blocks?.dtype !== MXFP4_DTYPE) return undefined;
  const shape = [...scales.shape, BLOCK_BYTES];
  const isPair =
    shape.length === blocks.shape.length && shape.every((size, at) => size === blocks.shape[at]);
  return isPair ? values : undefined;
}

/** Meaning of the bytes of a gpt-oss checkpoint (OCP Microscaling Formats 1.0, 2023, sections 5.2 and 5.3.3). */
export function mxfp4Fact(tensors: Tensors): Fact | undefined {
  const pairs = Object.keys(tensors).flatMap((scales) => {
    const values = mxfp4ValuesOf(scales, tensors);
    return values === undefined ? [] : [{ values, scales }];
  });
  const [first, ...others] = pairs;
  if (first === undefined) return undefined;
  const names = others.length === 0 ? first : { values: `*${BLOCKS}`, scales: `*${SCALES}` };
  return {
    name: 'MXFP4',
    text:
      `${counted(pairs.length, 'weight')}: values of 4 bits (E2M1) in ${nameText(names.values)}, ` +
      `E8M0 scales of 32 values each in ${nameText(names.scales)}, both stored as U8`,
  };
}
