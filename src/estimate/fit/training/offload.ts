/**
 * State of a training in system memory, as ZeRO-Offload (arXiv 2101.06840), ZeRO-3 with `offload_param` and FSDP with
 * `CPUOffload` keep it: the processor updates the weights.
 */

import { add, div, inputs, max, mul } from '../../../model/budget/expression.js';
import type { Bounds } from '../../../model/budget/figure.js';
import { quantity } from '../../../model/budget/figure.js';
import type { Trained } from '../../../model/budget/optimizers.js';
import { trainedStateOf, trainingBytes } from '../../../model/budget/training-budget.js';
import type { Gpu } from '../../hardware/gpu.js';
import { boundsOf, byBound } from '../bounds.js';
import { COPYING, shareAt } from '../places/system-speed.js';
import type {
  TrainingFitSetting,
  TrainingOffload,
  TrainingOffloadPart,
} from './training-setting.js';

/** Bytes of a float32 gradient, which the processor keeps for its update (DeepSpeed, docs/code-docs/source/memory.rst). */
const HOST_GRADIENT_BYTES = 4;

/** Buffers on top, at most (DeepSpeed, memory.rst: `additional_buffer_factor`). */
const BUFFER_FACTOR = 1.5;

type State = Pick<TrainingFitSetting, 'precision' | 'optimizer'>;

/**
 * Bytes of the state in system memory, of all GPUs together.
 * @param trained Whole tensors of the model.
 */
export function hostStateBytes(
  trained: readonly Trained[],
  { precision, optimizer }: State,
  part: TrainingOffloadPart,
): Bounds {
  const parameters = trained.reduce((sum, { elements, count = 1 }) => sum + count * elements, 0);
  const state = trainedStateOf(trained, { precision, optimizer });
  const of = inputs({
    optimizer: Number(state.optimizer.value),
    weights: part === 'parameters' ? trainingBytes(precision) * parameters : 0,
    gradients: HOST_GRADIENT_BYTES * parameters,
    narrow_gradients: trainingBytes(precision) * parameters,
    factor: BUFFER_FACTOR,
  });
  const all = add(of.optimizer, of.weights, of.gradients);
  const source =
    'optimizer with its float32 weights, and float32 gradients (DeepSpeed, memory.rst)';
  return boundsOf(
    { label: 'state in system memory', unit: 'bytes', inputs: of },
    {
      lower: { formula: add(of.optimizer, of.weights, of.narrow_gradients), source },
      expected: { formula: all, source },
      upper: { formula: mul(all, of.factor), source: `${source}, with 1.5 times for buffers` },
    },
  );
}

/**
 * Bytes that the update of a parameter moves in system memory: AdamW reads gradient, weight and two moments in float32,
 * writes the last three, and the weight in 16 bits.
 */
const UPDATE_BYTES = 4 * 4 + 3 * 4 + 2;

/** Share of the speed of PCIe that pinned copies reach. */
const COPY_SHARE = { lower: 1, expected: 0.8, upper: 0.5 } as const satisfies Record<
  keyof Bounds,
  number
>;

/** Bytes per second between a GPU and system memory: its PCIe, or that of usual cards. */
function copyingOf({ links }: Gpu, bound: keyof Bounds): number {
  const pcie = links.find(({ name }) => name.startsWith('PCIe'));
  return pcie === undefined ? COPYING[bound] : pcie.bandwidth * COPY_SHARE[bound];
}

/** A step with a part of the state in system memory. */
interface OffloadedStep {
  readonly setting: TrainingFitSetting;
  readonly offload: TrainingOffload;
  /** Parameters of the model. */
  readonly parameters: number;
  readonly microBatches: number;
}

/**
 * Seconds in which a step copies gradients and weights, and the processor updates them. At best both overlap with each
 * other; else the update waits for the gradients.
 */
export function hostSeconds({ setting, offload, parameters, microBatches }: OffloadedStep): Bounds {
  const bytes = trainingBytes(setting.precision);
  const { gpu, gpus } = setting.cluster;
  // Each pass over the blocks fetches their weights.
  const passes = setting.recompute === 'none' ? 2 : 3;
  const fetched = offload.part === 'parameters' ? passes * microBatches : 1;
  return byBound((bound) => {
    const of = inputs({
      parameters,
      gpus,
      copied_bytes: bytes * (1 + fetched),
      copying: copyingOf(gpu, bound),
      update_bytes: UPDATE_BYTES,
      bandwidth: offload.memory.bandwidth * shareAt(bound, offload.memory),
    });
    const copies = div(mul(of.copied_bytes, of.parameters), mul(of.gpus, of.copying));
    const update = div(mul(of.update_bytes, of.parameters), of.bandwidth);
    return quantity({
      label: 'copies and the update on the processor',
      unit: 'seconds',
      formula: bound === 'lower' ? max(copies, update) : add(copies, update),
      inputs: of,
      source: `gradients and weights over PCIe, ${UPDATE_BYTES} bytes a parameter in ${offload.memory.label}`,
    });
  });
}
