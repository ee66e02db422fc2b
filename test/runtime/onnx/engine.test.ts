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

  it('refuses what is no input', async () => {
    const model = small();
    const program = await loaded(model, randomWeights(model, 1));
    await expect(program.run({ ids: idsOf([[]]) })).rejects.toMatchObject({ code: 'usage' });
    await expect(
      program.run({
        ids: idsOf([
          [1, 2],
          [3, 10],
        ]),
      }),
    ).rejects.toMatchObject({
      code: 'usage',
      message: 'token 10 (row 1, position 1) is not in a vocabulary of 10',
    });
    await expect(program.run({ tokens: 3 })).rejects.toThrow('takes token ids');
    const short = { batch: 2, tokens: 3, data: new Int32Array(5) };
    await expect(program.run({ ids: short })).rejects.toThrow('5 token ids for 2 × 3');
  });

  it('refuses a state that is not its own, and more tokens than were announced', async () => {
    const model = small();
    const decoding = { totalTokens: 4 };
    const [one, other] = [
      await loaded(model, randomWeights(model, 1), { decoding }),
      await loaded(model, randomWeights(model, 1), { decoding }),
    ];
    const ids = idsOf([[1, 2, 3]]);
    const { state } = await one.run({ ids });
    await expect(other.run({ ids, state })).rejects.toThrow('another program');
    await expect(one.run({ ids, state })).rejects.toThrow('6 tokens where 4 were announced');
    const pair = idsOf([[1], [2]]);
    await expect(one.run({ ids: pair, state })).rejects.toThrow('a batch of 2 after one of 1');
    // A state is a value: the same one can be continued from again.
    const next = idsOf([[4]]);
    const [a, b] = [await one.run({ ids: next, state }), await one.run({ ids: next, state })];
    expect(a.output).toEqual(b.output);
  });

  it('runs no more once it is released', async () => {
    const model = small();
    const engine = await openOnnx({ threads: 1 });
    const program = await engine.load(model, randomWeights(model, 1));
    await program.release();
    await program.release();
    await expect(program.run({ ids: idsOf([[1]]) })).rejects.toThrow('has been released');
    await engine.close();
  });
});
