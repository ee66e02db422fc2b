import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { manualSeed } from '../../../src/base/random/index.js';
import {
  applyRotaryPosEmb,
  cast,
  groupedQueryAttention,
  groupRmsNorm,
  type Ids,
  initialGamma,
  initialParallelTable,
  initialTable,
  layerNorm,
  NtkAwareRope,
  onlineSoftmaxAttention,
  parallelVocabEmbedding,
  rmsNorm,
  swiglu,
  type Tensor,
  tensor,
  toFloat32,
  vocabEmbedding,
} from '../../../src/model/modules/index.js';
import { expectMistake, largestDifference } from './support.js';

const count = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);
const randn = (seed: number, ...shape: number[]): Tensor =>
  tensor(shape, manualSeed(seed).randn(count(shape)));
const ones = (...shape: number[]): Tensor => tensor(shape, new Float32Array(count(shape)).fill(1));
const ids = (...data: number[]): Ids => ({ shape: [1, data.length], data: Int32Array.from(data) });
const size = (most: number) => fc.integer({ min: 1, max: most });

describe('GroupRMSNorm', () => {
  it('equals RMSNorm with one group', () => {
    const [x, gamma] = [randn(1, 2, 3, 12), randn(2, 12)];
    expect(groupRmsNorm(x, gamma, 12)).toEqual(rmsNorm(x, gamma));
  });

  it('gives every group a mean square of one, at any size', () => {
    fc.assert(
      fc.property(fc.nat(), size(4), size(6), size(5), (seed, rows, width, groups) => {
        const x = randn(seed, rows, width * groups);
        const normed = toFloat32(groupRmsNorm(x, ones(width * groups), width, 0));
        for (let start = 0; start < normed.length; start += width) {
          const group = normed.subarray(start, start + width);
          const meanSquare = group.reduce((sum, value) => sum + value ** 2, 0) / width;
          expect(meanSquare).toBeCloseTo(1, 5);
        }
      }),
    );
  });

  it('has the width of a group as argument, not the number of groups', () => {
    const x = tensor([1, 6], [3, 4, 0, 0, 5, 12]);
    const normed = toFloat32(groupRmsNorm(x, ones(6), 2, 0.5));
    // [3, 4] has a mean square of 12.5; zeros stay zeros.
    expect(normed[0]).toBeCloseTo(3 / Math.sqrt(13), 6);
    expect([normed[2], normed[3]]).toEqual([0, 0]);
  });

  it('is initialised over its range', () => {
    const { shape, data } = initialGamma(1000, [-0.25, 0.75], 3);
    expect(shape).toEqual([1000]);
    expect(Math.min(...data)).toBeGreaterThanOrEqual(-0.25);
    expect(Math.min(...data)).toBeLessThan(-0.24);
    expect(Math.max(...data)).toBeGreaterThan(0.74);
    expect(Math.max(...data)).toBeLessThan(0.75);
  });
});

describe('LayerNorm', () => {
  it('squares in float32 like PyTorch: an overflow gives 0', () => {
    // F.rms_norm of [1e25, 1e25], and of sixteen times 1e19, whose sum overflows; F.layer_norm of [1e25, -1e25].
    expect([...toFloat32(rmsNorm(tensor([2], [1e25, 1e25]), ones(2)))]).toEqual([0, 0]);
    const many = tensor([16], new Array<number>(16).fill(1e19));
    expect([...toFloat32(rmsNorm(many, ones(16)))]).toEqual(new Array<number>(16).fill(0));
    const opposite = toFloat32(layerNorm(tensor([2], [1e25, -1e25]), ones(2)));
    expect([...opposite].map(Math.abs)).toEqual([0, 0]);
    // F.rms_norm(…, eps=0) of [1e-30, 2e-30]: their squares are 0.
    expect([...toFloat32(rmsNorm(tensor([2], [1e-30, 2e-30]), ones(2), 0))]).toEqual([
      Infinity,
      Infinity,
    ]);
  });

  it('removes mean and scale of its input', () => {
    const x = randn(1, 4, 16);
    const moved = tensor(
      [4, 16],
      toFloat32(x).map((value) => 3 * value + 5),
    );
    const [gamma, beta] = [randn(2, 16), randn(3, 16)];
    const difference = largestDifference(
      layerNorm(x, gamma, beta, 0),
      layerNorm(moved, gamma, beta, 0),
    );
    expect(difference).toBeLessThan(1e-5);
    expect(
      largestDifference(
        layerNorm(x, gamma),
        layerNorm(x, gamma, tensor([16], new Float32Array(16))),
      ),
    ).toBe(0);
  });
});

describe('embeddings', () => {
  it('give exact rows, in the dtype of the table', () => {
    for (const dtype of ['f32', 'f16', 'bf16'] as const) {
      const table = cast(randn(1, 5, 3), dtype);
      const rows = vocabEmbedding({ shape: [2, 2], data: Int32Array.of(4, 0, 4, 2) }, table);
      expect(rows.dtype).toBe(dtype);
      expect(rows.shape).toEqual([2, 2, 3]);
      const row = (id: number) => [...table.data.subarray(id * 3, id * 3 + 3)];
      expect([...rows.data]).toEqual([4, 0, 4, 2].flatMap(row));
    }
  });

  it('of all ranks sum to the whole', () => {
    const setting = fc.record({
      worldSize: size(5),
      rows: size(6),
      width: size(4),
      seed: fc.nat(1000),
      ids: fc.array(fc.nat(), { minLength: 1, maxLength: 12 }),
    });
    fc.assert(
      fc.property(setting, ({ worldSize, rows, width, seed, ids: drawn }) => {
        const vocabSize = worldSize * rows;
        const own = ids(...drawn.map((id) => id % vocabSize));
        const parts = Array.from({ length: worldSize }, (_, rank) =>
          initialParallelTable({ vocabSize, width, seed }, { rank, worldSize }),
        );
        const whole = tensor(
          [vocabSize, width],
          parts.flatMap(({ data }) => [...data]),
        );
        const sum = new Float32Array(own.data.length * width);
        for (const [rank, table] of parts.entries()) {
          const part = parallelVocabEmbedding(own, table, { rank, worldSize });
          for (const [at, value] of toFloat32(part).entries()) sum[at] = (sum[at] ?? 0) + value;
        }
        expect(tensor([1, own.data.length, width], sum)).toEqual(vocabEmbedding(own, whole));
      }),
    );
  });

  it('of each rank are initialised with a separate seed', () => {
    const setting = { vocabSize: 6, width: 4, mean: 0.5, deviation: 2, seed: 40 };
    const part = initialParallelTable(setting, { rank: 2, worldSize: 3 });
    expect(part).toEqual(initialTable({ ...setting, vocabSize: 2, seed: 42 }));
    expect(part.data).toEqual(manualSeed(42).normal(new Float32Array(8), 0.5, 2));
    expect(initialParallelTable({ ...setting, seed: 40n }, { rank: 2, worldSize: 3 })).toEqual(
      part,
    );
  });
});

describe('NTK-aware RoPE', () => {
  const rope = (maxPositions: number, scale: number, dynamic = false, headDim = 4) =>
    new NtkAwareRope({ headDim, maxPositions, scale, dynamic });
  const input = (positions: number) => randn(positions, 1, positions, 2, 4);

  it.each([
    // Positions, initial scale, input length → scale. The last length of a range, and the first beyond it.
    [2, 4, 8, 4],
    [2, 4, 9, 6],
    [2, 4, 12, 6],
    [2, 4, 13, 8],
    [2, 1, 2, 1],
    [2, 1, 3, 2],
    [2, 1, 4, 2],
    [2, 1, 5, 4],
    [4, 3, 12, 3],
    [4, 3, 13, 4],
    [4, 3, 16, 4],
    [4, 3, 17, 6],
    [1, 1, 2, 2],
    [1, 1, 3, 4],
    [5, 2, 1000, 200],
    [5, 2, 1001, 202],
  ])(
    'trained with %i and scaled by %i needs, for %i positions, %i',
    (positions, scale, length, expected) => {
      const kept = rope(positions, scale, true);
      expect(kept.scaleFor(length)).toBe(expected);
      kept.apply(input(length));
      expect(kept.scale).toBe(expected);
      expect(kept.tables.cos.shape).toEqual([positions * expected, 4]);
    },
  );

  it('finds the smallest even scale that is enough', () => {
    fc.assert(
      fc.property(size(64), size(9), size(5000), (positions, scale, length) => {
        const chosen = rope(positions, scale).scaleFor(length);
        if (length <= positions * scale) {
          expect(chosen).toBe(scale);
          return;
        }
        expect(chosen % 2).toBe(0);
        expect(positions * chosen).toBeGreaterThanOrEqual(length);
        expect(positions * (chosen - 2)).toBeLessThan(length);
      }),
    );
  });

  it('keeps its extended length when it is dynamic', () => {
    const kept = rope(3, 2, true);
    const before = kept.apply(input(4));
    const long = kept.apply(input(13));
    expect(kept.scale).toBe(6);
    // A short input now uses the tables of the long one.
    expect(kept.apply(input(4))).not.toEqual(before);
    expect(kept.apply(input(4))).toEqual(rope(3, 6).apply(input(4)));
    expect(long).toEqual(rope(3, 6).apply(input(13)));
  });

  it('forgets the extended length when it is not dynamic', () => {
    const fixed = rope(3, 2);
    const before = fixed.apply(input(4));
    expect(fixed.apply(input(13))).toEqual(rope(3, 6).apply(input(13)));
    expect(fixed.scale).toBe(2);
    expect(fixed.tables.cos.shape).toEqual([6, 4]);
    expect(fixed.apply(input(4))).toEqual(before);
  });

  it('continues at an offset', () => {
    const turning = rope(16, 1);
    const whole = input(12);
    const rest = tensor([1, 5, 2, 4], toFloat32(whole).subarray(7 * 8));
    const expected = toFloat32(turning.apply(whole)).subarray(7 * 8);
    expect(toFloat32(turning.apply(rest, 7))).toEqual(expected);
    expect(turning.scale).toBe(1);
    turning.apply(rest, 12);
    const grown = rope(16, 1, true);
    grown.apply(rest, 11);
    expect(grown.scale).toBe(1);
    grown.apply(rest, 12);
    expect(grown.scale).toBe(2);
  });

  it('has float32 tables for every input type', () => {
    const turning = rope(8, 1);
    for (const dtype of ['f16', 'bf16'] as const) {
      const x = cast(input(6), dtype);
      const turned = turning.apply(x);
      expect(turned).toEqual(cast(turning.apply(cast(x, 'f32')), dtype));
    }
    expect(turning.tables.sin.dtype).toBe('f32');
  });

  it('keeps the length of every pair', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(100), (seed, offset) => {
        const x = randn(seed, 2, 3, 2, 8);
        const turned = toFloat32(rope(16, 1, false, 8).apply(x, offset));
        const values = toFloat32(x);
        for (let head = 0; head < values.length; head += 8) {
          for (let i = head; i < head + 4; i++) {
            const before = Math.hypot(values[i] ?? 0, values[i + 4] ?? 0);
            expect(Math.hypot(turned[i] ?? 0, turned[i + 4] ?? 0)).toBeCloseTo(before, 5);
          }
        }
      }),
    );
  });

  it('allows far positions only without dynamic, whose tables would be too large', () => {
    const x = input(1);
    const far = 2 ** 40;
    expect(toFloat32(rope(3, 2).apply(x, far))).toHaveLength(8);
    expectMistake(() => rope(3, 2, true).apply(x, far), /tables of 10995\d+ positions/);
    expectMistake(() => rope(2 ** 40, 1), /tables of 1099511627776 positions/);
  });

  it('refuses to extend heads of width 2', () => {
    const narrow = rope(4, 1, false, 2);
    expect(narrow.apply(randn(1, 1, 4, 1, 2)).shape).toEqual([1, 4, 1, 2]);
    expectMistake(() => narrow.apply(randn(1, 1, 5, 1, 2)), /width 2 have one frequency/);
  });
});

describe('SwiGLU', () => {
  it('is silu(gate) · up', () => {
    const [gate, up] = [tensor([4], [0, 1, -1, 800]), tensor([4], [5, 2, 2, 0.5])];
    // silu(1) = 1 / (1 + e^-1)
    const expected = [0, 1.4621171572600098, -0.5378828427399902, 400];
    for (const [at, value] of toFloat32(swiglu(gate, up)).entries()) {
      expect(value).toBeCloseTo(expected[at] ?? Number.NaN, 6);
    }
    expect(toFloat32(swiglu(tensor([1], [-800]), tensor([1], [3])))[0]).toBeCloseTo(0, 10);
  });
});

describe('attention', () => {
  const setting = fc.record({
    batch: size(2),
    queries: size(7),
    more: fc.nat(9),
    keyHeads: size(3),
    group: size(3),
    headDim: size(6),
    width: size(5),
    causal: fc.boolean(),
    tile: size(20),
    seed: fc.nat(),
    // Large scores make the running maximum move.
    spread: fc.constantFrom(1, 30, 1000),
  });

  it('in tiles equals plain attention', () => {
    fc.assert(
      fc.property(setting, (given) => {
        const { batch, queries, keyHeads, headDim, width, causal, tile, seed, spread } = given;
        const keys = queries + given.more;
        const q = randn(seed, batch, queries, keyHeads * given.group, headDim);
        const large = tensor(
          q.shape,
          toFloat32(q).map((value) => value * spread),
        );
        const k = randn(seed + 1, batch, keys, keyHeads, headDim);
        const v = randn(seed + 2, batch, keys, keyHeads, width);
        const plain = groupedQueryAttention(large, k, v, { causal });
        const tiled = onlineSoftmaxAttention(large, k, v, { causal, tile });
        expect(plain.shape).toEqual([batch, queries, keyHeads * given.group, width]);
        expect(largestDifference(plain, tiled)).toBeLessThan(1e-6);
      }),
    );
  });

  it('shares key heads among neighbouring heads', () => {
    const [q, k, v] = [randn(1, 1, 3, 6, 4), randn(2, 1, 3, 2, 4), randn(3, 1, 3, 2, 4)];
    const repeated = (values: Tensor) =>
      tensor(
        [1, 3, 6, 4],
        [0, 1, 2].flatMap((key) =>
          [0, 0, 0, 1, 1, 1].flatMap((head) => [
            ...toFloat32(values).subarray((key * 2 + head) * 4, (key * 2 + head + 1) * 4),
          ]),
        ),
      );
    expect(groupedQueryAttention(q, k, v)).toEqual(
      groupedQueryAttention(q, repeated(k), repeated(v)),
    );
  });

  it('hides later keys from a query', () => {
    const [q, k, v] = [randn(1, 1, 4, 2, 4), randn(2, 1, 6, 2, 4), randn(3, 1, 6, 2, 4)];
    const other = tensor(v.shape, [...toFloat32(v).subarray(0, 5 * 8), ...new Float32Array(8)]);
    for (const block of [groupedQueryAttention, onlineSoftmaxAttention]) {
      const before = toFloat32(block(q, k, v, { causal: true }));
      const after = toFloat32(block(q, k, other, { causal: true }));
      expect(after.subarray(0, 3 * 8)).toEqual(before.subarray(0, 3 * 8));
      expect(after.subarray(3 * 8)).not.toEqual(before.subarray(3 * 8));
    }
  });

  it('gives keys of -Infinity zero weight, even in whole tiles', () => {
    const [q, some, v] = [ones(1, 2, 1, 2), randn(2, 1, 6, 1, 2), randn(3, 1, 6, 1, 3)];
    const hidden = new Set([0, 1, 2, 4]);
    const k = tensor(
      some.shape,
      toFloat32(some).map((value, at) =>
        hidden.has(Math.floor(at / 2)) ? Number.NEGATIVE_INFINITY : value,
      ),
    );
    const kept = (of: Tensor, width: number) =>
      tensor(
        [1, 2, 1, width],
        toFloat32(of).filter((_, at) => !hidden.has(Math.floor(at / width))),
      );
    const expected = groupedQueryAttention(q, kept(some, 2), kept(v, 3));
    expect(groupedQueryAttention(q, k, v)).toEqual(expected);
    for (const tile of [1, 2, 3, 64]) {
      expect(largestDifference(onlineSoftmaxAttention(q, k, v, { tile }), expected)).toBeLessThan(
        1e-6,
      );
    }
    // Without any weight there is no mean, as in PyTorch's softmax.
    const none = tensor([1, 2, 1, 2], new Float32Array(4).fill(Number.NEGATIVE_INFINITY));
    for (const block of [groupedQueryAttention, onlineSoftmaxAttention]) {
      expect(toFloat32(block(q, none, kept(v, 3))).every(Number.isNaN)).toBe(true);
    }
  });

  it('limits a tile to the number of keys', () => {
    const [q, k, v] = [ones(1, 1, 1, 2), ones(1, 3, 1, 2), ones(1, 3, 1, 2)];
    const output = onlineSoftmaxAttention(q, k, v, { tile: 2 ** 40 });
    expect([...toFloat32(output)]).toEqual([1, 1]);
  });

  it('gives NaN for an infinite value of any weight, like PyTorch', () => {
    // torch.softmax(torch.tensor([-inf, 0]), 0) @ torch.tensor([inf, 1]) is nan, as with (q, k, v) below.
    const q = tensor([1, 1, 1, 1], [1]);
    const k = tensor([1, 4, 1, 1], [-Infinity, -Infinity, 0, 1]);
    const v = tensor([1, 4, 1, 2], [Infinity, 1, 2, 3, 4, 5, 6, 7]);
    const plain = toFloat32(groupedQueryAttention(q, k, v));
    expect(plain[0]).toBeNaN();
    for (const tile of [1, 2, 3, 64]) {
      const tiled = toFloat32(onlineSoftmaxAttention(q, k, v, { tile }));
      expect(tiled[0]).toBeNaN();
      expect(tiled[1]).toBeCloseTo(plain[1] ?? 0, 6);
    }
  });

  it('accepts a negative scale', () => {
    // scaled_dot_product_attention(q, k, v, scale=-0.7) of these is 3 in PyTorch: scores 5 and 5.
    const q = tensor([1, 1, 1, 2], [1, 2]);
    const v = tensor([1, 2, 1, 1], [1, 5]);
    const options = { scale: -0.7 };
    const even = groupedQueryAttention(q, tensor([1, 2, 1, 2], [1, 2, 3, 1]), v, options);
    expect([...toFloat32(even)]).toEqual([3]);
    const [first = 0] = toFloat32(
      onlineSoftmaxAttention(q, tensor([1, 2, 1, 2], [1, 2, 3, 3]), v, options),
    );
    expect(first).toBeLessThan(1.3);
  });

  it('accepts another scale', () => {
    const [q, k, v] = [randn(1, 1, 4, 1, 4), randn(2, 1, 4, 1, 4), randn(3, 1, 4, 1, 4)];
    const usual = groupedQueryAttention(q, k, v);
    expect(groupedQueryAttention(q, k, v, { scale: 0.5 })).toEqual(usual);
    expect(onlineSoftmaxAttention(q, k, v, { scale: 0.1 })).not.toEqual(usual);
    // With scale 0, every key has the same weight.
    const even = toFloat32(groupedQueryAttention(q, k, v, { scale: 0 }));
    const values = toFloat32(v);
    const mean = [0, 4, 8, 12].reduce((sum, at) => sum + (values[at] ?? 0), 0) / 4;
    expect(even[0]).toBeCloseTo(mean, 6);
  });
});

describe('tensors', () => {
  it('are rounded to nearest, ties to even', () => {
    // 1 + 2^-11 lies between two values of float16, 1 + 3 · 2^-11 too; IEEE 754 takes the even one.
    const halves = tensor([4], [1 + 2 ** -11, 1 + 3 * 2 ** -11, 65520, -0], 'f16');
    expect([...halves.data]).toEqual([0x3c00, 0x3c02, 0x7c00, 0x8000]);
    const brains = tensor([2], [1 + 2 ** -8, 1 + 3 * 2 ** -8], 'bf16');
    expect([...brains.data]).toEqual([0x3f80, 0x3f82]);
    expect([...toFloat32(brains)]).toEqual([1, 1.015625]);
  });

  it('are cast as in PyTorch', () => {
    const x = randn(1, 3, 5);
    expect(cast(x, 'f32')).toBe(x);
    expect(cast(cast(x, 'f16'), 'f32').dtype).toBe('f32');
    expect(largestDifference(cast(cast(x, 'f16'), 'f32'), x)).toBeLessThan(2e-3);
  });

  it('are not changed by blocks', () => {
    const x = randn(1, 2, 3, 2, 4);
    const copy = tensor(x.shape, toFloat32(x));
    rmsNorm(x, ones(4));
    layerNorm(x, ones(4));
    new NtkAwareRope({ headDim: 4, maxPositions: 3 }).apply(x);
    groupedQueryAttention(x, x, x);
    swiglu(x, x);
    expect(x).toEqual(copy);
  });
});

describe('an invalid argument is reported:', () => {
  const x = randn(1, 2, 3, 12);
  const heads = (s: number, count: number, width = 4) => randn(1, 1, s, count, width);
  const table = randn(1, 4, 2);
  const codes = { dtype: 'f16', shape: [12], data: new Float32Array(12) } as unknown as Tensor;
  const rope = (options: object) => new NtkAwareRope({ headDim: 4, maxPositions: 4, ...options });

  it.each<[string, () => unknown, RegExp]>([
    [
      'a group that does not divide',
      () => groupRmsNorm(x, ones(12), 5),
      /group of 5 columns does not divide the width 12/,
    ],
    ['a group of width 0', () => groupRmsNorm(x, ones(12), 0), /width of a group is 0/],
    ['a group of 1.5 columns', () => groupRmsNorm(x, ones(12), 1.5), /width of a group is 1\.5/],
    ['another γ', () => groupRmsNorm(x, ones(11), 4), /γ has shape \[11\] and should have \[12\]/],
    ['a γ that is a matrix', () => rmsNorm(x, ones(1, 12)), /γ has shape \[1, 12\]/],
    ['a negative eps', () => rmsNorm(x, ones(12), -1), /eps is -1/],
    ['an eps of NaN', () => layerNorm(x, ones(12), undefined, Number.NaN), /eps is NaN/],
    [
      'another β',
      () => layerNorm(x, ones(12), ones(3)),
      /β has shape \[3\] and should have \[12\]/,
    ],
    ['a scalar', () => rmsNorm(tensor([], [1]), ones(1)), /width of X is 0/],
    ['rows without columns', () => layerNorm(tensor([2, 0], []), ones(1)), /width of X is 0/],
    ['a γ of no size', () => initialGamma(0, [0, 1], 1), /the width is 0/],
    ['a reversed range', () => initialGamma(4, [1, 0], 1), /between 1 and 0/],
    [
      'an id at the end',
      () => vocabEmbedding(ids(0, 4), table),
      /id 4 \(number 1\) is outside the vocabulary of 4/,
    ],
    ['a negative id', () => vocabEmbedding(ids(-1), table), /id -1 \(number 0\)/],
    ['a table of 1 axis', () => vocabEmbedding(ids(0), ones(4)), /of 1 axes/],
    ['a table without rows', () => vocabEmbedding(ids(0), tensor([0, 2], [])), /vocabulary of 0/],
    [
      'an id beyond all ranks',
      () => parallelVocabEmbedding(ids(12), table, { rank: 0, worldSize: 3 }),
      /id 12 .* vocabulary of 12/,
    ],
    [
      'a rank beyond all',
      () => parallelVocabEmbedding(ids(0), table, { rank: 3, worldSize: 3 }),
      /unknown rank 3; expected 0 to 2/,
    ],
    [
      'a rank below zero',
      () => parallelVocabEmbedding(ids(0), table, { rank: -1, worldSize: 3 }),
      /the rank is -1/,
    ],
    [
      'no ranks',
      () => parallelVocabEmbedding(ids(0), table, { rank: 0, worldSize: 0 }),
      /number of ranks is 0/,
    ],
    [
      'ranks that do not divide',
      () => initialParallelTable({ vocabSize: 10, width: 2, seed: 1 }, { rank: 0, worldSize: 3 }),
      /3 ranks do not divide a vocabulary of 10/,
    ],
    ['no vocabulary', () => initialTable({ vocabSize: 0, width: 2, seed: 1 }), /vocabulary is 0/],
    ['no width', () => initialTable({ vocabSize: 2, width: 0, seed: 1 }), /width is 0/],
    [
      'a negative deviation',
      () => initialTable({ vocabSize: 2, width: 2, deviation: -1, seed: 1 }),
      /deviation -1/,
    ],
    [
      'ids that are not integers',
      () => vocabEmbedding({ shape: [1], data: new Float32Array(1) } as never, table),
      /ids in a Float32Array/,
    ],
    [
      'ids of another shape',
      () => vocabEmbedding({ shape: [2], data: new Int32Array(1) }, table),
      /shape \[2\] for 1 values/,
    ],
    [
      'an odd head',
      () => applyRotaryPosEmb(heads(2, 1, 3), ones(2, 3), ones(2, 3)),
      /width of a head is 3/,
    ],
    [
      'no axis of heads',
      () => applyRotaryPosEmb(x, ones(3, 12), ones(3, 12)),
      /X has shape \[2, 3, 12\], of 3 axes/,
    ],
    [
      'cosines of other positions',
      () => applyRotaryPosEmb(heads(2, 1), ones(3, 4), ones(2, 4)),
      /cosines has shape \[3, 4\] and should have \[2, 4\]/,
    ],
    [
      'sines of another width',
      () => applyRotaryPosEmb(heads(2, 1), ones(2, 4), ones(2, 2)),
      /sines has shape \[2, 2\]/,
    ],
    ['an odd width', () => rope({ headDim: 5 }), /width of a head is 5/],
    ['no positions', () => rope({ maxPositions: 0 }), /number of positions is 0/],
    ['half a scale', () => rope({ scale: 1.5 }), /the scale is 1\.5/],
    ['a base of zero', () => rope({ base: 0 }), /the base is 0/],
    ['an infinite base', () => rope({ base: Number.POSITIVE_INFINITY }), /the base is Infinity/],
    ['a negative offset', () => rope({}).apply(heads(2, 1), -1), /the offset is -1/],
    [
      'heads of another width',
      () => rope({}).apply(heads(2, 1, 6)),
      /X has shape \[1, 2, 1, 6\] and should have \[1, 2, 1, 4\]/,
    ],
    ['gates of another shape', () => swiglu(x, ones(12)), /up has shape \[12\]/],
    ['gates of another dtype', () => swiglu(x, cast(x, 'f16')), /gate is f32, up is f16/],
    [
      'heads that do not divide',
      () => groupedQueryAttention(heads(2, 3), heads(2, 2), heads(2, 2)),
      /2 key heads do not divide 3 heads/,
    ],
    [
      'no key heads',
      () => groupedQueryAttention(heads(2, 3), heads(2, 0), heads(2, 0)),
      /0 key heads/,
    ],
    [
      'values of other keys',
      () => groupedQueryAttention(heads(2, 2), heads(2, 2), heads(3, 2)),
      /V has shape \[1, 3, 2, 4\] and should have \[1, 2, 2, 4\]/,
    ],
    [
      'keys of another width',
      () => onlineSoftmaxAttention(heads(2, 2), heads(2, 2, 6), heads(2, 2)),
      /K has shape \[1, 2, 2, 6\]/,
    ],
    [
      'no keys',
      () => groupedQueryAttention(heads(2, 2), heads(0, 2), heads(0, 2)),
      /number of keys is 0/,
    ],
    [
      'queries that see nothing',
      () => groupedQueryAttention(heads(3, 2), heads(2, 2), heads(2, 2), { causal: true }),
      /3 queries and 2 keys/,
    ],
    [
      'a scale of NaN',
      () => groupedQueryAttention(heads(2, 2), heads(2, 2), heads(2, 2), { scale: Number.NaN }),
      /the scale is NaN/,
    ],
    [
      'several dtypes',
      () => groupedQueryAttention(heads(2, 2), cast(heads(2, 2), 'f16'), heads(2, 2)),
      /Q is f32, K is f16, V is f32/,
    ],
    [
      'a tile of no keys',
      () => onlineSoftmaxAttention(heads(2, 2), heads(2, 2), heads(2, 2), { tile: 0 }),
      /the tile is 0/,
    ],
    ['a shape of another size', () => tensor([2, 2], [1]), /shape \[2, 2\] for 1 values/],
    ['an unknown dtype', () => tensor([1], [1], 'f8' as never), /dtype f8/],
    ['values that are not codes', () => rmsNorm(x, codes), /dtype f16 in a Float32Array/],
    [
      'an unknown dtype of a literal',
      () => toFloat32({ ...codes, dtype: 'i8' } as never),
      /dtype i8 in a Float32Array/,
    ],
  ])('%s', (_, attempt, message) => expectMistake(attempt, message));
});
