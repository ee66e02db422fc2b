/** Hunyuan, dense: norms on queries and keys after their rotation. */
import { asNumber } from '../../../base/values.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { ntkBase } from '../rotary-scaling.js';
import type { JsonObject } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { type RotaryReading, rotaryIn, rotaryReading } from '../transformer/rotary.js';
import { attentionBias, gateActivation, LLAMA_SIZES } from '../transformer/settings.js';

const plain = rotaryReading({});

/** With `alpha`, dynamic scaling is a larger base for every length, regardless of the factor. */
function baseIn(config: JsonObject): number | undefined {
  const {
    type,
    rope_type = type,
    alpha,
    rope_theta = config.rope_theta ?? 10_000,
  } = rotaryIn(config);
  if (rope_type !== 'dynamic' || !alpha) return undefined;
  const { hidden_size = 4096, num_attention_heads = 32, head_dim } = config;
  const width = asNumber(head_dim ?? asNumber(hidden_size) / asNumber(num_attention_heads));
  return ntkBase(asNumber(rope_theta), asNumber(alpha), width);
}

/** Rotary settings, with or without experts. */
export const hunyuanRotary: RotaryReading = {
  keys: plain.keys,
  settings(config) {
    const base = baseIn(config);
    return base === undefined ? plain.settings(config) : { rope_theta: base, rope_scaling: null };
  },
  remarks: (config) => (baseIn(config) === undefined ? plain.remarks(config) : []),
};

interface NormedBlock {
  readonly name: string;
  readonly config: { readonly rms_norm_eps: number };
  readonly heads: { readonly headDim: number };
}

/** Norms on queries and keys after their rotation. */
export function hunyuanNorms({ name, config, heads: { headDim } }: NormedBlock) {
  const norm = (leaf: string) =>
    rmsNormLayer(`${name}.self_attn.${leaf}_layernorm`, headDim, config.rms_norm_eps);
  return { queryNorm: norm('query'), keyNorm: norm('key'), normsAfterRotation: true };
}

export const hunyuanV1Dense = defineDecoder({
  title: 'Hunyuan, dense',
  schema: decoderDocument(
    'hunyuan_v1_dense',
    {
      ...LLAMA_SIZES,
      vocab_size: 290_943,
      rms_norm_eps: 1e-5,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias },
  ),
  huggingFace: { rotary: hunyuanRotary, harmless: { eod_token_id: 'names a token' } },
  attention: hunyuanNorms,
});
