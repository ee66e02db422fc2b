/** Parts of published tokenizers, which the bounds of hostile ones must not refuse. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  excessOfParts,
  growthOf,
  MAX_GROWTH,
  PART_BOUNDS,
} from '../../../src/language/tokenizer/parts.js';
import { TextTokenizer } from '../../../src/language/tokenizer/tokenizer.js';
import { readJson } from '../../fixtures.js';

const BASE = readJson<object>('fixtures/tokenizers/bpe-512.json');
const TEXT =
  "Hello there,  it's 12345 apples (déjà vu) — 你好, 世界! カタカナ\n\n  x = y_1 + 3.14\t🙂\n";

const split = (Regex: string, behavior = 'Isolated', invert = false) => ({
  type: 'Split',
  pattern: { Regex },
  behavior,
  invert,
});
const sequence = (...pretokenizers: object[]) => ({ type: 'Sequence', pretokenizers });
const BYTES = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
const GPT2 = { ...BYTES, use_regex: true };
const DIGITS = { type: 'Digits', individual_digits: true };
const REST = '|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const OTHERS = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*';
const SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const words = (digits: string) =>
  `${SHORT}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}|${OTHERS}${REST}`;
const [UPPER, LOWER] = ['\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}', '\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}'];
const cased = (without = '', others = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*', ends = `${SHORT}?`) => {
  const [upper, lower] = [`[${UPPER}${without}]`, `[${LOWER}${without}]`];
  const first = '[^\\r\\n\\p{L}\\p{N}]?';
  return `${first}${upper}*${lower}+${ends}|${first}${upper}+${lower}*${ends}|\\p{N}{1,3}|${others}${REST}`;
};
const DEEPSEEK_V3 = [
  split('\\p{N}{1,3}'),
  split('[一-龥぀-ゟ゠-ヿ]+'),
  split(
    '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+',
  ),
];
/** Letters with two cases, as DeepSeek LLM lists them. Escapes are letters that have another composed form. */
const CASED_LETTERS =
  'A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃';
const DEEPSEEK_ENDS = [split('\\s+$'), split('[一-龥ࠀ-一가-퟿]+'), DIGITS, BYTES];

const BYTE_PAIRS: Readonly<Record<string, object>> = {
  'GPT-2, Whisper': { pre_tokenizer: GPT2 },
  'Qwen2, Qwen3': {
    normalizer: { type: 'NFC' },
    pre_tokenizer: sequence(split(words('\\p{N}')), BYTES),
  },
  'Llama 3, GLM-4': { pre_tokenizer: sequence(split(words('\\p{N}{1,3}')), BYTES) },
  'Granite 4': { pre_tokenizer: sequence(split(words('\\p{N}{1,3}'), 'Removed', true), BYTES) },
  'o200k, gpt-oss, MiniMax': { pre_tokenizer: sequence(split(cased()), BYTES) },
  'Nemotron 3': { pre_tokenizer: sequence(split(cased('', undefined, '')), BYTES) },
  'Kimi K2': {
    pre_tokenizer: sequence(split(`[\\p{Han}]+|${cased('&&[^\\p{Han}]', OTHERS)}`), BYTES),
  },
  'Command R7B': {
    normalizer: { type: 'NFC' },
    pre_tokenizer: sequence(split('\\d{1,3}(?=(?:\\d{3})*\\b)'), split(cased()), BYTES),
  },
  'DeepSeek-V3': { pre_tokenizer: sequence(...DEEPSEEK_V3, BYTES) },
  'DeepSeek-V2': {
    pre_tokenizer: sequence(
      ...[split('[\\r\\n]'), split(`\\s?[${CASED_LETTERS}]+`)],
      ...[split('\\s?[!-/:-~！-／：-～‘-‟　-。]+'), ...DEEPSEEK_ENDS],
    ),
  },
  'DeepSeek Coder': {
    pre_tokenizer: sequence(
      ...[split('[\\r\\n]'), split('\\s?\\p{L}+'), split('\\s?\\p{P}+'), ...DEEPSEEK_ENDS.slice(1)],
    ),
  },
  Falcon: {
    pre_tokenizer: sequence(
      ...[{ type: 'Punctuation', behavior: 'Contiguous' }, GPT2],
      ...[{ type: 'Digits', individual_digits: false }, split('[0-9][0-9][0-9]')],
    ),
  },
  BLOOM: { pre_tokenizer: sequence(split(' ?[^(\\s|[.,!?…。，、।۔،])]+'), BYTES) },
  'SmolLM, StarCoder': { pre_tokenizer: sequence(DIGITS, GPT2) },
  LLaDA: {
    pre_tokenizer: sequence(
      split(
        `'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+`,
      ),
      BYTES,
    ),
  },
  Laguna: {
    pre_tokenizer: sequence(
      split('(?:\\r?\\n)+(?!\\r?\\n)', 'MergedWithNext'),
      ...[split(words('\\p{N}')), BYTES],
    ),
  },
};

const replaced = (pattern: object, content: string) => ({ type: 'Replace', pattern, content });
const METASPACE = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true };
const token = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
const text = (id: string) => ({ Sequence: { id, type_id: 0 } });
const special = (id: string) => ({ id, ids: [0], tokens: [id] });
const template = {
  type: 'TemplateProcessing',
  single: [token('<s>'), text('A'), token('</s>')],
  pair: [token('<s>'), text('A'), token('</s>'), token('</s>'), text('B'), token('</s>')],
  special_tokens: { '<s>': special('<s>'), '</s>': special('</s>') },
};
const LLAMA_DECODER = {
  type: 'Sequence',
  decoders: [
    replaced({ String: '▁' }, ' '),
    ...[{ type: 'ByteFallback' }, { type: 'Fuse' }],
    { type: 'Strip', content: ' ', start: 1, stop: 0 },
  ],
};
const normalizers = (...parts: object[]) => ({ type: 'Sequence', normalizers: parts });

const SENTENCE_PIECES: Readonly<Record<string, object>> = {
  T5: { normalizer: { type: 'Precompiled' }, pre_tokenizer: METASPACE, decoder: METASPACE },
  'XLM-R, mT5': {
    normalizer: normalizers({ type: 'Precompiled' }, replaced({ Regex: ' {2,}' }, ' ')),
    pre_tokenizer: sequence({ type: 'WhitespaceSplit' }, METASPACE),
    post_processor: template,
    decoder: METASPACE,
  },
  ALBERT: {
    normalizer: normalizers(
      ...[replaced({ String: '``' }, '"'), replaced({ String: "''" }, '"')],
      ...[{ type: 'NFKD' }, { type: 'StripAccents' }, { type: 'Lowercase' }],
      ...[{ type: 'Precompiled' }, replaced({ Regex: ' {2,}' }, ' ')],
    ),
    pre_tokenizer: sequence({ type: 'WhitespaceSplit' }, METASPACE),
    post_processor: template,
    decoder: METASPACE,
  },
  SeamlessM4T: {
    normalizer: normalizers(
      ...[{ type: 'Precompiled' }, replaced({ Regex: '[\\n\\r\\t]' }, ' ')],
      { type: 'NFKC' },
      replaced({ Regex: ' +▁' }, '▁'),
      ...[replaced({ Regex: '^▁+$' }, ''), replaced({ Regex: ' {2,}' }, '▁')],
    ),
    pre_tokenizer: METASPACE,
    decoder: METASPACE,
  },
  'Llama 2, Mistral': {
    normalizer: normalizers({ type: 'Prepend', prepend: '▁' }, replaced({ String: ' ' }, '▁')),
    post_processor: template,
    decoder: LLAMA_DECODER,
  },
  Gemma: {
    normalizer: replaced({ String: ' ' }, '▁'),
    pre_tokenizer: { ...split(''), pattern: { String: ' ' }, behavior: 'MergedWithPrevious' },
    post_processor: template,
    decoder: LLAMA_DECODER,
  },
};

/** Tokens of a small model of SentencePiece. */
const PIECES = [
  '<unk>',
  '<s>',
  '</s>',
  ...'▁abcdefghijklmnopqrstuvwxyz0123456789',
  '▁the',
  'hello',
];
const UNIGRAM = {
  model: { type: 'Unigram', unk_id: 0, vocab: PIECES.map((piece) => [piece, -1]) },
  added_tokens: [],
};
const BERT = {
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: { '[UNK]': 0, '[CLS]': 1, '[SEP]': 2, hello: 3, there: 4 },
  },
  added_tokens: [],
  normalizer: {
    ...{ type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true },
    ...{ strip_accents: null, lowercase: true },
  },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: template,
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
};

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const PUBLISHED = [
  ...Object.entries(BYTE_PAIRS).map(([name, parts]) => [name, { ...BASE, ...parts }] as const),
  ...Object.entries(SENTENCE_PIECES).map(
    ([name, parts]) =>
      [name, { pre_tokenizer: null, post_processor: null, ...UNIGRAM, ...parts }] as const,
  ),
  ['BERT', BERT] as const,
];

describe('parts of published tokenizers', () => {
  it.each(PUBLISHED)('are read and run: %s', async (_, content) => {
    const file = path.join(folder, 'tokenizer.json');
    fs.writeFileSync(file, JSON.stringify(content));
    const tokenizer = await TextTokenizer.open(file);
    expect(tokenizer.encode(TEXT.repeat(20), { special: true }).length).toBeGreaterThan(20);
  });

  it.each(PUBLISHED)(
    'have a quarter of the bounds, and grow by half of theirs: %s',
    (_, content) => {
      const { normalizer, pre_tokenizer, post_processor, decoder } = content as Record<
        string,
        object
      >;
      const parts = [normalizer, pre_tokenizer, post_processor, decoder];
      const wide = (part: unknown) =>
        ({ type: 'Sequence', decoders: [part, part, part, part] }) as const;
      expect(PART_BOUNDS.depth).toBeGreaterThan(4);
      expect(excessOfParts(parts.map(wide))).toBeUndefined();
      expect(growthOf(normalizer) * growthOf(pre_tokenizer)).toBeLessThanOrEqual(MAX_GROWTH / 2);
    },
  );
});
