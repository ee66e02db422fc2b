/** Types of a cache whose blocks do not divide the heads, in all commands that count a cache. */
import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const REFUSAL = '--cache-dtype q4_0 requires heads of a multiple of 32 values, found 80';

describe('a cache in blocks', () => {
  it.each([
    ['profile', 'phi-2'],
    ['compare', 'phi-2'],
    ['fit', 'phi-2', '--gpu', '4090'],
  ])('is refused for heads that they do not divide: %s', async (...words) => {
    const { code, stderr } = await runHere([...words, '--cache-dtype', 'q4_0']);
    expect(code).toBe(2);
    expect(stderr).toContain(REFUSAL);
    expect((await runHere([...words, '--cache-dtype', 'f16'])).code).toBe(0);
  });

  it('leaves one model out of a comparison, and counts the others', async () => {
    const { code, stdout, stderr } = await runHere([
      ...['compare', 'phi-2', 'qwen3-8b', '--cache-dtype', 'q4_0'],
    ]);
    expect(code).toBe(0);
    expect(stderr).toContain(`phi-2: ${REFUSAL}`);
    expect(stdout).toContain('8.19B');
  });

  it('has no heads in a latent', async () => {
    expect((await runHere(['profile', 'deepseek-v3', '--cache-dtype', 'q4_0'])).code).toBe(0);
  });
});
