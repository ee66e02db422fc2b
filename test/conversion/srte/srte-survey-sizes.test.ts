import { describe, expect, it } from 'vitest';
import { bytesToSurvey, surveySrte as survey } from '../../../src/conversion/srte/survey-srte.js';
import { UserError } from '../../../src/errors.js';
import { checkpointOf, storageOf, tensorIn, tensorOf } from '../../checkpoint/stored-tensors.js';
import { layersOf } from '../layers.js';

describe('many rows', () => {
  // Three tables of 0.5 million values: more than are held at once.
  const [positions, hidden] = [1300, 400];
  const tables = [1, 2, 4].map((scale) =>
    Array.from({ length: positions * hidden }, (_, index) => (index % 7 === 0 ? scale : 0)),
  );

  it('are read in blocks, and lose nothing between them', async () => {
    const checkpoint = layersOf([positions, hidden], ...tables);
    const told: number[] = [];
    let turns = 0;
    const count = () => {
      turns++;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    const found = await survey(checkpoint, { ranks: [], onBytes: (bytes) => told.push(bytes) });
    clearImmediate(timer);
    expect(told.length).toBeGreaterThan(1);
    expect(told.reduce((sum, bytes) => sum + bytes, 0)).toBe(await bytesToSurvey(checkpoint));
    expect(await bytesToSurvey(checkpoint)).toBe(3 * 4 * positions * hidden);
    // Ctrl-C gets its turn.
    expect(turns).toBeGreaterThan(1);
    const count7 = Math.ceil((positions * hidden) / 7);
    expect(found.tables.map(({ norm }) => (norm ?? 0) ** 2)).toEqual(
      [1, 4, 16].map((square) => expect.closeTo(square * count7, 4)),
    );
    expect(found.meanNorm).toBeCloseTo((7 / 3) * Math.sqrt(count7), 8);
    expect(new Set(found.cosines.flat())).toEqual(new Set([1]));
  });

  it('have the place of a value that is not finite', async () => {
    const [first = [], ...others] = tables;
    const place = 1250 * hidden + 17;
    const { tables: found } = await survey(
      layersOf(
        [positions, hidden],
        first.with(place, Number.NaN).with(place + 5, Number.NaN),
        ...others,
      ),
    );
    expect(found.map(({ nonFinite }) => nonFinite)).toEqual([
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

  it('are powers of two from 8 on, as long as a pair is smaller than the table', async () => {
    // A pair takes 320 values for each rank, a table 16,384: up to rank 51.
    expect(await ranksOf(256, 64)).toEqual([null, 8, 16, 32]);
    expect(await ranksOf(64, 256)).toEqual([null, 8, 16, 32]);
  });

  it('begin at 1 for tables that are small', async () => {
    // 56 values for each rank, of 384: up to rank 6.
    expect(await ranksOf(48, 8)).toEqual([null, 1, 2, 4]);
    expect(await ranksOf(1, 8)).toEqual([null]);
  });

  it('stay below the one that is stored', async () => {
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

describe('tables are refused', () => {
  /** So many views of one value, each a table of its own to `isSameView`. */
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
    ['that are too many', repeated(513, [1, 1, 1]), '513 SRTE tables are more than 512'],
    ['that are too wide', repeated(2, [1, 1, 2 ** 22 + 1]), '2 SRTE tables of 4,194,305 columns'],
  ])('%s', async (_what, checkpoint, message) => {
    const error = await survey(checkpoint).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({
      code: 'refused-file',
      message: expect.stringContaining(`model.pt: ${message}`),
    });
  });

  it('with a projection that is too large', async () => {
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

  it('but 512 are not', async () => {
    expect((await survey(repeated(512, [1, 1, 1]))).tables).toHaveLength(512);
  });
});

it('leaves ranks out when they would take too much memory', async () => {
  // Every row is the same; a wide mean is kept for its Gram matrix, 8 · 25 · 2,000,001 bytes.
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
