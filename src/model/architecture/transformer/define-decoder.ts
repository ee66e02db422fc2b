/** Defines Hugging Face families by their differences from Llama. */
import type * as z from 'zod';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { type Dimensions, defineFamily, type Family } from '../family.js';
import type { Layer, NormLayer, Rotary } from '../layer.js';
import { type TRAINING_SECTIONS, trainingHints } from '../training-section.js';
import { type LimitedKeys, unreadEach } from './config-keys.js';
import {
  type AttentionSettings,
  type BlockParts,
  decoder,
  type MlpSource,
  mlpOf,
  preNormBlock,
  rotaryOf,
  scaledBranch,
  separateAttention,
} from './decoder-parts.js';
import { huggingFaceReader, type Special } from './hugging-face.js';
import { ignoredOnLoad, ROTARY_BUFFERS } from './ignored-tensors.js';
import { type RopeScaling, rotarySettings } from './rotary.js';
import {
  expertRules,
  layerListRules,
  PART_OF_HEAD_RULES,
  usedWindowRules,
  WHOLE_HEAD_RULES,
  windowRules,
} from './rules.js';
import {
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  type FilledHeads,
  headsOf,
  mixtureStored,
  normEpsilon,
  type SizeDefaults,
  tiedHead,
  transformerDocument,
  tyingSettings,
} from './settings.js';

/** Schema of a document from `transformerDocument`. */
export type TransformerSchema = z.ZodObject<
  { model: z.ZodObject<{ family: z.ZodLiteral<string> }> } & typeof TRAINING_SECTIONS
>;

type SharedField = 'name' | 'confusions' | 'rules' | 'fromHuggingFace' | 'build';

export interface Transformer<Schema extends TransformerSchema>
  extends Omit<Family<Schema>, SharedField>,
    Partial<Pick<Family<Schema>, 'confusions'>>,
    Pick<Family<Schema>, 'rules' | 'build'> {
  /** Special features of its `config.json`. */
  readonly huggingFace?: Special;
  /**
   * Regular expressions for tensors that its class in transformers ignores. Default: the rotary buffers of old files,
   * where the document has `rope_theta`.
   */
  readonly ignoredOnLoad?: readonly string[] | ((document: z.output<Schema>) => readonly string[]);
}

/** Defines a Hugging Face family with its own builder; a checkpoint only shows what `storedSettings` reads. */
export function defineTransformer<Schema extends TransformerSchema>({
  huggingFace,
  ignoredOnLoad: onLoad,
  ignored,
  ...family
}: Transformer<Schema>): Family<Schema> {
  const { model } = family.schema.shape;
  const usual = 'rope_theta' in model.shape ? [ROTARY_BUFFERS] : [];
  const name = model.shape.family.value;
  return defineFamily<Schema>({
    name,
    confusions: [],
    trainingHints,
    fromHuggingFace: huggingFaceReader(model, huggingFace),
    settingsFor: tyingSettings,
    ...family,
    ignored: (document) => [
      ...ignoredOnLoad(typeof onLoad === 'function' ? onLoad(document) : (onLoad ?? usual)),
      ...(ignored?.(document) ?? []),
    ],
  });
}

interface DecoderDefaults extends SizeDefaults {
  readonly rope_theta?: number;
  readonly tie_word_embeddings?: boolean;
}

/** Document of a decoder: the usual keys with the family's defaults, and keys of its own. */
export const decoderDocument = <Name extends string, Own extends z.ZodRawShape>(
  family: Name,
  { rms_norm_eps, ...defaults }: DecoderDefaults & { readonly rms_norm_eps: number },
  own: Own,
) =>
  plainDecoderDocument(family, defaults, {
    rms_norm_eps: normEpsilon(rms_norm_eps),
    ...own,
  });

/** `decoderDocument` of a decoder without RMSNorms: its own keys describe the norms. */
export const plainDecoderDocument = <Name extends string, Own extends z.ZodRawShape>(
  family: Name,
  { rope_theta = 10_000, tie_word_embeddings = false, ...sizes }: DecoderDefaults,
  own: Own,
) =>
  transformerDocument(family, {
    ...decoderSizes(sizes),
    ...rotarySettings(rope_theta),
    ...own,
    tie_word_embeddings: tiedHead(tie_word_embeddings),
  });

/** Settings that the defaults read. */
type DecoderSettings = {
  readonly family: string;
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads?: number | null | undefined;
  readonly head_dim?: number | null | undefined;
  readonly max_position_embeddings: number;
  readonly rms_norm_eps?: number | null;
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly partial_rotary_factor?: number;
  readonly attention_bias?: boolean;
  readonly tie_word_embeddings: boolean;
  readonly stored_prefix?: string | undefined;
};

type DecoderSchema = TransformerSchema & z.ZodType<{ model: DecoderSettings }>;

type ConfigOf<Schema extends z.ZodType<{ model: unknown }>> = z.output<Schema>['model'];

/** Inputs for building a block: its path, its number from 0, and the config. */
export interface BlockInputs<Config> {
  readonly name: string;
  readonly index: number;
  readonly config: Config;
  readonly heads: FilledHeads;
}

/** Family definition by differences from Llama. */
interface DecoderFamily<Schema extends DecoderSchema>
  extends Omit<Family<Schema>, SharedField | 'dimensions'>,
    Partial<Pick<Family<Schema>, 'confusions' | 'rules'>>,
    Pick<Transformer<Schema>, 'huggingFace' | 'ignoredOnLoad'> {
  /** Replaces the shared rules for heads, rotation and rotary scaling. */
  readonly headRules?: Family<Schema>['rules'];
  /** Whether some layers have a window that the config does not list, even without its size. */
  readonly slidesByRule?: Parameters<typeof windowRules>[0];
  /** Sizes that differ from Llama's; null where no rule relates the widths. */
  readonly dimensions?: Partial<Dimensions> | null;
  /** Added to the weights of the norms. */
  readonly normOffset?: number;
  /** Norms of the blocks and the final norm, if not RMSNorms with `rms_norm_eps`. */
  readonly norm?: (name: string, config: ConfigOf<Schema>) => NormLayer;
  /** Norms on queries and keys: per head, or over all heads at once. */
  readonly queryKeyNorms?: 'each head' | 'all heads';
  /** Dimensions that rotate together. Default: those of the two halves. */
  readonly rotaryPairs?: Rotary['pairs'];
  /** Position of the norms in a block. */
  readonly block?: (
    name: string,
    parts: BlockParts,
    config: ConfigOf<Schema>,
    index: number,
  ) => Layer;
  /** Changes to the attention. Default: no window, and biases from `attention_bias`. */
  readonly attention?: (block: BlockInputs<ConfigOf<Schema>>) => Partial<AttentionSettings>;
  /** Layer in place of the usual attention; undefined in the blocks that have it. */
  readonly attentionLayer?: (block: BlockInputs<ConfigOf<Schema>>) => Layer | undefined;
  /** Feed-forward network, if not a gated one with the usual keys. */
  readonly feedForward?: (block: BlockInputs<ConfigOf<Schema>>) => Layer;
  /** Factor of each branch's output. */
  readonly branchFactor?: (config: ConfigOf<Schema>) => number;
  /** Name of the final norm: `norm`, or another. */
  readonly finalNorm?: string;
  /** Rows of the embedding. Default: `vocab_size`. */
  readonly embeddingRows?: (config: ConfigOf<Schema>) => number;
  /** Longest input. Default: that of the positions and their scaling. */
  readonly longest?: (config: ConfigOf<Schema>) => number;
  readonly headBias?: boolean | ((config: ConfigOf<Schema>) => boolean);
  readonly embeddingSteps?: (config: ConfigOf<Schema>) => readonly Layer[];
  readonly logitSteps?: (config: ConfigOf<Schema>) => readonly Layer[];
}

/** A family built like Llama: pre-norm blocks of rotary attention and a gated network. */
export function defineDecoder<Schema extends DecoderSchema>(
  family: DecoderFamily<Schema>,
): Family<Schema> {
  const {
    rules = [],
    headRules,
    slidesByRule,
    dimensions,
    huggingFace,
    normOffset = 0,
    norm,
    queryKeyNorms,
    rotaryPairs = 'halves',
    block = preNormBlock,
    attention,
    attentionLayer,
    feedForward = ({ name, config }) => mlpOf(`${name}.mlp`, config as unknown as MlpSource),
    branchFactor = () => 1,
    finalNorm,
    embeddingRows,
    longest,
    headBias = false,
    embeddingSteps,
    logitSteps,
    ...rest
  } = family;
  const { shape } = family.schema.shape.model as z.ZodObject;
  const normOf = (name: string, config: DecoderSettings, width: number) => {
    if (config.rms_norm_eps == null) throw new TypeError('Without rms_norm_eps give norm.');
    return rmsNormLayer(name, width, config.rms_norm_eps, normOffset);
  };
  const usualAttention = (at: BlockInputs<ConfigOf<Schema>>): Layer => {
    const { name: blockName, heads: layout } = at;
    const config: DecoderSettings = at.config;
    const { heads, keyValueHeads, headDim } = layout;
    const [name, bias] = [`${blockName}.self_attn`, config.attention_bias ?? false];
    const [queries, keys] = queryKeyNorms === 'all heads' ? [heads, keyValueHeads] : [1, 1];
    return separateAttention(name, {
      ...layout,
      bias,
      outBias: bias,
      ...(queryKeyNorms && {
        queryNorm: normOf(`${name}.q_norm`, config, queries * headDim),
        keyNorm: normOf(`${name}.k_norm`, config, keys * headDim),
      }),
      rotary: rotaryOf(blockName, config, headDim, {
        pairs: rotaryPairs,
        part: config.partial_rotary_factor,
      }),
      ...attention?.(at),
    });
  };
  return defineTransformer<Schema>({
    rules: [
      ...(headRules ?? (usualHeadRules(shape) as Family<Schema>['rules'])),
      ...(sharedRules(shape, slidesByRule) as Family<Schema>['rules']),
      ...rules,
      ...(expertCountRules(shape) as Family<Schema>['rules']),
    ],
    ...(dimensions !== null && { dimensions: { ...dimensionsOf(shape), ...dimensions } }),
    huggingFace: {
      ...huggingFace,
      limited: { ...unreadBiases(shape), ...huggingFace?.limited },
    },
    ...storedSettingsOf(shape),
    ...rest,
    build({ model: config }: z.output<Schema>) {
      const heads = headsOf(config);
      const blockNorm = (name: string): NormLayer =>
        norm?.(name, config) ?? normOf(name, config, config.hidden_size);
      return decoder(config, {
        norm: blockNorm,
        finalNorm,
        ...(embeddingRows && { embeddingRows: embeddingRows(config) }),
        ...(longest && { positions: longest(config) }),
        headBias: typeof headBias === 'function' ? headBias(config) : headBias,
        decidedBy: config,
        block(name, index) {
          const at = { name, index, config, heads };
          const factor = branchFactor(config);
          const parts = {
            norm: blockNorm,
            attention: scaledBranch(attentionLayer?.(at) ?? usualAttention(at), factor),
            feedForward: scaledBranch(feedForward(at), factor),
          };
          return block(name, parts, config, index);
        },
        embeddingSteps: embeddingSteps?.(config) ?? [],
        logitSteps: logitSteps?.(config) ?? [],
      });
    },
  });
}

const usualHeadRules = (shape: z.ZodRawShape): readonly unknown[] =>
  'partial_rotary_factor' in shape ? PART_OF_HEAD_RULES : WHOLE_HEAD_RULES;

const LAYER_LISTS = ['no_rope_layers', 'layer_types', 'mlp_layer_types'] as const;

/** Rules for the keys of a family. */
const sharedRules = (
  shape: z.ZodRawShape,
  slidesByRule?: Parameters<typeof windowRules>[0],
): readonly unknown[] => [
  ...LAYER_LISTS.filter((key) => key in shape).flatMap(layerListRules),
  ...('sliding_window' in shape ? windowRules(slidesByRule) : []),
  ...('max_window_layers' in shape && 'use_sliding_window' in shape ? usedWindowRules : []),
];

/** Keys of the number of experts to choose from. */
const EXPERT_COUNTS = ['num_experts', 'num_local_experts', 'n_routed_experts'] as const;

const expertCountRules = (shape: z.ZodRawShape): readonly unknown[] =>
  'num_experts_per_tok' in shape
    ? EXPERT_COUNTS.filter((key) => key in shape).flatMap((key) => expertRules(key))
    : [];

/** Settings visible in a checkpoint, where a family has them. */
function storedSettingsOf(shape: z.ZodRawShape): Pick<Family, 'storedSettings'> {
  if ('experts_stored' in shape) return { storedSettings: mixtureStored };
  return 'stored_prefix' in shape ? { storedSettings: decoderStored } : {};
}

/** Head width counts as a size if a family sets it explicitly. */
const dimensionsOf = (shape: z.ZodRawShape): Dimensions => ({
  ...DECODER_DIMENSIONS,
  ...((shape.head_dim as z.ZodType | undefined)?.safeParse(undefined).data != null && {
    headDim: ['head_dim'],
  }),
});

/** Bias keys of a family whose products have no bias. */
const unreadBiases = (shape: z.ZodRawShape): LimitedKeys =>
  unreadEach(
    ['attention_bias', 'mlp_bias'].filter((key) => !(key in shape)),
    [false],
  );
