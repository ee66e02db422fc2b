/** Decoding speed of planned models on a GPU. */

import { usageError } from '../../base/errors.js';
import type { Dtype } from '../../base/tensor/dtype.js';
import { stateDtypeOf } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { sumOf } from '../../base/values.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { memoized } from '../../model/architecture/walk.js';
import type { StateSetting } from '../../model/budget/state.js';
import { eachBound } from '../fit/bounds.js';
import {
  type DecodeWork,
  type ExpertGroup,
  rateOf,
  ratesOf,
  secondsOfStep,
  stepSeconds,
  tokensPerSecond,
} from '../fit/serving/roofline.js';
import { decodeWork, servedModel } from '../fit/serving/serving-work.js';
import {
  SERVED_IN,
  usualFormat,
  WEIGHT_DTYPES,
  type WeightDtype,
} from '../fit/serving/weight-types.js';
import type { Cluster } from '../hardware/gpu.js';
import { capacityOf, noPeakText, peakIfKnown } from '../hardware/gpu.js';
import type { FoldedModel } from './folding.js';
import type { DecodingTarget } from './search.js';

/**
 * Decoding on one GPU in tokens per second, with weights and caches in the types of the setting. Without a published
 * peak, only reading is counted.
 * @throws UserError when serving does not support that type.
 */
export function decodingTarget(
  { gpu }: Cluster,
  { batch, context, dtype, cacheDtype = dtype }: StateSetting,
): DecodingTarget {
  const served = servedIn(dtype);
  const rates = ratesOf(
    { gpu, gpus: 1, network: null },
    1,
    peakIfKnown(gpu, WEIGHT_DTYPES[served].computes),
    served,
  );
  const form = {
    weights: usualFormat(served),
    cacheDtype,
    stateDtype: stateDtypeOf(cacheDtype),
    tensorParallel: 1,
  } as const;
  const workOfPart = memoized((part: LanguageModel) =>
    decodeWork(servedModel(part, form), context),
  );
  const workOf = (model: FoldedModel) =>
    summedWork(model.map(({ model: part, times }) => ({ work: workOfPart(part), times })));
  return {
    rates: (model) => {
      const work = workOf(model);
      const step = eachBound(rates.efficiencies, (_, bound) =>
        stepSeconds(work, rates, batch, bound),
      );
      return tokensPerSecond(step, batch);
    },
    expected: (model) => {
      const value = secondsOfStep(workOf(model), rates, batch, 'expected');
      return rateOf(value, batch).value;
    },
    capacity: capacityOf(gpu),
  };
}

interface WorkPart {
  readonly work: DecodeWork;
  readonly times: number;
}

/** Work of a folded model: all values add up over its parts. */
function summedWork(parts: readonly WorkPart[]): DecodeWork {
  const sum = (of: (work: DecodeWork) => number) =>
    sumOf(parts, ({ work, times }) => times * of(work));
  return {
    weightBytes: sum((work) => work.weightBytes),
    expertGroups: summedExperts(parts),
    cacheBytes: sum((work) => work.cacheBytes),
    scoreFlops: sum((work) => work.scoreFlops),
    flops: sum((work) => work.flops),
    allReduces: sum((work) => work.allReduces),
    reducedBytes: sum((work) => work.reducedBytes),
    launches: sum((work) => work.launches),
  };
}

function summedExperts(parts: readonly WorkPart[]): ExpertGroup[] {
  const groups = new Map<string, ExpertGroup>();
  for (const { work, times } of parts) {
    for (const group of work.expertGroups) {
      const key = `${group.expertsPerToken} of ${group.experts}`;
      const bytes = (groups.get(key)?.bytes ?? 0) + times * group.bytes;
      groups.set(key, { ...group, bytes });
    }
  }
  return [...groups.values()];
}

/**
 * Text about figures left out without a published peak; null if there is one.
 * @throws UserError as `decodeOn`.
 */
export function missingPeakText({ gpu }: Cluster, { dtype }: StateSetting): string | null {
  const { computes } = WEIGHT_DTYPES[servedIn(dtype)];
  if (peakIfKnown(gpu, computes)) return null;
  return `${noPeakText(gpu, computes)}: tokens/s are of reading alone, and fewer with many sequences`;
}

function servedIn(dtype: Dtype): WeightDtype {
  const served = SERVED_IN[dtype];
  if (served !== undefined) return served;
  throw usageError(
    `${setting('dtype')}: decoding speed has no estimate for ${dtype}`,
    `write f32, bf16 or f16, or leave out ${setting('gpu')}`,
  );
}
