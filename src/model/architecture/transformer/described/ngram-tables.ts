/** Rows of the tables of n-grams of Qwen4-Exp, whose hash functions each have a prime number of them. */
import { LimitError } from '../../param.js';

interface NgramSizes {
  readonly ngram_vocab_size_base: number;
  readonly make_ngram_vocab_size_divisible_by: number;
}

/** Primes beyond this would take long to find. */
const MOST_ROWS = 1e12;
/** Primes that are searched at most. */
const MOST_PRIMES = 10_000;

function isPrime(value: number): boolean {
  if (value < 2) return false;
  if (value % 2 === 0) return value === 2;
  for (let divisor = 3; divisor * divisor <= value; divisor += 2) {
    if (value % divisor === 0) return false;
  }
  return true;
}

/**
 * Rows of the table of a layer, padded: those of its hash functions, the next primes after those of the layers before.
 * @param heads Hash functions of a layer.
 * @param place The number of the layer among those with n-grams.
 * @throws LimitError for more rows or functions than can be listed.
 */
export function ngramRows(
  { ngram_vocab_size_base: base, make_ngram_vocab_size_divisible_by: divisor }: NgramSizes,
  heads: number,
  place: number,
): number {
  if (base > MOST_ROWS || heads * (place + 1) > MOST_PRIMES) {
    throw new LimitError(
      'model.ngram_vocab_size_base',
      'describes tables of n-grams that are too large',
    );
  }
  let prime = base - 1;
  let rows = 0;
  for (let index = 0; index < heads * (place + 1); index++) {
    prime++;
    while (!isPrime(prime)) prime++;
    if (index >= heads * place) rows += prime;
  }
  return Math.ceil(rows / divisor) * divisor;
}
