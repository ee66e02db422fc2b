import { describe, expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import { readJson } from '../../fixtures.js';

interface ClassKeys {
  readonly class: readonly string[];
  readonly read: readonly string[];
}

const { families } = readJson<{ families: Record<FamilyName, ClassKeys> }>(
  'fixtures/config-keys.json',
);

describe.each(Object.entries(families))('%s', (name, keys) => {
  const usesOf = async (list: readonly string[]) => {
    const reader = (await loadFamily(name as FamilyName)).fromHuggingFace;
    return Object.fromEntries(list.map((key) => [key, reader?.useOf(key)]));
  };

  it('knows every key of its configuration class', async () => {
    const uses = await usesOf(keys.class);
    expect(keys.class.filter((key) => uses[key]?.use === 'unknown')).toEqual([]);
  });

  it('knows every key read by its model, or by the code for masks, caches and rotary positions', async () => {
    const uses = await usesOf(keys.read);
    expect(keys.read.filter((key) => uses[key]?.use === 'unknown')).toEqual([]);
  });

  it('has a reason for every key that it does not read', async () => {
    for (const use of Object.values(await usesOf(keys.class))) {
      if (use?.use === 'harmless' || use?.use === 'limited') expect(use.why).toMatch(/^[a-z_]/);
    }
  });
});
