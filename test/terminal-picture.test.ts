import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

it('the terminal picture of the README shows the output of the program', () => {
  const script = inPackage('scripts/terminal-picture.js');
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
