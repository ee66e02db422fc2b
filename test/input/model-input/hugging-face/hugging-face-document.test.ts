import fs from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Problem } from '../../../../src/base/errors.js';
import { UserError } from '../../../../src/base/errors.js';
import { parseDocument } from '../../../../src/config/document.js';
import { changedHuggingFace } from '../../../../src/input/model-input/hugging-face/hugging-face-document.js';
import { modelOf } from '../../../../src/input/model-input/model-file.js';
import { FAMILY_NAMES, loadFamily } from '../../../../src/model/architecture/families.js';
import { walk } from '../../../../src/model/architecture/walk.js';
import { countParameters } from '../../../../src/model/budget/parameters.js';
import { inPackage, readJson } from '../../../fixtures.js';
import { isWhole } from '../../../sampled.js';

const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 97,
  hidden_size: 32,
  num_attention_heads: 4,
  rope_parameters: { rope_type: 'linear', factor: 2, rope_theta: 500 },
};

/** A config.json with one key in each line. */
const load = (config: object, set: string[] = []) =>
  modelOf(parseDocument(JSON.stringify(config, null, 1), 'config.json'), { set });

async function problemsOf(config: object, set: string[] = []): Promise<readonly Problem[]> {
  try {
    await load(config, set);
  } catch (error) {
    if (error instanceof UserError) return error.problems;
    throw error;
  }
  throw new Error('no problems');
}

describe('a config.json of Hugging Face', () => {
  it('is a document of its family', async () => {
    const { family, document } = await load(LLAMA);
    expect(family.name).toBe('llama');
    expect(document).toMatchObject({
      model: {
        family: 'llama',
        hidden_size: 32,
        num_hidden_layers: 32,
        rope_theta: 500,
        rope_scaling: { rope_type: 'linear', factor: 2 },
      },
    });
  });

  it('accepts overrides by the paths of a document', async () => {
    const { document } = await load(LLAMA, ['model.num_hidden_layers=3', 'training.batch_size=2']);
    expect(document).toMatchObject({ model: { num_hidden_layers: 3, hidden_size: 32 } });
  });

  it.each([
    ['a text for a number', { hidden_size: '32' }, 'model.hidden_size', 5],
    [
      'a value in rope_parameters',
      { rope_parameters: { rope_type: 'linear', factor: 2, rope_theta: 'x' } },
      'model.rope_theta',
      10,
    ],
    [
      'a value for rope_scaling',
      { rope_parameters: { rope_type: 'linear', factor: -1, rope_theta: 1 } },
      'model.rope_scaling.factor',
      9,
    ],
    ['a list for a number', { vocab_size: [1, 2] }, 'model.vocab_size', 4],
    ['heads that do not fit', { num_attention_heads: 5 }, 'model.num_attention_heads', 6],
  ])('has its mistakes reported with line and path: %s', async (_, wrong, path, line) => {
    const problems = await problemsOf({ ...LLAMA, ...wrong, architectures: 1 });
    expect(problems).toEqual([expect.objectContaining({ file: 'config.json', path, line })]);
  });

  it('reports mistakes of an override for --set', async () => {
    const problems = await problemsOf(LLAMA, ['model.hidden_size=no']);
    expect(problems).toEqual([
      expect.objectContaining({ file: '--set', path: 'model.hidden_size' }),
    ]);
  });

  it('reports a key that occurs twice', async () => {
    const text = '{"model_type": "llama",\n"hidden_size": 32,\n"hidden_size": 64}';
    await expect(modelOf(parseDocument(text, 'config.json'))).rejects.toMatchObject({
      problems: [{ line: 3, message: expect.stringContaining('occurs twice') }],
    });
  });

  it('is not assumed for a document with both a model and a model_type', async () => {
    const { family, warnings } = await load({ model: {}, model_type: 'llama' });
    expect(family.name).toBe('hybrid');
    expect(warnings[0]?.message).toContain('looks like a config.json');
  });
});

/** Small, and in the sizes of the fixtures. */
const SMALL = {
  ...{ vocab_size: 97, hidden_size: 32, num_attention_heads: 4, num_hidden_layers: 3 },
  ...{ intermediate_size: 16, max_position_embeddings: 64 },
};
const YARN = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64 };
const LLAMA3 = { ...YARN, rope_type: 'llama3', low_freq_factor: 1, high_freq_factor: 4 };
const ALTERNATING = ['sliding_attention', 'full_attention', 'sliding_attention'];

const OTHER_SIZES: Readonly<Record<string, object>> = {
  gpt2: { vocab_size: 97, n_positions: 64, n_embd: 32, n_layer: 3, n_head: 4 },
  bloom: { vocab_size: 97, hidden_size: 32, n_layer: 3, n_head: 4 },
  gpt_neox: SMALL,
  deepseek_v2: SMALL,
  deepseek_v3: { ...SMALL, first_k_dense_replace: 1 },
};

const small = (kind: string, keys: object) => ({
  model_type: kind,
  ...(OTHER_SIZES[kind] ?? { ...SMALL, num_key_value_heads: 2 }),
  ...keys,
});

describe('a config.json of Kimi K2', () => {
  it('is one of DeepSeek-V3 under another name', async () => {
    const sizes = { vocab_size: 97, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4 };
    const scaling = { type: 'yarn', factor: 32, original_max_position_embeddings: 4096 };
    const config = {
      ...sizes,
      n_routed_experts: 12,
      n_group: 1,
      topk_group: 1,
      first_k_dense_replace: 1,
    };
    for (const rope_scaling of [undefined, null, scaling]) {
      const named = await load({ ...config, rope_scaling, model_type: 'kimi_k2' });
      const usual = await load({ ...config, rope_scaling, model_type: 'deepseek_v3' });
      expect(named.document).toEqual(usual.document);
      expect(named.warnings).toEqual([]);
    }
  });
});

// The class of transformers 5.18 on the meta device: 96 heads of 42 dimensions.
it('a config.json of GLM-4.5 without heads has those of its class', async () => {
  const { model } = await load({
    model_type: 'glm4_moe',
    hidden_size: 4096,
    num_hidden_layers: 46,
  });
  expect(countParameters(model).parameters).toBe(103_481_200_640);
});

describe('a key that changes what a model computes', () => {
  it.each([
    ['llama', { is_causal: false }, /is_causal false is not supported/],
    ['gemma2', { is_causal: null }, /is_causal null/],
    ['llama', { sliding_window: 8 }, /sliding_window 8/],
    ['llama', { layer_types: ALTERNATING }, /layer_types a list is not supported/],
    ['qwen2', { per_layer_config: { 1: { intermediate_size: 8 } } }, /per_layer_config/],
    ['gpt2', { add_cross_attention: true }, /must be false or null/],
    ['bloom', { slow_but_exact: true, pretraining_tp: 2 }, /slow_but_exact true is not supported/],
    ['gpt_neox', { head_dim: 16 }, /head_dim 16 is not supported/],
    ['deepseek_v3', { head_dim: 32 }, /head_dim 32/],
    ['deepseek_v2', { num_key_value_heads: 2 }, /num_key_value_heads 2/],
    ['mistral', { sliding_window: 0 }, /a window of 0 tokens/],
    ['gemma2', { sliding_window: null }, /its size is null/],
    ['qwen3', { layer_types: ALTERNATING }, /use_sliding_window is false/],
    ['phi3', { rope_scaling: { type: 'linear', factor: 2 } }, /rope_type linear is not supported/],
  ])('is refused: %s, %j', async (kind, keys, message) => {
    const problems = await problemsOf(small(kind, keys));
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([
      expect.objectContaining({ message: expect.stringMatching(message) }),
    ]);
  });

  it.each([
    ['bloom', { slow_but_exact: true }],
    ['bloom', { slow_but_exact: false, pretraining_tp: 4 }],
    ['llama', { is_causal: true, layer_types: Array(3).fill('full_attention') }],
    ['mixtral', { sliding_window: 8, layer_types: Array(3).fill('sliding_attention') }],
    ['gpt_neox', { head_dim: 8, hidden_dropout: 0.5 }],
    ['qwen2', { use_mrope: false, pad_token_id: -1 }],
  ])('is accepted with the supported value: %s, %j', async (kind, keys) => {
    expect((await load(small(kind, keys))).warnings).toEqual([]);
  });
});

describe('a key that is not read gives a warning:', () => {
  it.each([
    ['llama', { hiden_size: 3 }, /unknown key "hiden_size"/, 'did you mean "hidden_size"?'],
    ['llama', { logit_scale: 3 }, /unknown key "logit_scale": it is ignored/, /check that/],
    ['llama', { '\u202e': 1 }, /unknown key "\\u202e"/, /check/],
    ['mistral', { attention_bias: true }, /has no effect: transformers does not/, 'remove it'],
    ['gpt_neox', { rope_theta: 5 }, /this family reads rotary_emb_base/, 'remove it'],
    ['gpt_neox', { partial_rotary_factor: 0.5 }, /this family reads rotary_pct/, 'remove it'],
    ['gpt2', { partial_rotary_factor: 0.5 }, /transformers does not read it/, 'remove it'],
    ['deepseek_v3', { partial_rotary_factor: 0.5 }, /rotates qk_rope_head_dim/, 'remove it'],
    ['llama', { n_layers: 8 }, /unknown key "n_layers"/, 'did you mean "num_hidden_layers"?'],
    ['gpt2', { n_ctx: 8 }, /n_ctx 8 has no effect/, 'remove it'],
    ['gemma3_text', { _sliding_window_pattern: 2 }, /_sliding_window_pattern 2 has/, 'remove it'],
    [
      'llama',
      { rope_parameters: { rope_type: 'default', factor: 4 } },
      /default does not/,
      /remove/,
    ],
    [
      'llama',
      { rope_parameters: YARN, rope_scaling: { type: 'linear', factor: 2 } },
      /rope_parameters has no effect: rope_scaling/,
      'remove it',
    ],
    ['deepseek_v3', { moe_layer_freq: 2, num_hidden_layers: 6 }, /moe_layer_freq 2/, /write/],
    [
      'phi4_multimodal',
      { vision_config: { hidden_size: 8 }, audio_config: { hidden_size: 8 } },
      /vision_config has no effect: the towers of images and sounds are left out/,
      /checkpoint/,
    ],
    ['llama', { architectures: ['LlamaForTokenClassification'] }, /another head/, 'remove it'],
  ])('%s, %j', async (kind, keys, message, suggestion) => {
    const { warnings } = await load(small(kind, keys));
    expect(warnings).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringMatching(message),
        suggestion: expect.stringMatching(suggestion),
      }),
    ]);
    expect(warnings[0]?.line).toBeGreaterThan(1);
  });
});

describe('rotary positions are read as in transformers:', () => {
  const modelIn = async (kind: string, keys: object) =>
    ((await load(small(kind, keys))).document as { model: Record<string, unknown> }).model;

  it.each([
    ['llama', YARN],
    ['qwen2', LLAMA3],
    ['deepseek_v2', YARN],
    ['gpt_neox', YARN],
  ])('a separate training length takes precedence: %s, %j', async (kind, rotary) => {
    const trained = { original_max_position_embeddings: 16 };
    const { rope_scaling } = await modelIn(kind, { rope_parameters: rotary, ...trained });
    expect(rope_scaling).toMatchObject(trained);
    const linear = { rope_type: 'linear', factor: 2 };
    expect((await modelIn(kind, { rope_parameters: linear, ...trained })).rope_scaling).toEqual(
      linear,
    );
  });

  it('an empty rope_scaling does not hide rope_parameters', async () => {
    const { rope_scaling } = await modelIn('llama', { rope_scaling: {}, rope_parameters: YARN });
    expect(rope_scaling).toMatchObject(YARN);
  });

  it.each([
    ['with its base', 'llama', { rope_type: 'default', rope_theta: 500 }],
    ['under both names', 'qwen2', { rope_type: 'default', type: 'default', rope_theta: 500 }],
    ['where YaRN is the default', 'gpt_oss', { type: 'default', rope_theta: 500 }],
  ])('a plain rotation in rope_scaling is none: %s, %s', async (_, kind, rope_scaling) => {
    expect((await load(small(kind, { rope_scaling }))).warnings).toEqual([]);
    expect(await modelIn(kind, { rope_scaling })).toMatchObject({
      rope_theta: 500,
      rope_scaling: null,
    });
  });

  // As in the published files of Qwen2.5-VL, whose text part has the keys of the whole.
  it('positions of images change nothing for text, next to the other keys', async () => {
    const rope_scaling = { type: 'mrope', mrope_section: [1, 1, 2] };
    const { family, document } = await load(small('qwen2_5_vl', { rope_scaling }));
    expect(family.name).toBe('qwen2');
    expect(document).toMatchObject({ model: { rope_scaling: null } });
  });

  it('each kind of layer of gemma3_text has separate settings', async () => {
    const full = { rope_type: 'linear', factor: 8 };
    const sliding = { ...YARN, rope_theta: 100 };
    const rope_parameters = { full_attention: full, sliding_attention: sliding };
    expect(await modelIn('gemma3_text', { rope_parameters, rope_theta: 500 })).toMatchObject({
      rope_theta: 500,
      rope_scaling: full,
      rope_local_base_freq: 100,
      rope_local_scaling: YARN,
    });
  });

  it('gemma3_text ignores settings for all layers', async () => {
    const { document, warnings } = await load(small('gemma3_text', { rope_parameters: YARN }));
    expect(document).toMatchObject({ model: { rope_theta: 1e6 } });
    expect(document).not.toHaveProperty('model.rope_scaling');
    expect(warnings).toHaveLength(3);
  });

  it.each(['gpt_neox', 'llama'])('dynamic scaling extends the positions: %s', async (kind) => {
    const dynamic = { rope_type: 'dynamic', factor: 2.5, rope_theta: 1e4 };
    const keys = { max_position_embeddings: 64, rope_parameters: dynamic };
    const { model } = await load(small(kind, keys));
    expect(model.positions).toBe(160);
    const rotaries = walk(model).flatMap(({ layer }) => (layer.kind === 'rotary' ? [layer] : []));
    expect(rotaries.map(({ scaling }) => scaling)).toContainEqual({
      kind: 'dynamic',
      factor: 2.5,
      originalPositions: 64,
    });
  });

  it('yarn is longrope in phi3', async () => {
    const factors = { short_factor: [1, 1, 1, 1], long_factor: [2, 2, 2, 2] };
    const scaling = { rope_scaling: { type: 'yarn', ...factors } };
    expect(await modelIn('phi3', scaling)).toMatchObject({
      rope_scaling: { rope_type: 'longrope', ...factors },
    });
  });
});

describe('another name or value is converted:', () => {
  it.each([
    ['gpt2', { hidden_size: 64 }, { n_embd: 64 }],
    ['deepseek_v3', { n_routed_experts: 8, num_local_experts: 16 }, { n_routed_experts: 16 }],
    ['deepseek_v3', { norm_topk_prob: null }, { norm_topk_prob: false }],
    ['deepseek_v3', { num_mtp_layers: 2 }, { num_nextn_predict_layers: 2 }],
    ['smollm3', { no_rope_layers: [1, 0, 1, 0, 1] }, { no_rope_layers: [1, 0, 1] }],
    ['mistral', { layer_types: ALTERNATING }, { layer_types: ALTERNATING }],
    ['llama4_text', { attn_temperature_tuning: 4 }, { attn_temperature_tuning: true }],
  ])('%s, %j', async (kind, keys, expected) => {
    const { document, warnings } = await load(small(kind, keys));
    expect(document).toMatchObject({ model: expected });
    expect(warnings).toEqual([]);
  });
});

describe('impossible groups of experts are refused:', () => {
  const deepseek = (keys: object) =>
    small('deepseek_v3', { n_routed_experts: 8, num_experts_per_tok: 2, topk_group: 1, ...keys });

  it.each([
    [{ n_group: 8 }, /8 groups of 8 experts have fewer than two each/],
    [{ n_group: 4, num_experts_per_tok: 3 }, /3 experts for a token are more than the 2 in 1 of 4/],
  ])('%j', async (keys, message) => {
    const problems = await problemsOf(deepseek(keys));
    expect(problems.map((each) => each.message)).toContainEqual(expect.stringMatching(message));
  });
});

describe('a config without sizes', () => {
  it('is refused, with a suggestion of the part that may have them', async () => {
    const [problem] = await problemsOf({ model_type: 'llama', text_config: { hidden_size: 64 } });
    expect(problem).toMatchObject({
      severity: 'error',
      message: expect.stringContaining('gives neither hidden_size nor num_hidden_layers'),
      suggestion: expect.stringContaining('its text_config may give them'),
    });
  });

  // As in the published file of LLaVA 1.5, whose text part is Vicuna 7B.
  it('has the sizes of the class in a text part, with a warning', async () => {
    const text_config = { model_type: 'llama', vocab_size: 32_064, max_position_embeddings: 4096 };
    const { document, warnings } = await load({ model_type: 'llava', text_config });
    expect(document).toMatchObject({ model: { hidden_size: 4096, num_hidden_layers: 32 } });
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^its text_config gives neither hidden_size nor num_hidden_layers/),
      'has no vision_config: the tower and the projector of llava are not counted',
    ]);
  });

  it('is accepted with a width or depth', async () => {
    await expect(load({ model_type: 'llama', num_hidden_layers: 1 })).resolves.toBeTruthy();
  });
});

describe('a changed config.json', () => {
  const TEXT = `{
  "model_type": "llama",
  "rope_parameters": { "rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0 },
  "dtype": "float32", "rms_norm_eps": 1e-05
}
`;
  const change = async (...sets: string[]) =>
    (await changedHuggingFace(parseDocument(TEXT, 'config.json'), sets))?.text;

  it.each([
    [[], ''],
    [['model.rope_theta=500'], ['10000.0', '500']],
    [['model.torch_dtype=bfloat16'], ['float32', 'bfloat16']],
    [['model.rope_scaling.factor=4'], ['"factor": 2.0', '"factor": 4']],
    [['model.rms_norm_eps=1.0e-6'], ['1e-05', '0.000001']],
    [['model.tie_word_embeddings=true'], ['{\n', '{\n  "tie_word_embeddings": true,\n']],
  ] as [string[], [string, string]][])(
    'keeps the rest of its text: %j',
    async (sets, [from, to]) => {
      expect(await change(...sets)).toBe(from === undefined ? TEXT : TEXT.replace(from, to ?? ''));
    },
  );

  it('is undefined where it cannot express the change', async () => {
    expect(await change('model.family=gpt2')).toBe(undefined);
    expect(await change('training.batch_size=2')).toBe(undefined);
  });

  it('is written anew where whole parts change', async () => {
    const text = await change('model.rope_scaling={rope_type: linear, factor: 3}');
    expect(text === undefined || JSON.parse(text)).toBeTruthy();
  });
});

describe('an unknown kind of model', () => {
  it.each(['nosuch', 'nollama', 'lama'])(
    'is reported with the command that lists the known ones: %s',
    async (kind) => {
      const [problem] = await problemsOf({ architectures: [], model_type: kind });
      expect(problem).toMatchObject({ line: 3, path: 'model_type' });
      expect(problem?.message).toBe(`no family for model_type "${kind}" is known here`);
      expect(problem?.suggestion).toMatch(
        /^minimind list shows the \d+ known kinds\. .*counted without one.*adding-a-model/,
      );
    },
  );

  it.each([
    ['LLaMA', 'llama'],
    ['gpt-neox', 'gpt_neox'],
  ])('is reported with the known one of another spelling: %s', async (kind, known) => {
    const sizes = { hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 1, vocab_size: 9 };
    const [problem] = await problemsOf({ ...sizes, model_type: kind });
    expect(problem?.suggestion).toBe(`did you mean "${known}"?`);
  });

  it.each([[3], [null], [['llama']], [{}], ['hybrid'], ['__proto__'], ['toString'], ['']])(
    'is reported as model_type: %j',
    async (kind) => {
      const problems = await problemsOf({ model_type: kind, text_config: { model_type: 'no' } });
      expect(problems).toEqual([expect.objectContaining({ path: 'model_type' })]);
    },
  );

  it('is reported with a suggestion when model_type is missing', async () => {
    const { config } = readJson<{ config: object }>('fixtures/minigpt/tiny-gqa/case.json');
    const [problem] = await problemsOf(config);
    expect(problem?.message).toContain('has no model_type');
    expect(problem?.suggestion).toContain('are those of minigpt: add "model_type": "minigpt"');
    const [unclear] = await problemsOf({ architectures: ['X'] });
    expect(unclear?.suggestion).toBe('add "model_type", one of those in minimind list');
    const { model } = await load({ model_type: 'minigpt', ...config });
    expect(model.blocks).toHaveLength(2);
  });
});

/** Only a few for each of the many families; `npm run test:fuzz` reads more. */
const CONFIGS_OF_EACH_FAMILY = process.env.MINIMIND_FUZZ !== undefined ? 1000 : isWhole ? 60 : 15;

describe.each(FAMILY_NAMES)('a random config.json of %s', (name) => {
  const KEYS = [
    ...['rope_theta', 'rope_scaling', 'rope_parameters', 'rope_type', 'type', 'factor'],
    ...['full_attention', 'sliding_attention', 'sliding_window_pattern', 'layer_types'],
    ...['rotary_pct', 'n_embd', 'n_embed', 'n_layer', 'no_rope_layers', 'mlp_only_layers'],
    ...['partial_rotary_factor', 'quantization_config', '__proto__', 'constructor'],
  ];

  const anything = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 0, -1, 1, 2, 2 ** 53, 1e308, -0, '', 'default', 'yarn', 'su'),
      fc.constantFrom('full_attention', 'silu', [], {}, [[]], '__proto__', '\u0000'),
      fc.integer({ min: 0, max: 64 }),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('mapping'),
    ),
    mapping: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 4 }),
  })).value;

  it('is read, or reported as a mistake', async () => {
    const family = await loadFamily(name);
    if (!family.fromHuggingFace) return;
    const shape = Object.keys(
      (family.schema as unknown as { shape: { model: { shape: object } } }).shape.model.shape,
    );
    const configs = fc.dictionary(fc.constantFrom(...new Set([...KEYS, ...shape])), anything, {
      maxKeys: 12,
    });
    await fc.assert(
      fc.asyncProperty(configs, async (config) => {
        // Default sizes would make models with billions of parameters.
        const small = { num_hidden_layers: 1, n_layer: 1, num_experts: 2, n_routed_experts: 2 };
        const text = JSON.stringify({ ...small, ...config, model_type: name });
        await modelOf(parseDocument(text, 'config.json')).catch((error: unknown) => {
          if (!(error instanceof UserError)) throw error;
        });
      }),
      { numRuns: CONFIGS_OF_EACH_FAMILY },
    );
  });
});

it('every case of Hugging Face with a known family is read', async () => {
  const cases = fs.readdirSync(inPackage('fixtures/hf'), { withFileTypes: true });
  for (const { name } of cases.filter((each) => each.isDirectory())) {
    const file = inPackage('fixtures/hf', name, 'config.json');
    const document = parseDocument(fs.readFileSync(file), file);
    const kind = document.value.model_type;
    if (!FAMILY_NAMES.some((family) => family === kind)) continue;
    await expect(modelOf(document), name).resolves.toMatchObject({ family: { name: kind } });
  }
});
