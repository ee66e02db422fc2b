import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../../../src/config/document.js';
import { modelOf } from '../../../../src/input/model-input/model-file.js';
import { countParameters } from '../../../../src/model/budget/parameters.js';

/** The sizes of minigpt-small by the names of the course. The feed-forward width defaults to 4 times the hidden size. */
const SIZES = {
  vocab_size: 10_000,
  hidden_size: 384,
  num_layers: 12,
  num_heads: 12,
  num_kv_heads: 3,
  max_position_embeddings: 1024,
  flash_attn: true,
};
const SMALL = 29_506_944;

const load = (value: unknown, file = 'm.yaml', options = {}) =>
  modelOf(parseDocument(JSON.stringify(value), file), options);

describe('dictionaries of MiniGPT', () => {
  it.each<[string, unknown, string, object]>([
    ['a document', { model: { family: 'minigpt', ...SIZES } }, 'm.yaml', {}],
    ['a config.json', { model_type: 'minigpt', ...SIZES }, 'config.json', {}],
    ['a config.json without its kind', SIZES, 'config.json', { family: 'minigpt' }],
  ])('are read as %s', async (_, value, file, options) => {
    const { model, warnings } = await load(value, file, options);
    expect(countParameters(model).parameters).toBe(SMALL);
    expect(warnings).toEqual([]);
  });

  it('without a kind are recognised in the error, with a suggestion', async () => {
    await expect(load(SIZES, 'config.json')).rejects.toMatchObject({
      problems: [
        {
          suggestion:
            'its keys are those of minigpt: add "model_type": "minigpt", or write --family minigpt',
        },
      ],
    });
  });

  it.each([['model.num_layers=3'], ['num_layers=3'], ['model.num_hidden_layers=3']])(
    'can be overridden: %s',
    async (set) => {
      const { model } = await load({ model: { family: 'minigpt', ...SIZES } }, 'm.yaml', {
        set: [set],
      });
      expect(model.blocks).toHaveLength(3);
    },
  );

  it('with two names for a setting are refused, with the place of the first', async () => {
    const value = { model: { family: 'minigpt', ...SIZES, num_hidden_layers: 9 } };
    await expect(load(value)).rejects.toMatchObject({
      problems: [{ path: 'model.num_layers', message: 'unknown key "num_layers"' }],
    });
  });

  it('keep the place of a wrong value', async () => {
    const text =
      'model:\n  family: minigpt\n  hidden_size: 8\n  num_heads: 2\n  num_layers: none\n';
    await expect(modelOf(parseDocument(text, 'm.yaml'))).rejects.toMatchObject({
      problems: [{ line: 5, path: 'model.num_hidden_layers' }],
    });
  });
});

describe('rope_scaling.type, the old name of rope_type', () => {
  const rotaryOf = async (family: string, scaling: object, set: string[] = []) => {
    const sizes = {
      hidden_size: 64,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 2,
    };
    const model = { family, ...sizes, rope_scaling: scaling };
    const loaded = await load({ model }, 'm.yaml', { set });
    expect(loaded.warnings).toEqual([]);
    return JSON.stringify(loaded.document);
  };

  it.each(['llama', 'qwen3', 'mistral', 'minimind'])('is read by %s', async (family) => {
    const rest = { factor: 4, original_max_position_embeddings: 2048 };
    expect(await rotaryOf(family, { type: 'yarn', ...rest })).toBe(
      await rotaryOf(family, { rope_type: 'yarn', ...rest }),
    );
  });

  it('can be overridden', async () => {
    const document = await rotaryOf('llama', { type: 'linear', factor: 2 }, [
      'model.rope_scaling.type=dynamic',
    ]);
    expect(document).toContain('"rope_type":"dynamic"');
  });

  it('is dropped from a config.json whose family does not read it', async () => {
    const config = { model_type: 'mpt', n_layers: 1, rope_scaling: { type: 'yarn' }, type: 0 };
    const { document } = await load(config, 'config.json');
    expect(JSON.stringify(document)).not.toContain('rope_type');
  });
});
