import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sumOf } from '../../../src/base/values.js';
import type { Engine, Program } from '../../../src/engine/engine.js';
import { openOnnx } from '../../../src/engine/onnx/onnx-engine.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import { checkpointWeights } from '../../../src/engine/weights/weights.js';
import {
  openWeighted,
  type WeightedModelFile,
} from '../../../src/input/model-input/checkpoint/weighted-model.js';
import { evaluationOf } from '../../../src/language/evaluation/evaluate-models.js';
import { routerLoad } from '../../../src/language/evaluation/expert-load.js';
import { Windows } from '../../../src/language/evaluation/windows.js';
import { expertFacts, expertMap } from '../../../src/report/evaluate/expert-load.js';

const SILENT = {
  bytes: () => ({ add: () => {}, end: () => {} }),
  steps: () => ({ doing: () => {}, say: () => {}, end: () => {} }),
};

/** Softmax, groups with a correction, experts of attention, and the rule of sparse mixers. */
const MODELS = ['qwen3-5-moe-text-7-19', 'glm4-moe-7-1', 'jetmoe-7-17', 'phimoe-7-20'] as const;
const TOKENS = 30;
const WINDOWS = { context: 16, stride: 12, bos: undefined };

describe('the tokens of each expert', () => {
  const engines: Engine[] = [];
  const opened: WeightedModelFile[] = [];
  beforeAll(async () => {
    engines.push(await openOnnx({ threads: 1 }), await openTfjs({ threads: 1, backend: 'wasm' }));
  });
  afterAll(async () => {
    for (const each of opened) each.close();
    for (const engine of engines) await engine.close();
  });

  const read = async (name: string) => {
    const file = await openWeighted(`fixtures/hf/${name}`, {}, SILENT);
    opened.push(file);
    const { model } = file.loaded;
    if (!file.checkpoint) throw new Error('no weights');
    return { model, weights: checkpointWeights(model, file.checkpoint) };
  };
  const idsFor = (vocabulary: number) =>
    Array.from({ length: TOKENS }, (_, at) => (at * 37 + at * at) % vocabulary);

  it.each(MODELS)('are those with a weight, in both engines: %s', async (name) => {
    const { model, weights } = await read(name);
    const ids = idsFor(model.embedding.weight.shape[0] ?? 0);
    for (const engine of engines) {
      const run = async (program: Program) => {
        const found = await program.run({
          ids: { batch: 1, tokens: TOKENS, data: Int32Array.from(ids) },
        });
        await program.release();
        return found;
      };
      const { sent = new Map() } = await run(await engine.load(model, weights, { sent: true }));
      const { taps } = await run(await engine.load(model, weights, { taps: true }));
      expect(sent.size).toBeGreaterThan(0);
      for (const [router, { shape, data }] of sent) {
        const [experts = 0] = shape;
        const weighted = new Array<number>(experts).fill(0);
        for (const [at, weight] of (taps.get(router)?.data ?? []).entries()) {
          if (weight !== 0) weighted[at % experts] = (weighted[at % experts] ?? 0) + 1;
        }
        expect([...data]).toEqual(weighted);
      }
    }
  });

  it.each(MODELS)('are summed over all windows of an evaluation: %s', async (name) => {
    const own = await read(name);
    const texts = [idsFor(own.model.embedding.weight.shape[0] ?? 0)];
    const loads = [];
    for (const engine of engines) {
      const { fold, score, release } = evaluationOf(async () => engine, {
        own,
        reference: undefined,
        texts,
        windows: WINDOWS,
        lines: undefined,
        progress: () => {},
      });
      const { experts } = await fold(score).finally(release);
      loads.push(experts);
    }
    expect(loads[0]).toEqual(loads[1]);
    // The last token of a window is only predicted.
    const tokens = sumOf([...new Windows(texts, WINDOWS).sizes()], ({ read }) => read - 1);
    expect(tokens).toBe(15 + 15 + 5);
    for (const { perToken, sent } of loads[0] ?? []) {
      expect(sent.reduce((sum, each) => sum + each, 0)).toBe(perToken * tokens);
    }
  });

  it('have facts', () => {
    const load = routerLoad('layers.3.gate', 2, [6, 0, 2, 0]);
    expect(load).toMatchObject({ even: 2, highest: 0, lowest: 1, unused: 2 });
    // exp(−(¾ ln ¾ + ¼ ln ¼))
    expect(load.effective).toBeCloseTo(1.7548, 4);
    const even = routerLoad('layers.1.gate', 2, [5, 5]);
    expect(even).toMatchObject({ even: 5, unused: 0 });
    expect(even.effective).toBeCloseTo(2, 12);
    expect(expertFacts({ experts: [even, load] })).toEqual([
      {
        name: 'experts',
        text: '3.00 × the even load for expert 0 of layers.3.gate; 2 of 6 experts unused',
      },
    ]);
    expect(expertFacts({ experts: null })).toEqual([]);
    expect(expertMap({ experts: [load, even] })[0]?.rows).toEqual([
      { label: 'layers.3.gate', values: [3, 0, 1, 0] },
      { label: 'layers.1.gate', values: [1, 1, null, null] },
    ]);
  });
});
