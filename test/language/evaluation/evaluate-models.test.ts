import fs from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { divergence } from '../../../src/base/tensor/logits.js';
import type { Engine } from '../../../src/engine/engine.js';
import { openOnnx } from '../../../src/engine/onnx/onnx-engine.js';
import { checkpointWeights } from '../../../src/engine/weights/weights.js';
import {
  openWeighted,
  type WeightedModelFile,
} from '../../../src/input/model-input/checkpoint/weighted-model.js';
import {
  type EvaluationRequest,
  evaluationOf,
} from '../../../src/language/evaluation/evaluate-models.js';
import { quantile, tokenScore, ValueList } from '../../../src/language/evaluation/token-scores.js';
import {
  checkWindows,
  type WindowSettings,
  Windows,
} from '../../../src/language/evaluation/windows.js';

const SILENT = {
  bytes: () => ({ add: () => {}, end: () => {} }),
  steps: () => ({ doing: () => {}, say: () => {}, end: () => {} }),
};

async function evaluated(engine: Engine, request: EvaluationRequest) {
  const { fold, score, release } = evaluationOf(async () => engine, request);
  return fold(score).finally(release);
}

function windowsOf(texts: readonly number[][], settings: WindowSettings) {
  const windows = new Windows(texts, settings);
  return [...windows.sizes()].map((_, index) => windows.at(index));
}

const scoredTokens = (texts: readonly number[][], settings: WindowSettings) =>
  windowsOf(texts, settings).reduce(
    (sum, { tokens, firstScored }) => sum + tokens.length - firstScored,
    0,
  );

interface Estimated {
  readonly mean: number;
  readonly error: number;
}

interface Case {
  readonly own: string;
  readonly reference: string;
  readonly context: number;
  readonly stride: number;
  readonly bos: number | null;
  readonly scored: number;
  readonly loss: Estimated;
  readonly perplexity: number;
  readonly kl: Estimated & { median: number; percentile99: number; max: number };
  readonly reverseKl: Estimated;
  readonly sameTop: Estimated;
  readonly rms: number;
  readonly change: Estimated;
  readonly lossChange: Estimated;
}

/** Computed by PyTorch: fixtures/evaluation/make.py. */
const EXPECTED = JSON.parse(fs.readFileSync('fixtures/evaluation/expected.json', 'utf8')) as {
  readonly texts: readonly number[][];
  readonly cases: readonly Case[];
};

describe('an evaluation', () => {
  let engine: Engine;
  const opened: WeightedModelFile[] = [];
  beforeAll(async () => {
    engine = await openOnnx({ threads: 1 });
  });
  afterAll(async () => {
    for (const each of opened) each.close();
    await engine.close();
  });

  const side = async (name: string) => {
    const file = await openWeighted(`fixtures/hf/${name}`, {}, SILENT);
    opened.push(file);
    const { model } = file.loaded;
    if (!file.checkpoint) throw new Error('no weights');
    return { model, weights: checkpointWeights(model, file.checkpoint) };
  };

  it.each(EXPECTED.cases)(
    'equals PyTorch: $own against $reference, $context by $stride, BOS $bos',
    async (given) => {
      const { context, stride, bos } = given;
      let progress = 0;
      const result = await evaluated(engine, {
        own: await side(given.own),
        reference: await side(given.reference),
        texts: EXPECTED.texts,
        windows: { context, stride, bos: bos ?? undefined },
        lines: undefined,
        progress: (tokens) => {
          progress += tokens;
        },
      });
      const near = (value: number | null | undefined, expected: number) =>
        expect(Math.abs((value ?? Number.NaN) - expected)).toBeLessThan(
          1e-5 * Math.abs(expected) + 1e-7,
        );
      expect(result.scored).toBe(given.scored);
      expect(progress).toBe(given.scored);
      near(result.own.loss.mean, given.loss.mean);
      near(result.own.loss.error, given.loss.error);
      near(result.own.perplexity.mean, given.perplexity);
      near(result.own.perplexity.error, given.perplexity * given.loss.error);
      const { divergence } = result;
      near(divergence?.kl.mean, given.kl.mean);
      near(divergence?.kl.error, given.kl.error);
      near(divergence?.kl.median, given.kl.median);
      near(divergence?.kl.percentile99, given.kl.percentile99);
      near(divergence?.kl.max, given.kl.max);
      near(divergence?.reverseKl.mean, given.reverseKl.mean);
      near(divergence?.sameTop.mean, given.sameTop.mean);
      near(divergence?.sameTop.error, given.sameTop.error);
      near(divergence?.rmsProbabilityChange.mean, given.rms);
      near(divergence?.meanProbabilityChange.mean, given.change.mean);
      near(divergence?.lossChange.mean, given.lossChange.mean);
      near(divergence?.lossChange.error, given.lossChange.error);
    },
  );

  it('gives the same loss for a hybrid in windows as for whole texts', async () => {
    const own = await openWeighted(
      'configs/hybrid/tiny.yaml',
      { random: true, set: ['model.window_size=16'] },
      SILENT,
    );
    opened.push(own);
    const { model } = own.loaded;
    const { randomWeights } = await import('../../../src/engine/weights/weights.js');
    const weights = randomWeights(model, 3);
    const text = Array.from({ length: 45 }, (_, at) => (at * 37) % 97);
    const result = await evaluated(engine, {
      own: { model, weights },
      reference: undefined,
      texts: [text],
      windows: { context: 32, stride: 32, bos: undefined },
      lines: undefined,
      progress: () => {},
    });
    const program = await engine.load(model, weights, { blocks: false });
    let loss = 0;
    for (const part of [text.slice(0, 32), text.slice(32)]) {
      const ids = { batch: 1, tokens: part.length - 1, data: Int32Array.from(part.slice(0, -1)) };
      const { output } = await program.run({ ids });
      const width = output.shape[2] ?? 0;
      for (let at = 1; at < part.length; at++) {
        const row = output.data.subarray((at - 1) * width, at * width);
        loss += tokenScore(row, part[at] ?? 0).loss;
      }
    }
    await program.release();
    expect(result.scored).toBe(43);
    expect(result.own.loss.mean).toBeCloseTo(loss / 43, 5);
  });
});

describe('windows', () => {
  const settings = (context: number, stride: number, bos?: number) => ({ context, stride, bos });
  const text = [10, 11, 12, 13, 14, 15, 16];

  it('score every token but the first exactly once, even where they overlap', () => {
    const windows = [...windowsOf([text], settings(4, 2))];
    expect(windows.map(({ tokens, firstScored }) => tokens.slice(firstScored))).toEqual([
      [11, 12, 13],
      [14, 15],
      [16],
    ]);
    expect(windows.map(({ position }) => position)).toEqual([1, 4, 6]);
  });

  it('score every token after a BOS token', () => {
    const windows = [...windowsOf([text], settings(4, 3, 99))];
    expect(windows.map(({ tokens }) => tokens)).toEqual([
      [99, 10, 11, 12],
      [99, 13, 14, 15],
      [99, 16],
    ]);
    expect(scoredTokens([text], settings(4, 3, 99))).toBe(7);
  });

  it('leave out texts without a predicted token', () => {
    expect(scoredTokens([[], [5]], settings(4, 4))).toBe(0);
    expect(scoredTokens([[], [5]], settings(4, 3, 99))).toBe(1);
  });

  it.each([
    [settings(9, 9), '--context: 9 tokens are more than the 8 positions'],
    [settings(1, 1), '--context: expected at least 2 tokens, found 1'],
    [settings(4, 5), '--stride: expected at most the 4 tokens of a window, found 5'],
    [settings(4, 4, 0), '--stride: expected at most the 3 tokens of a window, found 4'],
  ])('refuse the settings %j', (given, message) => {
    expect(() => checkWindows(given, 8)).toThrow(message);
  });
});

describe('scores', () => {
  it('are exact for large logits and for −∞', () => {
    const logits = Float32Array.of(1000, 999, Number.NEGATIVE_INFINITY);
    const score = tokenScore(logits, 1);
    expect(score.loss).toBeCloseTo(Math.log(1 + Math.E), 12);
    expect(score.top).toBe(0);
    expect(divergence(logits, score.logSum, logits, score.logSum)).toBe(0);
    expect(tokenScore(logits, 2).loss).toBe(Number.POSITIVE_INFINITY);
  });

  it('stay NaN when one model is broken', () => {
    const [logits, broken] = [Float32Array.of(1, 2), Float32Array.of(Number.NaN, Number.NaN)];
    const [score, nan] = [tokenScore(logits, 1), tokenScore(broken, 1)];
    expect(divergence(broken, nan.logSum, logits, score.logSum)).toBeNaN();
    expect(divergence(logits, score.logSum, broken, nan.logSum)).toBeNaN();
  });

  it('take the first of equal logits', () => {
    expect(tokenScore(Float32Array.of(1, 3, 3), 0).top).toBe(1);
  });

  it('interpolate quantiles, beyond the first allocation', () => {
    const list = new ValueList();
    for (let i = 3000; i >= 0; i--) list.add(i);
    const sorted = list.sorted();
    expect([0, 0.5, 0.99, 1].map((share) => quantile(sorted, share))).toEqual([
      0, 1500, 2970, 3000,
    ]);
    expect(quantile(Float32Array.of(1, 2), 0.25)).toBe(1.25);
  });
});
