import { describe, expect, it } from 'vitest';
import { undividedLossOf } from '../../../src/estimate/training/undivided-loss.js';

describe('losses that are added instead of divided', () => {
  // PyTorch 2.13, three steps of eight micro-steps on the same inputs: SGD with a rate of 1e-3 on undivided losses ends
  // at [0.935658, -1.907303, 0.505375], as with 8e-3 on divided ones. AdamW ends at [0.996951, -1.996445, 0.498175]
  // with both.
  it('make SGD step as with N times the learning rate, and AdamW as before', () => {
    expect(undividedLossOf({ accumulation: 8 }, 1e-3, undefined)).toEqual({
      gradientFactor: 8,
      sgdLearningRate: 8e-3,
      adamFactor: 1,
      clippedAbove: null,
    });
  });

  it('are clipped N times sooner', () => {
    expect(undividedLossOf({ accumulation: 4 }, 1e-3, 1)?.clippedAbove).toBe(0.25);
    expect(undividedLossOf({ accumulation: 4 }, 1e-3, 0)?.clippedAbove).toBeNull();
  });

  it('are the same without accumulation', () =>
    expect(undividedLossOf({ accumulation: 1 }, 1e-3, 1)).toBeNull());
});
