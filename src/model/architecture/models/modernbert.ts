/**
 * ModernBERT (arXiv 2412.13663): an encoder with rotary positions, gated networks, and windows in two of three layers.
 * Described, not run. Source: models/modernbert of transformers 5.18.
 */
import * as z from 'zod';
import { activation, blockNames, embedding, linear, stack } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer, Linear } from '../layer.js';
import { harmless } from '../transformer/config-keys.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  attentionBothWays,
  blockNorm,
  network,
  onceForInput,
} from '../transformer/described/encoder-parts.js';
import { headsDivide, layerListRules } from '../transformer/rules.js';
import { attentionBias, count, mlpBias, tiedHead, toggle } from '../transformer/settings.js';

interface Config extends EncoderSettings {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly max_position_embeddings: number;
  readonly norm_bias: boolean;
  readonly attention_bias: boolean;
  readonly mlp_bias: boolean;
  readonly decoder_bias: boolean;
  readonly classifier_bias: boolean;
  readonly local_attention: number;
  readonly global_attn_every_n_layers: number;
  readonly layer_types?: readonly string[] | null;
  readonly tie_word_embeddings: boolean;
}

const normOf = (name: string, { hidden_size, norm_bias }: Config): Layer =>
  blockNorm(name, hidden_size, norm_bias ? {} : { norm: 'weight' });

/** The network of the heads. */
const headLayers = (config: Config): Layer[] => [
  linear('head.dense', config.hidden_size, config.hidden_size, {
    bias: config.classifier_bias,
    component: 'head',
  }),
  activation('head.activation', 'gelu'),
  { ...normOf('head.norm', config), component: 'head' } as Layer,
];

const classifier = ({ hidden_size }: Config, labels: number): Linear =>
  linear('classifier', hidden_size, labels, { component: 'head' });

const once = (config: Config, labels: number) => ({
  layers: [
    onceForInput(
      'classifier_of_texts',
      [
        ...headLayers(config).filter(({ kind }) => kind !== 'activation'),
        classifier(config, labels),
      ],
      config.hidden_size,
    ),
  ],
});

const perToken = (config: Config) => ({
  layers: headLayers(config),
  head: classifier(config, config.num_labels),
});

const CLASSES: EncoderClasses<Config> = {
  ModernBertModel: { prefix: '', of: () => ({ layers: [] }) },
  ModernBertForMaskedLM: {
    prefix: 'model.',
    of(config, tokens) {
      const own = linear('decoder', config.hidden_size, config.vocab_size, {
        bias: config.decoder_bias,
        component: 'head',
      });
      return {
        layers: headLayers(config),
        head: config.tie_word_embeddings ? { ...own, weight: tokens.weight } : own,
      };
    },
  },
  ModernBertForSequenceClassification: {
    prefix: 'model.',
    of: (config) => once(config, config.num_labels),
  },
  ModernBertForTokenClassification: { prefix: 'model.', of: perToken },
  ModernBertForQuestionAnswering: { prefix: 'model.', of: perToken },
  ModernBertForMultipleChoice: { prefix: 'model.', of: (config) => once(config, 1) },
};

/** A block: the first one has no norm before its attention, as the embedding has one. */
function modernBertBlock(name: string, index: number, config: Config): Layer {
  const { hidden_size: hidden, intermediate_size: inner, num_attention_heads: heads } = config;
  const isLocal = config.layer_types
    ? config.layer_types[index] === 'sliding_attention'
    : index % config.global_attn_every_n_layers !== 0;
  return described(name, {
    title: 'encoder block',
    parts: [
      ...(index === 0 ? [] : [normOf(`${name}.attn_norm`, config)]),
      attentionBothWays(
        `${name}.attn`,
        [
          ['Wqkv', config.attention_bias],
          ['Wo', config.attention_bias],
        ],
        {
          hidden,
          heads,
          ...(isLocal && { window: { rule: 'both', tokens: config.local_attention } }),
        },
      ),
      normOf(`${name}.mlp_norm`, config),
      network(
        `${name}.mlp`,
        [
          ['Wi', config.mlp_bias],
          ['Wo', config.mlp_bias],
        ],
        { hidden, inner, innerColumns: 2 * inner },
      ),
    ],
    output: hidden,
  });
}

export const modernbert = defineEncoder<Config>('modernbert', {
  title: 'ModernBERT',
  keys: {
    vocab_size: count(50_368, 'Rows of the embedding'),
    hidden_size: count(768, 'Width of the residual stream'),
    intermediate_size: count(1152, 'Width inside the feed-forward network'),
    num_hidden_layers: count(22, 'Number of blocks'),
    num_attention_heads: count(12, 'Heads, a divisor of hidden_size'),
    max_position_embeddings: count(8192, 'Longest input, in tokens'),
    norm_bias: toggle(false, 'Biases of the norms'),
    attention_bias: attentionBias,
    mlp_bias: mlpBias,
    decoder_bias: toggle(true, 'Bias of the product with the vocabulary'),
    classifier_bias: toggle(false, 'Bias of the network of the heads'),
    local_attention: count(128, 'Tokens of a window, half of them before a position'),
    global_attn_every_n_layers: count(3, 'One layer in this many has no window'),
    layer_types: z
      .array(z.enum(['sliding_attention', 'full_attention']))
      .nullish()
      .describe('Which layers have the window'),
    tie_word_embeddings: tiedHead(true),
  },
  classes: CLASSES,
  tiedHeads: { ModernBertForMaskedLM: 'decoder' },
  rules: [...headsDivide('num_attention_heads', 'hidden_size'), ...layerListRules('layer_types')],
  body(prefix, config, aliases) {
    const { hidden_size: hidden } = config;
    return {
      embedding: embedding(
        `${prefix}embeddings.tok_embeddings`,
        config.vocab_size,
        hidden,
        aliases,
      ),
      steps: [normOf(`${prefix}embeddings.norm`, config)],
      blocks: stack(
        blockNames(`${prefix}layers`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (name, index) => modernBertBlock(name, index, config),
      ),
      after: [normOf(`${prefix}final_norm`, config)],
      hidden,
      positions: config.max_position_embeddings,
    };
  },
  huggingFace: {
    harmless: harmless('changes values only, which are described and not computed', [
      'hidden_activation',
      'norm_eps',
      'rope_parameters',
      'global_rope_theta',
      'local_rope_theta',
      'classifier_pooling',
      'classifier_activation',
      'classifier_dropout',
      'sparse_prediction',
      'sparse_pred_ignore_index',
      'deterministic_flash_attn',
      'reference_compile',
      'repad_logits_with_grad',
      'sliding_window',
    ]),
  },
});
