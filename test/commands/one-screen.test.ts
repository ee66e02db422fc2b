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
const COMMANDS = CONFIGS.map((file) => ['profile', file]);

describe('the answer at 80 × 24', () => {
  it.each(COMMANDS)('%s %s fits on the screen', async (...command) => {
    const { stdout, code } = await runHere([...command, '-q'], {
      terminal: { columns: 80, rows: 24 },
    });
    const lines = stdout.trimEnd().split('\n');
    expect(code).toBe(0);
    // The prompt has the last line.
    expect(lines.length, stdout).toBeLessThan(24);
    expect(Math.max(...lines.slice(0, -1).map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});
