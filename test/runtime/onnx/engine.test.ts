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

  it('refuses a provider that is not there', async () => {
    await expect(openOnnx({ threads: 1, provider: 'cuda' })).rejects.toMatchObject({
      code: 'system',
      message: 'ONNX Runtime finds no device for cuda',
    });
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
