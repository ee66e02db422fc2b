/** Zamba 2 (arXiv 2411.15242): Mamba-2 layers, and before some of them a transformer block that several share. */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { attention } from '../constructors/attention-layers.js';
import {
  adapted,
  adapter,
  embeddingJoin,
  fusedProjection,
  gatedRmsNorm,
  linear,
  residual,
  rmsNormLayer,
  sequence,
} from '../constructors/basic-layers.js';
import { gatedMlp } from '../constructors/feed-forward-layers.js';
import { stateSpaceDual } from '../constructors/recurrent-layers.js';
import { defineRules } from '../family.js';
import type { Embedding, Layer, Linear } from '../layer.js';
import { type Param, param } from '../param.js';
import {
  type HarmlessKeys,
  harmless,
  type JsonObject,
  unreadBut,
} from '../transformer/config-keys.js';
import { decoder, residualBlock, rotaryOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineTransformer } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import {
  groupRules,
  headRules,
  layerListRules,
  lengthRules,
  rotationRules,
  scalingRules,
} from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  decoderStored,
  positiveInteger,
  toggle,
} from '../transformer/settings.js';
import { layerTypesIn, RECURRENT_HARMLESS } from '../transformer/state-space.js';
import { inputWidth, outputWidth } from '../walk.js';

const KINDS = ['linear_attention', 'hybrid'] as const;

/** Defaults of a config without a list: its hybrid layers, and its number of layers. */
const USUAL = { hybrid: [6, 12, 18, 24, 30, 36, 42, 47, 51], layers: 54 } as const;

/** Epsilon of the norms inside the Mamba layers, which no key sets. */
const MAMBA_NORM_EPS = 1e-5;

const zamba2Schema = decoderDocument(
  'zamba2',
  {
    vocab_size: 32_000,
    hidden_size: 2560,
    intermediate_size: 10_240,
    num_hidden_layers: USUAL.layers,
    num_attention_heads: 32,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: true,
  },
  {
    layers_block_type: z
      .array(z.enum(KINDS))
      .nullish()
      .describe('Which layers are Mamba layers alone, and which have a shared block before theirs'),
    intermediate_size: positiveInteger
      .nullable()
      .default(null)
      .describe('Width inside the feed-forward network; null: 4 · hidden_size'),
    head_dim: positiveInteger
      .nullable()
      .default(null)
      .describe('Width of a head of attention; null: 2 · hidden_size / num_attention_heads'),
    num_mem_blocks: count(1, 'Shared blocks, which take turns'),
    use_shared_attention_adapter: toggle(
      false,
      'Queries, keys and values have an adapter for each layer',
    ),
    adapter_rank: count(128, 'Rank of the adapters'),
    use_mem_rope: toggle(false, 'Attention rotates its heads'),
    use_long_context: toggle(false, 'The longest input has 16,384 tokens'),
    hidden_act: activationWord.default('gelu').describe('Activation of the gate'),
    mamba_d_state: count(64, 'Values of the state, a channel'),
    mamba_d_conv: count(4, 'Tokens that the convolution sees'),
    mamba_expand: count(2, 'Inner width of a Mamba layer, in widths of the model'),
    mamba_ngroups: count(1, 'Groups of heads with the same B and C'),
    n_mamba_heads: count(8, 'Heads of a Mamba layer'),
    mamba_headdim: positiveInteger
      .nullable()
      .default(null)
      .describe('Width of a head of a Mamba layer; null: the inner width / n_mamba_heads'),
    time_step_min: z.number().min(0).default(0.001).describe('Least step of a Mamba layer'),
    add_bias_linear: toggle(
      false,
      'Biases in in_proj and out_proj, and in the feed-forward network',
    ),
  },
);

type Zamba2 = z.output<typeof zamba2Schema>['model'];

const zambaHeadDim = (config: Zamba2): number =>
  config.head_dim ?? Math.floor((2 * config.hidden_size) / config.num_attention_heads);

const mambaWidth = (config: Zamba2): number => config.mamba_expand * config.hidden_size;

const mambaHeadDimOf = (config: Zamba2): number =>
  config.mamba_headdim ?? Math.floor(mambaWidth(config) / config.n_mamba_heads);

const isHybrid = ({ layers_block_type: kinds }: Zamba2, index: number): boolean =>
  kinds ? kinds[index] === 'hybrid' : USUAL.hybrid.some((each) => each === index);

/** Indices of the hybrid layers. */
const hybridLayers = (config: Zamba2): readonly number[] =>
  Array.from({ length: config.num_hidden_layers }, (_, index) => index).filter((index) =>
    isHybrid(config, index),
  );

const rotated = {
  reads: ['model.head_dim', 'model.hidden_size', 'model.num_attention_heads'],
  of: (config: Zamba2) => (config.use_mem_rope ? zambaHeadDim(config) : 2),
  suggestion: 'write an even head_dim, or another number of heads',
} as const;

const rules = defineRules<{ readonly model: Zamba2 }>([
  {
    severity: 'error',
    reads: ['model.num_hidden_layers', 'model.layers_block_type'],
    check: ({ model: { num_hidden_layers: layers, layers_block_type: kinds } }) =>
      kinds == null && layers !== USUAL.layers
        ? {
            message: `without layers_block_type there are ${USUAL.layers} layers, not ${layers}`,
            suggestion: 'give layers_block_type, with linear_attention or hybrid for each layer',
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: [
      'model.n_mamba_heads',
      'model.mamba_headdim',
      'model.mamba_expand',
      'model.hidden_size',
    ],
    check: ({ model }) => {
      const [inner, heads, width] = [mambaWidth(model), model.n_mamba_heads, mambaHeadDimOf(model)];
      return heads * width === inner
        ? undefined
        : {
            message: `expected heads for ${inner} inner values of a Mamba layer, found ${heads} heads of ${width}`,
            suggestion: `leave mamba_headdim out, and write an n_mamba_heads that divides ${inner}`,
          };
    },
  },
  {
    severity: 'error',
    reads: [
      'model.use_shared_attention_adapter',
      'model.num_key_value_heads',
      'model.num_attention_heads',
      'model.head_dim',
    ],
    check({ model }) {
      const { hidden_size: hidden, num_attention_heads: heads, num_key_value_heads: keys } = model;
      const wide = [heads, keys ?? heads].find(
        (count) => count * zambaHeadDim(model) !== 2 * hidden,
      );
      return model.use_shared_attention_adapter && wide !== undefined
        ? {
            message: `attention adapters give 2 · hidden_size = ${2 * hidden} values, but ${wide} heads of ${zambaHeadDim(model)} need ${wide * zambaHeadDim(model)}`,
            suggestion:
              'give as many key-value heads as query heads, which divide 2 · hidden_size, or write use_shared_attention_adapter: false',
          }
        : undefined;
    },
  },
]);

const LONG_CONTEXT = 16_384;

/** Harmless keys without the least step, which is a setting here. */
const { time_step_min: _, ...OTHERS_HARMLESS }: HarmlessKeys = RECURRENT_HARMLESS;

/** A key that follows from others, which a file may repeat. */
export const follows = (of: (config: JsonObject) => unknown, why: string) => ({
  allows: (value: unknown, config: JsonObject) =>
    value === null || JSON.stringify(value) === JSON.stringify(of(config)),
  why,
  severity: 'error' as const,
});

const zambaLayerTypes = (config: JsonObject) =>
  layerTypesIn(config.layer_types ?? config.layers_block_type);

function hybridIn(config: JsonObject): unknown {
  const kinds = zambaLayerTypes(config);
  return Array.isArray(kinds)
    ? kinds.flatMap((kind, index) => (kind === 'hybrid' ? [index] : []))
    : USUAL.hybrid;
}

export const zamba2 = defineTransformer({
  title: 'Zamba 2: Mamba-2 and shared transformer blocks',
  architecture: 'hybrid',
  schema: zamba2Schema,
  rules: [
    ...headRules.map((rule) => ({
      ...rule,
      check: ({ model }: { readonly model: Zamba2 }) =>
        rule.check({ model: { ...model, head_dim: zambaHeadDim(model) } }),
    })),
    ...rotationRules(rotated),
    ...scalingRules(rotated),
    ...groupRules('mamba_ngroups', 'n_mamba_heads'),
    ...layerListRules('layers_block_type'),
    ...lengthRules('max_position_embeddings'),
    ...rules,
  ],
  ignoredOnLoad: ({ model }) => (model.use_mem_rope ? [ROTARY_BUFFERS] : []),
  huggingFace: {
    names: { layers_block_type: ['layer_types'], head_dim: ['attention_head_dim'] },
    more: (config) => ({
      layers_block_type: zambaLayerTypes(config),
      ...(config.use_long_context === true && { max_position_embeddings: LONG_CONTEXT }),
    }),
    harmless: {
      ...OTHERS_HARMLESS,
      ...harmless('chooses how the same values are computed', ['use_mem_eff_path']),
      ...harmless('not read', ['kv_channels', 'num_query_groups']),
      num_logits_to_keep: 'the logits of fewer tokens are the same',
    },
    limited: {
      use_conv_bias: unreadBut([true], 'the convolution has its biases in any case'),
      attention_hidden_size: follows(
        ({ hidden_size: hidden }) => 2 * asNumber(hidden ?? 2560),
        'attention reads the input and the embedding: 2 · hidden_size values',
      ),
      layer_types: {
        allows: (kinds, { layers_block_type: listed, hybrid_layer_ids: ids }) =>
          kinds === null || listed != null || ids != null,
        why: 'the class takes the shared blocks of layers_block_type, which is missing, and fails in others',
        severity: 'error',
      },
      hybrid_layer_ids: follows(hybridIn, 'they are those that layers_block_type names'),
    },
  },
  storedSettings: decoderStored,
  build({ model: config }) {
    const norm = (name: string) => rmsNormLayer(name, config.hidden_size, config.rms_norm_eps);
    const groups = sharedGroups(config);
    return decoder(config, {
      norm,
      finalNorm: 'final_layernorm',
      block(name, index, _, tokens) {
        const own = isHybrid(config, index) ? `${name}.mamba_decoder` : name;
        const recurrent = [norm(`${own}.input_layernorm`), mambaOf(`${own}.mamba`, config)];
        const group = groups.get(index);
        if (!group) return residualBlock(name, { mixer: recurrent });
        const added = sequence(`${name}.shared`, [
          ...sharedBlock(`${name}.shared_transformer`, config, tokens, group),
          linear(`${name}.linear`, config.hidden_size, config.hidden_size, {
            bias: false,
            component: 'fusion',
          }),
        ]);
        return residualBlock(name, {
          mixer: [residual(`${name}.shared_residual`, added), ...recurrent],
        });
      },
    });
  },
});

function mambaOf(name: string, config: Zamba2): Layer {
  const { n_mamba_heads: heads, mamba_ngroups: groups, mamba_d_conv: kernel } = config;
  return stateSpaceDual(
    name,
    {
      hidden: config.hidden_size,
      heads,
      headDim: mambaHeadDimOf(config),
      state: config.mamba_d_state,
      groups,
      kernel,
    },
    {
      bias: config.add_bias_linear,
      conv: { cached: kernel },
      norm: gatedRmsNorm(`${name}.norm`, {
        eps: MAMBA_NORM_EPS,
        width: mambaWidth(config),
        groups,
        gated: 'before',
      }),
      stepLimits: [config.time_step_min, Number.POSITIVE_INFINITY],
    },
  );
}

/** Place of a hybrid layer among those with the same shared block. */
interface Group {
  /** Number of the layer among the hybrid ones, which is part of the names of its adapters. */
  readonly order: number;
  /** Numbers of the adapters that only other layers read, where each layer has a block of its own. */
  readonly unread: readonly number[];
  /** Gives a layer of this place the tensors that its group shares. */
  readonly share: <Held extends { readonly weight: Param | undefined }>(layer: Held) => Held;
}

/** Groups of hybrid layers by their index: blocks take turns. transformers unties them together with the head. */
function sharedGroups(config: Zamba2): ReadonlyMap<number, Group> {
  const { num_mem_blocks: blocks, stored_prefix: prefix, tie_word_embeddings: tied } = config;
  const hybrid = hybridLayers(config);
  const groups = new Map<number, Group>();
  for (let turn = 0; turn < Math.min(blocks, hybrid.length); turn++) {
    const orders = hybrid.map((_, order) => order).filter((order) => order % blocks === turn);
    const places = orders.map((order) => `${prefix}layers.${hybrid[order]}.`);
    const share = sharedBy(places);
    for (const [at, order] of orders.entries()) {
      groups.set(hybrid[order] ?? 0, {
        order,
        unread: tied ? [] : orders.filter((other) => other !== order),
        share: tied ? share : sharedBy(places.slice(at, at + 1)),
      });
    }
  }
  return groups;
}

/**
 * Replaces tensors of a layer by those that layers at several places share: named after the first place, with aliases
 * at the others.
 */
export function sharedBy([first = '', ...others]: readonly string[]): Group['share'] {
  const known = new Map<string, Param>();
  const places = [first, ...others];
  const shared = (own: Param): Param => {
    const place = places.find((each) => own.name.startsWith(each)) ?? '';
    const leaf = own.name.slice(place.length);
    const tensor =
      known.get(leaf) ??
      param(
        `${first}${leaf}`,
        own.shape,
        others.map((each) => `${each}${leaf}`),
      );
    known.set(leaf, tensor);
    return tensor;
  };
  return (layer) => {
    const { weight, bias } = layer as { readonly weight?: Param; readonly bias?: Param };
    return {
      ...layer,
      ...(weight && { weight: shared(weight) }),
      ...(bias && { bias: shared(bias) }),
    };
  };
}

/** Attention and a network, without residual sums: it reads the input joined with the embedding. */
function sharedBlock(
  block: string,
  config: Zamba2,
  tokens: Embedding,
  { order, unread, share }: Group,
): readonly Layer[] {
  const { hidden_size: hidden, num_attention_heads: heads, rms_norm_eps: eps } = config;
  const { adapter_rank: rank, add_bias_linear: bias, intermediate_size } = config;
  const keyValueHeads = config.num_key_value_heads ?? heads;
  const headDim = zambaHeadDim(config);
  const inner = intermediate_size ?? 4 * hidden;
  const product = (path: string, from: number, to: number, hasBias = false) =>
    share(linear(`${block}.${path}`, from, to, { bias: hasBias }));
  const withAdapter = (base: Linear, path: string) => {
    const [from, to] = [inputWidth(base), outputWidth(base)];
    const numbered = (number: number) => {
      const name = `${path}_list.${number}`;
      return adapter(`${block}.${name}`, [
        product(`${name}.0`, from, rank),
        product(`${name}.1`, rank, to),
      ]);
    };
    return adapted(base, numbered(order), unread.map(numbered));
  };
  const input = (letter: 'q' | 'k' | 'v', count: number) => {
    const base = product(`self_attn.${letter}_proj`, 2 * hidden, count * headDim);
    return config.use_shared_attention_adapter
      ? withAdapter(base, `self_attn.linear_${letter}_adapter`)
      : base;
  };
  const gateUp = withAdapter(
    product('feed_forward.gate_up_proj', hidden, 2 * inner, bias),
    'feed_forward.gate_up_proj_adapter',
  );
  return [
    embeddingJoin(`${block}.joined`, tokens),
    share(rmsNormLayer(`${block}.input_layernorm`, 2 * hidden, eps)),
    attention(`${block}.self_attn`, {
      inputs: [input('q', heads), input('k', keyValueHeads), input('v', keyValueHeads)],
      out: product('self_attn.o_proj', heads * headDim, hidden),
      heads,
      keyValueHeads,
      headDim,
      scale: 1 / Math.sqrt(headDim / 2),
      rotary: config.use_mem_rope ? rotaryOf(block, config, headDim) : undefined,
    }),
    share(rmsNormLayer(`${block}.pre_ff_layernorm`, hidden, eps)),
    gatedMlp(`${block}.feed_forward`, {
      inputs: fusedProjection(gateUp, [inner, inner]),
      activation: activationOf(config.hidden_act),
      down: product('feed_forward.down_proj', inner, hidden, bias),
    }),
  ];
}
