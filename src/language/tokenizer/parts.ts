/**
 * The parts of a tokenizer.json that the library builds and runs: normalizers, pre-tokenizers, post-processors and
 * decoders. Their limits are checked before the library sees them: it builds nested parts by recursion, and compiles a
 * pattern in one native call that no time limit can end.
 */
import { asText } from '../../base/values.js';

type TokenizerPart = Readonly<Record<string, unknown>>;

/**
 * Limits of all parts together. Published tokenizers have at most about 20 parts, nested 3 deep, and 600 characters of
 * patterns: DeepSeek-V2 and DeepSeek LLM list the letters that have two cases.
 */
export const PART_BOUNDS = { depth: 8, parts: 1000, patternCharacters: 4000 } as const;

/** Maximum factor by which parts can lengthen a text; several times the need of published tokenizers. */
export const MAX_GROWTH = 16;

/** Keys under which a sequence of each kind lists its parts, and a post-processor its items. */
const LISTS = ['normalizers', 'pretokenizers', 'processors', 'decoders', 'single', 'pair'] as const;

/** Text about the limit of `PART_BOUNDS` that the parts of a tokenizer exceed; undefined if they exceed none. */
export function excessOfParts(parts: readonly unknown[]): string | undefined {
  let [count, characters] = [0, 0];
  const excess = (part: unknown, depth: number): string | undefined => {
    if (!isPart(part)) return undefined;
    if (depth > PART_BOUNDS.depth) return `it nests parts more than ${PART_BOUNDS.depth} deep`;
    if (++count > PART_BOUNDS.parts) return `it has more than ${PART_BOUNDS.parts} parts`;
    const { String: fixed, Regex: regex } = isPart(part.pattern) ? part.pattern : {};
    characters += writtenLength(fixed) + writtenLength(regex);
    if (characters > PART_BOUNDS.patternCharacters) {
      return `its patterns have more than ${PART_BOUNDS.patternCharacters.toLocaleString('en-US')} characters`;
    }
    for (const key of LISTS) {
      const list = part[key];
      if (!Array.isArray(list)) continue;
      for (const each of list) {
        const found = excess(each, depth + 1);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  for (const part of parts) {
    const found = excess(part, 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Approximate characters that the library writes for a word character or a word boundary. */
const WORD_CHARACTERS = 60;

function writtenLength(pattern: unknown): number {
  if (typeof pattern !== 'string') return 0;
  const words = pattern.match(/\\[bBwW]/g)?.length ?? 0;
  return pattern.length + words * WORD_CHARACTERS;
}

// Upper bound on the length of a text after the normalizer and pre-tokenizer of a tokenizer.json.

/**
 * Growth of a byte-level part: UTF-8 bytes per UTF-16 code unit, each written as a character, plus a space before each
 * piece.
 */
const BYTE_LEVEL = 4;

/** Growth of a BERT normalizer: a space on each side of an ideograph. */
const BERT = 3;

/**
 * Length of a text after Unicode decomposition. Only decomposition lengthens a text, so a bound on these
 * lengths holds before and after each normalization form.
 */
export const decomposedLength = (text: string): number =>
  Math.max(text.length, text.normalize('NFKD').length, text.toLowerCase().normalize('NFKD').length);

/**
 * Maximum factor by which a normalizer, pre-tokenizer or decoder, in the JSON of a tokenizer, can lengthen a text. In
 * published tokenizers it is at most 4, or 8 with a space before the bytes.
 */
export function growthOf(part: unknown): number {
  if (!isPart(part)) return 1;
  switch (part.type) {
    case 'Sequence':
      return [part.normalizers, part.pretokenizers, part.decoders]
        .flatMap((parts) => (Array.isArray(parts) ? parts : []))
        .reduce<number>((product, each) => product * growthOf(each), 1);
    case 'Replace':
      return replacementGrowth(part);
    case 'Prepend':
      // Added tokens split a text into sections, at most one per character.
      return 1 + lengthOf(part.prepend);
    case 'Metaspace': {
      const length = lengthOf(part.str_rep || part.replacement || '\u2581');
      return Math.max(1, length) + length;
    }
    case 'ByteLevel':
      return BYTE_LEVEL;
    case 'BertNormalizer':
      return BERT;
    default:
      return 1;
  }
}

/** Number of times that a post-processor repeats the tokens of a text. */
export function repetitionsOf(part: unknown): number {
  if (!isPart(part)) return 1;
  if (part.type === 'Sequence' && Array.isArray(part.processors)) {
    return part.processors.reduce<number>((product, each) => product * repetitionsOf(each), 1);
  }
  if (part.type !== 'TemplateProcessing' || !Array.isArray(part.single)) return 1;
  return Math.max(1, part.single.filter((item) => isPart(item) && item.Sequence).length);
}

function replacementGrowth({ pattern, content }: TokenizerPart): number {
  // A JavaScript replacement can insert all text before or after the match.
  if (typeof content === 'string' && /\$[`'&<\d]/.test(content)) return Number.POSITIVE_INFINITY;
  const length = lengthOf(content);
  const { String: fixed, Regex: regex } = isPart(pattern) ? pattern : {};
  if (typeof fixed === 'string' && fixed !== '') {
    return Math.max(1, length / decomposedLength(fixed));
  }
  // An empty match before each character, and one at the end.
  return typeof regex === 'string' && consumes(regex) ? Math.max(1, length) : 1 + 2 * length;
}

/** Whether every match of a pattern has at least one character; false if uncertain. */
function consumes(pattern: string): boolean {
  // Assertions can match the empty string in one place, and fail in an empty text.
  if (/\(\?|\\[bB]|[$^]/.test(pattern)) return false;
  try {
    return !new RegExp(pattern, 'u').test('');
  } catch {
    return false;
  }
}

const lengthOf = (text: unknown): number =>
  typeof text === 'string' ? decomposedLength(text) : asText(text ?? '').length;

const isPart = (value: unknown): value is TokenizerPart =>
  typeof value === 'object' && value !== null;
