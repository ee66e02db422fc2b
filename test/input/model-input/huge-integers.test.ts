import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { documentOfData } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { inPackage } from '../../fixtures.js';
import { isWhole } from '../../sampled.js';

type Config = Readonly<Record<string, unknown>>;

/** The first config of each model type. */
const configs = new Map<unknown, Config>();
for (const name of fs.readdirSync(inPackage('fixtures/hf'))) {
  const file = inPackage('fixtures/hf', name, 'config.json');
  if (!fs.existsSync(file)) continue;
  const config: Config = JSON.parse(fs.readFileSync(file, 'utf8'));
  if (!configs.has(config.model_type)) configs.set(config.model_type, config);
}

/** Configs with one huge number, and with nothing but huge numbers. */
function hugeConfigs(config: Config): Config[] {
  const keys = Object.keys(config).filter((key) => Number.isInteger(config[key]));
  return [2 ** 31, 1e15].flatMap((huge) => [
    ...keys.map((key) => ({ ...config, [key]: huge })),
    { ...config, ...Object.fromEntries(keys.map((key) => [key, huge])) },
  ]);
}

/** The config with the defaults in place of its lists, whose lengths would refuse other numbers of layers. */
const withoutLists = (config: Config): Config =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => !Array.isArray(value)));

/** Whether the config has a list with entries for layers or the like; the names of classes are no such list. */
const hasLists = (config: Config): boolean =>
  Object.entries(config).some(([key, value]) => key !== 'architectures' && Array.isArray(value));

/** Keys that published files have, and saved ones lack, with what makes a list of them. */
const OTHER_KEYS: Readonly<Record<string, Config>> = {
  kimi_linear: {
    layer_types: null,
    linear_attn_config: { full_attn_layers: [2], kda_layers: [1, 3], head_dim: 6, num_heads: 3 },
  },
  glm_moe_dsa: { indexer_types: null, index_topk_freq: 2 },
  minimax: { head_dim: 2, num_key_value_heads: 1 },
};

/** Far more than each takes: a few milliseconds. */
const MOST_SECONDS = 10;

describe('a config with a huge number', () => {
  it('of a layer in a list is refused', async () => {
    const lists = { full_attn_layers: [2], kda_layers: [1, 3, 1e15] };
    const config = { ...configs.get('kimi_linear'), layer_types: null, linear_attn_config: lists };
    await expect(modelOf(documentOfData(config, 'config.json'))).rejects.toThrow(UserError);
  });

  it('has types, and keys for each', () => {
    expect(configs.size).toBeGreaterThan(60);
    expect([...configs.values()].flatMap(hugeConfigs).length).toBeGreaterThan(20 * configs.size);
  });

  // An array with an entry for each layer, stream or head would end the process.
  it.each([...configs.keys()])('of %s is read or refused at once', async (type) => {
    const config = configs.get(type) ?? {};
    const others = OTHER_KEYS[String(type)];
    const spellings = [
      config,
      ...(isWhole || hasLists(config) ? [withoutLists(config)] : []),
      ...(others ? [{ ...config, ...others }] : []),
    ];
    for (const huge of spellings.flatMap(hugeConfigs)) {
      const start = process.cpuUsage();
      await modelOf(documentOfData(huge, 'config.json')).catch((error: unknown) => {
        if (!(error instanceof UserError)) throw error;
      });
      expect(process.cpuUsage(start).user / 1e6).toBeLessThan(MOST_SECONDS);
    }
  });
});
