import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { LanguageModel } from '../../../src/architecture/layer.js';
import { openOnnx } from '../../../src/runtime/onnx/engine.js';
import { INSTALL_COMMAND, onnxVersion } from '../../../src/runtime/onnx/library.js';
import { randomWeights } from '../../../src/runtime/random-weights.js';
import { inPackage, readJson } from '../../fixtures.js';
import { idsOf, modelOfConfig } from '../fixture-models.js';
import { describeWithOnnx, loaded } from './support.js';

const missing = () => {
  throw Object.assign(new Error("Cannot find module 'onnxruntime-node'"), {
    code: 'MODULE_NOT_FOUND',
  });
};

describe('when the library', () => {
  it('is not installed, says what installs it', async () => {
    expect(onnxVersion(missing)).toBeUndefined();
    await expect(openOnnx({ threads: 1, require: missing })).rejects.toMatchObject({
      code: 'system',
      message: expect.stringContaining('is not installed'),
      suggestion: expect.stringContaining(INSTALL_COMMAND),
    });
  });

  it('does not load, says why', async () => {
    const broken = (name: string) => {
      if (name.endsWith('package.json')) return { version: '1.2.3' };
      throw new Error('libonnxruntime.so.1: cannot open shared object file\nRequire stack: …');
    };
    await expect(openOnnx({ threads: 1, require: broken })).rejects.toMatchObject({
      code: 'system',
      message: 'ONNX Runtime does not load: libonnxruntime.so.1: cannot open shared object file',
    });
  });

  it('is installed by the command that the package itself asks for', () => {
    const { optionalDependencies } = readJson<{ optionalDependencies: Record<string, string> }>(
      'package.json',
    );
    expect(INSTALL_COMMAND).toContain(
      `onnxruntime-node@${optionalDependencies['onnxruntime-node']} `,
    );
    expect(readFileSync(inPackage('.npmrc'), 'utf8')).toContain('onnxruntime-node-install=skip');
  });
});

/** The library, as far as it is tried before a model is loaded. */
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
      'npm rebuild onnxruntime-node --onnxruntime-node-install=cuda12',
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
      'install the driver of a graphics card for Vulkan, Metal or Direct3D 12',
    ],
    ['webgpu', 'No Op registered for Neg', 'No Op registered for Neg', undefined],
  ] as const)('says why: %s, %s', async (provider, cause, why, suggestion) => {
    const opened = openOnnx({ threads: 1, provider, require: failing(cause) });
    await expect(opened).rejects.toMatchObject({
      code: 'system',
      message: `ONNX Runtime cannot use ${provider}: ${why}`,
      suggestion,
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
  it('says what it is', async () => {
    const { info, close } = await openOnnx({ threads: 2 });
    expect(info).toEqual({
      name: 'onnx',
      version: onnxVersion(),
      provider: 'cpu',
      device: 'cpu',
      threads: 2,
    });
    await close();
  });

  it('sends nothing to the makers of the library, and leaves no files', () => {
    expect(process.env.ORT_DISABLE_TELEMETRY).toBe('1');
  });

  it('takes any batch and any number of tokens, one program for all', async () => {
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
