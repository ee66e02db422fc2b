import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

it('the picture of a terminal in the README shows what the program prints', () => {
  const script = inPackage('scripts/terminal-picture.js');
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
