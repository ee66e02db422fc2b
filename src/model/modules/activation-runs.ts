/** Run of activations and their gradients at given points. */
import {
  ACTIVATIONS,
  type ActivationName,
  activation,
  activationGradient,
} from './activation-modules.js';
import {
  type BlockRun,
  type BlockSizes,
  CLOSE,
  done,
  Inputs,
  mapped,
  onesLike,
  pythonFloat,
  same,
} from './block-run.js';
import { cast, toFloat32 } from './tensor.js';

export function runActivations(sizes: BlockSizes): BlockRun {
  const inputs = new Inputs(sizes);
  const x = inputs.given(
    'x',
    sizes.points,
    `torch.tensor([${sizes.points.map(pythonFloat).join(', ')}])`,
  );
  const names = Object.keys(ACTIVATIONS) as ActivationName[];
  for (const name of names) {
    inputs.output(name, activation(name, x));
    inputs.output(`${name}_grad`, activationGradient(name, x));
  }
  const wide = cast(x, 'f32');
  const smooth = names.filter((name) => name !== 'relu');
  return done(inputs, [
    ...smooth.map((name) => ({
      check: `${name}: gradient = difference quotient`,
      difference: quotientError(name, toFloat32(wide)),
      limit: 1e-6,
    })),
    ...smooth.map((name) => {
      const slopes = activationGradient(name, wide);
      const mirrored = toFloat32(
        activationGradient(
          name,
          mapped(wide, (value) => -value),
        ),
      );
      const sums = mapped(slopes, (slope, at) => slope + (mirrored[at] ?? 0));
      return same(`${name}: gradients at x and −x sum to one`, sums, onesLike(sums), CLOSE.f32);
    }),
  ]);
}

/** Largest distance between the derivative and (f(x + h) − f(x − h)) / 2h in float64, relative above one. */
function quotientError(name: ActivationName, points: Float32Array): number {
  const { value, derivative } = ACTIVATIONS[name];
  let most = 0;
  for (const x of points) {
    const step = 1e-5 * Math.max(1, Math.abs(x));
    const slope = (value(x + step) - value(x - step)) / (2 * step);
    most = Math.max(most, Math.abs(slope - derivative(x)));
  }
  return most;
}
