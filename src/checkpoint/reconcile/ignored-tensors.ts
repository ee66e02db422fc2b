/** Tensors of a checkpoint that transformers ignores, as answers show them. */
import { formatBytes } from '../../base/text/units.js';
import { counted, shortened } from '../../base/text/words.js';
import type { ReconciliationNote } from './notes.js';

/** Tensors of a checkpoint that transformers' class ignores when it loads them. */
export interface IgnoredTensors {
  /** Names in the file. */
  readonly names: readonly string[];
  /** Names with equal parts as one: `mtp.*`, `layers.{20–29}.self_attn.k_proj.weight`. */
  readonly patterns: readonly string[];
  /** Bytes of the tensors. @count */
  readonly bytes: number;
}

/** The tensors that the notes on a checkpoint say are ignored; undefined without any. */
export function ignoredIn(notes: readonly ReconciliationNote[]): IgnoredTensors | undefined {
  const note = notes.find(({ kind }) => kind === 'ignored-by-transformers');
  if (note === undefined) return undefined;
  const { names, patterns = [], bytes = 0 } = note;
  return { names, patterns, bytes };
}

/** `ignored by transformers: 4 tensors mtp.*, 12.3 MB` */
export const ignoredText = ({ names, patterns, bytes }: IgnoredTensors): string =>
  `ignored by transformers: ${counted(names.length, 'tensor')} ${patternList(patterns)}, ${formatBytes(bytes)}`;

/** The first patterns, and how many more there are. */
function patternList(patterns: readonly string[]): string {
  const shown = patterns.slice(0, MOST_LISTED).map((each) => shortened(each));
  const more = patterns.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

const MOST_LISTED = 4;
