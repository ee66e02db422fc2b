import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { ownTensors, unreadTensors, walk } from '../../model/architecture/walk.js';
import { transposed } from '../weights/quantized-weights.js';
import type { WeightSource } from '../weights/weights.js';
import { decayRates } from './layers/selective-scan.js';
import type { Backend, Tensor, Tensor2D } from './packages.js';
import { scoped } from './packages.js';

// Tensors that a layer needs and their forms, planned before reading.

/**
 * Forms of a weight, and the copies of each in a heap that stores a product's weight a second time, packed. Nothing is
 * transposed while a model runs.
 */
const COPIES = {
  /** A tensor of its own shape. */
  tensor: 1,
  /** A factor of a product, [in, out]. */
  factor: 2,
  /** A tensor with its first axis last. */
  transposed: 2,
  /** [experts, out, in] as a tensor for each expert, with its first axis last. */
  experts: 2,
  /** [experts, in, out] as a factor for each expert. */
  factors: 2,
  /** Rates of a scan (see selective-scan.ts), outside the library. */
  rates: 0,
} as const;

export type WeightCopy = keyof typeof COPIES;

export type WeightPlan = ReadonlyMap<Param, ReadonlySet<WeightCopy>>;

/** Every tensor that a layer and its sublayers read, each once, with the required forms. */
export function planWeights(layer: Layer): WeightPlan {
  const plan = new Map<Param, Set<WeightCopy>>();
  const unread = unreadTensors(layer);
  for (const visit of walk(layer)) {
    for (const [tensor, form] of needsOf(visit.layer)) {
      if (unread.has(tensor)) continue;
      const copies = plan.get(tensor) ?? new Set();
      plan.set(tensor, copies.add(form));
    }
  }
  return plan;
}

/** The tensors that a layer itself reads, without its children: each in its own shape, unless its kind has a rule. */
function needsOf(layer: Layer): readonly (readonly [Param, WeightCopy])[] {
  switch (layer.kind) {
    case 'linear':
      return [[layer.weight, 'transposed'], ...tensors(layer.bias)];
    case 'transposedLinear':
      return [[layer.weight, 'factor'], ...tensors(layer.bias)];
    case 'router':
      return [
        [layer.weight, 'transposed'],
        ...tensors(layer.bias, layer.correction, layer.expertScales),
      ];
    case 'packedExperts':
      if (layer.up) {
        return [
          [layer.gateUp, 'transposed'],
          [layer.up, 'transposed'],
          [layer.down, 'factor'],
        ];
      }
      return [
        [layer.gateUp, layer.isTransposed ? 'factors' : 'experts'],
        [layer.down, layer.isTransposed ? 'factors' : 'experts'],
      ];
    case 'clampedExperts':
      return [
        [layer.gateUp, 'factors'],
        [layer.down, 'factors'],
        ...tensors(layer.gateUpBias, layer.downBias),
      ];
    case 'gatedDelta':
      return [
        [layer.stateLog, 'rates'],
        [layer.stepBias, 'tensor'],
      ];
    case 'attention':
      return tensors(layer.sinks);
    case 'causalConv':
      return [[layer.weight, 'transposed'], ...tensors(layer.bias)];
    case 'stateSpaceDual':
      return [[layer.stateLog, 'rates'], ...tensors(layer.stepBias, layer.skip)];
    case 'headedMamba':
      return [
        [layer.stateLog, 'rates'],
        ...tensors(layer.xProj, layer.stepProj, layer.stepBias, layer.skip),
      ];
    case 'mamba':
      return [
        [layer.stateLog, 'rates'],
        [layer.skip, 'tensor'],
      ];
    // Their tables are computed for the positions that occur.
    case 'rotary':
    case 'lightningAttention':
      return [];
    default:
      return tensors(...ownTensors(layer));
  }
}

/** All given tensors, each in its own shape. */
const tensors = (...params: readonly (Param | undefined)[]) =>
  params.flatMap((each) => (each ? [[each, 'tensor'] as const] : []));

/** Bytes of the plan in a heap that stores the weight of a product a second time. */
export function heapBytes(plan: WeightPlan): number {
  let bytes = 0;
  for (const [tensor, copies] of plan) {
    for (const form of copies)
      bytes += COPIES[form] * tensor.elements * Float32Array.BYTES_PER_ELEMENT;
  }
  return bytes;
}

/** Weights by their forms, as layers read them. */
export type WeightForms = Pick<Weights, 'tensor' | 'factor' | 'transposed' | 'expert' | 'rates'>;

/** The weights of a program, in the forms that its plan names. */
export class Weights {
  readonly #tensors = new Map<Param, Tensor>();
  readonly #factors = new Map<Param, Tensor2D>();
  readonly #transposed = new Map<Param, Tensor2D>();
  readonly #experts = new Map<Param, readonly Tensor2D[]>();
  readonly #rates = new Map<Param, Float32Array>();
  /** Elements created from the weights, without further forms of the same. */
  readonly elements: number;

  /**
   * Reads the weights, one after the other.
   * @throws UserError when they do not fit the backend's memory.
   */
  constructor(backend: Backend, plan: WeightPlan, source: WeightSource) {
    refuseTooLarge(backend, plan);
    let elements = 0;
    try {
      for (const [tensor, copies] of plan) {
        const values = new Float32Array(tensor.elements);
        source.read(tensor, 0, values);
        const [made = 0] = [...copies].map((form) => this.#hold(backend, tensor, form, values));
        elements += made;
      }
    } catch (error) {
      this.dispose();
      throw error;
    }
    this.elements = elements;
  }

  /** Returns the number of created elements. */
  #hold(backend: Backend, tensor: Param, form: WeightCopy, values: Float32Array): number {
    const { tf } = backend;
    switch (form) {
      case 'tensor':
        return held(this.#tensors, tensor, tf.tensor(values, [...tensor.shape], 'float32')).size;
      case 'rates':
        return held(this.#rates, tensor, decayRates(values)).length;
      case 'factor':
        return held(this.#factors, tensor, productFactor(backend, values, tensor.shape)).size;
      case 'transposed': {
        const [rows = 1] = tensor.shape;
        return held(this.#transposed, tensor, transposedFactor(backend, values, rows)).size;
      }
      case 'factors':
      case 'experts': {
        const made: Tensor2D[] = [];
        held(this.#experts, tensor, made); // Registered first: a failure below disposes it too.
        const [experts = 1, rows = 1] = tensor.shape;
        const size = tensor.elements / experts;
        for (let from = 0; from < tensor.elements; from += size) {
          const own = values.subarray(from, from + size);
          made.push(
            form === 'experts'
              ? transposedFactor(backend, own, rows)
              : productFactor(backend, own, [rows, size / rows]),
          );
        }
        return made.reduce((sum, { size: elements }) => sum + elements, 0);
      }
    }
  }

  /** A tensor in its own shape. */
  tensor(tensor: Param): Tensor {
    return heldTensor(this.#tensors, tensor);
  }

  /** A weight [in, out]. */
  factor(tensor: Param): Tensor2D {
    return heldTensor(this.#factors, tensor);
  }

  /** A weight [out, …] as [… as one axis, out]. */
  transposed(tensor: Param): Tensor2D {
    return heldTensor(this.#transposed, tensor);
  }

  /** One expert [in, out] of a weight of all. */
  expert(tensor: Param, expert: number): Tensor2D {
    const factor = heldTensor(this.#experts, tensor)[expert];
    if (!factor) throw new RangeError(`${tensor.name} has no expert ${expert}`);
    return factor;
  }

  /** Rates of a scan, row-major. */
  rates(tensor: Param): Float32Array {
    return heldTensor(this.#rates, tensor);
  }

  dispose(): void {
    const alone = [this.#tensors, this.#factors, this.#transposed];
    const all = [...alone.map((held) => [...held.values()]), ...this.#experts.values()];
    for (const tensor of all.flat()) tensor.dispose();
    for (const held of [...alone, this.#experts, this.#rates]) held.clear();
  }
}

function held<T>(all: Map<Param, T>, tensor: Param, value: T): T {
  all.set(tensor, value);
  return value;
}

function heldTensor<T>(held: ReadonlyMap<Param, T>, tensor: Param): T {
  const value = held.get(tensor);
  if (value === undefined) throw new Error(`${tensor.name} is not held in this form`);
  return value;
}

/** Transposes [rows, columns]. */
function transposedFactor(backend: Backend, values: Float32Array, rows: number): Tensor2D {
  const columns = values.length / rows;
  return productFactor(backend, transposed(values, rows, columns), [columns, rows]);
}

/** The right side of products. */
function productFactor(
  { tf, heap }: Backend,
  values: Float32Array,
  [rows = 1, columns = 1]: readonly number[],
): Tensor2D {
  const result = tf.tensor2d(values, [rows, columns], 'float32');
  if (!heap) return result;
  // A first product packs the weight. It runs here, where a lack of memory can be reported.
  try {
    heap.reserve(values.byteLength);
    scoped(tf, () => tf.matMul(tf.zeros([1, rows]), result));
  } catch (error) {
    result.dispose();
    throw error;
  }
  return result;
}

function refuseTooLarge({ heap, provider }: Backend, plan: WeightPlan): void {
  const bytes = heapBytes(plan);
  if (!heap || bytes <= heap.limitBytes) return;
  const gib = (count: number) => (count / 2 ** 30).toFixed(1);
  throw new UserError(
    'system',
    `the weights would take ${gib(bytes)} GiB of the memory of TensorFlow.js's ${provider} backend, which ends at ${gib(heap.limitBytes)} GiB`,
    { suggestion: `use ${setting('engine', 'onnx')}, or install @tensorflow/tfjs-node` },
  );
}
