/** GLM-4-9B and GLM-Edge: half of each head rotates, in neighbouring pairs; gate and up are one product. */
import { fusedMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  type ActivationWord,
  activationOf,
  gateActivation,
  partOfHead,
  toggle,
} from '../transformer/settings.js';

/** Default sizes of both generations. */
export const GLM_SIZES = {
  vocab_size: 151_552,
  hidden_size: 4096,
  intermediate_size: 13_696,
  num_hidden_layers: 40,
  num_attention_heads: 32,
  num_key_value_heads: 2,
  head_dim: 128,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1.5625e-7,
};

/** Own keys of both generations. */
export const glmSettings = {
  partial_rotary_factor: partOfHead(0.5),
  hidden_act: gateActivation,
  attention_bias: toggle(true, 'Biases of queries, keys and values'),
};

interface GlmBlock {
  readonly name: string;
  readonly config: {
    readonly hidden_size: number;
    readonly intermediate_size: number;
    readonly hidden_act: ActivationWord;
    readonly attention_bias: boolean;
  };
}

/** Parts of both generations. */
export const GLM = {
  rotaryPairs: 'neighbours',
  attention: ({ config }: GlmBlock) => ({ bias: config.attention_bias, outBias: false }),
  feedForward: ({ name, config }: GlmBlock) =>
    fusedMlp(`${name}.mlp`, {
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: activationOf(config.hidden_act),
    }),
} as const;

export const glm = defineDecoder({
  ...GLM,
  title: 'GLM-4 9B and GLM-Edge',
  schema: decoderDocument('glm', GLM_SIZES, glmSettings),
});
