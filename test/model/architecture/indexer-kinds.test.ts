import { expect, it } from 'vitest';
import { documentOfData } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { readJson } from '../../fixtures.js';

const { layer_types: _, ...config } = readJson<Record<string, unknown>>(
  'fixtures/hf/glm_moe_dsa-7-11/config.json',
);

/** Names of the tensors of a model with six layers and these settings of its indexers. */
async function tensorNames(settings: Record<string, unknown>): Promise<string[]> {
  const lists = Object.fromEntries(
    Object.entries(config).filter(([, value]) => !Array.isArray(value)),
  );
  const document = documentOfData({ ...lists, num_hidden_layers: 6, ...settings }, 'config.json');
  const { model } = await modelOf(document);
  return tensorsOf(model).map(({ name }) => name);
}

it.each([
  [{ index_topk_freq: 3, index_skip_topk_offset: 2 }, 'FFSSFS'],
  [{ index_topk_freq: 3, index_skip_topk_offset: 1 }, 'FSSFSS'],
  [{ index_topk_freq: 2, index_skip_topk_offset: 4 }, 'FFFFSF'],
])('the layers with an indexer follow from %j', async (settings, pattern) => {
  const indexer_types = [...pattern].map((each) => (each === 'F' ? 'full' : 'shared'));
  const expected = await tensorNames({ indexer_types });
  expect(expected.some((name) => name.includes('indexer'))).toBe(true);
  expect(await tensorNames({ indexer_types: null, ...settings })).toEqual(expected);
  expect(await tensorNames({ indexer_types: null, index_topk_pattern: pattern })).toEqual(expected);
});
