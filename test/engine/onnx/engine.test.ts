import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { DeviceLostError } from '../../../src/engine/engine.js';
import {
  CUDA_COMMAND,
  INSTALL_COMMAND,
  type Library,
  onnxVersion,
  type Require,
  type Session,
} from '../../../src/engine/onnx/library.js';
import { openOnnx } from '../../../src/engine/onnx/onnx-engine.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { readJson } from '../../fixtures.js';
import { idsOf, modelOfConfig } from '../fixture-models.js';
import { describeWithOnnx, loaded } from './support.js';

const missing = () => {
  throw Object.assign(new Error("Cannot find module 'onnxruntime-node'"), {
    code: 'MODULE_NOT_FOUND',
  });
};

describe('the library', () => {
  it('gives the command that installs it when it is missing', async () => {
    expect(onnxVersion(missing)).toBeUndefined();
    await expect(openOnnx({ threads: 1, require: missing })).rejects.toMatchObject({
      code: 'system',
      message: expect.stringContaining('is not installed'),
      suggestion: expect.stringContaining(INSTALL_COMMAND),
    });
  });

  it('gives the reason when it does not load', async () => {
    const broken = (name: string) => {
      if (name.endsWith('package.json')) return { version: '1.2.3' };
      throw new Error('libonnxruntime.so.1: cannot open shared object file\nRequire stack: …');
    };
    await expect(openOnnx({ threads: 1, require: broken })).rejects.toMatchObject({
      code: 'system',
      message: 'it does not load: libonnxruntime.so.1: cannot open shared object file',
    });
  });

  it('is installed by this command in the version of package.json', () => {
    const { peerDependencies } = readJson<{ peerDependencies: Record<string, string> }>(
      'package.json',
    );
    expect(INSTALL_COMMAND).toBe(
      `npm install --no-save --ignore-scripts onnxruntime-node@${peerDependencies['onnxruntime-node']}`,
    );
    expect(CUDA_COMMAND).toMatch(
      /^node \S*node_modules\/onnxruntime-node\/script\/install\.js --onnxruntime-node-install=cuda12$/,
    );
  });
});

/** The part of the library that is tried before a model is loaded. */
const failing = (message: string) => () => ({
  env: { versions: { node: '1.30.0' } },
  InferenceSession: { create: () => Promise.reject(new Error(message)) },
});

describe('a provider that cannot be used', () => {
  it.each([
    [
      'cuda',
      'OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library',
      'its files for CUDA are not installed, or CUDA 12 and cuDNN 9 are not (Failed to load shared library)',
      CUDA_COMMAND,
    ],
    [
      'cuda',
      'CUDA failure 100: no CUDA-capable device is detected ; GPU=-1\nmore',
      'it finds no NVIDIA graphics card that it can use (CUDA failure 100: no CUDA-capable device is detected ; GPU=-1)',
      'install the driver of an NVIDIA graphics card, CUDA 12 and cuDNN 9',
    ],
    [
      'webgpu',
      '/onnxruntime/core/providers/webgpu/webgpu_context.cc:136 Initialize(const Config&)::<lambda()> adapter_result.status == Success was false. Failed to get a WebGPU adapter: No supported adapters\n',
      'it finds no graphics card (Failed to get a WebGPU adapter: No supported adapters)',
      'install the driver of a graphics card, with Vulkan on Linux: as in apt install mesa-vulkan-drivers',
    ],
    ['webgpu', 'No Op registered for Neg', 'No Op registered for Neg', undefined],
  ] as const)('gives the reason: %s, %s', async (provider, cause, reason, suggestion) => {
    const opened = openOnnx({ threads: 1, provider, require: failing(cause) });
    await expect(opened).rejects.toMatchObject({
      code: 'system',
      message: `ONNX Runtime cannot use ${provider}: ${reason}`,
      suggestion,
    });
  });
});

/** The library, whose sessions fail from their second run on and when they are released. */
function losing(message: string): Require {
  const require = createRequire(import.meta.url);
  const library = require('onnxruntime-node') as Library;
  const create = async (...args: Parameters<Library['InferenceSession']['create']>) => {
    const session = await library.InferenceSession.create(...args);
    let runs = 0;
    return {
      run: async (feeds: Parameters<Session['run']>[0]) => {
        if (runs++ > 0) throw new Error(message);
        return session.run(feeds);
      },
      release: async () => {
        await session.release();
        throw new Error(message);
      },
    };
  };
  return () => ({ ...library, env: library.env, InferenceSession: { create } });
}

describeWithOnnx('a lost device', () => {
  it.each([
    'WebGPU device lost (1): A valid external Instance reference no longer exists.',
    'CUDA failure 700: an illegal memory access was encountered ; GPU=0',
    'D3D12 removed: DXGI_ERROR_DEVICE_HUNG',
  ])('is reported as such, and closing gives no further error: %s', async (message) => {
    const model = small();
    const ids = { batch: 1, tokens: 2, data: Int32Array.of(1, 2) };
    const engine = await openOnnx({ threads: 1, require: losing(message) });
    const program = await engine.load(model, randomWeights(model, 1));
    await program.run({ ids });
    const error = await program.run({ ids }).catch((each) => each);
    expect(error).toBeInstanceOf(DeviceLostError);
    expect(error).toMatchObject({
      code: 'system',
      message: 'cannot run the model: the graphics card went away',
      suggestion: 'run again; --device cpu needs none',
    });
    await program.release();
    await engine.close();
  });

  it('is not reported for other errors', async () => {
    const model = small();
    const ids = { batch: 1, tokens: 2, data: Int32Array.of(1, 2) };
    const engine = await openOnnx({ threads: 1, require: losing('std::bad_alloc') });
    const program = await engine.load(model, randomWeights(model, 1));
    await program.run({ ids });
    const error = await program.run({ ids }).catch((each) => each);
    expect(error).not.toBeInstanceOf(DeviceLostError);
    expect(error).toMatchObject({
      code: 'system',
      message: 'cannot run the model: there is not enough memory',
    });
  });
});

const small = (): LanguageModel =>
  modelOfConfig({
    vocab_size: 10,
    hidden_size: 8,
    num_layers: 1,
    num_heads: 2,
    window_size: 4,
    gate_rank: 2,
    max_position_embeddings: 16,
  });

describeWithOnnx('the engine', () => {
  it('reports its name, version and device', async () => {
    const { info, close } = await openOnnx({ threads: 2 });
    expect(info).toEqual({
      name: 'onnx',
      version: onnxVersion(),
      provider: 'cpu',
      device: 'cpu',
      deviceKind: 'cpu',
      isSoftware: false,
      memoryBytes: null,
      threads: 2,
      compute: 'f32',
    });
    await close();
  });

  it('disables the telemetry of the library', () => {
    expect(process.env.ORT_DISABLE_TELEMETRY).toBe('1');
  });

  it('accepts any batch and number of tokens in one program', async () => {
    const model = small();
    const program = await loaded(model, randomWeights(model, 1));
    for (const [batch, tokens] of [
      [1, 1],
      [3, 5],
      [2, 16],
    ] as const) {
      const ids = idsOf(
        Array.from({ length: batch }, () => Array.from({ length: tokens }, () => 1)),
      );
      const { output, blocks } = await program.run({ ids });
      expect(output.shape).toEqual([batch, tokens, 10]);
      expect(blocks.get('layers.0')?.shape).toEqual([batch, tokens, 8]);
    }
  });
});
