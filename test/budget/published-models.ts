/** The models of fixtures/published-counts.json, described from the sizes that stand there. */
import { type FamilyName, loadFamily } from '../../src/architecture/families.js';
import type { LanguageModel } from '../../src/architecture/layer.js';
import { readJson } from '../fixtures.js';

/** Sizes and counts of a published model; which there are depends on its kind. */
export interface PublishedModel {
  readonly model: string;
  readonly arch: 'gpt2' | 'bloom' | 'gptneox' | 'llama' | 'moe';
  readonly total: number;
  readonly active_incl_embeddings?: number;
  readonly active_excl_input_embedding?: number;
  readonly non_embedding?: number;
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly vocab: number;
  readonly [size: string]: unknown;
}

export const publishedModels = () => readJson<PublishedModel[]>('fixtures/published-counts.json');

/** Families by how names of models begin; the first that fits. */
const BY_NAME: readonly (readonly [start: string, FamilyName])[] = [
  ['mistral', 'mistral'],
  ['gemma-2-', 'gemma2'],
  ['gemma', 'gemma'],
  ['phi-3', 'phi3'],
  ['qwen3-30b-a3b', 'qwen3_moe'],
  ['qwen1.5-moe', 'qwen2_moe'],
  ['qwen2.5', 'qwen2'],
  ['qwen3', 'qwen3'],
  ['mixtral', 'mixtral'],
  ['deepseek', 'deepseek_v3'],
  ['llama', 'llama'],
  ['gpt2', 'gpt2'],
  ['bloom', 'bloom'],
  ['pythia', 'gpt_neox'],
  ['gpt-neox', 'gpt_neox'],
];

export const familyOf = ({ model }: PublishedModel): FamilyName => {
  const [, family] = BY_NAME.find(([start]) => model.startsWith(start)) ?? [];
  if (!family) throw new Error(`of what family is ${model}?`);
  return family;
};

/** Keys of a `config.json` by what the list calls them; those of GPT-2 and Bloom are others. */
const KEYS: Readonly<Record<string, string>> = {
  layers: 'num_hidden_layers',
  hidden: 'hidden_size',
  heads: 'num_attention_heads',
  kv_heads: 'num_key_value_heads',
  head_dim: 'head_dim',
  ffn: 'intermediate_size',
  dense_ffn: 'intermediate_size',
  expert_ffn: 'moe_intermediate_size',
  shared_expert_ffn: 'shared_expert_intermediate_size',
  vocab: 'vocab_size',
  tied: 'tie_word_embeddings',
  experts: 'num_experts',
  experts_per_token: 'num_experts_per_tok',
  dense_layers: 'first_k_dense_replace',
  shared_experts: 'n_shared_experts',
  q_lora_rank: 'q_lora_rank',
  kv_lora_rank: 'kv_lora_rank',
  qk_nope_head_dim: 'qk_nope_head_dim',
  qk_rope_head_dim: 'qk_rope_head_dim',
  v_head_dim: 'v_head_dim',
};

const OTHER_KEYS: Partial<Record<FamilyName, Readonly<Record<string, string>>>> = {
  gpt2: {
    layers: 'n_layer',
    hidden: 'n_embd',
    heads: 'n_head',
    ffn: 'n_inner',
    positions: 'n_positions',
  },
  bloom: { layers: 'n_layer', heads: 'n_head' },
  mixtral: { expert_ffn: 'intermediate_size', experts: 'num_local_experts' },
  deepseek_v3: { experts: 'n_routed_experts' },
};

/** @param more Settings that are not in the list. */
export async function modelOf(
  published: PublishedModel,
  more: Readonly<Record<string, unknown>> = {},
): Promise<LanguageModel> {
  const name = familyOf(published);
  const family = await loadFamily(name);
  const keys = { ...KEYS, ...OTHER_KEYS[name] };
  const config = Object.fromEntries(
    Object.entries(published).flatMap(([size, value]) => {
      const key = keys[size];
      return key === undefined ? [] : [[key, value]];
    }),
  );
  const model = { ...family.fromHuggingFace?.({ ...config, ...more }), family: name };
  return family.build(family.schema.parse({ model }));
}

export async function namedModel(
  name: string,
  more?: Readonly<Record<string, unknown>>,
): Promise<LanguageModel> {
  const published = publishedModels().find(({ model }) => model === name);
  if (!published) throw new Error(`${name} is not in the list`);
  return modelOf(published, more);
}
