import { expect, it } from 'vitest';
import { type CompiledGraph, compile } from '../../../src/engine/onnx/compile.js';
import { type Call, KeyCache, tensorFor } from '../../../src/engine/onnx/feeds.js';
import { loadLibrary, type OrtTensor } from '../../../src/engine/onnx/library.js';
import { PlacedWeights } from '../../../src/engine/onnx/placed-weights.js';
import { encodeModel, type GraphProto } from '../../../src/engine/onnx/proto.js';
import { casesToRun, familyCase } from '../family-cases.js';
import { fixtureModel } from '../fixture-models.js';
import { partOf } from '../sequences.js';
import { describeWithOnnx } from './support.js';

const CALLS = [4, 1, 2];

/** Values whose sizes ONNX Runtime cannot infer from their inputs. */
function reshaped({ nodes, initializers, outputs }: GraphProto): string[] {
  const inferred = new Set(
    initializers.flatMap(({ name, bytes }) => {
      const isShape = name.startsWith('ints:') && 'raw' in bytes;
      return isShape && !new BigInt64Array(bytes.raw.slice().buffer).includes(-1n) ? [name] : [];
    }),
  );
  return nodes.flatMap(({ op, inputs, outputs: [value = ''], attributes: { axis } }) => {
    const isUnknown =
      (op === 'Flatten' && axis === 2) || (op === 'Reshape' && !inferred.has(inputs[1] ?? ''));
    return isUnknown && !outputs.includes(value) ? [value] : [];
  });
}

/** Sizes of a call's values by their names in the declarations; more than one if a declaration is wrong. */
function sizesOf({ graph }: CompiledGraph, results: ReadonlyMap<string, OrtTensor>) {
  const sizes = new Map<string | number, Set<number | undefined>>();
  for (const { name, shape } of graph.sized) {
    const dims = results.get(name)?.dims;
    for (const [at, size] of shape.entries()) {
      if (size !== '') sizes.set(size, (sizes.get(size) ?? new Set()).add(dims?.[at]));
    }
  }
  return [...sizes];
}

describeWithOnnx('sizes of values between nodes', () => {
  it.each(casesToRun())('are declared correctly where they are unknown: %s', async (place) => {
    const hybrid = place.startsWith('hybrid/') && place.slice('hybrid/'.length);
    const { model, weights, ids } = hybrid ? fixtureModel(hybrid) : await familyCase(place);
    const placed = new PlacedWeights(weights);
    const total = CALLS.reduce((sum, tokens) => sum + tokens, 0);
    const compiled = compile(model, (...which) => placed.place(...which), {
      decoding: { totalTokens: total },
    });
    const { graph, feeds, states = new Map(), newRows } = compiled;
    const declared = new Set(graph.sized.map(({ name }) => name));
    expect(reshaped(graph).filter((value) => !declared.has(value))).toEqual([]);

    await placed.write();
    const library = loadLibrary();
    const outputs = [...new Set([...graph.outputs, ...declared])];
    const session = await library.InferenceSession.create(encodeModel({ ...graph, outputs }), {
      graphOptimizationLevel: 'disabled',
      intraOpNumThreads: 1,
      logSeverityLevel: 4,
      extra: { session: { model_external_initializers_file_folder_path: placed.root } },
    });
    const cache = new KeyCache(library, total);
    cache.reserve(total);
    let start = 0;
    let kept: ReadonlyMap<string, OrtTensor> = new Map();
    for (const tokens of CALLS) {
      const part = partOf(ids, start, start + tokens);
      const call: Call = {
        batch: ids.batch,
        tokens,
        start,
        total,
        ids: part,
        inputs: [],
        states: kept,
        cache,
      };
      const given = [...feeds].map(([name, feed]) => [name, tensorFor(library, name, feed, call)]);
      const results = new Map(Object.entries(await session.run(Object.fromEntries(given))));
      const wrong = sizesOf(compiled, results).filter(
        ([size, actual]) => actual.size !== 1 || (typeof size === 'number' && !actual.has(size)),
      );
      expect(wrong).toEqual([]);
      kept = new Map(
        [...states].map(([name, value]) => [name, results.get(value) as OrtTensor] as const),
      );
      for (const [name, value] of newRows) {
        const { dims = [], data } = results.get(value) ?? {};
        const rows = cache.rows(name, { from: start, to: start + tokens }, dims.slice(1));
        (rows.data as Float32Array).set(data as Float32Array);
      }
      start += tokens;
    }
    await session.release();
    placed.release();
  });
});
