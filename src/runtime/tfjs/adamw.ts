import type { AdamWSettings } from '../trainer.js';
import type { Tensor, Tf } from './library.js';

/** A tensor that is learned, and the running means of its gradient and of that one's square. */
interface Learned {
  value: Tensor;
  mean: Tensor;
  square: Tensor;
}

/**
 * Decoupled weight decay: Loshchilov and Hutter, arXiv 1711.05101, in the order of operations of torch.optim.AdamW.
 * Holds what it learns until it is disposed.
 */
export class AdamW {
  readonly #tf: Tf;
  readonly #settings: AdamWSettings;
  readonly #learned: readonly Learned[];
  #steps = 0;

  /** @param values Kept, and disposed with all others. */
  constructor(tf: Tf, values: readonly Tensor[], settings: AdamWSettings) {
    this.#tf = tf;
    this.#settings = settings;
    const zeros = (like: Tensor) => tf.keep(tf.zerosLike(like));
    this.#learned = values.map((value) => ({
      value: tf.keep(value),
      mean: zeros(value),
      square: zeros(value),
    }));
  }

  get values(): Tensor[] {
    return this.#learned.map(({ value }) => value);
  }

  /** @param gradients Of the values, in their order; disposed as they are used, for their memory. */
  step(gradients: readonly Tensor[]): void {
    this.#steps++;
    for (const [index, learned] of this.#learned.entries()) {
      const gradient = gradients[index] as Tensor;
      this.#update(learned, gradient);
      gradient.dispose();
    }
  }

  #update(learned: Learned, gradient: Tensor): void {
    const tf = this.#tf;
    const { betas, learningRate, epsilon, weightDecay } = this.#settings;
    const [beta1, beta2] = betas;
    const replace = (key: keyof Learned, compute: () => Tensor) => {
      const next = tf.keep(tf.tidy(compute));
      learned[key].dispose();
      learned[key] = next;
    };
    replace('mean', () => tf.add(tf.mul(learned.mean, beta1), tf.mul(gradient, 1 - beta1)));
    replace('square', () =>
      tf.add(tf.mul(learned.square, beta2), tf.mul(tf.square(gradient), 1 - beta2)),
    );
    const rate = learningRate / (1 - beta1 ** this.#steps);
    const root = Math.sqrt(1 - beta2 ** this.#steps);
    replace('value', () => {
      const divisor = tf.add(tf.div(tf.sqrt(learned.square), root), epsilon);
      const change = tf.mul(tf.div(learned.mean, divisor), rate);
      return tf.sub(tf.mul(learned.value, 1 - learningRate * weightDecay), change);
    });
  }

  dispose(): void {
    for (const { value, mean, square } of this.#learned) {
      for (const tensor of [value, mean, square]) tensor.dispose();
    }
  }
}
