/** Llama 3.2 Vision, the text part: Llama with blocks of cross-attention, which are skipped where there is no image. */
import * as z from 'zod';
import { linear, rmsNormLayer, skippedBlock } from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { headDimOfWidth, unreadBut } from '../transformer/config-keys.js';
import { mlpOf, preNormBlock } from '../transformer/decoder-parts.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { rotarySettings } from '../transformer/rotary.js';
import {
  decoderSizes,
  gateActivation,
  headsOf,
  normEpsilon,
  transformerDocument,
} from '../transformer/settings.js';

/** Cross-attention layers of a config without a list, as in the model of 11B. */
const USUAL_CROSS_LAYERS: readonly number[] = [3, 8, 13, 18, 23, 28, 33, 38];

/** Rows of the embedding for tokens in place of images, which the head cannot give. */
const IMAGE_TOKENS = 8;

const SIZES = {
  vocab_size: 128_256,
  hidden_size: 4096,
  intermediate_size: 14_336,
  num_hidden_layers: 40,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
} as const;

const { head_dim: _, ...sizes } = decoderSizes(SIZES);

const schema = transformerDocument('mllama_text_model', {
  ...sizes,
  ...rotarySettings(500_000),
  rms_norm_eps: normEpsilon(1e-5),
  hidden_act: gateActivation,
  cross_attention_layers: z
    .array(z.int())
    .nullish()
    .describe('Layers that attend to the image; default: those of the model of 11B'),
  tie_word_embeddings: z
    .literal(false)
    .default(false)
    .describe('The head has its own weight, with fewer rows than the embedding'),
});

type Mllama = z.output<typeof schema>['model'];

const isCrossLayer = ({ cross_attention_layers: layers }: Mllama, index: number): boolean =>
  (layers ?? USUAL_CROSS_LAYERS).includes(index);

/** Tensors of a block of cross-attention: products with norms of each head's queries and keys, and a gated network. */
function crossBlock(name: string, config: Mllama): Layer {
  const { hidden, heads, keyValueHeads, headDim } = headsOf(config);
  const attention = `${name}.cross_attn`;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${attention}.${leaf}`, from, to, { bias: false, component: 'attention' });
  const norm = (path: string, width = hidden) => rmsNormLayer(path, width, config.rms_norm_eps);
  return skippedBlock(
    name,
    ['cross_attn_attn_gate', 'cross_attn_mlp_gate'],
    [
      product('q_proj', hidden, heads * headDim),
      product('k_proj', hidden, keyValueHeads * headDim),
      product('v_proj', hidden, keyValueHeads * headDim),
      product('o_proj', heads * headDim, hidden),
      norm(`${attention}.q_norm`, headDim),
      norm(`${attention}.k_norm`, headDim),
      norm(`${name}.input_layernorm`),
      mlpOf(`${name}.mlp`, config),
      norm(`${name}.post_attention_layernorm`),
    ],
  );
}

export const mllamaTextModel = defineDecoder({
  title: 'Llama 3.2 Vision, text only',
  schema,
  huggingFace: {
    more: () => ({ tie_word_embeddings: false }),
    limited: {
      tie_word_embeddings: unreadBut([false], 'the class has no tied head'),
      head_dim: headDimOfWidth(SIZES),
    },
  },
  embeddingRows: ({ vocab_size: vocabulary }) => vocabulary + IMAGE_TOKENS,
  block: (name, parts, config, index) =>
    isCrossLayer(config, index) ? crossBlock(name, config) : preNormBlock(name, parts),
});
