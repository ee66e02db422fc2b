/**
 * The language model of Moshi (arXiv 2410.00037; transformers 5.18, models/moshi), as `MoshiForCausalLM`. The class ignores
 * its window in a full forward pass, and keeps it in a cache. Longer inputs than the window are refused here; published models have no more positions.
 */
import * as z from 'zod';
import { attention } from '../constructors/attention-layers.js';
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import { gatedMlp } from '../constructors/feed-forward-layers.js';
import { defineRules } from '../family.js';
import { harmless, unreadBut } from '../transformer/config-keys.js';
import { rotaryOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { headsDivide } from '../transformer/rules.js';
import { activationOf, count, gateActivation, windowAt } from '../transformer/settings.js';

/** A row of the embedding for the token before a text, which the head cannot give. */
const FIRST_TOKENS = 1;

const WINDOW = 3000;

interface Sizes {
  readonly intermediate_size: number;
  readonly max_position_embeddings: number;
  readonly sliding_window: number;
}

export const moshi = defineDecoder({
  title: 'Moshi, the language model',
  schema: decoderDocument(
    'moshi',
    {
      vocab_size: 32_000,
      hidden_size: 4096,
      intermediate_size: 22_528,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: WINDOW,
      rms_norm_eps: 1e-8,
    },
    {
      sliding_window: count(WINDOW, 'How many keys a position sees, its own included'),
      hidden_act: gateActivation,
      tie_word_embeddings: z
        .literal(false)
        .default(false)
        .describe('The head has its own weight, with fewer rows than the embedding'),
    },
  ),
  rules: [
    ...headsDivide('num_attention_heads', 'hidden_size'),
    ...defineRules<{ readonly model: Sizes }>([
      {
        severity: 'warning',
        reads: ['model.max_position_embeddings', 'model.sliding_window'],
        check: ({ model: { max_position_embeddings: positions, sliding_window: window } }) =>
          positions <= window
            ? undefined
            : {
                message: `inputs longer than the window of ${window} are refused: a pass of the class sees all of them, and one with a cache a window`,
                suggestion: `write ${window} positions, or a window of ${positions}`,
              },
      },
      {
        severity: 'error',
        reads: ['model.intermediate_size'],
        check: ({ model: { intermediate_size: both } }) =>
          both % 2 === 0
            ? undefined
            : {
                message: `a gate and its values have equal parts of ${both} values`,
                suggestion: 'write an even number',
              },
      },
    ]),
  ],
  embeddingRows: ({ vocab_size: rows }) => rows + FIRST_TOKENS,
  // Beyond its window a pass of the class and one with a cache differ.
  longest: ({ max_position_embeddings: positions, sliding_window: window }) =>
    Math.min(positions, window),
  huggingFace: {
    names: { intermediate_size: ['ffn_dim'] },
    more: () => ({ tie_word_embeddings: false }),
    limited: {
      tie_word_embeddings: unreadBut([false], 'the class has no tied head'),
    },
    harmless: harmless('of the model of sounds around it', [
      'audio_vocab_size',
      'num_codebooks',
      'audio_encoder_config',
      'depth_decoder_config',
    ]),
  },
  attentionLayer({ name: block, config, heads: { hidden, heads, keyValueHeads, headDim } }) {
    const name = `${block}.self_attn`;
    const product = (leaf: string, from: number, to: number) =>
      linear(`${name}.${leaf}.linear`, from, to, { bias: false });
    return attention(name, {
      inputs: [
        product('q_proj', hidden, heads * headDim),
        product('k_proj', hidden, keyValueHeads * headDim),
        product('v_proj', hidden, keyValueHeads * headDim),
      ],
      out: product('o_proj', heads * headDim, hidden),
      rotary: rotaryOf(block, config, headDim),
      heads,
      keyValueHeads,
      headDim,
      window: windowAt(config, 0, true),
    });
  },
  feedForward({
    name: block,
    config: { hidden_size: hidden, intermediate_size: both, hidden_act },
  }) {
    const name = `${block}.mlp`;
    const inner = Math.floor(both / 2);
    return gatedMlp(name, {
      inputs: fusedProjection(linear(`${name}.fc1`, hidden, both, { bias: false }), [inner, inner]),
      activation: activationOf(hidden_act),
      down: linear(`${name}.fc2`, inner, hidden, { bias: false }),
    });
  },
});
