/**
 * Defines the decoders of encoder-decoder models like BART (arXiv 1910.13461), as transformers' classes `…ForCausalLM`
 * hold them. They have the tensors of an attention to an encoder, which they do not compute without its output.
 */

import type * as z from 'zod';
import { asText } from '../../../base/values.js';
import {
  layerNormLayer,
  learnedPositions,
  linear,
  residual,
  scale,
  sequence,
} from '../constructors/basic-layers.js';
import type { Family, LargerModel } from '../family.js';
import type { Layer, Sum } from '../layer.js';
import {
  type HarmlessKeys,
  harmless,
  type JsonObject,
  type LimitedKeys,
  NO_ROTARY_KEYS,
  unreadBut,
} from './config-keys.js';
import { plainMlp, residualBlock, separateAttention } from './decoder-parts.js';
import type { TransformerSchema } from './define-decoder.js';
import { defineGpt, gptDocument } from './define-gpt.js';
import type { Special } from './hugging-face.js';
import { activationWord, toggle } from './settings.js';

/** Fixed in the classes: PyTorch's default. */
const NORM_EPS = 1e-5;

/** Default values of a class's configuration, where they are not those of BART. */
interface Defaults {
  readonly vocab_size: number;
  readonly positions?: number;
  readonly d_model?: number;
  readonly decoder_layers?: number;
  readonly decoder_ffn_dim?: number;
  readonly decoder_attention_heads?: number;
  readonly activation_function?: z.output<typeof activationWord>;
  readonly tie_word_embeddings?: boolean;
}

/** Key of the classes that scale their embeddings. */
export const scaleSetting = (byDefault: boolean) => ({
  scale_embedding: toggle(byDefault, 'Embeddings are multiplied by the root of the width'),
});

/** The same key of a class that does not read it. */
export const UNREAD_SCALE: LimitedKeys = {
  scale_embedding: unreadBut([false], 'the class does not scale its embeddings'),
};

const ROWS_MORE = 'Longest input; the table of positions has two rows more';

/**
 * Document of a decoder.
 * @param own Keys of the family alone.
 * @param lengthKey Key of the longest input.
 */
export const seq2SeqDocument = <
  const Name extends string,
  const Own extends z.ZodRawShape,
  const Length extends string = 'max_position_embeddings',
>(
  family: Name,
  defaults: Defaults,
  own: Own,
  lengthKey = 'max_position_embeddings' as Length,
) =>
  gptDocument(
    family,
    {
      prefix: 'model.decoder.',
      barePrefix: 'decoder.',
      tied: defaults.tie_word_embeddings ?? true,
      sizes: {
        vocabulary: ['vocab_size', defaults.vocab_size],
        width: ['d_model', defaults.d_model ?? 1024],
        depth: ['decoder_layers', defaults.decoder_layers ?? 12],
        feedForward: ['decoder_ffn_dim', defaults.decoder_ffn_dim ?? 4096],
        positions: [lengthKey, defaults.positions ?? 1024, ROWS_MORE],
        heads: ['decoder_attention_heads', defaults.decoder_attention_heads ?? 16],
      },
    },
    {
      activation_function: activationWord
        .default(defaults.activation_function ?? 'gelu')
        .describe('Activation'),
      ...own,
    },
  );

type Document<Schema extends TransformerSchema> = Parameters<
  typeof defineGpt<Schema>
>[0]['document'];

interface Seq2SeqDecoder<Schema extends TransformerSchema> {
  readonly title: string;
  readonly document: Document<Schema>;
  /** Class of the decoder in transformers: `BartForCausalLM`. */
  readonly className: string;
  /** Family of the classes with an encoder. */
  readonly whole?: string;
  /** Whether no class with an encoder reads the kind. */
  readonly isAlone?: boolean;
  /** Norms before the branches of a block, not behind their sums. */
  readonly isPreNorm?: boolean;
  /** Norm of the embeddings: of the tokens alone, or with their positions. */
  readonly embeddingNorm?: (config: ConfigOf<Schema>) => 'tokens' | 'sum' | 'none';
  /** Name of the norm of the last block's output; none by default. */
  readonly finalNorm?: string;
  /** Row of the table of positions for the first token; default: 0. */
  readonly firstRow?: number;
  /** Whether the products of attention have biases: all by default. */
  readonly bias?: (config: ConfigOf<Schema>) => boolean;
  readonly keyBias?: boolean;
  /** Width of the encoder's output; default: that of the decoder. */
  readonly encoderWidth?: (config: ConfigOf<Schema>) => number | null;
  readonly head?: string;
  readonly huggingFace?: Special;
  readonly ignoredOnLoad?: readonly string[];
  readonly rules?: Family<Schema>['rules'];
}

type ConfigOf<Schema extends z.ZodType<{ model: unknown }>> = z.output<Schema>['model'];

/** Settings of every decoder. */
interface Shared {
  readonly activation_function: z.output<typeof activationWord>;
  readonly scale_embedding?: boolean;
}

/** Keys of training, and of files before transformers 4. */
export const SEQ2SEQ_UNREAD: HarmlessKeys = {
  ...harmless('used in training only', [
    'dropout',
    'activation_dropout',
    'decoder_layerdrop',
    'init_std',
    'label_smoothing',
  ]),
  ...harmless('the class does not read it: its norms, positions and biases are fixed', [
    'normalize_before',
    'normalize_embedding',
    'add_final_layer_norm',
    'add_bias_logits',
    'static_position_embeddings',
    'extra_pos_embeddings',
    'force_bos_token_to_be_generated',
    'layernorm_variant',
    'layer_norm_eps',
    'save_step',
  ]),
  add_cross_attention: 'the class has this attention in any case',
};

/** The same, and keys of the encoder. */
const UNREAD: HarmlessKeys = {
  ...SEQ2SEQ_UNREAD,
  ...harmless('of the encoder, which is not part of this model', [
    'encoder_layers',
    'encoder_ffn_dim',
    'encoder_attention_heads',
    'encoder_layerdrop',
    'num_hidden_layers',
    'num_attention_heads',
    'share_encoder_decoder_embeddings',
  ]),
};

/** A decoder whose class is built like that of BART, or of mBART with `isPreNorm`. */
export function defineSeq2SeqDecoder<Schema extends TransformerSchema>({
  document,
  className,
  whole,
  isAlone = false,
  isPreNorm = false,
  embeddingNorm = () => 'none',
  finalNorm,
  firstRow = 0,
  bias: biasOf = () => true,
  keyBias = true,
  encoderWidth = () => null,
  head = 'lm_head',
  huggingFace = {},
  ...rest
}: Seq2SeqDecoder<Schema>): Family<Schema> {
  return defineGpt<Schema>({
    ...rest,
    document,
    huggingFace: {
      ...huggingFace,
      ...(!isAlone && { largerModel: (config) => encoderDecoderIn(config, className, whole) }),
      names: { d_model: ['hidden_size'], ...huggingFace.names },
      reads: ['is_encoder_decoder', ...(huggingFace.reads ?? [])],
      harmless: { ...UNREAD, ...huggingFace.harmless },
      limited: { ...NO_ROTARY_KEYS, ...READ_ELSEWHERE, ...huggingFace.limited },
    },
    names: { embedding: 'embed_tokens', blocks: 'layers', norm: finalNorm ?? 'no_norm' },
    norm: (name, width) => layerNormLayer(name, width, NORM_EPS),
    head: () => head,
    attention({ name, config, layout }) {
      const bias = biasOf(config);
      return withCrossAttention(
        name,
        separateAttention(`${name}.self_attn`, {
          ...layout,
          bias,
          keyBias: bias && keyBias,
          outBias: bias,
          outName: 'out_proj',
          ownTypeSoftmax: true,
        }),
        { hidden: layout.hidden, encoder: encoderWidth(config) ?? layout.hidden, bias, keyBias },
      );
    },
    feedForward({ name, config, hidden, inner }) {
      // The network's two products belong to the block itself.
      const { activation_function: activation } = config as unknown as Shared;
      const leaves = ['fc1', 'fc2'] as const;
      const network = plainMlp(name, { hidden, inner, activation, leaves });
      return { ...network, name: `${name}.network` };
    },
    block({ name, norm }, { attention, feedForward }) {
      const first = norm(`${name}.self_attn_layer_norm`);
      const second = norm(`${name}.final_layer_norm`);
      return isPreNorm
        ? residualBlock(name, { attention: [first, attention], mlp: [second, feedForward] })
        : sequence(name, [
            residual(`${name}.attention_residual`, attention),
            first,
            residual(`${name}.mlp_residual`, feedForward),
            second,
          ]);
    },
    parts({ prefix, config, positions, hidden, norm }) {
      const { scale_embedding: isScaled } = config as unknown as Shared;
      const place = embeddingNorm(config);
      const normAt = (at: typeof place) =>
        place === at ? [norm(`${prefix}layernorm_embedding`)] : [];
      return {
        embeddingSteps: [
          ...(isScaled ? [scale(`${prefix}embed_scale`, Math.sqrt(hidden))] : []),
          ...normAt('tokens'),
          learnedPositions(`${prefix}embed_positions`, positions, hidden, firstRow),
          ...normAt('sum'),
        ],
        ...(finalNorm === undefined && { norm: sequence(`${prefix}output`, []) }),
      };
    },
  });
}

const READ_ELSEWHERE: LimitedKeys = {
  // `largerModel` decides on it.
  is_encoder_decoder: unreadBut([false, true]),
};

interface CrossSizes {
  readonly hidden: number;
  readonly encoder: number;
  readonly bias: boolean;
  readonly keyBias: boolean;
}

/** Self-attention, and the tensors of the attention to an encoder, which nothing reads. */
function withCrossAttention(
  block: string,
  attention: Layer,
  { hidden, encoder, bias, keyBias }: CrossSizes,
): Sum {
  const name = `${block}.encoder_attn`;
  const product = (leaf: string, from: number, hasBias = bias) =>
    linear(`${name}.${leaf}`, from, hidden, { bias: hasBias, component: 'attention' });
  return {
    kind: 'sum',
    name: `${block}.attentions`,
    branches: [attention],
    unread: [
      product('k_proj', encoder, bias && keyBias),
      product('v_proj', encoder),
      product('q_proj', hidden),
      product('out_proj', hidden),
      layerNormLayer(`${block}.encoder_attn_layer_norm`, hidden, NORM_EPS),
    ],
  };
}

/** The encoder-decoder model that a `config.json` describes in place of its decoder, by the class that it names. */
export function encoderDecoderIn(
  { architectures, is_encoder_decoder: isWhole }: JsonObject,
  decoder: string,
  family?: string,
): LargerModel | undefined {
  const [named] = Array.isArray(architectures) ? architectures : [];
  if (named !== undefined) {
    return /ForCausalLM$/.test(asText(named))
      ? undefined
      : { name: asText(named), decoder, family };
  }
  if (isWhole === false) return undefined;
  return {
    name: `the encoder-decoder model of ${decoder}`,
    decoder,
    family,
    isUnsaid: isWhole == null,
  };
}
