/** How fast the models of a plan decode on a GPU. */
import type { StateSetting } from '../budget/state.js';
import { UserError } from '../errors.js';
import { usualFormat, WEIGHT_DTYPES } from '../fit/quantized.js';
import { decodeStep, ratesOf, tokensPerSecond } from '../fit/roofline.js';
import type { WeightDtype } from '../fit/serving-setting.js';
import { decodeWork, servedModel } from '../fit/serving-work.js';
import type { Cluster } from '../hardware/gpu.js';
import { peakFor } from '../hardware/peak.js';
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
 * Tokens per second on one GPU, weights and caches in the type of the setting.
 * @throws UserError when the GPU does not compute in it, or nobody says how fast.
 */
export function decodeOn({ gpu }: Cluster, { batch, context, dtype }: StateSetting): DecodeOf {
  const served = SERVED_IN[dtype];
  if (served === undefined) {
    throw new UserError('usage', `--dtype: nothing is served in ${dtype}`, {
      suggestion: 'use f32, bf16 or f16, or leave out --gpu',
    });
  }
  const rates = ratesOf(
    { gpu, gpus: 1, network: null },
    1,
    peakFor(gpu, WEIGHT_DTYPES[served].computes),
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
