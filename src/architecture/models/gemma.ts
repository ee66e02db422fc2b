/** Gemma (arXiv 2403.08295): scaled embeddings, norms about one, GELU in the gate. */
import { unreadBut } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { GEMMA } from '../transformer/gemma.js';
import { separateMlp } from '../transformer/parts.js';
import {
  activationOf,
  activationWord,
  attentionBias,
  causalOnly,
} from '../transformer/settings.js';

export const gemma = defineDecoder({
  ...GEMMA,
  title: 'Gemma 1',
  schema: decoderDocument(
    'gemma',
    {
      vocab_size: 256_000,
      hidden_size: 3072,
      intermediate_size: 24_576,
      num_hidden_layers: 28,
      num_attention_heads: 16,
      num_key_value_heads: 16,
      head_dim: 256,
      max_position_embeddings: 8192,
      rms_norm_eps: 1e-6,
      tie_word_embeddings: true,
    },
    {
      hidden_act: activationWord
        .default('gelu_pytorch_tanh')
        .describe('Activation of the gate; gelu means gelu_pytorch_tanh, as in transformers'),
      attention_bias: attentionBias,
      use_bidirectional_attention: causalOnly,
    },
  ),
  huggingFace: {
    limited: {
      hidden_activation: unreadBut(
        (word, { hidden_act: read = 'gelu_pytorch_tanh' }) => word === null || word === read,
      ),
    },
  },
  feedForward: ({ name, config }) =>
    separateMlp(`${name}.mlp`, {
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: config.hidden_act === 'gelu' ? 'geluTanh' : activationOf(config.hidden_act),
    }),
});
