/**
 * Scales a Hugging Face model down to a small one of the same structure, using the keys of its document.
 * The number of heads shrinks with the width. The head width stays, because the rotation depends on it.
 */
import type { FamilyDocument, ProxyBounds, ProxySetting } from '../family.js';

/** Upper bounds of a proxy's values, if its structure allows them. */
const PROXY = { hidden: 256, layers: 6, vocabulary: 1024, positions: 2048, experts: 8 } as const;

/** Names of the same size in different families. */
const KEYS = {
  hidden: ['hidden_size', 'n_embd', 'd_model'],
  heads: ['num_attention_heads', 'n_head', 'num_heads', 'n_heads'],
  keyValueHeads: ['num_key_value_heads', 'num_kv_heads'],
  layers: ['num_hidden_layers', 'n_layer', 'num_layers', 'n_layers'],
  experts: ['num_local_experts', 'num_experts', 'n_routed_experts', 'moe_num_experts'],
  chosenExperts: ['num_experts_per_tok', 'moe_k'],
} as const satisfies Record<string, readonly string[]>;

/** Widths and ranks that shrink with the model width. */
const IN_PROPORTION = [
  'intermediate_size',
  'intermediate_size_mlp',
  'n_inner',
  'ffn_dim',
  'ffn_hidden_size',
  'word_embed_proj_dim',
  'moe_intermediate_size',
  'moe_latent_size',
  'moe_shared_expert_intermediate_size',
  'shared_intermediate_size',
  'shared_expert_intermediate_size',
  'q_lora_rank',
  'kv_lora_rank',
] as const;

/** Lists with an entry per layer. */
const LAYER_LISTS = [
  'layer_types',
  'layers_block_type',
  'no_rope_layers',
  'activation_sparsity_pattern',
] as const;

type Model = Readonly<Record<string, unknown>>;

/** Implements `Family.scaledDownProxy`. It only changes keys that the document sets. */
export function decoderProxy(
  { model }: FamilyDocument,
  tokens: number,
  { width = PROXY.hidden, layers = PROXY.layers, experts }: ProxyBounds = {},
): readonly ProxySetting[] {
  const widths = widthSettings(model, width);
  const settings = [
    ...widths,
    ...stateSpaceSettings(model, widths),
    ...layerSettings(model, sharedLayers(model) > 0 ? PROXY.layers : layers),
    ...expertSettings(model, experts),
    ...atMost(model, 'vocab_size', PROXY.vocabulary),
    ...atMost(model, 'vocab_size_per_layer_input', PROXY.vocabulary),
    // Only learned positions are stored; other kinds can keep their number.
    ...atMost(model, 'n_positions', Math.max(tokens, PROXY.positions)),
    // Keeps the window shorter than the context.
    ...atMost(model, 'sliding_window', Math.max(1, Math.floor(tokens / 2))),
    ...atMost(model, 'attention_chunk_size', Math.max(1, Math.floor(tokens / 2))),
    ...sharedKeySettings(model),
  ];
  return settings.map(({ path, value }) => ({ path: `model.${path}`, value }));
}

const numberAt = (model: Model, key: string): number | undefined => {
  const value = model[key];
  return typeof value === 'number' ? value : undefined;
};

const keyIn = (model: Model, keys: readonly string[]): string =>
  keys.find((key) => numberAt(model, key) !== undefined) ?? '';

function atMost(model: Model, key: string, most: number): ProxySetting[] {
  const value = numberAt(model, key);
  return value === undefined ? [] : [{ path: key, value: Math.min(value, most) }];
}

/** Reduces key-value heads, then query heads per key-value head; keeps at least two of each if there were two. */
function widthSettings(model: Model, width: number): ProxySetting[] {
  const [hiddenKey, headsKey] = [keyIn(model, KEYS.hidden), keyIn(model, KEYS.heads)];
  if (headsKey === '') return atMost(model, hiddenKey, width);
  const [hidden = 1, heads = 1] = [numberAt(model, hiddenKey), numberAt(model, headsKey)];
  const keyHeadsKey = keyIn(model, KEYS.keyValueHeads);
  const keyValueHeads = numberAt(model, keyHeadsKey);
  const shrink = width / hidden;
  const keyHeads = proxySize(keyValueHeads ?? heads, shrink);
  const perKeyHead = heads / (keyValueHeads ?? heads);
  const left = keyHeads / (keyValueHeads ?? heads);
  const queries = proxySize(perKeyHead, shrink / left);
  const share = (left * queries) / perKeyHead;
  const smaller = (value: number) => Math.max(1, Math.round(value * share));
  return [
    { path: hiddenKey, value: smaller(hidden) },
    { path: headsKey, value: keyHeads * queries },
    ...(keyValueHeads === undefined ? [] : [{ path: keyHeadsKey, value: keyHeads }]),
    ...IN_PROPORTION.flatMap((path) => {
      const value = numberAt(model, path);
      return value === undefined ? [] : [{ path, value: smaller(value) }];
    }),
  ];
}

/** A share of `whole`, but at least two if there were two. */
const proxySize = (whole: number, share: number): number =>
  Math.min(whole, Math.max(2, Math.floor(whole * share)));

/**
 * Heads of Mamba-2 layers as wide as before, for the smaller width. With other keys of the width, they are the same
 * layers: `num_heads` belongs to models without attention.
 */
function stateSpaceSettings(model: Model, widths: readonly ProxySetting[]): ProxySetting[] {
  const key = keyIn(model, ['mamba_n_heads', 'num_heads']);
  const heads = numberAt(model, key);
  const hidden = numberAt(model, 'hidden_size');
  const smaller = widths.find(({ path }) => path === 'hidden_size')?.value;
  if (heads === undefined || hidden === undefined || typeof smaller !== 'number') return [];
  const expand = numberAt(model, 'mamba_expand') ?? numberAt(model, 'expand') ?? 1;
  const given = numberAt(model, 'mamba_d_ssm');
  const headDim = Math.floor((given ?? expand * hidden) / heads);
  const inner = expand * smaller;
  // If heads as wide as before do not fill the inner width, their width becomes a divisor of it.
  const width = inner % headDim === 0 ? headDim : greatestCommonDivisor(inner, headDim);
  const groupsKey = keyIn(model, ['mamba_n_groups', 'n_groups']);
  const groups = numberAt(model, groupsKey) ?? 1;
  return [
    { path: key, value: inner / width },
    { path: key === 'num_heads' ? 'head_dim' : 'mamba_d_head', value: width },
    { path: groupsKey, value: greatestCommonDivisor(groups, inner / width) },
    ...(given === undefined ? [] : [{ path: 'mamba_d_ssm', value: inner }]),
  ];
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The first entries of a list; kinds that are missing among them take the place of the last. */
function shortened(list: readonly unknown[], length: number): readonly unknown[] {
  const first = list.slice(0, length);
  const missing = [...new Set(list)].filter((kind) => !first.includes(kind));
  return missing.length === 0 ? first : [...first.slice(0, length - missing.length), ...missing];
}

/** Reduces the layers and shortens the lists per layer. */
function layerSettings(model: Model, most: number): ProxySetting[] {
  const key = keyIn(model, KEYS.layers);
  const before = numberAt(model, key) ?? 1;
  const layers = Math.min(before, most);
  const dense = model.mlp_only_layers;
  return [
    ...(key === '' ? [] : [{ path: key, value: layers }]),
    ...atMost(model, 'first_k_dense_replace', Math.floor(layers / 2)),
    ...atMost(model, 'max_window_layers', Math.floor(layers / 2)),
    ...LAYER_LISTS.flatMap((path) => {
      const list = model[path];
      return Array.isArray(list) ? [{ path, value: shortened(list, most) }] : [];
    }),
    ...(Array.isArray(model.attn_layer_indices) && model.attn_layer_indices.length > 0
      ? [{ path: 'attn_layer_indices', value: [Math.floor(layers / 2)] }]
      : []),
    ...(Array.isArray(dense)
      ? [{ path: 'mlp_only_layers', value: dense.filter((layer) => layer < layers) }]
      : []),
  ];
}

/** Layers that read keys and values of others. */
const sharedLayers = (model: Model): number => numberAt(model, 'num_kv_shared_layers') ?? 0;

/** Layers of both kinds before those that read keys and values of others. */
function sharedKeySettings(model: Model): ProxySetting[] {
  const layers = numberAt(model, keyIn(model, KEYS.layers)) ?? 1;
  if (sharedLayers(model) === 0 || layers <= PROXY.layers) return [];
  const kinds = Array.from({ length: PROXY.layers }, (_, index) =>
    index % 2 === 0 ? 'sliding_attention' : 'full_attention',
  );
  return [
    { path: 'layer_types', value: kinds },
    { path: 'num_kv_shared_layers', value: PROXY.layers / 3 },
  ];
}

/** Keeps the experts per token; each group keeps its share of experts, at least two. */
function expertSettings(model: Model, most: number | undefined): ProxySetting[] {
  const key = keyIn(model, KEYS.experts);
  const experts = numberAt(model, key);
  if (experts === undefined) return [];
  const chosen = numberAt(model, keyIn(model, KEYS.chosenExperts)) ?? 1;
  const groups = numberAt(model, 'n_group') ?? 1;
  const kept = numberAt(model, 'topk_group') ?? 1;
  const perGroup =
    groups > 1
      ? Math.max(2, Math.ceil(chosen / kept))
      : most === undefined
        ? Math.max(2 * chosen, PROXY.experts)
        : Math.max(chosen + 1, most);
  return [{ path: key, value: Math.min(experts, groups * perGroup) }];
}
