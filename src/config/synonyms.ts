/** Names that configuration formats have for the sizes of a model, and what they have in common. */
import { nearest } from './nearest.js';

/** Each row has one size: as `config.json` files, Meta's `params.json`, GGUF, nanoGPT and Megatron name it. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['num_hidden_layers', 'num_layers', 'n_layers', 'n_layer', 'block_count', 'depth', 'layers'],
  ['num_attention_heads', 'num_heads', 'n_heads', 'n_head', 'head_count', 'heads'],
  ['num_key_value_heads', 'num_kv_heads', 'n_kv_heads', 'n_kv_head', 'num_query_groups'],
  ['hidden_size', 'n_embd', 'd_model', 'dim', 'hidden_dim', 'embed_dim', 'embedding_length'],
  ['intermediate_size', 'n_inner', 'd_ff', 'ffn_dim', 'ffn_hidden_size', 'feed_forward_length'],
  ['vocab_size', 'vocab', 'n_vocab', 'vocabulary', 'vocabulary_size', 'padded_vocab_size'],
  [
    'max_position_embeddings',
    'n_positions',
    'n_ctx',
    'max_seq_len',
    'max_seq_length',
    'max_sequence_length',
    'seq_len',
    'seq_length',
    'context_length',
    'block_size',
  ],
  ['sliding_window', 'window_size'],
  ['num_experts', 'num_local_experts', 'n_routed_experts', 'n_experts'],
  ['num_experts_per_tok', 'n_experts_per_tok', 'n_activated_experts', 'moe_top_k'],
  ['rms_norm_eps', 'layer_norm_eps', 'layer_norm_epsilon', 'norm_eps'],
  ['hidden_act', 'hidden_activation', 'activation_function'],
  ['rope_theta', 'rotary_emb_base', 'rope_freq_base', 'rope_base'],
  ['tie_word_embeddings', 'tie_embeddings', 'weight_tying'],
];

/** The one of `known` that means what another format calls `key`. */
export function synonymAmong(key: string, known: readonly string[]): string | undefined {
  const row = SYNONYMS.find((names) => names.includes(key));
  return row && known.find((each) => each !== key && row.includes(each));
}

/** The one of `known` that another format calls nearly `key`. */
export function nearSynonymAmong(key: string, known: readonly string[]): string | undefined {
  const rows = SYNONYMS.filter((names) => names.some((name) => known.includes(name)));
  const near = nearest(key, rows.flat());
  return near && (known.includes(near) ? near : synonymAmong(near, known));
}
