/** From the SRTE that a checkpoint has to the one that is asked for. */
import type { SrteLayout } from '../architecture/srte-layout.js';
import { UserError } from '../errors.js';
import { type ConversionRequest, LAYOUTS } from './request.js';
import type { SrteTables } from './srte-tables.js';

/** @param layers How many layers the model has. */
export function layoutOfTables(found: SrteTables, layers: number): SrteLayout {
  const { sharing, positions, hidden, rank } = found;
  return { sharing, form: rank === null ? 'table' : 'low-rank', positions, hidden, rank, layers };
}

/**
 * The layout that a request leads to. The rank of a pair that is to be found by its error is null.
 * @throws UserError when the request contradicts itself, or what there is.
 */
export function requestedLayout(source: SrteLayout, request: ConversionRequest): SrteLayout {
  const { to, truncation, positions = source.positions } = request;
  checkPositions(source, request);
  const { sharing, form } = to === undefined ? source : LAYOUTS[to];
  const isPair = form === 'low-rank' || (to === 'per-layer' && truncation !== undefined);
  if (truncation !== undefined && !isPair) {
    throw new UserError('usage', `a rank means nothing to ${to ?? form}`, {
      suggestion: 'write --to low-rank, or leave the rank out',
    });
  }
  const sizes = { ...source, sharing, positions };
  if (!isPair) return { ...sizes, form, rank: null };
  return {
    ...sizes,
    form: 'low-rank',
    rank: wantedRank({ ...source, sharing }, truncation, Math.min(positions, rowsKnown(source))),
  };
}

/** Rows of a table that are known: of one that is computed, any number. */
export const rowsKnown = ({ form, positions }: SrteLayout): number =>
  form === 'sincos' ? Number.POSITIVE_INFINITY : positions;

/** Null when it has to be found. */
function wantedRank(
  { form, rank, hidden, sharing }: SrteLayout,
  truncation: ConversionRequest['truncation'],
  positions: number,
): number | null {
  if (truncation === undefined) {
    if (form === 'low-rank') return rank;
    throw new UserError('usage', 'low-rank needs a rank', {
      suggestion: 'add --rank 128, or --max-error 0.05 for the smallest rank within that error',
    });
  }
  if (!('rank' in truncation)) {
    if (sharing === 'shared') return null;
    throw new UserError(
      'usage',
      'tables of layers have one rank for all of them: it cannot be found by an error',
      {
        suggestion: 'give the rank with --rank, or make one pair for all layers with --to low-rank',
      },
    );
  }
  checkRank(truncation.rank, positions, hidden);
  return truncation.rank;
}

/** @throws UserError when a table [positions, hidden] has no pair of that rank. */
function checkRank(rank: number, positions: number, hidden: number): void {
  const most = Math.min(positions, hidden - 1);
  if (rank <= most) return;
  throw new UserError(
    'usage',
    `rank ${rank} is too large for a table of ${positions} × ${hidden}: ${
      rank > Math.min(positions, hidden)
        ? `no such table has a rank above ${Math.min(positions, hidden)}`
        : 'models build a full table unless the rank is below the hidden size'
    }`,
    { suggestion: most > 0 ? `choose a rank from 1 to ${most}` : 'keep the full table' },
  );
}

function checkPositions(source: SrteLayout, { positions, extension }: ConversionRequest): void {
  if (positions === undefined || positions <= rowsKnown(source) || extension !== undefined) return;
  throw new UserError(
    'usage',
    `the tables have ${source.positions} rows, and ${positions} are asked for: nothing was learned for the others`,
    {
      suggestion: `ask for at most ${source.positions}, or say what to put there with --extend repeat or --extend zero`,
    },
  );
}
