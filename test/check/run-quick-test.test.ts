import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CHECK_NAMES, type CheckName } from '../../src/check/checks.js';
import type { QuickTestRequest } from '../../src/check/run-quick-test.js';
import { quickTest, saveOutput } from '../../src/check/run-quick-test.js';
import { streamedTest } from '../../src/check/streamed.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { largestDifference } from '../../src/engine/compare/differences.js';
import { hybrid } from '../../src/model/architecture/models/hybrid.js';
import { fixtureModel, idsOf, modelOfConfig, valuesOf } from '../engine/fixture-models.js';
import type { Faults } from '../engine/reference-engine.js';
import { contextOf, TINY, withValue } from './test-contexts.js';

let folder = '';
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  fs.rmSync(folder, { recursive: true });
});

function request(changes: Partial<QuickTestRequest> = {}): QuickTestRequest {
  const document = hybrid.schema.parse({ model: TINY });
  return {
    family: hybrid,
    document,
    model: hybrid.build(document),
    weights: undefined,
    ids: undefined,
    seed: 1,
    repeats: 1,
    checks: ['created', 'forward', 'causality'],
    full: false,
    keepsOutput: false,
    engine: 'tfjs',
    device: 'cpu',
    compute: 'f32',
    threads: 1,
    watch: () => {},
    notice: () => {},
    ...changes,
  };
}

describe('a quick test', () => {
  it('reports the model, the engine and the results of the checks', async () => {
    const done: string[] = [];
    const { test, output } = await quickTest(request({ watch: (each) => done.push(each) }));
    expect(test).toMatchObject({
      mode: 'whole',
      twin: null,
      weights: 'random',
      ids: 'random',
      batch: 1,
      context: 32,
      seed: 1,
      engine: { name: 'tfjs' },
      selfCheck: { passed: true },
      checks: [
        { check: 'created', verdict: 'passed' },
        { check: 'forward', verdict: 'passed' },
        { check: 'causality', verdict: 'passed' },
      ],
      passed: true,
    });
    expect(test.memory.peakBytes).toBeGreaterThan(test.memory.startBytes);
    expect(test.memory.predictedBytes).toBe(test.memory.need.totalBytes);
    expect(output).toBeUndefined();
    expect(done).toEqual([
      'choosing an engine',
      '[1/3] created',
      '[2/3] forward',
      '[3/3] causality',
    ]);
  });

  it('fails when a check fails', async () => {
    const model = modelOfConfig(TINY);
    const weights = withValue('layers.0.mamba.D', 0, Number.NaN)(model);
    const { test } = await quickTest(request({ model, weights }));
    expect(test.passed).toBe(false);
    expect(test).toMatchObject({ weights: 'checkpoint', checks: [{}, { verdict: 'failed' }, {}] });
  });

  it('gives the logits of given ids', async () => {
    const { model, weights, ids, expected } = fixtureModel('shared-learnable');
    const { test, output } = await quickTest(
      request({ model, weights, ids, keepsOutput: true, checks: ['forward'] }),
    );
    expect(test).toMatchObject({ ids: 'given', batch: 2, context: 20 });
    const logits = expected.get('logits')?.data ?? new Float32Array(0);
    expect(largestDifference(output?.output.data ?? logits, logits)).toBeLessThan(2e-5);
    expect([...(output?.blocks.keys() ?? [])]).toEqual(['layers.0', 'layers.1', 'layers.2']);
  });

  it('refuses sizes together with ids', async () => {
    const ids = idsOf([[1, 2]]);
    await expect(quickTest(request({ ids, context: 2 }))).rejects.toThrow('--ids says already');
    await expect(quickTest(request({ ids, batch: 1 }))).rejects.toThrow('--ids says already');
  });

  it.each([false, true])('refuses more tokens than there is room for (full: %s)', async (full) => {
    await expect(quickTest(request({ batch: 1e9, full }))).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(
        /^1,000,000,000 × 32 tokens need [\d.]+ GB for activations, [\d.]+ GB with the weights; [\d.]+ GB is available$/,
      ),
      suggestion: 'write a smaller --batch or --context',
    });
  });

  it('runs a scaled-down proxy of a model that is too large', async () => {
    vi.spyOn(process, 'availableMemory').mockReturnValue(2 ** 30);
    const document = hybrid.schema.parse({ model: { num_heads: 4 } });
    const model = hybrid.build(document);
    const ids = idsOf([[50_000, 3, 1024]]);
    const { test } = await quickTest(
      request({ document, model, ids, checks: ['created', 'forward'] }),
    );
    expect(test).toMatchObject({ mode: 'twin', parameters: 13_822_468_096, passed: true });
    expect(test.twin?.parameters).toBeLessThan(10e6);
    expect(test.memory.need.totalBytes).toBeGreaterThan(55e9);
    expect(test.memory.predictedBytes).toBeLessThan(100e6);
  });

  it('refuses sizes that are too large even for a proxy', async () => {
    vi.spyOn(process, 'availableMemory').mockReturnValue(2 ** 30);
    const document = hybrid.schema.parse({ model: { num_heads: 16 } });
    const changes = { document, model: hybrid.build(document), context: 20_000 };
    await expect(quickTest(request(changes))).rejects.toThrow('1 × 20,000 tokens need ');
  });

  it('reports the peak memory at the end of the forward pass', async () => {
    const context = contextOf();
    expect(context.peakBytes).toBeUndefined();
    await context.base();
    expect(context.peakBytes).toBeGreaterThan(0);
    const before = context.peakBytes;
    const allocated = new Uint8Array(2 ** 28).fill(1);
    await context.forward(context.ids);
    expect([allocated.length, context.peakBytes]).toEqual([2 ** 28, before]);
  });

  it('refuses to save the output of a proxy before it runs', async () => {
    vi.spyOn(process, 'availableMemory').mockReturnValue(2 ** 30);
    const document = hybrid.schema.parse({ model: {} });
    const done: string[] = [];
    const changes = { document, model: hybrid.build(document), keepsOutput: true, context: 8 };
    await expect(
      quickTest(request({ ...changes, watch: (each) => done.push(each) })),
    ).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(
        /^--save requires the model itself, which needs more than \d+\.\d GB; \d+\.\d GB is available$/,
      ),
      suggestion: expect.stringContaining('--full'),
    });
    expect(done).toEqual(['choosing an engine']);
  });

  it('runs layer by layer on request', async () => {
    const { test } = await quickTest(request({ full: true }));
    expect(test).toMatchObject({ mode: 'streamed', passed: true });
    expect(test.memory.predictedBytes).toBeNull();
  });
});

describe('a model run layer by layer', () => {
  const streamed = (
    faults: Faults = {},
    weights?: ReturnType<typeof withValue>,
    roomFor: (rows: number) => boolean = () => true,
  ) => {
    const layers: string[] = [];
    const context = contextOf({ faults, batch: 2, ...(weights && { weights }) });
    return streamedTest(context, {
      checks: CHECK_NAMES,
      keepsBlocks: true,
      roomFor,
      watch: (layer) => layers.push(layer),
    }).then((test) => ({ ...test, layers, context }));
  };

  it('gives the results of the whole model', async () => {
    const { results, output, layers, context } = await streamed();
    expect(layers).toEqual(['embed_tokens', 'layers.0', 'layers.1', 'norm', 'lm_head']);
    const whole = await context.base();
    expect(largestDifference(output.output.data, whole.output.data)).toBeLessThan(1e-6);
    expect(output.output.shape).toEqual(whole.output.shape);
    for (const [name, value] of whole.blocks) {
      const own = output.blocks.get(name);
      expect(own?.shape).toEqual(value.shape);
      expect(largestDifference(own?.data ?? new Float32Array(0), value.data)).toBeLessThan(1e-6);
    }
    const verdicts = (verdict: string) =>
      results.filter((each) => each.verdict === verdict).map(({ check }) => check);
    const inOnePass = ['created', 'forward', 'causality', 'timing'];
    expect(verdicts('passed')).toEqual(inOnePass);
    expect(verdicts('skipped')).toEqual(CHECK_NAMES.filter((name) => !inOnePass.includes(name)));
    const byCheck = new Map(results.map((each) => [each.check, each]));
    expect(byCheck.get('timing')?.finding).toMatch(/^one pass of 5 × 16 tokens: /);
    // Shared tensors are loaded with each block, but counted once.
    expect(byCheck.get('created')).toMatchObject({
      finding:
        'the engine received 10,104 parameters, as described, in 5 layers one after the other',
      measure: { value: 10_104, limit: 10_104 },
    });
    const seconds = (check: CheckName) => byCheck.get(check)?.seconds ?? 0;
    expect(seconds('created')).toBeGreaterThan(seconds('forward'));
    expect(seconds('forward')).toBeGreaterThan(0);
    expect(seconds('cache')).toBe(0);
  });

  it('changes one token for each further row that fits in memory', async () => {
    const passes = ({ results }: Awaited<ReturnType<typeof streamed>>) =>
      results.filter(({ check }) => ['causality', 'timing'].includes(check));
    const [some] = passes(await streamed({}, undefined, (rows) => rows <= 1));
    expect(some?.finding).toBe('changing token 1 leaves earlier logits identical');
    expect(passes(await streamed({}, undefined, () => false))).toMatchObject([
      {
        verdict: 'skipped',
        finding: 'no memory for another row with a changed token',
      },
      { finding: expect.stringMatching(/^one pass of 2 × 16 tokens: /) },
    ]);
  });

  it('fails causality for logits that are not finite', async () => {
    const bad = withValue('layers.1.gate.u.weight', 3, Number.NaN);
    expect(await finding('causality', streamed({}, bad))).toMatchObject({
      verdict: 'failed',
      finding: expect.stringMatching(/logits are not finite: nothing to compare$/),
    });
  });

  const finding = async (check: string, planted: ReturnType<typeof streamed>) =>
    (await planted).results.find((each) => each.check === check);

  it('fails for the same faults as the whole model', async () => {
    expect(await finding('created', streamed({ copyShared: true }))).toMatchObject({
      verdict: 'failed',
      finding: expect.stringMatching(/^in layers.0, the engine received .* 120 more than/),
    });
    expect(await finding('causality', streamed({ noMask: true }))).toMatchObject({
      verdict: 'failed',
      finding: expect.stringMatching(
        /^tokens see later ones: changing token 1 changes logits from token 0/,
      ),
    });
    const bad = withValue('layers.1.gate.u.weight', 3, Number.NaN);
    expect(await finding('forward', streamed({}, bad))).toMatchObject({
      verdict: 'failed',
      remarks: [expect.stringMatching(/^the weight layers.1.gate.u.weight has 1 NaN among 16/)],
    });
  });
});

describe('the saved output', () => {
  it('has the logits and the output of every block', async () => {
    const { output, blocks } = await contextOf({ batch: 2 }).base();
    const file = path.join(folder, 'out.safetensors');
    await saveOutput(file, false, { output, blocks });
    const saved = openCheckpoint(file);
    expect([...saved.tensors].map(([name, { shape }]) => [name, shape])).toEqual([
      ['hidden.0', [2, 16, 8]],
      ['hidden.1', [2, 16, 8]],
      ['logits', [2, 16, 12]],
    ]);
    const logits = saved.tensors.get('logits');
    expect(logits && valuesOf(logits).data).toEqual(output.data);
    saved.close();
    await expect(saveOutput(file, false, { output, blocks })).rejects.toThrow('exists already');
  });
});
