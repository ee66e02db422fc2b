/** Models that differ in their vocabulary alone have their blocks in common; for the answers, this makes no difference. */
import fs from 'node:fs';
import { expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { inPackage } from '../../fixtures.js';

const HYBRID = 'configs/hybrid/tiny.yaml';
const MINIMIND = 'fixtures/minimind';
const VOCABULARIES = [96, 160];

/** The code that describes models, loaded anew: it remembers no blocks. */
async function describer() {
  vi.resetModules();
  const { locateModel } = await import('../../../src/input/model-input/locate.js');
  const { modelOf } = await import('../../../src/input/model-input/model-file.js');
  const { readConfig } = await import('../../../src/input/model-input/read-model-file.js');
  return async (file: string, vocabulary: number) => {
    const document = await readConfig(locateModel(file));
    return (await modelOf(document, { set: [`model.vocab_size=${vocabulary}`] })).model;
  };
}

const configsIn = (folder: string) =>
  fs
    .readdirSync(inPackage(folder))
    .map((name) => inPackage(`${folder}/${name}/config.json`))
    .filter((file) => fs.existsSync(file));

it('are one object for each family that has them, and equal to those built anew', async () => {
  const [first, second] = [await describer(), await describer()];
  const [before = 0, own = 0] = VOCABULARIES;
  let common = 0;
  for (const file of [inPackage(HYBRID), ...configsIn('fixtures/hf'), ...configsIn(MINIMIND)]) {
    try {
      const one = await first(file, before);
      const other = await first(file, own);
      if (one.blocks === other.blocks) common++;
      expect(JSON.stringify(other), file).toBe(JSON.stringify(await second(file, own)));
    } catch (error) {
      // Some families give the size of the vocabulary by another key, or a token beyond 96.
      if ((error as Error).name !== UserError.name) throw error;
    }
  }
  expect(common).toBeGreaterThan(100);
}, 120_000);

it('are other ones where any other setting differs', async () => {
  const describe = await describer();
  const { blocks } = await describe(inPackage(HYBRID), 96);
  const { modelOf } = await import('../../../src/input/model-input/model-file.js');
  const { readConfig } = await import('../../../src/input/model-input/read-model-file.js');
  const { locateModel } = await import('../../../src/input/model-input/locate.js');
  const document = await readConfig(locateModel(inPackage(HYBRID)));
  const wider = await modelOf(document, { set: ['model.vocab_size=96', 'model.gate_rank=8'] });
  expect(wider.model.blocks).not.toBe(blocks);
});
