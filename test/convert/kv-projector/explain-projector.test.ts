import { describe, expect, it } from 'vitest';
import { parsePublished } from '../../../src/config/parse-published.js';
import { compareProjectors } from '../../../src/convert/kv-projector/costs.js';
import { explainProjector } from '../../../src/convert/kv-projector/explain-projector.js';

const COMPARISON = compareProjectors(
  [{ name: 'Qwen2-14B', width: 5120, layers: 40, size: null }],
  1536,
  [1],
);

function best(text: string) {
  const published = parsePublished(text);
  if (published?.unit === 'change' || published?.unit === 'flops') throw new Error(text);
  if (published === undefined) throw new Error(`cannot read ${text}`);
  const [first] = explainProjector(COMPARISON, published).explanations;
  return (
    first && { text: first.reasons.map((reason) => reason.text).join('; '), value: first.value }
  );
}

describe('explainProjector', () => {
  it.each([
    ['68,191,232', 'elastic, ratio 1, Qwen2-14B: K and V', 68_191_232n],
    [
      '34.1M',
      'elastic, ratio 1, Qwen2-14B: one adapter, K or V alone; a teacher has 68,191,232',
      34_095_616n,
    ],
    [
      '7,865,856',
      'linear, Qwen2-14B: one adapter, K or V alone; a teacher has 15,728,640; with a bias',
      7_865_856n,
    ],
    ['136MB', 'elastic, ratio 1, Qwen2-14B: K and V; in bf16', 136_382_464n],
  ])('explains %s', (text, reason, value) => expect(best(text)).toEqual({ text: reason, value }));

  it.each([
    // 68.19M of K and V ÷ 7.87M of one adapter; 34,095,616 ÷ 7,864,320 for each of both.
    [
      '8.7x',
      'Qwen2-14B: elastic, ratio 1, K and V ÷ linear, one adapter; this compares two adapters with one: like for like 4.34 ×',
    ],
    ['4.3x', 'Qwen2-14B: elastic, ratio 1, one adapter ÷ linear, one adapter'],
    ['约 8.7 倍', /K and V ÷ linear, one adapter/],
  ])('explains %s', (text, reason) =>
    expect(best(text)?.text).toEqual(
      typeof reason === 'string' ? reason : expect.stringMatching(reason),
    ),
  );

  it('finds the widths of a published number of another teacher', () => {
    const other = compareProjectors(
      [{ name: 'Llama-3-70B', width: 8192, layers: 80, size: null }],
      2048,
      [2],
    );
    const [first] = explainProjector(other, {
      value: 68_000_000n,
      tolerance: 500_000n,
    }).explanations;
    expect(first?.value).toBe(68_179_456n);
    expect(first?.reasons[0]?.text).toMatch(/one adapter of 5,120 → 1,536, .* 335,613,952/);
  });

  it('finds no explanation for another number', () => expect(best('123,456')).toBeUndefined());
});
