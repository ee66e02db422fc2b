import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { countParameters } from '../../src/budget/parameters.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { parseDocument } from '../../src/config/document.js';
import type { UserError } from '../../src/errors.js';
import { openCheckpointModel } from '../../src/model-input/checkpoint-model.js';
import { modelOf } from '../../src/model-input/model-file.js';
import { textPartOf } from '../../src/model-input/text-part.js';
import { checkpointWeights } from '../../src/runtime/weights.js';
import { inPackage, readJson } from '../fixtures.js';
import { differenceAt, idsOf, valuesOf } from '../runtime/fixture-models.js';
import { referenceEngine } from '../runtime/reference-engine.js';

const FOLDER = 'fixtures/text-parts';

const CASES = fs
  .readdirSync(inPackage(FOLDER), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const FAMILY: Readonly<Record<string, string>> = {
  aya_vision: 'cohere2',
  gemma3: 'gemma3_text',
  glm4v: 'glm4',
  mistral3: 'mistral',
  'mistral3-ministral3': 'ministral3',
  qwen2_vl: 'qwen2',
  qwen3_vl: 'qwen3',
  smolvlm: 'llama',
};

describe.each(CASES)('the language model of %s', (name) => {
  const folder = inPackage(FOLDER, name);
  const { parameters, input_ids } = readJson<{ parameters: number; input_ids: number[][] }>(
    FOLDER,
    name,
    'case.json',
  );
  const load = async () => (await openCheckpointModel(folder, {})).model(undefined);

  it('has the names and parameters of the checkpoint', async () => {
    const { model, family, checkpoint } = await load();
    expect(family.name).toBe(FAMILY[name]);
    expect(checkpoint).toMatchObject({ matches: true, faults: [] });
    expect(countParameters(model).parameters).toBe(parameters);
  });

  it('gives warnings about the parts left out, with their parameters', async () => {
    const { warnings, leftOut = [], textOf } = await load();
    const [kind = ''] = name.split('-');
    expect(textOf).toBe(kind);
    const all = openCheckpoint(`${folder}/model.safetensors`);
    const stored = [...all.tensors.values()].reduce((sum, { elements }) => sum + elements, 0);
    const left = leftOut.reduce((sum, each) => sum + each.parameters, 0);
    expect(parameters + left).toBe(stored);
    all.close();
    const messages = warnings.map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining(`left out of ${kind}: `));
    expect(messages).toContainEqual(expect.stringMatching(/^vision_config is left out: /));
  });

  it('gives the logits of the whole model for text', async () => {
    const { model } = await load();
    const checkpoint = openCheckpoint(`${folder}/model.safetensors`);
    const expected = openCheckpoint(`${folder}/expected.safetensors`);
    const program = await referenceEngine().load(model, checkpointWeights(model, checkpoint));
    const { output } = await program.run({ ids: idsOf(input_ids) });
    const logits = valuesOf(expected.tensors.get('logits') ?? expect.unreachable());
    const largest = logits.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    expect(differenceAt(output, logits, 1)).toBeLessThan(2e-5 * largest);
  });
});

describe('the text part of a config', () => {
  const text = { model_type: 'llama', hidden_size: 24 };

  it('is found under each of its names, for any outer kind', () => {
    for (const key of ['text_config', 'llm_config', 'language_config']) {
      const part = textPartOf({ model_type: 'no_such_kind', [key]: text });
      expect(part).toMatchObject({ path: [key], config: { model_type: 'llama' } });
    }
  });

  it('is not found when its kind is unknown', () => {
    const other = { model_type: 'llava', text_config: { model_type: 'no_such_kind' } };
    expect(textPartOf(other)).toBeUndefined();
  });

  it('has the default kind of the outer class if it names none', () => {
    const part = textPartOf({ model_type: 'llava', text_config: { hidden_size: 24 } });
    expect(part?.config.model_type).toBe('llama');
  });

  it('is at the top level in old files of Qwen 2 VL', () => {
    const part = textPartOf({
      model_type: 'qwen2_vl',
      hidden_size: 24,
      vision_config: { depth: 2 },
      vision_token_id: 3,
      rope_scaling: { type: 'mrope', mrope_section: [1, 1, 1] },
    });
    expect(part).toMatchObject({
      path: [],
      config: { model_type: 'qwen2', hidden_size: 24, rope_scaling: { type: 'default' } },
      leftOut: ['vision_config'],
    });
    expect(part?.config).not.toHaveProperty('vision_token_id');
  });

  it('is tied according to the outer key', () => {
    const tied = (whole: object) =>
      textPartOf({ ...whole, text_config: { ...text, ...('text' in whole ? {} : {}) } })?.config
        .tie_word_embeddings;
    expect(tied({ model_type: 'gemma3' })).toBe(true);
    expect(tied({ model_type: 'gemma3', tie_word_embeddings: false })).toBe(false);
    expect(tied({ model_type: 'llava' })).toBe(false);
    const inside = { ...text, tie_word_embeddings: true };
    const config = (model_type: string) =>
      textPartOf({ model_type, tie_word_embeddings: false, text_config: inside })?.config;
    expect(config('llava')?.tie_word_embeddings).toBe(true);
    expect(config('qwen3_vl')?.tie_word_embeddings).toBe(false);
  });
});

describe('an unknown kind of model', () => {
  const keys = {
    hidden_size: 24,
    intermediate_size: 20,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    vocab_size: 61,
    rms_norm_eps: 1e-6,
    mlp_bias: true,
    attention_bias: false,
  };
  const document = parseDocument(JSON.stringify({ model_type: 'new', ...keys, own: 3 }), 'c.json');

  // Kinds with the same keys have other norms, biases or multipliers: a family that knows all keys proves nothing.
  it('is reported without a family to read it as', async () => {
    const whole = { model_type: 'whole', text_config: { model_type: 'new', ...keys } };
    const documents = [
      document,
      parseDocument(JSON.stringify({ model_type: 'new', ...keys }), 'c.json'),
      parseDocument(JSON.stringify(whole), 'c.json'),
      parseDocument(JSON.stringify({ architectures: ['NewForCausalLM'], ...keys }), 'c.json'),
    ];
    for (const each of documents) {
      const error: unknown = await modelOf(each).catch((thrown: unknown) => thrown);
      expect(JSON.stringify((error as UserError).problems)).not.toMatch(/--family|has the keys/);
    }
  });

  it('is read as the family of --family', async () => {
    const { family, warnings } = await modelOf(document, { family: 'llama' });
    expect(family.name).toBe('llama');
    expect(warnings.map(({ path }) => path)).toEqual(['own']);
  });
});

describe('a head without tie_word_embeddings', () => {
  const warningsOf = async (kind: string, text: object, keys: object = {}) => {
    const config = { model_type: kind, text_config: text, ...keys };
    const { warnings, model } = await modelOf(parseDocument(JSON.stringify(config), 'config.json'));
    return { warnings: warnings.map(({ message }) => message), model };
  };
  // The sizes of Mistral Small 3.1, whose files have a head and no such key: 23.57B, and the head is 131,072 × 5,120.
  const SMALL = {
    model_type: 'mistral',
    head_dim: 128,
    hidden_size: 5120,
    intermediate_size: 32_768,
    num_attention_heads: 32,
    num_hidden_layers: 40,
    num_key_value_heads: 8,
    sliding_window: null,
    vocab_size: 131_072,
  };

  it('is a warning where only the class around the text ties it', async () => {
    const { warnings, model } = await warningsOf('mistral3', SMALL);
    expect(warnings).toEqual([expect.stringContaining('no tie_word_embeddings: the head shares')]);
    expect(countParameters(model).parameters).toBe(23_572_403_200 - 131_072 * 5120);
    const given = await warningsOf('mistral3', SMALL, { tie_word_embeddings: false });
    expect(given.warnings).toEqual([]);
    expect(countParameters(given.model).parameters).toBe(23_572_403_200);
  });

  it('is none where the text model ties it itself', async () => {
    expect(
      (await warningsOf('gemma3', { hidden_size: 256, num_hidden_layers: 2 })).warnings,
    ).toEqual([]);
  });
});
