import { describe, expect, it } from 'vitest';
import { groupTensors } from '../../src/checkpoint/summary.js';
import { storageOf, tensorIn } from './stored-tensors.js';

const storage = storageOf(new Uint8Array(400));
const tensor = tensorIn(storage, [2, 3]);
const half = tensorIn(storage, [2, 3], { dtype: 'F16' });

const groups = (...names: string[]) =>
  groupTensors(new Map(names.map((name) => [name, tensor]))).map(({ name, layers, tensors }) => [
    name,
    layers,
    tensors,
  ]);

describe('groupTensors', () => {
  it.each([
    ['layers.0.weight', 'layers', [0]],
    ['model.layers.11.mlp.experts.3.weight', 'model.layers', [11]],
    ['transformer.h.3.attn.weight', 'transformer.h', [3]],
    ['layer1.0.conv.weight', 'layer1', [0]],
    ['0.weight', '', [0]],
    ['7', '', [7]],
    ['embed.weight', 'embed', undefined],
    ['embed', 'embed', undefined],
    ['model.embed_tokens.weight', 'model.embed_tokens', undefined],
    ['model.vision.patch.proj.weight', 'model.vision', undefined],
    ['layers.00.weight', 'layers.00', undefined],
    ['layers.123456.weight', 'layers.123456', undefined],
    ['layers..weight', 'layers.', undefined],
    ['', '', undefined],
    ['__proto__.weight', '__proto__', undefined],
  ])('puts %j in %j', (name, group, layers) => {
    expect(groups(name)).toEqual([[group, layers, 1]]);
  });

  it('groups layers with equal names, dtypes and shapes, in any order', () => {
    const form = (n: number, ...names: string[]) => names.map((name) => `h.${n}.${name}`);
    expect(
      groups('embed', ...form(10, 'a', 'b'), ...form(2, 'b', 'a'), ...form(3, 'a'), 'norm.w'),
    ).toEqual([
      ['embed', undefined, 1],
      ['h', [2, 10], 2],
      ['h', [3], 1],
      ['norm', undefined, 1],
    ]);
  });

  it('separates layers with different dtypes or shapes', () => {
    const layerGroups = groupTensors(
      new Map([
        ['h.0.w', tensor],
        ['h.1.w', half],
        ['h.2.w', tensorIn(storage, [3, 2])],
        ['h.3.w', half],
      ]),
    );
    expect(layerGroups.map(({ layers }) => layers)).toEqual([[0], [1, 3], [2]]);
  });

  it('counts the tensors of each group', () => {
    const counted = groupTensors(
      new Map([
        ['h.0.a', tensor],
        ['h.0.b', half],
        ['h.1.a', tensor],
        ['h.1.b', half],
      ]),
    );
    expect(counted).toEqual([
      {
        name: 'h',
        layers: [0, 1],
        tensors: 2,
        elements: 12,
        bytes: 24 + 12,
        dtypes: ['F32', 'F16'],
      },
    ]);
  });

  it('separates a part without a number from layers of the same name', () => {
    expect(groups('model.norm.weight', 'model.norm.0.weight', 'model.norm.bias')).toEqual([
      ['model.norm', undefined, 2],
      ['model.norm', [0], 1],
    ]);
  });
});
