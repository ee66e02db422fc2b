import { expect, it } from 'vitest';
import { neededTensors } from '../../../src/engine/memory.js';
import { heapBytes, planWeights } from '../../../src/engine/tfjs/weight-plan.js';
import {
  linear,
  transposedLinear,
} from '../../../src/model/architecture/constructors/basic-layers.js';
import { packedExperts } from '../../../src/model/architecture/constructors/feed-forward-layers.js';
import { walk } from '../../../src/model/architecture/walk.js';
import { FAMILY_CASES, familyCase } from '../family-cases.js';
import { fixtureModel } from '../fixture-models.js';

it.each([
  'shared-lowrank-tied',
  'per-layer-sincos',
  'no-alignment-pyramidal',
  'per-layer-learnable',
])('the plan has every needed tensor once: %s', (name) => {
  const { model } = fixtureModel(name);
  expect(new Set(planWeights(model).keys())).toEqual(new Set(neededTensors(model)));
});

it.each(FAMILY_CASES)('the plan has every tensor of %s', async (place) => {
  const { model } = await familyCase(place);
  expect(new Set(planWeights(model).keys())).toEqual(new Set(neededTensors(model)));
});

it('the plan has a tied weight in the form of each use', () => {
  const { model } = fixtureModel('shared-lowrank-tied');
  expect(planWeights(model).get(model.head.weight)).toEqual(new Set(['tensor', 'transposed']));
});

it('the predicted heap includes a packed copy of each matrix of a product', () => {
  const layer = linear('layer', 3, 5);
  expect(walk(layer)).toHaveLength(1);
  expect(heapBytes(planWeights(layer))).toBe(4 * (2 * 15 + 5));
  expect(heapBytes(planWeights(transposedLinear('layer', 3, 5)))).toBe(4 * (2 * 15 + 5));
  const experts = packedExperts('experts', { experts: 2, hidden: 3, inner: 5 }, 'silu');
  expect(heapBytes(planWeights(experts))).toBe(4 * 2 * 2 * (3 * 10 + 5 * 3));
});
