import { describe, expect, it } from 'vitest';
import { COMMON_HARDWARE } from '../../../src/estimate/fit/common-hardware.js';
import { peakIfKnown } from '../../../src/estimate/hardware/gpu.js';

describe('common hardware', () => {
  it('has a peak for each type of products: it is proposed for a speed', () => {
    for (const { name, gpu } of COMMON_HARDWARE) {
      for (const dtype of ['bf16', 'f16', 'f8', 'int8'] as const) {
        expect(peakIfKnown(gpu, dtype), `${name} in ${dtype}`).not.toBeNull();
      }
    }
  });
});
