/** Parameters of published models whose code is in their repositories, not in transformers. */
import { expect, it } from 'vitest';
import { isFamilyName, loadFamily } from '../../src/model/architecture/families.js';
import { tensorsOf } from '../../src/model/architecture/walk.js';
import { readJson } from '../fixtures.js';

interface Counted {
  readonly model: string;
  readonly total: number;
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
}

const { models } = readJson<{ models: readonly Counted[] }>('fixtures/remote-counts.json');

it.each(models)('$model has $total parameters', async ({ total, config }) => {
  const { model_type: kind } = config;
  if (!isFamilyName(kind)) return expect.unreachable();
  const family = await loadFamily(kind);
  const { settings = {}, remarks } = family.fromHuggingFace?.read(config) ?? {};
  expect(remarks?.filter(({ path }) => path[0] !== 'model_type')).toEqual([]);
  const document = family.schema.parse({ model: { family: kind, ...settings } });
  const tensors = tensorsOf(family.build(document)).filter(({ role }) => role === 'parameter');
  expect(tensors.reduce((sum, { elements }) => sum + elements, 0)).toBe(total);
});
