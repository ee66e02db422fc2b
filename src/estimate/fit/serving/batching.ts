/**
 * Static batching beside continuous batching (Orca, OSDI 2022), for requests with answers of different lengths. A static
 * batch runs until its longest answer ends, and the places of the others stay empty. A continuous batch gives a place to
 * the next request at once. A decoding step takes the same time in both: empty places are computed, too.
 */
import { sumOf } from '../../../base/values.js';

export interface BatchingComparison {
  /** Output tokens of the requests, in equal shares. @integer @minimum 1 */
  readonly lengths: readonly number[];
  /** Requests of a batch. @integer @minimum 1 */
  readonly batch: number;
  /** Mean tokens of an answer. */
  readonly mean: number;
  /** Decoding steps of a static batch with requests in these shares: the longest answer. */
  readonly steps: number;
  /** Share of the places of a static batch that make no token. */
  readonly wasted: number;
  /** Tokens per second of continuous batching ÷ those of static batching, with requests always waiting. */
  readonly ratio: number;
  /** The same for batches of requests drawn at random: the expected longest answer. */
  readonly drawn: {
    /** Decoding steps of a static batch. */
    readonly steps: number;
    /** Share of its places that make no token. */
    readonly wasted: number;
    /** Tokens per second of continuous batching ÷ those of static batching. */
    readonly ratio: number;
  };
}

/** @param lengths At least one length; a length that is repeated is as much more frequent. */
export function batchingOf(lengths: readonly number[], batch: number): BatchingComparison {
  const mean = sumOf(lengths, (length) => length) / lengths.length;
  const sorted = lengths.toSorted((a, b) => a - b);
  // A batch with fewer requests than lengths has no room for all of them.
  const longest = sorted.at(-1) ?? 0;
  const expected = expectedLongest(sorted, batch);
  const against = (steps: number) => ({ steps, wasted: 1 - mean / steps, ratio: steps / mean });
  return {
    ...{ lengths, batch, mean },
    ...against(batch < lengths.length ? expected : longest),
    drawn: against(expected),
  };
}

/** Mean of the longest of `batch` answers drawn independently: Σ length · (F(length)^batch − F(before)^batch). */
const expectedLongest = (sorted: readonly number[], batch: number): number =>
  sumOf([...sorted.entries()], ([at, length]) => {
    const below = (count: number) => (count / sorted.length) ** batch;
    return length * (below(at + 1) - below(at));
  });
