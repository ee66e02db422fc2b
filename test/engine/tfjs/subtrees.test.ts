import { beforeAll, describe, expect, it } from 'vitest';
import type { Engine, RunInput, TokenIds, Values } from '../../../src/engine/engine.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import type { HybridBlock, LanguageModel, Layer } from '../../../src/model/architecture/layer.js';
import { productsOf } from '../../../src/model/architecture/walk.js';
import { fixtureModel } from '../fixture-models.js';
import { largestDifference } from './support.js';

let engine: Engine;
beforeAll(async () => {
  engine = await openTfjs({ threads: 1, backend: 'wasm' });
});

/** A layer and its input in a run of the whole model. */
interface Given {
  readonly layer: Layer;
  readonly input: RunInput;
}

/** Layers of a model with their inputs, computed from the values of other layers. */
function layersWithInputs(
  model: LanguageModel,
  block: HybridBlock,
  ids: TokenIds,
  tap: (layer: Layer) => Values,
): Given[] {
  const { inputNorm, mamba, attention, srte, alignment, gate, fusion, mlp, outputNorm } = block;
  const x = tap(model.embedding);
  const [n, m, a, g] = [tap(inputNorm), tap(mamba), tap(attention), tap(gate)];
  const u = added(n, tap(srte));
  const z = alignment ? tap(alignment) : mapped(added(m, a), (value) => value / 2);
  const fused = combined([g, m, a], (gi = 0, mi = 0, ai = 0) => gi * mi + (1 - gi) * ai);
  const both = sideBySide(m, a);
  const [first, second, third] = mlp.layers as [Layer, Layer, Layer];
  const last = model.blocks.at(-1) ?? block;
  const given = (layer: Layer, ...inputs: Values[]): Given => ({ layer, input: { inputs } });
  return [
    { layer: model, input: { ids } },
    { layer: model.embedding, input: { ids } },
    { layer: srte, input: { tokens: ids.tokens } },
    given(block, x),
    given(inputNorm, x),
    given(mamba, u),
    given(mamba.inProj, u),
    given(mamba.conv, half(tap(mamba.inProj))),
    given(attention, n),
    ...productsOf(attention.inputs).map((each) => given(each, n)),
    given(gate, z),
    given(gate.down, mapped(tap(gate.up), Math.tanh)),
    given(fusion, fused),
    given(mlp, z),
    given(first, z),
    given(second, tap(first)),
    given(third, tap(second)),
    given(outputNorm, added(added(x, tap(fusion)), tap(mlp))),
    given(model.norm, tap(last)),
    given(model.head, tap(model.norm)),
    ...(alignment
      ? [given(alignment, m, a), given(alignment.net, both), given(alignment.residual, both)]
      : []),
  ];
}

const mapped = ({ shape, data }: Values, change: (value: number) => number): Values => ({
  shape,
  data: data.map(change),
});

function combined(
  [first, ...rest]: [Values, ...Values[]],
  join: (...values: number[]) => number,
): Values {
  return {
    shape: first.shape,
    data: first.data.map((value, at) => join(value, ...rest.map(({ data }) => data[at] ?? 0))),
  };
}

/** [B, T, H] and [B or 1, T, H]. */
const added = (a: Values, b: Values): Values => ({
  shape: a.shape,
  data: a.data.map((value, at) => value + (b.data[at % b.data.length] ?? 0)),
});

function sideBySide(a: Values, b: Values): Values {
  const [batch = 0, tokens = 0, width = 0] = a.shape;
  const rows = Array.from({ length: batch * tokens }, (_, row) => [
    ...a.data.subarray(row * width, (row + 1) * width),
    ...b.data.subarray(row * width, (row + 1) * width),
  ]);
  return { shape: [batch, tokens, 2 * width], data: Float32Array.from(rows.flat()) };
}

function half({ shape: [batch = 0, tokens = 0, width = 0], data }: Values): Values {
  const kept = data.filter((_, at) => at % width < width / 2);
  return { shape: [batch, tokens, width / 2], data: kept };
}

describe('a layer alone gives the same output as in the model:', () => {
  it.each([
    'shared-learnable',
    'no-alignment-pyramidal',
    'shared-lowrank-tied',
    'per-layer-sincos',
  ])('%s', async (name) => {
    const { model, weights, ids } = fixtureModel(name);
    const [block] = model.blocks;
    if (block?.kind !== 'hybridBlock') throw new Error('no block');
    const whole = await engine.load(model, weights, { taps: true });
    const { taps } = await whole.run({ ids });
    await whole.release();
    const tap = ({ name: path }: Layer) => {
      const value = taps.get(path);
      if (!value) throw new Error(`no tap of ${path}`);
      return value;
    };
    for (const { layer, input } of layersWithInputs(model, block, ids, tap)) {
      const program = await engine.load(layer, weights);
      const { output } = await program.run(input);
      await program.release();
      expect(output.shape, layer.name).toEqual(tap(layer).shape);
      expect(largestDifference(output.data, tap(layer).data), layer.name).toBeLessThan(2e-6);
    }
  });
});

describe('a run', () => {
  it('gives the output and the blocks, and taps only on request', async () => {
    const { model, weights, ids } = fixtureModel('shared-learnable');
    const program = await engine.load(model, weights);
    const { output, blocks, taps, state } = await program.run({ ids });
    await program.release();
    expect(output.shape).toEqual([2, 20, 97]);
    expect([...blocks.keys()]).toEqual(['layers.0', 'layers.1', 'layers.2']);
    expect(taps.size).toBe(0);
    expect(state).toBeUndefined();
  });

  it('gives a tap for every layer that computes a value', async () => {
    const { model, weights, ids } = fixtureModel('shared-lowrank-tied');
    const program = await engine.load(model, weights, { taps: true });
    const { taps } = await program.run({ ids });
    await program.release();
    expect(taps.get('')?.shape).toEqual([2, 20, 97]);
    expect(taps.get('shared_srte')?.shape).toEqual([1, 20, 32]);
    expect(taps.get('layers.2.mamba.conv1d')?.shape).toEqual([2, 20, 64]);
    expect(taps.has('layers.0.attention.rope')).toBe(false);
  });
});
