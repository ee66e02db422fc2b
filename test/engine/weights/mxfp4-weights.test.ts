import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { holdsMxfp4, mxfp4Reader } from '../../../src/engine/weights/mxfp4-weights.js';
import { clampedExperts } from '../../../src/model/architecture/constructors/feed-forward-layers.js';
import { inPackage } from '../../fixtures.js';
import { valuesOf } from '../fixture-models.js';

const tensorIn = (file: string, name: string) => {
  const tensor = openCheckpoint(inPackage('fixtures/mxfp4', file)).tensors.get(name);
  return tensor ?? expect.unreachable(name);
};

const parts = {
  blocks: tensorIn('model.safetensors', 'w_blocks'),
  scales: tensorIn('model.safetensors', 'w_scales'),
};
const expected = valuesOf(tensorIn('expected.safetensors', 'w')).data;
const sizes = { experts: 3, hidden: 64, inner: 3 };
const { gateUp: tensor } = clampedExperts('m', sizes, 'quickGelu', 7);

describe('experts stored as MXFP4', () => {
  it('have the same values as in transformers', () => {
    const values = new Float32Array(tensor.elements);
    mxfp4Reader(tensor, parts)(0, values);
    expect(values).toEqual(expected);
  });

  it('can be read in any pieces', () => {
    const read = mxfp4Reader(tensor, parts);
    for (const [first, count] of [
      [700, 100],
      [5, 1],
      [380, 400],
      [tensor.elements - 3, 3],
    ] as const) {
      const values = new Float32Array(count);
      read(first, values);
      expect(values).toEqual(expected.slice(first, first + count));
    }
  });

  it('must fit the tensor', () => {
    expect(holdsMxfp4(tensor, parts)).toBe(true);
    const other = clampedExperts('m', { ...sizes, hidden: 32 }, 'quickGelu', 7);
    expect(holdsMxfp4(other.gateUp, parts)).toBe(false);
  });
});
