/** FLOPs of cached decoding: one more token of a sequence whose keys, values and states are kept. */
import { reachOf, windowKey } from '../architecture/masks.js';
import { type Figure, figure, sumFigure } from './figure.js';
import { forwardFlopsOf, operationsIn, type Work } from './flops.js';

export interface DecodingFlops {
  /** Of the token, whatever came before it: products with weights, convolutions, scans. */
  readonly perToken: Figure;
  /** What is computed with the keys and values of the context. */
  readonly scores: Figure;
}

/** @param context Tokens that are kept, the new one included. */
export function decodingFlopsOf(work: Work, context: number): DecodingFlops {
  const { parts } = forwardFlopsOf(work, { batch: 1, context: 1, causal: true });
  const others = parts.filter(({ kind }) => kind !== 'scores');
  return {
    perToken: sumFigure(
      'a token, without scores',
      'FLOP',
      Object.fromEntries(
        others.map(({ component, kind, flops }) => [`${component}_${kind}`, flops]),
      ),
      'sum of the parts of a forward pass over one token',
    ),
    scores: scoresFigure(work, context),
  };
}

/**
 * Queries read a window as it slides. With latents, heads multiply the latents themselves: what makes keys and values
 * of them is taken into the query and the output (arXiv 2405.04434, section 2.1.2), at the same cost for a token.
 */
function scoresFigure(work: Work, context: number): Figure {
  const inputs: Record<string, number> = { context };
  const terms = new Map<string, string>();
  const add = (name: string, width: number, seen: string) => {
    inputs[name] = (inputs[name] ?? 0) + width;
    terms.set(name, `${name} * ${seen}`);
  };
  for (const operation of operationsIn(work)) {
    if (operation.kind !== 'scores') continue;
    const { spans, headDim, valueDim, latent } = operation;
    for (const { heads, window } of spans) {
      const seen = window === undefined ? 'context' : `min(context, ${reachOf(window) + 1})`;
      if (latent !== undefined) add('latent_width', heads * latent.multiplied, seen);
      else add(`query_and_value_width_${windowKey(window)}`, heads * (headDim + valueDim), seen);
    }
  }
  return figure({
    label: 'scores and values of a token',
    unit: 'FLOP',
    formula: `2 * (${[...terms.values()].join(' + ') || '0'})`,
    inputs,
    source:
      'q·kᵀ and its sum over v: per kept token and head a multiply-accumulate for each value of the query, and of v; ' +
      'latents are read as they are',
  });
}
