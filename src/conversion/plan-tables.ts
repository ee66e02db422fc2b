/** Which tables of the output take the place of which of the input, and how they come about. */
import type { SrteLayout } from '../architecture/srte-layout.js';
import { UserError } from '../errors.js';
import { STORED_DTYPES, type StoredDtype } from '../tensor/dtype.js';
import { isEncodable } from '../tensor/encode.js';
import { rowsKnown } from './layouts.js';
import type { PlannedTable, SrtePlan } from './plan.js';
import type { ConversionRequest, Merge } from './request.js';
import type { SrteTables } from './srte-tables.js';

/** What a computed encoding is written as, when it becomes a table. */
const COMPUTED_DTYPE = 'F32';

/**
 * @param found Null when the input's SRTE is computed.
 * @param prefix Of the names of the model.
 * @throws UserError when the merge names a layer that is not there, or the tables have a type that cannot
 * be written.
 */
export function planTables(
  found: SrteTables | null,
  source: SrteLayout,
  target: SrteLayout,
  request: ConversionRequest,
  prefix: string,
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

/** Only when there are rows that the input does not have. */
const extensionOf = (
  source: SrteLayout,
  target: SrteLayout,
  { extension }: ConversionRequest,
): SrtePlan['extension'] => (target.positions > rowsKnown(source) ? (extension ?? null) : null);

/** Whether a table of one is a table of the other, but for the number of its rows. */
const isAlike = (a: SrteLayout, b: SrteLayout): boolean => a.form === b.form && a.rank === b.rank;

function chosen(all: readonly number[], merge: Merge): readonly number[] {
  if (all.length < 2 || merge === 'mean') return all;
  const layer = merge === 'first' ? 0 : merge.layer;
  if (layer < all.length) return [layer];
  throw new UserError('usage', `--merge layer:${layer}: there is no such layer`, {
    suggestion: `choose one from layer:0 to layer:${all.length - 1}`,
  });
}

function dtypeOf(
  found: SrteTables | null,
  sources: readonly number[],
  isMade: boolean,
  { dtype }: ConversionRequest,
): StoredDtype {
  if (dtype !== undefined) return dtype;
  const widest = widestOf(sources.flatMap((index) => found?.tables[index]?.rows.dtype ?? []));
  if (!isMade || isEncodable(widest)) return widest;
  throw new UserError('usage', `new tables cannot be written as ${widest}`, {
    suggestion: 'choose a type that they can be written as, with --dtype',
  });
}

/** The type that holds the values of all of these. */
function widestOf(dtypes: readonly StoredDtype[]): StoredDtype {
  const bits = (dtype: StoredDtype) => STORED_DTYPES[dtype].bits;
  const [first = COMPUTED_DTYPE, ...others] = [...new Set(dtypes)];
  // Two types of 16 bits hold different values: those of both fit into float32.
  return others.reduce((a, b) => (bits(a) === bits(b) ? 'F32' : bits(a) > bits(b) ? a : b), first);
}
