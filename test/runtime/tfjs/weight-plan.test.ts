import { expect, it } from 'vitest';
import { linear } from '../../../src/architecture/constructors.js';
import { walk } from '../../../src/architecture/walk.js';
import { neededTensors } from '../../../src/quicktest/elements.js';
import { heapBytes, planWeights } from '../../../src/runtime/tfjs/weight-plan.js';
import { fixtureModel } from '../fixture-models.js';

it.each([
  'shared-lowrank-tied',
  'per-layer-sincos',
  'no-alignment-pyramidal',
  'per-layer-learnable',
])('names every tensor that is needed to run, once: %s', (name) => {
  const { model } = fixtureModel(name);
  expect(new Set(planWeights(model).keys())).toEqual(new Set(neededTensors(model)));
});

it('holds a tied weight in the form of each use', () => {
  const { model } = fixtureModel('shared-lowrank-tied');
  expect(planWeights(model).get(model.head.weight)).toEqual(new Set(['tensor', 'transposed']));
});

it('predicts a packed copy of what is multiplied with', () => {
  const layer = linear('layer', 3, 5);
  expect(walk(layer)).toHaveLength(1);
  expect(heapBytes(planWeights(layer))).toBe(4 * (2 * 15 + 5));
});
