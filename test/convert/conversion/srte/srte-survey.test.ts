import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../../src/checkpoint/open.js';
import { surveySrte as survey } from '../../../../src/convert/conversion/srte/survey-srte.js';
import { checkpointOf, storageOf, tensorIn, tensorOf } from '../../../checkpoint/stored-tensors.js';
import { inPackage } from '../../../fixtures.js';
import { layersOf } from '../layers.js';

describe('the survey of two tables', () => {
  // The mean is diag(3, 2, 1). Both tables differ from it by 1, in a corner.
  const mean = [3, 0, 0, 0, 2, 0, 0, 0, 1];
  const checkpoint = layersOf([3, 3], mean.with(2, 1), mean.with(2, -1));

  it('reports their similarity', async () => {
    const result = await survey(checkpoint);
    expect(result).toMatchObject({
      sharing: 'per-layer',
      positions: 3,
      hidden: 3,
      storedRank: null,
      dtype: 'F32',
      parameters: 18,
      bytes: 72,
      notes: [],
    });
    // (9 + 4 + 1 − 1) / (9 + 4 + 1 + 1)
    expect(result.cosines).toEqual([
      [1, 13 / 15],
      [13 / 15, 1],
    ]);
    expect(result.meanNorm).toBeCloseTo(Math.sqrt(14), 14);
    expect(result.tables).toMatchObject([
      { layer: 0, name: 'layers.0.srte.freqs', distanceToMean: 1, largestDifference: 1 },
      { layer: 1, name: 'layers.1.srte.freqs', distanceToMean: 1, largestDifference: 1 },
    ]);
    for (const { norm, cosineToMean, relativeDistance, nonFinite } of result.tables) {
      expect(norm).toBeCloseTo(Math.sqrt(15), 14);
      expect(cosineToMean).toBeCloseTo(14 / Math.sqrt(15 * 14), 14);
      expect(relativeDistance).toBeCloseTo(1 / Math.sqrt(15), 14);
      expect(nonFinite).toBeNull();
    }
  });

  it('reports the error of a shared table of each rank', async () => {
    const { options } = await survey(checkpoint, { ranks: [1, 2, 3] });
    const common = { savedParameters: 9, savedBytes: 36 };
    expect(options).toMatchObject([
      { rank: null, parameters: 9, bytes: 36, energy: 1, ...common },
      { rank: 1, parameters: 6, bytes: 24, savedParameters: 12, savedBytes: 48 },
      { rank: 2, parameters: 12, bytes: 48, savedParameters: 6, savedBytes: 24 },
      { rank: 3, parameters: 18, bytes: 72, savedParameters: 0, savedBytes: 0 },
    ]);
    // Squared errors of 30: 1 + 1, and twice the part of 9 + 4 + 1 beyond the rank.
    const errors = [2, 2 + 2 * 5, 2 + 2 * 1, 2].map((squares) => Math.sqrt(squares / 30));
    const energies = [1, 9 / 14, 13 / 14, 1];
    for (const [index, option] of options.entries()) {
      expect(option.relativeError).toBeCloseTo(errors[index] ?? 0, 14);
      expect(option.energy).toBeCloseTo(energies[index] ?? 0, 14);
    }
  });
});

describe('the survey', () => {
  // Two tables of 16 × 8, with numbers of numpy in float64.
  it('agrees with numpy for a file of PyTorch', async () => {
    const checkpoint = openCheckpoint(inPackage('fixtures/checkpoints/valid/zip_proto5.pt'));
    const { meanNorm, tables, options } = await survey(checkpoint, { ranks: [2, 4] });
    checkpoint.close();
    expect(meanNorm).toBeCloseTo(8.519273729721517, 13);
    expect(tables[0]?.relativeDistance).toBeCloseTo(0.6062342121515477, 14);
    expect(tables[1]?.relativeDistance).toBeCloseTo(0.7802825778078318, 14);
    expect(tables[1]?.largestDifference).toBe(1.5942975878715515);
    const errors = options.map(({ relativeError }) => relativeError);
    expect(errors[0]).toBeCloseTo(0.6770210586256514, 14);
    expect(errors[1]).toBeCloseTo(0.847335383193565, 14);
    expect(errors[2]).toBeCloseTo(0.7515644232145624, 14);
    expect(Math.sqrt(1 - (options[1]?.energy ?? 0))).toBeCloseTo(0.6923289497823981, 14);
  });

  it('reports the positions of values that are not finite', async () => {
    const checkpoint = openCheckpoint(
      inPackage('fixtures/checkpoints/valid/st_nan_inf.safetensors'),
    );
    const { tables, options, meanNorm, cosines, notes } = await survey(checkpoint);
    checkpoint.close();
    expect(tables.map(({ nonFinite }) => nonFinite)).toEqual([
      { count: 1, row: 3, column: 2, value: 'NaN' },
      { count: 1, row: 5, column: 1, value: 'Infinity' },
    ]);
    expect(meanNorm).toBeNull();
    expect(cosines.flat()).toEqual([null, null, null, null]);
    expect(options).toMatchObject([{ rank: null, energy: null, relativeError: null }]);
    expect(notes).toEqual(['Ranks were not compared: the mean of the tables has no finite norm.']);
  });

  it('reports finite tables next to others', async () => {
    const { tables, cosines } = await survey(
      layersOf([2, 1], [3, 4], [4, 3], [Number.NEGATIVE_INFINITY, Number.NaN]),
    );
    expect(cosines.map((row) => row.map((cosine) => cosine !== null))).toEqual([
      [true, true, false],
      [true, true, false],
      [false, false, false],
    ]);
    expect(tables[0]).toMatchObject({
      norm: 5,
      distanceToMean: null,
      relativeDistance: null,
      largestDifference: null,
      cosineToMean: null,
      nonFinite: null,
    });
    expect(tables[2]?.nonFinite).toEqual({ count: 2, row: 0, column: 0, value: '-Infinity' });
  });

  it('has no ratios for tables of zeros', async () => {
    const { tables, options, cosines } = await survey(
      layersOf([2, 2], [0, 0, 0, 0], [0, 0, 0, 0]),
      {
        ranks: [1],
      },
    );
    expect(tables[0]).toMatchObject({ norm: 0, distanceToMean: 0, relativeDistance: null });
    expect(cosines).toEqual([
      [null, null],
      [null, null],
    ]);
    expect(options).toMatchObject([
      { energy: null, relativeError: null },
      { rank: 1, energy: null, relativeError: null },
    ]);
  });

  it('finds no difference between equal tables', async () => {
    const values = Array.from({ length: 600 }, (_, index) => Math.fround(Math.sin(index) / 3));
    const { tables, cosines, options } = await survey(
      layersOf([30, 20], values, values, values, values),
    );
    expect(new Set(cosines.flat())).toEqual(new Set([1]));
    for (const table of tables) {
      expect(table).toMatchObject({ relativeDistance: 0, largestDifference: 0 });
      expect(table.cosineToMean).toBeCloseTo(1, 14);
    }
    expect(options[0]?.relativeError).toBe(0);
  });

  it('finds cosine −1 and mean 0 for opposite tables', async () => {
    const { tables, cosines, meanNorm, options } = await survey(
      layersOf([2, 2], [1, 2, 3, 4], [-1, -2, -3, -4]),
    );
    expect(cosines[0]).toEqual([1, -1]);
    expect(meanNorm).toBe(0);
    expect(tables[0]).toMatchObject({ relativeDistance: 1, cosineToMean: null });
    expect(options[0]).toMatchObject({ relativeError: 1, energy: null });
  });

  it('limits cosines to 1 in spite of rounding', async () => {
    const values = [1.3, 4.1, 0.7];
    const table = (scale: number) => {
      const bytes = new Uint8Array(Float64Array.from(values, (value) => value * scale).buffer);
      return tensorIn(storageOf(bytes), [1, 3, 1], { dtype: 'F64' });
    };
    const { cosines } = await survey(
      checkpointOf({ 'layers.0.srte.freqs': table(1), 'layers.1.srte.freqs': table(3.7) }),
    );
    expect(cosines[0]).toEqual([1, 1]);
  });

  it('has no value for squares beyond float64', async () => {
    const bytes = new Uint8Array(Float64Array.of(1e200, 1e200).buffer);
    const table = () => tensorIn(storageOf(bytes), [1, 2, 1], { dtype: 'F64' });
    const { tables, options, cosines } = await survey(
      checkpointOf({ 'layers.0.srte.freqs': table(), 'layers.1.srte.freqs': table() }),
    );
    expect(tables[0]).toMatchObject({ norm: null, relativeDistance: null, nonFinite: null });
    expect(cosines.flat()).toEqual([null, null, null, null]);
    expect(options).toMatchObject([{ rank: null, relativeError: null, energy: null }]);
  });

  it('has no differences for one layer', async () => {
    const result = await survey(layersOf([2, 2], [1, 2, 3, 4]));
    expect(result.cosines).toEqual([[1]]);
    expect(result.options[0]).toMatchObject({ rank: null, relativeError: 0, savedParameters: 0 });
  });

  it('reports only ranks for a shared table', async () => {
    const table = tensorOf([3, 0, 0, 4], [1, 2, 2]);
    const { sharing, tables, options, parameters, notes } = await survey(
      checkpointOf({
        'shared_srte.freqs': table,
        'layers.0.srte.freqs': table,
        'layers.1.srte.freqs': table,
      }),
      { ranks: [1] },
    );
    expect({ sharing, parameters }).toEqual({ sharing: 'shared', parameters: 4 });
    expect(tables).toMatchObject([{ layer: null, name: 'shared_srte.freqs' }]);
    expect(options).toMatchObject([{ rank: 1, energy: 16 / 25, relativeError: 3 / 5 }]);
    expect(notes).toEqual(['The SRTE is shared already: all layers have this one table.']);
  });

  it('counts a table shared by some layers once, with a note', async () => {
    const table = tensorOf([1, 2, 3, 4], [1, 2, 2]);
    const { parameters, bytes, notes } = await survey(
      checkpointOf({
        'layers.0.srte.freqs': table,
        'layers.1.srte.freqs': tensorOf([1, 2, 3, 5], [1, 2, 2]),
        'layers.2.srte.freqs': table,
      }),
    );
    expect({ parameters, bytes }).toEqual({ parameters: 8, bytes: 32 });
    expect(notes).toEqual(['Some layers share a table: there are 2 for 3 layers.']);
  });

  it('reports the products of low-rank pairs', async () => {
    const pair = (layer: number, rows: number[], projection: number[]) => ({
      [`layers.${layer}.srte.lowrank`]: tensorOf(rows, [1, 4, 1]),
      [`layers.${layer}.srte.proj.weight`]: tensorOf(projection, [3, 1]),
    });
    // The products are [[3, 0, 0], …] and [[0, 4, 0], …] with zeros elsewhere, for any scale of the factors.
    const result = await survey(
      checkpointOf({ ...pair(0, [3, 0, 0, 0], [1, 0, 0]), ...pair(1, [1, 0, 0, 0], [0, 4, 0]) }),
    );
    expect(result).toMatchObject({
      storedRank: 1,
      parameters: 14,
      cosines: [
        [1, 0],
        [0, 1],
      ],
    });
    expect(result.tables).toMatchObject([{ norm: 3 }, { norm: 4 }]);
    expect(result.meanNorm).toBe(2.5);
    expect(result.options).toMatchObject([{ rank: null, parameters: 12, savedParameters: 2 }]);
  });

  it('reads each dtype, and counts bytes in the widest', async () => {
    const shape = [1, 2, 2];
    const bytes = (array: ArrayBufferView) => new Uint8Array(array.buffer);
    const result = await survey(
      checkpointOf({
        // 1, 2, 3, 4 as binary16, as bfloat16 and as float64.
        'layers.0.srte.freqs': tensorIn(
          storageOf(bytes(Uint16Array.of(0x3c00, 0x4000, 0x4200, 0x4400))),
          shape,
          { dtype: 'F16' },
        ),
        'layers.1.srte.freqs': tensorIn(
          storageOf(bytes(Uint16Array.of(0x3f80, 0x4000, 0x4040, 0x4080))),
          shape,
          { dtype: 'BF16' },
        ),
        'layers.2.srte.freqs': tensorIn(storageOf(bytes(Float64Array.of(1, 2, 3, 4))), shape, {
          dtype: 'F64',
        }),
      }),
    );
    expect(result).toMatchObject({ dtype: 'F64', bytes: 8 + 8 + 32 });
    expect(result.options[0]).toMatchObject({ bytes: 32, relativeError: 0 });
  });
});

it('the survey is exact for any tables, and a lower rank never has a smaller error', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 5 }),
      fc.integer({ min: 2, max: 9 }),
      fc.integer({ min: 2, max: 9 }),
      fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 405, maxLength: 405 }),
      async (layers, positions, hidden, numbers) => {
        const size = positions * hidden;
        const tables = Array.from({ length: layers }, (_, layer) =>
          numbers.slice(layer * size, (layer + 1) * size),
        );
        const full = Math.min(positions, hidden);
        const { options } = await survey(layersOf([positions, hidden], ...tables), {
          ranks: Array.from({ length: full }, (_, rank) => rank + 1),
        });
        const [mean, ...ranks] = options.map(({ relativeError }) => relativeError);
        const squares = tables.flat().reduce((sum, value) => sum + value * value, 0);
        fc.pre(squares > 0);
        const distances = Array.from({ length: size }, (_, place) => {
          const column = tables.map((table) => table[place] ?? 0);
          const middle = column.reduce((sum, value) => sum + value, 0) / layers;
          return column.reduce((sum, value) => sum + (value - middle) ** 2, 0);
        }).reduce((sum, value) => sum + value, 0);
        expect(mean).toBeCloseTo(Math.sqrt(distances / squares), 12);
        // The error never grows with the rank, and the full rank is the mean.
        for (const [index, error] of ranks.entries()) {
          expect(error).toBeGreaterThanOrEqual((ranks[index + 1] ?? mean ?? 0) - 1e-12);
        }
        expect(ranks.at(-1)).toBeCloseTo(mean ?? 0, 12);
      },
    ),
    { numRuns: 30 },
  );
});
