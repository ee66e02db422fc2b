/** The decoder of ModernBERT (Ettin, arXiv 2507.11412): a norm behind the embedding, a network before the head. */
import { asNumber, isRecord } from '../../../base/values.js';
import {
  activation,
  fusedProjection,
  layerNormLayer,
  linear,
  sequence,
} from '../constructors/basic-layers.js';
import { gatedMlp } from '../constructors/feed-forward-layers.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import { residualBlock, rotaryByKind, separateAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { localRotarySettings, rotaryByLayer, rotarySettings } from '../transformer/rotary.js';
import {
  layerListRules,
  localRotaryRules,
  WHOLE_HEAD_RULES,
  windowRules,
} from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  attentionBias,
  count,
  headPath,
  isComposed,
  mlpBias,
  normEpsilon,
  slidesAt,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const [BASE, LOCAL_BASE] = [160_000, 10_000];
const PREFIX = 'model.';

/** Rotary settings by kind of layer; `rope_scaling` changes both kinds. */
function nestedIn(config: JsonObject): JsonObject {
  const { rope_parameters: given, rope_scaling: scaling } = config;
  const of = (kind: string, base: unknown) => ({
    rope_theta: base,
    ...((isRecord(given) ? (given[kind] as JsonObject | null) : null) ?? { rope_type: 'default' }),
    ...(isRecord(scaling) && scaling),
  });
  return {
    rope_parameters: {
      ...(isRecord(given) && given),
      full_attention: of('full_attention', config.global_rope_theta ?? BASE),
      sliding_attention: of('sliding_attention', config.local_rope_theta ?? LOCAL_BASE),
    },
  };
}

export const modernbertDecoder = defineGpt({
  title: 'ModernBERT, the decoder',
  document: gptDocument(
    'modernbert-decoder',
    {
      prefix: PREFIX,
      sizes: {
        vocabulary: ['vocab_size', 50_368],
        width: ['hidden_size', 768],
        feedForward: ['intermediate_size', 1152],
        depth: ['num_hidden_layers', 22],
        heads: ['num_attention_heads', 12],
        positions: ['max_position_embeddings', 8192],
      },
    },
    {
      ...rotarySettings(BASE),
      ...localRotarySettings(LOCAL_BASE),
      ...windowSettings(64),
      global_attn_every_n_layers: count(
        3,
        'Without layer_types: one layer in this many has no window, from the first on',
      ),
      hidden_activation: activationWord.default('gelu').describe('Activation of the gate'),
      norm_eps: normEpsilon(1e-5),
      norm_bias: toggle(false, 'Biases in the norms'),
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
      classifier_activation: activationWord
        .default('gelu')
        .describe('Activation of the network before the head'),
      classifier_bias: toggle(false, 'A bias in the product of this network'),
      decoder_bias: toggle(true, 'A bias of the head'),
    },
  ),
  headRules: [
    ...WHOLE_HEAD_RULES,
    ...localRotaryRules,
    ...layerListRules('layer_types'),
    ...windowRules(() => true),
  ],
  huggingFace: {
    more: ({ sliding_window: window, local_attention: width = 128 }) => ({
      sliding_window: window === undefined ? Math.floor(asNumber(width) / 2) || -1 : window,
    }),
    reads: ['local_attention', 'global_rope_theta', 'local_rope_theta'],
    rotary: {
      keys: ['rope_parameters', 'rope_scaling'],
      settings: (config) => rotaryByLayer.settings(nestedIn(config)),
      remarks: (config) => rotaryByLayer.remarks(nestedIn(config)),
    },
    limited: {
      rope_theta: unreadBut([], 'this family reads global_rope_theta and local_rope_theta'),
      head_dim: {
        allows: (width, { hidden_size: hidden = 768, num_attention_heads: heads = 12 }) =>
          width === null || width === asNumber(hidden) / asNumber(heads),
        why: 'it is taken for the number of dimensions that are rotated',
        severity: 'error',
      },
    },
    harmless: {
      mlp_dropout: 'used in training only',
      initializer_cutoff_factor: 'used in training only',
    },
  },
  names: { embedding: 'embeddings.tok_embeddings', blocks: 'layers', norm: 'final_norm' },
  head: () => 'decoder',
  ignoredOnLoad: [],
  norm: (name, width, { norm_eps: eps, norm_bias: bias }) =>
    layerNormLayer(name, width, eps, { holds: bias ? 'both' : 'weight' }),
  attention({ name, index, config, layout, headDim }) {
    const slides = slidesAt(config, index, index % config.global_attn_every_n_layers !== 0);
    return separateAttention(`${name}.attn`, {
      ...layout,
      bias: config.attention_bias,
      outBias: config.attention_bias,
      outName: 'Wo',
      rotary: rotaryByKind(name, config, headDim, slides),
      window: windowAt(config, index, slides),
    });
  },
  feedForward({ name: block, config, hidden, inner }) {
    const [name, bias] = [`${block}.mlp`, { bias: config.mlp_bias }];
    return gatedMlp(name, {
      inputs: fusedProjection(linear(`${name}.Wi`, hidden, 2 * inner, bias), [inner, inner]),
      activation: activationOf(config.hidden_activation),
      down: linear(`${name}.Wo`, inner, hidden, bias),
    });
  },
  block: ({ name, index, norm }, { attention, feedForward }) =>
    residualBlock(name, {
      attention: [...(index === 0 ? [] : [norm(`${name}.attn_norm`)]), attention],
      mlp: [norm(`${name}.mlp_norm`), feedForward],
    }),
  parts({ prefix, config, hidden, norm }) {
    const name = headPath(prefix, { own: PREFIX }, 'lm_head');
    const word = config.classifier_activation;
    return {
      headBias: config.decoder_bias,
      embeddingSteps: [norm(`${prefix}embeddings.norm`)],
      norm: sequence(`${prefix}output`, [
        norm(`${prefix}final_norm`),
        linear(`${name}.dense`, hidden, hidden, { bias: config.classifier_bias }),
        activation(`${name}.act`, activationOf(word), isComposed(word)),
        norm(`${name}.norm`),
      ]),
    };
  },
});
