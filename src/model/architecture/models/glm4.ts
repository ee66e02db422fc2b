/** GLM-4-0414: GLM with norms before and after each branch. */
import { residualBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { GLM, GLM_SIZES, glmSettings } from './glm.js';

export const glm4 = defineDecoder({
  ...GLM,
  title: 'GLM-4-0414',
  schema: decoderDocument('glm4', GLM_SIZES, glmSettings),
  block: (name, { norm, attention, feedForward }) =>
    residualBlock(name, {
      attention: [
        norm(`${name}.input_layernorm`),
        attention,
        norm(`${name}.post_self_attn_layernorm`),
      ],
      mlp: [
        norm(`${name}.post_attention_layernorm`),
        feedForward,
        norm(`${name}.post_mlp_layernorm`),
      ],
    }),
});
