import { describe, expect, it } from 'vitest';
import type { ReportedAnswer } from '../../src/language/generation/session.js';
import { figuresText } from '../../src/report/generate-report.js';

const answerAt = (tokensPerSecond: number | null): ReportedAnswer => ({
  prompt: { text: null, ids: [1] },
  text: null,
  ids: [2, 3],
  ended: 'stopped',
  figures: {
    promptTokens: 1,
    prefillMilliseconds: 12,
    tokens: 2,
    tokensPerSecond,
    perplexity: 4.2,
    leastSure: { position: 1, id: 3, probability: 0.25 },
  },
  tokens: [],
  draft: null,
  against: null,
});

describe('the figures of an answer', () => {
  it.each([
    [1065.4, '2 tokens at 1,065 tokens/s, stopped by Ctrl-C · '],
    [106.54, '2 tokens at 107 tokens/s, '],
    [10.654, '2 tokens at 10.7 tokens/s, '],
    [null, '2 tokens, stopped by Ctrl-C · '],
  ])('show a speed of %s', (rate, text) => {
    expect(figuresText(answerAt(rate))).toContain(text);
  });
});
