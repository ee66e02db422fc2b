import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

/** Models of every kind. */
const CONFIGS = [
  'configs/hybrid/original.yaml',
  'configs/hybrid/tiny.yaml',
  'configs/minimind/minimind2-moe.yaml',
  'configs/minigpt/minigpt-large.yaml',
  'fixtures/hf-configs/deepseek-v3-main',
  'fixtures/hybrid/shared-lowrank-tied',
];

/** Commands whose default answer fits on one screen. */
const COMMANDS: readonly string[][] = [
  ...CONFIGS.flatMap((file) => [
    ['profile', file],
    ['fit', file],
    ['fit', file, '--gpu', 'rtx-4090'],
    ['fit', file, '--gpu', 'h100-80gb', '--gpus', '8', '--users', '50'],
    ['rope', file],
    ['compare', file, 'configs/hybrid/shared.yaml'],
  ]),
  ['compare', ...CONFIGS.slice(0, 4)],
  ['compare', ...CONFIGS, '--set', 'model.num_layers=2,4,6'],
  ['compare-srte', 'configs/hybrid/original.yaml'],
  ['compare-srte', 'configs/hybrid/tiny.yaml', '--presets', '--tie'],
  ['plan', '--max-params', '26M', '--vocab', '6400'],
  ['plan', '--max-params', '7B', '--family', 'hybrid', '--gpu', 'l4'],
  ['list'],
  ['list', 'hybrid'],
  ['validate', ...CONFIGS.slice(0, 4)],
];

describe('the answer at 80 × 24', () => {
  it.each(COMMANDS.map((command) => [command]))('%j fits on the screen', async (command) => {
    const { stdout, code } = await runHere([...command, '-q'], {
      terminal: { columns: 80, rows: 24 },
    });
    const lines = stdout.trimEnd().split('\n');
    expect(code).toBe(0);
    // The prompt has the last line.
    expect(lines.length, stdout).toBeLessThan(24);
    // A command to paste is never wrapped.
    const wide = lines.filter((line) => line.length > 80 && !line.startsWith('Next: '));
    expect(wide).toEqual([]);
  });
});
