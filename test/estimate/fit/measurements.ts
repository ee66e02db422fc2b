/** Published measurements, and the figures of `fit` for the same settings. */
import { readFile } from 'node:fs/promises';
import type { Bounds } from '../../../src/model/budget/figure.js';
import { inPackage } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

export interface Measurement {
  readonly name: string;
  readonly group: string;
  readonly kind: 'training' | 'decoding' | 'step' | 'prefill' | 'throughput' | 'memory';
  readonly arguments: string;
  /** For a throughput: sequences at a time, and output tokens of each. */
  readonly batch?: number;
  readonly output?: number;
  /** For memory: the measured parts. */
  readonly parts?: readonly string[];
  readonly published: readonly number[];
  readonly unit: string;
  /** Upper bound divided by lower bound when the measurement was first compared; null where infinite. */
  readonly width: number | null;
}

export const measurements = async (): Promise<readonly Measurement[]> =>
  JSON.parse(await readFile(inPackage('fixtures/fit/measurements.json'), 'utf8'));

export interface FitEstimate {
  readonly lower: number;
  readonly expected: number;
  readonly upper: number;
}

/** Bounds and estimate of `fit` for a measurement, in its unit. */
export async function fitEstimate(measurement: Measurement): Promise<FitEstimate> {
  const { code, stdout, stderr } = await runHere([
    'fit',
    ...measurement.arguments.split(' '),
    '--json',
  ]);
  if (code !== 0) throw new Error(`${measurement.name}: ${stdout || stderr}`);
  const { training, serving } = JSON.parse(stdout);
  return IN_UNIT[measurement.kind](training?.fit, serving?.fit, measurement);
}

const convertBounds = (
  { lower, expected, upper }: Bounds,
  of: (value: number) => number,
): FitEstimate => ({
  lower: of(lower.value),
  expected: of(expected.value),
  upper: of(upper.value),
});

/** The longest time is the lowest rate. */
const invertBounds = (
  { lower, expected, upper }: Bounds,
  of: (seconds: number) => number,
): FitEstimate => convertBounds({ lower: upper, expected, upper: lower }, of);

const milliseconds = (seconds: number) => 1000 * seconds;

const BYTES: Readonly<Record<string, number>> = { MiB: 2 ** 20, GiB: 2 ** 30 };

// biome-ignore lint/suspicious/noExplicitAny: parsed JSON.
type Fit = any;

const IN_UNIT: Readonly<
  Record<Measurement['kind'], (training: Fit, serving: Fit, of: Measurement) => FitEstimate>
> = {
  training: ({ step }) => invertBounds(step.seconds, (seconds) => step.tokens.value / seconds),
  decoding: (_, { decode }) => convertBounds(decode.tokensPerSecond, (rate) => rate),
  step: (_, { decode }) => convertBounds(decode.seconds, milliseconds),
  prefill: (_, { prefill }) => convertBounds(prefill.seconds, milliseconds),
  // Static batches: all prompts, one after the other, and then all steps.
  throughput: (_, { prefill, decode }, { batch = 1, output = 1 }) => {
    const rate = (bound: keyof Bounds) =>
      (batch * output) /
      (batch * prefill.seconds[bound].value + output * decode.seconds[bound].value);
    return { lower: rate('upper'), expected: rate('expected'), upper: rate('lower') };
  },
  memory: ({ stages, workspaceParts }, _, { parts, unit }) => {
    const exact = stages[0].parts.map((each: Fit) => ({
      label: each.part,
      bytes: { lower: each.bytes, expected: each.bytes, upper: each.bytes },
    }));
    const workspace = workspaceParts.map((each: Fit) => ({
      label: each.bytes.expected.label,
      bytes: each.bytes,
    }));
    const measured = [...exact, ...workspace].filter(({ label }) => parts?.includes(label));
    const sum = (bound: keyof Bounds) =>
      measured.reduce((total, { bytes }) => total + bytes[bound].value, 0) / (BYTES[unit] ?? 1);
    return { lower: sum('lower'), expected: sum('expected'), upper: sum('upper') };
  },
};
