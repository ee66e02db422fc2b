import { describe, expect, it } from 'vitest';
import type {
  SrteOption,
  SrteSurvey,
  TableSurvey,
} from '../../src/convert/conversion/srte/survey-srte.js';
import {
  srteData,
  srteSurveyBlocks,
  srteSurveyDetails,
} from '../../src/report/inspect/srte-survey.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { renderTable } from '../../src/report/render/table.js';

const table = (layer: number | null, given: Partial<TableSurvey> = {}): TableSurvey => ({
  layer,
  name: layer === null ? 'shared_srte.freqs' : `layers.${layer}.srte.freqs`,
  norm: 12.5,
  cosineToMean: 0.96371,
  distanceToMean: 3.5186,
  relativeDistance: 0.27108,
  largestDifference: 0.74875,
  nonFinite: null,
  ...given,
});

const option = (rank: number | null, given: Partial<SrteOption> = {}): SrteOption => ({
  rank,
  parameters: 384,
  bytes: 1536,
  savedParameters: 768,
  savedBytes: 3072,
  energy: 1,
  relativeError: 0.2299,
  ...given,
});

const survey = (given: Partial<SrteSurvey> = {}): SrteSurvey => ({
  sharing: 'per-layer',
  positions: 48,
  hidden: 8,
  storedRank: null,
  dtype: 'F32',
  parameters: 1152,
  bytes: 4608,
  tables: [table(0), table(1, { relativeDistance: 0 }), table(2, { relativeDistance: 1 })],
  cosines: [
    [1, 0.9133, 0.8974],
    [0.9133, 1, null],
    [0.8974, null, 1],
  ],
  meanNorm: 11.9,
  options: [
    option(null),
    option(4, {
      parameters: 224,
      bytes: 896,
      savedParameters: 928,
      savedBytes: 3712,
      energy: 0.65949,
      relativeError: 0.24,
    }),
  ],
  notes: [],
  ...given,
});

const lines = (given?: Partial<SrteSurvey>, width = 80): string[] =>
  renderTable(
    { blocks: [...srteSurveyBlocks(survey(given)), ...srteSurveyDetails(survey(given))] },
    { width, colourLevel: 0 },
  ).split('\n');

const text = (given?: Partial<SrteSurvey>): string =>
  lines(given, Number.POSITIVE_INFINITY).join('\n');

/** A survey of this many tables, whose cosines fall with the distance of their layers. */
function many(layers: number): Partial<SrteSurvey> {
  const cosines = Array.from({ length: layers }, (_, row) =>
    Array.from({ length: layers }, (_, column) => 1 - (2 * Math.abs(row - column)) / layers),
  );
  return { cosines, tables: cosines.map((_, layer) => table(layer)) };
}

describe('a survey of SRTE tables', () => {
  it('is printed as numbers for few tables', () => {
    expect(lines()).toEqual([
      'SRTE',
      '3 tables, one for each layer, 48 × 8: 1,152 parameters, 4.6 kB in F32.',
      'One shared table has an error of 23.0% and saves 66.7% of the SRTE parameters.',
      'The tables are similar: share one and continue training. Rank 4 has an error of',
      '24.0% and saves 80.6%.',
      '',
      'option            parameters     F32   saved  share  error  energy',
      '────────────────  ──────────  ──────  ──────  ─────  ─────  ──────',
      'as stored              1,152  4.6 kB       –      –      –       –',
      'one shared table         384  1.5 kB  3.1 kB  66.7%  23.0%  100.0%',
      'shared, rank 4           224   896 B  3.7 kB  80.6%  24.0%   65.9%',
      '',
      'Cosine similarity between layers',
      'layer       0       1       2',
      '─────  ──────  ──────  ──────',
      '    0  1.0000  0.9133  0.8974',
      '    1  0.9133  1.0000       –',
      '    2  0.8974       –  1.0000',
      '',
      'Distance of each layer to the mean',
      'layer    norm  distance  relative                largest  cosine',
      '─────  ──────  ────────  ────────  ────────────  ───────  ──────',
      '    0  12.500    3.5186     27.1%  ███▎          0.74875  0.9637',
      '    1  12.500    3.5186        0%                0.74875  0.9637',
      '    2  12.500    3.5186    100.0%  ████████████  0.74875  0.9637',
      '',
      'Distances are Frobenius norms. A full bar is 100%.',
      'Error: relative Frobenius norm of the difference to the stored tables, over all',
      'layers, before rounding to a type. Energy: share of the squared norm of the mean',
      'that the rank keeps.',
    ]);
  });

  it('is printed as a picture for many tables', () => {
    const picture = lines(many(32));
    const from = picture.indexOf('Cosine similarity between layers') + 3;
    expect(picture.slice(from - 2, from + 2)).toEqual([
      'layer',
      `─────  ${'─'.repeat(64)}`,
      // 1, 15/16, 14/16 … 8/16, 7/16 … 2/16, 1/16 … −1/16, −2/16 …
      `    0  ██▓▓${'▒▒'.repeat(7)}${'░░'.repeat(6)}${'··'.repeat(3)}${'--'.repeat(14)}`,
      `    1  ▓▓██▓▓${'▒▒'.repeat(7)}${'░░'.repeat(6)}${'··'.repeat(3)}${'--'.repeat(13)}`,
    ]);
    expect(picture[from + 31]).toContain('   31  --');
    expect(picture.join('\n')).toContain('█ from 0.99, ▓ from 0.9, ▒ from 0.5');
  });

  it.each([9, 32, 34, 35, 68, 69, 512])('fits 80 columns for %d layers', (layers) => {
    const all = lines(many(layers));
    expect(all.filter((line) => line.length > 80)).toEqual([]);
    const picture = all.slice(
      all.indexOf('Cosine similarity between layers'),
      all.indexOf('Distance of each layer to the mean'),
    );
    expect(picture.filter((line) => /[█▓]/.test(line)).length).toBeGreaterThan(8);
    expect(picture.length).toBeLessThan(80);
  });

  it('groups layers when there are more than columns', () => {
    const all = lines(many(100));
    expect(all.filter((line) => /^ *\d+–\d+ {2}/.test(line))).toHaveLength(50);
    expect(all.some((line) => line.startsWith('98–99  ---'))).toBe(true);
  });

  it('marks missing cosines in the picture', () => {
    const { cosines = [], tables = [] } = many(9);
    const none = cosines.map((row) => row.map((cosine, column) => (column === 8 ? null : cosine)));
    expect(text({ cosines: none, tables })).toMatch(/^ {4}0 {2}██.*\?\?$/m);
  });

  it('reports values that are not finite first, with their place', () => {
    const nonFinite = { count: 1200, row: 3, column: 2, value: 'NaN' } as const;
    const printed = text({ tables: [table(0, { nonFinite, norm: null }), table(1)] });
    expect(printed).toContain(
      'layers.0.srte.freqs: 1,200 values are not finite; the first is NaN at row 3, column 2.',
    );
    expect(printed).toContain('Replace the values that are not finite first');
    expect(printed).not.toContain('share one');
  });

  it('shows values that are not finite in the colour of faults', () => {
    const nonFinite = { count: 1, row: 0, column: 0, value: 'Infinity' } as const;
    const blocks = srteSurveyBlocks(survey({ tables: [table(0, { nonFinite })] }));
    expect(blocks.filter((block) => 'tone' in block && block.tone === 'bad')).toHaveLength(1);
  });

  it('shortens long names', () => {
    const nonFinite = { count: 1, row: 0, column: 0, value: '-Infinity' } as const;
    const printed = text({ tables: [table(0, { name: 'x'.repeat(10_000), nonFinite })] });
    expect(printed).toMatch(/^x{50,250}…: 1 value is not finite; the first is -Infinity at row 0/m);
  });

  it('has the notes of the survey', () => {
    expect(text({ notes: ['Some layers share a table.'] })).toContain('Some layers share a table.');
  });

  it('has no comparison for one table', () => {
    const shared = { sharing: 'shared', tables: [table(null)], cosines: [[1]] } as const;
    const printed = text({ ...shared, options: [option(4, { relativeError: 0.03 })] });
    expect(printed).toContain('One table for all layers, 48 × 8: ');
    expect(printed).toContain('shared, rank 4');
    expect(printed).not.toContain('Cosine similarity');
    expect(printed).not.toContain('to the mean');
  });

  it('shows the rank of pairs', () => {
    expect(text({ storedRank: 16 })).toContain('48 × 8, stored as pairs of rank 16: ');
  });

  it('has exact values in CSV', () => {
    const csv = renderCsv({ blocks: [], data: srteData(survey()) }).split('\n');
    expect(csv[0]).toBe('option,parameters,bytes,saved_bytes,saved_share,relative_error,energy');
    expect(csv).toContain('stored,1152,4608,0,0,0,');
    expect(csv).toContain('shared-rank-4,224,896,3712,0.8055555555555556,0.24,0.65949');
  });

  it('has eight options in the answer and all in the details', () => {
    const options = [1, 2, 4, 8, 16, 32, 64, 128, 256].map((rank) => option(rank));
    const answer = renderTable(
      { blocks: srteSurveyBlocks(survey({ options })) },
      { width: 80, colourLevel: 0 },
    );
    expect(answer.match(/^shared, rank/gm)).toHaveLength(8);
    expect(answer).toContain('… 1 more: --details');
    expect(text({ options })).toContain('shared, rank 256');
  });
});

describe('the advice', () => {
  const advice = (given: Partial<SrteSurvey>) =>
    srteSurveyBlocks(survey(given))
      .filter((block) => block.kind === 'note')
      .map((block) => ('text' in block ? block.text : ''))
      .at(-1);
  const errors = (mean: number, ...ranks: [rank: number, error: number][]) => ({
    options: [
      option(null, { relativeError: mean }),
      ...ranks.map(([rank, relativeError]) => option(rank, { relativeError })),
    ],
  });

  it.each([
    [0.05, 'The tables are nearly equal: share one.'],
    [0.051, 'The tables are similar: share one and continue training.'],
    [0.5, 'The tables are similar: share one and continue training.'],
    [0.51, 'The tables differ: share one only if training continues.'],
  ])('for an error of %d is: %s', (error, verdict) => {
    expect(advice(errors(error))).toContain(`saves 66.7% of the SRTE parameters. ${verdict}`);
  });

  it('names the smallest rank that adds little error', () => {
    expect(advice(errors(0.2, [8, 0.23], [16, 0.219], [32, 0.201]))).toContain(
      'Rank 16 has an error of 21.9% and saves 66.7%.',
    );
    // Or a rank that is close by itself.
    expect(advice(errors(0.001, [8, 0.06], [16, 0.049]))).toContain('Rank 16 has');
    expect(advice(errors(0.2, [8, 0.5]))).not.toContain('Rank');
  });

  const one = { tables: [table(null)], cosines: [[1]], sharing: 'shared' } as const;
  it('for a shared table is about ranks', () => {
    const ranks = [8, 16].map((rank) => option(rank, { relativeError: 0.4 / rank }));
    expect(advice({ ...one, options: ranks })).toBe(
      'Rank 8 has an error of 5.00% and saves 66.7% of the SRTE parameters.',
    );
    expect(advice({ ...one, options: [option(8, { relativeError: 0.2 })] })).toBe(
      'Every tested rank has an error above 5%: keep the full table.',
    );
  });

  it('for one layer is that sharing does not apply', () => {
    expect(advice({ tables: [table(0)], options: [option(null)] })).toBe(
      'The model has one layer, so there is nothing to share.',
    );
  });

  it('for zeros is that sharing loses nothing', () => {
    const zero = { norm: 0, relativeDistance: null };
    expect(
      advice({
        tables: [table(0, zero), table(1, zero)],
        options: [option(null, { relativeError: null })],
      }),
    ).toBe('Every value is zero: sharing the tables loses nothing.');
  });

  it('is left out without measurements', () => {
    expect(text({ ...one, options: [] })).toBe(
      'SRTE\nOne table for all layers, 48 × 8: 1,152 parameters, 4.6 kB in F32.',
    );
    expect(text({ options: [option(null, { relativeError: null })] })).not.toContain(
      'One shared table',
    );
  });
});
