import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { isWhole } from '../sampled.js';
import { type KillTest, runKills } from './kills.js';
import { KILL_TIMEOUT_MS, killsOf } from './settings.js';

const INPUT = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');

/** Puts the input into its own folder, and old files in the place of the output. */
const prepare =
  (...old: string[]) =>
  (folder: string) => {
    fs.mkdirSync(path.join(folder, 'in'));
    fs.copyFileSync(INPUT, path.join(folder, 'in/old.pt'));
    for (const name of old) {
      fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
      fs.writeFileSync(path.join(folder, name), `old ${name}`);
    }
  };

const SHARED = ['--to', 'shared'];
const LOW_RANK = ['--to', 'low-rank', '--rank', '3'];
const SHARDS = ['--shard-size', '600KB'];
const FILE = ['out.safetensors', 'out.config.yaml'] as const;

const CASES: readonly {
  readonly output: KillTest['output'];
  readonly old: readonly string[];
  readonly flags: readonly string[];
  readonly signal?: KillTest['signal'];
}[] = [
  { output: FILE, old: FILE, flags: SHARED },
  { output: FILE, old: [], flags: LOW_RANK },
  { output: ['out.pt'], old: ['out.pt'], flags: LOW_RANK },
  { output: ['out'], old: [], flags: [...SHARED, ...SHARDS] },
  { output: ['out'], old: [], flags: [...LOW_RANK, ...SHARDS], signal: 'SIGINT' },
  {
    output: ['out'],
    old: ['out/model.safetensors', 'out/config.yaml'],
    flags: [...LOW_RANK, ...SHARDS],
  },
];

describe.runIf(isWhole)('convert-checkpoint, when killed,', () => {
  it.concurrent.each(
    CASES.map((each, index) => ({
      ...each,
      ...killsOf(index),
      title: [
        each.output[0],
        each.old.length > 0 ? 'replaced' : 'new',
        each.flags[1],
        ...(each.signal ? [each.signal] : []),
      ].join(', '),
    })),
  )(
    'leaves a whole output, old or new: $title',
    async ({ output, old, flags, signal, title, ...kills }) => {
      const args = [inPackage('bin/run.js'), 'convert-checkpoint', 'in/old.pt', output[0]];
      const all = [...args, ...flags, ...(old.length > 0 ? ['--force'] : [])];
      const report = await runKills({
        prepare: prepare(...old),
        output,
        signal,
        args: () => all,
        resumeArgs: () => [...all, '--resume'],
        ...kills,
      });
      expect(report.operations).toBeGreaterThan(20);
      if (kills.operations !== 'each') return;
      process.stdout.write(`${title}: ${JSON.stringify(report)}\n`);
      expect(report.old).toBeGreaterThan(kills.kills);
      expect(report.new).toBeGreaterThan(0);
    },
    KILL_TIMEOUT_MS,
  );
});
