/** The SRTE of an input, as far as it can be converted. */
import type { LanguageModel } from '../architecture/layer.js';
import { type SrteLayout, srteLayoutOf } from '../architecture/srte-layout.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { numbersUnder, type StoredNames } from '../checkpoint/names.js';
import { UserError } from '../errors.js';
import { layoutOfTables } from './layouts.js';
import { srtePlaceOf } from './srte-names.js';
import { type SrteTables, srteTablesWithCopies } from './srte-tables.js';

export interface SrteSource {
  readonly layout: SrteLayout;
  /** Null when the SRTE is computed. */
  readonly tables: SrteTables | null;
  /** Before `layers.` in its names. */
  readonly prefix: string;
}

/** The name of a buffer that only a computed SRTE has. */
const SINCOS_NAME = /^(|.*\.)(?:layers\.\d+\.srte|shared_srte)\.inv_freq$/s;

/**
 * @param model As its config describes it; undefined when nothing does.
 * @param positions Rows that are asked for: a computed SRTE says nothing of how many it has.
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
  const prefix = [...stored.keys()].map(srtePlaceOf).find(Boolean)?.prefix ?? '';
  const numbers = numbersUnder(`${prefix}layers`, stored.keys());
  const layers = tables.sharing === 'per-layer' ? tables.tables.length : numbers.length;
  return { layout: layoutOfTables(tables, Math.max(1, layers)), tables, prefix };
}

/** Undefined when some SRTE is learned, or there is none. */
function computedSource(
  stored: StoredNames,
  positions: number | undefined,
): SrteSource | undefined {
  const names = [...stored.keys()];
  if (names.some(srtePlaceOf)) return undefined;
  const name = names.find((each) => SINCOS_NAME.test(each));
  if (name === undefined) return undefined;
  if (positions === undefined) {
    throw new UserError('usage', 'a computed SRTE does not say how many positions it is for', {
      suggestion: 'give their number with --max-positions, or the model’s config with --config',
    });
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
