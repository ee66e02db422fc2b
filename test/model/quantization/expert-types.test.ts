import { describe, expect, it } from 'vitest';
import {
  type Module,
  readQuantization,
} from '../../../src/model/quantization/quantization-config.js';

const FP8 = { quant_method: 'fp8', scale_fmt: 'ue8m0', weight_block_size: [128, 128] };

const matrix: Module = {
  name: 'model.layers.0.self_attn.q_proj',
  rows: 128,
  length: 256,
  isHead: false,
  isExpert: false,
  isTransposed: false,
};

const bytesIn = (config: object, module: Module) => {
  const { quantization } = readQuantization(config as Record<string, unknown>);
  const parts = quantization?.layout(module) ?? expect.unreachable();
  return parts.reduce((sum, { elements, bits }) => sum + (elements * bits) / 8, 0);
};

describe('experts in FP4 beside matrices in FP8', () => {
  it.each([
    ['beside the quantization', { expert_dtype: 'fp4', quantization_config: FP8 }],
    ['in the quantization', { quantization_config: { ...FP8, expert_dtype: 'fp4' } }],
  ])('have half a byte a value and a byte for 32 of them: %s', (_, config) => {
    const expert = { ...matrix, name: 'model.layers.0.mlp.experts.3.up_proj', isExpert: true };
    // A weight of DeepSeek-V4 is [out, in / 2] in bytes, its scale [out, in / 32].
    expect(bytesIn(config, expert)).toBe(128 * 128 + 128 * 8);
    expect(bytesIn(config, matrix)).toBe(128 * 256 + 2);
  });

  it('are in FP8 without the key', () => {
    expect(bytesIn({ quantization_config: FP8 }, { ...matrix, isExpert: true })).toBe(
      128 * 256 + 2,
    );
  });

  it('of another type are not counted', () => {
    const { quantization, doubts } = readQuantization({
      expert_dtype: 'int3',
      quantization_config: FP8,
    });
    expect(quantization).toBeUndefined();
    expect(doubts).toEqual(['fp8: expert_dtype "int3" is not fp8 or fp4']);
  });
});
