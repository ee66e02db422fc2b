/** Vocabulary sizes that a published number of parameters can come from. */

/** Sizes of well-known tokenizers, padded or not. */
const USUAL = [
  6400, 32_000, 32_768, 49_152, 50_257, 50_304, 64_000, 65_024, 65_536, 100_277, 128_000, 128_256,
  129_280, 131_072, 151_936, 152_064, 200_064, 201_088, 256_000, 262_144,
] as const;

/** Larger than the vocabulary of any known tokenizer. */
const MOST_ROWS = 300_000;

const MOST_FOUND = 2;

/** Implausibility of a number by its digits before the zeros. */
const DIGIT_WEIGHTS = [0, 0.4] as const;
const USUAL_WEIGHT = 0.2;

export interface RoundVocabulary {
  readonly size: number;
  /** Implausibility. */
  readonly weight: number;
}

/**
 * Sizes whose matrices have `least` to `most` parameters: round ones, and those of well-known tokenizers.
 * @param perRow Parameters of a row, in all matrices of the vocabulary together.
 */
export function roundVocabularies(
  least: bigint,
  most: bigint,
  perRow: number,
): readonly RoundVocabulary[] {
  const [from, to] = [
    Math.ceil(Number(least) / perRow),
    Math.min(MOST_ROWS, Math.floor(Number(most) / perRow)),
  ];
  if (to < 1 || from > to) return [];
  const usual = USUAL.filter((size) => from <= size && size <= to);
  const found = [
    ...roundest(Math.max(1, from), to),
    ...usual.map((size) => ({ size, weight: USUAL_WEIGHT })),
  ];
  return found.sort((a, b) => a.weight - b.weight).slice(0, MOST_FOUND);
}

/** Numbers with the fewest digits before their zeros, the middle of the range first. */
function roundest(from: number, to: number): RoundVocabulary[] {
  const away = ({ size }: RoundVocabulary) => Math.abs(size - (from + to) / 2);
  const byDigits = DIGIT_WEIGHTS.map((weight, index) => {
    const unit = 10 ** Math.max(0, String(to).length - index - 1);
    const first = Math.ceil(from / unit);
    return Array.from({ length: Math.max(0, Math.floor(to / unit) - first + 1) }, (_, step) => ({
      size: (first + step) * unit,
      weight,
    }));
  });
  return (byDigits.find((found) => found.length > 0) ?? []).sort((a, b) => away(a) - away(b));
}
