/** Embedding tables: whole, or split by rows over several ranks. */
import { manualSeed } from '../../base/random/generator.js';
import type { Float32Tensor, Ids, Tensor } from './tensor.js';
import { checked, expectAxes, expectWhole, mistake } from './tensor.js';

/**
 * Rows of a table selected by ids.
 * @param ids [b, s], or any shape; whole numbers from 0 to v − 1. Not modified.
 * @param table [v, e]
 * @returns [b, s, e] in the table's dtype, bit for bit.
 * @throws UserError when an id is outside the table.
 */
export function vocabEmbedding(ids: Ids, table: Tensor): Tensor {
  return localRows('vocabEmbedding', ids, table, { rank: 0, worldSize: 1 });
}

/** One of several machines that share a table. */
export interface Rank {
  /** Starts at 0. */
  readonly rank: number;
  /** Number of ranks. */
  readonly worldSize: number;
}

/**
 * One rank's part of an embedding: its own rows, and zeros for all other ids. The sum over all ranks is the
 * embedding with the whole table.
 * @param ids [b, s], or any shape; whole numbers from 0 to worldSize · n − 1.
 * @param table [n, e], the rows from rank · n on.
 * @returns [b, s, e] in the table's dtype.
 * @throws UserError when an id is outside the whole table, or the rank is invalid.
 */
export function parallelVocabEmbedding(ids: Ids, table: Tensor, rank: Rank): Tensor {
  checkRank('parallelVocabEmbedding', rank);
  return localRows('parallelVocabEmbedding', ids, table, rank);
}

function localRows(where: string, ids: Ids, table: Tensor, { rank, worldSize }: Rank): Tensor {
  checked(where, ids);
  checked(where, table);
  expectAxes(where, 'the table', table.shape, 'rows, width');
  const [rows = 0, width = 0] = table.shape;
  const vocabulary = rows * worldSize;
  const shape = [...ids.shape, width];
  const output = emptyLike(table, ids.data.length * width);
  for (const [at, id] of ids.data.entries()) {
    if (id < 0 || id >= vocabulary) {
      throw mistake(
        where,
        `id ${id} (number ${at}) is outside the vocabulary of ${vocabulary}`,
        vocabulary === 0 ? 'give a table with rows' : `ids are from 0 to ${vocabulary - 1}`,
      );
    }
    const row = id - rank * rows;
    if (row < 0 || row >= rows) continue;
    output.data.set(table.data.subarray(row * width, (row + 1) * width), at * width);
  }
  return { ...output, shape };
}

/** Zeros of the same dtype; zero bits mean zero in every dtype. */
const emptyLike = (like: Tensor, count: number): Tensor =>
  like.dtype === 'f32'
    ? { dtype: like.dtype, shape: [count], data: new Float32Array(count) }
    : { dtype: like.dtype, shape: [count], data: new Uint16Array(count) };

/** Distribution of a table's initial values. */
export interface TableInitialisation {
  readonly vocabSize: number;
  readonly width: number;
  /** Default 0. */
  readonly mean?: number;
  /** Standard deviation, default 1. */
  readonly deviation?: number;
  readonly seed: number | bigint;
}

/**
 * Initial embedding table: `torch.manual_seed(seed)`, then normal.
 * @returns [vocabSize, width], float32.
 * @throws UserError for invalid sizes, deviation or seed.
 */
export function initialTable(initialisation: TableInitialisation): Float32Tensor {
  const { vocabSize, width, mean, deviation, seed } = initialisation;
  expectWhole('initialTable', 'the vocabulary', vocabSize, 1);
  expectWhole('initialTable', 'the width', width, 1);
  const data = manualSeed(seed).normal(new Float32Array(vocabSize * width), mean, deviation);
  return { dtype: 'f32', shape: [vocabSize, width], data };
}

/**
 * Initial rows of one rank: its seed is `seed` plus its rank.
 * @returns [vocabSize / worldSize, width], float32.
 * @throws UserError when the ranks do not divide the vocabulary, or the rank is invalid.
 */
export function initialParallelTable(
  initialisation: TableInitialisation,
  rank: Rank,
): Float32Tensor {
  const where = 'initialParallelTable';
  checkRank(where, rank);
  const { vocabSize, seed } = initialisation;
  expectWhole(where, 'the vocabulary', vocabSize, 1);
  if (vocabSize % rank.worldSize !== 0) {
    throw mistake(
      where,
      `${rank.worldSize} ranks do not divide a vocabulary of ${vocabSize}`,
      'choose a number of ranks that divides it, or add tokens to the vocabulary that are never used',
    );
  }
  const own = typeof seed === 'bigint' ? seed + BigInt(rank.rank) : seed + rank.rank;
  return initialTable({ ...initialisation, vocabSize: vocabSize / rank.worldSize, seed: own });
}

function checkRank(where: string, { rank, worldSize }: Rank): void {
  expectWhole(where, 'the number of ranks', worldSize, 1);
  expectWhole(where, 'the rank', rank, 0);
  if (rank >= worldSize) {
    throw mistake(
      where,
      `unknown rank ${rank}; expected 0 to ${worldSize - 1}`,
      `ranks are from 0 to ${worldSize - 1}`,
    );
  }
}
