import type { AdamWSettings } from '../../trainer.js';
import type { Tensor, Tf } from '../packages.js';

/** A trained tensor, and the running means of its gradient and of the gradient's square. */
interface Learned {
  value: Tensor;
  mean: Tensor;
  square: Tensor;
  /** Number of updates: PyTorch counts them for each tensor. */
  steps: number;
}

/**
 * Decoupled weight decay: Loshchilov and Hutter, arXiv 1711.05101, in the order of operations of torch.optim.AdamW.
 * Holds its tensors until it is disposed.
 */
export class AdamW {
  readonly #tf: Tf;
  readonly #settings: AdamWSettings;
  readonly #learned: readonly Learned[];

  /** @param values Kept, and disposed with all others. */
  constructor(tf: Tf, values: readonly Tensor[], settings: AdamWSettings) {
    this.#tf = tf;
    this.#settings = settings;
    const zeros = (like: Tensor) => tf.keep(tf.zerosLike(like));
    this.#learned = values.map((value) => ({
      value: tf.keep(value),
      mean: zeros(value),
      square: zeros(value),
      steps: 0,
    }));
  }

  get values(): Tensor[] {
    return this.#learned.map(({ value }) => value);
  }

  /**
   * @param gradients Gradients of the values, in their order; disposed after use to free memory. A value without one
   * stays as it is.
   */
  step(
    gradients: readonly (Tensor | undefined)[],
    learningRate = this.#settings.learningRate,
  ): void {
    for (const [index, learned] of this.#learned.entries()) {
      const gradient = gradients[index];
      if (!gradient) continue;
      this.#update(learned, gradient, learningRate);
      gradient.dispose();
    }
  }

  #update(learned: Learned, gradient: Tensor, learningRate: number): void {
    const tf = this.#tf;
    const { betas, epsilon, weightDecay } = this.#settings;
    const [beta1, beta2] = betas;
    learned.steps++;
    const replace = (key: 'value' | 'mean' | 'square', compute: () => Tensor) => {
      const next = tf.keep(tf.tidy(compute));
      learned[key].dispose();
      learned[key] = next;
    };
    replace('mean', () => tf.add(tf.mul(learned.mean, beta1), tf.mul(gradient, 1 - beta1)));
    replace('square', () =>
      tf.add(tf.mul(learned.square, beta2), tf.mul(tf.square(gradient), 1 - beta2)),
    );
    const rate = learningRate / (1 - beta1 ** learned.steps);
    const root = Math.sqrt(1 - beta2 ** learned.steps);
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
