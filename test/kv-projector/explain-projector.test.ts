import { describe, expect, it } from 'vitest';
import { parsePublished } from '../../src/config/parse-number.js';
import { compareProjectors } from '../../src/kv-projector/costs.js';
import { explainProjector } from '../../src/kv-projector/explain-projector.js';

const COMPARISON = compareProjectors(
  [{ name: 'Qwen2-14B', width: 5120, layers: 40, size: null }],
  1536,
  [1],
);

function best(text: string) {
  const published = parsePublished(text);
  if (published?.unit !== undefined && published.unit !== 'bytes') throw new Error(text);
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

  it('finds no explanation for another number', () => expect(best('123,456')).toBeUndefined());
});
