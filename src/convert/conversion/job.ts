/** A conversion request, and the destination of its output. */
import path from 'node:path';
import { type Problem, type UserError, usageError } from '../../base/errors.js';
import { ownConfigNames } from '../../base/files/config-names.js';
import { isFolder } from '../../base/files/file-system.js';
import { firstOverlapping } from '../../base/files/input-registry.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import type { EncodableDtype } from '../../base/tensor/encode.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { type Relation, refuseBroken } from '../../base/text/relations.js';
import { type SettingName, setting } from '../../base/text/setting.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { type Container, containerOf } from '../../checkpoint/formats.js';
import type { MixtureName } from '../../checkpoint/gguf/mixtures.js';
import { quote } from '../../config/quote.js';
import type { DeviceChoice, EngineChoice } from '../../engine/select/devices.js';
import type { Extension, LayoutName, Merge, NamingScheme, Tie } from './conversion-choices.js';

/** Begins a step on a number of bytes. Returns a function to call with each further number of finished bytes. */
export type StepProgress = (label: string, bytes: number) => (bytes: number) => void;

/** Shows the steps of a conversion, and the models that --prove runs. */
export interface ConversionDisplay extends ProgressDisplay {
  /** Begins a step and ends the previous one. */
  readonly step: StepProgress;
  /** Ends the last step. Can be repeated. */
  readonly end: () => void;
  /** Shows a message when the process ends in the middle of a conversion. */
  readonly stopped: (message: string) => void;
}

/** The settings of a conversion, its input and output, and its display. */
export interface ConversionJob {
  /** The open input. */
  readonly checkpoint: Checkpoint;
  /** Path of the output as given. */
  readonly out: string;
  /** Undefined: keep the SRTE, or use the one of `target`. */
  readonly layout?: LayoutName | undefined;
  /** The config file of the output. */
  readonly target?: string | undefined;
  readonly merge: Merge;
  /** Rank of a low-rank pair. */
  readonly rank?: number | undefined;
  /** Alternative to a rank: the largest relative error of a pair. */
  readonly maxError?: number | undefined;
  /** Rows of the tables; undefined for the present number. */
  readonly maxPositions?: number | undefined;
  /** Undefined: a larger number of rows is refused. */
  readonly extend?: Extension | undefined;
  readonly tie?: Tie | undefined;
  /** Type of the parameters; undefined to keep each. Buffers keep theirs. */
  readonly dtype?: EncodableDtype | undefined;
  /** Types of the matrices of a GGUF file, instead of `dtype`. */
  readonly mixture?: MixtureName | undefined;
  /** Importance matrix of llama.cpp, for `mixture`. */
  readonly imatrix?: string | undefined;
  /** Bits of the weights of linear layers; undefined to keep floats. */
  readonly quantize?: WeightForm['bits'] | undefined;
  /** Values that share a scale; undefined for 32. */
  readonly group?: WeightForm['group'] | undefined;
  /** Whether to write packed weights of the input as floats. */
  readonly dequantize: boolean;
  /** Whether to clamp values beyond the dtype's range instead of an error. */
  readonly saturate: boolean;
  readonly dialect?: NamingScheme | undefined;
  /** Attention heads, for `dialect`. */
  readonly heads?: number | undefined;
  /** Undefined: by the ending of the output. */
  readonly container?: Container | undefined;
  readonly shardSize?: number | bigint | undefined;
  readonly maxMemory?: number | bigint | undefined;
  /** Folder of a LoRA adapter that is merged into the checkpoint already. */
  readonly mergeLora?: string | undefined;
  /** The config file of the input; undefined for the one inside or next to it. */
  readonly config?: string | undefined;
  /** Family to read the input's config as, whatever its kind. */
  readonly family?: string | undefined;
  /** Whether the input's config is ignored. */
  readonly noConfig: boolean;
  /** Overrides of the output's config. */
  readonly set?: readonly string[] | undefined;
  /** Seed of the search for a low-rank pair, and of the tokens of a proof. */
  readonly seed: number;
  readonly engine: EngineChoice;
  readonly threads?: number | undefined;
  readonly dryRun: boolean;
  readonly resume: boolean;
  /** Whether to read the output again and compare every value. */
  readonly check: boolean;
  /** Whether to run the input and the output on the same tokens. */
  readonly prove: boolean;
  readonly device?: DeviceChoice | undefined;
  /** Tokens of the proof. */
  readonly context?: number | undefined;
  /** The file of the report; undefined to print it. */
  readonly output?: string | undefined;
  readonly force: boolean;
  readonly display: ConversionDisplay;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/** A job as requested; a value that was not given is undefined. */
export type ConversionRequest = Omit<ConversionJob, 'merge' | 'seed' | 'dtype' | 'mixture'> & {
  /** Type of the parameters; a mixture only in a GGUF file. */
  readonly dtype?: EncodableDtype | MixtureName | undefined;
  readonly merge?: Merge | undefined;
  readonly seed?: number | undefined;
};

/** State of the output when a run ends before any file is complete. */
export const NOTHING_WRITTEN = 'nothing was written';

/** Runs `work`. If the process ends meanwhile, for example by Ctrl-C, shows a notice about the state of the output. */
export async function withStoppedNotice<Result>(
  { display }: Pick<ConversionJob, 'display'>,
  left: () => string,
  work: () => Promise<Result>,
): Promise<Result> {
  const stopped = () => display.stopped(left());
  running.add(stopped);
  try {
    return await work();
  } finally {
    running.delete(stopped);
  }
}

/** Notices of the work in progress. */
const running = new Set<() => void>();
process.on('exit', () => {
  for (const stopped of running) stopped();
});

/** Settings that compute values, which can overflow their type. */
const VALUE_CHANGES = [
  'dtype',
  'layout',
  'rank',
  'maxError',
  'maxPositions',
  'tie',
  'target',
] as const satisfies readonly (keyof ConversionRequest)[];

/** Settings that have an effect only with others. */
const RELATIONS: readonly Relation<keyof ConversionRequest & SettingName>[] = [
  {
    of: ['saturate', 'requires', ...VALUE_CHANGES],
    named: 1,
    advice: () =>
      `write ${setting('dtype', 'f16')}, or leave ${setting('saturate')} out: values that are copied cannot overflow`,
  },
  {
    of: ['extend', 'requires', 'maxPositions', 'target'],
    advice: () => `write ${setting('maxPositions', '32k')} for the number of rows`,
  },
];

/** @throws UserError for a setting without an effect. */
export const checkJob = (job: ConversionRequest): void => refuseBroken(RELATIONS, job);

/** Other settings that change the output. */
const OTHER_CHANGES = [
  'dialect',
  'mixture',
  'imatrix',
  'container',
  'shardSize',
  'quantize',
  'mergeLora',
] as const satisfies readonly (keyof ConversionJob)[];

/** Whether the request names no change at all. */
export function isUnspecific(job: ConversionJob): boolean {
  const isChange = (name: keyof ConversionJob) => job[name] !== undefined;
  return ![...VALUE_CHANGES, ...OTHER_CHANGES].some(isChange) && !job.dequantize;
}

/**
 * Endings of file names, such as `.onnx`, `.txt` or a misspelled `.safetensor`, but not version numbers:
 * `llama-3.2-1b`.
 */
const FILE_ENDING = /^\.(?:[a-z]{3,}\d?|gz|h5|7z)$/;

/** Path and format of an output. */
export interface CheckpointTarget {
  /** Path as given. */
  readonly path: string;
  readonly container: Container;
  readonly kind: 'file' | 'folder';
}

/**
 * An output with the ending of a container is such a file; any other is a folder of safetensors, or the given
 * container.
 * @throws UserError when the name and the container contradict each other.
 */
export function outputTarget(name: string, container: Container | undefined): CheckpointTarget {
  if (name === '') throw usageError('the name of the output is empty');
  if (name === '-') {
    throw usageError(
      'expected OUT to be a file or a folder, found "-"',
      'write it as in model.safetensors: standard output cannot hold a checkpoint',
    );
  }
  const ending = path.extname(name).toLowerCase();
  const byName = containerOf(ending);
  if (byName === undefined && !/[/\\]$/.test(name) && FILE_ENDING.test(ending)) {
    throw usageError(
      `expected OUT to end in .safetensors, .pt or .gguf, found ${ending}`,
      `write ${name.slice(0, -ending.length)}.safetensors, or ${name}/ for a folder`,
    );
  }
  if (byName !== undefined && container !== undefined && byName !== container) {
    throw usageError(
      `${name} has the ending of a ${byName} file, but ${setting('container')} is ${container}`,
      `change the name of the output, or omit ${setting('container')}`,
    );
  }
  const chosen = container ?? byName ?? 'safetensors';
  const kind = byName === undefined && chosen === 'safetensors' ? 'folder' : 'file';
  return { path: name, container: chosen, kind };
}

/** The error for an output that is an input, or in its folder. */
function overlap(input: string, output: string): UserError {
  const inside = path.relative(input, output);
  if (!isFolder(input) || inside === '' || inside.startsWith('..') || path.isAbsolute(inside)) {
    return usageError(
      `${output} would replace the input ${input}`,
      'choose another output: the input is never changed',
    );
  }
  const beside = path.join(input, '..', path.basename(output));
  return usageError(
    `expected an output outside the input ${input}, found ${quote(output)}`,
    `did you mean ${quote(beside)}?`,
  );
}

/**
 * Rejects outputs that would overwrite inputs. The report may not overwrite the output either, or a file in its folder.
 * @param read Paths of the configs that are read. @param report Undefined when it is printed.
 * @throws UserError when two of them have the same path.
 */
export function refuseOverlap(
  { path: input, files }: Pick<Checkpoint, 'path' | 'files'>,
  output: CheckpointTarget,
  { read, report }: { readonly read: readonly string[]; readonly report: string | undefined },
): void {
  const inputs = [input, ...files.map((file) => file.path), ...read];
  const inPlace = firstOverlapping(inputs, output.path);
  if (inPlace !== undefined) throw overlap(inPlace, output.path);
  const taken =
    report === undefined
      ? undefined
      : firstOverlapping([...inputs, output.path, ...configsBeside(output)], report);
  if (taken === undefined) return;
  throw usageError(
    `the report would replace ${taken}`,
    `choose another file for ${setting('output')}`,
  );
}

/** Possible names of the config next to a file. */
const configsBeside = ({ path: output, kind }: CheckpointTarget): string[] =>
  kind === 'folder'
    ? []
    : ownConfigNames(output).map((name) => path.join(path.dirname(output), name));
