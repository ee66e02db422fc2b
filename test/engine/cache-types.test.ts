/** Keys and values that a cache rounds as llama.cpp does: both engines, and the error against a float cache. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CACHE_TYPES, type CacheType } from '../../src/base/tensor/dtype.js';
import { refuseCacheType } from '../../src/engine/cache-types.js';
import { Decoder } from '../../src/engine/decoder.js';
import type { Engine } from '../../src/engine/engine.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { openOnnx } from '../../src/engine/onnx/onnx-engine.js';
import { openTfjs } from '../../src/engine/tfjs/tfjs-engine.js';
import { randomWeights } from '../../src/engine/weights/weights.js';
import { loadModelFile } from '../../src/input/model-input/read-model-file.js';
import type { LanguageModel } from '../../src/model/architecture/layer.js';
import { folderOf } from '../checkpoint/temp-folder.js';
import { WIDE_CONFIGS } from '../convert/conversion/wide-models.js';
import { inPackage } from '../fixtures.js';

const TOKENS = Array.from({ length: 24 }, (_, index) => (index * 7) % 32);

const hasOnnx = onnxVersion() !== undefined;
let engines: { readonly onnx: Engine | undefined; readonly tfjs: Engine };
let model: LanguageModel;

beforeAll(async () => {
  engines = {
    onnx: hasOnnx ? await openOnnx({ threads: 1 }) : undefined,
    tfjs: await openTfjs({ threads: 1, backend: 'wasm' }),
  };
  const config = JSON.stringify({ ...WIDE_CONFIGS.llama, num_hidden_layers: 2 });
  ({ model } = await loadModelFile(folderOf({ 'config.json': config })));
});
afterAll(async () => {
  await engines.onnx?.close();
  await engines.tfjs.close();
});

/** Logits of all tokens, read in calls of different lengths. */
async function logits(
  engine: Engine | undefined,
  cacheType: CacheType | undefined,
): Promise<Float32Array> {
  if (engine === undefined) throw new Error('no engine');
  const program = await engine.load(model, randomWeights(model, 3), {
    blocks: false,
    decoding: { totalTokens: TOKENS.length, cacheType },
  });
  try {
    const decoder = new Decoder(program);
    const parts = [await decoder.append(TOKENS.slice(0, 16), 16)];
    for (const token of TOKENS.slice(16)) parts.push(await decoder.append([token]));
    return Float32Array.from(parts.flatMap(({ data }) => [...data]));
  } finally {
    await program.release();
  }
}

/** ‖a − b‖ / ‖a‖ */
function distance(a: Float32Array, b: Float32Array): number {
  let [squared, norm] = [0, 0];
  for (const [index, value] of a.entries()) {
    squared += (value - (b[index] ?? 0)) ** 2;
    norm += value ** 2;
  }
  return Math.sqrt(squared / norm);
}

describe('a cache', () => {
  it('in fewer bits has a larger error, about that of its type', async () => {
    const float = await logits(engines.tfjs, undefined);
    const errors: number[] = [];
    for (const type of CACHE_TYPES) errors.push(distance(float, await logits(engines.tfjs, type)));
    const [f16 = 0, q8 = 0, q4 = 0] = errors;
    expect(f16).toBeGreaterThan(1e-7);
    expect(f16).toBeLessThan(1e-3);
    expect(q8).toBeGreaterThan(4 * f16);
    expect(q8).toBeLessThan(0.01);
    expect(q4).toBeGreaterThan(5 * q8);
    expect(q4).toBeLessThan(0.2);
  });

  it.skipIf(!hasOnnx).each(CACHE_TYPES)('in %s is the same in both engines', async (type) => {
    const float = await logits(engines.tfjs, undefined);
    const [onnx, tfjs] = [await logits(engines.onnx, type), await logits(engines.tfjs, type)];
    // A value on the border between two codes can round to either.
    expect(distance(tfjs, onnx)).toBeLessThan(distance(float, tfjs) / 4);
  });

  it('is refused for heads that blocks do not divide, latents, and models without attention', async () => {
    const of = async (name: string) => (await loadModelFile(inPackage('fixtures/hf', name))).model;
    expect(() => refuseCacheType(model, 'q4_0')).not.toThrow();
    const llama = await of('llama');
    expect(() => refuseCacheType(llama, 'q8_0')).toThrow(/multiple of 32 values, found 8/);
    expect(() => refuseCacheType(llama, 'f16')).not.toThrow();
    const latents = await of('deepseek-v3');
    expect(() => refuseCacheType(latents, 'f16')).toThrow(/found latent attention \(MLA\)/);
    const differential = await of('diffllama-7-3');
    expect(() => refuseCacheType(differential, 'q8_0')).toThrow(/multiple of 32 values, found 4/);
  });
});
