import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  MISTAKE_NAMES,
  PLAN_CHECKS,
} from '../../../src/estimate/training/mistakes/find-mistakes.js';
import { planTraining, trainingMistakes } from '../../../src/estimate/training/plan-training.js';
import { trainingSettings } from '../../../src/estimate/training/training-settings.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { inPackage } from '../../fixtures.js';

const FOLDER = 'fixtures/training';

const namesIn = (folder: string) =>
  fs.readdirSync(inPackage(`${FOLDER}/${folder}`)).map((file) => file.replace(/\.yaml$/, ''));

async function planOf(file: string) {
  const { model, document, warnings } = await loadModelFile(inPackage(`${FOLDER}/${file}.yaml`));
  expect(warnings).toEqual([]);
  const settings = trainingSettings(document);
  return { model, settings, mistakes: trainingMistakes(model, { settings }) };
}

describe('training mistakes', () => {
  const planted = namesIn('mistakes');

  it('are planted in files for every check', () => {
    expect(planted.length).toBeGreaterThanOrEqual(20);
    const missing = MISTAKE_NAMES.filter((name) => !planted.some((file) => file.startsWith(name)));
    expect(missing).toEqual([]);
  });

  it.each(planted)('are found only by their own check: %s', async (file) => {
    const { mistakes } = await planOf(`mistakes/${file}`);
    expect(mistakes).toHaveLength(1);
    const [mistake] = mistakes;
    // A file is named after its check, possibly with another word.
    expect(`${file}-`).toContain(`${mistake?.check}-`);
    expect(mistake?.reason).toMatch(/\S/);
    expect(mistake?.fix).toMatch(/\S/);
    expect(PLAN_CHECKS[mistake?.check ?? 'contradiction'].title).toBe(mistake?.title);
  });

  it.each(namesIn('good'))('are not found in a good config: %s', async (file) => {
    const { mistakes, model, settings } = await planOf(`good/${file}`);
    expect(mistakes).toEqual([]);
    expect(planTraining(model, { settings }).size.steps).toBeGreaterThan(1000);
  });

  it.each<[key: string, usual: readonly number[], unusual: readonly number[]]>([
    ['beta1', [0.5, 0.98], [0.499, 0.981]],
    ['beta2', [0.9, 0.9999], [0.899, 0.99991]],
    ['weight_decay', [1], [1.001]],
  ])('do not include a usual %s', async (key, usual, unusual) => {
    const [file = ''] = namesIn('good');
    const { model, settings } = await planOf(`good/${file}`);
    const namesWith = (value: number) =>
      trainingMistakes(model, {
        settings: { ...settings, values: { ...settings.values, [key]: value } },
      }).map(({ check }) => check);
    const check = `${key.replace('_', '-')}-out-of-range`;
    for (const value of usual) expect(namesWith(value), `${value}`).not.toContain(check);
    for (const value of unusual) expect(namesWith(value), `${value}`).toContain(check);
  });

  it('are reported with the key of the file', async () => {
    const { mistakes } = await planOf('mistakes/contradiction');
    expect(mistakes[0]?.reason).toContain('grad_clip');
  });
});
