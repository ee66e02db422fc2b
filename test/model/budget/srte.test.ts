import { describe, expect, it } from 'vitest';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { compareSrte, type SrteOptions } from '../../../src/model/budget/srte-comparison.js';

const compare = (config: Record<string, unknown>, options: Partial<SrteOptions> = {}) =>
  compareSrte(hybrid.schema.parse({ model: config }).model, {
    dtype: 'bf16',
    ranks: [128, 64],
    ...options,
  });

const ids = (config: Record<string, unknown>, options?: Partial<SrteOptions>) =>
  compare(config, options).rows.map(({ id }) => id);

describe('the published comparison', () => {
  const { rows } = compare({ srte_share_across_layers: false });

  it.each([
    // Saved: published to three decimals of a billion; the exact differences follow from the totals.
    ['not-shared', 22_143_967_232, 8_589_934_592, 0],
    ['shared', 13_822_468_096, 268_435_456, 8_321_499_136],
    ['shared-rank-128', 13_562_945_536, 8_912_896, 8_581_021_696],
    ['shared-rank-64', 13_558_489_088, 4_456_448, 8_585_478_144],
    ['shared-sincos', 13_554_032_640, 0, 8_589_934_592],
    ['recommended', 13_352_181_760, 4_718_592, 8_791_785_472],
  ] as const)(
    'has the published parameters of %s',
    (id, parameters, srteParameters, savedParameters) => {
      expect(rows.find((row) => row.id === id)).toMatchObject({
        parameters,
        srteParameters,
        savedParameters,
        bytes: parameters * 2,
        srteShare: srteParameters / parameters,
        savedShare: savedParameters / 22_143_967_232,
      });
    },
  );

  it('has six rows', () => expect(rows).toHaveLength(6));
});

describe('the setting of the file', () => {
  const current = (config: Record<string, unknown>) =>
    compare(config).rows.flatMap((row) => (row.current ? [row.id] : []));

  it.each([
    [{ srte_share_across_layers: false }, ['not-shared']],
    [{}, ['shared']],
    [{ srte_factorized_rank: 64 }, ['shared-rank-64']],
    [{ srte_encoding: 'sincos' }, ['shared-sincos']],
    [presetDocument('hybrid', 'recommended').model, ['shared-rank-128', 'recommended']],
  ])('is marked for %j', (config, expected) => expect(current(config)).toEqual(expected));

  it('gets its own row if it is not a known strategy', () => {
    expect(current({ srte_factorized_rank: 32 })).toEqual(['file']);
    expect(current({ srte_share_across_layers: false, srte_encoding: 'sincos' })).toEqual(['file']);
  });

  it('is marked without regard to a rank that has no effect', () => {
    expect(current({ srte_encoding: 'sincos', srte_factorized_rank: 7 })).toEqual([
      'shared-sincos',
    ]);
    expect(current({ srte_factorized_rank: 5000 })).toEqual(['shared']);
  });
});

describe('a comparison with options', () => {
  const small = { hidden_size: 64, num_heads: 4, num_layers: 2, vocab_size: 100 };

  it('leaves out ranks, and the recommendation, that would be the full table', () => {
    const { rows, notes } = compare(small, { ranks: [64, 63] });
    expect(rows.map(({ id }) => id)).toEqual([
      'not-shared',
      'shared',
      'shared-rank-63',
      'shared-sincos',
    ]);
    expect(notes).toEqual([
      'Skipped "shared, rank 64" and "recommended": a rank from hidden_size 64 on is the full table.',
    ]);
  });

  it('lists a repeated rank once', () => {
    expect(ids({}, { ranks: [64, 64] }).filter((id) => id === 'shared-rank-64')).toHaveLength(1);
  });

  it('recommends no more positions than the file has', () => {
    const row = compare({ max_position_embeddings: 1000 }).rows.at(-1);
    expect(row?.settings).toMatchObject({
      max_position_embeddings: 1000,
      srte_factorized_rank: 128,
    });
  });

  it('changes one key of the file for each lever', () => {
    const { rows } = compare(
      { ...small, srte_share_across_layers: false },
      { maxPositions: [32], vocabSizes: [50], tie: true },
    );
    const levers = rows.filter(({ kind }) => kind === 'lever');
    const whole = rows[0]?.parameters ?? 0;
    // Two tables lose 65,536 − 32 rows of 64; two matrices 50 rows of 64; tying drops one of them.
    expect(levers.map(({ id, parameters }) => [id, whole - parameters])).toEqual([
      ['positions-32', 2 * (65_536 - 32) * 64],
      ['vocabulary-50', 2 * 50 * 64],
      ['tied', 100 * 64],
    ]);
  });

  it('has the true sizes of the presets for any file', () => {
    const { rows } = compare(small, { presets: true });
    expect(rows.slice(-3).map(({ id, parameters }) => [id, parameters])).toEqual([
      ['preset-aggressive', 2_592_264_192],
      ['preset-memory', 13_347_463_168],
      ['preset-performance', 13_365_288_960],
    ]);
  });

  it('lists a repeated lever once', () => {
    const rows = ids(small, { ranks: [], maxPositions: [5, 5], vocabSizes: [7, 7] });
    expect(new Set(rows).size).toBe(rows.length);
  });

  it('leaves out sizes beyond the limit, with a note, and keeps the rest', () => {
    const { rows, notes } = compare({ max_position_embeddings: 1e12, srte_factorized_rank: 8 });
    expect(rows.map(({ id }) => id)).not.toContain('not-shared');
    expect(rows.find(({ id }) => id === 'recommended')).toMatchObject({
      parameters: 13_352_181_760,
      savedParameters: null,
      savedShare: null,
    });
    expect(notes[0]).toMatch(/^Skipped "not shared": it describes .* stored values/);
  });

  it('notes rows with fewer positions than the training context', () => {
    const { notes } = compare({}, { trainedContext: 60_000, maxPositions: [1000] });
    expect(notes).toEqual([
      '"recommended" has 32,768 positions, fewer than the 60,000 tokens of training.max_seq_length.',
      '"1,000 positions" has 1,000 positions, fewer than the 60,000 tokens of training.max_seq_length.',
    ]);
  });
});
