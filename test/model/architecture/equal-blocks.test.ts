import { describe, expect, it } from 'vitest';
import {
  areEqualButNames,
  equalBlocks,
  exampleOf,
  tensorsOfKinds,
} from '../../../src/model/architecture/equal-blocks.js';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { presetsOf } from '../../../src/model/architecture/presets.js';
import type { OwnedTensor } from '../../../src/model/architecture/walk.js';
import { countedTensors } from '../../../src/model/architecture/walk.js';
import { countedParts, primitivesOf } from '../../../src/model/operations/lower.js';
import type { Primitive } from '../../../src/model/operations/primitive.js';

/** Sums of a value by a key. */
function sumsBy<Each>(
  all: readonly Each[],
  keyOf: (each: Each) => string,
  of: (each: Each) => number,
) {
  const sums: Record<string, number> = {};
  for (const each of all) sums[keyOf(each)] = (sums[keyOf(each)] ?? 0) + of(each);
  return sums;
}

const elementsBy = (tensors: readonly OwnedTensor[]) =>
  sumsBy(
    tensors,
    ({ tensor, component }) => `${component} ${tensor.role} ${tensor.name.replace(/\d+/g, '*')}`,
    ({ tensor, count }) => count * tensor.elements,
  );

const workBy = (primitives: readonly Primitive[]) =>
  sumsBy(
    primitives,
    (each) => `${each.component} ${each.kind} ${'spans' in each ? JSON.stringify(each.spans) : ''}`,
    (each) => (each.times ?? 1) * (each.output + ('weights' in each ? each.weights : 0)),
  );

const presetModels = async (family: (typeof FAMILY_NAMES)[number]) => {
  const { schema, build } = await loadFamily(family);
  return presetsOf(family).map(({ document }) => build(schema.parse(document)));
};

/** The hybrid model, in which blocks can share tensors. */
async function hybrid(changes: object): Promise<LanguageModel> {
  const { schema, build } = await loadFamily('hybrid');
  const [{ document } = { document: { model: {} } }] = presetsOf('hybrid');
  const { model, ...rest } = document as { model: object };
  return build(schema.parse({ ...rest, model: { ...model, num_layers: 6, ...changes } }));
}

describe('blocks that differ only in names', () => {
  it('are counted once, with the counts of all, for the presets of every family', async () => {
    let folded = 0;
    for (const name of FAMILY_NAMES) {
      for (const model of await presetModels(name)) {
        expect(elementsBy(tensorsOfKinds(model)), name).toEqual(elementsBy(countedTensors(model)));
        expect(workBy(countedParts(model).flat()), name).toEqual(workBy(primitivesOf(model)));
        const kinds = equalBlocks(model.blocks);
        expect(kinds.reduce((sum, { times }) => sum + times, 0)).toBe(model.blocks.length);
        if (kinds.length < model.blocks.length) folded++;
      }
    }
    expect(folded).toBeGreaterThan(40);
  }, 60_000);

  it('hold a tensor that they share once', async () => {
    const own = await hybrid({ srte_share_across_layers: false });
    const shared = await hybrid({ srte_share_across_layers: true });
    for (const model of [own, shared]) {
      expect(equalBlocks(model.blocks).length).toBeLessThan(model.blocks.length);
      expect(elementsBy(tensorsOfKinds(model))).toEqual(elementsBy(countedTensors(model)));
    }
  });

  it('have one example in models that differ in depth', async () => {
    const [deep, flat] = [await hybrid({}), await hybrid({ num_layers: 2 })];
    expect(exampleOf(deep.blocks[5] as LanguageModel['blocks'][0])).toBe(
      exampleOf(flat.blocks[1] as LanguageModel['blocks'][0]),
    );
  });
});

describe('areEqualButNames', () => {
  const layer = { kind: 'linear', name: 'a', weight: { name: 'a.w', aliases: [], shape: [2, 3] } };

  it('reads no names', () => {
    const renamed = {
      ...layer,
      name: 'b',
      weight: { ...layer.weight, name: 'b.w', aliases: ['c'] },
    };
    expect(areEqualButNames(layer, renamed)).toBe(true);
  });

  it.each([
    ['a size', { ...layer, weight: { ...layer.weight, shape: [2, 4] } }],
    ['a longer list', { ...layer, weight: { ...layer.weight, shape: [2, 3, 1] } }],
    ['a further key', { ...layer, bias: undefined }],
    ['another key', { kind: 'linear', name: 'a', matrix: layer.weight }],
    ['null in place of an object', { ...layer, weight: null }],
  ])('finds %s', (_, other) => {
    expect(areEqualButNames(layer, other)).toBe(false);
    expect(areEqualButNames(other, layer)).toBe(false);
  });

  it('compares numbers as they are', () => {
    expect(areEqualButNames({ eps: Number.NaN }, { eps: Number.NaN })).toBe(true);
    expect(areEqualButNames({ eps: 0 }, { eps: -0 })).toBe(true);
  });
});
