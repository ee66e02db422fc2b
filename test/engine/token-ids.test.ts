import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import {
  firstTokens,
  idLimitsOf,
  idSpan,
  inputSize,
  parseIds,
  pickRows,
  randomIds,
  withOtherToken,
} from '../../src/engine/token-ids.js';
import { TINY } from '../check/test-contexts.js';
import { idsOf, modelOfConfig } from './fixture-models.js';

const LIMITS = { vocabulary: 10, positions: 4 };

describe('ids of a file', () => {
  it('are a list of sequences', () => {
    expect(parseIds('[[1, 2, 9], [0, 0, 3]]', 'ids.json', LIMITS)).toEqual({
      batch: 2,
      tokens: 3,
      data: Int32Array.of(1, 2, 9, 0, 0, 3),
    });
  });

  it.each([
    ['[[1, 2', /^ids.json: is not JSON: /],
    ['{"ids": []}', /^ids.json: is not a list of lists$/],
    ['[1, 2]', /^ids.json: is not a list of lists$/],
    ['[]', /^ids.json: there are no ids$/],
    ['[[]]', /^ids.json: there are no ids$/],
    ['[[1, 2], [3]]', /^ids.json: sequence 1 has 1 ids, and the first 2$/],
    ['[[1, 10]]', /^ids.json: id 1 of sequence 0 is 10, and ids go from 0 to 9$/],
    ['[[1.5]]', /id 0 of sequence 0 is 1.5/],
    ['[[-1]]', /id 0 of sequence 0 is -1/],
    ['[["a"]]', /id 0 of sequence 0 is "a"/],
    [
      '[[null], [3, 99]]',
      /id 0 of sequence 0 is null.*; sequence 1 has 2 ids.*; id 1 of sequence 1 is 99/,
    ],
    ['[[1, 2, 3, 4, 5]]', /^ids.json: 5 tokens are more than the 4 positions of the model$/],
    ['[[10], [10], [10], [10], [10], [10], [10]]', /; and 2 more$/],
  ])('are refused: %s', (text, message) => {
    const parse = () => parseIds(text, 'ids.json', LIMITS);
    expect(parse).toThrow(UserError);
    expect(parse).toThrow(message);
  });
});

describe('random ids', () => {
  it('are within the vocabulary, and the same for the same seed', () => {
    const ids = randomIds(1, 'ids', { batch: 3, tokens: 50 }, LIMITS);
    expect(ids).toMatchObject({ batch: 3, tokens: 50 });
    expect(ids.data.every((id) => id >= 0 && id < 10)).toBe(true);
    expect(randomIds(1, 'ids', { batch: 3, tokens: 50 }, LIMITS)).toEqual(ids);
    expect(randomIds(1, 'more', { batch: 3, tokens: 50 }, LIMITS)).not.toEqual(ids);
  });
});

describe('a part of ids', () => {
  const ids = idsOf([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ]);

  it.each([
    ['the first tokens', () => firstTokens(ids, 2), [1, 2, 5, 6]],
    ['some tokens', () => idSpan(ids, 1, 2), [2, 3, 6, 7]],
    ['some rows', () => pickRows(ids, [1, 1, 0]), [5, 6, 7, 8, 5, 6, 7, 8, 1, 2, 3, 4]],
    ['another token', () => withOtherToken(ids, 2, LIMITS), [1, 2, 8, 4, 5, 6, 2, 8]],
  ])('has the right values: %s', (_, make, expected) => expect([...make().data]).toEqual(expected));

  it('with another token differs for any size of the vocabulary', () => {
    for (const vocabulary of [2, 3, 10]) {
      const zero = idsOf([[0]]);
      expect(withOtherToken(zero, 0, { vocabulary, positions: 1 }).data[0]).not.toBe(0);
    }
  });
});

describe('the input of a model', () => {
  const model = modelOfConfig({ ...TINY, max_position_embeddings: 2000 });

  it('has the requested length, or 512 tokens, or the largest possible length', () => {
    expect(inputSize({ batch: 2, context: 7 }, model)).toEqual({ batch: 2, tokens: 7 });
    expect(inputSize({}, model)).toEqual({ batch: 1, tokens: 512 });
    expect(inputSize({}, modelOfConfig(TINY))).toEqual({ batch: 1, tokens: 32 });
  });

  it('cannot exceed the positions of the model', () => {
    expect(() => inputSize({ context: 2001 }, model)).toThrow(
      '--context: 2,001 tokens are more than the 2,000 positions of the model',
    );
  });

  it('has ids below its vocabulary', () => {
    expect(idLimitsOf(model)).toEqual({ vocabulary: 12, positions: 2000 });
  });
});
