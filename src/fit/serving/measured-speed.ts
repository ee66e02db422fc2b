/** Measured times of serving, which replace the estimates of the roofline. */
import { v } from '../../budget/expression.js';
import type { Bounds } from '../../budget/figure.js';
import { quantity } from '../../budget/figure.js';
import type { DecodeStep, Prefill } from './roofline.js';

/** Times that a user measured on the GPUs of one replica. */
export interface MeasuredSpeed {
  /** Seconds per token of a sequence, with the batch of the setting in service. */
  readonly tokenSeconds?: number | undefined;
  /** Seconds from one prompt to its first token. */
  readonly prefillSeconds?: number | undefined;
}

/** Measured decoding step for up to `most` sequences; undefined for more, or where nothing was measured. */
export function measuredStep(
  { tokenSeconds }: MeasuredSpeed,
  batch: number,
  most: number,
): DecodeStep | undefined {
  if (tokenSeconds === undefined || batch > most) return undefined;
  const source = `--token-time, measured with ${most} ${most === 1 ? 'sequence' : 'sequences'} at a time`;
  return {
    seconds: measuredBounds('decoding step', tokenSeconds, source),
    limitedBy: null,
    limits: [],
  };
}

/** Measured prefill of one prompt; undefined where it was not measured. */
export const measuredPrefill = ({ prefillSeconds }: MeasuredSpeed): Prefill | undefined =>
  prefillSeconds === undefined
    ? undefined
    : {
        seconds: measuredBounds(
          'prefill',
          prefillSeconds,
          '--prefill-time, measured with one prompt',
        ),
        limitedBy: null,
        limits: [],
      };

/** A measurement has no bounds of its own. */
function measuredBounds(label: string, measured: number, source: string): Bounds {
  const one = quantity({ label, unit: 'seconds', formula: v({ measured }), source });
  return { lower: one, expected: one, upper: one };
}
