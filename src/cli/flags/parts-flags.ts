/** Flags of conversions and sweeps in parts, and their request. */
import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import { refuseBroken } from '../../base/text/relations.js';
import { joined } from '../../base/text/words.js';
import { quote } from '../../config/quote.js';
import type { PartsRequest } from '../../scale/conversions/parts-plan.js';
import { LAUNCH_NAMES } from '../../scale/task-index.js';
import { SETTING_FLAGS } from '../setting-flags.js';
import { savedFile } from './flags.js';
import { count, unreadable } from './value-flags.js';

const helpGroup = 'PARTS';

/** `auto`, or a number from 1. */
const partNumber = Flags.custom<number | 'auto'>({
  helpValue: 'K|auto',
  parse: async (written) => {
    const text = written.trim().toLowerCase();
    if (text === 'auto') return text;
    if (/^\d{1,6}$/.test(text) && Number(text) > 0) return Number(text);
    const suggestion = 'write --part 3, or --part auto in a task of a job';
    return unreadable('part', text, 'a number from 1 or auto', suggestion);
  },
});

export const partsFlags = {
  parts: count({
    description:
      'plan the conversion in N parts for several machines, and write --plan; hf: is named by its commit',
    helpGroup,
  }),
  plan: savedFile({
    description: 'plan of --parts: to write, or to work on with one of the flags below',
    example: 'plan.json',
    helpGroup,
  }),
  part: partNumber({
    description: 'do one part; auto: the share of this task of Slurm, Kubernetes or GNU parallel',
    helpGroup,
  }),
  phase: Flags.option({
    options: ['1', '2'] as const,
    description: 'do only the rows of computed tables (1), or all else (2) [default: both]',
    helpGroup,
  })(),
  tasks: count({
    description: 'number of tasks that share the parts [default: one for each part]',
    helpGroup,
  }),
  finish: Flags.boolean({
    description: 'write index and config, and move OUT into place; else list missing parts',
    helpGroup,
  }),
  wait: Flags.boolean({ description: 'with --finish: wait for missing parts', helpGroup }),
  status: Flags.boolean({ description: 'show the progress of the parts', helpGroup }),
  launch: Flags.option({
    options: LAUNCH_NAMES,
    description: 'print the job of all parts for a scheduler',
    helpGroup,
  })(),
  submit: Flags.boolean({ description: 'hand the job of --launch to its scheduler', helpGroup }),
  image: Flags.string({
    helpValue: 'IMAGE',
    description: 'container image, for --launch kubernetes',
    helpGroup,
  }),
  claim: Flags.string({
    helpValue: 'NAME',
    description: 'claim of the volume with IN, OUT and the plan, for --launch kubernetes',
    helpGroup,
  }),
};

const { phase: _, ...sharedFlags } = partsFlags;

/** Flags of a sweep in parts. */
export const sweepFlags = {
  ...sharedFlags,
  parts: count({
    description: 'divide the work into N parts for several machines, and write --plan',
    helpGroup,
  }),
  finish: Flags.boolean({
    description: 'merge the results of all parts into the answer; else list missing parts',
    helpGroup,
  }),
  claim: Flags.string({
    helpValue: 'NAME',
    description: 'claim of the volume with the files and the plan, for --launch kubernetes',
    helpGroup,
  }),
};

/** Flags of the answer. */
const OUTPUT = ['json', 'format', 'output', 'force', 'quiet', 'no-color', 'plan'];

/** Settings that a plan keeps: those that determine the bytes of the output, its place and its memory. */
const PLANNED_SETTINGS = [
  'layout',
  'target',
  'merge',
  'rank',
  'maxError',
  'maxPositions',
  'extend',
  'seed',
  'dtype',
  'quantize',
  'group',
  'dequantize',
  'saturate',
  'tie',
  'dialect',
  'heads',
  'config',
  'family',
  'noConfig',
  'stateDict',
  'mergeLora',
  'imatrix',
  'container',
  'shardSize',
  'set',
  'engine',
  'threads',
  'maxMemory',
  'details',
] as const satisfies readonly (keyof PartsRequest | 'details')[];

/** Actions of a command line with flags of parts, and the other flags allowed with each. */
const MODE_FLAGS = {
  parts: [],
  part: ['tasks', 'details'],
  finish: ['wait', 'details'],
  status: ['details'],
  launch: ['submit', 'tasks', 'image', 'claim'],
} satisfies Partial<Record<keyof typeof partsFlags, readonly string[]>>;

export type PartsMode = keyof typeof MODE_FLAGS;

const MODE_NAMES = Object.keys(MODE_FLAGS) as PartsMode[];

/** Rules of a command for work in parts. */
export interface PartsUse {
  /** Flags that a plan keeps. */
  readonly planned: readonly string[];
  /** Further flags of a mode. */
  readonly more: Readonly<Partial<Record<PartsMode, readonly string[]>>>;
  /** Arguments of the command, `IN and OUT`. */
  readonly files: string;
  /** Additional needs of a plan, ` with IN and OUT`. */
  readonly request: string;
  /** Reason why a flag of the plan is refused without --parts. */
  readonly kept: string;
  /** Modes that write the output of the plan: they accept OUT, and replace it with `--force` where this is allowed. */
  readonly outputs?: readonly PartsMode[];
}

const CONVERSION: PartsUse = {
  planned: PLANNED_SETTINGS.map((name) => SETTING_FLAGS[name]),
  more: {
    parts: ['offline'],
    part: ['phase', 'offline'],
    finish: ['check', 'offline', 'force'],
    launch: ['offline', 'force'],
  },
  files: 'IN and OUT',
  request: ' with IN and OUT',
  kept: 'the plan says how to convert',
  outputs: ['part', 'finish', 'launch'],
};

/**
 * The request of the flags of parts; undefined without any.
 * @param given Names of the flags on the command line.
 * @param files Arguments, as far as they are given.
 * @throws UserError for flags that contradict each other, or have no effect.
 */
export function partsMode(
  given: readonly string[],
  files: readonly string[],
  use: PartsUse = CONVERSION,
): PartsMode | undefined {
  if (!given.some((name) => name in partsFlags)) return undefined;
  const found = MODE_NAMES.filter((name) => given.includes(name));
  const [mode, other] = found;
  if (mode === undefined) {
    const names = given.filter((each) => each in partsFlags).map((each) => `--${each}`);
    throw usageError(
      `${joined(names)}: expected also one of ${modesText()}`,
      adviceWithout(given, use),
    );
  }
  if (other !== undefined) {
    throw usageError(`--${mode} and --${other} contradict each other`, 'write only one of them');
  }
  if (!given.includes('plan')) {
    throw usageError(`--${mode} requires --plan`, 'write --plan plan.json');
  }
  refuseOthers(mode, given, files, use);
  return mode;
}

/** Advice for flags of parts without an action. */
function adviceWithout(given: readonly string[], use: PartsUse): string {
  const isKubernetes = given.includes('image') || given.includes('claim');
  if (isKubernetes) {
    return 'write --plan plan.json --launch kubernetes --image IMAGE --claim NAME';
  }
  if (given.includes('plan')) {
    return `write --parts 8${use.request} to plan, or --part 1 to do a part`;
  }
  const modes = MODE_NAMES.filter((mode) => {
    const own: readonly string[] = [...MODE_FLAGS[mode], ...(use.more[mode] ?? [])];
    return given.some((name) => own.includes(name) && name in partsFlags);
  });
  const [only, ...others] = modes;
  if (only === undefined || others.length > 0) return 'write --plan FILE with one of them';
  return `write --plan plan.json --${only}${VALUES[only] ?? ''}`;
}

/** Values of actions in advice. */
const VALUES: Readonly<Partial<Record<PartsMode, string>>> = { part: ' 1', launch: ' slurm' };

/** Flags of containers, which run only with Kubernetes. */
const PLACES = (['image', 'claim'] as const).map((name) => ({
  of: [name, 'excludes', ['launch', 'slurm'], ['launch', 'parallel']] as const,
  advice: () => 'write --launch kubernetes, or remove it',
}));

/** @throws UserError for a container image or claim if no container runs. */
export const refuseIdlePlaces = (
  flags: Readonly<Partial<Record<'launch' | 'image' | 'claim', string | undefined>>>,
): void => refuseBroken(PLACES, flags);

const modesText = () => joined(MODE_NAMES.map((name) => `--${name}`));

function refuseOthers(
  mode: PartsMode,
  given: readonly string[],
  files: readonly string[],
  use: PartsUse,
): void {
  const isPlan = mode === 'parts';
  const own = [...MODE_FLAGS[mode], ...(use.more[mode] ?? []), ...(isPlan ? use.planned : [])];
  const allowed: readonly string[] = [mode, ...OUTPUT, ...own];
  const first = given.find((name) => !allowed.includes(name));
  if (first !== undefined) {
    throw usageError(
      `--${first} has no effect with --${mode}`,
      !isPlan && use.planned.includes(first)
        ? `remove it: ${use.kept}; to change it, plan again`
        : 'remove it',
    );
  }
  if (isPlan) return;
  const takesOutput = use.outputs?.includes(mode) ?? false;
  if (files.length > (takesOutput ? 1 : 0)) {
    const found = files.map((each) => quote(each)).join(' and ');
    throw usageError(
      `--${mode}: expected ${takesOutput ? 'at most OUT' : `no ${use.files}`}, found ${found}`,
      'remove them: they are in the plan',
    );
  }
  const isForced = given.includes('output') || given.includes('save') || own.includes('force');
  if (given.includes('force') && !isForced) {
    const replacing = takesOutput ? '; --finish takes it, to replace OUT' : '';
    throw usageError(`--force has no effect with --${mode}`, `remove it${replacing}`);
  }
}
