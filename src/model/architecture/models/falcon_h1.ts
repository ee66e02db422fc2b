/** Falcon-H1 (arXiv 2507.22448): Mamba-2 and attention side by side in every block, and factors for each part. */
import * as z from 'zod';
import { gatedRmsNorm, linear, sequence, sum } from '../constructors/basic-layers.js';
import { gatedMlp } from '../constructors/feed-forward-layers.js';
import type { Layer } from '../layer.js';
import {
  mixerBlock,
  rotaryOf,
  separateAttention,
  streamFactor,
} from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  activationOf,
  attentionBias,
  gateActivation,
  mlpBias,
  positiveInteger,
  toggle,
} from '../transformer/settings.js';
import {
  dualIn,
  dualOf,
  dualRules,
  dualSettings,
  RECURRENT_HARMLESS,
} from '../transformer/state-space.js';

const factor = z.number().default(1);

/** A layer with factors of its input and output. */
const between = (into: number, layer: Layer, out: number): Layer =>
  into === 1 && out === 1
    ? layer
    : sequence(`${layer.name}.scaled`, [
        ...streamFactor(`${layer.name}.in_multiplier`, into),
        layer,
        ...streamFactor(`${layer.name}.out_multiplier`, out),
      ]);

export const falconH1 = defineDecoder({
  title: 'Falcon-H1: Mamba-2 and attention in parallel',
  architecture: 'hybrid',
  schema: decoderDocument(
    'falcon_h1',
    {
      vocab_size: 128_000,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 8192,
      rms_norm_eps: 1e-5,
    },
    {
      ...dualSettings,
      mamba_d_ssm: positiveInteger
        .nullable()
        .default(1024)
        .describe('Inner width of a Mamba layer; null: mamba_expand widths of the model'),
      mamba_rms_norm: toggle(false, 'Whether a Mamba layer has a norm'),
      mamba_norm_before_gate: toggle(true, 'Whether its gate multiplies the result'),
      projectors_bias: toggle(false, 'Bias in the out_proj of a Mamba layer'),
      embedding_multiplier: factor.describe('Factor of the embeddings'),
      lm_head_multiplier: factor.describe('Factor of the logits'),
      mlp_multipliers: z
        .tuple([z.number(), z.number()])
        .nullable()
        .default(null)
        .describe('Factors of the gate and of the output of the feed-forward network'),
      key_multiplier: factor.describe('Factor of the keys'),
      attention_in_multiplier: factor.describe('Factor of what attention reads'),
      attention_out_multiplier: factor.describe('Factor of what attention gives'),
      ssm_in_multiplier: factor.describe('Factor of what a Mamba layer reads'),
      ssm_out_multiplier: factor.describe('Factor of what a Mamba layer gives'),
      ssm_multipliers: z
        .array(z.number())
        .length(5)
        .nullable()
        .default(null)
        .describe('Factors of gate, x, B, C and steps of a Mamba layer'),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  rules: dualRules,
  dimensions: null,
  huggingFace: {
    more: dualIn,
    harmless: {
      ...RECURRENT_HARMLESS,
      layers_block_type: 'every block has both',
      layer_types: 'every block has both',
      num_logits_to_keep: 'the logits of fewer tokens are the same',
    },
  },
  finalNorm: 'final_layernorm',
  attentionLayer({ name: block, config, heads }) {
    const bias = config.attention_bias;
    const name = `${block}.mamba`;
    const dual = dualOf(name, config, {
      norm: config.mamba_rms_norm
        ? gatedRmsNorm(`${name}.norm`, {
            eps: config.rms_norm_eps,
            width: config.mamba_d_ssm ?? config.mamba_expand * config.hidden_size,
            groups: config.mamba_n_groups,
            gated: config.mamba_norm_before_gate ? 'after' : 'before',
          })
        : undefined,
      outBias: config.projectors_bias,
      inputScales: config.ssm_multipliers ?? undefined,
    });
    const attention = separateAttention(`${block}.self_attn`, {
      ...heads,
      bias,
      outBias: bias,
      // The keys' factor scales the scores alike.
      scale: config.key_multiplier / Math.sqrt(heads.headDim),
      rotary: rotaryOf(block, config, heads.headDim),
    });
    return sum(
      `${block}.mixers`,
      between(config.ssm_in_multiplier, dual, config.ssm_out_multiplier),
      between(config.attention_in_multiplier, attention, config.attention_out_multiplier),
    );
  },
  feedForward({ name: block, config }) {
    const { hidden_size: hidden, intermediate_size: inner, mlp_bias: bias } = config;
    const [ofGate, ofOutput] = config.mlp_multipliers ?? [1, 1];
    const name = `${block}.feed_forward`;
    const product = (leaf: string, from: number, to: number) =>
      linear(`${name}.${leaf}`, from, to, { bias });
    const network = gatedMlp(name, {
      inputs: [product('gate_proj', hidden, inner), product('up_proj', hidden, inner)],
      activation: activationOf(config.hidden_act),
      down: product('down_proj', inner, hidden),
      gateScale: ofGate,
    });
    return between(1, network, ofOutput);
  },
  block: mixerBlock,
  embeddingSteps: (config) => streamFactor('embedding_multiplier', config.embedding_multiplier),
  logitSteps: (config) => streamFactor('lm_head_multiplier', config.lm_head_multiplier),
});
