/** Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783): the pattern of most later decoders. */
import { rmsNorm, rotary } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training.js';
import { readHuggingFace } from '../transformer/hugging-face.js';
import {
  causalModel,
  MODEL_PATHS,
  residualBlock,
  separateAttention,
  separateMlp,
} from '../transformer/parts.js';
import { rotaryRules, rotarySettings, scalingOf } from '../transformer/rotary-settings.js';
import {
  activationOf,
  activationWord,
  decoderSizes,
  flag,
  headRules,
  headsOf,
  transformerDocument,
} from '../transformer/settings.js';

const schema = transformerDocument('llama', {
  // Defaults are those of transformers' LlamaConfig.
  ...decoderSizes({
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
  }),
  ...rotarySettings(10_000),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  attention_bias: flag.default(false).describe('Biases in all four products of attention'),
  mlp_bias: flag.default(false).describe('Biases in the feed-forward network'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

export const llama = defineFamily({
  name: 'llama',
  title: 'Llama 2 and 3, and what is built like them',
  schema,
  rules: [...headRules, ...rotaryRules],
  confusions: [],
  presets: {},
  trainingHints,
  fromHuggingFace: (config) => readHuggingFace(schema.shape.model, config),
  build({ model: config }) {
    const { hidden_size: hidden, rms_norm_eps: eps, attention_bias: bias } = config;
    const heads = headsOf(config);
    const scaling = scalingOf(config.rope_scaling, config.max_position_embeddings, heads.headDim);
    return causalModel({
      paths: MODEL_PATHS,
      vocabulary: config.vocab_size,
      hidden,
      positions: config.max_position_embeddings,
      tied: config.tie_word_embeddings,
      blocks: config.num_hidden_layers,
      blocksKey: 'num_hidden_layers',
      norm: rmsNorm('model.norm', hidden, eps),
      block: (name) =>
        residualBlock(name, {
          attention: [
            rmsNorm(`${name}.input_layernorm`, hidden, eps),
            separateAttention(`${name}.self_attn`, {
              ...heads,
              bias,
              outBias: bias,
              rotary: rotary(`${name}.self_attn.rotary`, {
                base: config.rope_theta,
                headDim: heads.headDim,
                scaling,
              }),
            }),
          ],
          mlp: [
            rmsNorm(`${name}.post_attention_layernorm`, hidden, eps),
            separateMlp(`${name}.mlp`, {
              hidden,
              inner: config.intermediate_size,
              activation: activationOf(config.hidden_act),
              bias: config.mlp_bias,
            }),
          ],
        }),
    });
  },
});
