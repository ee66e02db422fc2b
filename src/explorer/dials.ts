/** Sizes of a model that sliders and switches change, by the keys of its family. */
import type { DescribedModel } from './answers.js';

/** A size with the values that its slider passes through, or a switch. */
export interface Dial {
  readonly label: string;
  /** Key in the `model` section. */
  readonly key: string;
  readonly value: number | boolean;
  /** Growing values of a slider, with the present one; absent for a switch. */
  readonly stops?: readonly number[];
}

/** Whole numbers from a value on: each list of rows is a step and the value up to which it is used. */
function dialValues(
  from: number,
  ...rows: readonly (readonly [step: number, to: number])[]
): number[] {
  const values: number[] = [];
  let at = from;
  for (const [step, to] of rows) for (; at <= to; at += step) values.push(at);
  return values;
}

const LAYERS = dialValues(1, [1, 127], [8, 256]);
const WIDTHS = dialValues(64, [64, 1023], [128, 4095], [256, 8191], [512, 32768]);
const HIDDEN_WIDTHS = dialValues(64, [64, 2047], [256, 16383], [1024, 65536]);
const COUNTS = dialValues(1, [1, 31], [4, 63], [8, 256]);
const EXPERTS = [1, 2, 4, 8, 16, 24, 32, 48, 60, 64, 72, 96, 128, 160, 192, 256, 320, 384, 512];
const CHOSEN = dialValues(1, [1, 16]);
const RANKS = [1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096];
const VOCABULARIES = [
  ...[256, 1024, 2048, 4096, 6400, 8192, 16384, 24576, 32000, 32768, 40960, 50304, 50432, 65536],
  ...[81920, 102400, 128256, 131072, 151936, 180224, 200064, 222208, 248320, 256000, 262144],
];
const POSITIONS = Array.from({ length: 15 }, (_, index) => 2 ** (index + 7));

/** Usual keys of sizes, for families whose sizes no search changes. */
const USUAL_KEYS = {
  depth: ['num_hidden_layers', 'num_layers', 'n_layer', 'n_layers', 'decoder_layers'],
  width: ['hidden_size', 'd_model', 'n_embd'],
  feedForward: ['intermediate_size', 'ffn_hidden_size', 'n_inner', 'decoder_ffn_dim'],
  heads: ['num_attention_heads', 'num_heads', 'n_head', 'n_heads', 'decoder_attention_heads'],
  keyValueHeads: ['num_key_value_heads', 'num_kv_heads'],
  vocabulary: ['vocab_size'],
  positions: ['max_position_embeddings', 'n_positions', 'max_seq_len', 'seq_length'],
};

/** Keys of experts in the families, whose names differ. */
const EXPERT_KEYS = [
  ...['num_experts', 'n_routed_experts', 'num_local_experts', 'moe_num_experts'],
  'n_experts',
];
const CHOSEN_KEYS = [
  ...['num_experts_per_tok', 'moe_topk', 'moe_top_k', 'top_k_experts', 'moe_k'],
  'num_experts_per_token',
];
const RANK_KEYS = ['srte_factorized_rank', 'q_lora_rank', 'kv_lora_rank', 'gate_rank'];
const SHARING_KEYS = ['srte_share_across_layers', 'use_moe'];
const TYING_KEYS = ['tie_word_embeddings'];

const LABELS: Readonly<Record<string, string>> = {
  srte_factorized_rank: 'SRTE rank',
  q_lora_rank: 'Query rank',
  kv_lora_rank: 'KV rank',
  gate_rank: 'Gate rank',
  srte_share_across_layers: 'Share the SRTE',
  use_moe: 'Mixture of experts',
  tie_word_embeddings: 'Tie embedding and head',
};

/** The dials of a described model, in the order of the page. */
export function dialsOf({ dimensions, document: { model } }: DescribedModel): Dial[] {
  const numberAt = (key: string | undefined) => {
    const value = key === undefined ? undefined : model[key];
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined;
  };
  const slider = (
    label: string,
    key: string | undefined,
    stops: readonly number[],
    follows?: number,
  ): Dial[] => {
    const value = numberAt(key) ?? (key !== undefined && key in model ? follows : undefined);
    if (key === undefined || value === undefined) return [];
    return [{ label, key, value, stops: withStop(stops, value) }];
  };
  const switches = (key: string): Dial[] => {
    const value = model[key];
    return typeof value === 'boolean' ? [{ label: LABELS[key] ?? key, key, value }] : [];
  };
  const firstOf = (keys: readonly string[]) => keys.find((key) => numberAt(key) !== undefined);
  const usual = (name: keyof typeof USUAL_KEYS) =>
    USUAL_KEYS[name].find((key) => Object.hasOwn(model, key));
  const headsKey = dimensions?.heads ?? usual('heads');
  const widthKey = dimensions?.width ?? usual('width');
  const heads = numberAt(headsKey);
  const width = numberAt(widthKey);
  const feedForwardKey = dimensions ? dimensions.feedForward?.key : usual('feedForward');
  const keyValueKey = dimensions ? dimensions.keyValueHeads : usual('keyValueHeads');
  const ranks = RANK_KEYS.flatMap((key) => {
    const stops = key === 'srte_factorized_rank' ? [0, ...RANKS] : RANKS;
    return slider(LABELS[key] ?? key, key, stops);
  });
  return [
    ...slider('Depth', dimensions?.depth ?? usual('depth'), LAYERS),
    ...slider('Width', widthKey, WIDTHS),
    ...slider('Feed-forward width', feedForwardKey, HIDDEN_WIDTHS),
    ...slider('Expert width', 'moe_intermediate_size', HIDDEN_WIDTHS),
    ...slider('Heads', headsKey, dividing(COUNTS, width)),
    ...slider('KV heads', keyValueKey, dividing(COUNTS, heads), heads),
    ...slider('Experts', firstOf(EXPERT_KEYS), EXPERTS),
    ...slider('Experts per token', firstOf(CHOSEN_KEYS), CHOSEN),
    ...ranks,
    ...slider('Vocabulary', dimensions?.vocabulary ?? usual('vocabulary'), VOCABULARIES),
    ...slider('Positions', dimensions?.positions ?? usual('positions'), POSITIONS),
    ...[...SHARING_KEYS, ...TYING_KEYS].flatMap(switches),
  ];
}

/** The numbers that divide another one, so that a slider makes no invalid model. */
const dividing = (numbers: readonly number[], whole: number | undefined): number[] =>
  numbers.filter((each) => whole === undefined || (each <= whole && whole % each === 0));

/** Values of a slider with the present one. */
export const withStop = (stops: readonly number[], value: number): number[] =>
  [...new Set([...stops, value])].sort((a, b) => a - b);
