/** Arcee AFM: Llama with a squared ReLU and no gate. */
import { plainMlpOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { activationWord, attentionBias, mlpBias } from '../transformer/settings.js';

export const arcee = defineDecoder({
  title: 'Arcee AFM: no gates',
  schema: decoderDocument(
    'arcee',
    {
      vocab_size: 32_000,
      hidden_size: 2560,
      intermediate_size: 18_432,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 4096,
      rms_norm_eps: 1e-5,
    },
    {
      hidden_act: activationWord.default('relu2').describe('Activation'),
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  feedForward: ({ name, config }) => plainMlpOf(`${name}.mlp`, config),
});
