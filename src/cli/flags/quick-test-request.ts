/** Converts the flags of `minimind quick-test` to a request, and compares its result with limits. */
import os from 'node:os';
import type { QuickTestResult } from '../../check/quick-test-result.js';
import type { ChecksRequest, ComparisonRequest, TrainingRequest } from '../../check/test-forms.js';
import type { EngineTarget } from '../../engine/compare/compare-outputs.js';
import { DEVICE_CHOICES, ENGINE_CHOICES } from './flags.js';
import type { QuickTestFlags } from './quick-test-flags.js';
import { exceededLogits } from './thresholds.js';

/** Defaults of --overfit. */
const STEPS = 40;
const SECONDS = 20;

/** @param isSeedGiven Whether the command line has --seed. */
export const checksRequest = (flags: QuickTestFlags, isSeedGiven: boolean): ChecksRequest => ({
  ...inputOf(flags),
  isSeedGiven,
  only: flags.only,
  isCrossChecked: flags['cross-check'],
  repeats: flags.repeat,
  outputTokens: flags['output-tokens'],
  full: flags.full,
  keepsOutput: flags.save !== undefined,
  engine: flags.engine,
  // Quantized products have been measured on the CPU only.
  device: flags.device ?? (flags.weights ? 'cpu' : 'auto'),
  compute: flags.compute,
  weightForm: flags.weights,
  threads: flags.threads ?? os.availableParallelism(),
});

export const trainingRequest = (flags: QuickTestFlags): TrainingRequest => ({
  ...inputOf(flags),
  steps: flags.steps ?? STEPS,
  seconds: flags.seconds ?? SECONDS,
  learningRate: flags.lr,
  full: flags.full,
  threads: flags.threads ?? os.availableParallelism(),
});

/** @param source The other model, engine or device. */
export const comparisonRequest = (
  source: string,
  flags: QuickTestFlags,
  isSeedGiven: boolean,
): ComparisonRequest => ({
  ...inputOf(flags),
  isSeedGiven,
  source,
  otherWay: wayOf(source, flags),
  full: flags.full,
  engine: flags.engine,
  device: flags.device ?? 'auto',
  compute: flags.compute,
  threads: flags.threads,
});

const inputOf = ({ ids, batch, context, seed }: QuickTestFlags) => ({ ids, batch, context, seed });

/** Another engine or device for the same model, in float32; undefined when `source` is a file. */
function wayOf(source: string, { engine }: QuickTestFlags): EngineTarget | undefined {
  const isOne = <T extends string>(names: readonly T[]) => names.find((each) => each === source);
  const name = isOne(ENGINE_CHOICES.filter((each) => each !== 'auto'));
  if (name) return { engine: name, device: 'auto', compute: 'f32' };
  const kind = isOne(DEVICE_CHOICES.filter((each) => each !== 'auto'));
  return kind && { engine, device: kind, compute: 'f32' };
}

/**
 * Lines about the limits that the error of quantized weights exceeds. An error that was not measured exceeds every
 * limit.
 */
export function exceededLoss(flags: QuickTestFlags, { checks }: QuickTestResult): string[] {
  if (flags.weights === undefined) return [];
  const loss = checks.find(({ details }) => details?.quantized)?.details?.quantized?.logits;
  const unmeasured = {
    klDivergence: Number.NaN,
    topAgreement: Number.NaN,
    relativeDifference: Number.NaN,
  };
  return exceededLogits(flags, loss ?? unmeasured);
}
