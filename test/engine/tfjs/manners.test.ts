import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import { inPackage } from '../../fixtures.js';
import { familyCase } from '../family-cases.js';
import { fixtureModel, modelOfConfig } from '../fixture-models.js';
import { tf } from './support.js';

it('the engine frees each tensor as soon as possible', async () => {
  const { model, weights, ids } = fixtureModel('shared-lowrank-tied');
  const engine = await openTfjs({ threads: 1, backend: 'wasm' });
  const empty = tf.memory().numTensors;
  const program = await engine.load(model, weights, { taps: true, decoding: { totalTokens: 40 } });
  const loaded = tf.memory().numTensors;
  expect(loaded).toBeGreaterThan(empty);
  const { state } = await program.run({ ids });
  await program.run({ ids, state });
  expect(tf.memory().numTensors).toBe(loaded);
  await program.release();
  expect(tf.memory().numTensors).toBe(empty);
  const norm = await engine.load(model.norm, weights);
  const narrow = { shape: [1, 2, 3], data: new Float32Array(6) };
  // It fails during the run.
  await expect(norm.run({ inputs: [narrow] })).rejects.toThrow('implicit shape');
  await norm.release();
  expect(tf.memory().numTensors).toBe(empty);
  await engine.close();
});

it.each(['hf/deepseek-v3', 'hf/qwen2-moe', 'hf/gpt2', 'hf/bloom', 'hf/gemma3'])(
  'the engine frees the tensors of %s as soon as possible',
  async (place) => {
    const { model, weights, ids } = await familyCase(place);
    const engine = await openTfjs({ threads: 1, backend: 'wasm' });
    const empty = tf.memory().numTensors;
    const decoding = { totalTokens: 2 * ids.tokens };
    const program = await engine.load(model, weights, { taps: true, decoding });
    const loaded = tf.memory().numTensors;
    const { state } = await program.run({ ids });
    await program.run({ ids, state });
    expect(tf.memory().numTensors).toBe(loaded);
    await program.release();
    expect(tf.memory().numTensors).toBe(empty);
  },
);

it('the engine frees all tensors when the weights cannot be read', async () => {
  const { model, weights } = fixtureModel('shared-learnable');
  const engine = await openTfjs({ threads: 1, backend: 'wasm' });
  const empty = tf.memory().numTensors;
  let read = 0;
  const failing: WeightSource = {
    rangeOf: () => undefined,
    read(...parts) {
      if (read++ === 20) throw new Error('the disk is gone');
      weights.read(...parts);
    },
  };
  await expect(engine.load(model, failing)).rejects.toThrow('the disk is gone');
  expect(tf.memory().numTensors).toBe(empty);
});

it('the engine reads each tensor once, and counts the elements', async () => {
  const { model, weights } = fixtureModel('shared-lowrank-tied');
  const engine = await openTfjs({ threads: 1, backend: 'wasm' });
  const names: string[] = [];
  const counting: WeightSource = {
    rangeOf: () => undefined,
    read(tensor, first, target) {
      names.push(tensor.name);
      weights.read(tensor, first, target);
    },
  };
  const program = await engine.load(model, counting);
  expect(program.elements).toBe(119_616);
  expect(new Set(names).size).toBe(names.length);
  await program.release();
});

it('the engine refuses a model that exceeds the memory of wasm, before reading', async () => {
  const model = modelOfConfig({
    vocab_size: 50_432,
    hidden_size: 2048,
    num_layers: 8,
    num_heads: 16,
  });
  const engine = await openTfjs({ threads: 1, backend: 'wasm' });
  const unread: WeightSource = {
    rangeOf: () => undefined,
    read: () => expect.fail('it read a tensor'),
  };
  await expect(engine.load(model, unread)).rejects.toMatchObject({
    name: 'UserError',
    message: expect.stringMatching(
      /^the weights would take 7\.8 GiB of the memory of TensorFlow\.js's wasm backend, which ends at 4\.0 GiB$/,
    ),
  });
});

it.each(['wasm', 'cpu'])('the backend %s prints nothing and adds no listeners', (backend) => {
  const script = `
    const { openTfjs } = await import('./src/engine/tfjs/tfjs-engine.ts');
    const { fixtureModel } = await import('./test/engine/fixture-models.ts');
    const { model, weights, ids } = fixtureModel('shared-learnable');
    const engine = await openTfjs({ threads: 2, backend: '${backend}' });
    const program = await engine.load(model, weights);
    await program.run({ ids });
    await program.release();
    await engine.close();
    const listeners = ['uncaughtException', 'unhandledRejection'].map((event) => process.listenerCount(event));
    process.stdout.write(JSON.stringify({ provider: engine.info.provider, listeners }));
  `;
  const args = ['--no-warnings', '--import', 'tsx', '--input-type=module', '--eval', script];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: inPackage(),
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({ provider: backend, listeners: [0, 0] });
});
