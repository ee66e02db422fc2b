/** The content of a GGUF file except its tensors, as plain data: metadata, tokenizer, bits by component. */
import { sumOf } from '../../base/values.js';
import { encodedBytes, type StoredTensor, storedTypeOf } from '../stored-tensor.js';
import type { GgufKeyValues, GgufValue } from './gguf-scanner.js';

/** A value of the metadata; an array that is too long to show is only counted. @fraction */
export type ShownValue =
  | string
  | number
  | bigint
  | boolean
  | readonly (string | number | bigint | boolean)[]
  | {
      /** Number of elements. @count */
      readonly elements: number;
      /** Type of the elements. */
      readonly type: string;
    };

export interface GgufComponent {
  /** `attention`, `feed-forward`, … */
  readonly component: string;
  /** Number of tensors. @integer */
  readonly tensors: number;
  /** Their elements. @integer */
  readonly elements: number;
  /** Their bytes. @integer */
  readonly bytes: number;
  /** Bits of an element on average. */
  readonly bitsPerWeight: number;
  /** Most bytes first. */
  readonly types: readonly string[];
}

export interface GgufDescription {
  /** Architecture of llama.cpp; null if it is not stated. */
  readonly architecture: string | null;
  /** Name of the model; null if it is not stated. */
  readonly name: string | null;
  /** Null without a tokenizer. */
  readonly tokenizer: {
    /** `gpt2` (byte-level BPE), `llama` (SentencePiece), `t5` (unigram), … */
    readonly model: string;
    /** How text is split before merges. */
    readonly pre: string | null;
    /** Size of the vocabulary; null without one. @integer */
    readonly tokens: number | null;
  } | null;
  /** Chat template; null without one. */
  readonly chatTemplate: string | null;
  /** Bits of an element on average. */
  readonly bitsPerWeight: number;
  /** Tensors by component. */
  readonly components: readonly GgufComponent[];
  /** Values by key; of a long array, the number of its elements and their type. */
  readonly metadata: Readonly<Record<string, ShownValue>>;
}

/** Parts of a model by the names that docs/gguf.md of ggml gives its tensors. The first match counts. */
const COMPONENTS: readonly (readonly [component: string, names: RegExp])[] = [
  ['norms', /norm\./],
  ['embedding', /^(?:token_embd|position_embd|token_types)\./],
  ['head', /^output\./],
  ['router', /\.ffn_gate_inp|exp_probs_b/],
  ['shared experts', /_shexp\./],
  ['experts', /_exps\./],
  ['attention', /\.attn_/],
  ['feed-forward', /\.ffn_/],
  ['other', /^/],
];

/** Arrays with more elements are counted. */
const MAX_SHOWN = 64;

const TEMPLATE_KEY = 'tokenizer.chat_template';

const metadataText = (values: GgufKeyValues, key: string): string | null => {
  const found = values.get(key);
  return found?.type === 'string' ? found.value : null;
};

export function describeGguf(
  values: GgufKeyValues,
  tensors: ReadonlyMap<string, StoredTensor>,
): GgufDescription {
  const model = metadataText(values, 'tokenizer.ggml.model');
  const tokens = values.get('tokenizer.ggml.tokens');
  const all = [...tensors.values()];
  return {
    architecture: metadataText(values, 'general.architecture'),
    name: metadataText(values, 'general.name'),
    tokenizer:
      model === null
        ? null
        : {
            model,
            pre: metadataText(values, 'tokenizer.ggml.pre'),
            tokens: tokens?.type === 'array' ? tokens.length : null,
          },
    chatTemplate: metadataText(values, TEMPLATE_KEY),
    bitsPerWeight: bitsOf(all),
    components: componentsOf(tensors),
    metadata: Object.fromEntries(
      [...values]
        .filter(([key]) => key !== TEMPLATE_KEY)
        .map(([key, value]) => [key, shownValue(value)]),
    ),
  };
}

function bitsOf(tensors: readonly StoredTensor[]): number {
  const elements = sumOf(tensors, (tensor) => tensor.elements);
  return elements === 0 ? 0 : (8 * sumOf(tensors, encodedBytes)) / elements;
}

function componentsOf(tensors: ReadonlyMap<string, StoredTensor>): GgufComponent[] {
  const members = new Map<string, StoredTensor[]>(COMPONENTS.map(([component]) => [component, []]));
  for (const [name, tensor] of tensors) {
    const [component = 'other'] = COMPONENTS.find(([, names]) => names.test(name)) ?? [];
    members.get(component)?.push(tensor);
  }
  return [...members]
    .filter(([, some]) => some.length > 0)
    .map(([component, some]) => ({
      component,
      tensors: some.length,
      elements: sumOf(some, ({ elements }) => elements),
      bytes: sumOf(some, encodedBytes),
      bitsPerWeight: bitsOf(some),
      types: typesByBytes(some),
    }))
    .sort((a, b) => b.bytes - a.bytes);
}

/** Types of tensors, most bytes first. */
export function typesByBytes(tensors: Iterable<StoredTensor>): string[] {
  const bytes = new Map<string, number>();
  for (const tensor of tensors) {
    const type = storedTypeOf(tensor);
    bytes.set(type, (bytes.get(type) ?? 0) + encodedBytes(tensor));
  }
  return [...bytes].sort(([, a], [, b]) => b - a).map(([type]) => type);
}

function shownValue(value: GgufValue): ShownValue {
  if (value.type !== 'array') return value.value;
  const { element, length, value: elements } = value;
  return elements === null || length > MAX_SHOWN ? { elements: length, type: element } : elements;
}
