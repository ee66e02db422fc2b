/** Compares models with weights of 8 and 4 bits with products of the dequantized values. */
import { afterAll, describe, expect, it } from 'vitest';
import type { WeightForm } from '../../../src/base/tensor/group-quantization.js';
import type { TokenIds, Values } from '../../../src/engine/engine.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import {
  dequantizedSource,
  quantizedPieces,
} from '../../../src/engine/weights/quantized-weights.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import {
  linear,
  transposedLinear,
} from '../../../src/model/architecture/constructors/basic-layers.js';
import type { LanguageModel, ProjectionLayer } from '../../../src/model/architecture/layer.js';
import { tensorsOf, walk } from '../../../src/model/architecture/walk.js';
import { quantizedMatrices } from '../../../src/model/architecture/weight-matrices.js';
import { sampled } from '../../sampled.js';
import { familyCase, ONE_OF_EACH_FAMILY } from '../family-cases.js';
import { fixtureModel } from '../fixture-models.js';
import { describeWithOnnx, loaded } from '../onnx/support.js';

const FORMS: readonly WeightForm[] = [
  { bits: 8, group: 32 },
  { bits: 4, group: 32 },
  { bits: 4, group: 128 },
];

const CASES: readonly string[] = [
  ...ONE_OF_EACH_FAMILY,
  ...['per-layer-sincos', 'shared-lowrank-tied', 'shared-learnable'].map(
    (each) => `hybrid/${each}`,
  ),
];

const modelCase = async (place: string) =>
  place.startsWith('hybrid/') ? fixtureModel(place.slice('hybrid/'.length)) : familyCase(place);

/** All values of a tensor. */
function valuesOf(source: WeightSource, layer: ProjectionLayer, name: string): Float32Array {
  const tensor = tensorsOf(layer).find((each) => each.name === name);
  if (!tensor) throw new Error(`no tensor ${name}`);
  const values = new Float32Array(tensor.elements);
  source.read(tensor, 0, values);
  return values;
}

const normOf = (values: Iterable<number>) =>
  Math.sqrt([...values].reduce((sum, x) => sum + x * x, 0));

describe('the quantized matrices', () => {
  it('are those of products, head and embedding, without routers, tables and steps of a scan', async () => {
    const names = async (place: string) =>
      [...quantizedMatrices((await modelCase(place)).model).keys()].map(({ name }) => name);
    const hybrid = await names('hybrid/shared-lowrank-tied');
    expect(hybrid).toContain('layers.0.mamba.in_proj.weight');
    expect(hybrid.filter((name) => /srte|x_proj|dt_proj|conv|norm/.test(name))).toEqual([]);
    const mixture = await names('hf/qwen2-moe');
    expect(mixture).toContain('model.embed_tokens.weight');
    expect(mixture).toContain('lm_head.weight');
    expect(mixture.some((name) => name.includes('experts'))).toBe(true);
    expect(
      mixture.filter((name) => /mlp\.gate\.weight|shared_expert_gate|norm/.test(name)),
    ).toEqual([]);
  });
});

describe('dequantized values', () => {
  it.each([false, true])('are the same for any range, transposed: %s', (isTransposed) => {
    const layer = (isTransposed ? transposedLinear : linear)('layer', 77, 45);
    const source = randomWeights(layer, 3);
    const form = { bits: 4, group: 16 } as const;
    const dequantized = dequantizedSource(source, layer, form);
    const whole = valuesOf(dequantized, layer, 'layer.weight');
    expect(whole).not.toEqual(valuesOf(source, layer, 'layer.weight'));
    for (const [first, length] of [
      [0, 1],
      [44, 47],
      [1000, 2000],
      [3464, 1],
    ] as const) {
      const part = new Float32Array(length);
      dequantized.read(layer.weight, first, part);
      expect(part).toEqual(whole.slice(first, first + length));
    }
    expect(valuesOf(dequantized, layer, 'layer.bias')).toEqual(
      valuesOf(source, layer, 'layer.bias'),
    );
  });

  it('must be finite, or the error names the tensor', () => {
    const layer = linear('layer', 4, 2);
    const source = {
      rangeOf: () => undefined,
      read: (_: unknown, __: number, to: Float32Array) => void to.fill(Number.NaN),
    };
    const [matrix] = quantizedMatrices(layer).values();
    if (!matrix) throw new Error('no matrix');
    const pieces = quantizedPieces(source, matrix, { bits: 8, group: 16 });
    expect(() => [...pieces]).toThrow(
      'cannot quantize layer.weight: expected finite values, found NaN',
    );
  });
});

describeWithOnnx('a quantized product', () => {
  it.each(
    FORMS.flatMap((form) =>
      [
        [64, 24],
        [50, 7],
        [513, 64],
        [7, 130],
        [256, 1],
      ].flatMap(([from = 0, to = 0]) =>
        [false, true].map((isTransposed) => ({ ...form, from, to, isTransposed })),
      ),
    ),
  )(
    'of $bits bits, groups of $group, [$from → $to], transposed: $isTransposed, is within the rounding of its input',
    async ({ from, to, isTransposed, ...form }) => {
      const layer = (isTransposed ? transposedLinear : linear)('layer', from, to);
      const source = randomWeights(layer, 1);
      const exact = dequantizedSource(source, layer, form);
      const weight = valuesOf(exact, layer, 'layer.weight');
      const bias = valuesOf(exact, layer, 'layer.bias');
      const x = Float32Array.from(
        { length: 3 * from },
        (_, at) => Math.sin(at * 1.7) * (1 + (at % 5)),
      );
      const program = await loaded(layer, source, { weightForm: form });
      const { output } = await program.run({ inputs: [{ shape: [1, 3, from], data: x }] });
      for (let row = 0; row < 3; row++) {
        for (let out = 0; out < to; out++) {
          let [sum, bound] = [bias[out] ?? 0, 0];
          for (let at = 0; at < from; at += form.group) {
            const end = Math.min(from, at + form.group);
            const part = x.subarray(row * from + at, row * from + end);
            // 127 steps from 0 to the largest value of a group; rounding errs by half a step.
            const half = part.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 254;
            for (let k = at; k < end; k++) {
              const value = (isTransposed ? weight[k * to + out] : weight[out * from + k]) ?? 0;
              sum += (x[row * from + k] ?? 0) * value;
              bound += half * Math.abs(value);
            }
          }
          const actual = output.data[row * to + out] ?? Number.NaN;
          expect(Math.abs(actual - sum)).toBeLessThanOrEqual(bound * 1.001 + 1e-5);
        }
      }
    },
  );
});

const tfjs = openTfjs({ threads: 1, backend: 'wasm' });
afterAll(async () => (await tfjs).close());

/** Logits of a model on ONNX Runtime. */
async function logits(
  model: LanguageModel,
  weights: WeightSource,
  ids: TokenIds,
  weightForm?: WeightForm,
): Promise<Values> {
  const program = await loaded(model, weights, { weightForm });
  const { output } = await program.run({ ids });
  await program.release();
  return output;
}

describeWithOnnx('a quantized model', () => {
  it.each(sampled(CASES, 4))(
    'gives the logits of its dequantized weights, up to 8-bit activations: %s',
    async (place) => {
      const { model, weights, ids } = await modelCase(place);
      for (const form of FORMS.slice(0, 2)) {
        const exact = await logits(model, dequantizedSource(weights, model, form), ids);
        const actual = await logits(model, weights, ids, form);
        expect(actual.shape).toEqual(exact.shape);
        const difference = normOf(actual.data.map((value, at) => value - (exact.data[at] ?? 0)));
        expect(difference / normOf(exact.data)).toBeLessThan(hasExperts(model) ? 0.5 : 0.05);
      }
    },
  );

  it.each(['hf/llama', 'hf/gpt2', 'hf/mixtral', 'hybrid/shared-lowrank-tied'])(
    'has the same values with TensorFlow.js: %s',
    async (place) => {
      const { model, weights, ids } = await modelCase(place);
      const form = { bits: 4, group: 32 } as const;
      const exact = await logits(model, dequantizedSource(weights, model, form), ids);
      const program = await (await tfjs).load(model, weights, { weightForm: form });
      const { output } = await program.run({ ids });
      await program.release();
      const difference = normOf(output.data.map((value, at) => value - (exact.data[at] ?? 0)));
      expect(difference / normOf(exact.data)).toBeLessThan(1e-5);
    },
  );

  it('counts every weight once, in fewer bytes', async () => {
    for (const place of [
      'hf/llama',
      'hf/llama-tied-rope3',
      'hf/mixtral',
      'hybrid/shared-lowrank-tied',
    ]) {
      const { model, weights } = await modelCase(place);
      const plain = await loaded(model, weights);
      const form = { bits: 4, group: 16 } as const;
      const packed = await loaded(model, weights, { weightForm: form });
      expect(packed.elements, place).toBe(plain.elements);
      const matrices = [...quantizedMatrices(model).values()];
      const saved = matrices.reduce((sum, { rows, columns }) => {
        const groups = Math.ceil(columns / form.group);
        const bytes = groups * 8 + groups * 4 + Math.ceil(groups / 2);
        return sum + rows * (4 * columns - bytes);
      }, 0);
      expect(packed.weightBytes, place).toBe(plain.weightBytes - saved);
    }
  });

  it('decodes step by step', async () => {
    const { model, weights, ids } = await modelCase('hybrid/shared-lowrank-tied');
    const form = { bits: 8, group: 32 } as const;
    const full = await logits(model, weights, ids, form);
    const program = await loaded(model, weights, {
      weightForm: form,
      decoding: { totalTokens: ids.tokens },
    });
    const half = ids.tokens >> 1;
    const partOf = (from: number, to: number): TokenIds => ({
      batch: 1,
      tokens: to - from,
      data: ids.data.slice(from, to),
    });
    const first = await program.run({ ids: partOf(0, half) });
    const next = await program.run({ ids: partOf(half, half + 1), state: first.state });
    const reference = full.data.subarray(
      half * (full.shape[2] ?? 0),
      (half + 1) * (full.shape[2] ?? 0),
    );
    const difference = normOf(next.output.data.map((value, at) => value - (reference[at] ?? 0)));
    expect(difference / normOf(reference)).toBeLessThan(0.03);
  });
});

/** Whether a model has experts. Rounding can choose another one when scores are nearly equal. */
const hasExperts = (model: LanguageModel) =>
  walk(model).some(({ layer }) => layer.kind === 'mixtureOfExperts');

describeWithOnnx('decoding with quantized weights', () => {
  it('uses the quantized projection for latents', async () => {
    const { model, weights, ids } = await modelCase('hf/deepseek-v2');
    const weightForm = { bits: 4, group: 32 } as const;
    const floats = await loaded(model, dequantizedSource(weights, model, weightForm));
    const expected = (await floats.run({ ids })).output.data;
    const stepwise = await loaded(model, weights, {
      weightForm,
      decoding: { totalTokens: ids.tokens },
    });
    const actual = (await stepwise.run({ ids })).output.data;
    const difference = actual.map((value, at) => value - (expected[at] ?? 0));
    // Products round their inputs to 8 bits: 2 %. With the projection in float32 it would be 11 %.
    expect(normOf(difference) / normOf(expected)).toBeLessThan(0.05);
  });
});
