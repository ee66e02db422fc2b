import { describe, expect, it } from 'vitest';
import {
  groupRmsNorm,
  initialGamma,
  initialParallelTable,
  NtkAwareRope,
  parallelVocabEmbedding,
} from '../../../src/model/modules/index.js';
import { readJson } from '../../fixtures.js';
import { largestDifference, nestedIds, nestedTensor } from './support.js';

type Nested = Parameters<typeof nestedTensor>[0];

interface Rope {
  readonly input: Nested;
  readonly output: Nested;
  readonly head_dim: number;
  readonly max_seq_len: number;
  readonly base: number;
  readonly ratio: number;
  readonly dynamic: boolean;
  readonly offset: number;
  readonly ratio_after: number;
}

interface Course {
  readonly group_rms_norm: {
    readonly input: Nested;
    readonly gamma: Nested;
    readonly output: Nested;
    readonly group_size: number;
    readonly eps: number;
    readonly init_range: [number, number];
    readonly init_seed: number;
  };
  readonly parallel_vocab_embedding: {
    readonly ids: Nested;
    readonly table: Nested;
    readonly output: Nested;
    readonly vocab_size: number;
    readonly emb_size: number;
    readonly rank: number;
    readonly world_size: number;
    readonly init_mean: number;
    readonly init_std: number;
    readonly init_base_seed: number;
  };
  readonly [rope: `ntk_rope_${string}`]: Rope;
}

const course = readJson<Course>('fixtures/modules/course.json');

describe('the results of the course are reproduced for', () => {
  it('GroupRMSNorm and its initial γ', () => {
    const { input, gamma, output, group_size, eps, init_range, init_seed } = course.group_rms_norm;
    const scales = nestedTensor(gamma);
    const computed = groupRmsNorm(nestedTensor(input), scales, group_size, eps);
    expect(largestDifference(computed, nestedTensor(output))).toBeLessThan(1e-6);
    expect(initialGamma(12, init_range, init_seed)).toEqual(scales);
  });

  it('ParallelVocabEmbedding and its initial rows', () => {
    const { ids, table, output, ...options } = course.parallel_vocab_embedding;
    const rank = { rank: options.rank, worldSize: options.world_size };
    const rows = nestedTensor(table);
    const computed = parallelVocabEmbedding(nestedIds(ids), rows, rank);
    expect(computed).toEqual(nestedTensor(output));
    const initial = initialParallelTable(
      {
        vocabSize: options.vocab_size,
        width: options.emb_size,
        mean: options.init_mean,
        deviation: options.init_std,
        seed: options.init_base_seed,
      },
      rank,
    );
    expect(largestDifference(initial, rows)).toBeLessThan(5e-7);
  });

  const ropes = Object.entries(course).filter((entry): entry is [`ntk_rope_${string}`, Rope] =>
    entry[0].startsWith('ntk_rope_'),
  );

  it.each(ropes)('%s', (_, rope) => {
    const turning = new NtkAwareRope({
      headDim: rope.head_dim,
      maxPositions: rope.max_seq_len,
      base: rope.base,
      scale: rope.ratio,
      dynamic: rope.dynamic,
    });
    const computed = turning.apply(nestedTensor(rope.input), rope.offset);
    expect(largestDifference(computed, nestedTensor(rope.output))).toBeLessThan(1e-6);
    expect(turning.scale).toBe(rope.ratio_after);
  });

  it('six cases of RoPE', () => expect(ropes.length).toBe(6));
});
