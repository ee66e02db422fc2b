/** Follows the steps of docs/adding-a-layer.md in a copy of the source: all answers support the new layer kind. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onnxVersion } from '../src/engine/onnx/library.js';
import {
  applySteps,
  buildCopy,
  copyOfSource,
  readPage,
  runIn,
  typeErrorsIn,
} from './executed-pages.js';
import { isWhole } from './sampled.js';

const SIZES = { vocab: 96, hidden: 16, inner: 40, layers: 2, kernel: 3 };

let copy: string;
let config: string;
let touched: Set<string>;

beforeAll(async () => {
  copy = copyOfSource('test/engine', 'test/fixtures.ts');
  touched = applySteps(readPage('docs/adding-a-layer.md'), copy);
  await buildCopy(copy);
  config = path.join(copy, 'config.json');
  const { vocab, hidden, inner, layers, kernel } = SIZES;
  const model = {
    family: 'short_hyena',
    vocab_size: vocab,
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    conv_kernel: kernel,
    max_position_embeddings: 64,
  };
  fs.writeFileSync(config, JSON.stringify({ model }));
}, 60_000);

afterAll(() => fs.rmSync(copy, { recursive: true, force: true }), 60_000);

const answerOf = (...args: readonly string[]) => {
  const { status, stdout, stderr } = runIn(copy, [...args, '--json']);
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
};

describe('a layer kind made by docs/adding-a-layer.md', () => {
  it('touches at most eleven files', () => {
    expect([...touched].sort()).toEqual([
      'src/engine/onnx/compile.ts',
      'src/engine/onnx/layers/short-hyena.ts',
      'src/engine/tfjs/interpret.ts',
      'src/model/architecture/constructors/recurrent-layers.ts',
      'src/model/architecture/families.ts',
      'src/model/architecture/layer.ts',
      'src/model/architecture/models/short_hyena.ts',
      'src/model/budget/trace/trace.ts',
      'src/model/diagram/labels.ts',
      'src/model/operations/lower.ts',
      'test/engine/reference-engine.ts',
    ]);
  });

  it.runIf(isWhole)(
    'compiles',
    () => {
      const include = ['src', 'test/engine/reference-engine.ts'];
      expect(typeErrorsIn(copy, include)).toBe('');
    },
    300_000,
  );

  it('counts in parameters, FLOPs, saved activations and states', () => {
    const { vocab, hidden, inner, layers, kernel } = SIZES;
    const [batch, context] = [2, 32];
    const products = 3 * hidden * hidden + hidden * hidden;
    const layer = products + 3 * hidden + hidden + 3 * (hidden * kernel + hidden);
    const parameters = vocab * hidden + layers * (layer + 3 * hidden * inner + 2 * hidden) + hidden;
    const sizes = ['--batch', `${batch}`, '--context', `${context}`];
    const {
      parameters: counted,
      forwardFlops,
      inference,
      training,
    } = answerOf('profile', config, ...sizes);
    expect(counted.total.value).toBe(parameters);
    const rows = batch * context;
    const multiplied = products + 3 * hidden * inner + kernel * 3 * hidden;
    expect(forwardFlops.total.value).toBe(2 * rows * (layers * multiplied + hidden * vocab));
    const bytes = 2;
    const past = batch * layers * (kernel - 1) * 3 * hidden;
    expect(inference.state.total.value).toBe(bytes * past);
    // The input; q, k and v before and after the convolution; k · v and q · k · v.
    const saved = { part: 'mamba', bytes: { value: bytes * rows * layers * 9 * hidden } };
    expect(training.activations.parts).toContainEqual(
      expect.objectContaining({
        part: saved.part,
        bytes: expect.objectContaining(saved.bytes),
      }),
    );
  });

  it('is divided by channels among GPUs', () => {
    const fit = ['fit', config, '--for', 'training', '--context', '32', '--gpu', 'v100-32gb'];
    const onGpus = (gpus: string) => [...fit, '--gpus', gpus, '--tensor-parallel', gpus];
    answerOf(...onGpus('2'));
    const { status, stderr } = runIn(copy, onGpus('3'));
    expect(status).toBe(2);
    expect(stderr).toContain('the 16 channels of model.layers.0.mixer equally');
  });

  it.skipIf(onnxVersion() === undefined)(
    'computes the same in both engines and with a cache',
    () => {
      const { checks } = answerOf(
        'quick-test',
        config,
        '--quiet',
        '--cross-check',
        '--context',
        '16',
      );
      const passed = checks.map(({ check }: { check: string }) => check);
      expect(passed).toEqual(expect.arrayContaining(['causality', 'cache', 'cross-check']));
    },
  );
});
