/**
 * LongCat-Flash (Meituan, arXiv 2509.01322): blocks of two latent attentions and two dense networks, with experts beside
 * all but the first attention. Some experts give their input: they have no tensors in published files. The class in
 * transformers 5.18 holds rows for them in `gate_up_proj` that nothing reads; models in memory are described with these.
 */
import * as z from 'zod';
import { residual, rmsNormLayer, sequence, sum } from '../constructors/basic-layers.js';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules, type Ignored } from '../family.js';
import type { Layer, MixtureOfExperts } from '../layer.js';
import { buffer, param } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { causalModel, numberedMlps, separateMlp } from '../transformer/decoder-parts.js';
import {
  deepseekAttention,
  LATENT_RULES,
  latentSettings,
  MLA_KEYS,
  rotatedAlone,
} from '../transformer/deepseek.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { longestInput } from '../transformer/rotary.js';
import {
  activationOf,
  count,
  expertsStored,
  headPath,
  mixtureStored,
  positiveInteger,
  type SettingsOf,
  transformerDocument,
} from '../transformer/settings.js';

const BASE = 1e7;

const {
  num_hidden_layers: _,
  intermediate_size: __,
  ...latent
} = latentSettings({
  latent: { q_lora_rank: 1536, kv_lora_rank: 512, qk_nope_head_dim: 128 },
  sizes: {
    vocab_size: 131_072,
    hidden_size: 6144,
    intermediate_size: 12_288,
    num_hidden_layers: 28,
    num_attention_heads: 64,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
  },
});

const settings = {
  ...latent,
  rope_theta: latent.rope_theta.default(BASE),
  q_lora_rank: positiveInteger.default(1536).describe('Rank of the queries'),
  num_layers: count(28, 'Number of blocks, with two attentions each'),
  ffn_hidden_size: count(12_288, 'Width inside each of the two dense networks of a block'),
  expert_ffn_hidden_size: count(2048, 'Width inside an expert'),
  n_routed_experts: count(512, 'Experts that compute something'),
  zero_expert_num: z
    .int()
    .min(0)
    .nullable()
    .default(256)
    .describe('Experts beside these that give their input'),
  moe_topk: count(12, 'Experts of both kinds that a token goes to'),
  routed_scaling_factor: z
    .number()
    .default(6)
    .describe('What the weights of the chosen experts are multiplied by'),
  experts_stored: expertsStored,
};

type Config = SettingsOf<typeof settings>;

const allExperts = (config: Pick<Config, 'n_routed_experts' | 'zero_expert_num'>): number =>
  config.n_routed_experts + (config.zero_expert_num ?? 0);

/** A file can give the attentions in place of the blocks. */
const blocksIn = ({ num_hidden_layers: attentions }: JsonObject): JsonObject => ({
  ...(typeof attentions === 'number' && { num_layers: Math.floor(attentions / 2) }),
});

/** Products of zero experts, which files that transformers 5.18 saves have. */
const savedForZeroExperts = (config: Config): readonly Ignored[] =>
  Array.from({ length: Math.min(config.zero_expert_num ?? 0, 4096) }, (_each, index) =>
    ['gate_proj', 'up_proj'].map((leaf) => ({
      pattern: `${config.stored_prefix}layers.*.mlp.experts.${config.n_routed_experts + index}.${leaf}.weight`,
      what: 'transformers 5.18 saves them for experts that give their input, and nothing reads them',
    })),
  ).flat();

export const longcatFlash = defineTransformer({
  title: 'LongCat-Flash: two latent attentions in a block, experts that give their input',
  architecture: 'mixture',
  schema: transformerDocument('longcat_flash', settings),
  rules: [
    ...LATENT_RULES,
    ...defineRules<{
      readonly model: Pick<Config, 'n_routed_experts' | 'zero_expert_num' | 'moe_topk'>;
    }>([
      {
        severity: 'error',
        reads: ['model.moe_topk', 'model.n_routed_experts', 'model.zero_expert_num'],
        check: ({ model }) =>
          model.moe_topk > allExperts(model)
            ? {
                message: `${model.moe_topk} experts for a token are more than the ${allExperts(model)} there are`,
                suggestion: `write moe_topk: ${allExperts(model)} or less`,
              }
            : undefined,
      },
    ]),
  ],
  storedSettings: mixtureStored,
  ignoredOnLoad: ['model\\.mtp.*', ROTARY_BUFFERS],
  ignored: ({ model }) => savedForZeroExperts(model),
  huggingFace: {
    names: {
      n_routed_experts: ['num_local_experts'],
      moe_topk: ['num_experts_per_tok'],
      ffn_hidden_size: ['intermediate_size'],
      expert_ffn_hidden_size: ['moe_intermediate_size'],
    },
    more: blocksIn,
    reads: ['num_hidden_layers'],
    limited: {
      ...MLA_KEYS,
      ...rotatedAlone(),
      ...unreadEach(['mla_scale_q_lora', 'mla_scale_kv_lora'], [true]),
      ...unreadEach(['attention_method'], ['MLA']),
      ...unreadEach(['norm_topk_prob'], [false]),
      ...unreadEach(['zero_expert_type'], ['identity']),
      ...unreadEach(['n_group', 'topk_group'], [1]),
      ...unreadEach(['n_shared_experts'], [0]),
      ...unreadEach(['rope_interleave'], [true]),
      router_bias: {
        allows: (value) => value === null || value === false,
        why: 'the class has a bias of the router that it does not read',
        severity: 'error',
      },
    },
    harmless: {
      router_dtype: 'says in which type experts are scored',
      num_nextn_predict_layers: 'layers that predict further tokens are not part of the model',
    },
  },
  build({ model: config }) {
    const { hidden_size: hidden, stored_prefix: prefix } = config;
    const norm = (name: string) => rmsNormLayer(name, hidden, config.rms_norm_eps);
    return causalModel({
      paths: {
        embedding: `${prefix}embed_tokens`,
        blocks: `${prefix}layers`,
        head: headPath(prefix),
      },
      norm: norm(`${prefix}norm`),
      vocabulary: config.vocab_size,
      hidden,
      positions: longestInput(config.max_position_embeddings, config.rope_scaling),
      tied: config.tie_word_embeddings,
      blocks: config.num_layers,
      blocksKey: 'num_layers',
      block: (name) => shortcutBlock(name, config, norm),
    });
  },
});

/**
 * x = x + attention0(norm(x)); n = norm(x); then experts(n) + y, where y = x + dense0(n), y = y + attention1(norm(y)),
 * y = y + dense1(norm(y)).
 */
function shortcutBlock(name: string, config: Config, norm: (name: string) => Layer): Layer {
  const add = (branch: string, ...layers: readonly Layer[]) =>
    residual(`${name}.${branch}_residual`, sequence(`${name}.${branch}_branch`, layers));
  const normed = (leaf: string, index: number) => norm(`${name}.${leaf}.${index}`);
  const attention = (index: number) => {
    const path = `${name}.self_attn.${index}`;
    const { hidden_size: hidden, q_lora_rank: queryRank, kv_lora_rank: latentRank } = config;
    const layer = deepseekAttention(path, config, 'neighbours', undefined, {
      queries: Math.sqrt(hidden / queryRank),
      latent: Math.sqrt(hidden / latentRank),
    });
    return add(`attention${index}`, normed('input_layernorm', index), layer);
  };
  const dense = (index: number) =>
    separateMlp(`${name}.mlps.${index}`, {
      hidden: config.hidden_size,
      inner: config.ffn_hidden_size,
      activation: activationOf(config.hidden_act),
    });
  const shared = normed('post_attention_layernorm', 0);
  return sequence(name, [
    attention(0),
    sum(
      `${name}.shortcut`,
      sequence(`${name}.main`, [
        add('mlp0', shared, dense(0)),
        attention(1),
        add('mlp1', normed('post_attention_layernorm', 1), dense(1)),
      ]),
      sequence(`${name}.experts_branch`, [shared, expertsOf(`${name}.mlp`, config)]),
    ),
  ]);
}

function expertsOf(name: string, config: Config): MixtureOfExperts {
  const { hidden_size: hidden, expert_ffn_hidden_size: inner } = config;
  const { n_routed_experts: experts, zero_expert_num: zero } = config;
  const all = allExperts(config);
  const activation = activationOf(config.hidden_act);
  const path = `${name}.experts`;
  const packed = () => ({
    ...packedExperts(path, { experts, hidden, inner }, activation),
    gateUp: param(`${path}.gate_up_proj`, [all, 2 * inner, hidden]),
  });
  return mixtureOfExperts(name, {
    router: router(`${name}.router.classifier`, hidden, {
      experts: all,
      expertsPerToken: config.moe_topk,
      scoring: 'softmax',
      correction: buffer(`${name}.router.e_score_correction_bias`, [all]),
      scale: config.routed_scaling_factor,
    }),
    experts:
      config.experts_stored === 'packed'
        ? packed()
        : numberedMlps(path, experts, { hidden, inner, activation, component: 'experts' }),
    zeroExperts: zero ?? 0,
  });
}
