import { describe, expect, it } from 'vitest';
import { ByteFile } from '../../../src/checkpoint/byte-file.js';
import { tensorIn } from '../../../src/checkpoint/stored-tensor.js';
import { tensorsOfGguf } from '../../../src/input/model-input/gguf/gguf-weights.js';
import { inPackage } from '../../fixtures.js';

const file = ByteFile.open(inPackage('package.json'));
const NAME = (layer: number) => `blk.${layer}.ffn_up_exps.weight`;
const HEADS = { heads: 4, keyValueHeads: 4 };

/** Names of the model for tensors of all experts, each of these shapes. */
const namesFor = (shapes: readonly (readonly number[])[]): string[] => {
  const stored = shapes.map((shape, layer) => {
    const tensor = tensorIn(file, 'F32', shape);
    return [NAME(layer), { ...tensor, bytes: 4 * tensor.elements }] as const;
  });
  return [...tensorsOfGguf('llama', new Map(stored), HEADS).keys()];
};

describe('a tensor of all experts in a GGUF file', () => {
  it('is split into its experts', () => {
    expect(namesFor([[4096, 1, 4]])).toHaveLength(4096);
  });

  it('keeps its name if it states more experts than models have', () => {
    expect(namesFor([[4097, 1, 4]])).toEqual([NAME(0)]);
  });

  it('keeps its name if all of them state too many tiny experts', () => {
    const tiny = Array.from({ length: 6 }, () => [4000, 1, 4]);
    expect(namesFor(tiny)).toHaveLength(5 * 4000 + 1);
    expect(namesFor(tiny.map(() => [4000, 16, 16]))).toHaveLength(6 * 4000);
  });
});
