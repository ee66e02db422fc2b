import { expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import { readJson } from '../../fixtures.js';

/** Published models whose sizes are the defaults of their family, but for other keys. */
const MODELS: readonly (readonly [family: FamilyName, model: string, other: readonly string[]])[] =
  [
    ['bamba', 'bamba-9b', ['vocab_size', 'mamba_d_state']],
    ['deepseek_v3', 'deepseek-v3-main', ['max_position_embeddings']],
    ['ernie4_5_moe', 'ernie-4.5-21b-a3b', ['moe_layer_end_index']],
    ['gpt_neox', 'gpt-neox-20b', []],
    ['gpt2', 'gpt2', []],
    ['jamba', 'jamba-v0.1', []],
    ['mamba2', 'mamba-codestral-7b', []],
    ['minimax_m2', 'minimax-m2', []],
    ['mixtral', 'mixtral-8x7b', ['max_position_embeddings']],
    ['nemotron_h', 'nemotron-h-8b', ['max_position_embeddings']],
    ['phi3', 'phi-3-mini', []],
  ];

it.each(MODELS)(
  'the sizes of %s in a config without any are those of %s',
  async (name, folder, other) => {
    const config = readJson<Record<string, unknown>>(`fixtures/hf-configs/${folder}/config.json`);
    const family = await loadFamily(name);
    const { model } = family.schema.parse({ model: { family: name } }) as {
      model: Record<string, unknown>;
    };
    const shared = Object.keys(model).filter(
      (key) => [model[key], config[key]].every(Number.isInteger) && !other.includes(key),
    );
    expect(shared.length).toBeGreaterThan(4);
    const ofShared = (values: Record<string, unknown>) => shared.map((key) => [key, values[key]]);
    expect(ofShared(model)).toEqual(ofShared(config));
  },
);
