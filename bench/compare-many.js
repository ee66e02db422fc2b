// A sweep of 10,000 small models, and one of 100,000: processor time and peak memory of the whole command. Wall time says
// little on a shared machine, so there is no baseline in turns; the aims are seconds and MB.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, TELL_USAGE, usageIn } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));

export const title = 'Sweeps: compare of 10,000 and of 100,000 small models';

const listed = (from, step, count) =>
  Array.from({ length: count }, (_, at) => from + step * at).join(',');

const SWEEPS = [
  { models: 10_000, layers: '1,2', widths: 5, rounds: 5, aims: { seconds: 6, megabytes: 410 } },
  { models: 100_000, layers: '1,2', widths: 50, rounds: 1, aims: { seconds: 60, megabytes: 1000 } },
];

export function run() {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    const results = SWEEPS.flatMap(({ models, layers, widths, rounds, aims }) => {
      const words = [
        ...['compare', 'hybrid/tiny', '--json', '-q', '--output', path.join(folder, 'answer.json')],
        ...['--force', '--set', `model.num_layers=${layers}`],
        ...['--set', `model.hidden_size=${listed(16, 16, widths)}`],
        ...['--set', `model.vocab_size=${listed(1000, 1, 1000)}`],
      ];
      const runs = Array.from({ length: rounds }, () => usageOf(words));
      const least = (what) => Math.min(...runs.map((each) => each[what]));
      const row = (name, what, unit, aim) =>
        figure({ name: `${models} models, ${name}`, value: least(what), unit, aim });
      return [
        row('processor time', 'processorSeconds', 's', aims.seconds),
        row('peak memory', 'peakMegabytes', 'MB', aims.megabytes),
      ];
    });
    return { results };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function usageOf(words) {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', TELL_USAGE, `${root}bin/run.js`, ...words],
    { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`compare: ${status}\n${stderr}`);
  return usageIn(stderr);
}
