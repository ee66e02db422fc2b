/** Reason for a KV cache that is smaller than the figure per token times the tokens of a context. */
import type { Window } from '../../model/architecture/layer.js';

export interface CacheFigures {
  readonly perToken: number;
  readonly total: number;
  /** Tokens of all sequences. */
  readonly tokens: number;
  /** Rules of the heads' windows; without them, the text names windows. */
  readonly rules?: readonly Window['rule'][];
}

/**
 * `windows full`; undefined if each token takes as much as the first. Layers that share keys or keep a state
 * instead of keys add nothing to either figure. A total in 4 bits can be rounded by less than a byte per token.
 */
export function fullWindowsText({ perToken, total, tokens, rules }: CacheFigures) {
  if (perToken * tokens - total < tokens) return undefined;
  if (rules === undefined) return 'windows full';
  const kinds = new Set(rules.map((rule) => (rule === 'chunked' ? 'chunks' : 'windows')));
  return `${[...kinds].join(' and ')} full`;
}
