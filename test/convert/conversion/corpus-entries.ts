/** A whole corpus of files with per-layer tables, if there is one: see fixtures/README.md. */
import fs from 'node:fs';
import path from 'node:path';

/** Results of numpy for the tables of a file. */
export interface Expected {
  readonly layers: number;
  readonly mean_fro: number;
  /** Hash of the mean in float64, as float32. */
  readonly mean_f32_sha256_if_f64_accumulated: string;
  readonly rel_err_mean_vs_all_layers: number;
  readonly per_layer_rel_err_of_mean: readonly number[];
  readonly per_layer_max_abs_err_of_mean: readonly number[];
  readonly selected_layer_rel_err: readonly number[];
  /** Errors of a pair, by rank. */
  readonly lowrank: Readonly<
    Record<
      string,
      { readonly rel_err_vs_all_layers: number; readonly optimal_rel_err_of_mean: number }
    >
  >;
  readonly truncate_128?: Truncated;
  readonly truncate_8?: Truncated;
}

/** Results of numpy for fewer rows. */
export interface Truncated {
  readonly mean_f32_sha256_if_f64_accumulated: string;
  readonly lowrank_8_optimal_rel_err: number;
}

export interface Entry {
  readonly path: string;
  readonly convert?: Expected;
  readonly convert_expect?: string;
}

/** Rules that refuse tables, by the reason in the corpus. */
const RULES: ReadonlyMap<string, readonly string[]> = new Map([
  ['semantic_no_tables', ['srte-present']],
  ['semantic_layer_gap', ['srte-layers-complete']],
  ['semantic_layer_index', ['srte-layer-number']],
  ['semantic_shape', ['srte-shape', 'srte-alike']],
  ['semantic_dtype', ['srte-dtype']],
  ['semantic_names', ['names-collide']],
  ['semantic_already_converted', ['srte-one-sharing', 'conversion-changes', 'shared']],
]);

export const corpus = process.env.MINIMIND_CORPUS;

export const entries: readonly Entry[] =
  corpus === undefined
    ? []
    : JSON.parse(fs.readFileSync(path.join(corpus, 'manifest.json'), 'utf8')).entries;

export const fileOf = (entry: string) => path.join(corpus ?? '', entry);

export const withNumbers = entries.flatMap((entry) =>
  entry.convert ? [[entry.path, entry.convert] as const] : [],
);

export const withRules = entries.flatMap(({ path, convert_expect = '' }) => {
  const rules = RULES.get(convert_expect);
  return rules ? [[path, rules] as const] : [];
});
