/** RWKV-4 (arXiv 2305.13048): time mixing with a state for each channel, and channel mixing. */
import * as z from 'zod';
import { layerNormLayer, residual, scale, sequence } from '../constructors/basic-layers.js';
import { rwkvChannelMix, rwkvTimeMix } from '../constructors/rwkv-layers.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { causalModel, scaledBranch } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { lengthRules } from '../transformer/rules.js';
import {
  count,
  headPath,
  normEpsilon,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';
import { NO_ATTENTION_KEYS } from '../transformer/state-space.js';

const PREFIXES = { own: 'rwkv.' };

/** Epsilon of the last norm, regardless of layer_norm_epsilon. */
const LAST_NORM_EPS = 1e-5;

// Defaults are those of transformers' RwkvConfig.
const schema = transformerDocument('rwkv', {
  vocab_size: count(50_277, 'Rows of the embedding and of the head'),
  hidden_size: count(4096, 'Width of the residual stream'),
  num_hidden_layers: count(32, 'Number of blocks'),
  context_length: count(1024, 'Longest input; the state itself sets no limit'),
  attention_hidden_size: positiveInteger
    .nullable()
    .default(null)
    .describe('Width of time mixing; null: hidden_size'),
  intermediate_size: positiveInteger
    .nullable()
    .default(null)
    .describe('Width inside channel mixing; null: four times hidden_size'),
  layer_norm_epsilon: normEpsilon(1e-5),
  rescale_every: z
    .int()
    .default(6)
    .describe('Blocks after which the residual stream is halved in inference; 0 or less: never'),
  tie_word_embeddings: tiedHead(false),
  stored_prefix: storedPrefix(PREFIXES),
});

export const rwkv = defineTransformer({
  title: 'RWKV-4: time mixing and channel mixing',
  architecture: 'recurrent',
  schema,
  rules: [
    ...lengthRules('context_length'),
    ...defineRules<{ readonly model: { readonly num_hidden_layers: number } }>([
      {
        severity: 'error',
        reads: ['model.num_hidden_layers'],
        check: ({ model: { num_hidden_layers: layers } }) =>
          layers === 1
            ? {
                message:
                  'its class divides by the number of blocks after the first: it has none of 1 block',
                suggestion: 'write num_hidden_layers: 2 or more',
              }
            : undefined,
      },
    ]),
  ],
  storedSettings: (stored) => prefixStoredIn(stored, PREFIXES, 'embeddings.weight'),
  huggingFace: {
    names: { context_length: ['max_position_embeddings'] },
    limited: Object.fromEntries(
      Object.entries(NO_ATTENTION_KEYS).filter(([key]) => key !== 'max_position_embeddings'),
    ),
  },
  build({ model: config }) {
    const { hidden_size: hidden, rescale_every: every, stored_prefix: prefix } = config;
    const blocks = config.num_hidden_layers;
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_epsilon);
    /** Halves the stream after every few blocks; the branches of later ones are as much smaller. */
    const halved = (name: string, before: number): Layer[] =>
      every > 0 && before > 0 && before % every === 0 ? [scale(`${name}.rescale`, 0.5)] : [];
    const branch = (name: string, first: Layer, layer: Layer, index: number) =>
      residual(
        name,
        sequence(`${name}.branch`, [
          first,
          scaledBranch(layer, every > 0 ? 2 ** -Math.floor(index / every) : 1),
        ]),
      );
    const last = layerNormLayer(`${prefix}ln_out`, hidden, LAST_NORM_EPS);
    const lastHalving = halved(`${prefix}ln_out`, blocks);
    return causalModel({
      paths: {
        embedding: `${prefix}embeddings`,
        blocks: `${prefix}blocks`,
        head: headPath(prefix, PREFIXES, 'head'),
      },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.context_length,
      tied: config.tie_word_embeddings,
      blocks,
      blocksKey: 'num_hidden_layers',
      norm:
        lastHalving.length > 0 ? sequence(`${prefix}ln_out.scaled`, [...lastHalving, last]) : last,
      block: (name, index) =>
        sequence(name, [
          ...(index === 0 ? [norm(`${name}.pre_ln`)] : []),
          ...halved(name, index),
          branch(
            `${name}.attention_residual`,
            norm(`${name}.ln1`),
            rwkvTimeMix(`${name}.attention`, hidden, config.attention_hidden_size ?? hidden),
            index,
          ),
          branch(
            `${name}.feed_forward_residual`,
            norm(`${name}.ln2`),
            rwkvChannelMix(`${name}.feed_forward`, hidden, config.intermediate_size ?? 4 * hidden),
            index,
          ),
        ]),
    });
  },
});
