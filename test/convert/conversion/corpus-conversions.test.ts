/** Conversions of a whole corpus, if there is one, compared with numpy. */

import { describe, expect, it } from 'vitest';
import { ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { storedNames } from '../../../src/checkpoint/names.js';
import { isSrteName } from '../../../src/convert/conversion/plan/plan-tensors.js';
import { convertTo, digest, digestOf, look, refused, textOf } from './convert.js';
import { corpus, entries, fileOf, withNumbers, withRules } from './corpus-entries.js';

const SHARED = 'shared_srte.freqs';

/** Digests of the tensors that are not tables, under the names of the model. */
const othersOf = (file: string) =>
  look(file, (checkpoint) =>
    Object.fromEntries(
      [...storedNames(checkpoint)].flatMap(([name, { tensor }]) =>
        isSrteName(name) ? [] : [[name, digest(tensor)] as const],
      ),
    ),
  );

/** Digits in which errors of float32 tables agree with those of float64. */
const DIGITS = 6;
const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, DIGITS));

/** Relative error of a pair compared with its table. */
const lossOf = ({ srte }: Awaited<ReturnType<typeof convertTo>>) =>
  Math.sqrt(1 - (srte?.tables[0]?.energy ?? Number.NaN));

describe.skipIf(corpus === undefined)('a file of the corpus', () => {
  it.for(withNumbers)('is converted to the mean: %s', async ([entry, expected]) => {
    const input = fileOf(entry);
    const { file, srte } = await convertTo('out', input, { layout: 'shared', dtype: 'F32' });
    expect(digestOf(file, SHARED)).toContain(expected.mean_f32_sha256_if_f64_accumulated);
    expect(srte?.relativeError).toBeCloseTo(expected.rel_err_mean_vs_all_layers, DIGITS);
    const errors = srte?.tables[0]?.errors ?? [];
    expect(errors.map(({ relativeError }) => relativeError)).toEqual(
      close(expected.per_layer_rel_err_of_mean),
    );
    expect(errors.map(({ largestError }) => largestError)).toEqual(
      close(expected.per_layer_max_abs_err_of_mean),
    );
    // Without a cast, all other tensors stay the same.
    const kept = await convertTo('out', input, { layout: 'shared' });
    expect(othersOf(kept.file)).toEqual(othersOf(input));
  });

  it.for(withNumbers)('is converted to the table of one layer: %s', async ([entry, expected]) => {
    const { file, srte } = await convertTo('out', fileOf(entry), {
      layout: 'shared',
      merge: 'first',
    });
    const own = look(fileOf(entry), storedNames).get('layers.0.srte.freqs')?.own ?? '';
    expect(digestOf(file, SHARED)).toBe(digestOf(fileOf(entry), own));
    const [first, ...others] = srte?.tables[0]?.errors ?? [];
    expect(first?.relativeError).toBe(0);
    expect(others).toHaveLength(expected.layers - 1);
  });

  const cut = withNumbers.flatMap(([name, { truncate_128, truncate_8 }]) => [
    ...(truncate_128 ? [[name, 128, truncate_128] as const] : []),
    ...(truncate_8 ? [[name, 8, truncate_8] as const] : []),
  ]);
  it.for(cut)('is converted with fewer rows: %s, %i rows', async ([entry, rows, expected]) => {
    const flags = { dtype: 'F32', maxPositions: rows } as const;
    const shared = await convertTo('out', fileOf(entry), { ...flags, layout: 'shared' });
    expect(digestOf(shared.file, SHARED)).toContain(expected.mean_f32_sha256_if_f64_accumulated);
    // No model has a pair of the full width.
    if (rows === 8) return;
    const pair = await convertTo('out', fileOf(entry), { ...flags, layout: 'low-rank', rank: 8 });
    expect(lossOf(pair)).toBeCloseTo(expected.lowrank_8_optimal_rel_err, DIGITS);
  });

  const withRanks = withNumbers.flatMap(([name, { lowrank }]) =>
    Object.entries(lowrank).map(([rank, errors]) => [name, Number(rank), errors] as const),
  );
  it.for(withRanks)('is converted to a pair: %s, rank %i', async ([entry, rank, errors]) => {
    const flags = { layout: 'low-rank', dtype: 'F32' } as const;
    const result = await convertTo('out', fileOf(entry), { ...flags, rank });
    expect(result.srte?.relativeError).toBeCloseTo(errors.rel_err_vs_all_layers, DIGITS);
    const least = errors.optimal_rel_err_of_mean;
    expect(lossOf(result)).toBeCloseTo(least, DIGITS);
    // A smaller error is mostly rounding to float32.
    if (least < 1e-6) return;
    const most = errors.rel_err_vs_all_layers * 1.0001;
    const limited = await convertTo('out', fileOf(entry), { ...flags, maxError: most });
    expect(limited.srte?.target.rank).toBe(rank);
    expect(limited.srte?.relativeError).toBeLessThanOrEqual(most);
  });

  it.for(withRules)('is refused: %s', async ([entry, rules]) => {
    const error = await refused(fileOf(entry), { layout: 'shared' }, 'out');
    expect(rules).toContain(ruleOf(error));
    expect(error.problems[0]?.suggestion).toMatch(/./);
  });

  const expecting = (start: string) =>
    entries.flatMap(({ path, convert_expect }) =>
      convert_expect?.startsWith(start) ? [path] : [],
    );

  it.for(expecting('ok'))('is converted: %s', async (entry) => {
    const { file } = await convertTo('out', fileOf(entry), { layout: 'shared' });
    expect(othersOf(file)).toEqual(othersOf(fileOf(entry)));
  });

  it.for(expecting('ok (f32/bf16); report overflow'))('overflows in F16: %s', async (entry) => {
    for (const dtype of ['F32', 'BF16'] as const) {
      await convertTo('out', fileOf(entry), { layout: 'shared', dtype });
    }
    const error = await refused(fileOf(entry), { layout: 'shared', dtype: 'F16' });
    expect(textOf(error)).toMatch(
      /shared_srte\.freqs.*\n.*has .* in row \d+, column \d+, beyond the range of /,
    );
    await convertTo('out', fileOf(entry), { layout: 'shared', dtype: 'F16', saturate: true });
  });

  it.for(expecting('semantic_nonfinite'))(
    'is refused with the positions of its values: %s',
    async (entry) => {
      const text = textOf(await refused(fileOf(entry), { layout: 'shared' }));
      expect(text).toMatch(/layers\.0\.srte\.freqs[\s\S]*NaN[\s\S]*row 3, column 2/);
      expect(text).toMatch(/layers\.1\.srte\.freqs[\s\S]*Infinity[\s\S]*row 5, column 1/);
    },
  );

  it.for(expecting('refuse rank'))('is refused for rank 9: %s', async (entry) => {
    const error = await refused(fileOf(entry), { layout: 'low-rank', rank: 9 });
    expect(textOf(error)).toContain('no such table has a rank above 8');
  });

  it.for(expecting('either'))('keeps every name or is refused: %s', async (entry) => {
    const result = await convertTo('out', fileOf(entry), { layout: 'shared' }).catch(ruleOf);
    if (result === undefined || typeof result === 'string') return;
    expect(othersOf(result.file)).toEqual(othersOf(fileOf(entry)));
  });
});
