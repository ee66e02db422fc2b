/** Programs that start another one: `python -m`, `torchrun train.py`, `npx`. Loaded only for a line that has one. */

import path from 'node:path';
import { ownValue } from '../../base/text/words.js';
import { PROGRAMS } from './foreign-commands.js';
import { foldedName } from './spellings.js';

/** A line after the programs that start it. */
export interface StartedLine {
  /** The words from its own program or script on, and then the flags of the launchers. */
  readonly words: readonly string[];
  /** The script that it runs, as it was written. */
  readonly script?: string | undefined;
  /** Words of the launchers that are not in the line, with the reason. */
  readonly leftOut?: readonly string[];
}

/** Lists of the GPUs that a program sees, one number or name for each. */
const VISIBLE = /^(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES$/;

/** Variables of programs that are flags of others: ollama docs/faq.mdx. */
const VARIABLES: Readonly<Record<string, string>> = {
  OLLAMA_NUM_PARALLEL: '--num-parallel',
  OLLAMA_KV_CACHE_TYPE: '--kv-cache-type',
  OLLAMA_CONTEXT_LENGTH: '--context-length',
};

/** This program by its package or its file: `minimind@latest`, `./minimind`. */
const OURS = /^(?:.*[/\\])?minimind(?:@[\w.-]+)?$/;

/** Words before another program, which change nothing in its answer. */
const BEFORE: Readonly<Record<string, readonly string[]>> = {
  ...{ sudo: [], nohup: [], time: [], exec: [], srun: [], npx: [], bunx: [], pipx: [], uvx: [] },
  ...{ uv: ['run'], poetry: ['run'], pdm: ['run'], npm: ['exec'], pnpm: ['dlx', 'exec'] },
};

const PYTHON = /^(?:python[\d.]*|py|ipython)$/;

/** Launchers of training scripts, with the words of their command: torchrun, accelerate 1.x, DeepSpeed, torchtune. */
const LAUNCHERS: readonly (readonly string[])[] = [
  ['torchrun'],
  ['accelerate', 'launch'],
  ['deepspeed'],
  ['tune', 'run'],
];

/** Modules of Python that are such a launcher. */
const LAUNCHER_MODULES: Readonly<Record<string, string>> = {
  'torch.distributed.run': 'torchrun',
  'torch.distributed.launch': 'torchrun',
  'deepspeed.launcher.runner': 'deepspeed',
};

/** Flags of launchers that count processes of a machine, and machines. */
const PER_MACHINE = /^(?:nprocpernode|numgpus|gpuspernode)$/;
const IN_ALL = /^numprocesses$/;
const MACHINES = /^(?:nnodes|numnodes|nummachines)$/;

/** Switches of launchers, which have no value: torch/distributed/run.py, accelerate/commands/launch.py. */
const SWITCHES =
  /^(?:standalone|multigpu|usefsdp|usedeepspeed|cpu|tpu|debug|nopython|module|quiet|useparallelismconfig|forcemulti|bindcorestorank)$/;

/** Recipes of torchtune that do not train, and the command for each: recipes of pytorch/torchtune 0.6. */
const RECIPES: Readonly<Record<string, string>> = {
  eleuther_eval: 'evaluate',
  generate: 'generate',
  quantize: 'quantize',
};

const isAssignment = (word: string) => /^[A-Z][A-Z0-9_]*=/.test(word);

/**
 * The line that launchers start; undefined for a line without one.
 * @param words The words after `minimind`.
 */
export function startedLine(words: readonly string[]): StartedLine | undefined {
  const rest = withoutPrefix(words);
  const line = lineFrom(rest, rest.length < words.length);
  if (line === undefined) return undefined;
  const flags = words.slice(0, words.length - rest.length).flatMap(flagOfVariable);
  const isCounted = flags[0] === '--gpus' && line.words.some((word) => /^--gpus(?:=|$)/.test(word));
  return { ...line, words: [...line.words, ...flags.slice(isCounted ? 2 : 0)] };
}

/** A variable before a program as the flag that says the same. */
function flagOfVariable(word: string): string[] {
  const [name = '', value = ''] = isAssignment(word) ? word.split(/=(.*)/s) : [];
  const gpus = VISIBLE.test(name) ? value.split(',').length : 0;
  if (gpus > 1) return ['--gpus', String(gpus)];
  const flag = Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
  return flag === undefined || value === '' ? [] : [flag, value];
}

function lineFrom(rest: readonly string[], hasPrefix: boolean): StartedLine | undefined {
  const [first = ''] = rest;
  if (hasPrefix && !isStarter(rest)) return { words: rest };
  if (PYTHON.test(first.toLowerCase())) return fromPython(rest.slice(1));
  const launcher = launcherOf(rest);
  if (launcher !== undefined) return fromLauncher(launcher[0] ?? '', rest.slice(launcher.length));
  const script = isScript(first) ? first : undefined;
  return script === undefined ? undefined : { words: [stemOf(script), ...rest.slice(1)], script };
}

/** The line without variables, `sudo`, `npx`, and the name of this program. */
function withoutPrefix(words: readonly string[]): readonly string[] {
  const [first = '', next = '', ...rest] = words;
  if (isAssignment(first)) return withoutPrefix(words.slice(1));
  // A folder of this name alone is a model.
  const isOurs = OURS.test(first) && (first === 'minimind' || words.length > 1);
  if (isOurs) return words.slice(next === 'minimind' || next === '--' ? 2 : 1);
  if (/^(?:--yes|-y|--)$/.test(first)) return withoutPrefix(words.slice(1));
  if (!Object.hasOwn(BEFORE, first)) return words;
  const own = ownValue(BEFORE, first) ?? [];
  return withoutPrefix(own.includes(next) ? rest : words.slice(1));
}

const isStarter = (words: readonly string[]): boolean =>
  PYTHON.test(words[0]?.toLowerCase() ?? '') ||
  launcherOf(words) !== undefined ||
  isScript(words[0] ?? '');

const launcherOf = (words: readonly string[]): readonly string[] | undefined =>
  LAUNCHERS.find((launcher) => launcher.every((each, at) => words[at]?.toLowerCase() === each));

const isScript = (word: string) => /\.py$/i.test(word);

/** A script as a command of another tool: `examples/train_gpt.py` is `train-gpt`. */
const stemOf = (script: string) =>
  path
    .basename(script.replaceAll('\\', '/'))
    .replace(/\.py$/i, '')
    .replaceAll('_', '-')
    .toLowerCase();

function fromPython(words: readonly string[]): StartedLine | undefined {
  const at = words.findIndex((word) => !word.startsWith('-') || word === '-m');
  const word = words[at] ?? '';
  if (word !== '-m') {
    if (!isScript(word)) return undefined;
    return { words: [stemOf(word), ...withoutDashes(words.slice(at + 1))], script: word };
  }
  const [module = '', ...rest] = words.slice(at + 1);
  if (module === 'minimind') return { words: rest };
  const launcher = ownValue(LAUNCHER_MODULES, module);
  if (launcher !== undefined) return fromLauncher(launcher, rest);
  return { words: [...moduleWords(module), ...withoutDashes(rest)], script: moduleFile(module) };
}

/** A module of Python as a command: `vllm.entrypoints.openai.api_server` is `api-server`. */
function moduleWords(module: string): string[] {
  const parts = module.toLowerCase().replaceAll('_', '-').split('.');
  const [program = ''] = parts;
  const last = parts.at(-1) ?? '';
  return PROGRAMS.has(program) && parts.length === 2 ? [program, last] : [last];
}

const moduleFile = (module: string) => `${module.replaceAll('.', '/')}.py`;

/** The words without `--`, after which programs expect the flags of another one. */
const withoutDashes = (words: readonly string[]) => words.filter((word) => word !== '--');

function fromLauncher(launcher: string, words: readonly string[]): StartedLine | undefined {
  const flags: string[] = [];
  const leftOut: string[] = [];
  let [perMachine, machines, all] = [0, 1, 0];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '-m' || word === '--module') {
      const module = words[at + 1] ?? '';
      const line = { words: moduleWords(module), script: moduleFile(module) };
      return withFlags(line, words.slice(at + 2));
    }
    if (!word.startsWith('-')) {
      const command = launcher === 'tune' ? (ownValue(RECIPES, word) ?? 'train') : stemOf(word);
      const script = launcher === 'tune' ? undefined : word;
      if (script !== undefined && !isScript(script)) return undefined;
      return withFlags({ words: [command], script }, words.slice(at + 1));
    }
    const [written = '', inline] = word.split(/=(.*)/s);
    const name = foldedName(written);
    const next = words[at + 1] ?? '';
    const hasNext = !SWITCHES.test(name) && !/^-|\.py$/.test(next) && next !== '';
    const value = inline ?? (hasNext ? next : undefined);
    if (inline === undefined && hasNext) at++;
    const count = /^include$/.test(name) ? includedGpus(value ?? '') : Number(value);
    const isCount = [PER_MACHINE, MACHINES, IN_ALL, /^include$/].some((each) => each.test(name));
    if (isCount && !(count > 0))
      leftOut.push(`${word}${inline === undefined ? ` ${value ?? ''}` : ''} is not a number`);
    else if (name === 'include') all = count;
    else if (PER_MACHINE.test(name)) perMachine = count;
    else if (MACHINES.test(name)) machines = count;
    else if (IN_ALL.test(name)) all = count;
    else flags.push(written, ...(value === undefined ? [] : [value]));
  }
  return undefined;

  /** The line with the arguments of the script, the GPUs of all machines, and the launcher's other flags. */
  function withFlags(line: StartedLine, rest: readonly string[]): StartedLine {
    const gpus = all || perMachine * machines;
    if (gpus === 0 && machines > 1) leftOut.push(`${machines} machines without a number of GPUs`);
    const counted = gpus > 1 ? ['--gpus', String(gpus)] : [];
    const words = [...line.words, ...withoutDashes(rest), ...counted, ...flags];
    return { ...line, words, leftOut };
  }
}

/** GPUs of `--include localhost:0,1@worker-2:0`; NaN where a machine has no list: deepspeed/launcher/runner.py. */
const includedGpus = (text: string): number =>
  text
    .split('@')
    .map((machine) => /^[^:]+:(\d+(?:,\d+)*)$/.exec(machine)?.[1]?.split(',').length ?? Number.NaN)
    .reduce((sum, count) => sum + count, 0);
