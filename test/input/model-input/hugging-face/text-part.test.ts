import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { UserError } from '../../../../src/base/errors.js';
import { openCheckpoint } from '../../../../src/checkpoint/open.js';
import { parseDocument } from '../../../../src/config/document.js';
import { checkpointWeights } from '../../../../src/engine/weights/weights.js';
import { openCheckpointModel } from '../../../../src/input/model-input/checkpoint/checkpoint-model.js';
import { textPartOf } from '../../../../src/input/model-input/hugging-face/text-part.js';
import { modelOf } from '../../../../src/input/model-input/model-file.js';
import { sumOfTensors } from '../../../../src/model/architecture/equal-blocks.js';
import { countParameters } from '../../../../src/model/budget/parameters.js';
import { differenceAt, idsOf, valuesOf } from '../../../engine/fixture-models.js';
import { referenceEngine } from '../../../engine/reference-engine.js';
import { inPackage, readJson } from '../../../fixtures.js';

const FOLDER = 'fixtures/text-parts';

const CASES = fs
  .readdirSync(inPackage(FOLDER), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .filter((name) => fs.existsSync(inPackage(FOLDER, name, 'case.json')));

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
  const load = async () => (await openCheckpointModel({ path: folder }, {})).model(undefined);

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
    expect(messages).toContainEqual(
      expect.stringMatching(
        /^vision_config is left out: |is described, not run: its weights are counted/,
      ),
    );
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

/** Messages of warnings, without the one about a whole model whose config is that of its text part alone. */
const withoutTowerNote = (warnings: readonly { readonly message: string }[]) =>
  warnings
    .map(({ message }) => message)
    .filter((message) => !message.startsWith('has no vision_config'));

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

describe('the quantization of a wrapper', () => {
  const quantization = {
    quant_method: 'compressed-tensors',
    format: 'pack-quantized',
    ignore: ['lm_head', 're:.*self_attn.*'],
    config_groups: {
      group_0: { targets: ['Linear'], weights: { num_bits: 4, group_size: 32, type: 'int' } },
    },
  };
  const text = { model_type: 'llama', dtype: 'float16' };
  const read = (whole: object) =>
    modelOf(parseDocument(JSON.stringify({ model_type: 'llava', ...whole }), 'config.json'));

  it('is the same in its text part as beside it', async () => {
    const inside = await read({ text_config: { ...text, quantization_config: quantization } });
    const beside = await read({
      dtype: 'float16',
      text_config: text,
      quantization_config: quantization,
    });
    expect(inside.quantization).toMatchObject({ method: 'compressed-tensors', otherType: 'f16' });
    // Parts of a scheme are functions, which are made for each file.
    expect(JSON.stringify(inside.quantization)).toBe(JSON.stringify(beside.quantization));
    expect(inside.warnings.map(({ message }) => message).join()).not.toContain('quantization');
  });

  it('gives warnings at its place there', async () => {
    const unknown = { quant_method: 'no-such-method' };
    const { warnings } = await read({ text_config: { ...text, quantization_config: unknown } });
    expect(warnings).toContainEqual(
      expect.objectContaining({ path: 'text_config.quantization_config' }),
    );
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
    return { warnings: withoutTowerNote(warnings), model };
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

describe('a class around a language model', () => {
  const read = (config: object) => modelOf(parseDocument(JSON.stringify(config), 'config.json'));
  const messages = async (config: object) => withoutTowerNote((await read(config)).warnings);
  const refusals = async (config: object) => {
    const error: unknown = await read(config).catch((each: unknown) => each);
    expect(error).toMatchObject({ code: 'invalid-config' });
    return (error as { problems: { message: string }[] }).problems.map(({ message }) => message);
  };
  const SIZES = {
    vocab_size: 61,
    hidden_size: 24,
    intermediate_size: 20,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
  };
  const around = (model_type: string, text: object, keys: object = {}) => ({
    model_type,
    text_config: { ...SIZES, ...text },
    tie_word_embeddings: true,
    ...keys,
  });

  it('that is not known is named in a warning', async () => {
    const said = await messages(around('no_such_kind', { model_type: 'llama' }));
    expect(said).toContainEqual(
      'the class of no_such_kind is not known: its language model is described as if it were alone',
    );
  });

  it.each([
    ['llava', 'gemma2', 'final_logit_softcapping', 30],
    ['gemma3', 'gemma3_text', 'final_logit_softcapping', 30],
    ['granite_speech', 'granite', 'logits_scaling', 8],
    ['aya_vision', 'cohere2', 'logit_scale', 0.25],
    ['llava', 'falcon_h1', 'embedding_multiplier', 5.6],
  ])('%s does not read what %s does: %s', async (of, kind, key, value) => {
    const said = await messages(around(of, { model_type: kind, [key]: value }));
    expect(said).toContainEqual(
      `${key} ${value} has no effect: the class around this model does not read it`,
    );
  });

  it.each([
    ['gemma4', 'gemma4_text', 'final_logit_softcapping', 30],
    ['granite4_vision', 'granite', 'logits_scaling', 8],
    ['blip-2', 'granite', 'logits_scaling', 8],
  ])('%s reads what %s does: %s', async (of, kind, key, value) => {
    const { document } = await read(around(of, { model_type: kind, [key]: value }));
    expect(document).toMatchObject({ model: { [key]: value } });
  });

  it('gives all layers of Mistral the window, whatever a list says', async () => {
    const types = ['sliding_attention', 'full_attention'];
    const mistral = { model_type: 'mistral', sliding_window: 8 };
    for (const of of ['llava', 'llava_next', 'mistral3', 'idefics2']) {
      const listed = around(of, { ...mistral, layer_types: types });
      expect(await refusals(listed)).toContainEqual(
        'layer_types a list is not supported: the layers have different windows',
      );
    }
    const all = around('llava', { ...mistral, layer_types: [types[0], types[0]] });
    expect(await messages(all)).toEqual([]);
  });

  it('of Qwen 3 VL has no windows', async () => {
    expect(await refusals(around('qwen3_vl', { sliding_window: 8 }))).toContainEqual(
      expect.stringContaining('sliding_window 8 is not supported'),
    );
    expect(await messages(around('qwen3_vl', { sliding_window: null }))).toEqual([]);
  });

  it('of Zamba2 is refused where the head and the shared blocks have different ties', async () => {
    const { num_key_value_heads: _, ...sizes } = SIZES;
    const zamba2 = (of: string, blocks: number, flag: boolean) => ({
      model_type: of,
      text_config: {
        ...sizes,
        model_type: 'zamba2',
        layers_block_type: ['hybrid', 'hybrid'],
        num_mem_blocks: blocks,
        tie_word_embeddings: flag,
      },
      tie_word_embeddings: !flag,
    });
    const ends = ', but the blocks of zamba2 follow its own flag';
    expect(await refusals(zamba2('musicflamingo', 1, true))).toContainEqual(
      `musicflamingo does not tie the head${ends}`,
    );
    expect(await refusals(zamba2('mistral3', 1, false))).toContainEqual(
      `mistral3 ties the head${ends}`,
    );
    // Each layer has a block of its own.
    const alone = await messages(zamba2('musicflamingo', 2, true));
    expect(alone).toContainEqual(expect.stringContaining('tie_word_embeddings is'));
  });

  it('of PaliGemma names the attention that is described', async () => {
    const named = expect.stringContaining('attention is described as causal, as the eager');
    expect(await messages(around('paligemma', {}))).toContainEqual(named);
    // As transformers 5.18 saves it.
    const saved = around('paligemma', { use_bidirectional_attention: true });
    expect(await messages(saved)).toContainEqual(named);
    const causal = around('paligemma', { use_bidirectional_attention: false });
    expect(await messages(causal)).toEqual([]);
    expect(await refusals(around('paligemma', { model_type: 'llama' }))).toContainEqual(
      'paligemma holds no llama',
    );
  });

  it.each([
    // The outer flag counts in most classes, either in those whose older files had the inner one.
    ['mistral3', true, false, true],
    ['llava_next', false, true, false],
    ['llava', false, true, true],
    ['blip-2', true, false, false],
    ['voxtral', true, true, false],
  ])('%s with flags %s and %s: tied is %s', async (of, outer, inner, tied) => {
    const config = around(of, { model_type: 'llama', tie_word_embeddings: inner });
    const { document, warnings } = await read({ ...config, tie_word_embeddings: outer });
    expect(document).toMatchObject({ model: { tie_word_embeddings: tied } });
    expect(warnings.map(({ message }) => message)).toContainEqual(
      `tie_word_embeddings is ${outer} of the whole and ${inner} of the text part: the head ${tied ? 'shares the embedding' : 'has weights of its own'}, as transformers 5 reads ${of}`,
    );
  });

  it('fills in its own defaults: Voxtral Mini, 3B', async () => {
    // VoxtralForConditionalGeneration with an empty text_config.
    const { document } = await read({ model_type: 'voxtral', text_config: {} });
    expect(document).toMatchObject({
      model: { hidden_size: 3072, num_hidden_layers: 30, head_dim: 128, rope_theta: 1e8 },
    });
  });

  it('has the sizes of its own without a text part', async () => {
    const { model, warnings } = await read({ model_type: 'mistral3', tie_word_embeddings: false });
    // Mistral Small 3.1, which is the default of the class.
    expect(countParameters(model).parameters).toBe(23_572_403_200);
    expect(warnings.map(({ message }) => message)).toContainEqual(
      'no text_config: all sizes of the language model are the defaults of mistral3',
    );
  });

  it('of PaliGemma has the outer vocabulary without a text part', async () => {
    // 2,508,531,712 of the default, whose vocabulary has 64 tokens less.
    const { model } = await read({ model_type: 'paligemma', vocab_size: 257_216 });
    expect(countParameters(model).parameters).toBe(2_508_662_784);
  });

  it('is not that of a file with sizes beside the parts', async () => {
    expect(await refusals({ model_type: 'llava', ...SIZES })).toContainEqual(
      expect.stringContaining('no family for model_type "llava" is known here'),
    );
  });
});

describe('Gemma 4 26B-A4B as transformers 5.18 saves it', () => {
  const sizes = { head_dim: 512, num_key_value_heads: 2 };
  const text = {
    model_type: 'gemma4_text',
    vocab_size: 262_144,
    hidden_size: 2816,
    intermediate_size: 2112,
    num_hidden_layers: 30,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 256,
    max_position_embeddings: 262_144,
    sliding_window: 1024,
    hidden_size_per_layer_input: 0,
    attention_k_eq_v: true,
    final_logit_softcapping: 30,
    enable_moe_block: true,
    num_experts: 128,
    top_k_experts: 8,
    moe_intermediate_size: 704,
    per_layer_config: { '05': sizes, 11: sizes, 17: sizes, 23: sizes, 29: sizes },
  };
  const read = (config: object) => modelOf(parseDocument(JSON.stringify(config), 'config.json'));

  it.each([
    ['whole', { model_type: 'gemma4', text_config: text }],
    ['its text part alone', text],
  ])('has its published size: %s', async (_, config) => {
    // Gemma4ForConditionalGeneration of the saved config, on the meta device: its language model.
    expect(countParameters((await read(config)).model).parameters).toBe(25_233_141_760);
  });

  it.each([
    [{ '05': sizes }],
    [{ ...text.per_layer_config, '04': sizes }],
    [{ ...text.per_layer_config, '05': { head_dim: 128 } }],
  ])('is refused where other layers have these sizes', async (per_layer_config) => {
    await expect(read({ ...text, per_layer_config })).rejects.toThrow('1 error');
  });
});

describe('the text part of Qwen2-VL', () => {
  it.each(['qwen2_vl', 'qwen2_5_vl'])('divides the width by the heads: %s', async (kind) => {
    const text_config = {
      ...{ vocab_size: 61, hidden_size: 24, intermediate_size: 20, num_hidden_layers: 1 },
      ...{ num_attention_heads: 4, num_key_value_heads: 2 },
    };
    const load = async (more: object) => {
      const config = { model_type: kind, text_config: { ...text_config, ...more } };
      return modelOf(parseDocument(JSON.stringify(config), 'config.json'));
    };
    const [usual, other] = [await load({}), await load({ head_dim: 16 })];
    expect(sumOfTensors(other.model, ({ elements }) => elements)).toBe(
      sumOfTensors(usual.model, ({ elements }) => elements),
    );
    const found = other.warnings.map(({ message }) => message);
    expect(found).toContainEqual(
      expect.stringMatching(/^head_dim 16 has no effect: the class divides/),
    );
    expect(withoutTowerNote((await load({ head_dim: 6 })).warnings)).toEqual(
      withoutTowerNote(usual.warnings),
    );
  });
});
