/**
 * Words that a tokenizer has split before. The library (@huggingface/tokenizers 0.2, LRUCache and ByteLevel) keeps the merges of 10,000
 * words in the order of their use, and writes the bytes of each word anew: on texts, this is half of its time.
 */
import type { Tokenizer } from '@huggingface/tokenizers';
import { isRecord } from '../../base/values.js';

/** Words that are remembered at once, 30 MB at most with what they become. */
const MOST_WORDS = 100_000;

/** Longest word that is remembered, in UTF-16 units. */
const LONGEST_WORD = 64;

/** Shortest part of a text that V8 keeps as a view of the whole text (nodejs/node, deps/v8/src/objects/string.h: SlicedString::kMinLength). */
const SHORTEST_VIEW = 13;

/** A word apart from the text that it is from, which would stay in memory with it. */
const ownText = (word: string): string =>
  word.length < SHORTEST_VIEW ? word : Buffer.from(word, 'utf16le').toString('utf16le');

/** Values by word, all forgotten when they are too many: cheaper than an order of their use. */
class Words<Value> {
  readonly #values = new Map<string, Value>();

  get(word: string): Value | undefined {
    return this.#values.get(word);
  }

  put(word: string, value: Value): void {
    if (word.length > LONGEST_WORD) return;
    if (this.#values.size >= MOST_WORDS) this.#values.clear();
    this.#values.set(ownText(word), value);
  }

  clear(): void {
    this.#values.clear();
  }
}

/** The members of the byte-level pre-tokenizer that this file uses. */
interface ByteLevel {
  readonly add_prefix_space: boolean;
  readonly use_regex: boolean;
  readonly pattern: RegExp;
  /** Printable character of each byte. */
  readonly byte_encoder: Readonly<Record<number, string>>;
  pre_tokenize_text(text: string): string[];
}

/** Makes a tokenizer remember words. Its tokens stay the same. */
export function rememberWords({ model, pre_tokenizer: first }: Tokenizer): void {
  if (model && 'cache' in model && 'bpe' in model) Object.assign(model, { cache: new Words() });
  for (const step of preTokenizerSteps(first)) if (isByteLevel(step)) rememberBytes(step);
}

/** The steps of a pre-tokenizer, in order. */
function preTokenizerSteps(step: unknown): readonly unknown[] {
  const steps = (step as { readonly tokenizers?: unknown } | null)?.tokenizers;
  return Array.isArray(steps) ? steps.flatMap(preTokenizerSteps) : [step];
}

/** Pre-tokenizers of the library are functions with members. */
function isByteLevel(step: unknown): step is ByteLevel {
  const members = step as Partial<ByteLevel> | null;
  return (
    typeof step === 'function' &&
    isRecord(members?.byte_encoder) &&
    members?.pattern instanceof RegExp &&
    members.add_prefix_space === false
  );
}

function rememberBytes(step: ByteLevel): void {
  const known = new Words<string>();
  const { use_regex: isSplit, pattern, byte_encoder: characters } = step;
  const written = (word: string): string => {
    const before = known.get(word);
    if (before !== undefined) return before;
    let text = '';
    for (const byte of Buffer.from(word)) text += characters[byte];
    known.put(word, text);
    return text;
  };
  step.pre_tokenize_text = (text) => (isSplit ? (text.match(pattern) ?? []) : [text]).map(written);
}
