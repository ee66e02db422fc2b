// What `minimind fit --this-machine` predicts of a forward pass, beside what `minimind quick-test` then measures:
// seconds, and the memory that the process takes more than it begins with. The built command is run, as a user runs it.
//
//   npm run build && npm run bench -- fit-this-machine
//
// In each of ROUNDS (5) the machine is measured into a profile of its own, and each model is predicted and run right
// after, so that all see about the same load. A prediction holds where what is measured lies between its lower and its
// upper bound. `held` counts that in each round; `heldOfOthers` also holds every prediction against what the other rounds
// measured, as a profile is used that was made at another load.
// Bounds that are wide hold easily: `width` is upper over lower, `ofExpected` what is measured over what was expected,
// with `least` and `most` of it. On a machine that does other things the bounds of time are wide: see `loads`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, summary } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const ROUNDS = Number(process.env.ROUNDS || 5);

/** Configs, each with the tokens of its one sequence. */
const SIZES = [
  ['hybrid/tiny', 256],
  ['minimind/minimind2-small', 512],
  ['hybrid/bench-60m', 256],
];

export const title =
  'A forward pass as fit --this-machine expects it (baseline) and as quick-test measures it';

export async function run() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'minimind-bench-'));
  const rounds = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      rounds.push(measureRound(path.join(folder, `machine-${round}.json`)));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const models = Object.fromEntries(
    SIZES.map(([config, tokens], at) => {
      const ofModel = rounds.map(({ models: all }) => all[at]);
      return [`${config}, 1 × ${tokens}`, heldAgainst(ofModel)];
    }),
  );
  return {
    results: Object.entries(models).map(([name, { times }]) => summary({ name, times })),
    loads: rounds.map(({ load }) => load),
    models: Object.fromEntries(
      Object.entries(models).map(([name, { seconds, bytes }]) => [name, { seconds, bytes }]),
    ),
  };
}

function measureRound(profile) {
  const load = Number(os.loadavg()[0].toFixed(2));
  const models = SIZES.map(([config, tokens]) => {
    const asked = [`configs/${config}.yaml`, '--context', String(tokens)];
    const machine = ['--this-machine', '--profile', profile];
    const { forward } = answerOf(['fit', ...asked, ...machine, '--for', 'serving']);
    return { predicted: forward, measured: measuredOf(asked) };
  });
  return { load, models };
}

/** The checks run in processes of their own: others would raise the peak, and warm the engine up. */
function measuredOf(asked) {
  const quickTest = (...checks) => answerOf(['quick-test', ...asked, '--only', checks.join()]);
  const { memory } = quickTest('forward');
  const timed = quickTest('timing').checks.find(({ check }) => check === 'timing');
  return {
    seconds: timed.details.timing.medianSeconds,
    bytes: memory.peakBytes - memory.startBytes,
  };
}

function answerOf(args) {
  const command = [`${root}bin/run.js`, ...args, '--json', '--quiet'];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`minimind ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  return JSON.parse(stdout);
}

/** @param rounds What was predicted of one model, and measured, in each. */
const heldAgainst = (rounds) => ({
  seconds: heldIn(rounds, 'seconds'),
  bytes: heldIn(rounds, 'bytes'),
  times: {
    candidate: rounds.map(({ measured }) => 1000 * measured.seconds),
    baseline: rounds.map(({ predicted }) => 1000 * predicted.seconds.expected.value),
  },
});

function isWithin({ predicted, measured }, what) {
  const { lower, upper } = predicted[what];
  return lower.value <= measured[what] && measured[what] <= upper.value;
}

function heldIn(rounds, what) {
  const each = rounds.map(({ predicted, measured }) => {
    const { lower, expected, upper } = predicted[what];
    const value = measured[what];
    return {
      lower: lower.value,
      expected: expected.value,
      upper: upper.value,
      measured: value,
      isWithin: isWithin({ predicted, measured }, what),
      ofExpected: value / expected.value,
      width: upper.value / lower.value,
    };
  });
  const others = rounds.flatMap(({ predicted }, at) =>
    rounds.filter((_, other) => other !== at).map(({ measured }) => ({ predicted, measured })),
  );
  const middle = (name) => median(each.map((one) => one[name]));
  return {
    held: each.filter((one) => one.isWithin).length,
    of: each.length,
    heldOfOthers: others.filter((pair) => isWithin(pair, what)).length,
    ofOthers: others.length,
    least: Number(Math.min(...each.map(({ ofExpected }) => ofExpected)).toPrecision(3)),
    most: Number(Math.max(...each.map(({ ofExpected }) => ofExpected)).toPrecision(3)),
    median: Object.fromEntries(
      ['lower', 'expected', 'measured', 'upper', 'ofExpected', 'width'].map((name) => [
        name,
        Number(middle(name).toPrecision(4)),
      ]),
    ),
  };
}
