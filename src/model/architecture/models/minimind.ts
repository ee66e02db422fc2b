/**
 * MiniMind 2 and 3 (github.com/jingyaogong/minimind): small decoders, dense or with a mixture of experts.
 * Both versions share a `model_type`; `versionOf` distinguishes them.
 */
import * as z from 'zod';
import type { DocumentRule } from '../../../base/errors.js';
import { rotary } from '../constructors/attention-layers.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import type { Layer, RotaryScaling, Router } from '../layer.js';
import {
  decoder,
  expertsOf,
  numberedMlps,
  preNormBlock,
  separateAttention,
  separateMlp,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import type { RotaryReading } from '../transformer/rotary.js';
import { rotaryIn, scalingIn } from '../transformer/rotary.js';
import { DECODER_RULES } from '../transformer/rules.js';
import { decoderProxy } from '../transformer/scaled-down-proxy.js';
import {
  activationOf,
  activationWord,
  count,
  DECODER_DIMENSIONS,
  decoderStored,
  epsilon,
  flag,
  headsOf,
  positiveInteger,
  storedPrefix,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

const factor = z.number().positive();

const schema = transformerDocument('minimind', {
  version: z
    .literal([2, 3])
    .nullish()
    .describe('[3 with head_dim, num_experts or moe_intermediate_size, otherwise 2]'),
  stored_prefix: storedPrefix({ own: 'model.' }),
  vocab_size: count(6400, 'Rows of the embedding and of the head'),
  hidden_size: positiveInteger.describe('Width of the residual stream'),
  num_hidden_layers: positiveInteger.describe('Number of blocks'),
  num_attention_heads: count(8, 'Query heads'),
  num_key_value_heads: positiveInteger.nullish().describe('Key and value heads [2; version 3: 4]'),
  head_dim: positiveInteger
    .nullish()
    .describe('Width of a head [hidden_size / num_attention_heads]'),
  intermediate_size: positiveInteger
    .nullish()
    .describe(
      'Width inside the feed-forward network [8/3, version 3: π times hidden_size, in 64s]',
    ),
  max_position_embeddings: count(32_768, 'Longest input, in tokens'),
  rms_norm_eps: epsilon.nullish().describe('Epsilon of the norms [1e-5; version 3: 1e-6]'),
  rope_theta: z.number().positive().default(1e6).describe('Base of the rotary frequencies'),
  inference_rope_scaling: toggle(false, 'YaRN, for more positions than the training had'),
  rope_scaling: z
    .looseObject({
      factor: factor.nullish().describe('How many times longer [16; early: 4]'),
      original_max_position_embeddings: positiveInteger.default(2048),
      beta_fast: factor.nullish().describe('[32; early: 4]'),
      beta_slow: factor.default(1),
      attention_factor: factor.nullish().describe('Factor of cosine and sine [1]'),
      rope_type: z.literal('yarn').nullish(),
      formula: z
        .enum(['ramp', 'early'])
        .nullish()
        .describe(
          'early: as the code computed YaRN in October and November 2025 [by beta_fast and attention_factor]',
        ),
    })
    .nullish()
    .describe('What inference_rope_scaling switches on [YaRN, factor 16 from 2048 positions]'),
  hidden_act: activationWord.default('silu').describe('Activation of the gate'),
  tie_word_embeddings: tiedHead(true),
  use_moe: toggle(false, 'A mixture of experts in every block'),
  num_experts_per_tok: positiveInteger
    .nullish()
    .describe('Experts that a token goes to [2; version 3: 1]'),
  n_routed_experts: positiveInteger.nullish().describe('Version 2: experts to choose from [4]'),
  n_shared_experts: z.int().min(0).nullish().describe('Version 2: experts for every token [1]'),
  num_experts: positiveInteger.nullish().describe('Version 3: experts to choose from [4]'),
  moe_intermediate_size: positiveInteger
    .nullish()
    .describe('Version 3: width inside an expert [intermediate_size]'),
  scoring_func: z.literal('softmax').default('softmax').describe('How experts are scored'),
  norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one'),
  // The keys below do not describe the model.
  flash_attn: flag.nullish(),
  dropout: z.number().nullish().describe('Training only'),
  aux_loss_alpha: z.number().nullish().describe('Training only'),
  router_aux_loss_coef: z.number().nullish().describe('Training only'),
  seq_aux: flag.nullish().describe('Training only'),
});

/** Names of the same settings in the code around the model and in courses on it. */
const SETTING_NAMES = {
  num_layers: 'num_hidden_layers',
  num_q_heads: 'num_attention_heads',
  num_kv_heads: 'num_key_value_heads',
  max_seq_len: 'max_position_embeddings',
  rope_base: 'rope_theta',
  flash: 'flash_attn',
} as const satisfies Record<string, keyof (typeof schema)['shape']['model']['shape']>;

type Document = z.output<typeof schema>;
type MinimindConfig = Document['model'];
type Version = 2 | 3;

const versionOf = ({
  version,
  head_dim,
  num_experts,
  moe_intermediate_size,
}: MinimindConfig): Version =>
  version ?? ((head_dim ?? num_experts ?? moe_intermediate_size) == null ? 2 : 3);

/** Defaults of each version. */
const VERSIONS = {
  2: {
    keyValueHeads: 2,
    eps: 1e-5,
    expertsPerToken: 2,
    innerOf: (hidden: number) => 64 * Math.floor((Math.trunc((hidden * 8) / 3) + 63) / 64),
  },
  3: {
    keyValueHeads: 4,
    eps: 1e-6,
    expertsPerToken: 1,
    innerOf: (hidden: number) => 64 * Math.ceil((hidden * Math.PI) / 64),
  },
} as const;

/** Keys that only one version reads, with the version that does not. */
const OTHER_VERSION_KEYS = [
  ['num_experts', 2],
  ['moe_intermediate_size', 2],
  ['n_routed_experts', 3],
  ['n_shared_experts', 3],
] as const;

const EXPERTS = 4;
/** Added to the sum that divides the weights of the chosen experts. */
const RENORMALISE_EPS = 1e-20;

/** Whether YaRN applies: tables are built for more positions than the original length. */
const isStretched = (config: MinimindConfig): boolean =>
  config.inference_rope_scaling &&
  config.max_position_embeddings >
    (config.rope_scaling?.original_max_position_embeddings ?? ORIGINAL_POSITIONS);

const ORIGINAL_POSITIONS = 2048;

/** Default beta_fast of the formula with a ramp, whose code also writes an attention_factor. */
const BETA_FAST = 32;

/**
 * Formula of YaRN. The code of October and November 2025 writes beta_fast 4 and no attention_factor, and has no
 * version 3.
 */
function formulaOf(config: MinimindConfig): 'ramp' | 'early' {
  const { formula, attention_factor, beta_fast } = config.rope_scaling ?? {};
  if (formula != null) return formula;
  const isEarly = attention_factor == null && (beta_fast ?? BETA_FAST) !== BETA_FAST;
  return isEarly && versionOf(config) === 2 ? 'early' : 'ramp';
}

function scalingOf(config: MinimindConfig, headDim: number): RotaryScaling | undefined {
  if (!isStretched(config)) return undefined;
  const given = config.rope_scaling;
  const originalPositions = given?.original_max_position_embeddings ?? ORIGINAL_POSITIONS;
  if (formulaOf(config) === 'early') {
    return {
      kind: 'earlyYarn',
      factor: given?.factor ?? 4,
      originalPositions,
      betaFast: given?.beta_fast ?? 4,
      betaSlow: given?.beta_slow ?? 1,
    };
  }
  return {
    kind: 'yarn',
    factor: given?.factor ?? 16,
    originalPositions,
    betaFast: given?.beta_fast ?? BETA_FAST,
    betaSlow: given?.beta_slow ?? 1,
    truncate: true,
    lastDimension: headDim / 2 - 1,
    inverted: 'stepped',
    amplitude: given?.attention_factor ?? 1,
  };
}

/** A mixture of experts or a gated network. */
function feedForward(name: string, config: MinimindConfig): Layer {
  const version = versionOf(config);
  const { hidden_size: hidden } = config;
  const activation = activationOf(config.hidden_act);
  const inner = config.intermediate_size ?? VERSIONS[version].innerOf(hidden);
  if (!config.use_moe) return separateMlp(name, { hidden, inner, activation });
  const isOld = version === 2;
  const experts = (isOld ? config.n_routed_experts : config.num_experts) ?? EXPERTS;
  const expertsPerToken = config.num_experts_per_tok ?? VERSIONS[version].expertsPerToken;
  const expert = {
    hidden,
    inner: isOld ? inner : (config.moe_intermediate_size ?? inner),
    activation,
  };
  // Version 2 keeps the weight of a single expert, version 3 sets it to one.
  const renormalised: Router['renormalised'] =
    config.norm_topk_prob && (expertsPerToken > 1 || !isOld) ? { eps: RENORMALISE_EPS } : undefined;
  return mixtureOfExperts(name, {
    router: router(`${name}.gate`, hidden, {
      experts,
      expertsPerToken,
      scoring: 'softmax',
      renormalised,
    }),
    experts: expertsOf(`${name}.experts`, { ...expert, experts, stored: 'separate' }),
    shared: numberedMlps(`${name}.shared_experts`, isOld ? (config.n_shared_experts ?? 1) : 0, {
      ...expert,
      component: 'sharedExperts',
    }),
  });
}

/** One rotation; its training length is only given with the scaling. */
const rotaryReading: RotaryReading = {
  keys: ['rope_parameters', 'rope_scaling'],
  settings(config) {
    const given = rotaryIn(config);
    const isScaled = ['factor', 'beta_fast'].some((key) => Object.hasOwn(given, key));
    return {
      rope_theta: given.rope_theta ?? config.rope_theta,
      // The code has one method, and does not read its type.
      rope_scaling: scalingIn({ ...(isScaled && { type: 'yarn' }), ...given }),
    };
  },
  remarks: () => [],
};

export const minimind = defineTransformer({
  title: 'MiniMind 2 and 3, dense and with experts',
  schema,
  rules: [
    ...DECODER_RULES,
    {
      severity: 'error',
      reads: ['model.num_experts_per_tok', 'model.n_routed_experts', 'model.num_experts'],
      check: ({ model }) => {
        const experts =
          (versionOf(model) === 2 ? model.n_routed_experts : model.num_experts) ?? EXPERTS;
        const chosen = model.num_experts_per_tok ?? 1;
        return model.use_moe && chosen > experts
          ? {
              message: `${chosen} experts for a token are more than the ${experts} there are`,
              suggestion: `write at most ${experts}`,
            }
          : undefined;
      },
    },
    {
      severity: 'warning',
      reads: ['model.inference_rope_scaling', 'model.rope_scaling'],
      check: ({ model }) =>
        isStretched(model) && formulaOf(model) === 'early' && model.rope_scaling?.formula == null
          ? {
              message:
                'beta_fast without attention_factor: YaRN is computed as the code of October and November 2025 does',
              suggestion:
                'confirm with model.rope_scaling.formula=early, or write formula=ramp for the code since December 2025',
            }
          : undefined,
    },
    {
      severity: 'warning',
      reads: ['model.head_dim', 'model.version', 'model.num_key_value_heads'],
      check: ({ model }) => {
        const isWide = model.head_dim === model.hidden_size / model.num_attention_heads;
        const isOld = model.num_key_value_heads === VERSIONS[2].keyValueHeads;
        const isOnly = (model.num_experts ?? model.moe_intermediate_size) == null;
        return model.version == null && isWide && isOld && isOnly
          ? {
              message: 'head_dim is a key of MiniMind 3: read as version 3',
              suggestion: 'for MiniMind 2, write version: 2',
            }
          : undefined;
      },
    },
    ...OTHER_VERSION_KEYS.map(
      ([key, version]): DocumentRule<Document> => ({
        severity: 'warning',
        reads: [`model.${key}`, 'model.version'],
        check: ({ model }) =>
          model.use_moe && model[key] != null && versionOf(model) === version
            ? {
                message: `${key} has no effect in version ${version} of MiniMind`,
                suggestion: `remove it, or write version: ${version === 2 ? 3 : 2}`,
              }
            : undefined,
      }),
    ),
  ],
  dimensions: DECODER_DIMENSIONS,
  settingNames: SETTING_NAMES,
  huggingFace: { rotary: rotaryReading },
  storedSettings: decoderStored,
  // The default number of key-value heads does not depend on the query heads.
  scaledDownProxy: ({ model }, tokens, bounds) => {
    const { keyValueHeads } = VERSIONS[versionOf(model)];
    const stated = { num_key_value_heads: model.num_key_value_heads ?? keyValueHeads };
    return decoderProxy({ model: { ...model, ...stated } }, tokens, bounds);
  },
  build({ model: config }) {
    const defaults = VERSIONS[versionOf(config)];
    const { hidden_size: hidden } = config;
    const eps = config.rms_norm_eps ?? defaults.eps;
    const heads = headsOf({
      ...config,
      num_key_value_heads: config.num_key_value_heads ?? defaults.keyValueHeads,
    });
    const { headDim } = heads;
    const scaling = scalingOf(config, headDim);
    const headNorm = (name: string) =>
      versionOf(config) === 3 ? rmsNormLayer(name, headDim, eps) : undefined;
    const norm = (name: string) => rmsNormLayer(name, hidden, eps);
    return decoder(
      { ...config, rope_scaling: undefined },
      {
        norm,
        decidedBy: config,
        block: (name) =>
          preNormBlock(name, {
            norm,
            attention: separateAttention(`${name}.self_attn`, {
              ...heads,
              queryNorm: headNorm(`${name}.self_attn.q_norm`),
              keyNorm: headNorm(`${name}.self_attn.k_norm`),
              rotary: rotary(`${name}.rotary`, { base: config.rope_theta, headDim, scaling }),
            }),
            feedForward: feedForward(`${name}.mlp`, config),
          }),
      },
    );
  },
});
