/**
 * Models by the flags of Megatron-LM and nanoGPT, which name no config: a model that is here with their sizes. Loaded only for a
 * script without a model. Names and defaults: NVIDIA/Megatron-LM megatron/training/arguments.py.
 */
import { ownValue } from '../../base/values.js';

/** A model that is here, and the keys of its config by the flags of Megatron. */
interface Base {
  readonly model: string;
  /** Flags that a line of this kind of model has. */
  readonly has: readonly string[];
  readonly keys: Readonly<Record<string, string>>;
}

/** Keys of most families. */
const USUAL = {
  'num-layers': 'num_hidden_layers',
  'hidden-size': 'hidden_size',
  'num-attention-heads': 'num_attention_heads',
  'ffn-hidden-size': 'intermediate_size',
  'max-position-embeddings': 'max_position_embeddings',
  'vocab-size': 'vocab_size',
  'padded-vocab-size': 'vocab_size',
} as const;

const GROUPED = {
  ...USUAL,
  'num-query-groups': 'num_key_value_heads',
  'kv-channels': 'head_dim',
  'rotary-base': 'rope_theta',
} as const;

/** The first one whose flags a line has. */
const BASES: readonly Base[] = [
  {
    model: 'qwen3-30b-a3b',
    has: ['swiglu', 'num-experts', 'qk-layernorm'],
    keys: {
      ...GROUPED,
      'num-experts': 'num_experts',
      'moe-router-topk': 'num_experts_per_tok',
      'moe-ffn-hidden-size': 'moe_intermediate_size',
    },
  },
  {
    model: 'mixtral-8x7b',
    has: ['swiglu', 'num-experts'],
    keys: {
      ...GROUPED,
      'num-experts': 'num_local_experts',
      'moe-router-topk': 'num_experts_per_tok',
      'moe-ffn-hidden-size': 'intermediate_size',
    },
  },
  { model: 'qwen3-8b', has: ['swiglu', 'qk-layernorm'], keys: GROUPED },
  { model: 'llama-2-7b', has: ['swiglu'], keys: GROUPED },
  { model: 'pythia-6.9b', has: ['use-rotary-position-embeddings'], keys: USUAL },
  { model: 'pythia-6.9b', has: ['position-embedding-type=rope'], keys: USUAL },
  {
    model: 'gpt2',
    has: [],
    keys: {
      ...{ 'num-layers': 'n_layer', 'hidden-size': 'n_embd', 'num-attention-heads': 'n_head' },
      ...{ 'ffn-hidden-size': 'n_inner', 'max-position-embeddings': 'n_positions' },
      ...{ 'vocab-size': 'vocab_size', 'padded-vocab-size': 'vocab_size' },
    },
  },
];

/** Flags that are sizes of one of them. */
const SIZES: ReadonlySet<string> = new Set(BASES.flatMap(({ keys }) => Object.keys(keys)));

/** Flags that choose the family, or that each of these families has. */
const OF_THE_FAMILY =
  /^(?:swiglu|normalization|qk-layernorm|group-query-attention|use-rotary-position-embeddings|position-embedding-type|untie-embeddings-and-output-weights|disable-bias-linear)$/;

/** Those of them that have a value. */
const VALUED = /^(?:normalization|position-embedding-type)$/;

/** A line with the sizes of a model as settings of one that is here. */
interface SizedLine {
  readonly model: string;
  /** The settings, and then all other words. */
  readonly words: readonly string[];
}

/** Sizes of nanoGPT, on GPT-2 as its own defaults: karpathy/nanoGPT train.py, model.py. */
const NANO: Readonly<Record<string, string>> = {
  n_layer: 'n_layer',
  n_head: 'n_head',
  n_embd: 'n_embd',
  block_size: 'n_positions',
};

/** The model of a line with the sizes of nanoGPT; undefined for one without them. */
export function nanoModel(words: readonly string[]): SizedLine | undefined {
  if (!words.some((word) => /^--n_(?:layer|embd|head)(?:=|$)/.test(word))) return undefined;
  const settings: string[] = [];
  const rest = words.flatMap((word, at) => {
    const sizeIn = (text: string) => ownValue(NANO, /^--(\w+)/.exec(text)?.[1] ?? '');
    const key = sizeIn(word);
    const isValue = !word.startsWith('-') && sizeIn(words[at - 1] ?? '') !== undefined;
    const isOfContext = /^--block_size\b/.test(isValue ? (words[at - 1] ?? '') : word);
    if (key !== undefined) {
      const value = /=(.*)$/.exec(word)?.[1] ?? words[at + 1];
      settings.push('--set', `model.${key}=${value}`);
    }
    return (key === undefined && !isValue) || isOfContext ? [word] : [];
  });
  return { model: 'gpt2', words: [...settings, ...rest] };
}

/** Values by the names of the flags; switches are ''. */
type Values = ReadonlyMap<string, string>;

/** The model of a line with the sizes of Megatron; undefined for one without them. */
export function sizedModel(words: readonly string[]): SizedLine | undefined {
  const values = new Map<string, string>();
  const rest: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    const [, written = '', inline] = /^--([\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    const name = written.replaceAll('_', '-');
    const isSize = SIZES.has(name);
    if (!isSize && !OF_THE_FAMILY.test(name)) {
      rest.push(word);
      continue;
    }
    const hasNext = inline === undefined && (isSize || VALUED.test(name));
    values.set(name, inline ?? (hasNext ? (words[at + 1] ?? '') : ''));
    if (hasNext) at++;
  }
  const isSized = ['num-layers', 'hidden-size', 'num-attention-heads'].every((name) =>
    /^\d+$/.test(values.get(name) ?? ''),
  );
  const sizes = [...values.keys()].filter((name) => SIZES.has(name));
  const isWhole = ({ keys }: Base) => sizes.every((name) => ownValue(keys, name) !== undefined);
  const base =
    BASES.find((each) => isWhole(each) && each.has.every((flag) => hasFlag(values, flag))) ??
    BASES.find(isWhole);
  if (!isSized || base === undefined) return undefined;
  const settings = [...settingsOf(base, values)].flatMap(([key, value]) => [
    '--set',
    `model.${key}=${value}`,
  ]);
  return { model: base.model, words: [...settings, ...rest] };
}

/** Whether a line has a flag, or a flag with a value. */
function hasFlag(values: Values, flag: string): boolean {
  const [name = '', value] = flag.split('=');
  return value === undefined ? values.has(name) : values.get(name) === value;
}

/** The keys of the config, with what Megatron computes where a flag is missing. */
function settingsOf({ model, keys }: Base, values: Values): ReadonlyMap<string, string> {
  const [hidden, heads] = ['hidden-size', 'num-attention-heads'].map((name) =>
    Number(values.get(name)),
  ) as [number, number];
  const isGated = values.has('swiglu');
  // A gated network has two products of the input: two thirds of the usual width, in multiples of 64.
  const inner = isGated ? Math.floor((4 * hidden * 2) / 3 / 64) * 64 : 4 * hidden;
  const isGrouped = values.has('group-query-attention');
  const isTied = !values.has('untie-embeddings-and-output-weights');
  const defaults: [string, string][] = [
    ['ffn-hidden-size', String(inner)],
    ['num-query-groups', isGrouped ? '1' : String(heads)],
    ['kv-channels', String(hidden / heads)],
  ];
  const settings = new Map<string, string>();
  for (const [name, value] of [...defaults, ...values]) {
    const key = ownValue(keys, name);
    // Without groups, each head has keys of its own.
    const isIgnored = name === 'num-query-groups' && !isGrouped && values.has(name);
    if (key !== undefined && !isIgnored && /^[\d.e+-]+$/i.test(value)) settings.set(key, value);
  }
  if (model !== 'gpt2') settings.set('tie_word_embeddings', String(isTied));
  return settings;
}
