/** How fast the models of a plan decode on a GPU. */
import type { StateSetting } from '../budget/state.js';
import { UserError } from '../errors.js';
import { usualFormat, WEIGHT_DTYPES } from '../fit/quantized.js';
import { decodeStep, ratesOf, tokensPerSecond } from '../fit/roofline.js';
import type { WeightDtype } from '../fit/serving-setting.js';
import { decodeWork, servedModel } from '../fit/serving-work.js';
import type { Cluster } from '../hardware/gpu.js';
import { noPeakText, peakIfKnown } from '../hardware/peak.js';
import type { Dtype } from '../tensor/dtype.js';
import type { DecodeOf } from './search.js';

/** What weights of a type are served in. */
const SERVED_IN = {
  f64: undefined,
  f32: 'f32',
  f16: 'f16',
  bf16: 'bf16',
  f8_e4m3: 'f8',
  f8_e5m2: 'f8',
  i8: 'int8',
  i4: 'int4',
} as const satisfies Record<Dtype, WeightDtype | undefined>;

/**
 * Tokens per second on one GPU, weights and caches in the type of the setting; of one without a published peak, those
 * that reading them allows.
 * @throws UserError when nothing is served in that type.
 */
export function decodeOn({ gpu }: Cluster, { batch, context, dtype }: StateSetting): DecodeOf {
  const served = servedIn(dtype);
  const rates = ratesOf(
    { gpu, gpus: 1, network: null },
    1,
    peakIfKnown(gpu, WEIGHT_DTYPES[served].computes),
  );
  const form = {
    weights: usualFormat(served),
    cacheDtype: dtype,
    stateDtype: dtype,
    tensorParallel: 1,
  } as const;
  return (model) => {
    const step = decodeStep(decodeWork(servedModel(model, form), context), rates, batch);
    return tokensPerSecond(step.seconds, batch);
  };
}

/**
 * What is left out where no peak is published; null where one is.
 * @throws UserError as `decodeOn`.
 */
export function withoutPeak({ gpu }: Cluster, { dtype }: StateSetting): string | null {
  const { computes } = WEIGHT_DTYPES[servedIn(dtype)];
  if (peakIfKnown(gpu, computes)) return null;
  return `${noPeakText(gpu, computes)}: tokens/s are of reading alone, and fewer with many sequences`;
}

function servedIn(dtype: Dtype): WeightDtype {
  const served = SERVED_IN[dtype];
  if (served !== undefined) return served;
  throw new UserError('usage', `--dtype: nothing is served in ${dtype}`, {
    suggestion: 'use f32, bf16 or f16, or leave out --gpu',
  });
}
