/** Operations on values read back from the library, in float64, with their gradients. */
import type { Tensor, Tf } from '../packages.js';
import { readValues } from '../run.js';

/** An operation on values: its value, and the gradients of its inputs from that of its value. */
interface HostOperation {
  readonly shape: readonly number[];
  readonly value: (inputs: readonly Float32Array[]) => ArrayLike<number>;
  readonly gradients: (
    inputs: readonly Float32Array[],
    dy: Float32Array,
  ) => readonly ArrayLike<number>[];
}

/** An operation that computes on values read back, with its gradients. */
export function hostOperation<T extends Tensor>(
  tf: Tf,
  inputs: readonly Tensor[],
  operation: HostOperation,
): T {
  const tensorOf = (values: ArrayLike<number>, shape: readonly number[]) =>
    tf.tensor(Float32Array.from(values), [...shape], 'float32');
  const custom = tf.customGrad((...given) => {
    const save = given.at(-1) as (tensors: Tensor[]) => void;
    const own = given.slice(0, -1) as Tensor[];
    save(own);
    return {
      value: tensorOf(operation.value(own.map(readValues)), operation.shape),
      gradFunc: (dy: Tensor, saved: Tensor[]) =>
        operation
          .gradients(saved.map(readValues), readValues(dy))
          .map((values, index) => tensorOf(values, saved[index]?.shape ?? [])),
    };
  });
  return custom(...inputs) as T;
}

/** Mean of −log softmax(logits)[target] over the rows; logits [rows, V]. → scalar */
export function crossEntropy(tf: Tf, logits: Tensor, targets: Int32Array): Tensor {
  const rows = targets.length;
  const vocabulary = logits.size / rows;
  /** Largest logit and the sum of exponentials below it, of a row. */
  const rowSums = (values: Float32Array, from: number) => {
    let most = Number.NEGATIVE_INFINITY;
    for (let at = from; at < from + vocabulary; at++) {
      const value = values[at] as number;
      // Not Math.max: a NaN has to reach the loss, which a comparison would skip.
      if (!(value <= most)) most = value;
    }
    let sum = 0;
    for (let at = from; at < from + vocabulary; at++)
      sum += Math.exp((values[at] as number) - most);
    return { most, sum };
  };
  return hostOperation(tf, [logits], {
    shape: [],
    value: ([values = new Float32Array()]) => {
      let total = 0;
      for (const [row, target] of targets.entries()) {
        const { most, sum } = rowSums(values, row * vocabulary);
        total += most + Math.log(sum) - (values[row * vocabulary + target] as number);
      }
      return [total / rows];
    },
    gradients: ([values = new Float32Array()], [dy = 1]) => {
      const gradient = new Float32Array(values.length);
      for (const [row, target] of targets.entries()) {
        const from = row * vocabulary;
        const { most, sum } = rowSums(values, from);
        for (let at = from; at < from + vocabulary; at++) {
          const share = Math.exp((values[at] as number) - most) / sum;
          gradient[at] = ((share - (at === from + target ? 1 : 0)) * dy) / rows;
        }
      }
      return [gradient];
    },
  });
}
