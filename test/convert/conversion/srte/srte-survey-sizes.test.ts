import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../src/base/errors.js';
import {
  bytesToSurvey,
  surveySrte as survey,
} from '../../../../src/convert/conversion/srte/survey-srte.js';
import { checkpointOf, storageOf, tensorIn, tensorOf } from '../../../checkpoint/stored-tensors.js';
import { layersOf } from '../layers.js';

describe('the survey of many rows', () => {
  // Three tables of 0.5 million values, more than one block.
  const [positions, hidden] = [1300, 400];
  const tables = [1, 2, 4].map((scale) =>
    Array.from({ length: positions * hidden }, (_, index) => (index % 7 === 0 ? scale : 0)),
  );

  it('is exact across blocks', async () => {
    const checkpoint = layersOf([positions, hidden], ...tables);
    const reported: number[] = [];
    let turns = 0;
    const count = () => {
      turns++;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    const result = await survey(checkpoint, {
      ranks: [],
      onBytes: (bytes) => reported.push(bytes),
    });
    clearImmediate(timer);
    expect(reported.length).toBeGreaterThan(1);
    expect(reported.reduce((sum, bytes) => sum + bytes, 0)).toBe(await bytesToSurvey(checkpoint));
    expect(await bytesToSurvey(checkpoint)).toBe(3 * 4 * positions * hidden);
    // The event loop runs, so Ctrl-C works.
    expect(turns).toBeGreaterThan(1);
    const count7 = Math.ceil((positions * hidden) / 7);
    expect(result.tables.map(({ norm }) => (norm ?? 0) ** 2)).toEqual(
      [1, 4, 16].map((square) => expect.closeTo(square * count7, 4)),
    );
    expect(result.meanNorm).toBeCloseTo((7 / 3) * Math.sqrt(count7), 8);
    expect(new Set(result.cosines.flat())).toEqual(new Set([1]));
  });

  it('reports the position of a value that is not finite', async () => {
    const [first = [], ...others] = tables;
    const position = 1250 * hidden + 17;
    const { tables: surveyed } = await survey(
      layersOf(
        [positions, hidden],
        first.with(position, Number.NaN).with(position + 5, Number.NaN),
        ...others,
      ),
    );
    expect(surveyed.map(({ nonFinite }) => nonFinite)).toEqual([
      { count: 2, row: 1250, column: 17, value: 'NaN' },
      null,
      null,
    ]);
  });
});

describe('the ranks', () => {
  const zeros = (count: number) => new Array<number>(count).fill(0);
  const ranksOf = async (positions: number, hidden: number) =>
    (await survey(layersOf([positions, hidden], zeros(positions * hidden)))).options.map(
      ({ rank }) => rank,
    );

  it('are powers of two from 8, while a pair is smaller than the table', async () => {
    // A pair takes 320 values per rank, a table 16,384: up to rank 51.
    expect(await ranksOf(256, 64)).toEqual([null, 8, 16, 32]);
    expect(await ranksOf(64, 256)).toEqual([null, 8, 16, 32]);
  });

  it('begin at 1 for small tables', async () => {
    // 56 values per rank, of 384: up to rank 6.
    expect(await ranksOf(48, 8)).toEqual([null, 1, 2, 4]);
    expect(await ranksOf(1, 8)).toEqual([null]);
  });

  it('are below the stored rank', async () => {
    const { options } = await survey(
      checkpointOf({
        'shared_srte.lowrank': tensorOf(zeros(256 * 16), [1, 256, 16]),
        'shared_srte.proj.weight': tensorOf(zeros(64 * 16), [64, 16]),
      }),
    );
    expect(options.map(({ rank }) => rank)).toEqual([8]);
  });

  it.each([0, 9, -1, 1.5, Number.NaN])('cannot be %d for a table of 16 × 8', async (rank) => {
    const error = await survey(layersOf([16, 8], zeros(128)), { ranks: [1, rank] }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({
      code: 'usage',
      message: `${rank} is not a rank of a table of 16 × 8`,
      suggestion: 'choose a whole number from 1 to 8',
    });
  });
});

describe('the limits of the survey', () => {
  /** Views of one value, which are different tables for `isSameView`. */
  const repeated = (layers: number, shape: readonly number[]) => {
    const { storage } = tensorOf([1]);
    return checkpointOf(
      new Map(
        Array.from({ length: layers }, (_, layer) => [
          `layers.${layer}.srte.freqs`,
          tensorIn({ ...storage }, shape, { strides: [0, 0, 0] }),
        ]),
      ),
    );
  };

  it.each([
    ['too many tables', repeated(513, [1, 1, 1]), '513 SRTE tables are more than 512'],
    ['too wide tables', repeated(2, [1, 1, 2 ** 22 + 1]), '2 SRTE tables of 4,194,305 columns'],
  ])('refuse %s', async (_what, checkpoint, message) => {
    const error = await survey(checkpoint).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({
      code: 'refused-file',
      message: expect.stringContaining(`model.pt: ${message}`),
    });
  });

  it('refuse a too large projection', async () => {
    const pair = checkpointOf({
      'shared_srte.lowrank': tensorIn(storageOf(new Uint8Array(4)), [1, 1, 8193], {
        strides: [0, 0, 0],
      }),
      'shared_srte.proj.weight': tensorIn(storageOf(new Uint8Array(4)), [4096, 8193], {
        strides: [0, 0],
      }),
    });
    await expect(survey(pair)).rejects.toMatchObject({ code: 'refused-file' });
  });

  it('allow 512 tables', async () => {
    expect((await survey(repeated(512, [1, 1, 1]))).tables).toHaveLength(512);
  });
});

it('the survey leaves out ranks that would take too much memory', async () => {
  // Every row is the same. The Gram matrix needs the whole mean, 8 · 25 · 2,000,001 bytes.
  const storage = storageOf(new Uint8Array(2_000_001).fill(0x38));
  const wide = tensorIn(storage, [1, 25, 2_000_001], { dtype: 'F8_E4M3', strides: [0, 0, 1] });
  const { options, notes, meanNorm } = await survey(checkpointOf({ 'layers.0.srte.freqs': wide }), {
    ranks: [1],
  });
  expect(meanNorm).toBeCloseTo(Math.sqrt(25 * 2_000_001), 8);
  expect(options.map(({ rank }) => rank)).toEqual([null]);
  expect(notes).toEqual([
    'Ranks were not compared: tables of 25 × 2,000,001 take too much memory for that.',
  ]);
});
