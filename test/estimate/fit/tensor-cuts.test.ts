import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import {
  parallelismOf,
  pipelineStages,
  tensorCuts,
} from '../../../src/estimate/fit/parallelism/parallelism.js';
import { servedWeights, weightLayout } from '../../../src/estimate/fit/serving/quantized.js';
import { usualFormat } from '../../../src/estimate/fit/serving/weight-types.js';
import { replicatedState } from '../../../src/estimate/fit/training/training-memory.js';
import {
  FAMILY_NAMES,
  type FamilyName,
  loadFamily,
} from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { presetsOf } from '../../../src/model/architecture/presets.js';
import { countedTensors, packedMatrices, walk } from '../../../src/model/architecture/walk.js';
import { layerPattern } from '../../../src/model/budget/parameters.js';
import { inPackage } from '../../fixtures.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { sampled } from '../../sampled.js';
import { fitSetting, gptLike, H100 } from './settings.js';

async function modelOf(family: FamilyName, config: object): Promise<LanguageModel> {
  const { build, schema } = await loadFamily(family);
  return build(schema.parse({ model: { family, ...config } }));
}

/** Names of tensors by their cut. */
function namesByCut(model: LanguageModel) {
  const cuts = tensorCuts(model);
  const named = (cut: 'rows' | 'length' | undefined) => {
    const tensors = countedTensors(model).filter(({ tensor }) => cuts.get(tensor)?.along === cut);
    return [...new Set(tensors.map(({ tensor: { name } }) => layerPattern(name)))].sort();
  };
  return { rows: named('rows'), length: named('length'), whole: named(undefined) };
}

const below = (place: string, names: readonly string[]) =>
  names.filter((name) => name.startsWith(place)).map((name) => name.slice(place.length));

describe('tensor parallelism cuts', () => {
  it('the hybrid model', async () => {
    const { rows, length, whole } = namesByCut(
      await modelOf('hybrid', {
        hidden_size: 64,
        num_layers: 2,
        num_heads: 4,
        srte_factorized_rank: 8,
      }),
    );
    expect(rows).toEqual(expect.arrayContaining(['embed_tokens.weight', 'lm_head.weight']));
    expect(below('layers.*.mamba.', rows)).toEqual(
      ['A_log', 'D', 'conv1d.bias', 'conv1d.weight', 'dt_proj.bias', 'dt_proj.weight'].concat([
        'in_proj.bias',
        'in_proj.weight',
      ]),
    );
    expect(below('layers.*.mamba.', length)).toEqual(['out_proj.weight', 'x_proj.weight']);
    expect(whole).toContain('layers.*.mamba.out_proj.bias');
    expect(whole.some((name) => name.includes('srte'))).toBe(true);
    expect([...rows, ...length].some((name) => /srte|norm|gate/.test(name))).toBe(false);
    // The outputs of these are gathered, because they are not a pair.
    expect(rows).toEqual(
      expect.arrayContaining(
        ['fusion_proj.weight', 'fusion_proj.bias', 'alignment.residual_proj.weight'].map(
          (leaf) => `layers.*.${leaf}`,
        ),
      ),
    );
  });

  it('latent attention and experts', async () => {
    const { rows, length, whole } = namesByCut(
      await modelOf('deepseek_v3', {
        num_hidden_layers: 4,
        n_routed_experts: 8,
        n_group: 1,
        topk_group: 1,
        experts_stored: 'packed',
      }),
    );
    expect(below('model.layers.*.', rows)).toEqual([
      'mlp.experts.gate_up_proj',
      'mlp.gate_proj.weight',
      'mlp.shared_experts.gate_proj.weight',
      'mlp.shared_experts.up_proj.weight',
      'mlp.up_proj.weight',
      'self_attn.kv_b_proj.weight',
      'self_attn.q_b_proj.weight',
    ]);
    expect(below('model.layers.*.', length)).toEqual([
      'mlp.down_proj.weight',
      'mlp.experts.down_proj',
      'mlp.shared_experts.down_proj.weight',
      'self_attn.o_proj.weight',
    ]);
    expect(whole).toEqual(
      [
        'input_layernorm.weight',
        'mlp.gate.e_score_correction_bias',
        'mlp.gate.weight',
        'post_attention_layernorm.weight',
        'self_attn.kv_a_layernorm.weight',
        'self_attn.kv_a_proj_with_mqa.weight',
        'self_attn.q_a_layernorm.weight',
        'self_attn.q_a_proj.weight',
      ]
        .map((leaf) => `model.layers.*.${leaf}`)
        .concat('model.norm.weight'),
    );
  });

  it('norms over all heads (OLMo 2), not norms per head (Qwen 3)', async () => {
    const sizes = { num_hidden_layers: 1, num_attention_heads: 4, num_key_value_heads: 2 };
    const norms = ['self_attn.q_norm.weight', 'self_attn.k_norm.weight'].map(
      (leaf) => `model.layers.*.${leaf}`,
    );
    const [olmo, qwen] = [await modelOf('olmo2', sizes), await modelOf('qwen3', sizes)];
    expect(namesByCut(olmo).rows).toEqual(expect.arrayContaining(norms));
    expect(namesByCut(qwen).whole).toEqual(expect.arrayContaining(norms));
  });
});

/** Trained parameters of one GPU. */
const trainedPerGpu = (model: LanguageModel, gpus: number): number =>
  onlyStage(model, gpus).trained.reduce(
    (sum, { elements, count = 1 }) => sum + count * elements,
    0,
  );

function onlyStage(model: LanguageModel, gpus: number) {
  const setting = fitSetting({ cluster: H100(gpus), tensorParallel: gpus, context: 1 });
  const [stage] = pipelineStages(model, parallelismOf(model, setting));
  if (!stage) throw new Error('no stage');
  return stage;
}

describe('per-layer inputs and AltUp', () => {
  it('are cut as in vLLM', async () => {
    const { rows, whole } = namesByCut(
      await modelOf('gemma3n_text', {
        hidden_size: 32,
        num_hidden_layers: 5,
        num_kv_shared_layers: 0,
        vocab_size: 64,
        vocab_size_per_layer_input: 64,
      }),
    );
    expect(rows).toEqual(
      expect.arrayContaining([
        'model.altup_projections.*.weight',
        'model.altup_unembed_projections.*.weight',
        'model.embed_tokens_per_layer.weight',
        'model.per_layer_model_projection.weight',
      ]),
    );
    expect(whole).toEqual(
      expect.arrayContaining([
        'model.layers.*.altup.modality_router.weight',
        'model.layers.*.per_layer_input_gate.weight',
        'model.layers.*.per_layer_projection.weight',
      ]),
    );
  });
});

describe('with tensor parallelism, a GPU', () => {
  it('has its share of the heads, inner values, biases and padded rows of GPT', () => {
    const [h, layers, positions] = [48, 3, 32];
    const model = gptLike({
      n_embd: h,
      n_head: 4,
      n_layer: layers,
      n_positions: positions,
      vocab_size: 101,
    });
    for (const gpus of [2, 4]) {
      // 12 h² and 3h + 4h of biases are shared; biases of h after sums, and norms of 2h, are not.
      const block = (12 * h * h + 7 * h) / gpus + 2 * h + 4 * h;
      const rows = Math.ceil(101 / gpus);
      expect(trainedPerGpu(model, gpus)).toBe(layers * block + (rows + positions + 2) * h);
    }
  });

  it('has one key-value head in serving when there are too few, and refuses training', async () => {
    const model = await modelOf('llama', {
      vocab_size: 64,
      hidden_size: 64,
      intermediate_size: 96,
      num_hidden_layers: 1,
      num_attention_heads: 8,
      num_key_value_heads: 2,
    });
    const attention = (gpus: number) =>
      servedWeights(weightLayout(model), usualFormat('bf16'), gpus).parts.find(
        ({ part }) => part === 'attention',
      )?.bytes.value;
    // Heads of 8 rows for queries, keys and values: 2 · 64 · 8 bytes each, and the same for the output.
    expect(attention(2)).toBe((2 * 4 + 2 * 1) * 1024);
    expect(attention(4)).toBe((2 * 2 + 2 * 1) * 1024);
    expect(attention(8)).toBe((2 * 1 + 2 * 1) * 1024);
    expect(() => trainedPerGpu(model, 4)).toThrow(/2 key-value heads of model.layers.0.self_attn/);
  });
});

/** Expects the same weights in training and serving, for each number of GPUs that may share the model in training. */
function expectAgreement(model: LanguageModel) {
  for (const gpus of [1, 2, 4]) {
    const trained = trainedIfAllowed(model, gpus);
    if (trained === undefined) continue;
    for (const [dtype, precision] of [
      ['f32', 'float32'],
      ['bf16', 'mixed'],
    ] as const) {
      const { weights } = replicatedState(trained, {
        precision,
        optimizer: 'adamw',
        zero: 0,
        convention: 'zero',
        shards: 1,
      });
      const { parts } = servedWeights(weightLayout(model), usualFormat(dtype), gpus);
      const served = parts
        .filter(({ part }) => part !== 'buffers')
        .reduce((sum, { bytes }) => sum + Number(bytes.value), 0);
      expect(served, `${gpus} GPUs, ${dtype}`).toBe(Number(weights.value));
    }
  }
}

function trainedIfAllowed(model: LanguageModel, gpus: number) {
  try {
    return onlyStage(model, gpus).trained;
  } catch (error) {
    if (gpus > 1 && error instanceof UserError) return undefined;
    throw error;
  }
}

/** Expects that a cut covers one whole side of the tensor, or of each matrix of experts below each other. */
function expectSides(model: LanguageModel) {
  const matrices = new Map(
    walk(model)
      .flatMap(({ layer }) => packedMatrices(layer))
      .map(({ tensor, ...sides }) => [tensor, sides]),
  );
  const wrong = [...tensorCuts(model)].filter(([tensor, { runs }]) => {
    const side = runs.reduce((sum, { count, size }) => sum + count * size, 0);
    const { rows, length } = matrices.get(tensor) ?? {};
    // Of one matrix for each head, the rows of all.
    const [heads = 0, size = 0] = tensor.shape;
    return ![...tensor.shape, rows, length, heads * size].includes(side);
  });
  expect(wrong.map(([{ name }]) => name)).toEqual([]);
}

describe('training and serving give a GPU the same weights', () => {
  it.each(sampled(FAMILY_NAMES, 3))('for every preset of %s, or its defaults', async (name) => {
    const { schema, build } = await loadFamily(name);
    const documents = presetsOf(name).map(({ document }) => document);
    for (const document of documents.length > 0 ? documents : [{ model: { family: name } }]) {
      const model = build(schema.parse(document));
      expectAgreement(model);
      expectSides(model);
    }
  });

  const names = readdirSync(inPackage('fixtures/hf-configs'));
  it.each(sampled(names, 3))('for %s', async (name) => {
    const { model } = await publishedConfig(name);
    expectAgreement(model);
    expectSides(model);
  });
});
