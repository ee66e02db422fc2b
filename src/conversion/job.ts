/** A conversion as a user asks for it, and the place of its output. */

import path from 'node:path';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { type Problem, UserError } from '../errors.js';
import { CONFIG_FILES, ownConfigNames } from '../files/config-names.js';
import { overlap } from '../files/inputs.js';
import type { ProgressDisplay } from '../progress-display.js';
import type { DeviceChoice, EngineChoice } from '../runtime/select/devices.js';
import type { EncodableDtype } from '../tensor/encode.js';

/** SRTE layouts by the names that users give them: one table, one pair or one formula for all layers, or a table for each. */
export const LAYOUTS = {
  shared: { sharing: 'shared', form: 'table' },
  'low-rank': { sharing: 'shared', form: 'low-rank' },
  sincos: { sharing: 'shared', form: 'sincos' },
  'per-layer': { sharing: 'per-layer', form: 'table' },
} as const;

export type LayoutName = keyof typeof LAYOUTS;

/** How one table is made from those of several layers. */
export type Merge = 'mean' | 'first' | { readonly layer: number };

/** Values of the rows that a table is extended by: its rows from the first on again, or zeros. */
export type Extension = 'repeat' | 'zero';

/** Source of the weights of a tied embedding and head: one of the two, or their mean. */
export type Tie = 'embed' | 'head' | 'mean';

/** Naming scheme of an input that is not today's: MiniMind from before April 2025. */
export type NamingScheme = 'minimind';

/** Format of the output's weights. */
export type Container = 'safetensors' | 'pt';

/** Begins a step on a number of bytes. Returns a function to call with each further number that is done. */
export type Step = (label: string, bytes: number) => (bytes: number) => void;

/** Shows how far a conversion is. */
export interface ConversionProgress {
  /** Also ends the step before. */
  readonly step: Step;
  /** Ends the last step. Safe to call again. */
  readonly end: () => void;
  /** Shows a message when the process ends in the middle of a conversion. */
  readonly stopped: (message: string) => void;
}

/** The flags of `convert-checkpoint` under their own names, its input and output, and who is informed. */
export interface ConversionJob {
  /** The input, open. */
  readonly checkpoint: Checkpoint;
  /** The output, as the user wrote it. */
  readonly out: string;
  /** Undefined: the SRTE stays as it is, or becomes what `target` says. */
  readonly to: LayoutName | undefined;
  /** The config file of the output. */
  readonly target: string | undefined;
  readonly merge: Merge;
  /** Rank of a low-rank pair. */
  readonly rank: number | undefined;
  /** Instead of a rank: the largest relative error of a pair. */
  readonly 'max-error': number | undefined;
  /** Rows of the tables; undefined for as many as there are. */
  readonly 'max-positions': number | undefined;
  /** Undefined: more rows than there are are refused. */
  readonly extend: Extension | undefined;
  readonly tie: Tie | undefined;
  /** Type of the parameters; undefined for what each has. Buffers keep theirs. */
  readonly dtype: EncodableDtype | undefined;
  /** Whether values beyond the dtype become its largest instead of an error. */
  readonly saturate: boolean;
  readonly dialect: NamingScheme | undefined;
  /** Attention heads, for `dialect`. */
  readonly heads: number | undefined;
  /** Undefined: by the name of the output. */
  readonly container: Container | undefined;
  readonly 'shard-size': number | bigint | undefined;
  readonly 'max-memory': number | bigint | undefined;
  /** The config file of the input; undefined for the one inside or beside it. */
  readonly config: string | undefined;
  /** Whether the input's config is ignored. */
  readonly 'no-config': boolean;
  /** Overrides of the output's config. */
  readonly set: readonly string[] | undefined;
  /** Seed of the search for a low-rank pair, and of the tokens of a proof. */
  readonly seed: number;
  readonly engine: EngineChoice;
  readonly threads: number | undefined;
  readonly 'dry-run': boolean;
  readonly resume: boolean;
  /** Whether to read the output again, and compare every value. */
  readonly check: boolean;
  /** Whether to run the input and the output on the same tokens. */
  readonly prove: boolean;
  readonly device: DeviceChoice | undefined;
  /** Tokens of the proof. */
  readonly context: number | undefined;
  /** The file for the report; undefined when that is printed. */
  readonly output: string | undefined;
  readonly force: boolean;
  /** Shows the models that --prove runs. */
  readonly display: ProgressDisplay;
  readonly progress: ConversionProgress;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/** @throws UserError when nothing is asked for that would change anything. */
export function checkJob(job: ConversionJob): void {
  if (job.extend !== undefined && !job['max-positions'] && job.target === undefined) {
    throw new UserError('usage', '--extend means nothing without a number of rows', {
      suggestion: 'give it with --max-positions, or in a --target',
    });
  }
  const asked = [
    job.to,
    job.target,
    job.dialect,
    job.tie,
    job.dtype,
    job.container,
    job['max-positions'],
    job['shard-size'],
  ];
  if (asked.some((each) => each !== undefined)) return;
  throw new UserError('usage', 'nothing is asked for that would change the checkpoint', {
    suggestion: 'say how the SRTE is to be with --to, or what else to change: see --help',
  });
}

/** Endings of the files of each container. */
const CONTAINERS = {
  safetensors: ['.safetensors'],
  pt: ['.pt', '.pth', '.bin', '.ckpt'],
} as const satisfies Record<Container, readonly string[]>;

/** Endings of files, such as `.gguf`, `.txt` or a mistyped `.safetensor`; not those of versions: `llama-3.2-1b`. */
const FILE_ENDING = /^\.(?:[a-z]{3,}\d?|gz|h5|7z)$/;

/** Place and format of an output. */
export interface CheckpointPlace {
  /** As the user wrote it. */
  readonly path: string;
  readonly container: Container;
  readonly kind: 'file' | 'folder';
}

/**
 * A name that ends like a file of a container is such a file; any other is a folder of safetensors, or
 * what the user says it is.
 * @throws UserError when the name and the container contradict each other.
 */
export function outputPlace(name: string, container: Container | undefined): CheckpointPlace {
  if (name === '') throw new UserError('usage', 'the name of the output is empty');
  const ending = path.extname(name).toLowerCase();
  const byName = (Object.keys(CONTAINERS) as Container[]).find((each) =>
    (CONTAINERS[each] as readonly string[]).includes(ending),
  );
  if (byName === undefined && !/[/\\]$/.test(name) && FILE_ENDING.test(ending)) {
    throw new UserError('usage', `${name}: ${ending} files cannot be written`, {
      suggestion: `end the name in .safetensors or .pt, or write ${name}/ for a folder`,
    });
  }
  if (byName !== undefined && container !== undefined && byName !== container) {
    throw new UserError(
      'usage',
      `${name} is named like a ${byName} file, and --container says ${container}`,
      {
        suggestion: 'give the output another name, or leave --container out',
      },
    );
  }
  const chosen = container ?? byName ?? 'safetensors';
  const kind = byName === undefined && chosen === 'safetensors' ? 'folder' : 'file';
  return { path: name, container: chosen, kind };
}

/**
 * Refuses to write to what is read. The report takes the place of nothing else: neither its files nor,
 * when one is a folder, anything in it.
 * @param read Configs that are read. @param report Undefined when it is printed.
 * @throws UserError when two of them are in one place.
 */
export function refuseOverlap(
  { path: input, files }: Pick<Checkpoint, 'path' | 'files'>,
  output: CheckpointPlace,
  { read, report }: { readonly read: readonly string[]; readonly report: string | undefined },
): void {
  const inputs = [input, ...files.map((file) => file.path), ...read];
  const inPlace = inputs.find((each) => overlap(each, output.path));
  if (inPlace !== undefined) {
    throw new UserError('usage', `${output.path} is in the place of ${inPlace}, which is read`, {
      suggestion: 'choose an output somewhere else: the input is never changed',
    });
  }
  const [, taken] =
    report === undefined
      ? []
      : ([...inputs, output.path, ...configsBeside(output)]
          .map((each) => [overlap(report, each), each] as const)
          .find(([isTaken]) => isTaken) ?? []);
  if (taken === undefined) return;
  throw new UserError('usage', `the report would be in the place of ${taken}`, {
    suggestion: 'give another file with --output',
  });
}

/** Names that the config beside a file may have. */
const configsBeside = ({ path: output, kind }: CheckpointPlace): string[] =>
  kind === 'folder'
    ? []
    : [...Object.values(CONFIG_FILES), ...ownConfigNames(output)].map((name) =>
        path.join(path.dirname(output), name),
      );
