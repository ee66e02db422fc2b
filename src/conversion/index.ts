/** A conversion from its flags to its result. */

import os from 'node:os';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { ModelFile } from '../cli/model-file.js';
import type { Progress } from '../cli/progress.js';
import { progress } from '../cli/progress.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import { lowRankMultiplications } from '../linalg/low-rank.js';
import type { DeviceChoice, EngineChoice } from '../runtime/select/devices.js';
import type { EncodableDtype } from '../tensor/encode.js';
import { proofOf } from './execute/check.js';
import type { RunFlags, Step } from './execute/execute.js';
import { convert, preview } from './execute/execute.js';
import type { Container } from './execute/output-files.js';
import { outputPlace, refuseOverlap } from './execute/output-files.js';
import type { Extension, LayoutName, Merge, Tie } from './job.js';
import type { DialectName } from './legacy/old-minimind-names.js';
import type { SrtePlan } from './plan/plan.js';
import { conversionOf } from './plan/plan-conversion.js';
import { multiplierFor, PLAIN } from './resources.js';
import type { ConvertResult } from './result.js';
import { resultOf } from './result.js';

/** As the command parses them. */
export interface ConvertFlags {
  readonly to: LayoutName | undefined;
  readonly target: string | undefined;
  readonly merge: Merge;
  readonly rank: number | undefined;
  readonly 'max-error': number | undefined;
  readonly 'max-positions': number | undefined;
  readonly extend: Extension | undefined;
  readonly tie: Tie | undefined;
  readonly dtype: EncodableDtype | undefined;
  readonly saturate: boolean;
  readonly dialect: DialectName | undefined;
  readonly heads: number | undefined;
  readonly container: Container | undefined;
  readonly 'shard-size': number | bigint | undefined;
  readonly 'max-memory': number | bigint | undefined;
  readonly config: string | undefined;
  readonly 'no-config': boolean;
  readonly set: readonly string[] | undefined;
  readonly seed: number;
  readonly engine: EngineChoice;
  readonly device: DeviceChoice | undefined;
  readonly threads: number | undefined;
  readonly 'dry-run': boolean;
  readonly resume: boolean;
  readonly check: boolean;
  readonly prove: boolean;
  /** Tokens of the proof. */
  readonly context: number | undefined;
  /** The file for the report. */
  readonly output: string | undefined;
  readonly force: boolean;
  readonly quiet: boolean;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

const DEFAULT_MEMORY_BYTES = 512e6;

/**
 * Converts, or with a dry run tells what would be done.
 * @throws UserError for whatever is wrong with the input, the request or the place of the output.
 */
export async function convertCheckpoint(
  checkpoint: Checkpoint,
  out: string,
  flags: ConvertFlags,
): Promise<ConvertResult> {
  const start = performance.now();
  refuseNothing(flags);
  const place = outputPlace(out, flags.container);
  const read = [flags.config, flags.target].filter((file) => file !== undefined);
  refuseOverlap(checkpoint, place, { read, report: flags.output });
  const run = runFlags(flags, place);
  const shown = new Shown(flags);
  let multiplier = PLAIN;
  const multiply = async (srte: SrtePlan | null) => {
    multiplier = await multiplierFor(srte ? multiplications(srte) : 0, flags);
    return multiplier;
  };
  try {
    const subject = await conversionOf(checkpoint, run, (bytes) => shown.step('comparing', bytes));
    await flags.warn(subject.warnings);
    const { source } = subject;
    if (flags.prove) await refuseUnprovable(checkpoint.path, source, flags);
    const { step } = shown;
    if (flags['dry-run']) {
      const planned = await preview(checkpoint, subject, run, multiply, step);
      return resultOf(checkpoint, subject, run, planned, null);
    }
    const done = await convert(checkpoint, subject, run, multiply, step);
    const seconds = (performance.now() - start) / 1000;
    const { resumed, products } = done;
    const result = resultOf(checkpoint, subject, run, done, { seconds, resumed, products });
    if (!flags.prove || source === undefined) return result;
    shown.end();
    return { ...result, proof: await proofOf(checkpoint, source, result, flags) };
  } finally {
    shown.end();
    await multiplier.close();
  }
}

/** @throws UserError when nothing is asked for that would change anything. */
function refuseNothing(flags: ConvertFlags): void {
  if (flags.extend !== undefined && !flags['max-positions'] && flags.target === undefined) {
    throw new UserError('usage', '--extend means nothing without a number of rows', {
      suggestion: 'give it with --max-positions, or in a --target',
    });
  }
  const asked = [
    flags.to,
    flags.target,
    flags.dialect,
    flags.tie,
    flags.dtype,
    flags.container,
    flags['max-positions'],
    flags['shard-size'],
  ];
  if (asked.some((each) => each !== undefined)) return;
  throw new UserError('usage', 'nothing is asked for that would change the checkpoint', {
    suggestion: 'say how the SRTE is to be with --to, or what else to change: see --help',
  });
}

/** @throws UserError when it is clear before the conversion that what is asked for cannot be run. */
async function refuseUnprovable(
  file: string,
  source: ModelFile | undefined,
  flags: ConvertFlags,
): Promise<void> {
  const { context = 1, 'max-positions': cut = Number.POSITIVE_INFINITY, device } = flags;
  if (source === undefined) {
    throw new UserError('usage', `--prove runs the model, and no config describes ${file}`, {
      suggestion: 'name one that does with --config FILE, or leave --prove out',
    });
  }
  const positions = Math.min(source.model.positions, cut);
  if (context > positions) {
    throw new UserError(
      'usage',
      `--context: ${context} tokens are more than the ${positions} positions of the model`,
      { suggestion: `ask for at most ${positions}` },
    );
  }
  if (device !== undefined && device !== 'auto') await requireDevice({ ...flags, device });
}

/** @throws UserError when a device that is asked for cannot be used here. */
async function requireDevice({
  engine,
  device,
  threads,
}: ConvertFlags & { readonly device: DeviceChoice }): Promise<void> {
  const { chooseEngine } = await import('../runtime/select/devices.js');
  const wish = { engine, device, threads: threads ?? os.availableParallelism() };
  const chosen = await chooseEngine({ ...wish, compute: 'f32' });
  await chosen.engine.close();
}

function runFlags(flags: ConvertFlags, place: RunFlags['place']): RunFlags {
  const { rank, 'max-error': relativeError, 'shard-size': shard } = flags;
  const truncation =
    rank !== undefined ? { rank } : relativeError === undefined ? undefined : { relativeError };
  return {
    to: flags.to,
    truncation,
    merge: flags.merge,
    positions: flags['max-positions'],
    extension: flags.extend,
    tie: flags.tie,
    dtype: flags.dtype,
    saturate: flags.saturate,
    config: flags.config,
    lookForConfig: !flags['no-config'],
    target: flags.target,
    set: flags.set ?? [],
    oldHeads: flags.dialect && flags.heads,
    isMoved: flags.container !== undefined || shard !== undefined,
    completesBuffers: place.container === 'pt',
    place,
    shardBytes: shard === undefined ? undefined : Number(shard),
    maxMemoryBytes: Number(flags['max-memory'] ?? DEFAULT_MEMORY_BYTES),
    seed: flags.seed,
    force: flags.force,
    resume: flags.resume,
    check: flags.check,
  };
}

/** Steps of a run, one line of progress at a time. */
class Shown {
  readonly #flags: { readonly quiet: boolean };
  #current: Progress | undefined;

  constructor(flags: { readonly quiet: boolean }) {
    this.#flags = flags;
  }

  readonly step: Step = (label, bytes) => {
    this.end();
    this.#current = progress(this.#flags, label, bytes);
    return this.#current.add;
  };

  end(): void {
    this.#current?.end();
  }
}

/** About how many a plan takes: to factorise tables, and to multiply pairs out. */
function multiplications({ source, target, tables }: SrtePlan): number {
  const { hidden } = source;
  const rows = Math.min(source.positions, target.positions);
  const made = tables.filter(({ isMade, form }) => isMade && form === 'low-rank').length;
  const rank = target.rank ?? Math.ceil(hidden / 4);
  const products = tables.reduce((sum, { replaces }) => sum + replaces.length, 0);
  return (
    made * lowRankMultiplications(rows, hidden, rank) +
    products * rows * hidden * ((source.rank ?? 0) + (target.rank ?? 0))
  );
}
