import { describe, expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../../src/architecture/families.js';
import { stateOf } from '../../src/budget/state.js';
import { readJson } from '../fixtures.js';

interface Case {
  readonly config: { readonly model_type: FamilyName };
  readonly cache: {
    readonly keys_values: number;
    readonly convolutions: number;
    readonly states: number;
  };
}

const { tokens, cases } = readJson<{ tokens: number; cases: readonly Case[] }>(
  'fixtures/hybrid-state.json',
);

describe('the state of a hybrid of 80 layers after a long prompt', () => {
  it.each(cases)('$config.model_type: bytes of the cache of transformers', async (each) => {
    const family = await loadFamily(each.config.model_type);
    const settings = family.fromHuggingFace?.read(each.config).settings;
    const document = { model: { ...settings, family: family.name } };
    const model = family.build(family.schema.parse(document));
    expect(model.blocks).toHaveLength(80);
    const state = stateOf(model, { batch: 1, context: tokens, dtype: 'bf16' });
    expect({
      keys_values: state.keyValueCache.value,
      convolutions: state.convolutionState.value,
      states: state.mambaState.value,
    }).toEqual(each.cache);
  });
});
