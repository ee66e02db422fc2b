/** Defines families from before Llama, which share GPT-2's frame under keys and names of their own. */

import type * as z from 'zod';
import { asNumber, asText } from '../../../base/values.js';
import { layerNormLayer } from '../constructors/basic-layers.js';
import type { Dimensions, Family } from '../family.js';
import type { Layer, NormLayer } from '../layer.js';
import type { JsonObject } from './config-keys.js';
import { type CausalModel, causalModel, plainMlp, residualBlock } from './decoder-parts.js';
import { defineTransformer, type Transformer, type TransformerSchema } from './define-decoder.js';
import { longestInput } from './rotary.js';
import { headsDivide, lengthRules } from './rules.js';
import {
  type ActivationWord,
  count,
  FEED_FORWARD_PER_CHANNEL,
  type FilledHeads,
  headPath,
  oldBuffers,
  type Prefixes,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  tiedHead,
  transformerDocument,
} from './settings.js';

/** Key and default of a size; a null default is four times the model's width. */
type Size<Default = number> = readonly [key: string, byDefault: Default, meaning?: string];

/** Sizes in the order of the document, without `feedForward` where that is always four times the width. */
type Sizes = Readonly<Record<'vocabulary' | 'positions' | 'depth' | 'width' | 'heads', Size>> & {
  readonly feedForward?: Size<number | null>;
};

/** Longest input of a model with learned positions. */
export const LEARNED_LENGTH = 'Rows of the positions: longest input';

/** Longest input of a model with ALiBi. */
export const ALIBI_LENGTH =
  'Length of the training; ALiBi itself sets no limit, so raise it as you like';

const meanings = (width: string): Readonly<Record<string, string>> => ({
  vocabulary: 'Rows of the embedding and of the head',
  positions: 'Longest input, in tokens',
  depth: 'Number of blocks',
  width: 'Width of the residual stream',
  heads: `Attention heads, a divisor of ${width}`,
  feedForward: 'Width inside the feed-forward network',
});

type SizeSettings<Named> = {
  [Role in keyof Named as Named[Role] extends Size<unknown>
    ? Named[Role][0]
    : never]: Named[Role] extends Size
    ? z.ZodDefault<z.ZodInt>
    : z.ZodOptional<z.ZodNullable<z.ZodInt>>;
};

function sizeSettings<Named extends Sizes>(sizes: Named): SizeSettings<Named> {
  const meaningOf = meanings(sizes.width[0]);
  const listed: [string, Size<number | null>][] = Object.entries(sizes);
  const settings = listed.map(([role, [key, byDefault, meaning = meaningOf[role] ?? '']]) => [
    key,
    byDefault === null
      ? positiveInteger.nullish().describe(`${meaning} [4 · ${sizes.width[0]}]`)
      : count(byDefault, meaning),
  ]);
  return Object.fromEntries(settings);
}

/** Sizes of a family, and the prefix of the bare model's names in its files. */
export interface Frame {
  readonly prefix: string;
  /** Prefix in files of the bare model, if they have one. */
  readonly barePrefix?: string;
  /** Whether the head reads the embedding by default. */
  readonly tied?: boolean;
  readonly sizes: Sizes;
}

const prefixesOf = ({ prefix: own, barePrefix: bare }: Frame): Prefixes => ({ own, bare });

/** Document with the sizes of `frame` and settings of its own. */
export const gptDocument = <
  const Name extends string,
  const Own extends z.ZodRawShape,
  const Given extends Frame,
>(
  family: Name,
  frame: Given,
  own: Own,
) => ({
  frame: frame as Frame,
  schema: transformerDocument(family, {
    ...sizeSettings<Given['sizes']>(frame.sizes),
    ...own,
    tie_word_embeddings: tiedHead(frame.tied ?? true),
    stored_prefix: storedPrefix(prefixesOf(frame)),
  }),
});

type ConfigOf<Schema extends z.ZodType<{ model: unknown }>> = z.output<Schema>['model'];

/** A model's settings, with its sizes by their meaning. */
export interface ModelInputs<Config> {
  readonly config: Config;
  readonly prefix: string;
  readonly positions: number;
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
  /** Layout of the heads; every query head has its own key-value head. */
  readonly layout: FilledHeads;
  /** Width inside the feed-forward network. */
  readonly inner: number;
  /** Norm of the residual stream. */
  readonly norm: (name: string) => NormLayer;
}

export interface GptBlockInputs<Config> extends ModelInputs<Config> {
  readonly name: string;
  readonly index: number;
}

/** A network without gates, at `NAME.mlp`. */
export const gptMlp =
  (...leaves: readonly [up: string, down: string]) =>
  ({
    name,
    config,
    hidden,
    inner,
  }: GptBlockInputs<{ readonly activation_function: ActivationWord }>): Layer =>
    plainMlp(`${name}.mlp`, { hidden, inner, activation: config.activation_function, leaves });

type Branches = Readonly<Record<'attention' | 'feedForward', Layer>>;

interface GptFamily<Schema extends TransformerSchema>
  extends Omit<Transformer<Schema>, 'schema' | 'rules' | 'dimensions' | 'build' | 'ignored'> {
  readonly document: { readonly schema: Schema; readonly frame: Frame };
  /** Rules in addition to those of heads and lengths. */
  readonly rules?: Family<Schema>['rules'];
  /** Replaces the rules of heads and lengths. */
  readonly headRules?: Family<Schema>['rules'];
  /** Names after the prefix. */
  readonly names: { readonly embedding: string; readonly blocks: string; readonly norm: string };
  /** Names of the two norms, for the usual block. */
  readonly norms?: readonly [attention: string, feedForward: string];
  /** Buffers in the blocks of old files. */
  readonly buffers?: readonly string[];
  /** Norms, if not LayerNorms with `layer_norm_epsilon`. */
  readonly norm?: (name: string, width: number, config: ConfigOf<Schema>) => NormLayer;
  readonly attention: (block: GptBlockInputs<ConfigOf<Schema>>) => Layer;
  readonly feedForward: (block: GptBlockInputs<ConfigOf<Schema>>) => Layer;
  /** Block, if not x + attention(norm(x)), then x + feedForward(norm(x)). */
  readonly block?: (block: GptBlockInputs<ConfigOf<Schema>>, branches: Branches) => Layer;
  /** Further parts of the model. */
  readonly parts?: (model: ModelInputs<ConfigOf<Schema>>) => Partial<CausalModel>;
  readonly head?: (config: ConfigOf<Schema>) => string;
}

/** A family built like GPT-2: LayerNorms, one key-value head per query head, and a network without gates. */
export function defineGpt<Schema extends TransformerSchema>({
  document: { schema, frame },
  rules = [],
  headRules,
  names,
  norms = ['input_layernorm', 'post_attention_layernorm'],
  buffers,
  norm,
  attention,
  feedForward,
  block = ({ name, norm: normOf }, branches) =>
    residualBlock(name, {
      attention: [normOf(`${name}.${norms[0]}`), branches.attention],
      mlp: [normOf(`${name}.${norms[1]}`), branches.feedForward],
    }),
  parts,
  head = () => 'lm_head',
  ...rest
}: GptFamily<Schema>): Family<Schema> {
  const { sizes } = frame;
  const prefixes = prefixesOf(frame);
  const prefixOf = ({ model }: z.output<Schema>) => asText((model as JsonObject).stored_prefix);
  const usualRules = [
    ...headsDivide(sizes.heads[0], sizes.width[0]),
    ...lengthRules(sizes.positions[0]),
  ] as Family<Schema>['rules'];
  return defineTransformer<Schema>({
    schema,
    rules: [...(headRules ?? usualRules), ...rules],
    dimensions: dimensionsOf(sizes),
    storedSettings: (stored) => prefixStoredIn(stored, prefixes, `${names.embedding}.weight`),
    ...(buffers && {
      ignored: (document) =>
        oldBuffers(buffers.map((leaf) => `${prefixOf(document)}${names.blocks}.*.${leaf}`)),
    }),
    ...rest,
    build(document: z.output<Schema>) {
      const config: ConfigOf<Schema> = document.model;
      const values = config as JsonObject;
      const sizeOf = ([key]: Size<unknown>) => asNumber(values[key]);
      const [hidden, heads] = [sizeOf(sizes.width), sizeOf(sizes.heads)];
      const layout = { hidden, heads, keyValueHeads: heads, headDim: hidden / heads };
      const positions = sizeOf(sizes.positions);
      const prefix = prefixOf(document);
      const model = {
        config,
        prefix,
        positions,
        ...layout,
        layout,
        inner: asNumber(values[sizes.feedForward?.[0] ?? ''] ?? 4 * hidden),
        norm: (name: string) =>
          norm?.(name, hidden, config) ??
          layerNormLayer(name, hidden, asNumber(values.layer_norm_epsilon)),
      };
      return causalModel({
        paths: {
          embedding: `${prefix}${names.embedding}`,
          blocks: `${prefix}${names.blocks}`,
          head: headPath(prefix, prefixes, head(config)),
        },
        vocabulary: sizeOf(sizes.vocabulary),
        hidden,
        positions: longestInput(
          positions,
          values.rope_scaling as Parameters<typeof longestInput>[1],
        ),
        tied: values.tie_word_embeddings === true,
        blocks: sizeOf(sizes.depth),
        blocksKey: sizes.depth[0],
        norm: model.norm(`${prefix}${names.norm}`),
        block(name, index) {
          const at = { ...model, name, index };
          return block(at, { attention: attention(at), feedForward: feedForward(at) });
        },
        ...parts?.(model),
      });
    },
  });
}

const dimensionsOf = ({ feedForward, ...sizes }: Sizes): Dimensions => ({
  vocabulary: sizes.vocabulary[0],
  positions: sizes.positions[0],
  depth: sizes.depth[0],
  width: sizes.width[0],
  heads: sizes.heads[0],
  ...(feedForward && {
    feedForward: { key: feedForward[0], perChannel: FEED_FORWARD_PER_CHANNEL },
  }),
});
