/** Phi 3 (arXiv 2404.14219): fused query-key-value and gate-up products. */
import type * as z from 'zod';
import { attention, rotary } from '../constructors/attention-layers.js';
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import type { JsonObject } from '../transformer/config-keys.js';
import { fusedMlp } from '../transformer/decoder-parts.js';
import { type BlockInputs, decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { rotaryIn, scalingIn, scalingOf } from '../transformer/rotary.js';
import {
  activationOf,
  count,
  gateActivation,
  partOfHead,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

/** Older files use the name YaRN for longrope. */
function phi3Scaling(config: JsonObject): JsonObject | undefined {
  const scaling = scalingIn(rotaryIn(config));
  return scaling?.rope_type === 'yarn' ? { ...scaling, rope_type: 'longrope' } : scaling;
}

export const phi3Settings = {
  partial_rotary_factor: partOfHead(1),
  original_max_position_embeddings: count(
    4096,
    'Length of the training, beyond which longrope takes its long divisors',
  ),
  sliding_window: windowSettings().sliding_window,
  hidden_act: gateActivation,
};

const schema = decoderDocument(
  'phi3',
  {
    vocab_size: 32_064,
    hidden_size: 3072,
    intermediate_size: 8192,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
  },
  phi3Settings,
);

type Config = Omit<z.output<typeof schema>['model'], 'family'>;

/** Parts shared with multimodal models. */
export const PHI3 = {
  rules: defineRules<{ readonly model: Config }>([
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
  ]),
  huggingFace: {
    more: (config: JsonObject) => ({
      partial_rotary_factor: rotaryIn(config).partial_rotary_factor,
      rope_scaling: phi3Scaling(config),
    }),
  },
  attentionLayer({
    name: blockName,
    config,
    index,
    heads: { hidden, heads, keyValueHeads, headDim },
  }: BlockInputs<Config>) {
    const { max_position_embeddings: positions, original_max_position_embeddings: trained } =
      config;
    const rotatedDim = Math.trunc(headDim * config.partial_rotary_factor);
    const scaling = scalingOf(config.rope_scaling, positions, rotatedDim, trained);
    const [query, key] = [heads * headDim, keyValueHeads * headDim];
    const name = `${blockName}.self_attn`;
    const qkv = linear(`${name}.qkv_proj`, hidden, query + 2 * key, { bias: false });
    return attention(name, {
      inputs: fusedProjection(qkv, [query, key, key]),
      out: linear(`${name}.o_proj`, query, hidden, { bias: false }),
      heads,
      keyValueHeads,
      headDim,
      rotary: rotary(`${blockName}.rotary`, {
        base: config.rope_theta,
        headDim,
        rotatedDim,
        scaling,
      }),
      window: windowAt(config, index, true),
    });
  },
  feedForward: ({ name, config }: BlockInputs<Config>) =>
    fusedMlp(`${name}.mlp`, {
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: activationOf(config.hidden_act),
    }),
};

export const phi3 = defineDecoder({ ...PHI3, title: 'Phi 3 and Phi 4 mini', schema });
