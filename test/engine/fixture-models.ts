/** The models of fixtures/hybrid, ready to run, with the results of the original implementation. */

import { decodeValues } from '../../src/base/tensor/decode-values.js';
import type { Checkpoint } from '../../src/checkpoint/checkpoint.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { readTensor } from '../../src/checkpoint/view.js';
import type { TokenIds, Values } from '../../src/engine/engine.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { checkpointWeights } from '../../src/engine/weights/weights.js';
import type { LanguageModel } from '../../src/model/architecture/layer.js';
import { hybrid } from '../../src/model/architecture/models/hybrid.js';
import { type HybridCase, inPackage, readJson } from '../fixtures.js';

export interface FixtureModel {
  readonly model: LanguageModel;
  readonly checkpoint: Checkpoint;
  readonly weights: WeightSource;
  readonly ids: TokenIds;
  /** Expected values by name: `logits`, `hidden.0`, … */
  readonly expected: ReadonlyMap<string, Values>;
  /** The expected values have only each n-th position. */
  readonly every: number;
}

export const modelOfConfig = (config: Readonly<Record<string, unknown>>): LanguageModel =>
  hybrid.build(hybrid.schema.parse({ model: config }));

/** Fixtures for tests of engines and checks. Long ones are only for the engines. */
export const SHORT_FIXTURES: readonly string[] = [
  'eps-global-gate-clipped',
  'no-alignment-pyramidal',
  'per-layer-learnable',
  'per-layer-sincos',
  'pyramidal-windowed',
  'shared-learnable',
  'shared-lowrank-tied',
  'shared-sincos',
  'window-not-below-length',
];

/** The checkpoint stays open until the process ends. */
export function fixtureModel(name: string): FixtureModel {
  const folder = ['fixtures/hybrid', name] as const;
  const { config, input_ids, activations_every } = readJson<
    HybridCase & { readonly input_ids: number[][]; readonly activations_every: number }
  >(...folder, 'case.json');
  const model = modelOfConfig(config);
  const checkpoint = openCheckpoint(inPackage(...folder, 'model.safetensors'));
  const expected = openCheckpoint(inPackage(...folder, 'expected.safetensors'));
  return {
    model,
    checkpoint,
    weights: checkpointWeights(model, checkpoint),
    ids: idsOf(input_ids),
    expected: new Map([...expected.tensors].map(([key, tensor]) => [key, valuesOf(tensor)])),
    every: activations_every,
  };
}

export const idsOf = (rows: readonly (readonly number[])[]): TokenIds => ({
  batch: rows.length,
  tokens: rows[0]?.length ?? 0,
  data: Int32Array.from(rows.flat()),
});

export function valuesOf(tensor: StoredTensor): Values {
  const numbers = new Float64Array(tensor.elements);
  decodeValues(tensor.dtype, readTensor(tensor), numbers);
  return { shape: tensor.shape, data: Float32Array.from(numbers) };
}

/** Largest difference of a value [B, T, …] from an expected one, which has only each n-th position. */
export function differenceAt(value: Values, expected: Values, every: number): number {
  const [, tokens = 0] = value.shape;
  const [batch = 0, kept = 0] = expected.shape;
  const size = expected.data.length / (batch * kept);
  let largest = 0;
  for (const [at, target] of expected.data.entries()) {
    const row = Math.floor(at / size);
    const position = Math.floor(row / kept) * tokens + (row % kept) * every;
    const actual = value.data[position * size + (at % size)] ?? Number.NaN;
    // NaN stays NaN and exceeds every limit.
    largest = Math.max(largest, Math.abs(actual - target));
  }
  return largest;
}
