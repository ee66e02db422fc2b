/** The tables of a whole corpus, if there is one: see fixtures/README.md. */

import { describe, expect, it } from 'vitest';
import { ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import type { SrteSurveyOptions } from '../../../src/convert/conversion/srte/survey-srte.js';
import { surveySrte } from '../../../src/convert/conversion/srte/survey-srte.js';
import { corpus, fileOf, withNumbers, withRules } from './corpus-entries.js';

async function survey(entry: string, options?: SrteSurveyOptions) {
  const checkpoint = openCheckpoint(fileOf(entry));
  try {
    return await surveySrte(checkpoint, options);
  } finally {
    checkpoint.close();
  }
}

describe.skipIf(corpus === undefined)('the survey of the corpus', () => {
  it.for(withNumbers)('has the numbers of numpy: %s', async ([entry, expected]) => {
    const ranks = Object.keys(expected.lowrank).map(Number);
    const { meanNorm, tables, options } = await survey(entry, { ranks });
    expect(meanNorm).toBeCloseTo(expected.mean_fro, 12);
    expect(options.map(({ relativeError }) => relativeError)).toEqual(
      [
        expected.rel_err_mean_vs_all_layers,
        ...ranks.map((rank) => expected.lowrank[rank]?.rel_err_vs_all_layers ?? Number.NaN),
      ].map((error) => expect.closeTo(error, 13)),
    );
    expect(tables.map(({ relativeDistance }) => relativeDistance)).toEqual(
      expected.per_layer_rel_err_of_mean.map((error) => expect.closeTo(error, 13)),
    );
    expect(tables.map(({ largestDifference }) => largestDifference)).toEqual(
      expected.per_layer_max_abs_err_of_mean,
    );
  });

  it.for(withRules)('refuses a file, or finds it shared: %s', async ([entry, rules]) => {
    const outcome = await survey(entry).then(({ sharing }) => sharing, ruleOf);
    expect(rules).toContain(outcome);
  });
});
