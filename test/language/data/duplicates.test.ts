import { describe, expect, it } from 'vitest';
import { DuplicateFinder } from '../../../src/language/data/duplicates.js';

const finder = (threshold = 0.8) =>
  new DuplicateFinder<number>(
    threshold,
    (place) => place,
    (value) => value,
  );

/** Random words, the same for each seed. */
function words(count: number, seed: number): string[] {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state.toString(36);
  });
}

/** Jaccard similarity of the sets of runs of 5 characters. */
function jaccard(a: string, b: string): number {
  const runs = (text: string) =>
    new Set(Array.from({ length: text.length - 4 }, (_, at) => text.slice(at, at + 5)));
  const [one, other] = [runs(a), runs(b)];
  const shared = [...one].filter((run) => other.has(run)).length;
  return shared / (one.size + other.size - shared);
}

describe('DuplicateFinder', () => {
  it('finds equal texts and names the first', () => {
    const own = finder();
    for (let place = 0; place < 3000; place++) {
      expect(own.add(`text number ${words(3, place).join(' ')}`, place)?.similarity).not.toBe(1);
    }
    const again = own.add(`text number ${words(3, 17).join(' ')}`, 5000);
    expect(again).toEqual({ place: 5000, first: 17, similarity: 1 });
  });

  it('finds a long text with one changed word, but not a text of other words', () => {
    const own = finder();
    const text = words(100, 1);
    own.add(text.join(' '), 1);
    const changed = text.with(50, 'changed').join(' ');
    const duplicate = own.add(changed, 2);
    expect(duplicate?.first).toBe(1);
    expect(Math.abs((duplicate?.similarity ?? 0) - jaccard(text.join(' '), changed))).toBeLessThan(
      0.1,
    );
    expect(own.add(words(100, 2).join(' '), 3)).toBeUndefined();
  });

  it('estimates the similarity J of which the share J + (1 − J) / 256 of 60 low bytes is equal', () => {
    // Theorem 1 of Li and König, b-Bit Minwise Hashing (2010), with b = 8 and sets that are small among all hashes.
    const own = finder();
    const text = words(100, 1);
    own.add(text.join(' '), 1);
    const { similarity = 0 } = own.add(text.with(50, 'changed').join(' '), 2) ?? {};
    const equal = 60 * (similarity + (1 - similarity) / 256);
    expect(equal).toBeCloseTo(Math.round(equal), 9);
    expect(Math.round(equal)).toBeLessThan(60);
  });

  it('finds nearly all pairs above the threshold, and none far below it', () => {
    const own = finder();
    let [near, found, far, wrong] = [0, 0, 0, 0];
    for (let pair = 0; pair < 200; pair++) {
      const text = words(80, 1000 + pair);
      const changes = pair % 2 === 0 ? 2 : 30;
      const other = text.map((word, at) => (at < changes ? `other${at}` : word)).join(' ');
      own.add(text.join(' '), 2 * pair);
      const duplicate = own.add(other, 2 * pair + 1);
      if (jaccard(text.join(' '), other) > 0.9) {
        near++;
        if (duplicate?.first === 2 * pair) found++;
      } else if (jaccard(text.join(' '), other) < 0.6) {
        far++;
        if (duplicate) wrong++;
      }
    }
    expect([near, far]).toEqual([100, 100]);
    expect(found).toBeGreaterThanOrEqual(98);
    expect(wrong).toBe(0);
  });

  it('works without spaces, and on texts too short for a run', () => {
    const own = finder();
    const chinese =
      '语言模型根据前面的词预测下一个词。从前有一座山，山上有一座庙，庙里有个老和尚在讲故事。'.repeat(
        2,
      );
    own.add(chinese, 1);
    expect(own.add(`${chinese}完`, 2)?.first).toBe(1);
    expect(own.add('好', 3)).toBeUndefined();
    expect(own.add('好', 4)).toEqual({ place: 4, first: 3, similarity: 1 });
  });
});
