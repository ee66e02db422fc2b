/** Programs that start another one: `python -m`, `torchrun train.py`, `npx`. Loaded only for a line that has one. */

import fs from 'node:fs';
import path from 'node:path';
import { isFolder } from '../../base/files/file-system.js';
import { ownValue } from '../../base/values.js';
import { PROGRAMS, programInFile, type Runner, runnerNamed, wordsOfImage } from './programs.js';
import { foldedName } from './spellings.js';

/** A line after the programs that start it. */
export interface StartedLine {
  /** The words from its own program or script on, and then the flags of the launchers. */
  readonly words: readonly string[];
  /** The script that it runs, as it was written. */
  readonly script?: string | undefined;
  /** Whether the script is run in several processes, as trainings are. */
  readonly isLaunched?: boolean;
  /** Words of the launchers that are not in the line, with the reason. */
  readonly leftOut?: readonly string[];
}

/** Lists of the GPUs that a program sees, one number or name for each. */
const VISIBLE = /^(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES$/;

/** Variables of programs that are flags of others: ollama/ollama 00182b5 docs/faq.mdx. */
const VARIABLES: Readonly<Record<string, string>> = {
  OLLAMA_NUM_PARALLEL: '--num-parallel',
  OLLAMA_KV_CACHE_TYPE: '--kv-cache-type',
  OLLAMA_CONTEXT_LENGTH: '--context-length',
  OLLAMA_FLASH_ATTENTION: '--flash-attn',
  // pytorch/torchtitan run_train.sh.
  CONFIG_FILE: '--config',
};

/** This program by its package or its file: `minimind@latest`, `./minimind`. */
const OURS = /^(?:.*[/\\])?minimind(?:@[\w.-]+)?$/;

/** Switches of `docker run`, which have no value: docker/cli docs/reference/commandline/container_run.md. */
const CONTAINER_SWITCHES =
  /^(?:-[dit]+|-P|--(?:detach|interactive|tty|rm|privileged|init|read-only|publish-all|no-healthcheck|oom-kill-disable|quiet|sig-proxy))$/;

/** Modules of Python that are such a launcher. */
const LAUNCHER_MODULES: Readonly<Record<string, string>> = {
  'torch.distributed.run': 'torchrun',
  'torch.distributed.launch': 'torchrun',
  'deepspeed.launcher.runner': 'deepspeed',
};

/** Scripts that are such a launcher: EleutherAI/gpt-neox README.md, huggingface/optimum-habana gaudi_spawn.py. */
const LAUNCHER_SCRIPTS: readonly (readonly [script: RegExp, launcher: string])[] = [
  [/^deepy\.py$/, 'deepspeed'],
  [/(?:^|\/)(?:\w+_)?(?:spawn|launch)\.py$/, 'torchrun'],
];

/** Flags of launchers that count processes of a machine, and machines. */
const PER_MACHINE = /^(?:nproc|nprocpernode|numgpus|gpuspernode|numaccelerators)$/;
const IN_ALL = /^(?:numprocesses|worldsize|numcores)$/;
const MACHINES = /^(?:nnodes|numnodes|nummachines)$/;

/** Short flags of launchers. */
const SHORT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  deepspeed: { '-i': 'include', '-e': 'exclude', '-H': 'hostfile' },
  composer: { '-n': 'nproc' },
};

/** Switches of launchers, which have no value: torch/distributed/run.py, accelerate/commands/launch.py. */
const SWITCHES =
  /^(?:standalone|multigpu|usefsdp|usedeepspeed|cpu|tpu|debug|nopython|module|quiet|useparallelismconfig|forcemulti|bindcorestorank)$/;

/** Recipes of torchtune that do not train, and the command for each: pytorch/torchtune bd2a0fc recipes. */
const RECIPES: Readonly<Record<string, string>> = {
  eleuther_eval: 'evaluate',
  generate: 'generate',
  quantize: 'quantize',
};

/** Variables that are read, or that hold a secret, which no line repeats. */
const COUNTED_VARIABLE = /^(?:NNODES|NPROC_PER_NODE|NGPU|(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES)$/;
const SECRET = /TOKEN|KEY|SECRET|PASSWORD/;

/** Note on a variable without a meaning here. */
function leftOutVariable([name, value]: Variable): string[] {
  if (COUNTED_VARIABLE.test(name) || ownValue(VARIABLES, name) !== undefined) return [];
  return [`${SECRET.test(name) ? name : `${name}=${value}`} has no counterpart here`];
}

const isAssignment = (word: string) => /^[A-Z][A-Z0-9_]*=/.test(word);

/**
 * The line that launchers start; undefined for a line without one.
 * @param words The words after `minimind`.
 */
export function startedLine(words: readonly string[]): StartedLine | undefined {
  const { rest, variables, gpus, leftOut } = withoutPrefix(words);
  const line = lineFrom(rest, rest !== words);
  if (line === undefined) return undefined;
  const isCounted = line.words.some((word) => /^--(?:gpus|num[-_]processes)(?:=|$)/.test(word));
  const count = gpus ?? launchedGpus(variables);
  const counted = isCounted || count === undefined ? [] : ['--gpus', String(count)];
  const flags = variables.flatMap(([name, value]) => {
    const flag = ownValue(VARIABLES, name);
    return flag === undefined || value === '' ? [] : [flag, value];
  });
  return {
    ...line,
    words: [...line.words, ...counted, ...flags],
    leftOut: [...leftOut, ...(line.leftOut ?? [])],
  };
}

type Variable = readonly [name: string, value: string];

/** The GPUs of a line by its variables: those of all machines, or those that the program sees. */
function launchedGpus(variables: readonly Variable[]): number | undefined {
  const values = new Map(variables);
  // hiyouga/LLaMA-Factory ff6d4d1 src/llamafactory/launcher.py, modelscope/ms-swift 3602360 swift/cli/main.py.
  const [machines, processes, cards] = ['NNODES', 'NPROC_PER_NODE', 'NGPU'].map((name) =>
    Number(values.get(name)),
  );
  const each = processes || cards;
  const visible = variables.find(([name]) => VISIBLE.test(name))?.[1].split(',').length ?? 0;
  const gpus = (each || visible) * (machines || 1);
  return gpus > 1 ? gpus : undefined;
}

function lineFrom(rest: readonly string[], hasPrefix: boolean): StartedLine | undefined {
  const [first = ''] = rest;
  if (isLauncher(rest)) {
    const name = first.toLowerCase();
    return fromLauncher(name, rest.slice(runnerNamed(first)?.words === undefined ? 1 : 2));
  }
  if (runnerNamed(first)?.starts === 'python') return fromPython(rest.slice(1));
  if (isScript(first) || isOfShell(first))
    return { words: [stemOf(first), ...rest.slice(1)], script: first };
  // Programs by their paths: `/usr/bin/python3`, `.venv/bin/torchrun`, `~/.local/bin/vllm`.
  const named = programOfPath(first);
  if (named !== undefined) {
    const own = [named, ...rest.slice(1)];
    return startedLine(own) ?? { words: own };
  }
  // The scripts of a program, after its name.
  if (PROGRAMS.has(first.toLowerCase()) && isScript(rest[1] ?? ''))
    return fromPython(rest.slice(1));
  const program = /[/\\.-]/.test(first) ? programInFile(first) : undefined;
  if (program !== undefined && program !== first) return { words: [program, ...rest.slice(1)] };
  return hasPrefix ? { words: rest } : undefined;
}

/** The program that a path ends with; undefined for other paths, and for names that models have, too. */
function programOfPath(text: string): string | undefined {
  const parts = text.replaceAll('\\', '/').split('/');
  const base = (parts.at(-1) ?? '').replace(/\.exe$/i, '');
  if (parts.length < 2 || isFolder(text)) return undefined;
  const isOfBin = parts.at(-2) === 'bin' || fs.existsSync(text);
  const isKnown = runnerNamed(base) !== undefined || (isOfBin && PROGRAMS.has(base.toLowerCase()));
  return isKnown ? base : undefined;
}

/** Whether a line starts the processes of a script: `accelerate launch`. */
function isLauncher([first = '', next = '']: readonly string[]): boolean {
  const runner = runnerNamed(first);
  if (runner?.starts !== 'processes') return false;
  return runner.words === undefined || runner.words.includes(next.toLowerCase());
}

/** Words before a line: variables, a program that starts it. */
interface Prefix {
  /** The words after it; the same list without a prefix. */
  readonly rest: readonly string[];
  readonly variables: readonly Variable[];
  /** GPUs of a container, or of the processes that are started. */
  readonly gpus?: number | undefined;
  readonly leftOut: readonly string[];
}

/** The line without variables, `sudo`, `npx`, `docker run`, and the name of this program. */
function withoutPrefix(words: readonly string[], before: readonly Variable[] = []): Prefix {
  const [first = '', next = '', ...rest] = words;
  if (isAssignment(first)) {
    const [name = '', value = ''] = first.split(/=(.*)/s);
    const inner = withoutPrefix(words.slice(1), [...before, [name, value]]);
    return { ...inner, leftOut: [...leftOutVariable([name, value]), ...inner.leftOut] };
  }
  // A folder of this name alone is a model.
  const isOurs = OURS.test(first) && (first === 'minimind' || words.length > 1);
  if (isOurs) {
    const own = words.slice(next === 'minimind' || next === '--' ? 2 : 1);
    return { rest: own, variables: before, leftOut: [] };
  }
  if (/^(?:--yes|-y|--)$/.test(first)) return withoutPrefix(words.slice(1), before);
  const runner = runnerNamed(first);
  if (runner?.starts === 'container' && next === 'model') {
    return { rest: ['docker-model', ...rest], variables: before, leftOut: [] };
  }
  const isNext = runner?.words?.includes(next) ?? false;
  if (runner?.starts === 'container' && isNext) return fromContainer(rest, before, next);
  if (runner?.starts !== 'program') return { rest: words, variables: before, leftOut: [] };
  return startedBy(runner, isNext ? rest : words.slice(1), before);
}

/** Reads what a program starts, after its own flags and arguments: `srun -n 8 python train.py`. */
function startedBy(
  { valued, counted, perMachine, machines, arguments: most = 0 }: Runner,
  words: readonly string[],
  before: readonly Variable[],
): Prefix {
  const leftOut: string[] = [];
  let [all, each, nodes] = [0, 0, 1];
  let at = 0;
  for (let left = most; at < words.length; ) {
    const word = words[at] ?? '';
    const [flag = '', inline] = word.split(/=(.*)/s);
    if (!word.startsWith('-')) {
      if (left === 0) break;
      left--;
      at++;
      continue;
    }
    const length = inline === undefined && valued?.test(flag) ? 2 : 1;
    // A kind can come before the number: --gres=gpu:a100:8.
    const count = Number(/(?:^|:)(\d+)$/.exec(inline ?? words[at + 1] ?? '')?.[1] ?? 0);
    if (counted?.test(flag) && count > 0) all = count;
    else if (perMachine?.test(flag) && count > 0) each = count;
    else if (machines?.test(flag) && count > 0) nodes = count;
    else leftOut.push(`${words.slice(at, at + length).join(' ')} is not needed`);
    at += length;
  }
  const inner = withoutPrefix(words.slice(at), before);
  const gpus = all || each * nodes;
  return {
    ...inner,
    gpus: inner.gpus ?? (gpus > 1 ? gpus : undefined),
    leftOut: [...leftOut, ...inner.leftOut],
  };
}

/** The program that a container starts, or that one which runs executes, without the flags of the container. */
function fromContainer(
  words: readonly string[],
  before: readonly Variable[],
  command: string,
): Prefix {
  const variables = [...before];
  let gpus: number | undefined;
  let at = 0;
  while (words[at]?.startsWith('-')) {
    const [flag = '', inline] = words[at]?.split(/=(.*)/s) ?? [];
    const value = inline ?? words[at + 1] ?? '';
    if (/^(?:-e|--env)$/.test(flag) && isAssignment(value)) {
      const [name = '', text = ''] = value.split(/=(.*)/s);
      variables.push([name, text]);
    }
    // A number of GPUs, or their numbers: --gpus '"device=0,1"'.
    const devices = /device=([\w,-]+)/.exec(value)?.[1]?.split(',').length;
    if (flag === '--gpus') gpus = devices ?? (Number(value) || undefined);
    at += inline === undefined && !CONTAINER_SWITCHES.test(flag) ? 2 : 1;
  }
  const started = words.slice(at + 1);
  const own = command === 'exec' ? started : wordsOfImage(words[at] ?? '', started);
  const { rest, ...inner } = withoutPrefix(own, variables);
  const leftOut = at > 0 ? ['the flags of the container are not needed'] : [];
  return { ...inner, rest, gpus: gpus === 1 ? undefined : gpus, leftOut };
}

const isScript = (word: string) => /\.py$/i.test(word);

/** A script of a shell that is started as it is: `./run_train.sh`. */
const isOfShell = (word: string) => /\.sh$/i.test(word);

/** A script as a command of another tool: `examples/train_gpt.py` is `train-gpt`. */
const stemOf = (script: string) =>
  path
    .basename(script.replaceAll('\\', '/'))
    .replace(/\.(?:py|sh)$/i, '')
    .replaceAll('_', '-')
    .toLowerCase();

function fromPython(words: readonly string[]): StartedLine | undefined {
  const at = words.findIndex((word) => !word.startsWith('-') || word === '-m');
  const word = words[at] ?? '';
  if (word !== '-m') {
    if (!isScript(word)) return undefined;
    const launcher = LAUNCHER_SCRIPTS.find(([script]) => script.test(word))?.[1];
    const started = launcher && fromLauncher(launcher, words.slice(at + 1));
    if (started) return started;
    return { words: [stemOf(word), ...withoutDashes(words.slice(at + 1))], script: word };
  }
  const [module = '', ...rest] = words.slice(at + 1);
  if (module === 'minimind') return { words: rest };
  const own = programCommand(module);
  if (own !== undefined) return { words: [...own, ...withoutDashes(rest)] };
  const launcher = ownValue(LAUNCHER_MODULES, module);
  if (launcher !== undefined) return fromLauncher(launcher, rest);
  return { words: [...moduleWords(module), ...withoutDashes(rest)], script: moduleFile(module) };
}

/** A module of Python as a command: `vllm.entrypoints.openai.api_server` is `api-server`. */
function moduleWords(module: string): string[] {
  const parts = module
    .toLowerCase()
    .replaceAll('_', '-')
    .replace(/\.(?:__main__|main)$/, '')
    .split('.');
  const [program = ''] = parts;
  const last = parts.at(-1) ?? '';
  return PROGRAMS.has(program) && parts.length === 2 ? [program, last] : [last];
}

/** A command of a program by its module: `swift.cli.sft` is `swift sft`; undefined for other modules. */
function programCommand(module: string): string[] | undefined {
  const [program = '', folder, command = '', ...more] = module.toLowerCase().split('.');
  const isCommand = folder === 'cli' && command !== '' && more.length === 0;
  return isCommand && PROGRAMS.has(program) ? [program, command.replaceAll('_', '-')] : undefined;
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
      const own = programCommand(module);
      const line: StartedLine = own
        ? { words: own }
        : { words: moduleWords(module), script: moduleFile(module) };
      return withFlags(line, words.slice(at + 2));
    }
    if (!word.startsWith('-')) {
      if (launcher === 'tune')
        return withFlags(
          { words: [recipeCommand(word)], leftOut: leftOutRecipe(word) },
          words.slice(at + 1).flatMap((each) => recipeWords('tune', each)),
        );
      if (!isScript(word)) return undefined;
      return withFlags({ words: [stemOf(word)], script: word }, words.slice(at + 1));
    }
    const [written = '', inline] = word.split(/=(.*)/s);
    const short = ownValue(ownValue(SHORT, launcher) ?? {}, written);
    const name = short ?? foldedName(written);
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
    else {
      const isConfig = launcher === 'accelerate' && name === 'configfile';
      flags.push(isConfig ? '--accelerate.config_file' : written);
      if (value !== undefined) flags.push(value);
    }
  }
  return undefined;

  /** The line with the arguments of the script, the GPUs of all machines, and the launcher's other flags. */
  function withFlags(line: StartedLine, rest: readonly string[]): StartedLine {
    const gpus = all || perMachine * machines;
    if (gpus === 0 && machines > 1) leftOut.push(`${machines} machines without a number of GPUs`);
    const counted = gpus > 1 ? ['--gpus', String(gpus)] : [];
    const words = [...line.words, ...withoutDashes(rest), ...counted, ...flags];
    return { ...line, words, leftOut: [...(line.leftOut ?? []), ...leftOut], isLaunched: true };
  }
}

/** The command for a recipe of torchtune: `lora_finetune_single_device`. */
const recipeCommand = (recipe: string): string =>
  ownValue(RECIPES, recipe) ?? (/^(?:qat_)?lora_/.test(recipe) ? 'finetune-lora' : 'train');

/** Parts of torchtune recipes without a counterpart here: reinforcement learning, and training with quantized weights. */
function leftOutRecipe(recipe: string): string[] {
  const isRead = Object.hasOwn(RECIPES, recipe) || /^(?:full|lora)_finetune_/.test(recipe);
  return isRead
    ? []
    : [`${recipe} is read as ${/lora/.test(recipe) ? 'adapters' : 'a training of all weights'}`];
}

/**
 * A config of XTuner as the name of its model, and adapters: InternLM/xtuner xtuner/configs, as in
 * `internlm2_chat_7b_qlora_oasst1_e3`.
 */
const XTUNER_CONFIG =
  /^(?:.*[/\\])?([a-z][a-z0-9_]*?_\d+(?:_\d+)?b(?:_chat|_instruct)?)_(qlora|lora|full)_\w+?(?:\.py)?$/i;

/** The words of a program's config by the model that it is named after. */
export function recipeWords(program: string, word: string): string[] {
  if (program === 'tune') return [withRecipeModel(word)];
  const [, model, kind] = (program === 'xtuner' ? XTUNER_CONFIG.exec(word) : null) ?? [];
  if (model === undefined || kind === undefined || fs.existsSync(word)) return [word];
  const name = model.replace(/(?<=\d)_(?=\d+_)/g, '.').replaceAll('_', '-');
  return [name, ...(kind === 'full' ? [] : [`--finetuning-type=${kind}`])];
}

/** A config of a recipe as the name of its model: `llama3_1/8B_lora_single_device` is `llama3.1-8B`. */
const withRecipeModel = (word: string): string => {
  const [, series, size] = /^([a-z]+\d?(?:_\d+)?)\/(\d+(?:\.\d+)?B|mini)_\w+$/i.exec(word) ?? [];
  return series === undefined || fs.existsSync(word) ? word : `${series.replace('_', '.')}-${size}`;
};

/**
 * GPUs of `--include localhost:0,1@worker-2:0`; NaN where a machine has no list: deepspeedai/DeepSpeed edaa722
 * deepspeed/launcher/runner.py.
 */
const includedGpus = (text: string): number =>
  text
    .split('@')
    .map((machine) => /^[^:]+:(\d+(?:,\d+)*)$/.exec(machine)?.[1]?.split(',').length ?? Number.NaN)
    .reduce((sum, count) => sum + count, 0);
