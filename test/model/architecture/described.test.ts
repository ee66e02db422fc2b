/**
 * Types that are described and not run: names, shapes, counts and cache bytes of tiny models as their classes in
 * transformers build them (fixtures/described/make.py). MINIMIND_DESCRIBED_CASES names another folder of such files.
 */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { sumOfTensors } from '../../../src/model/architecture/equal-blocks.js';
import { loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { stateDictOf, walk } from '../../../src/model/architecture/walk.js';
import { stateOf } from '../../../src/model/budget/state.js';
import { inPackage } from '../../fixtures.js';

interface DescribedCase {
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
  readonly parameters: number;
  readonly tensors: Readonly<Record<string, readonly number[]>>;
  readonly tokens?: number;
  readonly cache_bytes?: number;
}

const FOLDER = process.env.MINIMIND_DESCRIBED_CASES ?? inPackage('fixtures', 'described');

const FILES = fs.readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

const caseIn = (file: string) =>
  JSON.parse(fs.readFileSync(path.join(FOLDER, file), 'utf8')) as DescribedCase;

async function modelOf({ config }: DescribedCase): Promise<LanguageModel> {
  const family = await loadFamily(config.model_type as Parameters<typeof loadFamily>[0]);
  const read = family.fromHuggingFace?.read(config);
  expect(read?.remarks.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(read?.remarks.filter(({ why }) => why === undefined)).toEqual([]);
  const model = { ...read?.settings, family: config.model_type };
  return family.build(family.schema.parse({ model }));
}

describe('types that are described and not run', () => {
  test.each(FILES)('%s: names, shapes and counts are those of the class', async (file) => {
    const given = caseIn(file);
    const model = await modelOf(given);
    const found = Object.fromEntries(
      stateDictOf(model).map(({ name, tensor }) => [name, tensor.shape]),
    );
    expect(found).toEqual(given.tensors);
    expect(sumOfTensors(model, ({ role, elements }) => (role === 'parameter' ? elements : 0))).toBe(
      given.parameters,
    );
    expect(walk(model).some(({ layer }) => layer.kind === 'described')).toBe(true);
  });

  const cached = FILES.filter((file) => caseIn(file).cache_bytes !== undefined);
  test.each(cached)('%s: the cache has the bytes of the class', async (file) => {
    const given = caseIn(file);
    const model = await modelOf(given);
    const { total } = stateOf(model, {
      batch: 1,
      context: given.tokens ?? 1,
      dtype: 'f32',
    });
    expect(Number(total.value)).toBe(given.cache_bytes);
  });
});
