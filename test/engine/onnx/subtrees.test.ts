import { expect, it } from 'vitest';
import { inputKindOf } from '../../../src/engine/calls.js';
import type { RunInput, RunOutput, Values } from '../../../src/engine/engine.js';
import { transformerModel } from '../../../src/engine/select/self-check.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import {
  hybridAttention,
  rotary,
} from '../../../src/model/architecture/constructors/attention-layers.js';
import type { Layer, Linear } from '../../../src/model/architecture/layer.js';
import { normWidth, productsOf, walk } from '../../../src/model/architecture/walk.js';
import { differenceAt, fixtureModel, idsOf, modelOfConfig } from '../fixture-models.js';
import { referenceEngine } from '../reference-engine.js';
import { describeWithOnnx, loaded } from './support.js';

const TOLERANCE = 2e-5;
const [BATCH, TOKENS] = [2, 11];

/** A model of two blocks with every kind of layer, unless `changes` replaces some. */
const modelWith = (changes: Readonly<Record<string, unknown>> = {}) =>
  modelOfConfig({
    vocab_size: 20,
    hidden_size: 12,
    num_layers: 2,
    num_heads: 3,
    window_size: 6,
    global_heads: 1,
    gate_rank: 4,
    max_position_embeddings: 32,
    ...changes,
  });

function value(width: number, phase = 0): Values {
  const data = Float32Array.from({ length: BATCH * TOKENS * width }, (_, i) => Math.sin(i + phase));
  return { shape: [BATCH, TOKENS, width], data };
}

/** Columns of the input of a layer. */
function widthFor(layer: Layer): number {
  switch (layer.kind) {
    case 'hybridBlock':
      return normWidth(layer.inputNorm);
    case 'sequence':
      return layer.layers[0] ? widthFor(layer.layers[0]) : 5;
    case 'sum':
    case 'residual':
      return layer.branches[0] ? widthFor(layer.branches[0]) : 5;
    case 'linear':
    case 'learnedPositions':
    case 'router':
      return layer.weight.shape[1] ?? 0;
    case 'transposedLinear':
    case 'causalConv':
      return layer.weight.shape[0] ?? 0;
    case 'fusedProjection':
      return widthFor(layer.projection);
    case 'layerNorm':
    case 'rmsNorm':
    case 'headNorms':
      return normWidth(layer);
    case 'activation':
    case 'scale':
    case 'softcap':
      return 7;
    case 'mamba':
      return widthFor(layer.inProj);
    case 'rotary':
      return 3 * layer.headDim;
    case 'attention':
    case 'gatedMlp':
      return widthFor(productsOf(layer.inputs)[0] ?? expect.unreachable());
    case 'latentAttention':
      return widthFor(layer.keyValueDown);
    case 'mixtureOfExperts':
      return widthFor(layer.router);
    case 'gate':
      return widthFor(layer.up);
    default:
      return expect.unreachable(`a ${layer.kind} takes no value`);
  }
}

/** An input of the kind that a layer needs. */
function inputFor(layer: Layer): RunInput {
  switch (inputKindOf(layer)) {
    case 'ids':
      return {
        ids: idsOf(
          [...'ab'].map((_, row) => Array.from({ length: TOKENS }, (_, t) => (row + t) % 8)),
        ),
      };
    case 'nothing':
      return { tokens: TOKENS };
    case 'two values':
      return { inputs: [value(12), value(12, 1)] };
    case 'a value':
      return { inputs: [value(widthFor(layer))] };
  }
}

function expectSame(actual: RunOutput, expected: RunOutput): void {
  expect(actual.output.shape).toEqual(expected.output.shape);
  expect(differenceAt(actual.output, expected.output, 1)).toBeLessThan(TOLERANCE);
  expect([...actual.taps.keys()].sort()).toEqual([...expected.taps.keys()].sort());
  for (const [path, tap] of expected.taps) {
    // An expert has a row for each of its tokens; the reference has only the last one.
    if (path.includes('experts')) continue;
    const own = actual.taps.get(path);
    expect(own?.shape, path).toEqual(tap.shape);
    if (own) expect(differenceAt(own, tap, 1), path).toBeLessThan(TOLERANCE);
  }
}

describeWithOnnx('every layer alone equals the reference, with all its parts:', () => {
  const models = {
    'a table': modelWith(),
    'low rank, tied': modelWith({ srte_factorized_rank: 3, tie_word_embeddings: true }),
    'sines and cosines, no alignment': modelWith({ srte_encoding: 'sincos', use_alignment: false }),
    'a transformer': transformerModel(),
  };
  for (const [title, model] of Object.entries(models)) {
    const weights = randomWeights(model, 1);
    const layers = [...new Set(walk(model).map(({ layer }) => layer))];
    // The reference computes rotations only inside attention; the two others are parts of their parents.
    const inner = ['rotary', 'alibi', 'packedExperts'];
    const tested = layers.filter(({ kind }) => !inner.includes(kind)).slice(0, 90);
    it.each(tested.map((layer) => [layer.name || 'the model', layer] as const))(
      `${title}: %s`,
      async (_name, layer) => {
        const reference = await referenceEngine().load(layer, weights, { taps: true });
        const program = await loaded(layer, weights, { taps: true });
        expect(program.elements).toBe(reference.elements);
        const input = inputFor(layer);
        expectSame(await program.run(input), await reference.run(input));
      },
    );
  }
});

describeWithOnnx('a block alone', () => {
  it('gives the same output as in the whole model', async () => {
    const { model, weights, ids } = fixtureModel('shared-lowrank-tied');
    const whole = await (await loaded(model, weights, { taps: true })).run({ ids });
    const [first = '', second = ''] = model.blocks.map(({ name }) => name);
    const [, block] = model.blocks;
    const before = whole.blocks.get(first);
    if (!block || !before) throw new Error('fewer than two blocks');
    const part = await (await loaded(block, weights, { taps: true })).run({ inputs: [before] });
    expect(part.output).toEqual(whole.blocks.get(second));
    expect(part.taps.size).toBeGreaterThan(20);
    for (const [path, tap] of part.taps) expect(tap, path).toEqual(whole.taps.get(path));
  });

  it('decodes like a whole forward pass', async () => {
    const model = modelWith();
    const [block] = model.blocks;
    if (!block) throw new Error('no block');
    const weights = randomWeights(model, 2);
    const whole = value(12);
    const rows = (from: number, to: number): Values => {
      const parts = [0, 1].map((row) =>
        whole.data.slice((row * TOKENS + from) * 12, (row * TOKENS + to) * 12),
      );
      return {
        shape: [BATCH, to - from, 12],
        data: Float32Array.from(parts.flatMap((p) => [...p])),
      };
    };
    const atOnce = await (await loaded(block, weights)).run({ inputs: [whole] });
    const program = await loaded(block, weights, { decoding: { totalTokens: TOKENS } });
    const first = await program.run({ inputs: [rows(0, 4)] });
    const second = await program.run({ inputs: [rows(4, TOKENS)], state: first.state });
    expect(second.state?.position).toBe(TOKENS);
    const [a, b] = [first.output.data, second.output.data];
    const [n, m] = [4 * 12, 7 * 12];
    const joined = [a.slice(0, n), b.slice(0, m), a.slice(n), b.slice(m)].flatMap((p) => [...p]);
    const stepwise = { shape: whole.shape, data: Float32Array.from(joined) };
    expect(differenceAt(stepwise, atOnce.output, 1)).toBeLessThan(TOLERANCE);
  });
});

describeWithOnnx('a rotary layer', () => {
  it('rotates pairs of columns by position / base^(2j / d)', async () => {
    const [base, headDim] = [100, 4];
    const layer = rotary('rope', { base, headDim });
    const weights = {
      rangeOf: () => undefined,
      read: () => expect.unreachable('it has no weights'),
    };
    const x = value(2 * headDim);
    const { output } = await (await loaded(layer, weights)).run({ inputs: [x] });
    const expectedRun = x.data.map((number, at) => {
      const t = Math.floor(at / (2 * headDim)) % TOKENS;
      const j = at % headDim;
      const angle = t / base ** ((2 * (j % 2)) / headDim);
      const other = j < 2 ? -(x.data[at + 2] ?? 0) : (x.data[at - 2] ?? 0);
      return number * Math.cos(angle) + other * Math.sin(angle);
    });
    expect(differenceAt(output, { shape: x.shape, data: expectedRun }, 1)).toBeLessThan(1e-6);
  });
});

describeWithOnnx('shared key-value heads', () => {
  it('equal separate heads with the same weights', async () => {
    const spans = [
      { heads: 3, window: { rule: 'local', tokens: 4 } as const },
      { heads: 1, window: undefined },
    ];
    const sizes = { hidden: 16, heads: 4, spans, rotaryBase: 100, rotaryPositions: 32 };
    const full = hybridAttention('attention', sizes);
    const [q, k, v] = productsOf(full.inputs) as [Linear, Linear, Linear];
    const source = randomWeights(full, 3);
    const narrow = (layer: Linear) => ({
      ...layer,
      weight: { ...layer.weight, shape: [8, 16], elements: 128 },
    });
    const shared = { ...full, keyValueHeads: 2, inputs: [q, narrow(k), narrow(v)] };
    const wide = new Float32Array(128);
    // Rows of head h of the full weights are those of its shared head.
    const weights = {
      rangeOf: () => undefined,
      read(tensor: typeof k.weight, first: number, target: Float32Array) {
        if (tensor !== k.weight && tensor !== v.weight) {
          return source.read(tensor, first, target);
        }
        source.read(tensor, 0, wide);
        const at = (index: number) => Math.floor(index / 128) * 64 + (index % 64);
        for (let i = 0; i < target.length; i++) target[i] = wide[at(first + i)] ?? 0;
      },
    };
    const narrowed = {
      rangeOf: () => undefined,
      read(tensor: typeof k.weight, first: number, target: Float32Array) {
        const own = { [k.weight.name]: k.weight, [v.weight.name]: v.weight };
        source.read(own[tensor.name] ?? tensor, first, target);
      },
    };
    const input = { inputs: [value(16)] };
    const expectedRun = await (await loaded(full, weights)).run(input);
    const actualRun = await (await loaded(shared, narrowed)).run(input);
    expect(differenceAt(actualRun.output, expectedRun.output, 1)).toBeLessThan(1e-6);
  });
});
