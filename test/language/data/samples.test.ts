import { describe, expect, it } from 'vitest';
import { countTokens, readData } from '../../../src/language/data/read-data.js';
import type { RecipeName, ShownSample } from '../../../src/language/data/recipes.js';
import { inPackage, readJson } from '../../fixtures.js';
import { SILENT } from './support.js';

/** Sample made by the classes of MiniMind, without padding. */
interface Expected {
  readonly ids: readonly number[];
  /** Ranges of Y that count for the loss. */
  readonly counted: readonly (readonly [number, number])[];
}

const PADDING = 0;

const shownSamples = async (name: string, recipe: RecipeName, context: number) => {
  const { shown } = await readData(
    {
      files: [inPackage(`fixtures/data/${name}.jsonl`)],
      tokenizer: inPackage('fixtures/data/tokenizer'),
      recipe,
      context,
      show: 1000,
    },
    SILENT,
  );
  return shown;
};

const tensorsOf = ({ ids, counted }: Expected, length: number) => {
  const padded = [...ids, ...new Array<number>(length - ids.length).fill(PADDING)];
  const mask = new Array<number>(length - 1).fill(0);
  for (const [from, end] of counted) mask.fill(1, from, end);
  return { ids: padded, x: padded.slice(0, -1), y: padded.slice(1), mask };
};

const tensorsShown = ({ ids, x, y, mask }: ShownSample) => ({ ids, x, y, mask });

describe('samples', () => {
  it.each<[string, RecipeName]>([
    ['pretrain', 'minimind3'],
    ['pretrain', 'minimind2'],
    ['pretrain', 'plain'],
    ['chat', 'minimind3'],
    ['chat', 'minimind2'],
  ])('equal those of MiniMind in 200 lines of %s, recipe %s', async (name, recipe) => {
    const { length, samples } = readJson('fixtures/data', `${name}-${recipe}.json`) as {
      length: number;
      samples: (Expected | null)[];
    };
    const shown = await shownSamples(name, recipe, length);
    expect([shown.length, samples.length]).toEqual([200, 200]);
    for (const [index, expected] of samples.entries()) {
      const own = shown[index];
      if (expected === null || own === undefined) continue;
      expect(tensorsShown(own), `line ${index + 1}`).toEqual(tensorsOf(expected, length));
    }
  });

  it('have the counted number of tokens', async () => {
    const { length, samples } = readJson('fixtures/data', 'chat-minimind3.json') as {
      length: number;
      samples: Expected[];
    };
    const counts = await countTokens(
      {
        files: [inPackage('fixtures/data/chat.jsonl')],
        tokenizer: inPackage('fixtures/data/tokenizer'),
        recipe: 'minimind3',
        context: length,
      },
      SILENT,
    );
    const sum = (of: (sample: Expected) => number) =>
      samples.reduce((total, each) => total + of(each), 0);
    expect(counts).toMatchObject({
      samples: 200,
      context: length,
      invalidLines: 0,
      positions: 200 * length,
      tokens: sum(({ ids }) => ids.length),
      counted: sum(({ counted }) => counted.reduce((all, [from, end]) => all + end - from, 0)),
    });
  });

  it('equal those of MiniMind in 60 pairs of answers', async () => {
    const { length, samples } = readJson('fixtures/data', 'preference-minimind3.json') as {
      length: number;
      samples: Record<'chosen' | 'rejected', Expected>[];
    };
    const shown = await shownSamples('preference', 'minimind3', length);
    expect(shown.length).toBe(120);
    for (const own of shown) {
      const expected = samples[own.line - 1]?.[own.side ?? 'chosen'];
      expect(tensorsShown(own)).toEqual(tensorsOf(expected ?? expect.unreachable(), length));
    }
  });
});
