import { createRequire } from 'node:module';
import type * as core from '@tensorflow/tfjs-core';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import type { Layer } from '../../../src/model/architecture/layer.js';

/** The TensorFlow.js of the portable backends, whole. */
export const tf = createRequire(import.meta.url)('@tensorflow/tfjs-core') as typeof core;

export const weightsOf = (layer: Layer): WeightSource => randomWeights(layer, 7);

/** Largest difference; NaN for a NaN or different lengths. */
export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.NaN;
  return Array.from(a, (value, at) => Math.abs(value - (b[at] ?? Number.NaN))).reduce(
    (largest, difference) => Math.max(largest, difference),
    0,
  );
}
