import { distance } from 'fastest-levenshtein';

/** Normalizes letters that people confuse when they remember a name. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll('-', '_');
}

/** Whether two names differ only in letter order, which counts as one typo. */
function isSwapped(a: string, b: string): boolean {
  return a !== b && a.length === b.length && [...a].sort().join() === [...b].sort().join();
}

/**
 * Most likely intended candidate for `name`, or undefined when none is close. Up to a third of the letters may be
 * wrong, or some words missing. Ignores case, and treats `-` as `_`.
 */
export const nearest = (name: string, candidates: Iterable<string>): string | undefined =>
  misspelled(name, candidates) ?? onlyOneWith(fold(name), candidates);

const digitsOf = (name: string) => name.replaceAll(/\D/g, '');

/** `nearest` among candidates with the same digits: `int8` and `zero3` are not misspellings of `int3` and `zero`. */
export function nearestWithDigits(name: string, candidates: Iterable<string>): string | undefined {
  const digits = digitsOf(name);
  return nearest(
    name,
    [...candidates].filter((each) => digitsOf(each) === digits),
  );
}

/**
 * Nearest candidate for `name` with at most a third of the letters wrong. Ignores case, and treats `-` as `_`.
 * @param most Largest number of wrong letters.
 */
export function misspelled(
  name: string,
  candidates: Iterable<string>,
  most = Number.POSITIVE_INFINITY,
): string | undefined {
  const foldedQuery = fold(name);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const folded = fold(candidate);
    const [shorter, longer] = [foldedQuery.length, folded.length].sort((a, b) => a - b);
    // By the shorter name: two of the five letters of "heads" are too many for "threads".
    const third = Math.max(1, Math.floor((shorter ?? 0) / 3));
    const allowed = (longer ?? 0) <= 2 ? 0 : Math.min(most, third);
    // Ruling out candidates by length avoids work on very long names.
    if (Math.abs(foldedQuery.length - folded.length) > allowed) continue;
    const letters = isSwapped(foldedQuery, folded) ? 1 : distance(foldedQuery, folded);
    if (letters <= allowed && letters < bestDistance) {
      best = candidate;
      bestDistance = letters;
    }
  }
  return best;
}

/** `num_hidden_layers` for `num_layers`: the candidate with all its words and the fewest others, if only one has so few. */
function onlyOneWith(foldedQuery: string, candidates: Iterable<string>): string | undefined {
  const words = foldedQuery.split('_');
  const fitting = [...candidates]
    .map((candidate) => ({ candidate, own: fold(candidate).split('_') }))
    .filter(({ own }) => words.every((word) => own.includes(word)));
  const fewest = Math.min(...fitting.map(({ own }) => own.length));
  const [first, ...others] = fitting.filter(({ own }) => own.length === fewest);
  return others.length === 0 ? first?.candidate : undefined;
}

// Names for model sizes in configuration formats, and their similarity

/** One size per row, named as in `config.json` files, Meta's `params.json`, GGUF, nanoGPT and Megatron. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['num_hidden_layers', 'num_layers', 'n_layers', 'n_layer', 'block_count', 'depth', 'layers'],
  ['num_attention_heads', 'num_heads', 'num_q_heads', 'n_heads', 'n_head', 'head_count', 'heads'],
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
  ['flash_attn', 'flash', 'flash_attention', 'use_flash_attn', 'use_flash_attention'],
];

/** The known name for `key` of another format. */
export function synonymAmong(key: string, known: readonly string[]): string | undefined {
  const row = SYNONYMS.find((names) => names.includes(key));
  return row && known.find((each) => each !== key && row.includes(each));
}

/** The size that a key of any format names, as `config.json` calls it. */
export const sizeNamed = (key: string): string | undefined =>
  SYNONYMS.find((names) => names.includes(key))?.[0];

/** The known name for a key similar to `key` of another format. */
export function nearSynonymAmong(key: string, known: readonly string[]): string | undefined {
  const rows = SYNONYMS.filter((names) => names.some((name) => known.includes(name)));
  const near = nearest(key, rows.flat());
  return near && (known.includes(near) ? near : synonymAmong(near, known));
}
