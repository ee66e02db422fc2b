/** Lines that begin with no command of ours: words of other tools, scripts, models, sentences. Loaded only for one. */
import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '@oclif/core/config';
import { type UserError, usageError } from '../../base/errors.js';
import { isHubName } from '../../base/text/hub-names.js';
import { ownValue } from '../../base/values.js';
import { nearest } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { isHardwareName } from '../flags/hardware-flags.js';
import { KINDS } from '../line/extra-words.js';
import { LineMistake, type MeantLine } from '../line/line-mistake.js';
import { missingFile } from '../line/missing-file.js';
import { type StartedLine, startedLine } from './launchers.js';
import {
  commandAdvice,
  flagMeanings,
  isBenchmark,
  isHelp,
  isProgram,
  isVerb,
  nearestCommand,
  programWords,
  type VerbWords,
  verbLines,
} from './meanings.js';
import { PROGRAMS, runnerNamed } from './programs.js';
import { scriptError, scriptIn, scriptLine } from './scripts.js';
import {
  memoryAdvice,
  memoryInSentence,
  modelsInSentence,
  type SaidLine,
  sentenceLine,
} from './sentences.js';
import { nanoModel, sizedModel } from './sizes-in-flags.js';

/**
 * The error for words that begin with no command of ours.
 * @param written The words of a command's name.
 */
export async function unknownCommand(
  written: readonly string[],
  words: readonly string[],
  config: Config,
): Promise<UserError> {
  const quoted = words.length === 1 ? words[0]?.trim().split(/\s+/) : undefined;
  if (quoted !== undefined && quoted.length > 1) return quotedLine(quoted, config);
  const other = await otherStart(words, config);
  if (other !== undefined) return other;
  const said = written.length > 1 ? undefined : await saidLine(words);
  const typed = written.length > 1 ? words : programWords(words);
  const text = typed === words ? written.join(' ') : (typed[0] ?? '');
  const hyphenated = text.replaceAll('_', '-');
  if (written.length === 1 && words.length > 1 && config.findCommand(hyphenated)) {
    return new LineMistake(`expected a command, found ${quote(text)}`, [
      { words: [hyphenated, ...words.slice(1)], isSpelling: true },
    ]);
  }
  const script = isVerb(text) || isProgram(typed) ? undefined : scriptIn(words);
  if (script !== undefined && said === undefined) return scriptError('a command', script);
  const rest = typed.slice(written.length);
  const mistake = verbMistake({ text, rest, typed, words, said }, config);
  if (mistake !== undefined) return mistake;
  // A program of others is not a typing mistake.
  const isOther = PROGRAMS.has(text.toLowerCase()) || runnerNamed(text) !== undefined;
  if (isOther) {
    return usageError(
      `expected a command, found ${quote(text)}`,
      'write its command after it; docs/coming-from.md has lines of each program',
    );
  }
  const [topic = '', own] = written;
  if (own !== undefined) return topicMistake(topic, own, rest, config);
  const lines = await nearestLines(text, rest, words, config);
  return new LineMistake(`expected a command, found ${quote(text)}`, lines, {
    otherwise: 'minimind --help lists the commands',
  });
}

/** The error for a whole line, or a sentence, in quotes: `minimind "how big is qwen3-8b"`. */
async function quotedLine(words: readonly string[], config: Config): Promise<UserError> {
  const [command = ''] = words;
  if (config.findCommand(command) === undefined) return unknownCommand([command], words, config);
  return new LineMistake(`expected a command, found ${quote(words.join(' '))}`, [
    { words, isSpelling: true },
  ]);
}

/** The mistake of a line with a topic and none of its commands. */
function topicMistake(
  topic: string,
  own: string,
  rest: readonly string[],
  { commandIDs }: Config,
): LineMistake {
  const names = commandIDs
    .flatMap((id) => (id.startsWith(`${topic}:`) ? [id.slice(topic.length + 1)] : []))
    .sort();
  const meant = nearestCommand(own, names);
  const lines =
    meant === undefined
      ? []
      : [{ words: [topic, meant, ...rest], lead: `did you mean ${topic} ${meant}?` }];
  return new LineMistake(`expected a command of ${topic}, found ${quote(own)}`, lines, {
    otherwise: `write one of ${names.join(', ')}, as minimind ${topic} --help shows`,
  });
}

/** The words of a line that begins with no command of ours. */
interface UnknownLine {
  /** The first word, or the words of a command's name. */
  readonly text: string;
  /** The words after it. */
  readonly rest: readonly string[];
  /** All words, with the name of a program apart. */
  readonly typed: readonly string[];
  readonly words: readonly string[];
  /** The line that the words mean as a sentence. */
  readonly said: SaidLine | undefined;
}

/** The mistake of a line that is a command of another tool, or a sentence; undefined for others. */
function verbMistake(
  { text, rest, typed, words, said }: UnknownLine,
  config: Config,
): LineMistake | undefined {
  const verbs = said?.hasFormat ? [] : verbLines(text, verbWords(rest, config));
  const advice = commandAdvice(text, rest) ?? memoryInSentence(words) ?? modelsInSentence(words);
  if (verbs.length === 0 && said === undefined && advice === undefined) return undefined;
  const spoken = said === undefined ? [] : [said.words];
  const memory = said?.exampleOf;
  const meanings = said?.isSpoken ? [...spoken, ...verbs] : [...verbs, ...spoken];
  const lines = meanings.map((meant) => ({
    words: meant,
    isSpelling: isHelp(isProgram(typed) ? rest.slice(1) : rest),
    isOfTool: meant !== said?.words,
    lead:
      memory === undefined || meant !== said?.words
        ? `did you mean ${commandIn(meant, config)}?`
        : `with a usual card of ${memory}:`,
    hasExample: memory !== undefined && meant === said?.words,
  }));
  return new LineMistake(`expected a command, found ${quote(text)}`, lines, {
    more: memory === undefined ? undefined : memoryAdvice(memory),
    otherwise:
      advice ?? missingFile(words.filter(isModelFile)) ?? 'minimind --help lists the commands',
  });
}

/** Lines for a typing mistake, a model, flags, a size or a card in the place of a command. */
async function nearestLines(
  text: string,
  rest: readonly string[],
  words: readonly string[],
  config: Config,
): Promise<MeantLine[]> {
  const isFlag = text.startsWith('-');
  const topics = config.topics.map(({ name }) => name);
  const ids = [...config.commandIDs, ...topics].map((id) => id.replaceAll(':', ' '));
  const close = isFlag
    ? nearest(text, ['--version', '--help'])
    : nearestCommand(text, [...new Set(ids)]);
  const isFile = close === undefined && !isFlag && (await isModel(text));
  const meant = isFile ? [await commandOf(text), text] : close?.split(' ');
  if (meant === undefined) {
    return isFlag ? withoutCommand(words, config) : linesWithoutCommand(text, rest);
  }
  const [next = '', ...later] = rest;
  const pair = /^(?:to|into|as)$/i.test(next) ? later : rest;
  const isPair = isFile && isWeights(text) && isWeights(pair[0] ?? '');
  if (isPair) return [{ words: ['convert-checkpoint', text, ...pair] }];
  const line = { words: [...meant, ...rest], lead: `did you mean ${meant.join(' ')}?` };
  const hasCard = rest.some((word) => /^--gpu(?:=|$)/.test(word) || isCard(word));
  if (!isFile || !hasCard) return [line];
  return [{ words: ['fit', text, ...rest], lead: 'did you mean fit?' }, line];
}

/** Words with what a verb has to know of our flags and commands. */
const verbWords = (words: readonly string[], config: Config): VerbWords => ({
  words,
  isSwitch: (word) => isSwitch(word, config),
  isCommand: (word) => config.findCommand(word) !== undefined,
});

/** Whether a word names a card, which has letters and a number, or one number that is no count. */
const isCard = (word: string) => /\d{3}|[a-z]+.*\d/i.test(word) && isHardwareName(word);

/** Lines for flags alone: a model by its flag, or flags of the commands about a model. */
function withoutCommand(words: readonly string[], config: Config): MeantLine[] {
  const [flag = ''] = words[0]?.split('=', 1) ?? [];
  const name = flag.replace(/^-+/, '');
  const isModel = flagMeanings(name, 'profile').some((each) => each.name === '<model>');
  const owners = ['profile', 'fit'].filter((id) =>
    Object.hasOwn(config.findCommand(id)?.flags ?? {}, name.replaceAll('_', '-')),
  );
  const isOurs = flag.startsWith('--') && owners.length > 0;
  if (!isModel && !isOurs) return [];
  const hasCard = words.some((word) => /^--gpu(?:=|$)/.test(word));
  const command = hasCard || (!isModel && !owners.includes('profile')) ? 'fit' : 'profile';
  return [{ words: [command, ...words], isOfTool: true, lead: `did you mean ${command}?` }];
}

/** The line that a sentence means. */
const saidLine = (words: readonly string[]): Promise<SaidLine | undefined> =>
  sentenceLine(words, { isModel: isPresent, isCard: isHardwareName });

/** The mistake of a line of ours, with the line that its words mean as a sentence as the last one. */
export async function withSentence(
  mistake: LineMistake,
  words: readonly string[],
): Promise<LineMistake> {
  const said = await saidLine(words);
  if (said === undefined || said.words.join(' ') === words.join(' ')) return mistake;
  // A memory in the place of a card is a mistake of its own.
  if (said.exampleOf !== undefined) return mistake;
  const lead = `did you mean ${said.words[0]}?`;
  const lines = [...mistake.lines, { words: said.words, lead }];
  return new LineMistake(mistake.message, lines, mistake.advice);
}

/** The error for a line whose command comes later: after flags, or after programs that start it. */
async function otherStart(
  words: readonly string[],
  config: Config,
): Promise<UserError | undefined> {
  const [first = ''] = words;
  const at = flagsBefore(words, config);
  const own = words[at] ?? '';
  if (at > 0 && (config.findCommand(own) ?? config.findTopic(own))) {
    const meant = [...words.slice(at), ...words.slice(0, at)];
    return new LineMistake(`expected a command, found ${quote(first)}`, [
      { words: meant, isSpelling: true },
    ]);
  }
  const started = startedLine(words);
  if (started === undefined) return undefined;
  if ((started.words[0] ?? '') === '') {
    return usageError(
      `expected a command, found ${quote(words.join(' '))} alone`,
      'minimind --help lists the commands',
    );
  }
  const { script } = started;
  return script === undefined
    ? programStart(words, started, config)
    : scriptStart({ ...started, script }, config);
}

/** A line that starts a script. */
interface StartedScript extends StartedLine {
  readonly script: string;
}

/** The error for a line of a program that another one starts: `npx minimind profile`, `docker run vllm/vllm-openai`. */
async function programStart(
  words: readonly string[],
  { words: own, leftOut = [] }: StartedLine,
  config: Config,
): Promise<UserError> {
  const [first = ''] = words;
  const [command = ''] = own;
  if (config.findCommand(command) !== undefined) {
    const isSpelling = first !== 'tune' && leftOut.length === 0;
    return new LineMistake(`expected a command, found ${quote(first)}`, [
      { words: own, isSpelling, isOfTool: true, leftOut },
    ]);
  }
  const error = await unknownCommand([command], own, config);
  if (!(error instanceof LineMistake)) return error;
  // The word need not be one of the user's: `tune run` has recipes.
  const message = words.includes(command)
    ? error.message
    : `expected a command, found ${quote(first)}`;
  const lines = error.lines.map((line) => ({
    ...line,
    leftOut: [...leftOut, ...(line.leftOut ?? [])],
  }));
  return new LineMistake(message, lines, error.advice);
}

/** The error for a line that starts a script; undefined for one of our projects, which has an example of its own. */
async function scriptStart(started: StartedScript, config: Config): Promise<UserError | undefined> {
  const { leftOut = [] } = started;
  const [command = '', ...written] = started.words;
  const rest = withoutSubcommand(written, started).map(modelOfConfig).map(asFlag);
  const isCommand = config.findCommand(command) !== undefined;
  // The config of a launcher names no model.
  const values = rest
    .filter((_, at) => rest[at - 1] !== '--accelerate.config_file')
    .map((word) => word.replace(/^(?:--|\+{0,2}(?=[a-z]))[\w.-]+=/i, ''));
  const isNamed = await Promise.all(
    values.map(async (word) => !IS_DATA.test(word) && isPresent(word)),
  );
  const { message, suggestion } = scriptError('a command', started.script);
  const verb = verbWords(rest, config);
  const inPath = verbLines(verbInPath(started), verb);
  const named = GENERIC.test(command) && inPath.length > 0 ? inPath : verbLines(command, verb);
  const verbs = named.length > 0 || isCommand ? named : inPath;
  const advice = commandAdvice(command, rest);
  const isRefused = verbs.length === 0 || isBenchmark(command, rest);
  if (advice !== undefined && isRefused) return usageError(message, advice);
  const isModel = isNamed.includes(true) || values.some(isHubName) || rest.some(isModelFlag);
  if (!isModel) {
    const verb = verbs[0]?.[0] ?? (isCommand ? command : undefined);
    const isPlace = (word: string) => isModelFile(word) || /^(?:\.{0,2}|~)\//.test(word);
    const missing = missingFile(rest.slice(0, 1).filter(isPlace));
    if (missing !== undefined && verb !== undefined) return usageError(message, missing);
    const at = rest.findIndex((word) => IS_CONFIG_FLAG.test(word));
    const inline = /=(.*)$/s.exec(rest[at] ?? '')?.[1];
    const config =
      at < 0 ? undefined : missingFile([inline ?? rest[at + 1] ?? ''].filter(isModelFile));
    if (config !== undefined) return usageError(message, config);
    const sized = verb === 'train-plan' ? (sizedModel(rest) ?? nanoModel(rest)) : undefined;
    if (sized !== undefined) {
      const lead = `its sizes, as a model like ${sized.model}:`;
      const own = {
        words: ['train-plan', sized.model, ...sized.words],
        isOfTool: true,
        leftOut,
        lead,
      };
      return new LineMistake(message, [own], { otherwise: suggestion });
    }
    const isOfAdapters = verbs.some((each) => each.join(' ').startsWith(OF_ADAPTERS.join(' ')));
    const line = isOfAdapters
      ? [...OF_ADAPTERS.slice(0, 1), TRAINING[1], ...OF_ADAPTERS.slice(1)]
      : (scriptLine(started.script) ?? ownValue(EXAMPLES, verb ?? ''));
    // Some scripts have a line without a model.
    const example = (await isPresent(line?.[1] ?? '')) ? line : undefined;
    // Arguments of the user name another model than the example.
    const hasArgument = rest.length > 0 && !rest[0]?.startsWith('-');
    if (example === undefined || hasArgument) {
      return verb === undefined || (line !== undefined && !hasArgument)
        ? undefined
        : usageError(message, `name a config or a preset, as minimind ${verb} --help shows`);
    }
    if (rest.length === 0) return undefined;
    const lead = `with your model in the place of ${example[1]}:`;
    const words = [...exampleFor(rest, example), ...rest];
    const own = { words, isOfTool: true, leftOut, hasExample: true, lead };
    return new LineMistake(message, [own], { otherwise: suggestion });
  }
  const lines = isCommand ? [[...started.words], ...verbs] : verbs;
  return new LineMistake(
    message,
    lines.map((meant) => ({
      words: meant,
      isOfTool: true,
      leftOut,
      lead: `did you mean ${commandIn(meant, config)}?`,
    })),
    { otherwise: suggestion },
  );
}

/** The example without flags that the words give, or a length of a training; epochs are those of some data. */
function exampleFor(words: readonly string[], example: readonly string[]): readonly string[] {
  const [command = '', model = '', ...flags] = example;
  if (command !== 'train-plan') {
    // A prompt is in the place of its tokens.
    const namesOf = (name: string) => (name === 'ids' ? [name, '<prompt>', 'batch'] : [name]);
    const isOther = (name: string) =>
      !words.some((word) => namesOf(name).some((each) => isFlagFor(word, each, command)));
    return [command, model, ...flagsWith(flags, isOther)];
  }
  const isGiven = (meant: string) => words.some((word) => isFlagFor(word, meant, 'train-plan'));
  if (!['tokens', 'steps', 'epochs'].some(isGiven)) return example;
  const hasData = words.some((word) => IS_DATA.test(word) && fs.existsSync(word));
  const needsData = isGiven('epochs') && !hasData && !isGiven('data-tokens');
  return [...example.slice(0, 2), ...(needsData ? ['--data-tokens', '1B'] : [])];
}

/** The flags of some names, with their values. */
function flagsWith(words: readonly string[], isKept: (name: string) => boolean): string[] {
  let keeps = true;
  return words.filter((word) => {
    if (word.startsWith('--')) keeps = isKept(word.slice(2));
    return keeps;
  });
}

/** Whether a word is a flag of this name, or of another tool with this meaning for any value. */
function isFlagFor(word: string, meant: string, command: string): boolean {
  const name = /^--?([a-z][\w.-]*)/i.exec(word)?.[1];
  if (name === undefined) return false;
  const isMeant = flagMeanings(name, command).some(
    (each) => each.name === meant && each.onlyFor === undefined,
  );
  return isMeant || name.replaceAll('_', '-') === meant;
}

/** Whether a flag names a model; --config can be that of a training. */
const isModelFlag = (word: string): boolean =>
  !/^--?config\b/.test(word) && isFlagFor(word, '<model>', 'profile');

/** The line for a training script whose model is not named. */
const TRAINING = ['train-plan', 'minimind2-small', '--tokens', '1B'] as const;

/** Lines for scripts whose model is not named, by their command. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'train-plan': TRAINING,
  generate: ['generate', 'minimind2-small', '--random'],
};

/** The beginning of the line for a training of adapters. */
const OF_ADAPTERS = ['fit', '--for', 'lora'] as const;

/** The words without a command of the script, where a flag names the model: `-m trainer.cli run --model M`. */
function withoutSubcommand(
  words: readonly string[],
  { isLaunched = false }: StartedScript,
): readonly string[] {
  const [first = ''] = words;
  const isOther = isLaunched && /^[a-z]+$/.test(first) && !fs.existsSync(first);
  return isOther && words.some((word) => /^--model(?:[-_]|=|$)/.test(word))
    ? words.slice(1)
    : words;
}

/** A key of a part of a config, as in Hydra, as a flag: `trainer.nnodes=2`. */
const asFlag = (word: string): string =>
  /^\+{0,2}[a-z]\w*(?:\.\w+)+=./i.test(word) && !fs.existsSync(word)
    ? `--${word.replace(/^\+*/, '')}`
    : word;

/** A config of nanoGPT as the name of its model: `config/train_gpt2.py`. */
const modelOfConfig = (word: string): string =>
  /^(?:.*\/)?(?:train|eval)_(gpt2\w*)\.py$/.exec(word)?.[1]?.replaceAll('_', '-') ??
  ownValue(DEPTHS, word) ??
  word;

/** GPT-2 by its number of layers: karpathy/llm.c train_gpt2.py, `--model`. */
const DEPTHS: Readonly<Record<string, string>> = {
  ...{ d12: 'gpt2', d24: 'gpt2-medium', d36: 'gpt2-large', d48: 'gpt2-xl' },
};

/** Names of scripts that say nothing: their folders do. */
const GENERIC = /^(?:main|run|cli|entry|start|launch)$/;

/** Verbs in the names of scripts, and the commands for them. */
const VERBS_IN_NAMES: readonly (readonly [name: RegExp, verb: string])[] = [
  [/(?:^|-)(?:pre)?train|fine-?tun|(?:^|-)(?:sft|dpo|grpo|ppo|clm|mlm)(?:-|$)/, 'train'],
  [/(?:^|-)merge-?.*(?:lora|peft|adapter)/, 'merge-lora'],
  [/(?:^|-)(?:eval|perplexity|ppl)/, 'eval'],
  [/(?:^|-)bench/, 'bench'],
  [/(?:^|-)(?:awq|gptq|quant)/, 'quantize'],
  [/(?:^|-)(?:generate|infer|chat|sample|demo)/, 'generate-text'],
  [/(?:^|-)(?:serve|serving|server|api)/, 'serve'],
];

/**
 * The verb in the name of a script, or else in those of its folders: `fastchat/serve/model_worker.py`. What runs in
 * several processes is a training.
 */
function verbInPath({ script, isLaunched = false }: StartedScript): string {
  const parts = script
    .toLowerCase()
    .replace(/\.(?:py|sh)$/, '')
    .replaceAll('_', '-')
    .split(/[/\\]/);
  const verbs = parts.map((part) => VERBS_IN_NAMES.find(([name]) => name.test(part))?.[1]);
  return verbs.findLast((verb) => verb !== undefined) ?? (isLaunched ? 'train' : '');
}

/** Number of words at the beginning that are flags of ours, with their values. */
function flagsBefore(words: readonly string[], config: Config): number {
  let at = 0;
  while (words[at]?.startsWith('-')) {
    const word = words[at] ?? '';
    const name = word.replace(/^--|=.*$/gs, '').replaceAll('_', '-');
    if (isSwitch(word, config)) at += 1;
    else if (config.commands.some(({ flags }) => Object.hasOwn(flags, name))) {
      at += word.includes('=') ? 1 : 2;
    } else return 0;
  }
  return at;
}

/** Whether a flag is a switch of every command that has it. */
function isSwitch(word: string, config: Config): boolean {
  const name = word.replace(/^-+/, '').replaceAll('_', '-');
  const own = config.commands.flatMap(({ flags }) =>
    Object.values(flags).filter((flag) => flag.name === name || flag.char === name),
  );
  return own.length > 0 && own.every(({ type }) => type === 'boolean');
}

/** The words of a line that name its command, and the flags that a template has before those of the user. */
const commandIn = (words: readonly string[], config: Config): string =>
  words.slice(0, config.findCommand(words.slice(0, 2).join(':')) ? 2 : 1).join(' ');

/** Lines for a number of parameters or a GPU in the place of a command. */
async function linesWithoutCommand(text: string, rest: readonly string[]): Promise<MeantLine[]> {
  if (/^\d[\d.,_]*[kmbt]$/i.test(text)) return [{ words: ['plan', '--max-params', text, ...rest] }];
  const words = ['fit', '--list-gpus', text, ...rest];
  return [{ words, gpus: KINDS.size.test(text) ? [] : [text] }];
}

/** The command for a model without a command. A checkpoint without a config only has tensors to show. */
async function commandOf(model: string): Promise<string> {
  const { locateModel } = await import('../../input/model-input/locate.js');
  const { configIn } = await import('../../base/files/config-names.js');
  const place = locateModel(model);
  if (place.kind !== 'checkpoint' || place.listing === undefined) return 'profile';
  const hasConfig =
    place.listing === 'file'
      ? configIn(path.dirname(model)) !== undefined
      : place.config !== place.path;
  return hasConfig ? 'profile' : 'inspect';
}

/** Whether a word is the name of a file with a model or a training. */
const isModelFile = (word: string): boolean =>
  /\.(?:ya?ml|json|toml|safetensors|gguf|pt|pth)$/i.test(word);

/** Names of files with data; no model has such a name. */
const IS_DATA = /\.(?:jsonl|txt|csv|parquet|npy|raw)$/i;

/** A flag with the config of a script: `--job.config_file` in torchtitan. */
const IS_CONFIG_FLAG = /^--(?:[\w-]+\.)?(?:config|cfg|recipe)(?:[-_](?:file|path))?(?:=|$)/;

/** Names of files, which have a folder or an ending; `fvcore.nn` is none. */
const IS_PATH = /[/\\]|\.(?:ya?ml|json|toml|safetensors|gguf|ggml|pt|pth|bin|onnx|ckpt|index)$/i;

/** Whether a word is a file with weights. */
const isWeights = (word: string): boolean => /\.(?:safetensors|gguf|pt|pth|bin|ckpt)$/i.test(word);

async function isModel(text: string): Promise<boolean> {
  if (IS_PATH.test(text) || fs.existsSync(text)) return true;
  const { presetsNamed } = await import('../../input/model-input/locate.js');
  return presetsNamed(text).length > 0;
}

/** Whether a model is a preset, a model of the hub, or a file that exists. */
export async function isPresent(model: string): Promise<boolean> {
  if (model.startsWith('hf:') || fs.existsSync(model)) return true;
  const { presetsNamed } = await import('../../input/model-input/locate.js');
  return presetsNamed(model).length === 1;
}
