// Measuring on machines that are shared and noisy: the candidate and what it is measured against take
// turns, and only ratios are reported.
import { spawnSync } from 'node:child_process';
import os from 'node:os';

/** Milliseconds that a command takes from start to end. Throws when it fails. */
export function timeCommand([program, ...args], { expectedCode = 0 } = {}) {
  const start = process.hrtime.bigint();
  const { status, stderr } = spawnSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const elapsed = Number(process.hrtime.bigint() - start) / 1e6;
  if (status !== expectedCode)
    throw new Error(`${program} ${args.join(' ')}: ${status}\n${stderr}`);
  return elapsed;
}

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/**
 * Runs `candidate` and `baseline` (functions that return milliseconds) in turns.
 * `aim`, when given, is the largest ratio to meet, by the minimum and by the median.
 */
export function compare({ name, candidate, baseline, aim, rounds = 15 }) {
  candidate();
  baseline();
  const times = { candidate: [], baseline: [] };
  for (let round = 0; round < rounds; round++) {
    times.candidate.push(candidate());
    times.baseline.push(baseline());
  }
  return summary({ name, times, aim });
}

/** Summary of the `times` of `candidate` and of `baseline`, in milliseconds. `aim` as above. */
export function summary({ name, times, aim }) {
  const rounds = times.candidate.length;
  const best = { candidate: Math.min(...times.candidate), baseline: Math.min(...times.baseline) };
  const middle = { candidate: median(times.candidate), baseline: median(times.baseline) };
  const ratios = {
    minimum: best.candidate / best.baseline,
    median: middle.candidate / middle.baseline,
  };
  const met = aim === undefined ? undefined : ratios.minimum <= aim && ratios.median <= aim;
  return { name, rounds, milliseconds: { best, median: middle }, ratios, aim, met };
}

/** A figure that is no ratio. `aim` is the largest value to meet. */
export const figure = ({ name, value, unit, aim }) => ({
  name,
  value,
  unit,
  aim,
  met: aim === undefined ? undefined : value <= aim,
});

/**
 * Prints the processor seconds and the peak kilobytes of a Node process to standard error when it ends: for
 * `node --import`, and `usageIn` reads it.
 */
export const TELL_USAGE = `data:text/javascript,${encodeURIComponent(
  `process.on('exit', () => {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
    process.stderr.write('\\nusage ' + (userCPUTime + systemCPUTime) / 1e6 + ' ' + maxRSS + '\\n');
  });`,
)}`;

/** Usage in the standard error of a process with `TELL_USAGE`. */
export function usageIn(stderr) {
  const [, seconds, kilobytes] = /^usage (\S+) (\d+)$/m.exec(stderr);
  return { processorSeconds: Number(seconds), peakMegabytes: Number(kilobytes) / 1e3 };
}

/** Circumstances of a result, in addition to the code. */
export const circumstances = () => ({
  date: new Date().toISOString().slice(0, 10),
  node: process.version,
  cpu: os.cpus()[0]?.model ?? 'unknown',
  cores: os.cpus().length,
  load: os.loadavg().map((value) => Number(value.toFixed(2))),
});
