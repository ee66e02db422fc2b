/** MiniMax-Text-01 (arXiv 2501.08313): lightning attention and softmax attention, with experts. */

import * as z from 'zod';
import { slidingWindow } from '../constructors/attention-layers.js';
import {
  fusedProjection,
  gatedRmsNorm,
  linear,
  residual,
  scale,
  sequence,
  sum,
} from '../constructors/basic-layers.js';
import { lightningAttention } from '../constructors/linear-attention-layers.js';
import type { Layer } from '../layer.js';
import { checkListed } from '../param.js';
import { unreadBut, unreadEach } from '../transformer/config-keys.js';
import { type BlockParts, scaledBranch, softmaxMixture } from '../transformer/decoder-parts.js';
import { type BlockInputs, decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  activationOf,
  count,
  expertsStored,
  gateActivation,
  windowSettings,
} from '../transformer/settings.js';

/** Epsilon of the norm in lightning attention, regardless of rms_norm_eps. */
const LIGHTNING_EPS = 1e-6;

/** Name of the mixture with packed and with separate experts. */
const MIXTURE = { packed: 'mlp', separate: 'block_sparse_moe' } as const;

const factor = (what: string) => z.number().default(1).describe(`Factor of ${what}`);

// Defaults are those of transformers' MiniMaxConfig.
const schema = decoderDocument(
  'minimax',
  {
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 14_336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
    rope_theta: 1e6,
  },
  {
    sliding_window: windowSettings().sliding_window,
    layer_types: z
      .array(z.enum(['full_attention', 'linear_attention']))
      .nullish()
      .describe('Which layers have lightning attention; null: every second one'),
    block_size: count(256, 'Tokens of a block of lightning attention: the size of its tables'),
    num_local_experts: count(8, 'Experts to choose from'),
    num_experts_per_tok: count(2, 'Experts that a token goes to'),
    experts_stored: expertsStored,
    hidden_act: gateActivation,
    full_attn_alpha_factor: factor('the input that softmax attention is added to'),
    full_attn_beta_factor: factor('the output of softmax attention'),
    linear_attn_alpha_factor: factor('the input that lightning attention is added to'),
    linear_attn_beta_factor: factor('the output of lightning attention'),
    mlp_alpha_factor: factor('the input that the experts are added to'),
    mlp_beta_factor: factor('the output of the experts'),
  },
);

type MinimaxConfig = z.output<typeof schema>['model'];

const isLightning = ({ layer_types: types }: MinimaxConfig, index: number): boolean =>
  types ? types[index] === 'linear_attention' : index % 2 === 1;

/** Slopes of the heads: those of ALiBi, smaller the higher the layer. They are computed in float32. */
function slopesAt(
  { num_attention_heads: heads, num_hidden_layers: layers }: MinimaxConfig,
  index: number,
) {
  checkListed('model.num_attention_heads', heads, 'slopes of heads');
  const base = 1 / 2 ** (8 / heads);
  const ofLayer = 1 - index / (layers - 1 + 1e-5) + 1e-5;
  return Array.from({ length: heads }, (_, head) =>
    Math.fround(Math.fround(base ** (head + 1)) * Math.fround(ofLayer)),
  );
}

function lightningLayer({ name: block, index, config, heads: layout }: BlockInputs<MinimaxConfig>) {
  const name = `${block}.self_attn`;
  const { hidden, heads, headDim } = layout;
  const width = heads * headDim;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${name}.${leaf}`, from, to, { bias: false });
  return lightningAttention(name, {
    inputs: [
      fusedProjection(product('qkv_proj', hidden, 3 * width), [width, width, width], heads),
      product('output_gate', hidden, width),
    ],
    norm: gatedRmsNorm(`${name}.norm`, {
      eps: LIGHTNING_EPS,
      width,
      activation: 'sigmoid',
      gated: 'after',
    }),
    outProj: product('out_proj', width, hidden),
    slopes: slopesAt(config, index),
    headDim,
    activation: activationOf(config.hidden_act),
    block: config.block_size,
  });
}

/** alpha · x + beta · layer(x). */
const weightedResidual = (name: string, layer: Layer, alpha: number, beta: number): Layer =>
  alpha === 1
    ? residual(name, scaledBranch(layer, beta))
    : sum(name, scaledBranch(layer, beta), scale(`${name}.input`, alpha));

/** Each branch is added to its normed input. */
function minimaxBlock(name: string, parts: BlockParts, config: MinimaxConfig): Layer {
  const { norm, attention, feedForward } = parts;
  const [alpha, beta] =
    attention.kind === 'lightningAttention'
      ? [config.linear_attn_alpha_factor, config.linear_attn_beta_factor]
      : [config.full_attn_alpha_factor, config.full_attn_beta_factor];
  return sequence(name, [
    norm(`${name}.input_layernorm`),
    weightedResidual(`${name}.attention_residual`, attention, alpha, beta),
    norm(`${name}.post_attention_layernorm`),
    weightedResidual(
      `${name}.mlp_residual`,
      feedForward,
      config.mlp_alpha_factor,
      config.mlp_beta_factor,
    ),
  ]);
}

export const minimax = defineDecoder({
  title: 'MiniMax-Text-01: lightning attention, softmax attention and experts',
  architecture: 'hybrid',
  schema,
  dimensions: null,
  huggingFace: {
    names: { num_local_experts: ['num_experts'] },
    limited: {
      norm_topk_prob: unreadBut([true]),
      postnorm: unreadBut([true], 'transformers always adds a branch to its normed input'),
      rotary_dim: unreadBut(
        (value, config) => value == null || value === config.head_dim,
        'transformers rotates whole heads',
      ),
      shared_intermediate_size: unreadBut([0]),
      ...unreadEach(['shared_moe_mode'], () => true),
      ...unreadEach(['attn_type_list'], [], 'transformers reads layer_types'),
    },
  },
  block: minimaxBlock,
  // The class keeps all keys, whatever the window.
  attention: ({ config: { sliding_window: tokens } }) =>
    tokens ? { window: slidingWindow(tokens), keeps: 'keys outside the windows' } : {},
  attentionLayer: (at) => (isLightning(at.config, at.index) ? lightningLayer(at) : undefined),
  feedForward: ({ name, config }) =>
    softmaxMixture(`${name}.${MIXTURE[config.experts_stored]}`, {
      experts: config.num_local_experts,
      expertsPerToken: config.num_experts_per_tok,
      isNormed: true,
      stored: config.experts_stored,
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: activationOf(config.hidden_act),
      leaves: ['w1', 'w3', 'w2'],
    }),
});
