import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { fitTraining } from '../../../src/estimate/fit/remedies/remedies.js';
import { stepTimeOf } from '../../../src/estimate/fit/training/step-time.js';
import { fitTrainingMemory } from '../../../src/estimate/fit/training/training-memory.js';
import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { LimitError } from '../../../src/model/architecture/param.js';
import { presetsOf } from '../../../src/model/architecture/presets.js';
import { inPackage } from '../../fixtures.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { sampled } from '../../sampled.js';
import { DGX_H100, fitSetting, H100 } from './settings.js';

const SETTINGS: readonly Partial<TrainingFitSetting>[] = [
  { cluster: H100(1) },
  { cluster: DGX_H100(64), zero: 3, recompute: 'full', attention: 'fused', trainTokens: 1e12 },
  {
    cluster: DGX_H100(16),
    zero: 1,
    tensorParallel: 2,
    sequenceParallel: true,
    pipelineParallel: 2,
    recompute: 'selective',
    convention: 'megatron',
    dropout: true,
  },
];

/** Settings without a search for remedies: among 61 blocks of 256 experts it takes too long. */
const SLOW: Readonly<Record<string, Partial<TrainingFitSetting>>> = {
  'published deepseek_v3': SETTINGS[1] ?? {},
};

/** Families whose remedies were searched. This takes far longer than the rest, so it runs once for each family. */
const searched = new Set<string>();

function check({ family, model }: { family: string; model: LanguageModel }, context: number) {
  const isNew = !searched.has(family);
  searched.add(family);
  for (const changes of SETTINGS) {
    const setting = fitSetting({ ...changes, context });
    try {
      const fit =
        isNew && changes !== SLOW[family]
          ? fitTraining(model, setting)
          : memoryAndTime(model, setting);
      expect(fit.total.lower.value).toBeLessThanOrEqual(fit.total.expected.value);
      expect(fit.total.expected.value).toBeLessThanOrEqual(fit.total.upper.value);
      expect(fit.step?.seconds.lower.value).toBeGreaterThan(0);
      if (fit.verdict === 'fits') {
        expect(fit.total.upper.value).toBeLessThanOrEqual(fit.capacity.value);
      }
      for (const { total } of 'remedies' in fit ? fit.remedies : []) {
        expect(total.upper.value).toBeLessThanOrEqual(fit.capacity.value);
      }
    } catch (error) {
      // Some models have heads that two GPUs cannot share.
      if (!(error instanceof UserError)) throw error;
      expect(error.message).toMatch(/^--(tensor|pipeline)-parallel: /);
    }
  }
}

/** Memory and time, without remedies. */
function memoryAndTime(model: LanguageModel, setting: TrainingFitSetting) {
  const memory = fitTrainingMemory(model, setting);
  return { ...memory, step: stepTimeOf(model, setting, memory.stages) };
}

describe('every preset', () => {
  it.each(sampled(FAMILY_NAMES, 4))('%s is reported', { timeout: 60_000 }, async (name) => {
    const { schema, build } = await loadFamily(name);
    for (const { document } of presetsOf(name)) {
      try {
        const model = build(schema.parse(document));
        check({ family: name, model }, Math.min(128, model.positions));
      } catch (error) {
        if (!(error instanceof LimitError)) throw error;
      }
    }
  });
});

describe('every published config', async () => {
  const names = await readdir(inPackage('fixtures/hf-configs'));
  it.each(sampled(names, 4))('%s is reported', { timeout: 120_000 }, async (name) => {
    const { family, model } = await publishedConfig(name);
    check({ family: `published ${family.name}`, model }, Math.min(2048, model.positions));
  });
});
