import { expect, it } from 'vitest';
import { type BackendName, openBackend } from '../../../src/engine/tfjs/backends.js';
import { interpret } from '../../../src/engine/tfjs/interpret.js';
import { onBackend, type Tensor, type Tensor3D } from '../../../src/engine/tfjs/packages.js';
import type { ForwardRun } from '../../../src/engine/tfjs/run.js';
import { registerGradients } from '../../../src/engine/tfjs/training/gradients.js';
import { planWeights, Weights } from '../../../src/engine/tfjs/weight-plan.js';
import type { Layer } from '../../../src/model/architecture/layer.js';
import { familyCase } from '../family-cases.js';
import { tf as library } from './support.js';

const TOKENS = 5;

/** Slope of a sum of a layer's outputs in one direction, by gradient and by finite difference. */
async function slopes(place: string, backendName: BackendName) {
  const { model, weights: source } = await familyCase(place);
  const layer = model.blocks[1] as Layer;
  const width = model.hidden;
  const backend = await openBackend(backendName, 1);
  const { tf } = backend;
  registerGradients(tf);
  return onBackend(backend, () => {
    const weights = new Weights(backend, planWeights(layer), source);
    const kept = new Map<unknown, Tensor>();
    const run: ForwardRun = {
      tf,
      weights,
      batch: 1,
      tokens: TOKENS,
      start: 0,
      ids: undefined,
      decoding: undefined,
      apply: (each, ...inputs) => interpret(run, each, inputs),
      once<T extends Tensor>(key: unknown, compute: () => T): T {
        const value = kept.get(key) ?? tf.keep(compute());
        kept.set(key, value);
        return value as T;
      },
    };
    const wave = (phase: number) =>
      tf.tensor3d(
        Float32Array.from({ length: TOKENS * width }, (_, at) => Math.sin(phase * at + phase)),
        [1, TOKENS, width],
      );
    const [x, direction, share] = [wave(1.7), wave(0.9), wave(2.3)];
    const value = (input: Tensor) =>
      tf.sum(tf.mul(interpret(run, layer, [input as Tensor3D]), share));
    const slope = tf.sum(tf.mul(library.grad(value)(x), direction)).dataSync()[0];
    const at = (step: number) =>
      value(tf.add(x, tf.mul(direction, step))).dataSync()[0] ?? Number.NaN;
    const step = 1 / 256;
    const result = { slope, finite: (at(step) - at(-step)) / (2 * step) };
    weights.dispose();
    return result;
  });
}

it.each([
  ['minimind/v3-dense', 'wasm'],
  ['hf/gemma2', 'wasm'],
  ['hf/gpt2', 'wasm'],
  ['hf/gpt-neox', 'wasm'],
  ['hf/bloom', 'wasm'],
  ['hf/deepseek-v3', 'wasm'],
  ['hf/deepseek-v3', 'cpu'],
  ['hf/qwen2-moe', 'cpu'],
  ['hf/apertus-7-18', 'wasm'],
  ['hf/apertus-7-18', 'cpu'],
] as const)(
  'the gradient of a block of %s matches a finite difference (%s)',
  async (place, backend) => {
    const { slope = Number.NaN, finite } = await slopes(place, backend);
    expect(Math.abs(slope)).toBeGreaterThan(0.01);
    expect(Math.abs(slope - finite)).toBeLessThan(0.01 * Math.abs(finite));
  },
);
