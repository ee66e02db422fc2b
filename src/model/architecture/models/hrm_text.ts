/** HRM-Text (arXiv 2506.21734): two stacks of blocks, used in turn several times. */
import * as z from 'zod';
import { attention } from '../constructors/attention-layers.js';
import {
  blockNames,
  fusedProjection,
  linear,
  plainRmsNorm,
  sequence,
  stack,
} from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { checkLayers, param } from '../param.js';
import { harmless, unreadEach } from '../transformer/config-keys.js';
import {
  causalModel,
  fusedMlp,
  mlpOf,
  preNormBlock,
  rotaryOf,
  streamFactor,
} from '../transformer/decoder-parts.js';
import { decoderDocument, defineTransformer } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { longestInput } from '../transformer/rotary.js';
import { headsDivide, WHOLE_HEAD_RULES } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  decoderStored,
  gateActivation,
  headPath,
  headsOf,
  mlpBias,
  positiveInteger,
} from '../transformer/settings.js';

/** Spread of the weights before training, whose inverse scales the embedding. */
const SPREAD = 0.02;

const STORED = ['fused', 'separate'] as const;

const hrmSchema = decoderDocument(
  'hrm_text',
  {
    vocab_size: 151_808,
    hidden_size: 1536,
    intermediate_size: 4096,
    num_hidden_layers: 16,
    num_attention_heads: 12,
    head_dim: 128,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
  },
  {
    num_layers_per_stack: positiveInteger
      .nullish()
      .describe(
        'Blocks of each stack; default: num_hidden_layers, which otherwise counts every use of a block',
      ),
    H_cycles: count(2, 'Uses of the high stack'),
    L_cycles: count(3, 'Uses of the low stack before each of them'),
    stored_products: z
      .enum(STORED)
      .default('fused')
      .describe('Products of one input: one tensor on disk, or apart as transformers 5 holds them'),
    embedding_scale: z
      .number()
      .nullish()
      .describe('Factor of the embedding; default: 1 / initializer_range'),
    hidden_act: gateActivation,
    attention_bias: attentionBias,
    mlp_bias: mlpBias,
  },
);

type Config = z.output<typeof hrmSchema>['model'];

const layersPerStack = (config: Config): number =>
  config.num_layers_per_stack ?? config.num_hidden_layers;

const usesOf = ({ H_cycles: high, L_cycles: low }: Config): number => high * (low + 1);

const COUNT = 'model.num_hidden_layers';

/** One of the two stacks: blocks, and a norm; all norms have no weights. */
function stackOf(path: string, config: Config): Layer {
  const { hidden_size: width, rms_norm_eps: eps } = config;
  const { hidden, heads, headDim } = headsOf({ ...config, num_key_value_heads: null });
  const norm = (name: string) => plainRmsNorm(name, width, eps);
  const isFused = config.stored_products === 'fused';
  const bias = config.attention_bias;
  const attentionOf = (block: string) => {
    const name = `${block}.${isFused ? 'attn' : 'self_attn'}`;
    const inner = heads * headDim;
    const product = (leaf: string, to = inner) => linear(`${name}.${leaf}`, hidden, to, { bias });
    return attention(name, {
      inputs: isFused
        ? // The gate comes first in the file.
          fusedProjection(
            product('gqkv_proj', 4 * inner),
            [inner, inner, inner, inner],
            1,
            [1, 0, 2, 3],
          )
        : ['q_proj', 'gate_proj', 'k_proj', 'v_proj'].map((leaf) => product(leaf)),
      out: linear(`${name}.o_proj`, inner, hidden, { bias }),
      rotary: rotaryOf(block, config, headDim),
      heads,
      headDim,
      gate: 'sigmoid',
    });
  };
  const networkOf = (name: string) =>
    isFused && !config.mlp_bias
      ? fusedMlp(name, {
          hidden,
          inner: config.intermediate_size,
          activation: activationOf(config.hidden_act),
        })
      : mlpOf(name, config);
  const blockOf = (name: string) =>
    preNormBlock(name, {
      norm,
      attention: attentionOf(name),
      feedForward: networkOf(`${name}.mlp`),
    });
  const names = blockNames(`${path}.layers`, layersPerStack(config), COUNT);
  return sequence(path, [...stack(names, COUNT, blockOf), norm(`${path}.final_norm`)]);
}

/** The same layer at another path, with the same tensors. */
function movedTo(layer: Layer, from: string, to: string): Layer {
  const moved = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(moved);
    if (typeof value !== 'object' || value === null || 'role' in value) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        key,
        key === 'name' && typeof each === 'string' ? each.replace(from, to) : moved(each),
      ]),
    );
  };
  return moved(layer) as Layer;
}

export const hrmText = defineTransformer({
  title: 'HRM-Text',
  schema: hrmSchema,
  rules: [
    ...WHOLE_HEAD_RULES,
    ...headsDivide('num_attention_heads', 'hidden_size'),
    ...defineRules<{ readonly model: Config }>([
      {
        severity: 'error',
        reads: ['model.num_hidden_layers', 'model.num_layers_per_stack'],
        check({ model }) {
          const { num_hidden_layers: all, num_layers_per_stack: each } = model;
          const expected = (each ?? 0) * usesOf(model);
          return each != null && all !== expected
            ? {
                message: `${each} blocks of a stack are used ${expected} times, but num_hidden_layers is ${all}`,
                suggestion: `write num_hidden_layers: ${expected}, or leave num_layers_per_stack out`,
              }
            : undefined;
        },
      },
      {
        severity: 'error',
        reads: ['model.stored_products', 'model.attention_bias', 'model.mlp_bias'],
        check: ({ model: { stored_products: stored, attention_bias, mlp_bias } }) =>
          stored === 'fused' && (attention_bias || mlp_bias)
            ? {
                message: 'biases are apart even where files have one tensor for several products',
                suggestion:
                  'write stored_products: separate, and convert the file to the names of the state dict',
              }
            : undefined,
      },
    ]),
  ],
  storedSettings(stored) {
    const names = [...stored.names()];
    const isFused = names.some((name) => name.endsWith('.attn.gqkv_proj.weight'));
    const isApart = names.some((name) => name.endsWith('.self_attn.q_proj.weight'));
    const value = isFused ? 'fused' : isApart ? 'separate' : undefined;
    return [...decoderStored(stored), ...(value ? [{ path: 'model.stored_products', value }] : [])];
  },
  huggingFace: {
    more: (config) => ({ stored_products: isHeldInMemory(config) ? 'separate' : 'fused' }),
    harmless: {
      ...harmless('used in training only', ['L_bp_cycles']),
      prefix_lm: 'only an input with token types has a prefix whose tokens see each other',
    },
    limited: unreadEach(['num_key_value_heads']),
  },
  build({ model: config }) {
    const { stored_prefix: prefix, L_cycles: low, hidden_size: hidden } = config;
    // Every use of a block is a layer of its own.
    checkLayers(COUNT, layersPerStack(config));
    checkLayers(COUNT, usesOf(config) * layersPerStack(config));
    const stacks = [`${prefix}L_module`, `${prefix}H_module`].map((path) => ({
      path,
      layers: stackOf(path, config),
    })) as [StackAt, StackAt];
    const uses = Array.from({ length: usesOf(config) }, (_, use) => {
      const { path, layers } = stacks[use % (low + 1) === low ? 1 : 0];
      return movedTo(layers, path, `${prefix}cycles.${use}.${path.slice(prefix.length)}`);
    });
    return causalModel({
      vocabulary: config.vocab_size,
      hidden,
      positions: longestInput(config.max_position_embeddings, config.rope_scaling),
      tied: config.tie_word_embeddings,
      paths: {
        embedding: `${prefix}embed_tokens`,
        blocks: `${prefix}cycles`,
        head: headPath(prefix),
      },
      blocks: 1,
      blocksKey: 'num_hidden_layers',
      embeddingSteps: streamFactor(
        'embedding_scale',
        config.embedding_scale ?? 1 / (config.initializer_range ?? SPREAD),
      ),
      block: () => ({
        kind: 'cycles',
        name: `${prefix}cycles`,
        initial: param(`${prefix}z_L_init`, [hidden]),
        stacks: uses,
        lowPerHigh: low,
      }),
      norm: sequence(`${prefix}no_norm`, []),
    });
  },
});

interface StackAt {
  readonly path: string;
  readonly layers: Layer;
}
