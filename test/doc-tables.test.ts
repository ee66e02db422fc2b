import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

it('the tables of the documentation are those of the code', () => {
  const args = [inPackage('scripts/doc-tables.js'), '--check'];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
