/** The plan of an SRTE: the layout of a checkpoint, the requested one, and the tables of the output. */

import { usageError } from '../../../base/errors.js';
import type { StoredDtype } from '../../../base/tensor/dtype.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import { isEncodable } from '../../../base/tensor/encode.js';
import { setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import type { StoredNames } from '../../../checkpoint/names.js';
import { numbersUnder } from '../../../checkpoint/names.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { SrteLayout, SrteStorageKind } from '../../../model/architecture/srte-layout.js';
import { srteLayoutOf } from '../../../model/architecture/srte-layout.js';
import type { Extension, Merge } from '../conversion-choices.js';
import { LAYOUTS } from '../conversion-choices.js';
import type { ConversionJob } from '../job.js';
import type { SrteTables } from './srte-tables.js';
import { parseSrteTensorName, srteTablesWithCopies } from './srte-tables.js';

export interface PlannedTable {
  /** `shared_srte`, `layers.0.srte`. */
  readonly name: string;
  /** Numbers of the input's tables that it replaces. @count */
  readonly replaces: readonly number[];
  /** Numbers of the tables that its values come from. @count */
  readonly sources: readonly number[];
  /** Whether its values must be computed, rather than copied from one table. */
  readonly isMade: boolean;
  /** Form of the table. */
  readonly form: SrteStorageKind;
  /** Rank of a low-rank pair; null for other forms, and while unknown. @count */
  readonly rank: number | null;
  /** Element type, as safetensors names it. */
  readonly dtype: StoredDtype;
}

export interface SrtePlan {
  readonly source: SrteLayout;
  readonly target: SrteLayout;
  readonly merge: Merge;
  readonly extension: Extension | null;
  readonly tables: readonly PlannedTable[];
}

/** The convertible SRTE of an input. */
export interface SrteSource {
  readonly layout: SrteLayout;
  /** Null when the SRTE is computed. */
  readonly tables: SrteTables | null;
  /** Prefix of `layers.` in its names. */
  readonly prefix: string;
}

/** Buffer name of a computed SRTE. */
const SINCOS_NAME = /^(|.*\.)(?:layers\.\d+\.srte|shared_srte)\.inv_freq$/s;

/**
 * @param model The model of its config; undefined without one.
 * @param positions Requested rows: a computed SRTE has no number of its own.
 * @throws UserError when there is no SRTE, or it breaks one of `SRTE_RULES`.
 */
export async function srteSourceOf(
  checkpoint: Checkpoint,
  stored: StoredNames,
  model: LanguageModel | undefined,
  positions: number | undefined,
): Promise<SrteSource> {
  const described = model && srteLayoutOf(model);
  if (described?.form === 'sincos') return { layout: described, tables: null, prefix: '' };
  const computed = described ? undefined : computedSource(stored, positions);
  if (computed) return computed;
  const isShared = described?.sharing === 'shared';
  const tables = await srteTablesWithCopies(checkpoint, { isShared });
  const prefix = [...stored.keys()].map(parseSrteTensorName).find(Boolean)?.prefix ?? '';
  const numbers = numbersUnder(`${prefix}layers`, stored.keys());
  const layers = tables.sharing === 'per-layer' ? tables.tables.length : numbers.length;
  return { layout: layoutOfTables(tables, Math.max(1, layers)), tables, prefix };
}

/** Undefined when an SRTE is learned, or there is none. */
function computedSource(
  stored: StoredNames,
  positions: number | undefined,
): SrteSource | undefined {
  const names = [...stored.keys()];
  if (names.some(parseSrteTensorName)) return undefined;
  const name = names.find((each) => SINCOS_NAME.test(each));
  if (name === undefined) return undefined;
  if (positions === undefined) {
    throw usageError(
      'a computed SRTE has no number of positions',
      `give their number with ${setting('maxPositions')}, or the model’s config with ${setting('config')}`,
    );
  }
  const [, prefix = ''] = SINCOS_NAME.exec(name) ?? [];
  const hidden = 2 * (stored.get(name)?.tensor.elements ?? 0);
  const layers = Math.max(1, numbersUnder(`${prefix}layers`, names).length);
  const sharing = name.endsWith('shared_srte.inv_freq') ? 'shared' : 'per-layer';
  return {
    layout: { sharing, form: 'sincos', positions, hidden, rank: null, layers },
    tables: null,
    prefix,
  };
}

/** @param layers Number of layers of the model. */
function layoutOfTables(found: SrteTables, layers: number): SrteLayout {
  const { sharing, positions, hidden, rank } = found;
  return { sharing, form: rank === null ? 'table' : 'low-rank', positions, hidden, rank, layers };
}

type LayoutRequest = Pick<
  ConversionJob,
  'layout' | 'rank' | 'maxError' | 'maxPositions' | 'extend' | 'target'
>;

/**
 * The requested layout. The rank of a pair is null when it depends on an error.
 * @throws UserError when the request is inconsistent, or does not apply to the source.
 */
export function requestedLayout(source: SrteLayout, request: LayoutRequest): SrteLayout {
  const { layout: asked, maxPositions: positions = source.positions } = request;
  const isTruncated = request.rank !== undefined || request.maxError !== undefined;
  checkPositions(source, request);
  // A rank alone requests the low-rank pair that all layers share.
  const layout = asked ?? (isTruncated && source.form !== 'low-rank' ? 'low-rank' : undefined);
  const { sharing, form } = layout === undefined ? source : LAYOUTS[layout];
  const isPair = form === 'low-rank' || (isTruncated && form === 'table');
  if (isTruncated && !isPair) {
    const flag = request.rank === undefined ? setting('maxError') : setting('rank');
    throw usageError(
      `${flag} requires a low-rank layout, found ${setting('layout', asked ?? form)}`,
      `write ${setting('layout', 'low-rank')}, or leave ${flag} out`,
    );
  }
  const sizes = { ...source, sharing, positions };
  if (!isPair) return { ...sizes, form, rank: null };
  return {
    ...sizes,
    form: 'low-rank',
    rank: requestedRank({ ...source, sharing }, request, Math.min(positions, rowsKnown(source))),
  };
}

/** Number of rows whose values are known: infinite for a computed table. */
const rowsKnown = ({ form, positions }: SrteLayout): number =>
  form === 'sincos' ? Number.POSITIVE_INFINITY : positions;

/** Number of rows to compute: for a longer table, only the rows of the input. */
export const rowsMade = ({ source, target }: SrtePlan): number =>
  Math.min(target.positions, rowsKnown(source));

/** Null when it depends on an error. */
function requestedRank(
  { form, rank, hidden, sharing }: SrteLayout,
  { rank: requested, maxError }: LayoutRequest,
  positions: number,
): number | null {
  if (requested === undefined && maxError === undefined) {
    if (form === 'low-rank') return rank;
    const usual = Math.max(1, Math.min(128, Math.floor(Math.min(positions, hidden - 1) / 2)));
    throw usageError(
      `${setting('layout', 'low-rank')} requires a rank, found none`,
      `add ${setting('rank', usual)}, or the error to stay within as ${setting('maxError')}`,
    );
  }
  if (requested === undefined) {
    if (sharing === 'shared') return null;
    throw usageError(
      `${setting('maxError')} requires a shared table: tables of layers have one rank for all of them`,
      `give the rank with ${setting('rank')}, or make one pair for all layers with ${setting('layout', 'low-rank')}`,
    );
  }
  checkRank(requested, positions, hidden);
  return requested;
}

/** @throws UserError when the rank is invalid for a table [positions, hidden]. */
function checkRank(rank: number, positions: number, hidden: number): void {
  const most = Math.min(positions, hidden - 1);
  if (rank <= most) return;
  throw usageError(
    `rank ${formatInteger(rank)} is too large for a table of ${formatInteger(positions)} × ${formatInteger(hidden)}: ${
      rank > Math.min(positions, hidden)
        ? `no such table has a rank above ${formatInteger(Math.min(positions, hidden))}`
        : 'models build a full table unless the rank is below the hidden size'
    }`,
    most > 0 ? `choose a rank from 1 to ${most}` : 'keep the full table',
  );
}

function checkPositions(
  source: SrteLayout,
  { maxPositions: positions, extend, target }: LayoutRequest,
): void {
  if (positions === undefined || positions <= rowsKnown(source) || extend !== undefined) return;
  throw usageError(
    `expected at most ${formatInteger(source.positions)} rows, those of the tables, found ${formatInteger(positions)}`,
    target === undefined
      ? `write ${setting('maxPositions', source.positions)}, or fill the new rows with ${setting('extend', 'repeat')} or ${setting('extend', 'zero')}`
      : `write ${setting('set', `model.max_position_embeddings=${source.positions}`)}, or fill the new rows with ${setting('extend', 'repeat')} or ${setting('extend', 'zero')}`,
  );
}

/** Type of a computed encoding that becomes a table. */
const COMPUTED_DTYPE = 'F32';

/**
 * The tables of the output, and the input tables that each replaces.
 * @throws UserError when the merge names a missing layer, or the tables have a type that cannot be written.
 */
export function planTables(
  { tables: found, layout: source, prefix }: SrteSource,
  target: SrteLayout,
  request: Pick<ConversionJob, 'merge' | 'extend' | 'dtype'>,
): SrtePlan {
  const all = found ? [...found.tables.keys()] : [];
  const isShared = target.sharing === 'shared';
  const replacedBy = (layer: number) =>
    isShared || all.length < 2 ? all : all.slice(layer, layer + 1);
  const tables = Array.from({ length: isShared ? 1 : target.layers }, (_, layer): PlannedTable => {
    const replaces = replacedBy(layer);
    const sources = isShared ? chosen(replaces, request.merge) : replaces;
    const isMade = target.form !== 'sincos' && (sources.length !== 1 || !isAlike(source, target));
    return {
      name: isShared ? `${prefix}shared_srte` : `${prefix}layers.${layer}.srte`,
      replaces,
      sources,
      isMade,
      form: target.form,
      rank: target.rank,
      dtype: dtypeOf(found, sources, isMade, request),
    };
  });
  return {
    source,
    target,
    merge: request.merge,
    extension: extensionOf(source, target, request),
    tables,
  };
}

/** The extension of the tables, if the input lacks rows; otherwise null. */
const extensionOf = (
  source: SrteLayout,
  target: SrteLayout,
  { extend }: Pick<ConversionJob, 'extend'>,
): SrtePlan['extension'] => (target.positions > rowsKnown(source) ? (extend ?? null) : null);

/** Whether two layouts have the same tables except for the number of rows. */
const isAlike = (a: SrteLayout, b: SrteLayout): boolean => a.form === b.form && a.rank === b.rank;

function chosen(all: readonly number[], merge: Merge): readonly number[] {
  if (all.length < 2 || merge === 'mean') return all;
  const layer = merge === 'first' ? 0 : merge.layer;
  if (layer < all.length) return [layer];
  throw usageError(
    `${setting('merge', `layer:${layer}`)}: there is no such layer`,
    `choose one from layer:0 to layer:${all.length - 1}`,
  );
}

function dtypeOf(
  found: SrteTables | null,
  sources: readonly number[],
  isMade: boolean,
  { dtype }: Pick<ConversionJob, 'dtype'>,
): StoredDtype {
  if (dtype !== undefined) return dtype;
  const widest = widestOf(sources.flatMap((index) => found?.tables[index]?.rows.dtype ?? []));
  if (!isMade || isEncodable(widest)) return widest;
  throw usageError(
    `new tables cannot be written as ${widest}`,
    `choose another type with ${setting('dtype')}`,
  );
}

/** A type that holds the values of all given types. */
function widestOf(dtypes: readonly StoredDtype[]): StoredDtype {
  const bits = (dtype: StoredDtype) => STORED_DTYPES[dtype].bits;
  const [first = COMPUTED_DTYPE, ...others] = [...new Set(dtypes)];
  // Two types of 16 bits hold different values; float32 holds those of both.
  return others.reduce((a, b) => (bits(a) === bits(b) ? 'F32' : bits(a) > bits(b) ? a : b), first);
}
