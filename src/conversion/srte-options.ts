/** Ways of storing one table for all layers, and what they cost. */
import { isSameView, type StoredTensor } from '../checkpoint/stored-tensor.js';
import { UserError } from '../errors.js';
import { squaredLosses } from '../linalg/subspace-iteration.js';
import { STORED_DTYPES, type StoredDtype } from '../tensor/dtype.js';
import type { SrteTables } from './srte-tables.js';

/** How tables are stored now. */
export interface SrteStorage {
  /** The widest of theirs. */
  readonly dtype: StoredDtype;
  /** Of all tables together, what they have in common counted once. */
  readonly parameters: number;
  readonly bytes: number;
}

/** A way of storing one table for all layers. */
export interface SrteOption {
  /** Null for the mean itself; else the best approximation to it of this rank. */
  readonly rank: number | null;
  readonly parameters: number;
  /** In the dtype that the tables have now. */
  readonly bytes: number;
  /** Fewer than now; negative when there are more. */
  readonly savedParameters: number;
  readonly savedBytes: number;
  /** Share of the mean's squared norm that is kept, 0 to 1; null when there is none to keep. */
  readonly energy: number | null;
  /** Root of the sum of all squared differences over that of all squares. */
  readonly relativeError: number | null;
}

/** What the errors of all options come from. */
export interface SharingErrors {
  /** Sum of the squares of all tables. */
  readonly squares: number;
  /** Sum of their squared distances to the mean. */
  readonly squaredDistances: number;
  readonly squaredMean: number;
  /** Of the mean's Gram matrix, the largest first; null when they are not known. */
  readonly eigenvalues: Float64Array | null;
}

export function storageOf({ tables }: SrteTables): SrteStorage {
  const tensors: StoredTensor[] = [];
  for (const tensor of tables.flatMap(({ rows, projection }) => [
    rows,
    ...(projection ? [projection] : []),
  ])) {
    if (!tensors.some((known) => isSameView(known, tensor))) tensors.push(tensor);
  }
  const dtypes = tensors.map(({ dtype }) => dtype);
  return {
    dtype: dtypes.reduce((a, b) => (STORED_DTYPES[b].bits > STORED_DTYPES[a].bits ? b : a)),
    parameters: tensors.reduce((sum, { elements }) => sum + elements, 0),
    bytes: tensors.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/** Smaller ranks are of interest only to tables that are small themselves. */
const USUAL_RANK = 8;

/** The powers of two by which a pair takes less than a table does, and less than what is stored. */
export function usualRanks({ positions, hidden, rank: stored }: SrteTables): number[] {
  const most = Math.min(stored ?? hidden, (positions * hidden) / (positions + hidden));
  const ranks: number[] = [];
  for (let rank = 1; rank < most; rank *= 2) ranks.push(rank);
  const usual = ranks.filter((rank) => rank >= USUAL_RANK);
  return usual.length > 0 ? usual : ranks;
}

/** @throws UserError when a rank is none that a table can have. */
export function checkRanks(ranks: readonly number[], { positions, hidden }: SrteTables): void {
  const most = Math.min(positions, hidden);
  const wrong = ranks.find((rank) => !Number.isInteger(rank) || rank < 1 || rank > most);
  if (wrong === undefined) return;
  throw new UserError('usage', `${wrong} is no rank of a table of ${positions} × ${hidden}`, {
    suggestion: `choose a whole number from 1 to ${most}`,
  });
}

/** The mean, unless the table is shared already, and each rank, if errors are known for ranks. */
export function sharingOptions(
  found: SrteTables,
  ranks: readonly number[],
  errors: SharingErrors,
): SrteOption[] {
  const { positions, hidden, sharing, tables } = found;
  const stored = storageOf(found);
  const option = (rank: number | null, parameters: number, squaredLoss: number): SrteOption => {
    const bytes = Math.ceil((parameters * STORED_DTYPES[stored.dtype].bits) / 8);
    const squaredError = errors.squaredDistances + tables.length * squaredLoss;
    return {
      rank,
      parameters,
      bytes,
      savedParameters: stored.parameters - parameters,
      savedBytes: stored.bytes - bytes,
      energy: ratio(errors.squaredMean - squaredLoss, errors.squaredMean),
      relativeError: ratio(Math.sqrt(squaredError), Math.sqrt(errors.squares)),
    };
  };
  const losses = errors.eigenvalues ? squaredLosses(errors.eigenvalues, ranks) : [];
  return [
    ...(sharing === 'shared' ? [] : [option(null, positions * hidden, 0)]),
    ...losses.map((loss, index) => {
      const rank = ranks[index] ?? 0;
      return option(rank, rank * (positions + hidden), loss);
    }),
  ];
}

/** Null is what has no finite value. */
export const finiteOrNull = (value: number): number | null =>
  Number.isFinite(value) ? value : null;

/** `part` / `whole`; null when it is 0/0, or either is not finite. */
export const ratio = (part: number, whole: number): number | null =>
  Number.isFinite(whole) ? finiteOrNull(part / whole) : null;
