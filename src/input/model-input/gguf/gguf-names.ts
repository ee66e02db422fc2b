/**
 * Names of tensors in GGUF files and in transformers, by architecture of llama.cpp. Source: llama-arch.cpp of llama.cpp,
 * and the changes of values that its convert_hf_to_gguf.py makes.
 */
import type { FamilyName } from '../../../model/architecture/families.js';

/**
 * Difference between the values of a GGUF file and those of transformers.
 * `queryRows`, `keyRows`: rows of each head in pairs for RoPE, not in halves. `transposed`: the other way round.
 * `plusOne`: the weight of a norm, plus 1. `heads`: queries, keys and values apart, not head by head. `column`: a vector
 * for a matrix of one row. `experts`: all experts in one tensor.
 */
export type ValueChange =
  | 'queryRows'
  | 'keyRows'
  | 'transposed'
  | 'plusOne'
  | 'heads'
  | 'column'
  | 'experts';

/** A tensor in both naming schemes; `#` is the number of a layer, `@` that of an expert. */
export interface GgufNaming {
  readonly gguf: string;
  readonly name: string;
  readonly change?: ValueChange;
  /** Half of a tensor of all experts that transformers 5 writes: gate or up. */
  readonly packed?: { readonly name: string; readonly half?: 0 | 1 };
}

const tensor = (gguf: string, name: string, change?: ValueChange): GgufNaming => ({
  gguf,
  name,
  ...(change && { change }),
});

/** A weight and its bias. */
const both = (gguf: string, name: string, change?: ValueChange): GgufNaming[] => [
  tensor(`${gguf}.weight`, `${name}.weight`, change),
  tensor(`${gguf}.bias`, `${name}.bias`, change === 'transposed' ? undefined : change),
];

const LAYER = 'model.layers.#';

const ends = (change?: 'plusOne') => [
  tensor('token_embd.weight', 'model.embed_tokens.weight'),
  tensor('output_norm.weight', 'model.norm.weight', change),
  tensor('output.weight', 'lm_head.weight'),
];

const attentionNames = (isPaired = false) => [
  ...both('blk.#.attn_q', `${LAYER}.self_attn.q_proj`, isPaired ? 'queryRows' : undefined),
  ...both('blk.#.attn_k', `${LAYER}.self_attn.k_proj`, isPaired ? 'keyRows' : undefined),
  ...both('blk.#.attn_v', `${LAYER}.self_attn.v_proj`),
  ...both('blk.#.attn_output', `${LAYER}.self_attn.o_proj`),
];

const headNorms = (change?: 'plusOne') => [
  tensor('blk.#.attn_q_norm.weight', `${LAYER}.self_attn.q_norm.weight`, change),
  tensor('blk.#.attn_k_norm.weight', `${LAYER}.self_attn.k_norm.weight`, change),
];

const mlp = [
  ...both('blk.#.ffn_gate', `${LAYER}.mlp.gate_proj`),
  ...both('blk.#.ffn_up', `${LAYER}.mlp.up_proj`),
  ...both('blk.#.ffn_down', `${LAYER}.mlp.down_proj`),
];

/** Norms before attention and before the feed-forward network. */
const preNorms = [
  tensor('blk.#.attn_norm.weight', `${LAYER}.input_layernorm.weight`),
  tensor('blk.#.ffn_norm.weight', `${LAYER}.post_attention_layernorm.weight`),
];

/** Norms before and after each branch. */
const sandwichNorms = [
  tensor('blk.#.attn_norm.weight', `${LAYER}.input_layernorm.weight`, 'plusOne'),
  tensor('blk.#.post_attention_norm.weight', `${LAYER}.post_attention_layernorm.weight`, 'plusOne'),
  tensor('blk.#.ffn_norm.weight', `${LAYER}.pre_feedforward_layernorm.weight`, 'plusOne'),
  tensor('blk.#.post_ffw_norm.weight', `${LAYER}.post_feedforward_layernorm.weight`, 'plusOne'),
];

/** @param module Module with the experts. @param names Names of gate, up and down in an expert. */
function experts(module: string, names: readonly [string, string, string]): GgufNaming[] {
  const [gate, up, down] = names;
  const each = (gguf: string, name: string, half?: 0 | 1): GgufNaming => ({
    gguf: `blk.#.ffn_${gguf}_exps.weight`,
    name: `${module}.experts.@.${name}.weight`,
    change: 'experts',
    packed: {
      name: `${module}.experts.${half === undefined ? 'down_proj' : 'gate_up_proj'}`,
      ...(half !== undefined && { half }),
    },
  });
  return [
    tensor('blk.#.ffn_gate_inp.weight', `${module}.gate.weight`),
    each('gate', gate, 0),
    each('up', up, 1),
    each('down', down),
  ];
}

const PROJECTIONS = ['gate_proj', 'up_proj', 'down_proj'] as const;

const mlpExperts = experts(`${LAYER}.mlp`, PROJECTIONS);

const sharedExpert = (module: string) => [
  tensor('blk.#.ffn_gate_shexp.weight', `${LAYER}.mlp.${module}.gate_proj.weight`),
  tensor('blk.#.ffn_up_shexp.weight', `${LAYER}.mlp.${module}.up_proj.weight`),
  tensor('blk.#.ffn_down_shexp.weight', `${LAYER}.mlp.${module}.down_proj.weight`),
];

/** Tensors of an architecture with the names of a family. */
export const TENSOR_NAMES = {
  llama: [
    ...ends(),
    ...preNorms,
    ...attentionNames(true),
    ...mlp,
    ...experts(`${LAYER}.block_sparse_moe`, ['w1', 'w3', 'w2']),
    // The names in transformers 5.
    ...experts(`${LAYER}.mlp`, PROJECTIONS),
  ],
  smollm3: [...ends(), ...preNorms, ...attentionNames(true), ...mlp],
  qwen2: [...ends(), ...preNorms, ...attentionNames(), ...mlp],
  qwen2moe: [
    ...ends(),
    ...preNorms,
    ...attentionNames(),
    ...mlp,
    ...mlpExperts,
    ...sharedExpert('shared_expert'),
    tensor('blk.#.ffn_gate_inp_shexp.weight', `${LAYER}.mlp.shared_expert_gate.weight`, 'column'),
  ],
  qwen3: [...ends(), ...preNorms, ...attentionNames(), ...headNorms(), ...mlp],
  qwen3moe: [...ends(), ...preNorms, ...attentionNames(), ...headNorms(), ...mlp, ...mlpExperts],
  gemma: [
    ...ends('plusOne'),
    ...preNorms.map(({ gguf, name }) => tensor(gguf, name, 'plusOne')),
    ...attentionNames(),
    ...mlp,
  ],
  gemma2: [...ends('plusOne'), ...sandwichNorms, ...attentionNames(), ...mlp],
  gemma3: [
    ...ends('plusOne'),
    ...sandwichNorms,
    ...attentionNames(),
    ...headNorms('plusOne'),
    ...mlp,
  ],
  olmo2: [
    ...ends(),
    ...attentionNames(),
    ...headNorms(),
    tensor('blk.#.post_attention_norm.weight', `${LAYER}.post_attention_layernorm.weight`),
    tensor('blk.#.post_ffw_norm.weight', `${LAYER}.post_feedforward_layernorm.weight`),
    ...mlp,
  ],
  phi3: [
    ...ends(),
    ...preNorms,
    tensor('blk.#.attn_qkv.weight', `${LAYER}.self_attn.qkv_proj.weight`),
    tensor('blk.#.attn_output.weight', `${LAYER}.self_attn.o_proj.weight`),
    tensor('blk.#.ffn_up.weight', `${LAYER}.mlp.gate_up_proj.weight`),
    tensor('blk.#.ffn_down.weight', `${LAYER}.mlp.down_proj.weight`),
  ],
  deepseek2: [
    ...ends(),
    ...preNorms,
    tensor('blk.#.attn_q.weight', `${LAYER}.self_attn.q_proj.weight`),
    tensor('blk.#.attn_q_a.weight', `${LAYER}.self_attn.q_a_proj.weight`),
    tensor('blk.#.attn_q_a_norm.weight', `${LAYER}.self_attn.q_a_layernorm.weight`),
    tensor('blk.#.attn_q_b.weight', `${LAYER}.self_attn.q_b_proj.weight`),
    tensor('blk.#.attn_kv_a_mqa.weight', `${LAYER}.self_attn.kv_a_proj_with_mqa.weight`),
    tensor('blk.#.attn_kv_a_norm.weight', `${LAYER}.self_attn.kv_a_layernorm.weight`),
    tensor('blk.#.attn_kv_b.weight', `${LAYER}.self_attn.kv_b_proj.weight`),
    tensor('blk.#.attn_output.weight', `${LAYER}.self_attn.o_proj.weight`),
    ...mlp,
    ...mlpExperts,
    ...sharedExpert('shared_experts'),
    tensor('blk.#.exp_probs_b.bias', `${LAYER}.mlp.gate.e_score_correction_bias`),
  ],
  gpt2: [
    tensor('token_embd.weight', 'transformer.wte.weight'),
    tensor('position_embd.weight', 'transformer.wpe.weight'),
    ...both('output_norm', 'transformer.ln_f'),
    tensor('output.weight', 'lm_head.weight'),
    ...both('blk.#.attn_norm', 'transformer.h.#.ln_1'),
    ...both('blk.#.attn_qkv', 'transformer.h.#.attn.c_attn', 'transposed'),
    ...both('blk.#.attn_output', 'transformer.h.#.attn.c_proj', 'transposed'),
    ...both('blk.#.ffn_norm', 'transformer.h.#.ln_2'),
    ...both('blk.#.ffn_up', 'transformer.h.#.mlp.c_fc', 'transposed'),
    ...both('blk.#.ffn_down', 'transformer.h.#.mlp.c_proj', 'transposed'),
  ],
  gptneox: [
    tensor('token_embd.weight', 'gpt_neox.embed_in.weight'),
    ...both('output_norm', 'gpt_neox.final_layer_norm'),
    tensor('output.weight', 'embed_out.weight'),
    // Its name in transformers 5.
    tensor('output.weight', 'lm_head.weight'),
    ...both('blk.#.attn_norm', 'gpt_neox.layers.#.input_layernorm'),
    ...both('blk.#.attn_qkv', 'gpt_neox.layers.#.attention.query_key_value', 'heads'),
    ...both('blk.#.attn_output', 'gpt_neox.layers.#.attention.dense'),
    ...both('blk.#.ffn_norm', 'gpt_neox.layers.#.post_attention_layernorm'),
    ...both('blk.#.ffn_up', 'gpt_neox.layers.#.mlp.dense_h_to_4h'),
    ...both('blk.#.ffn_down', 'gpt_neox.layers.#.mlp.dense_4h_to_h'),
  ],
  bloom: [
    tensor('token_embd.weight', 'transformer.word_embeddings.weight'),
    ...both('token_embd_norm', 'transformer.word_embeddings_layernorm'),
    ...both('output_norm', 'transformer.ln_f'),
    tensor('output.weight', 'lm_head.weight'),
    ...both('blk.#.attn_norm', 'transformer.h.#.input_layernorm'),
    ...both('blk.#.attn_qkv', 'transformer.h.#.self_attention.query_key_value', 'heads'),
    ...both('blk.#.attn_output', 'transformer.h.#.self_attention.dense'),
    ...both('blk.#.ffn_norm', 'transformer.h.#.post_attention_layernorm'),
    ...both('blk.#.ffn_up', 'transformer.h.#.mlp.dense_h_to_4h'),
    ...both('blk.#.ffn_down', 'transformer.h.#.mlp.dense_4h_to_h'),
  ],
} as const satisfies Record<string, readonly GgufNaming[]>;

/** Architectures of llama.cpp whose models belong to a family here. */
export type GgufArchitecture = keyof typeof TENSOR_NAMES;

export const isGgufArchitecture = (name: unknown): name is GgufArchitecture =>
  typeof name === 'string' && Object.hasOwn(TENSOR_NAMES, name);

/** Architecture that a family is written as; families that are missing cannot be written. */
export const WRITTEN_AS: Readonly<Partial<Record<FamilyName, GgufArchitecture>>> = {
  llama: 'llama',
  mistral: 'llama',
  mixtral: 'llama',
  smollm3: 'smollm3',
  qwen2: 'qwen2',
  qwen2_moe: 'qwen2moe',
  qwen3: 'qwen3',
  qwen3_moe: 'qwen3moe',
  gemma: 'gemma',
  gemma2: 'gemma2',
  gemma3_text: 'gemma3',
  olmo2: 'olmo2',
  phi3: 'phi3',
  gpt2: 'gpt2',
  gpt_neox: 'gptneox',
  bloom: 'bloom',
};

/** Layers of the models in which Gemma divides scores by the root of hidden / heads: 27B. */
export const LARGEST_GEMMA: Readonly<Partial<Record<GgufArchitecture, number>>> = {
  gemma2: 46,
  gemma3: 62,
};

/** Tensors that follow from the config, which a reader of values leaves out. */
export const COMPUTED_TENSORS = [
  'rope_freqs.weight',
  'rope_factors_long.weight',
  'rope_factors_short.weight',
] as const;
