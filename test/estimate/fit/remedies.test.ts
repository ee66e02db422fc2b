import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitTraining } from '../../../src/estimate/fit/remedies/remedies.js';
import {
  fitTrainingMemory,
  isFitting,
} from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import type { Gpu } from '../../../src/estimate/hardware/gpu.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { DGX_H100, fitSetting, gptLike, H100 } from './settings.js';

const { usable: _, ...gpu } = H100(1).gpu;
const withMemory = (memoryBytes: number): Gpu => ({ ...gpu, memoryBytes });

const MODEL = gptLike({ n_positions: 2048, n_embd: 1024, n_head: 16, n_layer: 12 });

/** Names of the changed settings. The tokens of a step are set only to keep them as they were. */
const changed = ({ globalBatchTokens: _, ...flags }: Partial<TrainingFitSetting>) =>
  Object.keys(flags);

describe('remedies', () => {
  it('fit when computed anew, and the next larger setting does not', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.constantFrom(1, 2, 8),
        fc.constantFrom(1, 8, 64),
        (gigabytes, gpus, microBatch) => {
          const cluster = { ...H100(gpus), gpu: withMemory(gigabytes * 1e9) };
          const setting = fitSetting({ cluster, microBatch, context: 1024 });
          const { verdict, remedies, capacity } = fitTraining(MODEL, setting);
          for (const { flags, total } of remedies) {
            const anew = fitTrainingMemory(MODEL, { ...setting, ...flags });
            expect(anew.verdict).toBe('fits');
            expect(anew.total).toEqual(total);
            expect(total.upper.value).toBeLessThanOrEqual(capacity.value);
            if (verdict !== 'fits') continue;
            const next: Partial<TrainingFitSetting> = flags.context
              ? { context: flags.context + 1 }
              : { microBatch: (flags.microBatch ?? 0) + 1 };
            if ((next.context ?? 0) > MODEL.positions) continue;
            expect(fitTrainingMemory(MODEL, { ...setting, ...next }).verdict).not.toBe('fits');
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  it('start with options that cost nothing', () => {
    const setting = fitSetting({
      cluster: { ...H100(1), gpu: withMemory(24e9) },
      microBatch: 4,
      context: 2048,
    });
    const { verdict, remedies } = fitTraining(MODEL, setting);
    expect(verdict).not.toBe('fits');
    expect(remedies[0]?.change).toBe('fused attention');
    expect(remedies.length).toBeGreaterThan(2);
  });

  it('are minimal sets of changes, first those that do not change the training', () => {
    const setting = fitSetting({
      cluster: { ...H100(1), gpu: withMemory(14e9) },
      microBatch: 4,
      context: 2048,
    });
    const { remedies } = fitTraining(MODEL, setting);
    const names = remedies.map(({ flags }) => changed(flags));
    for (const [at, some] of names.entries()) {
      const fewer = names.filter(
        (each, other) => other !== at && each.every((name) => some.includes(name)),
      );
      expect(fewer).toEqual([]);
    }
    const changing = names.map((each) => each.includes('context') || each.includes('optimizer'));
    expect(changing).toEqual([...changing].sort());
    // Each without one of its changes does not fit.
    for (const { flags } of remedies) {
      for (const name of changed(flags)) {
        const without = Object.fromEntries(Object.entries(flags).filter(([key]) => key !== name));
        expect(fitTrainingMemory(MODEL, { ...setting, ...without }).verdict).not.toBe('fits');
      }
    }
  });

  it('keep the tokens per step', async () => {
    const { model } = await publishedConfig('llama-3.1-8b');
    const setting = fitSetting({ context: 8192, cluster: H100(8) });
    const { remedies, step } = fitTraining(model, setting);
    expect(step?.tokens.value).toBe(8 * 8192);
    expect(remedies.some(({ flags }) => flags.globalBatchTokens === 8 * 8192)).toBe(true);
    for (const { flags, tokensPerSecond } of remedies) {
      const anew = fitTraining(model, { ...setting, ...flags });
      expect(anew.step?.tokens.value).toBe(8 * 8192);
      expect(anew.step?.tokensPerSecond).toEqual(tokensPerSecond);
    }
  });

  it('divide the state before the layers where both are as fast', () => {
    const model = gptLike({ n_positions: 2048, n_embd: 4096, n_head: 32, n_layer: 32 });
    const setting = fitSetting({ cluster: DGX_H100(8), context: 2048, attention: 'fused' });
    const { verdict, remedies } = fitTraining(model, setting);
    expect(verdict).toBe('does not fit');
    const changes = remedies.map(({ change }) => change);
    const sharing = changes.findIndex((change) => change.includes('tensor parallelism'));
    expect(changes[0]).toMatch(/^ZeRO-\d$/);
    expect(sharing).toBeGreaterThan(0);
    // Stages that are far slower stay behind both.
    const stages = changes.findIndex((change) => change.includes('stages'));
    expect(stages === -1 || stages > sharing).toBe(true);
  });

  it('use no sequence parallelism where tensor parallelism is enough', async () => {
    const { model } = await publishedConfig('llama-3.1-8b');
    const setting = fitSetting({ context: 8192, cluster: H100(8) });
    const { remedies } = fitTraining(model, setting);
    const shared = remedies.filter(({ flags }) => flags.tensorParallel);
    expect(shared.length).toBeGreaterThan(0);
    for (const { flags } of shared) {
      const { sequenceParallel, ...without } = flags;
      const isEnough = isFitting(model, { ...setting, ...without });
      expect(sequenceParallel ?? false).toBe(!isEnough);
    }
  });

  it('combine several changes if needed', async () => {
    const { model } = await publishedConfig('llama-3.1-405b');
    const settings = { context: 8192, microBatch: 4, attention: 'plain' } as const;
    const setting = fitSetting({ ...settings, cluster: DGX_H100(256) });
    const { remedies } = fitTraining(model, setting);
    expect(remedies[0]?.flags.cluster).toBeUndefined();
    for (const { flags } of remedies) {
      expect(Object.keys(flags).length).toBeGreaterThan(2);
      expect(fitTrainingMemory(model, { ...setting, ...flags }).verdict).toBe('fits');
    }
  });

  it('are the fewest sufficient GPUs for a model that is far too large', async () => {
    const { model } = await publishedConfig('llama-3.1-405b');
    const setting = fitSetting({ context: 2048 });
    const { remedies } = fitTraining(model, setting);
    const flags: Partial<TrainingFitSetting> = remedies[0]?.flags ?? {};
    const gpus = flags.cluster?.gpus ?? 0;
    // 16 bytes of 405e9 parameters alone need 82 GPUs.
    expect(gpus).toBeGreaterThanOrEqual(128);
    expect(fitTrainingMemory(model, { ...setting, ...flags }).verdict).toBe('fits');
    const savings = { loss: 'chunked', recompute: 'full', attention: 'fused', zero: 3 } as const;
    for (const tensorParallel of [1, 2, 4, 8]) {
      for (const pipelineParallel of [1, 2, 4, 8, 16, 32, 64].filter(
        (stages) => stages * tensorParallel <= gpus / 2,
      )) {
        const spread = { tensorParallel, pipelineParallel, sequenceParallel: tensorParallel > 1 };
        const half = { ...setting, ...savings, ...spread, cluster: H100(gpus / 2) };
        expect(isFitting(model, half)).toBe(false);
      }
    }
  });

  it('are checked by isFitting, which agrees with the whole fit', () => {
    const settings = fc.record({
      gigabytes: fc.integer({ min: 1, max: 40 }),
      zero: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
      recompute: fc.constantFrom('none' as const, 'selective' as const, 'full' as const),
      optimizer: fc.constantFrom('adamw' as const, 'adamw-8bit' as const),
      loss: fc.constantFrom('full' as const, 'chunked' as const),
      microBatch: fc.constantFrom(1, 4, 16),
      tensorParallel: fc.constantFrom(1, 2),
      pipelineParallel: fc.constantFrom(1, 2, 4, 12),
      replicas: fc.constantFrom(1, 2, 8),
    });
    fc.assert(
      fc.property(settings, ({ gigabytes, replicas, ...settings }) => {
        const gpus = settings.tensorParallel * settings.pipelineParallel * replicas;
        const cluster = { ...H100(gpus), gpu: withMemory(gigabytes * 1e9) };
        const setting = fitSetting({ ...settings, context: 1024, cluster });
        const { verdict } = fitTrainingMemory(MODEL, setting);
        expect(isFitting(MODEL, setting)).toBe(verdict === 'fits');
      }),
      { numRuns: 100 },
    );
  });
});
