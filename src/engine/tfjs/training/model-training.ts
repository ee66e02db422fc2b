/** A whole model trained on a backend of TensorFlow.js, with the interpreter that also runs it. */
import type { LanguageModel, Layer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { walk } from '../../../model/architecture/walk.js';
import type {
  AdamWSettings,
  ModelTraining,
  NonFinite,
  TrainedModel,
  TrainingStep,
} from '../../trainer.js';
import { startRun } from '../interpret.js';
import type { Backend, Tensor, Tensor2D, Tf } from '../packages.js';
import { onBackend, scoped } from '../packages.js';
import { readValues } from '../run.js';
import type { WeightForms, WeightPlan } from '../weight-plan.js';
import { planWeights } from '../weight-plan.js';
import { registerGradients } from './gradients.js';
import { crossEntropy } from './host-operations.js';

/** Forms of trained tensors, each made once per forward pass as a function of the tensor itself. */
class TrainedForms implements WeightForms {
  readonly #tf: Tf;
  readonly #plan: WeightPlan;
  readonly #values: ReadonlyMap<Param, Tensor>;
  readonly #made = new Map<string, readonly Tensor[]>();

  constructor(tf: Tf, plan: WeightPlan, values: ReadonlyMap<Param, Tensor>) {
    this.#tf = tf;
    this.#plan = plan;
    this.#values = values;
  }

  tensor(tensor: Param): Tensor {
    const value = this.#values.get(tensor);
    if (!value) throw new Error(`${tensor.name} is not planned`);
    return value;
  }

  factor(tensor: Param): Tensor2D {
    return this.tensor(tensor) as Tensor2D;
  }

  transposed(tensor: Param): Tensor2D {
    return this.#once(`transposed ${tensor.name}`, () => [
      this.#transpose(this.tensor(tensor)),
    ])[0] as Tensor2D;
  }

  expert(tensor: Param, expert: number): Tensor2D {
    const experts = this.#once(`experts ${tensor.name}`, () => {
      const parts = this.#tf.unstack(this.tensor(tensor));
      return this.#plan.get(tensor)?.has('factors')
        ? parts
        : parts.map((each) => this.#transpose(each));
    });
    const factor = experts[expert];
    if (!factor) throw new RangeError(`${tensor.name} has no expert ${expert}`);
    return factor as Tensor2D;
  }

  rates(tensor: Param): Float32Array {
    throw new TypeError(`the rates ${tensor.name} have no gradient`);
  }

  /** Moves the first axis last, and flattens the others into one. */
  #transpose(value: Tensor): Tensor2D {
    const [rows = 1] = value.shape;
    return this.#tf.transpose(this.#tf.reshape(value, [rows, -1]));
  }

  #once(key: string, make: () => readonly Tensor[]): readonly Tensor[] {
    const made = this.#made.get(key) ?? make().map((each) => this.#tf.keep(each));
    this.#made.set(key, made);
    return made;
  }

  dispose(): void {
    for (const each of this.#made.values()) for (const tensor of each) tensor.dispose();
  }
}

/** Trained tensors: parameters that the model reads, tied ones once. Buffers and the choice of experts have no gradient. */
function split(model: LanguageModel): { plan: WeightPlan; trained: Param[]; fixed: Param[] } {
  const plan = planWeights(model);
  const corrections = new Set(
    walk(model).flatMap(({ layer }) => (layer.kind === 'router' ? [layer.correction] : [])),
  );
  const isTrained = (each: Param) => each.role === 'parameter' && !corrections.has(each);
  const all = [...plan.keys()];
  return {
    plan,
    trained: all.filter(isTrained),
    fixed: all.filter((each) => !isTrained(each)),
  };
}

export class TfjsModelTraining implements ModelTraining {
  readonly #backend: Backend;
  readonly #request: TrainedModel;
  readonly #plan: WeightPlan;
  readonly #fixed: ReadonlyMap<Param, Tensor>;
  readonly #optimizer: AdamW;
  readonly trained: readonly Param[];

  /** Reads the weights. */
  constructor(backend: Backend, request: TrainedModel) {
    const { tf } = backend;
    registerGradients(tf);
    this.#backend = backend;
    this.#request = request;
    const { plan, trained, fixed } = split(request.model);
    this.#plan = plan;
    this.trained = trained;
    const read = (tensor: Param) => {
      const values = new Float32Array(tensor.elements);
      request.weights.read(tensor, 0, values);
      return tf.tensor(values, [...tensor.shape], 'float32');
    };
    this.#fixed = new Map(fixed.map((each) => [each, tf.keep(read(each))]));
    this.#optimizer = new AdamW(tf, trained.map(read), request.optimizer);
  }

  step(learningRate = this.#request.optimizer.learningRate): Promise<TrainingStep> {
    return this.#run(() => {
      const { tf } = this.#backend;
      const values = this.#optimizer.values;
      const engine = tf.engine();
      const { value, grads } = engine.gradients(
        () => this.#loss() as never,
        values as never,
        undefined as never,
        true,
      );
      const gradients = (grads as (Tensor | null)[]).map((each) => each ?? undefined);
      const loss = readValues(value)[0] ?? Number.NaN;
      const squares = gradients.map((each) => (each ? squareSum(readValues(each)) : 0));
      const gradientNorm = Math.sqrt(squares.reduce((sum, each) => sum + each, 0));
      const unread = this.#withoutGradient(gradients, squares);
      const wrong = this.#firstNonFinite(loss, squares);
      const { maxGradientNorm } = this.#request;
      // As in torch.nn.utils.clip_grad_norm_.
      const factor =
        maxGradientNorm === undefined ? 1 : Math.min(1, maxGradientNorm / (gradientNorm + 1e-6));
      const scaled = gradients.map((each) => (factor === 1 ? each : each && tf.mul(each, factor)));
      this.#optimizer.step(scaled, learningRate);
      return {
        loss,
        gradientNorm,
        clipped: factor < 1,
        withoutGradient: unread,
        nonFinite: wrong ?? this.#nonFiniteParameter(),
      };
    });
  }

  loss(): Promise<number> {
    return this.#run(() => readValues(this.#loss())[0] ?? Number.NaN);
  }

  gradients(): Promise<ReadonlyMap<Param, Float32Array>> {
    return this.#run(() => {
      const { grads } = this.#backend.tf
        .engine()
        .gradients(
          () => this.#loss() as never,
          this.#optimizer.values as never,
          undefined as never,
          true,
        );
      return new Map(
        (grads as (Tensor | null)[]).flatMap((each, index) =>
          each ? [[this.trained[index] as Param, readValues(each).slice()] as const] : [],
        ),
      );
    });
  }

  parameters(): Promise<ReadonlyMap<Param, Float32Array>> {
    return this.#run(
      () =>
        new Map(
          this.#optimizer.values.map((each, index) => [
            this.trained[index] as Param,
            readValues(each).slice(),
          ]),
        ),
    );
  }

  async release(): Promise<void> {
    this.#optimizer.dispose();
    for (const tensor of this.#fixed.values()) tensor.dispose();
  }

  #run<T>(work: () => T): Promise<T> {
    return onBackend(this.#backend, () => scoped(this.#backend.tf, work));
  }

  /** Loss of the next token, after all but the last of each sequence. */
  #loss(note?: (layer: Layer, value: Tensor) => void): Tensor {
    const { tf } = this.#backend;
    const { model, ids } = this.#request;
    const { batch, tokens } = ids;
    const idsFrom = (from: number) =>
      Int32Array.from({ length: batch * (tokens - 1) }, (_, at) => {
        const row = Math.floor(at / (tokens - 1)) * tokens;
        return ids.data[row + from + (at % (tokens - 1))] ?? 0;
      });
    const values = new Map(this.#fixed);
    for (const [index, value] of this.#optimizer.values.entries()) {
      values.set(this.trained[index] as Param, value);
    }
    const weights = new TrainedForms(tf, this.#plan, values);
    const { run, release } = startRun(
      {
        tf,
        weights,
        batch,
        tokens: tokens - 1,
        start: 0,
        ids: { batch, tokens: tokens - 1, data: idsFrom(0) },
        decoding: undefined,
        learns: true,
      },
      note,
    );
    try {
      return crossEntropy(tf, run.apply(model), idsFrom(1));
    } finally {
      release();
      weights.dispose();
    }
  }

  /** Tensors, or the experts of a packed one, whose gradient is zero or does not exist. */
  #withoutGradient(
    gradients: readonly (Tensor | undefined)[],
    squares: readonly number[],
  ): readonly string[] {
    return this.trained.flatMap((tensor, index) => {
      if (squares[index] === 0) return [tensor.name];
      const gradient = gradients[index];
      const copies = this.#plan.get(tensor);
      if (!gradient || !(copies?.has('experts') || copies?.has('factors'))) return [];
      const [experts = 1] = tensor.shape;
      const size = tensor.elements / experts;
      const values = readValues(gradient);
      return Array.from({ length: experts }, (_, expert) => expert)
        .filter((expert) => squareSum(values.subarray(expert * size, (expert + 1) * size)) === 0)
        .map((expert) => `${tensor.name}[${expert}]`);
    });
  }

  /** The first layer whose output is not finite; else the gradient that a backward pass meets first. */
  #firstNonFinite(loss: number, squares: readonly number[]): NonFinite | null {
    const gradient = squares.findLastIndex((each) => !Number.isFinite(each));
    if (Number.isFinite(loss) && gradient < 0) return null;
    let output: string | undefined;
    this.#loss((layer, value) => {
      output ??= Number.isFinite(squareSum(readValues(value))) ? undefined : layer.name;
    });
    if (output !== undefined) return { what: 'output', name: output };
    if (!Number.isFinite(loss)) return { what: 'output', name: 'loss' };
    return { what: 'gradient', name: this.trained[gradient]?.name ?? '' };
  }

  #nonFiniteParameter(): NonFinite | null {
    const { tf } = this.#backend;
    const index = this.#optimizer.values.findIndex((each) => {
      const [sum = Number.NaN] = readValues(tf.sum(each));
      // A sum of large values can overflow.
      return !Number.isFinite(sum) && !readValues(each).every(Number.isFinite);
    });
    const found = this.trained[index];
    return found ? { what: 'parameter', name: found.name } : null;
  }
}

/** Sum of squares in float64, so that the square of no float32 overflows or vanishes. */
function squareSum(values: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as number;
    sum += value * value;
  }
  return sum;
}

/** A trained tensor, and the moving averages of its gradient and of the gradient's square. */
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
   * Updates the values.
   * @param gradients Gradients of the values, in their order; disposed after use to free memory. A value without a
   * gradient stays as it is.
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
