import { expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

it('runs on a build of the current sources', async () => {
  const { sourceHash, builtHash } = await import(inPackage('scripts/source-hash.js'));
  expect(builtHash()).toBe(sourceHash());
});
