/** Phi 3 (arXiv 2404.14219): queries, keys and values in one product, gate and up in another. */
import { attention, fusedProjection, linear, rmsNorm, rotary } from '../constructors.js';
import { defineFamily } from '../family.js';
import { trainingHints } from '../training-section.js';
import { type Json, NO_BIASES } from '../transformer/config-keys.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { decoder, fusedMlp, preNormBlock } from '../transformer/parts.js';
import { rotaryIn, rotarySettings, scalingIn, scalingOf } from '../transformer/rotary.js';
import { decoderRules, partOfEachHead, scalingRules, windowRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  DECODER_DIMENSIONS,
  decoderSizes,
  decoderStored,
  flag,
  headsOf,
  partOfHead,
  transformerDocument,
  tyingSettings,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const ROTATED = partOfEachHead('partial_rotary_factor');

const schema = transformerDocument('phi3', {
  ...decoderSizes({
    vocab_size: 32_064,
    hidden_size: 3072,
    intermediate_size: 8192,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
  }),
  ...rotarySettings(10_000),
  partial_rotary_factor: partOfHead(1),
  original_max_position_embeddings: count
    .default(4096)
    .describe('Length of the training, beyond which longrope takes its long divisors'),
  sliding_window: windowSettings().sliding_window,
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
});

/** Older files call longrope YaRN. */
function phi3Scaling(config: Json): Json | undefined {
  const scaling = scalingIn(rotaryIn(config));
  return scaling?.rope_type === 'yarn' ? { ...scaling, rope_type: 'longrope' } : scaling;
}

export const phi3 = defineFamily({
  name: 'phi3',
  title: 'Phi 3 and Phi 4 mini',
  schema,
  rules: [
    ...decoderRules(ROTATED),
    ...scalingRules(ROTATED),
    ...windowRules(),
    {
      severity: 'error',
      reads: ['model.rope_scaling'],
      check: ({ model: { rope_scaling: scaling } }) =>
        scaling && !['default', 'longrope'].includes(scaling.rope_type)
          ? {
              message: `rope_type ${scaling.rope_type} is not supported by Phi 3`,
              suggestion: 'write longrope, or leave rope_scaling out',
            }
          : undefined,
    },
  ],
  confusions: [],
  presets: {},
  dimensions: DECODER_DIMENSIONS,
  trainingHints,
  fromHuggingFace: huggingFaceReader(schema.shape.model, {
    more: (config) => ({
      partial_rotary_factor: rotaryIn(config).partial_rotary_factor,
      rope_scaling: phi3Scaling(config),
    }),
    limited: NO_BIASES,
  }),
  storedSettings: decoderStored,
  settingsFor: tyingSettings,
  build({ model: config }) {
    const { hidden_size: hidden, max_position_embeddings: positions } = config;
    const { heads, keyValueHeads, headDim } = headsOf(config);
    const rotatedDim = Math.trunc(headDim * config.partial_rotary_factor);
    const trained = config.original_max_position_embeddings;
    const scaling = scalingOf(config.rope_scaling, positions, rotatedDim, trained);
    const [query, key] = [heads * headDim, keyValueHeads * headDim];
    const norm = (name: string) => rmsNorm(name, hidden, config.rms_norm_eps);
    const product = (name: string, from: number, to: number) =>
      linear(name, from, to, { bias: false });
    return decoder(config, {
      norm,
      block: (name, index) =>
        preNormBlock(name, {
          norm,
          attention: attention(`${name}.self_attn`, {
            inputs: fusedProjection(
              product(`${name}.self_attn.qkv_proj`, hidden, query + 2 * key),
              [query, key, key],
            ),
            out: product(`${name}.self_attn.o_proj`, query, hidden),
            heads,
            keyValueHeads,
            headDim,
            rotary: rotary(`${name}.rotary`, {
              base: config.rope_theta,
              headDim,
              rotatedDim,
              scaling,
            }),
            window: windowAt(config, index, true),
          }),
          feedForward: fusedMlp(`${name}.mlp`, {
            hidden,
            inner: config.intermediate_size,
            activation: activationOf(config.hidden_act),
          }),
        }),
    });
  },
});
