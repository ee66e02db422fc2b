/** Doge: attention to the keys that a function of their values prefers, and learned factors of the residual stream. */

import { dynamicMask } from '../constructors/attention-kinds.js';
import { attention } from '../constructors/attention-layers.js';
import {
  linear,
  rmsNormLayer,
  sequence,
  sum,
  weightedScale,
} from '../constructors/basic-layers.js';
import type { Layer, NormLayer } from '../layer.js';
import { param } from '../param.js';
import { type BlockParts, mlpOf, rotaryOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  activationOf,
  attentionBias,
  count,
  gateActivation,
  mlpBias,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

/** factor · x + branch(norm(x)), a factor for each value. */
const scaledResidual = (name: string, hidden: number, norm: NormLayer, branch: Layer) =>
  sum(
    `${name}_sum`,
    weightedScale(`${name}_scale`, param(name, [hidden])),
    sequence(`${name}_branch`, [norm, branch]),
  );

function dogeBlock(
  name: string,
  { norm, attention: mixer, feedForward }: BlockParts,
  { hidden_size: hidden }: { readonly hidden_size: number },
): Layer {
  return sequence(name, [
    scaledResidual(`${name}.input_residual`, hidden, norm(`${name}.input_layernorm`), mixer),
    scaledResidual(
      `${name}.post_attention_residual`,
      hidden,
      norm(`${name}.post_attention_layernorm`),
      feedForward,
    ),
  ]);
}

export const doge = defineDecoder({
  title: 'Doge',
  schema: decoderDocument(
    'doge',
    {
      vocab_size: 32_768,
      hidden_size: 1024,
      intermediate_size: 2048,
      num_hidden_layers: 32,
      num_attention_heads: 8,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-6,
    },
    {
      sliding_window: windowSettings().sliding_window,
      keep_window_size: count(2048, 'Keys that a query sees at most'),
      is_moe: toggle(false, 'Whether each network has small experts beside it'),
      num_experts: count(16_384, 'With is_moe: experts to choose from'),
      num_experts_per_tok: count(64, 'With is_moe: experts that a token goes to'),
      norm_topk_prob: toggle(false, 'With is_moe: weights sum to one, as they do anyway'),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  rules: [
    {
      severity: 'error',
      reads: ['model.is_moe', 'model.num_experts', 'model.num_experts_per_tok'],
      check({ model: { is_moe: isMoe, num_experts: experts, num_experts_per_tok: chosen } }) {
        const keys = Math.floor(Math.sqrt(experts));
        return isMoe && chosen > keys ** 2
          ? {
              message: `${chosen} experts for a token are more than the ${keys} · ${keys} that have scores`,
              suggestion: `write at most ${keys ** 2}`,
            }
          : undefined;
      },
    },
  ],
  block: dogeBlock,
  attentionLayer({ name: block, config, heads: layout }) {
    const name = `${block}.self_attn`;
    const { hidden, heads, keyValueHeads, headDim } = layout;
    const bias = config.attention_bias;
    const input = (leaf: string, width: number) =>
      linear(`${name}.${leaf}`, hidden, width * headDim, { bias });
    const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, headDim, config.rms_norm_eps);
    return dynamicMask(`${name}.masked`, {
      attention: attention(name, {
        inputs: [
          input('q_proj', heads),
          input('k_proj', keyValueHeads),
          input('v_proj', keyValueHeads),
        ],
        out: linear(`${name}.o_proj`, heads * headDim, hidden, { bias }),
        queryNorm: norm('q_norm'),
        keyNorm: norm('k_norm'),
        rotary: rotaryOf(block, config, headDim),
        heads,
        keyValueHeads,
        headDim,
        window: windowAt(config, 0, true),
      }),
      rates: param(`${name}.A`, [keyValueHeads]),
      steps: linear(`${name}.dt_proj`, keyValueHeads * headDim, keyValueHeads, { bias }),
      kept: config.keep_window_size,
    });
  },
  feedForward({ name: block, config }) {
    const name = `${block}.mlp`;
    const shared = mlpOf(name, config);
    if (!config.is_moe) return shared;
    const { hidden_size: hidden, num_experts: experts } = config;
    const table = (leaf: string) => param(`${name}.${leaf}.weight`, [experts, hidden]);
    return {
      kind: 'productKeyExperts',
      name: `${name}.cross_domain`,
      component: 'feedForward',
      shared,
      scores: linear(`${name}.router_gate`, hidden, 2 * Math.floor(Math.sqrt(experts)), {
        bias: false,
        component: 'router',
      }),
      down: table('down_embed'),
      up: table('up_embed'),
      expertsPerToken: config.num_experts_per_tok,
      activation: activationOf(config.hidden_act),
    };
  },
});
