/** Which tensors a layer needs, and in what form: data, made before anything is read. */
import type { Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { walk } from '../../architecture/walk.js';

/**
 * How a weight is held, and how often in a heap where that of a product is held a second time, packed.
 * Nothing is transposed while a model runs.
 */
const COPIES = {
  /** As a tensor of its own shape. */
  tensor: 1,
  /** As that of a product, [in, out]. */
  factor: 2,
  /** With its first axis last. */
  transposed: 2,
  /** [experts, out, in] as a tensor for each expert, with its first axis last. */
  experts: 2,
  /** As the rates of a scan (see scan.ts), outside the library. */
  rates: 0,
} as const;

export type Form = keyof typeof COPIES;

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
      return [[layer.weight, 'transposed'], ...tensors(layer.bias)];
    case 'transposedLinear':
      return [[layer.weight, 'factor'], ...tensors(layer.bias)];
    case 'router':
      return [[layer.weight, 'transposed'], ...tensors(layer.correction)];
    case 'packedExperts':
      return [
        [layer.gateUp, 'experts'],
        [layer.down, 'experts'],
      ];
    case 'causalConv':
      return [
        [layer.weight, 'transposed'],
        [layer.bias, 'tensor'],
      ];
    case 'embedding':
    case 'rmsNorm':
    case 'learnedPositions':
      return tensors(layer.weight);
    case 'layerNorm':
      return tensors(layer.weight, layer.bias);
    case 'mamba':
      return [
        [layer.stateLog, 'rates'],
        [layer.skip, 'tensor'],
      ];
    case 'srteTable':
      return tensors(layer.table);
    case 'srteLowRank':
      return tensors(layer.lowRank);
    case 'srteSincos':
      return tensors(layer.inverseFrequencies);
    // Its tables are computed for the positions that occur.
    case 'rotary':
    case 'activation':
    case 'fusedProjection':
    case 'scale':
    case 'softcap':
    case 'residual':
    case 'gatedMlp':
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

/** All there are, each in its own shape. */
const tensors = (...params: readonly (Param | undefined)[]) =>
  params.flatMap((each) => (each ? [[each, 'tensor'] as const] : []));

/** Bytes that the plan takes of a heap where the weight of a product is held a second time. */
export function heapBytes(plan: WeightPlan): number {
  let bytes = 0;
  for (const [tensor, forms] of plan) {
    for (const form of forms)
      bytes += COPIES[form] * tensor.elements * Float32Array.BYTES_PER_ELEMENT;
  }
  return bytes;
}
