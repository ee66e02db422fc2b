import { describe, expect, it } from 'vitest';
import { Decoder } from '../../../src/engine/decoder.js';
import type { Program } from '../../../src/engine/engine.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import type { Draft, GenerationRequest } from '../../../src/language/generation/generate-tokens.js';
import {
  generateTokens,
  lookupDraft,
  modelDraft,
} from '../../../src/language/generation/generate-tokens.js';
import { GREEDY } from '../../../src/language/generation/sampling.js';
import { withEachEngine } from '../../engine/both-engines.js';
import { familyCase } from '../../engine/family-cases.js';
import { fixtureModel } from '../../engine/fixture-models.js';
import { readJson } from '../../fixtures.js';
import { sampled } from '../../sampled.js';
import { tableProgram } from './programs.js';

interface GreedyCase {
  readonly prompt: number[];
  readonly penalty: number;
  readonly ids: number[];
  readonly margin: number;
}

const GREEDY_CASES = readJson<Record<string, GreedyCase[]>>('fixtures/generation/greedy.json');

/** Below this margin, another order of additions can change the likeliest token. */
const LEAST_MARGIN = 2e-5;

const REQUEST: GenerationRequest = {
  settings: GREEDY,
  maxTokens: 24,
  stopIds: new Set(),
  seed: 0,
  topLogprobs: 0,
  explained: 0,
};

const SAMPLED = { ...GREEDY, temperature: 0.9, topK: 20, topP: 0.95 };

/** Tokens that the first engine sampled. */
let sampledBefore: number[] | undefined;

async function idsOf(
  program: Program,
  prompt: readonly number[],
  request: Partial<GenerationRequest>,
): Promise<number[]> {
  const ids: number[] = [];
  const { tokens } = generateTokens(new Decoder(program), prompt, { ...REQUEST, ...request });
  for await (const { id } of tokens) ids.push(id);
  return ids;
}

it('the greedy cases cover more than 25 models, with clear margins', () => {
  const margins = Object.values(GREEDY_CASES).flatMap((each) => each.map(({ margin }) => margin));
  expect(Object.keys(GREEDY_CASES).length).toBeGreaterThan(25);
  expect(Math.min(...margins)).toBeGreaterThan(LEAST_MARGIN);
});

withEachEngine('generated tokens', (load, engine) => {
  // The other engine is slower; families.test.ts compares the logits of both.
  const names = Object.keys(GREEDY_CASES).filter(
    (name) => engine === 'ONNX Runtime' || ['llama', 'gemma2-window', 'gpt2'].includes(name),
  );
  it.each(sampled(names, 6))('equal the greedy tokens of transformers: %s', async (name) => {
    const { model, weights } = await familyCase(`hf/${name}`);
    const program = await load(model, weights, { decoding: { totalTokens: 65 }, blocks: false });
    for (const { prompt, penalty, ids } of GREEDY_CASES[name] ?? []) {
      const settings = { ...GREEDY, repetitionPenalty: penalty };
      expect(await idsOf(program, prompt, { settings, maxTokens: ids.length })).toEqual(ids);
    }
    await program.release();
  });

  it('follow the seed when sampled', async () => {
    const { model, weights } = await familyCase('hf/llama');
    const program = await load(model, weights, { decoding: { totalTokens: 40 }, blocks: false });
    const sampled = (seed: number) => idsOf(program, [5, 6, 7], { settings: SAMPLED, seed });
    const first = await sampled(1);
    expect(await sampled(1)).toEqual(first);
    expect(await sampled(2)).not.toEqual(first);
    sampledBefore ??= first;
    expect(first, 'the same on both engines').toEqual(sampledBefore);
    await program.release();
  });
});

withEachEngine('speculative decoding', (load, engine) => {
  const cases =
    engine === 'ONNX Runtime'
      ? [
          'hf/llama',
          'hf/deepseek-v3',
          'hf/mistral-window',
          'minimind/v3-moe',
          'hybrid/shared-lowrank-tied',
        ]
      : ['hf/llama', 'hybrid/shared-lowrank-tied'];
  it.each(cases)('gives the tokens of greedy decoding: %s', async (place) => {
    const { model, weights } = place.startsWith('hybrid/')
      ? fixtureModel(place.slice('hybrid/'.length))
      : await familyCase(place);
    const options = { decoding: { totalTokens: 32 }, blocks: false };
    const program = await load(model, weights, options);
    const other = await load(model, randomWeights(model, 1), options);
    const prompt = [5, 9, 5, 9, 5];
    const plain = await idsOf(program, prompt, {});
    const drafts = {
      'the same model': modelDraft(new Decoder(program)),
      'another model': modelDraft(new Decoder(other)),
      'the text so far': lookupDraft(2),
    };
    for (const [title, by] of Object.entries(drafts)) {
      expect(await idsOf(program, prompt, { draft: { by, tokens: 4 } }), title).toEqual(plain);
    }
    await program.release();
    await other.release();
  });
});

describe('the frequencies of 20,000 samples', () => {
  const model = [
    [0, 1, 2, -1],
    [1, 0, 0.5, 0],
    [0.3, 1.5, 0, 0],
    [2, 0, -1, 1],
  ];
  const drafted = [
    [1, 0, 0, 1],
    [0, 2, 0, 0],
    [0, 0, 0, 3],
    [1, 1, 1, 1],
  ];
  const settings = { ...GREEDY, temperature: 1 };
  const TOKENS = 3;
  const softmax = (row: readonly number[]): number[] => {
    const sum = row.reduce((total, each) => total + Math.exp(each), 0);
    return row.map((each) => Math.exp(each) / sum);
  };
  /** Probability of every answer to a prompt that ends in token 0. */
  const expected = new Map<string, number>();
  const extend = (ids: readonly number[], probability: number): void => {
    if (ids.length === TOKENS) expected.set(ids.join(), probability);
    else {
      for (const [id, each] of softmax(model[ids.at(-1) ?? 0] ?? []).entries()) {
        extend([...ids, id], probability * each);
      }
    }
  };
  extend([], 1);

  const drafts: [string, () => Draft | undefined][] = [
    ['with a draft of a model', () => modelDraft(new Decoder(tableProgram(drafted)))],
    ['without a draft', () => undefined],
    ['with a draft from the text', () => lookupDraft(2)],
  ];
  it.each(sampled(drafts, 3))('match the distribution, %s', async (_, draftOf) => {
    const counts = new Map<string, number>();
    const total = 20_000;
    const by = draftOf();
    const program = tableProgram(model);
    for (let seed = 0; seed < total; seed++) {
      const ids = await idsOf(program, [1, 2, 0, 1, 2, 0], {
        settings,
        seed,
        maxTokens: TOKENS,
        draft: by && { by, tokens: 2 },
      });
      counts.set(ids.join(), (counts.get(ids.join()) ?? 0) + 1);
    }
    let chiSquare = 0;
    for (const [answer, probability] of expected) {
      chiSquare += ((counts.get(answer) ?? 0) - total * probability) ** 2 / (total * probability);
    }
    // 63 degrees of freedom: one in a thousand is above 103. The seeds are the same in every run.
    expect(chiSquare).toBeLessThan(103);
  });
});

it('a lookup draft proposes the tokens that followed the last ones, and continues a repetition', async () => {
  const followers = async (tokens: number[], count = 4) =>
    (await lookupDraft(2).propose(tokens, count, GREEDY, () => 0)).map(({ id }) => id);
  expect(await followers([1, 2, 3, 4, 5, 1, 2])).toEqual([3, 4, 5, 1]);
  expect(await followers([1, 2, 3, 1, 2, 4, 1, 2], 2)).toEqual([4, 1]);
  expect(await followers([9, 7, 8, 5, 8], 2)).toEqual([5, 8]);
  expect(await followers([3, 1, 1])).toEqual([1, 1, 1, 1]);
  expect(await followers([1, 2, 3])).toEqual([]);
});

it('generation ends at a stop token, and counts proposed tokens', async () => {
  // 0 → 1 → 2 → 3 → 0, with certainty.
  const program = tableProgram([
    [0, 9, 0, 0],
    [0, 0, 9, 0],
    [0, 0, 0, 9],
    [9, 0, 0, 0],
  ]);
  expect(await idsOf(program, [0], { stopIds: new Set([3]) })).toEqual([1, 2, 3]);
  const draft = { by: lookupDraft(3), tokens: 4 };
  const run = generateTokens(new Decoder(program), [0, 1, 2, 3, 0], {
    ...REQUEST,
    maxTokens: 11,
    draft,
  });
  const ids: number[] = [];
  for await (const { id } of run.tokens) ids.push(id);
  expect(ids).toEqual([1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
  // One call for each token that was not drafted, except the last.
  const { proposed, accepted, calls } = run.acceptance;
  expect(accepted).toEqual(proposed);
  expect(calls).toBe(10 - accepted.reduce((sum, each) => sum + each, 0));
});

it('a draft that cannot rewind computes only accepted tokens again', async () => {
  // The model counts up, and the draft errs after each third token.
  const up = (id: number) => Array.from({ length: 20 }, (_, next) => Number(next === id + 1));
  const table = Array.from({ length: 20 }, (_, id) => up(id));
  const erring = table.map((row, id) => (id % 3 === 2 ? up(0) : row));
  const calls: { readonly start: number; readonly ids: readonly number[] }[] = [];
  const by = modelDraft(new Decoder(tableProgram(erring, calls)));
  const prompt = [9, 9, 9, 9, 9, 9, 9, 0];
  const ids = await idsOf(tableProgram(table), prompt, { maxTokens: 12, draft: { by, tokens: 4 } });
  expect(ids).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  const [first, ...later] = calls;
  expect(first).toEqual({ start: 0, ids: [...prompt, 1] });
  expect(later.every(({ start }) => start >= prompt.length + 1)).toBe(true);
  // 12 tokens, and 4 rejected or repeated ones for each of 4 proposals.
  expect(later.reduce((sum, { ids: { length } }) => sum + length, 0)).toBeLessThanOrEqual(32);
});

it('a model that cannot rewind reads only the new part of the next prompt', async () => {
  const calls: { readonly start: number; readonly ids: readonly number[] }[] = [];
  const decoder = new Decoder(
    tableProgram(
      [
        [0, 1],
        [1, 0],
      ],
      calls,
    ),
  );
  const answer = async (prompt: readonly number[]) => {
    const ids: number[] = [];
    const { tokens } = generateTokens(decoder, prompt, { ...REQUEST, maxTokens: 4 });
    for await (const { id } of tokens) ids.push(id);
    return ids;
  };
  expect(await answer([0, 0, 0, 1])).toEqual([0, 1, 0, 1]);
  calls.length = 0;
  await answer([0, 0, 0, 1, 1, 0]);
  expect(calls[0]).toEqual({ start: 4, ids: [1, 0] });
});
