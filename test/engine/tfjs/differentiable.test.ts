import { expect, it } from 'vitest';
import { openBackend } from '../../../src/engine/tfjs/backends.js';
import {
  differentiableLinear,
  layerNormOfData,
  masked,
  meanSquaredError,
  TRAINED_ACTIVATIONS,
} from '../../../src/engine/tfjs/differentiable.js';
import {
  onBackend,
  type Tensor,
  type Tensor1D,
  type Tensor2D,
  type Tf,
} from '../../../src/engine/tfjs/packages.js';
import { tf as library } from './support.js';

const [ROWS, WIDTH, HIDDEN, OUT] = [5, 7, 6, 3];

const SHAPES = {
  scale: [WIDTH],
  shift: [WIDTH],
  first: [HIDDEN, WIDTH],
  firstBias: [HIDDEN],
  second: [OUT, HIDDEN],
  secondBias: [OUT],
} as const;

/** Arbitrary values, the same each time. */
const wave = (tf: Tf, shape: readonly number[], phase: number): Tensor => {
  const count = shape.reduce((product, each) => product * each, 1);
  const values = Float32Array.from({ length: count }, (_, at) => Math.sin(phase * (at + 1)));
  return tf.tensor(values, [...shape]);
};

function lossOf(tf: Tf, parameters: readonly Tensor[]): Tensor {
  const [scale, shift, first, firstBias, second, secondBias] = parameters as [
    Tensor1D,
    Tensor1D,
    Tensor2D,
    Tensor1D,
    Tensor2D,
    Tensor1D,
  ];
  const x = tf.add(tf.mul(wave(tf, [ROWS, WIDTH], 1.7), 3), 1.5) as Tensor2D;
  const mask = tf.add(wave(tf, [ROWS, HIDDEN], 2.9), 1) as Tensor2D;
  const target = wave(tf, [ROWS, OUT], 0.3) as Tensor2D;
  const normed = layerNormOfData(tf, x, { weight: scale, bias: shift, epsilon: 1e-5 });
  const wide = differentiableLinear(tf, normed, { weight: first, bias: firstBias, ofData: false });
  const y = differentiableLinear(tf, masked(tf, TRAINED_ACTIVATIONS.silu(tf, wide), mask), {
    ...{ weight: second, bias: secondBias, ofData: false },
  });
  return meanSquaredError(tf, y, target);
}

it.each(Object.keys(SHAPES))('the gradient of %s matches a finite difference', async (name) => {
  const index = Object.keys(SHAPES).indexOf(name);
  for (const backendName of ['wasm', 'cpu'] as const) {
    const backend = await openBackend(backendName, 1);
    const { tf } = backend;
    const { slope, finite } = await onBackend(backend, () => {
      const parameters = Object.values(SHAPES).map((shape, at) => wave(tf, shape, 0.7 + at));
      const direction = wave(tf, Object.values(SHAPES)[index] ?? [], 5.3);
      const at = (step: number) => {
        const moved = parameters.map((each, place) =>
          place === index ? tf.add(each, tf.mul(direction, step)) : each,
        );
        return lossOf(tf, moved).dataSync()[0] ?? Number.NaN;
      };
      const gradient = library.grads((...all: Tensor[]) => lossOf(tf, all))(parameters)[index];
      const step = 1 / 128;
      return {
        slope: tf.sum(tf.mul(gradient as Tensor, direction)).dataSync()[0] ?? Number.NaN,
        finite: (at(step) - at(-step)) / (2 * step),
      };
    });
    expect(Math.abs(finite)).toBeGreaterThan(0.005);
    expect(Math.abs(slope - finite)).toBeLessThan(0.005 * Math.abs(finite));
  }
});
