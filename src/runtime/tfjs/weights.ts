import type { Param } from '../../architecture/param.js';
import { UserError } from '../../errors.js';
import type { WeightSource } from '../weights.js';
import { type Backend, scoped, type Tensor, type Tensor2D } from './library.js';
import { ratesOf } from './scan.js';
import { type Form, heapBytes, type WeightPlan } from './weight-plan.js';

/** The weights of a program, in the forms that its plan names. */
export class Weights {
  readonly #tensors = new Map<Param, Tensor>();
  readonly #factors = new Map<Param, Tensor2D>();
  readonly #transposed = new Map<Param, Tensor2D>();
  readonly #experts = new Map<Param, readonly Tensor2D[]>();
  readonly #rates = new Map<Param, Float32Array>();
  /** Of what was made of the weights, further forms of the same left out. */
  readonly elements: number;

  /**
   * Reads them, one after the other.
   * @throws UserError when they do not fit the backend's memory.
   */
  constructor(backend: Backend, plan: WeightPlan, source: WeightSource) {
    refuseTooLarge(backend, plan);
    let elements = 0;
    try {
      for (const [tensor, forms] of plan) {
        const values = new Float32Array(tensor.elements);
        source.read(tensor, 0, values);
        const [made = 0] = [...forms].map((form) => this.#hold(backend, tensor, form, values));
        elements += made;
      }
    } catch (error) {
      this.dispose();
      throw error;
    }
    this.elements = elements;
  }

  /** Gives how many elements it made. */
  #hold(backend: Backend, tensor: Param, form: Form, values: Float32Array): number {
    const { tf } = backend;
    switch (form) {
      case 'tensor':
        return held(this.#tensors, tensor, tf.tensor(values, [...tensor.shape], 'float32')).size;
      case 'rates':
        return held(this.#rates, tensor, ratesOf(values)).length;
      case 'factor':
        return held(this.#factors, tensor, factorOf(backend, values, tensor.shape)).size;
      case 'transposed': {
        const [rows = 1] = tensor.shape;
        return held(this.#transposed, tensor, transposedFactor(backend, values, rows)).size;
      }
      case 'experts': {
        const made: Tensor2D[] = [];
        held(this.#experts, tensor, made); // Disposed of even if one of them fails.
        const [experts = 1, rows = 1] = tensor.shape;
        const size = tensor.elements / experts;
        for (let from = 0; from < tensor.elements; from += size) {
          made.push(transposedFactor(backend, values.subarray(from, from + size), rows));
        }
        return made.reduce((sum, { size: elements }) => sum + elements, 0);
      }
    }
  }

  /** In its own shape. */
  tensor(tensor: Param): Tensor {
    return found(this.#tensors, tensor);
  }

  /** Of a weight [in, out]. */
  factor(tensor: Param): Tensor2D {
    return found(this.#factors, tensor);
  }

  /** Of a weight [out, …]: [… as one axis, out]. */
  transposed(tensor: Param): Tensor2D {
    return found(this.#transposed, tensor);
  }

  /** Of a weight [experts, out, in]: [in, out]. */
  expert(tensor: Param, expert: number): Tensor2D {
    const factor = found(this.#experts, tensor)[expert];
    if (!factor) throw new RangeError(`${tensor.name} has no expert ${expert}`);
    return factor;
  }

  /** Of a scan, row-major. */
  rates(tensor: Param): Float32Array {
    return found(this.#rates, tensor);
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

function found<T>(held: ReadonlyMap<Param, T>, tensor: Param): T {
  const value = held.get(tensor);
  if (value === undefined) throw new Error(`${tensor.name} is not held in this form`);
  return value;
}

/** [rows, columns], turned. */
function transposedFactor(backend: Backend, values: Float32Array, rows: number): Tensor2D {
  const columns = values.length / rows;
  return factorOf(backend, transpose(values, rows, columns), [columns, rows]);
}

/** The right side of products. */
function factorOf(
  { tf, heap }: Backend,
  values: Float32Array,
  [rows = 1, columns = 1]: readonly number[],
): Tensor2D {
  const result = tf.tensor2d(values, [rows, columns], 'float32');
  if (!heap) return result;
  // A first product packs the weight. Here it is known that there is room for that; a run could not tell.
  try {
    heap.reserve(values.byteLength);
    scoped(tf, () => tf.matMul(tf.zeros([1, rows]), result));
  } catch (error) {
    result.dispose();
    throw error;
  }
  return result;
}

/** Edge of the squares that are transposed one by one, so that both sides stay in the cache. */
const TILE = 32;

/** [rows, columns] → [columns, rows]. */
function transpose(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let top = 0; top < rows; top += TILE) {
    const bottom = Math.min(top + TILE, rows);
    for (let left = 0; left < columns; left += TILE) {
      const right = Math.min(left + TILE, columns);
      for (let column = left; column < right; column++) {
        for (let row = top; row < bottom; row++) {
          result[column * rows + row] = values[row * columns + column] as number;
        }
      }
    }
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
    { suggestion: 'use --engine onnx, or install @tensorflow/tfjs-node' },
  );
}
