/** The tokenizer of a model's folder as metadata of a GGUF file. */
import path from 'node:path';
import { smallTextAt } from '../../../base/files/mounted.js';
import { parseJson } from '../../../base/text/json.js';
import { asNumber, asText, isRecord } from '../../../base/values.js';
import type { GgufValue } from '../../../checkpoint/gguf/gguf-scanner.js';

type Json = Readonly<Record<string, unknown>>;

/** Kinds of tokens: `llama_token_type` of llama.h. */
const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;
const BYTE = 6;

/** Splitting of text before merges, by the pattern in tokenizer.json; names of llama-vocab.cpp. */
const PRE_TOKENIZERS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['llama-bpe', /\\p\{N\}\{1,3\}\|.*\[\^\\s\\p\{L\}\\p\{N\}\]\+\[\\r\\n\]\*/],
  ['qwen2', /\|\\p\{N\}\|.*\[\^\\s\\p\{L\}\\p\{N\}\]\+\[\\r\\n\]\*/],
];

export interface TokenizerMetadata {
  readonly keys: ReadonlyMap<string, GgufValue>;
  readonly notes: readonly string[];
}

const integers = (value: readonly number[]): GgufValue => ({
  type: 'array',
  element: 'i32',
  length: value.length,
  value,
});
const texts = (value: readonly string[]): GgufValue => ({
  type: 'array',
  element: 'string',
  length: value.length,
  value,
});
const floats = (value: readonly number[]): GgufValue => ({
  type: 'array',
  element: 'f32',
  length: value.length,
  value,
});
const stringValue = (value: string): GgufValue => ({ type: 'string', value });
const flag = (value: boolean): GgufValue => ({ type: 'bool', value });

/** Metadata without a tokenizer: a program then passes token ids. */
const none = (note: string): TokenizerMetadata => ({
  keys: new Map([['tokenizer.ggml.model', stringValue('none')]]),
  notes: [note],
});

/** Largest file of a tokenizer that is read; that of 262,144 tokens has 33 MB. */
const MAX_BYTES = 128 * 2 ** 20;

function jsonIn(folder: string, name: string): Json | undefined {
  const file = path.join(folder, name);
  try {
    const text = smallTextAt(file, MAX_BYTES);
    const value: unknown = text === undefined ? undefined : parseJson(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param folder The folder of the model.
 * @param rows Rows of the embedding; missing tokens are filled up to them.
 * @param config Token ids of the model's config.
 */
export function tokenizerMetadata(folder: string, rows: number, config: Json): TokenizerMetadata {
  const tokenizer = jsonIn(folder, 'tokenizer.json');
  if (tokenizer === undefined) {
    return none('Without a tokenizer.json the file has no tokenizer: programs must give token ids');
  }
  const settings = jsonIn(folder, 'tokenizer_config.json') ?? {};
  const model = isRecord(tokenizer.model) ? tokenizer.model : {};
  const vocabulary = tokenizerVocabulary(tokenizer, model, rows);
  const kind = tokenizerKind(tokenizer, model);
  if (vocabulary === undefined || kind === undefined) {
    return none('llama.cpp does not support this kind of tokenizer: programs must give token ids');
  }
  const { tokens, types } = vocabulary;
  const keys = new Map<string, GgufValue>([
    ['tokenizer.ggml.model', stringValue(kind.model)],
    ['tokenizer.ggml.pre', stringValue(kind.pre)],
    ['tokenizer.ggml.tokens', texts(tokens)],
    ['tokenizer.ggml.token_type', integers(types)],
  ]);
  const merges = mergesOf(model);
  if (kind.model === 'gpt2')
    keys.set('tokenizer.ggml.merges', texts(merges.map((pair) => pair.join(' '))));
  else keys.set('tokenizer.ggml.scores', floats(tokenScores(model, tokens, merges)));
  const special = specialTokens(settings, config, tokens);
  for (const [key, value] of special.keys) keys.set(key, value);
  const template = templateOf(folder, settings);
  if (template !== undefined) keys.set('tokenizer.chat_template', stringValue(template));
  return {
    keys,
    notes: [
      ...special.notes,
      ...(kind.pre === 'default' && kind.model === 'gpt2' ? [NO_PATTERN] : []),
    ],
  };
}

const NO_PATTERN =
  'llama.cpp has no name for the pattern that splits text: "default" is written, and tokens can differ';

/** All tokens by id, and their kinds. Undefined for ids beyond the rows, or ids without a token in between. */
function tokenizerVocabulary(tokenizer: Json, model: Json, rows: number) {
  const known = new Map<number, string>();
  const { vocab } = model;
  if (Array.isArray(vocab)) {
    for (const [id, entry] of vocab.entries())
      if (Array.isArray(entry)) known.set(id, asText(entry[0]));
  } else if (isRecord(vocab)) {
    for (const [token, id] of Object.entries(vocab)) known.set(asNumber(id), token);
  } else return undefined;
  const added = new Map<number, boolean>();
  for (const entry of Array.isArray(tokenizer.added_tokens) ? tokenizer.added_tokens : []) {
    if (!isRecord(entry) || typeof entry.content !== 'string') continue;
    known.set(asNumber(entry.id), entry.content);
    added.set(asNumber(entry.id), entry.special === true);
  }
  if ([...known.keys()].some((id) => !Number.isInteger(id) || id < 0 || id >= rows))
    return undefined;
  const unknown = typeof model.unk_token === 'string' ? model.unk_token : undefined;
  const tokens: string[] = [];
  const types: number[] = [];
  for (let id = 0; id < rows; id++) {
    const token = known.get(id);
    tokens.push(token ?? `[PAD${id}]`);
    types.push(tokenType(token, added.get(id), unknown, model));
  }
  return { tokens, types };
}

function tokenType(
  token: string | undefined,
  isControl: boolean | undefined,
  unknown: string | undefined,
  model: Json,
): number {
  if (token === undefined) return UNUSED;
  if (token === unknown) return UNKNOWN;
  if (isControl !== undefined) return isControl ? CONTROL : USER_DEFINED;
  return model.byte_fallback === true && /^<0x[0-9A-F]{2}>$/.test(token) ? BYTE : NORMAL;
}

/** All parts of a pre-tokenizer. */
function preTokenizers(part: unknown): Json[] {
  if (!isRecord(part)) return [];
  return Array.isArray(part.pretokenizers) ? part.pretokenizers.flatMap(preTokenizers) : [part];
}

/** Kind of a tokenizer in llama.cpp. */
function tokenizerKind(tokenizer: Json, model: Json): { model: string; pre: string } | undefined {
  if (model.type === 'Unigram') return { model: 't5', pre: 'default' };
  if (model.type !== 'BPE') return undefined;
  if (model.byte_fallback === true) return { model: 'llama', pre: 'default' };
  const parts = preTokenizers(tokenizer.pre_tokenizer);
  const byteLevel = parts.find(({ type }) => type === 'ByteLevel');
  if (byteLevel === undefined) return undefined;
  const pattern = parts
    .flatMap(({ pattern: each }) =>
      isRecord(each) && typeof each.Regex === 'string' ? each.Regex : [],
    )
    .join('');
  const named = PRE_TOKENIZERS.find(([, shape]) => shape.test(pattern));
  const isPlain = parts.length === 1 && byteLevel.use_regex !== false;
  const hasDigits = parts.some(({ type }) => type === 'Digits') && parts.length === 2;
  const pre = named?.[0] ?? (isPlain ? 'gpt-2' : hasDigits ? 'smollm' : 'default');
  return { model: 'gpt2', pre };
}

function mergesOf({ merges }: Json): readonly (readonly string[])[] {
  if (!Array.isArray(merges)) return [];
  return merges.map((each) => (Array.isArray(each) ? each.map(asText) : asText(each).split(' ')));
}

/** Scores of a unigram model; of merges, each token by the first merge that gives it. */
function tokenScores(
  { vocab }: Json,
  tokens: readonly string[],
  merges: readonly (readonly string[])[],
): number[] {
  if (Array.isArray(vocab)) {
    return tokens.map((_, id) => (Array.isArray(vocab[id]) ? asNumber(vocab[id][1]) : 0));
  }
  const ranks = new Map<string, number>();
  for (const [rank, pair] of merges.entries()) {
    const whole = pair.join('');
    if (!ranks.has(whole)) ranks.set(whole, rank);
  }
  return tokens.map((token) => -(ranks.get(token) ?? merges.length));
}

/** Ids of special tokens: by tokenizer_config.json, else by the config of the model. */
function specialTokens(settings: Json, config: Json, tokens: readonly string[]): TokenizerMetadata {
  const keys = new Map<string, GgufValue>();
  const notes: string[] = [];
  for (const [name, key] of [
    ['bos', 'bos'],
    ['eos', 'eos'],
    ['unk', 'unknown'],
    ['pad', 'padding'],
  ]) {
    const given = settings[`${name}_token`];
    const content = isRecord(given) ? given.content : given;
    const byName = typeof content === 'string' ? tokens.indexOf(content) : -1;
    const stated = config[`${name}_token_id`];
    const first: unknown = Array.isArray(stated) ? stated[0] : stated;
    const id = byName >= 0 ? byName : first;
    if (typeof id !== 'number') continue;
    if (Number.isInteger(id) && id >= 0 && id < tokens.length) {
      keys.set(`tokenizer.ggml.${key}_token_id`, { type: 'u32', value: id });
    } else {
      notes.push(
        `The config has ${name}_token_id ${id}, expected 0 to ${tokens.length - 1}: it is left out`,
      );
    }
  }
  for (const name of ['bos', 'eos']) {
    const adds = settings[`add_${name}_token`];
    if (typeof adds === 'boolean') keys.set(`tokenizer.ggml.add_${name}_token`, flag(adds));
  }
  return { keys, notes };
}

function templateOf(folder: string, settings: Json): string | undefined {
  const file = path.join(folder, 'chat_template.jinja');
  const text = smallTextAt(file, MAX_BYTES);
  if (text !== undefined) return text;
  return typeof settings.chat_template === 'string' ? settings.chat_template : undefined;
}
