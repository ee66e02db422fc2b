import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { documentOfData } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { inPackage } from '../../fixtures.js';

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

/** Far more than each takes: a few milliseconds. */
const MOST_SECONDS = 10;

describe('a config with a huge number', () => {
  it('has types, and keys for each', () => {
    expect(configs.size).toBeGreaterThan(60);
    expect([...configs.values()].flatMap(hugeConfigs).length).toBeGreaterThan(20 * configs.size);
  });

  // An array with an entry for each layer, stream or head would end the process.
  it.each([...configs.keys()])('of %s is read or refused at once', async (type) => {
    const config = configs.get(type) ?? {};
    for (const huge of hugeConfigs(config)) {
      const start = process.cpuUsage();
      await modelOf(documentOfData(huge, 'config.json')).catch((error: unknown) => {
        if (!(error instanceof UserError)) throw error;
      });
      expect(process.cpuUsage(start).user / 1e6).toBeLessThan(MOST_SECONDS);
    }
  });
});
