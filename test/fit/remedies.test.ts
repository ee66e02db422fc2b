import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitTraining } from '../../src/fit/fit-training.js';
import { fitTrainingMemory } from '../../src/fit/training-memory.js';
import type { TrainingFitSetting } from '../../src/fit/training-setting.js';
import type { Gpu } from '../../src/hardware/gpu.js';
import { publishedConfig } from '../budget/published-models.js';
import { fitSetting, gptLike, H100 } from './settings.js';

const { gpu } = H100(1);
const withMemory = (memoryBytes: number): Gpu => ({ ...gpu, memoryBytes });

const MODEL = gptLike({ n_positions: 2048, n_embd: 1024, n_head: 16, n_layer: 12 });

describe('remedies', () => {
  it('all fit, by computing them anew; and what fits has room up to the next', () => {
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

  it('begin with what costs nothing', () => {
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

  it('of a model that is far too large take everything', async () => {
    const { model } = await publishedConfig('llama-3.1-405b');
    const { remedies } = fitTraining(model, fitSetting({ context: 2048 }));
    expect(remedies.length).toBeGreaterThan(0);
    const flags: Partial<TrainingFitSetting> = remedies[0]?.flags ?? {};
    expect(flags.zero).toBe(3);
    // 16 bytes of 405e9 parameters alone are 82 GPUs.
    expect(flags.cluster?.gpus).toBeGreaterThanOrEqual(128);
  });
});
