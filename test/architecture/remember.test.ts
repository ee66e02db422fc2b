import { expect, it, vi } from 'vitest';
import type { LanguageModel } from '../../src/architecture/layer.js';
import { hybrid } from '../../src/architecture/models/hybrid.js';
import { ownedTensors, remembered, walk } from '../../src/architecture/walk.js';

it('computes once for each object', () => {
  const of = vi.fn(() => 1);
  const known = remembered(of);
  const key = {};
  expect([known(key), known(key), known({})]).toEqual([1, 1, 1]);
  expect(of).toHaveBeenCalledTimes(2);
});

it('walks a model once, however often it is asked for', () => {
  const model: LanguageModel = hybrid.build(hybrid.schema.parse(hybrid.presets.tiny?.document));
  expect(walk(model)).toBe(walk(model));
  expect(ownedTensors(model)).toBe(ownedTensors(model));
  // Another description, also of the same blocks, is walked for itself.
  expect(walk({ ...model, blocks: [] }).length).toBeLessThan(walk(model).length);
});
