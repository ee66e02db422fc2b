/**
 * Byte Latent Transformer (arXiv 2412.09871; transformers 5.18, models/blt): bytes are joined into patches, which a larger
 * model reads; a small model says where patches end. Described, not run. The cache is that of the class, which keeps
 * keys of bytes alone (it cannot build its cache in 5.18). FLOPs count a patch for each byte: an upper bound, because the text decides on the patches.
 */

import * as z from 'zod';
import { isRecord } from '../../../base/values.js';
import {
  blockNames,
  embedding,
  head,
  languageModel,
  linear,
  rmsNormLayer,
  sequence,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { harmless, type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { separateMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { product, valueKeys } from '../transformer/described/parts.js';
import {
  activationOf,
  count,
  gateActivation,
  normEpsilon,
  positiveInteger,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

/** Sizes of one of the transformers inside. */
interface Defaults {
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly intermediate_size: number | null;
}

const bltPartSettings = <Own extends z.ZodRawShape>(defaults: Defaults, own: Own) =>
  z.object({
    hidden_size: count(defaults.hidden_size, 'Width of its residual stream'),
    num_hidden_layers: count(defaults.num_hidden_layers, 'Number of its blocks'),
    num_attention_heads: count(defaults.num_attention_heads, 'Heads, a divisor of hidden_size'),
    num_key_value_heads: positiveInteger.nullish().describe('Heads of keys and values; null: all'),
    intermediate_size: positiveInteger
      .nullable()
      .default(defaults.intermediate_size)
      .describe('Width inside its networks; null: 8/3 of the width'),
    rms_norm_eps: normEpsilon(1e-5),
    hidden_act: gateActivation,
    ...own,
  });

/** A transformer that reads bytes, and exchanges them with patches. */
const localPart = <Own extends z.ZodRawShape>(defaults: Defaults, all: boolean, own: Own) =>
  bltPartSettings(defaults, {
    cross_attn_all_layers: toggle(all, 'Attention to patches in each block, not in one'),
    cross_attn_k: count(2, 'Values of the width of bytes in a patch'),
    ...own,
  });

const rows = count(260, 'Rows of the embedding');

const encoder = localPart(
  { hidden_size: 1024, num_hidden_layers: 1, num_attention_heads: 16, intermediate_size: null },
  false,
  { vocab_size: rows },
);
const decoder = localPart(
  { hidden_size: 1024, num_hidden_layers: 9, num_attention_heads: 16, intermediate_size: 2816 },
  true,
  { hidden_size_global: count(2048, 'Width of a patch') },
);
const global = bltPartSettings(
  { hidden_size: 2048, num_hidden_layers: 25, num_attention_heads: 16, intermediate_size: 5632 },
  {},
);
const patcher = bltPartSettings(
  { hidden_size: 768, num_hidden_layers: 14, num_attention_heads: 12, intermediate_size: 2048 },
  { vocab_size: rows },
);

const PARTS = {
  encoder_config: encoder,
  decoder_config: decoder,
  global_config: global,
  patcher_config: patcher,
} as const;

type PartName = keyof typeof PARTS;

const schema = transformerDocument('blt', {
  vocab_size: count(260, 'Rows of the head'),
  max_position_embeddings: count(4096, 'Longest input, in bytes'),
  cross_attn_k: count(2, 'Values of the width of bytes that the encoder gives for a patch'),
  encoder_hash_byte_group_size: z
    .array(positiveInteger)
    .default([3, 4, 5, 6, 7, 8])
    .describe('Lengths of groups of bytes with an embedding of their hash'),
  encoder_hash_byte_group_vocab: count(500_002, 'Rows for each of these lengths'),
  encoder_hash_byte_group_nb_functions: count(1, 'Hashes of each group'),
  patch_in_forward: toggle(true, 'The small model that says where patches end is part of it'),
  encoder_config: encoder.prefault({}).describe('The model that reads bytes'),
  decoder_config: decoder.prefault({}).describe('The model that writes bytes'),
  global_config: global.prefault({}).describe('The model of the patches'),
  patcher_config: patcher.prefault({}).describe('The model that says where patches end'),
  tie_word_embeddings: tiedHead(false),
});

type Config = z.output<typeof schema>['model'];

type Part = z.output<typeof global>;

type Kind = 'cached' | 'passing';

function bltAttention(name: string, part: Part, title: string, kind: Kind): Layer {
  const { hidden_size: hidden, num_attention_heads: heads } = part;
  const width = Math.floor(hidden / heads);
  const keys = part.num_key_value_heads ?? heads;
  return described(name, {
    title,
    component: 'attention',
    parts: [
      product(`${name}.q_proj`, hidden, heads * width),
      product(`${name}.k_proj`, hidden, keys * width),
      product(`${name}.v_proj`, hidden, keys * width),
      product(`${name}.o_proj`, heads * width, hidden),
    ],
    works: [
      {
        work: 'attention',
        heads,
        keyValueHeads: keys,
        headDim: width,
        valueDim: width,
        // The class computes these keys anew for each byte.
        ...(kind === 'passing' && { cached: 0, multiplied: 2 * width }),
      },
    ],
    output: hidden,
  });
}

function bltBlock(name: string, part: Part, kind: Kind): Layer {
  const { hidden_size: hidden, rms_norm_eps: eps } = part;
  return described(name, {
    title: 'block of bytes or patches',
    parts: [
      rmsNormLayer(`${name}.input_layernorm`, hidden, eps),
      bltAttention(`${name}.self_attn`, part, 'attention', kind),
      rmsNormLayer(`${name}.post_attention_layernorm`, hidden, eps),
      separateMlp(`${name}.mlp`, {
        hidden,
        inner: part.intermediate_size ?? Math.trunc((8 * hidden) / 3),
        activation: activationOf(part.hidden_act),
      }),
    ],
    output: hidden,
  });
}

/** Blocks of a part. @throws LimitError for too many. */
const bltBlocks = (path: string, part: Part, key: PartName, kind: Kind): Layer[] =>
  blockNames(`${path}.layers`, part.num_hidden_layers, `model.${key}.num_hidden_layers`).map(
    (name) => bltBlock(name, part, kind),
  );

/** Attention between bytes and patches, in one block or in each. */
function crossAttentions(
  path: string,
  part: Part & { readonly cross_attn_all_layers: boolean },
): Layer[] {
  const { hidden_size: hidden, rms_norm_eps: eps } = part;
  return Array.from(
    { length: part.cross_attn_all_layers ? part.num_hidden_layers : 1 },
    (_, index) => {
      const name = `${path}.cross_attn_layers.${index}`;
      return described(`${name}.whole`, {
        title: 'attention between bytes and patches',
        component: 'attention',
        parts: [
          bltAttention(name, part, 'attention between bytes and patches', 'passing'),
          rmsNormLayer(`${name}.q_norm`, hidden, eps),
          rmsNormLayer(`${name}.k_norm`, hidden, eps),
        ],
        output: hidden,
      });
    },
  );
}

/** Where patches end, as a model of its own says. */
function patcherOf(config: Config): Layer[] {
  if (!config.patch_in_forward) return [];
  const path = 'model.patcher';
  const part = config.patcher_config;
  const { hidden_size: hidden, vocab_size: bytes } = part;
  return [
    described(path, {
      title: 'model that says where patches end',
      component: 'other',
      parts: [
        described(`${path}.embed_tokens`, {
          title: 'embedding',
          tensors: { weight: [bytes, hidden] },
          output: hidden,
        }),
        ...bltBlocks(path, part, 'patcher_config', 'passing'),
        rmsNormLayer(`${path}.norm`, hidden, part.rms_norm_eps),
        linear(`${path}.lm_head`, hidden, bytes, { bias: false }),
      ],
      output: hidden,
    }),
  ];
}

/** The encoder of bytes, and what joins its output into patches. */
function encoderOf(config: Config): Layer {
  const path = 'model.local_encoder';
  const part = config.encoder_config;
  const { hidden_size: hidden } = part;
  const hashes =
    config.encoder_hash_byte_group_nb_functions * config.encoder_hash_byte_group_size.length;
  return described(path, {
    title: 'encoder of bytes',
    parts: [
      described('model.encoder_hash_tok_embedding', {
        title: 'embeddings of groups of bytes',
        component: 'embedding',
        tensors: { weight: [hashes * config.encoder_hash_byte_group_vocab, hidden] },
        output: hidden,
      }),
      ...bltBlocks(path, part, 'encoder_config', 'cached'),
      product(`${path}.patch_embedding_projection`, hidden, hidden * part.cross_attn_k),
      ...crossAttentions(path, part),
    ],
    output: hidden,
  });
}

const sizeRules = defineRules<{ readonly model: Config }>([
  {
    severity: 'error',
    reads: ['model.tie_word_embeddings', 'model.encoder_config', 'model.decoder_config'],
    check: ({ model }) =>
      model.tie_word_embeddings &&
      model.encoder_config.hidden_size !== model.decoder_config.hidden_size
        ? {
            message: 'the embedding of the encoder and the head of the decoder have other widths',
            suggestion: 'write tie_word_embeddings: false',
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: [
      'model.encoder_config',
      'model.decoder_config',
      'model.global_config',
      'model.patcher_config',
    ],
    check({ model }) {
      const wrong = (Object.keys(PARTS) as PartName[]).find((key) => {
        const {
          hidden_size: hidden,
          num_attention_heads: heads,
          num_key_value_heads: keys,
        } = model[key];
        return hidden % heads !== 0 || heads % (keys ?? heads) !== 0;
      });
      if (wrong === undefined) return undefined;
      return {
        message: `the heads of ${wrong} do not divide its width, or its key-value heads do not divide them`,
        suggestion: 'write divisors',
      };
    },
  },
]);

/** The parts of a file with the keys that are settings; others change values, or nothing. */
const partsIn = (config: JsonObject): JsonObject =>
  Object.fromEntries(
    (Object.keys(PARTS) as PartName[]).flatMap((name) => {
      const given = config[name];
      if (!isRecord(given)) return [];
      const known = Object.keys(PARTS[name].shape);
      const own = Object.entries(given).flatMap(([key, value]) => {
        if (!known.includes(key)) return [];
        // A flag that is null is off, as in Python.
        if (key === 'cross_attn_all_layers') return [[key, value === true]];
        return value !== null || key === 'intermediate_size' ? [[key, value]] : [];
      });
      return [[name, Object.fromEntries(own)]];
    }),
  );

export const blt = defineTransformer({
  title: 'Byte Latent Transformer; described, not run',
  schema,
  rules: sizeRules,
  huggingFace: {
    more: partsIn,
    harmless: {
      ...valueKeys(
        'patch_size',
        'patching_mode',
        'patching_threshold',
        'patching_batch_size',
        'max_patch_length',
        'rope_parameters',
        'rope_scaling',
        'rope_theta',
      ),
      ...harmless('the parts have it', ['hidden_size', 'num_hidden_layers', 'num_attention_heads']),
    },
    limited: unreadEach(['head_dim', 'partial_rotary_factor']),
  },
  build({ model: config }) {
    const { encoder_config: ofEncoder, decoder_config: ofDecoder, global_config: whole } = config;
    const hidden = ofDecoder.hidden_size;
    const joined = ofEncoder.hidden_size * config.cross_attn_k;
    const tied = config.tie_word_embeddings;
    const tokens = embedding(
      'model.local_encoder.embed_tokens',
      // A tied embedding has the shape of the head.
      tied ? config.vocab_size : ofEncoder.vocab_size,
      ofEncoder.hidden_size,
      tied ? ['lm_head.weight'] : [],
    );
    const path = 'model.local_decoder';
    return languageModel({
      embedding: tokens,
      embeddingSteps: [
        ...patcherOf(config),
        encoderOf(config),
        described('model.global_transformer', {
          title: 'join of the patches',
          parts:
            joined === whole.hidden_size
              ? []
              : [
                  product(
                    'model.global_transformer.token_embedding_projection',
                    joined,
                    whole.hidden_size,
                  ),
                ],
          output: whole.hidden_size,
        }),
      ],
      blocks: stack(
        blockNames(
          'model.global_transformer.layers',
          whole.num_hidden_layers,
          'model.global_config.num_hidden_layers',
        ),
        'model.global_config.num_hidden_layers',
        (name) => bltBlock(name, whole, 'passing'),
      ),
      norm: sequence(`${path}.whole`, [
        described(path, {
          title: 'decoder of bytes',
          parts: [
            product(
              `${path}.patch_embedding_projection`,
              ofDecoder.hidden_size_global,
              hidden * ofDecoder.cross_attn_k,
            ),
            ...bltBlocks(path, ofDecoder, 'decoder_config', 'cached'),
            ...crossAttentions(path, ofDecoder),
            rmsNormLayer(`${path}.norm`, hidden, ofDecoder.rms_norm_eps),
          ],
          output: hidden,
        }),
      ]),
      head: head('lm_head', hidden, config.vocab_size, { tiedTo: tied ? tokens : undefined }),
      hidden: whole.hidden_size,
      positions: config.max_position_embeddings,
    });
  },
});
