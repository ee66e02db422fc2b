/** Layout of a model's Shared Relative Time Encoding. */
import type { LanguageModel, Srte } from './layer.js';
import { walk } from './walk.js';

export const SRTE_FORMS = {
  table: 'a full table',
  'low-rank': 'a low-rank pair',
  sincos: 'sines and cosines',
} as const satisfies Record<string, string>;

export type SrteStorageKind = keyof typeof SRTE_FORMS;

export interface SrteLayout {
  /** Whether layers share their tables. */
  readonly sharing: 'shared' | 'per-layer';
  /** Form of the tables. */
  readonly form: SrteStorageKind;
  /** Rows of a table: the longest input. @count */
  readonly positions: number;
  /** Columns of a table. @count */
  readonly hidden: number;
  /** Null unless it is a low-rank pair. @count */
  readonly rank: number | null;
  /** Layers with a table. @count */
  readonly layers: number;
}

/** Learned values of all tables together. */
export function srteParameters({
  sharing,
  form,
  positions,
  hidden,
  rank,
  layers,
}: SrteLayout): number {
  const tables = sharing === 'shared' ? 1 : layers;
  switch (form) {
    case 'table':
      return tables * positions * hidden;
    case 'low-rank':
      return tables * (rank ?? 0) * (positions + hidden);
    case 'sincos':
      return 0;
  }
}

/** Undefined for a model without an SRTE. */
export function srteLayoutOf(model: LanguageModel): SrteLayout | undefined {
  const srtes = model.blocks.flatMap((block) => (block.kind === 'hybridBlock' ? [block.srte] : []));
  const [first] = srtes;
  if (first === undefined) return undefined;
  const isShared = model.shared.some((layer) => walk(layer).some((visit) => visit.layer === first));
  return {
    sharing: isShared ? 'shared' : 'per-layer',
    positions: model.positions,
    layers: srtes.length,
    ...layoutSizes(first),
  };
}

function layoutSizes(srte: Srte): Pick<SrteLayout, 'form' | 'hidden' | 'rank'> {
  switch (srte.kind) {
    case 'srteTable':
      return { form: 'table', hidden: srte.table.shape[2] ?? 0, rank: null };
    case 'srteLowRank': {
      const [hidden = 0, rank = 0] = srte.projection.weight.shape;
      return { form: 'low-rank', hidden, rank };
    }
    case 'srteSincos':
      return { form: 'sincos', hidden: 2 * srte.inverseFrequencies.elements, rank: null };
  }
}
