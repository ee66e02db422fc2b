/** Helium 1: Llama with rotated neighbours. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { gateActivation, headsOf, mlpBias, toggle } from '../transformer/settings.js';

export const helium = defineDecoder({
  title: 'Helium 1',
  schema: decoderDocument(
    'helium',
    {
      vocab_size: 48_000,
      hidden_size: 2560,
      intermediate_size: 7040,
      num_hidden_layers: 24,
      num_attention_heads: 20,
      num_key_value_heads: 20,
      head_dim: 128,
      max_position_embeddings: 4096,
      rms_norm_eps: 1e-8,
      rope_theta: 100_000,
    },
    {
      hidden_act: gateActivation,
      attention_bias: toggle(false, 'Biases of queries, keys and values'),
      mlp_bias: mlpBias,
    },
  ),
  rules: [
    {
      severity: 'error',
      reads: ['model.head_dim', 'model.num_attention_heads', 'model.hidden_size'],
      check({ model }) {
        const { heads, headDim, hidden } = headsOf(model);
        return heads * headDim === hidden
          ? undefined
          : {
              message: `expected heads as wide together as hidden_size ${hidden}, found ${heads} heads of ${headDim}`,
              suggestion: `write head_dim: ${hidden / heads}`,
            };
      },
    },
  ],
  rotaryPairs: 'neighbours',
  attention: ({ config }) => ({ bias: config.attention_bias, outBias: false }),
});
