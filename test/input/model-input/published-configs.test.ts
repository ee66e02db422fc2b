import { describe, expect, it } from 'vitest';
import { documentOfData } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { FAMILY_NAMES } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { inPackage, readJson } from '../../fixtures.js';

interface Published {
  readonly model: string;
  readonly total: number;
}

const place = (model: string) => ['fixtures/hf-configs', model, 'config.json'];

/** Parameters, with the buffers that publishers count, too. */
const countedBy = (model: LanguageModel): number =>
  tensorsOf(model)
    .filter(({ role, contested }) => role === 'buffer' && contested !== undefined)
    .reduce((sum, { elements }) => sum + elements, countParameters(model).parameters);

const isKnown = (model: string) => {
  const { model_type: kind } = readJson<{ model_type: string }>(...place(model));
  return FAMILY_NAMES.some((family) => family === kind);
};

const PUBLISHED: readonly Published[] = [
  ...readJson<Published[]>('fixtures/published-counts.json'),
  // huggingface.co/Qwen/Qwen2.5-72B: the total of its safetensors files.
  { model: 'qwen2.5-72b', total: 72_706_203_648 },
];

describe('a published config has the published number of parameters:', () => {
  it.each(PUBLISHED.filter(({ model }) => isKnown(model)))('$model', async ({ model, total }) => {
    const { model: described, warnings } = await loadModelFile(inPackage(...place(model)));
    expect(warnings).toEqual([]);
    expect(countedBy(described)).toBe(total);
  });
});

interface ClassCount extends Published {
  readonly config: Readonly<Record<string, unknown>>;
}

const { models } = readJson<{ models: readonly ClassCount[] }>('fixtures/class-counts.json');

describe('a published config has the number of parameters of its class in transformers:', () => {
  it.each(models)('$model', async ({ config, total }) => {
    const { model, warnings } = await modelOf(documentOfData(config, 'config.json'));
    expect(warnings).toEqual([]);
    expect(countParameters(model).parameters).toBe(total);
  });
});
