import { describe, expect, it } from 'vitest';
import { contextFor } from '../../../src/language/generation/session.js';

describe('the tokens of a sequence', () => {
  it('are those of prompt and answer, up to the positions of the model', () => {
    expect(contextFor({ positions: 2048 }, 5, 10, undefined)).toBe(15);
    expect(contextFor({ positions: 2048 }, 2047, 10, undefined)).toBe(2048);
    expect(contextFor({ positions: 2048 }, 5, 10, 8)).toBe(8);
  });

  it('must leave room for an answer', () => {
    expect(() => contextFor({ positions: 2048 }, 2050, 1, undefined)).toThrow(
      'expected a prompt below 2,048 tokens (the positions of the model), found 2,050',
    );
    expect(() => contextFor({ positions: 2048 }, 1, 1, 1)).toThrow(
      'expected a prompt below 1 token (--context), found 1',
    );
  });

  it('cannot exceed the positions of the model', () => {
    expect(() => contextFor({ positions: 2048 }, 1, 1, 40_000)).toThrow(
      'expected at most 2,048 tokens, the positions of the model, found 40,000',
    );
  });
});
