/** Which tensors a layer needs, and in what form: data, made before anything is read. */
import type { Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { walk } from '../../architecture/walk.js';

/**
 * How a weight is held: as a tensor of its own shape; as a tensor with its first axis last, so that
 * nothing is transposed while a model runs; as the rates of a scan (see scan.ts), outside the library.
 */
export type Form = 'tensor' | 'transposed' | 'rates';

export type WeightPlan = ReadonlyMap<Param, ReadonlySet<Form>>;

/** Every tensor that a layer and those below it read, each once, with the forms that are asked for. */
export function planWeights(layer: Layer): WeightPlan {
  const plan = new Map<Param, Set<Form>>();
  for (const visit of walk(layer)) {
    for (const [tensor, form] of needsOf(visit.layer)) {
      const forms = plan.get(tensor) ?? new Set();
      plan.set(tensor, forms.add(form));
    }
  }
  return plan;
}

/** What a layer itself reads, without its children. */
function needsOf(layer: Layer): readonly (readonly [Param, Form])[] {
  switch (layer.kind) {
    case 'linear':
      return [
        [layer.weight, 'transposed'],
        ...(layer.bias ? [[layer.bias, 'tensor'] as const] : []),
      ];
    case 'causalConv':
      return [
        [layer.weight, 'transposed'],
        [layer.bias, 'tensor'],
      ];
    case 'embedding':
      return [[layer.weight, 'tensor']];
    case 'layerNorm':
      return [
        [layer.weight, 'tensor'],
        [layer.bias, 'tensor'],
      ];
    case 'mamba':
      return [
        [layer.stateLog, 'rates'],
        [layer.skip, 'tensor'],
      ];
    case 'srteTable':
      return [[layer.table, 'tensor']];
    case 'srteLowRank':
      return [[layer.lowRank, 'tensor']];
    case 'srteSincos':
      return [[layer.inverseFrequencies, 'tensor']];
    // Its tables are computed for the positions that occur.
    case 'rotary':
    case 'activation':
    case 'transposedLinear':
    case 'fusedProjection':
    case 'rmsNorm':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'residual':
    case 'gatedMlp':
    case 'router':
    case 'packedExperts':
    case 'mixtureOfExperts':
    case 'alibi':
    case 'latentAttention':
    case 'sequence':
    case 'attention':
    case 'alignment':
    case 'gate':
    case 'hybridBlock':
    case 'languageModel':
      return [];
  }
}

/** Bytes that the plan takes of a heap where the weight of a product is held a second time, packed. */
export function heapBytes(plan: WeightPlan): number {
  const copies = { tensor: 1, transposed: 2, rates: 0 } as const satisfies Record<Form, number>;
  let bytes = 0;
  for (const [tensor, forms] of plan) {
    for (const form of forms)
      bytes += copies[form] * tensor.elements * Float32Array.BYTES_PER_ELEMENT;
  }
  return bytes;
}
