/**
 * A small model of the same structure as one of the Hugging Face kind, read off the keys that a document has.
 * Widths shrink with the number of heads, whose own width stays: what rotates them goes by it.
 */
import type { ProxySetting } from '../family.js';

/** Upper bounds of a proxy's values, where its structure allows. */
const PROXY = { hidden: 256, layers: 6, vocabulary: 1024, positions: 2048, experts: 8 } as const;

/** Keys of the same size in different families. */
const KEYS = {
  hidden: ['hidden_size', 'n_embd'],
  heads: ['num_attention_heads', 'n_head'],
  layers: ['num_hidden_layers', 'n_layer'],
  experts: ['num_local_experts', 'num_experts', 'n_routed_experts'],
} as const satisfies Record<string, readonly string[]>;

/** Widths and ranks that shrink in proportion to the width of the model. */
const IN_PROPORTION = [
  'intermediate_size',
  'n_inner',
  'moe_intermediate_size',
  'shared_expert_intermediate_size',
  'q_lora_rank',
  'kv_lora_rank',
] as const;

/** Lists that say something of every layer. */
const LAYER_LISTS = ['layer_types', 'no_rope_layers'] as const;

type Model = Readonly<Record<string, unknown>>;

/** See `Family.scaledDownProxy`. Of the keys that are named here it changes those that a document gives. */
export function decoderProxy(document: unknown, tokens: number): readonly ProxySetting[] {
  const { model } = document as { readonly model: Model };
  const settings = [
    ...widthSettings(model),
    ...layerSettings(model),
    ...expertSettings(model),
    ...atMost(model, 'vocab_size', PROXY.vocabulary),
    // Only learned positions are stored; all others may be as many as they are.
    ...atMost(model, 'n_positions', Math.max(tokens, PROXY.positions)),
    // So that the window's rule shows.
    ...atMost(model, 'sliding_window', Math.max(1, Math.floor(tokens / 2))),
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

/** Fewer heads of keys and values, then fewer that share one; of each two at least, where there were. */
function widthSettings(model: Model): ProxySetting[] {
  const [hiddenKey, headsKey] = [keyIn(model, KEYS.hidden), keyIn(model, KEYS.heads)];
  const [hidden = 1, heads = 1] = [numberAt(model, hiddenKey), numberAt(model, headsKey)];
  const keyValueHeads = numberAt(model, 'num_key_value_heads');
  const shrink = PROXY.hidden / hidden;
  const keyHeads = shareOf(keyValueHeads ?? heads, shrink);
  const perKeyHead = heads / (keyValueHeads ?? heads);
  const left = keyHeads / (keyValueHeads ?? heads);
  const queries = shareOf(perKeyHead, shrink / left);
  const share = (left * queries) / perKeyHead;
  const smaller = (value: number) => Math.max(1, Math.round(value * share));
  return [
    { path: hiddenKey, value: smaller(hidden) },
    { path: headsKey, value: keyHeads * queries },
    ...(keyValueHeads === undefined ? [] : [{ path: 'num_key_value_heads', value: keyHeads }]),
    ...IN_PROPORTION.flatMap((path) => {
      const value = numberAt(model, path);
      return value === undefined ? [] : [{ path, value: smaller(value) }];
    }),
  ];
}

/** A share of `whole`, but at least two where there were two. */
const shareOf = (whole: number, share: number): number =>
  Math.min(whole, Math.max(2, Math.floor(whole * share)));

/** Fewer layers, and of each list what it says of them. */
function layerSettings(model: Model): ProxySetting[] {
  const key = keyIn(model, KEYS.layers);
  const before = numberAt(model, key) ?? 1;
  const layers = Math.min(before, PROXY.layers);
  const dense = model.mlp_only_layers;
  return [
    { path: key, value: layers },
    ...atMost(model, 'first_k_dense_replace', Math.floor(layers / 2)),
    ...atMost(model, 'max_window_layers', Math.floor(layers / 2)),
    ...LAYER_LISTS.flatMap((path) => {
      const list = model[path];
      return Array.isArray(list) ? [{ path, value: list.slice(0, layers) }] : [];
    }),
    ...(Array.isArray(dense)
      ? [{ path: 'mlp_only_layers', value: dense.filter((layer) => layer < layers) }]
      : []),
  ];
}

/** As many for a token as before; of groups of them each holds its share, two at least. */
function expertSettings(model: Model): ProxySetting[] {
  const key = keyIn(model, KEYS.experts);
  const experts = numberAt(model, key);
  if (experts === undefined) return [];
  const chosen = numberAt(model, 'num_experts_per_tok') ?? 1;
  const groups = numberAt(model, 'n_group') ?? 1;
  const kept = numberAt(model, 'topk_group') ?? 1;
  const perGroup =
    groups > 1 ? Math.max(2, Math.ceil(chosen / kept)) : Math.max(2 * chosen, PROXY.experts);
  return [{ path: key, value: Math.min(experts, groups * perGroup) }];
}
