/** OLMo 2 (arXiv 2501.00656): norms behind the branches, and over all queries and all keys at once. */
import { rmsNorm } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { unreadBut } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import {
  decoder,
  mlpOf,
  residualBlock,
  rotaryOf,
  separateAttention,
} from '../transformer/parts.js';
import { rotarySettings } from '../transformer/rotary.js';
import { DECODER_RULES, rotaryRules } from '../transformer/rules.js';
import {
  activationWord,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  flag,
  headsOf,
  transformerDocument,
  tyingSettings,
} from '../transformer/settings.js';

const schema = transformerDocument('olmo2', {
  ...decoderSizes({
    vocab_size: 50_304,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-5,
  }),
  ...rotarySettings(10_000),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const olmo2 = defineFamily({
  name: 'olmo2',
  title: 'OLMo 2: norms behind the branches',
  schema,
  rules: [...DECODER_RULES, ...rotaryRules],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    limited: { mlp_bias: unreadBut([false]) },
  }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, attention_bias: bias, rms_norm_eps: eps } = config;
    const layout = headsOf(config);
    const { heads, keyValueHeads, headDim } = layout;
    const norm = (name: string) => rmsNorm(name, hidden, eps);
    return decoder(config, {
      norm,
      block: (name) =>
        residualBlock(name, {
          attention: [
            separateAttention(`${name}.self_attn`, {
              ...layout,
              bias,
              outBias: bias,
              queryNorm: rmsNorm(`${name}.self_attn.q_norm`, heads * headDim, eps),
              keyNorm: rmsNorm(`${name}.self_attn.k_norm`, keyValueHeads * headDim, eps),
              rotary: rotaryOf(name, config, headDim),
            }),
            norm(`${name}.post_attention_layernorm`),
          ],
          mlp: [mlpOf(`${name}.mlp`, config), norm(`${name}.post_feedforward_layernorm`)],
        }),
    });
  },
});
