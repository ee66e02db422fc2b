import { describe, expect, it } from 'vitest';
import { planSafetensors } from '../../../src/checkpoint/safetensors/write-safetensors.js';
import { fileIn, opened } from '../temp-folder.js';

describe('a small file of more tensors than a small file can have', () => {
  it('is padded in its header, so that it can be read', () => {
    const tensors = Array.from({ length: 100_001 }, (_, at) => ({
      name: at.toString(36),
      dtype: 'U8' as const,
      shape: [0],
    }));
    const { header, fileBytes } = planSafetensors(tensors);
    expect(fileBytes).toBeGreaterThanOrEqual(16e6);
    expect(opened(fileIn('many.safetensors', header)).tensors.size).toBe(tensors.length);
    expect(planSafetensors(tensors.slice(1)).fileBytes).toBeLessThan(8e6);
  });
});
