/** A whole corpus of files with per-layer tables, where there is one: see fixtures/README.md. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { ruleOf } from '../../src/checkpoint/refusal.js';
import { type SurveyOptions, surveySrte } from '../../src/conversion/srte-survey.js';

/** What numpy makes of the tables of a file. */
interface Converted {
  readonly mean_fro: number;
  readonly rel_err_mean_vs_all_layers: number;
  readonly per_layer_rel_err_of_mean: readonly number[];
  readonly per_layer_max_abs_err_of_mean: readonly number[];
  readonly lowrank: Readonly<Record<string, { readonly rel_err_vs_all_layers: number }>>;
}

interface Entry {
  readonly path: string;
  readonly convert?: Converted;
  readonly convert_expect?: string;
}

/** By which rules tables are refused that cannot be converted, for each reason. */
const RULES: ReadonlyMap<string, readonly string[]> = new Map([
  ['semantic_no_tables', ['srte-present']],
  ['semantic_layer_gap', ['srte-layers-complete']],
  ['semantic_layer_index', ['srte-layer-number']],
  ['semantic_shape', ['srte-shape', 'srte-alike']],
  ['semantic_dtype', ['srte-dtype']],
  ['semantic_names', ['names-collide']],
  ['semantic_already_converted', ['srte-one-sharing', 'shared']],
]);

const corpus = process.env.MINIMIND_CORPUS;
const entries: readonly Entry[] =
  corpus === undefined
    ? []
    : JSON.parse(fs.readFileSync(path.join(corpus, 'manifest.json'), 'utf8')).entries;

async function survey(entry: Entry, options?: SurveyOptions) {
  const checkpoint = openCheckpoint(path.join(corpus ?? '', entry.path));
  try {
    return await surveySrte(checkpoint, options);
  } finally {
    checkpoint.close();
  }
}

describe.skipIf(corpus === undefined)('the tables of a corpus', () => {
  const withNumbers = entries.flatMap((entry) =>
    entry.convert ? [[entry.path, entry, entry.convert] as const] : [],
  );
  it.for(withNumbers)('%s', async ([, entry, expected]) => {
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

  const refused = entries.flatMap((entry) => {
    const rules = RULES.get(entry.convert_expect ?? '');
    return rules ? [[entry.path, entry, rules] as const] : [];
  });
  it.for(refused)('%s', async ([, entry, rules]) => {
    const found = await survey(entry).then(({ sharing }) => sharing, ruleOf);
    expect(rules).toContain(found);
  });
});
