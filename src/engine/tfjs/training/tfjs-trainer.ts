/** Chains of layers trained on a backend of TensorFlow.js. */

import os from 'node:os';
import { usageError } from '../../../base/errors.js';
import type { Values } from '../../engine.js';
import type {
  AdamWSettings,
  ChainLayer,
  Task,
  Trainer,
  TrainingRun,
  TrainingSize,
} from '../../trainer.js';
import type { BackendName } from '../backends.js';
import { openBackend } from '../backends.js';
import {
  differentiableLinear,
  layerNormOfData,
  masked,
  meanSquaredError,
  TRAINED_ACTIVATIONS,
} from '../differentiable.js';
import type { Backend, Tensor, Tensor1D, Tensor2D, Tf } from '../packages.js';
import { onBackend, scoped } from '../packages.js';
import { readValues } from '../run.js';
import { infoOf } from '../tfjs-engine.js';
import { AdamW, TfjsModelTraining } from './model-training.js';

/** Loads the library, so import this lazily. @throws UserError when the backend cannot be used here. */
export async function openTrainer(threads: number, name: BackendName): Promise<Trainer> {
  const backend = await openBackend(name, threads);
  const { tf } = backend;
  return {
    info: infoOf(backend),
    product: (x, weight) =>
      onBackend(backend, () =>
        scoped(tf, () => {
          const columns = tf.transpose(valuesTensor(tf, x));
          const product = tf.transpose(tf.matMul(valuesTensor(tf, weight) as Tensor2D, columns));
          return { shape: product.shape, data: readValues(product) };
        }),
      ),
    refuseTooMany: (size) => refuseTooMany(backend, size),
    train: (chain, task, optimizer) =>
      onBackend(backend, () => new TfjsTraining(backend, chain, task, optimizer)),
    trainModel: (request) => onBackend(backend, () => new TfjsModelTraining(backend, request)),
  };
}

const valuesTensor = (tf: Tf, { data, shape }: Values): Tensor => tf.tensor(data, [...shape]);

/** Weight and bias of a layer that has them. */
const startOf = (layer: ChainLayer): Values[] =>
  'weight' in layer ? [layer.weight, layer.bias] : [];

/**
 * Copies of the parameters: a chain's own, their moving averages, squares and gradients; and the operands of a product
 * again, transposed and packed.
 */
const COPIES = 6;

/**
 * Values per column of a row at the peak of a step: data, activations, mask and gradients. Measured in the heap of
 * wasm.
 */
const COLUMN_COPIES = { input: 10, hidden: 16, output: 8 } as const;

function refuseTooMany({ heap }: Backend, size: TrainingSize): void {
  const { parameters, rows, input, hidden, output } = size;
  const row =
    input * COLUMN_COPIES.input + hidden * COLUMN_COPIES.hidden + output * COLUMN_COPIES.output;
  const bytes = (parameters * COPIES + rows * row) * Float32Array.BYTES_PER_ELEMENT;
  const limit = heap?.limitBytes ?? os.totalmem();
  if (bytes < limit) return;
  const [needed, room] = [Math.ceil(bytes / 2 ** 30), Math.floor(limit / 2 ** 30)];
  const owner = heap ? "TensorFlow.js's wasm backend" : 'this machine';
  throw usageError(
    `training ${parameters} parameters on ${rows} rows takes about ${needed} GiB; ${owner} has at most ${room} GiB`,
    'choose smaller widths, or fewer rows: sequences times the tokens of each',
  );
}

class TfjsTraining implements TrainingRun {
  readonly #backend: Backend;
  readonly #chain: readonly ChainLayer[];
  readonly #x: Tensor2D;
  readonly #y: Tensor2D;
  readonly #optimizer: AdamW;

  constructor(
    backend: Backend,
    chain: readonly ChainLayer[],
    { x, y }: Task,
    settings: AdamWSettings,
  ) {
    const { tf } = backend;
    this.#backend = backend;
    this.#chain = chain;
    this.#x = tf.keep(valuesTensor(tf, x) as Tensor2D);
    this.#y = tf.keep(valuesTensor(tf, y) as Tensor2D);
    const values = chain.flatMap(startOf).map((each) => valuesTensor(tf, each));
    this.#optimizer = new AdamW(tf, values, settings);
  }

  step(): Promise<number> {
    const { tf } = this.#backend;
    return onBackend(this.#backend, () =>
      scoped(tf, () => {
        const lossOf = (...parameters: Tensor[]) => this.#loss(parameters) as never;
        const { value, grads } = tf.valueAndGrads(lossOf)(this.#optimizer.values);
        this.#optimizer.step(grads);
        return readValues(value)[0] ?? Number.NaN;
      }),
    );
  }

  #loss(parameters: readonly Tensor[]): Tensor {
    const { tf } = this.#backend;
    const rest = [...parameters];
    let rows = this.#x;
    for (const layer of this.#chain) rows = applyLayer(tf, layer, rows, rest, rows === this.#x);
    return meanSquaredError(tf, rows, this.#y);
  }

  parameters(): Promise<Values[]> {
    return onBackend(this.#backend, () =>
      this.#optimizer.values.map((each) => ({ shape: each.shape, data: readValues(each).slice() })),
    );
  }

  async release(): Promise<void> {
    this.#optimizer.dispose();
    this.#x.dispose();
    this.#y.dispose();
  }
}

/** @param parameters Parameters of this layer and the later ones; it removes its own. */
function applyLayer(
  tf: Tf,
  layer: ChainLayer,
  rows: Tensor2D,
  parameters: Tensor[],
  ofData: boolean,
): Tensor2D {
  switch (layer.kind) {
    case 'layerNorm': {
      if (!ofData) throw new TypeError('a norm is first in a chain');
      const [weight, bias] = parameters.splice(0, 2) as [Tensor1D, Tensor1D];
      return layerNormOfData(tf, rows, { weight, bias, epsilon: layer.epsilon });
    }
    case 'linear': {
      const [weight, bias] = parameters.splice(0, 2) as [Tensor2D, Tensor1D];
      return differentiableLinear(tf, rows, { weight, bias, ofData });
    }
    case 'silu':
    case 'relu':
    case 'gelu':
      return TRAINED_ACTIVATIONS[layer.kind](tf, rows);
    case 'dropout':
      return masked(tf, rows, tf.tensor2d(layer.maskOf(rows.size), rows.shape));
  }
}
