/** Compares the memory of training steps in PyTorch (fixtures/training-memory) with the bounds. */
import { describe, expect, it } from 'vitest';
import { documentOfData } from '../../../src/config/document.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { readJson } from '../../fixtures.js';
import { fitSetting, H100 } from './settings.js';

interface MeasuredCase extends Pick<TrainingFitSetting, 'attention' | 'precision' | 'dropout'> {
  readonly model: Record<string, unknown>;
  readonly batch: number;
  readonly context: number;
  readonly recompute?: true;
  readonly micro_batches?: number;
  readonly holds_logits?: true;
  readonly scan?: 'table' | 'inputs' | 'loop';
  readonly measured: {
    readonly parameters: number;
    readonly kept: number;
    readonly forward: number;
    readonly backward: number;
    readonly update?: number;
  };
}

const { cases } = readJson<{ cases: Record<string, MeasuredCase> }>(
  'fixtures/training-memory/measured.json',
);

/** A processor has no driver and no allocator overhead, so this counts live tensors only. */
const PROCESSOR = { ...H100(1), gpu: { ...H100(1).gpu, kind: 'processor' } } as const;

async function fitOf(name: string, each: MeasuredCase) {
  const { model } = await modelOf(documentOfData(each.model, name));
  const { batch, context, micro_batches: microBatches = 1 } = each;
  const setting = fitSetting({
    cluster: PROCESSOR,
    microBatch: batch,
    context,
    precision: each.precision,
    attention: each.attention,
    dropout: each.dropout,
    recompute: each.recompute ? 'full' : 'none',
    globalBatchTokens: batch * context * microBatches,
  });
  const fit = fitTrainingMemory(model, setting);
  const [stage] = fit.stages;
  if (!stage) throw new Error('no stage');
  const unfused = fit.workspaceParts.find(({ part }) => part === 'unfused');
  return { fit, stage, unfused: unfused?.bytes.expected.value ?? 0 };
}

describe.each(Object.entries(cases))('%s', (name, each) => {
  const { measured } = each;
  const peak = Math.max(measured.forward, measured.backward, measured.update ?? 0);

  it('is within the bounds', async () => {
    const { fit, stage } = await fitOf(name, each);
    expect(stage.parameters.value).toBe(measured.parameters);
    expect(fit.total.lower.value).toBeLessThanOrEqual(peak);
    expect(fit.total.upper.value).toBeGreaterThanOrEqual(peak);
  });

  // Decays that a loop computes token by token have no gradients of all tokens at once.
  it.runIf(each.scan !== 'loop')('is within 15 % of the estimate', async () => {
    const { fit } = await fitOf(name, each);
    const ratio = fit.total.expected.value / peak;
    expect(ratio).toBeGreaterThan(0.85);
    expect(ratio).toBeLessThan(1.15);
    // Bounds that are far off are useless.
    expect(fit.total.upper.value).toBeLessThan(1.4 * peak);
    expect(fit.total.lower.value).toBeGreaterThan(0.5 * peak);
  });

  it.runIf(each.scan === 'loop')('is overestimated by at most 70 %', async () => {
    const { fit } = await fitOf(name, each);
    const ratio = fit.total.expected.value / peak;
    expect(ratio).toBeGreaterThan(1);
    expect(ratio).toBeLessThan(1.7);
    expect(fit.total.upper.value).toBeLessThan(1.9 * peak);
  });

  // With full recomputation, the activations inside a block appear only after the logits are freed.
  it.runIf(!each.recompute && !each.holds_logits)(
    'keeps activations within 10 % of the estimate',
    async () => {
      const { stage, unfused } = await fitOf(name, each);
      const ratio = (Number(stage.activations.total.value) + unfused) / measured.kept;
      expect(ratio).toBeGreaterThan(0.9);
      expect(ratio).toBeLessThan(1.1);
    },
  );
});

describe('the measured models', () => {
  it('cover at least 15 kinds', () => {
    const kinds = Object.values(cases).map(({ model }) =>
      String(model.model_type ?? (model.model as Record<string, unknown>).family),
    );
    expect(new Set(kinds).size).toBeGreaterThanOrEqual(15);
  });
});
