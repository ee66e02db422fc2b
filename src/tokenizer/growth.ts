/** Bound on the text that the normalizer and the pre-tokenizer of a tokenizer.json can make of another. */

type Part = Readonly<Record<string, unknown>>;

/** Bytes of UTF-8 for a UTF-16 code unit, each written as a character; and a space before each piece. */
const BYTE_LEVEL = 4;

/** A space on each side of an ideograph. */
const BERT = 3;

/**
 * Length of a text after Unicode decomposition. Decomposition is the only normalization that lengthens a text, so a
 * bound in these lengths holds before and after each form.
 */
export const decomposedLength = (text: string): number =>
  Math.max(text.length, text.normalize('NFKD').length, text.toLowerCase().normalize('NFKD').length);

/**
 * Largest factor by which a normalizer or a pre-tokenizer, in the JSON of a tokenizer, can lengthen a text. In
 * published tokenizers it is at most about 8.
 */
export function growthOf(part: unknown): number {
  if (!isPart(part)) return 1;
  switch (part.type) {
    case 'Sequence':
      return [part.normalizers, part.pretokenizers]
        .flatMap((parts) => (Array.isArray(parts) ? parts : []))
        .reduce<number>((product, each) => product * growthOf(each), 1);
    case 'Replace':
      return replacementGrowth(part);
    case 'Prepend':
      // Added tokens cut a text into sections, at most one for each character.
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

function replacementGrowth({ pattern, content }: Part): number {
  // A replacement of JavaScript can insert all text before or after the match.
  if (typeof content === 'string' && /\$[`'&<\d]/.test(content)) return Number.POSITIVE_INFINITY;
  const length = lengthOf(content);
  const { String: fixed, Regex: regex } = isPart(pattern) ? pattern : {};
  if (typeof fixed === 'string' && fixed !== '') {
    return Math.max(1, length / decomposedLength(fixed));
  }
  // An empty match before each character, and one at the end.
  return typeof regex === 'string' && consumes(regex) ? Math.max(1, length) : 1 + 2 * length;
}

/** Whether each match of a pattern has at least one character. False when that is not certain. */
function consumes(pattern: string): boolean {
  // Assertions can match nothing in one place, and fail in an empty text.
  if (/\(\?|\\[bB]|[$^]/.test(pattern)) return false;
  try {
    return !new RegExp(pattern, 'u').test('');
  } catch {
    return false;
  }
}

const lengthOf = (text: unknown): number =>
  typeof text === 'string' ? decomposedLength(text) : String(text ?? '').length;

const isPart = (value: unknown): value is Part => typeof value === 'object' && value !== null;
