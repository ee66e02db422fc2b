/** Meanings of words of other tools. Loaded only for a line with a word that is not one of ours. */

import fs from 'node:fs';
import path from 'node:path';
import { isFolder } from '../../base/files/file-system.js';
import { shellWord } from '../../base/text/shell-words.js';
import { ownValue } from '../../base/values.js';
import { misspelled } from '../../config/nearest.js';
import { modelsIn, presetsNamed } from '../../input/model-input/locate.js';
import {
  hubRepository,
  modelChoice,
  presetsOfSize,
} from '../../input/published/published-models.js';
import { numberedType } from '../line/other-tools/quantized-values.js';
import { downloadAdvice } from './downloads.js';
import { OFF, VALUES } from './flags/values.js';
import {
  BENCHMARKS,
  DOWNLOADS,
  OF_A_PROGRAM_STORE,
  OF_A_STORE,
  VERBS,
  WITHOUT_COMMAND,
} from './foreign-commands.js';
import { FLAGS } from './foreign-flags.js';
import { recipeWords } from './launchers.js';
import { LATE_COMMANDS, PROGRAM_FLAGS, PROGRAMS, programInFile } from './programs.js';
import { foldedName } from './spellings.js';

export { USUAL_GPU } from '../../estimate/hardware/gpu.js';
export { modelWithWords } from '../../input/published/published-models.js';
export {
  linesWithOther,
  missingModel,
  namesInPath,
  nearType,
  typeFlag,
} from '../line/other-tools/names-in-path.js';
export { writtenFlag } from './programs.js';

const NO_BENCHMARKS =
  'minimind runs no benchmarks such as hellaswag; for the perplexity of a text write minimind evaluate MODEL --text FILE';

/** Advice for flags without a meaning here. */
const ADVICE: Readonly<Record<string, string>> = {
  ...advised('tasks,benchmark,benchmarks,bench,num-fewshot', NO_BENCHMARKS),
  ...advised('color,colour', 'set FORCE_COLOR=1 for colours in a pipe'),
  ...advised(
    'p99,p90,p50,p99-latency,p90-latency',
    'minimind knows one limit on latency, --p95 TIME: 95 % of the requests end within it',
  ),
  ...advised(
    'bandwidth,tflops,tops,gpu-bandwidth,gpu-tflops',
    'describe the card in a YAML file, as docs/fit.md shows: minimind fit MODEL --hardware FILE --gpu NAME',
  ),
  ...advised('deepspeed', 'write the stage of its zero_optimization as --zero 1, 2 or 3'),
  ...advised(
    'global-batch-size,gbs,train-batch-size,global-train-batch-size',
    '--global-batch counts tokens: the sequences times --context',
  ),
};

/** Names with several senses, of which one is chosen. */
const CHOSEN: ReadonlySet<string> = new Set(
  names(
    'deepspeed,stage,mode,task,purpose,use,size,budget,rate,prompt,input,output,data,file,text,type,method,length,all,full,' +
      'write,test,tests,run,compare,vram,memory,gpu-memory,mem,ram,decay,count,list,plain,scale,range,with,plan,' +
      'max-total-tokens,block-size,num-gpu,start,load,from,train-batch-size,iterations,rounds,model-size,debug,interactive,' +
      'lora,peft,adapter,task,benchmark,bench,speed,shard,apply-chat-template,n',
  ),
);

function names(text: string): string[] {
  return text.split(',').map(foldedName);
}

/** One advice for several names. */
function advised(text: string, advice: string): Record<string, string> {
  return Object.fromEntries(names(text).map((name) => [name, advice]));
}

/** Whether a meaning is the same flag under another name, with the same value. */
export function isSpelling(
  given: string,
  { name, value, onlyFor, values, isPerSequence = false, isOfStep = false }: FlagMeaning,
): boolean {
  const isArgument = name.startsWith('<');
  const isSame =
    [value, onlyFor, values].every((each) => each === undefined) && !isPerSequence && !isOfStep;
  const isLimit = /^(?:max|min)-/.test(name) && !/^(?:max|min)/i.test(given);
  const isOne = given.length > 1 && (isArgument || !CHOSEN.has(foldedName(given)));
  return name !== '' && name !== '<none>' && !name.startsWith('>') && isSame && isOne && !isLimit;
}

/** Advice for a flag of another tool without a meaning here. */
export function flagAdvice(name: string): string | undefined {
  const folded = foldedName(name);
  return ownValue(ADVICE, folded);
}

/** GGUF types that llama-quantize writes with tables of codes, or with three values per weight. */
const TABLE_TYPE = /^(?:iq[1-4]|tq[12]|mxfp4)_?[a-z0-9_]*$/i;

/** Types of a cache in llama.cpp that are nearest to those of other programs. */
const CACHES: Readonly<Record<string, string>> = {
  int8: 'q8_0',
  fp8: 'q8_0',
  f8: 'q8_0',
  int4: 'q4_0',
};

/** Advice for a value that a flag does not take. */
export const valueAdvice = (flag: string, value: string): string | undefined =>
  flag === 'cache-dtype' && ownValue(CACHES, value.toLowerCase()) !== undefined
    ? `write --cache-dtype ${CACHES[value.toLowerCase()]}`
    : flag === 'dtype' && TABLE_TYPE.test(value)
      ? `${value.toLowerCase()} is read and counted, not written: choose q4_k_m, q3_k_m or q2_k, or write it with llama-quantize`
      : undefined;

/** Advice for a command of another tool without one here; `rest` are its words. */
export function commandAdvice(word: string, rest: readonly string[]): string | undefined {
  const isOfProgram = isProgram([word, ...rest]);
  const [own = '', ...words] = isOfProgram ? rest : [word, ...rest];
  const command = verbOf(own);
  const without = adviceWithout(word, rest);
  if (without !== undefined) return without;
  const type = flagIn(words, /^(?:-q|--quantize)$/)?.value;
  if (isOfProgram && command === 'create' && type !== undefined) {
    return `write it as in minimind convert-checkpoint MODEL OUT.gguf --dtype ${type}`;
  }
  const isModelfile = isOfProgram && command === 'create' && words.includes('-f');
  if (isModelfile || OF_A_STORE.has(command) || (isOfProgram && OF_A_PROGRAM_STORE.has(command)))
    return 'minimind has no store of models: it reads files, folders and hf:ORG/NAME';
  const isClone = command === 'git' && words[0] === 'clone';
  const lines = [command, `${verbOf(word)} ${command}`].flatMap(linesOfWord);
  const isMerge = lines.some((line) => line.includes('--merge-lora'));
  if (isMerge || (command.startsWith('merge') && command !== 'merge-weights')) {
    return 'write it as in minimind convert-checkpoint MODEL OUT --merge-lora DIR';
  }
  if (!DOWNLOADS.has(command) && !isClone) return undefined;
  return downloadAdvice(isClone ? words.slice(1) : words);
}

/** The advice for a line whose command has no counterpart: its first words, with or without the name of a program. */
function adviceWithout(word: string, rest: readonly string[]): string | undefined {
  if (isBenchmark(word, rest)) return NO_BENCHMARKS;
  const other = isProgram([word, ...rest]) ? undefined : tokenizerAdvice(word, rest);
  if (other !== undefined) return other;
  const server = serverAdvice(word, rest) ?? dataAdvice(word, rest) ?? optimumAdvice(word, rest);
  if (server !== undefined) return server;
  const all = [word, ...rest].map(verbOf);
  const [own = '', next = ''] = isProgram([word, ...rest]) ? all.slice(1) : all;
  return ADVICE_WITHOUT.get(`${own} ${next}`) ?? ADVICE_WITHOUT.get(own);
}

/** Advice for a tokenizer in a file with weights: `llama-tokenize -m model.gguf -f text.txt`. */
function tokenizerAdvice(word: string, rest: readonly string[]): string | undefined {
  const isOfModel = /\.gguf$/i.test(flagIn(rest, MODEL_FLAG)?.value ?? '');
  if (verbOf(word) !== 'tokenize' || !isOfModel) return undefined;
  const file = flagIn(rest, /^(?:-f|--file)$/)?.value;
  return file === undefined
    ? ADVICE_WITHOUT.get('encode')
    : `minimind reads no tokenizer of a GGUF file: write it as in minimind data ${shellWord(file)} --tokenizer tokenizer.json`;
}

/** Advice for a server that gets its models later: `ollama serve`. */
function serverAdvice(word: string, rest: readonly string[]): string | undefined {
  const [command = '', ...flags] = rest;
  if (verbOf(word) !== 'ollama' || !/^(?:serve|start)$/.test(command)) return undefined;
  // The model of this folder, and all models that a card can serve, have lines.
  const hasLine = modelsIn('.').length === 1 || flags.some((word) => /^--gpu(?:=|$)/.test(word));
  if (flags[0]?.startsWith('-') === false || hasLine) return undefined;
  const line = ['minimind', 'fit', 'MODEL', ...flags].map(shellWord).join(' ');
  return `minimind starts no server: write the model that it runs as in ${line}`;
}

/** Whether a line runs benchmarks: `lighteval accelerate`, `swift eval`. With a text, it measures perplexity. */
export function isBenchmark(word: string, rest: readonly string[]): boolean {
  const verbs = [verbOf(word), `${verbOf(word)} ${verbOf(rest[0] ?? '')}`];
  const hasTasks = verbOf(word) === 'lm-eval' && flagIn(rest, /^--tasks$/) !== undefined;
  const isOfTexts = rest.some((each) => /^--(?:text|ids)(?:=|$)/.test(each));
  return !isOfTexts && (hasTasks || verbs.some((each) => BENCHMARKS.has(each)));
}

/** The first flag of a line that a pattern matches, with its value and the number of its words. */
function flagIn(
  words: readonly string[],
  flag: RegExp,
): { at: number; length: number; value: string } | undefined {
  const at = words.findIndex((word) => flag.test(word.split('=', 1)[0] ?? ''));
  const [, inline] = words[at]?.split(/=(.*)/s) ?? [];
  const value = at < 0 ? undefined : (inline ?? words[at + 1]);
  return value === undefined ? undefined : { at, length: inline === undefined ? 2 : 1, value };
}

/** Whether a name is that of a preset. */
export const isPreset = (name: string): boolean => presetsNamed(name).length === 1;

/** A published model that is not here, as a reference to the hub. */
export function hubReference(name: string): string | undefined {
  const repository = hubRepository(name);
  return repository && `hf:${repository}`;
}

/** Advice for words that several published models have in their names. */
export const modelAdvice = (name: string): string | undefined => modelChoice(name)?.advice;

/** Names of keys of a config in other projects, and the names to try: which of them a model has is checked. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  hidden: ['hidden_size', 'd_model', 'n_embd'],
  embed: ['hidden_size', 'd_model', 'n_embd'],
  heads: ['num_attention_heads', 'num_heads', 'n_head'],
  num_heads: ['num_heads', 'num_attention_heads', 'n_head'],
  kv_heads: ['num_key_value_heads', 'num_kv_heads'],
  num_layers: ['num_layers', 'num_hidden_layers', 'n_layer'],
  vocab: ['vocab_size'],
  experts: ['num_experts', 'n_routed_experts', 'num_local_experts'],
  inter: ['intermediate_size', 'd_ff'],
  ffn: ['intermediate_size', 'd_ff'],
  n_embd: ['hidden_size', 'd_model', 'n_embd'],
  d_model: ['hidden_size', 'd_model'],
  dim: ['hidden_size', 'd_model'],
  embed_dim: ['hidden_size', 'd_model'],
  n_head: ['num_attention_heads', 'num_heads', 'n_head'],
  n_heads: ['num_attention_heads', 'num_heads', 'n_head'],
  n_layer: ['num_layers', 'num_hidden_layers', 'n_layer'],
  layers: ['num_layers', 'num_hidden_layers', 'n_layer'],
  n_layers: ['num_layers', 'num_hidden_layers', 'n_layer'],
  n_kv_heads: ['num_key_value_heads', 'num_kv_heads'],
  ffn_dim: ['intermediate_size', 'ffn_dim', 'n_inner'],
  hidden_dim: ['intermediate_size', 'hidden_size'],
};

/** Names of a key of a config to try. */
export const keysNamed = (key: string): readonly string[] => ownValue(KEYS, key) ?? [key];

/** A meaning of a flag of another tool. */
export interface FlagMeaning {
  /** Name of the flag, `<name>` of an argument, or one of the special meanings of `FLAGS`. */
  readonly name: string;
  /** Value that the switch means, and the value that it excludes. */
  readonly value?: string | undefined;
  readonly off?: string | undefined;
  /** The only value of the other tool's flag that has this meaning. */
  readonly onlyFor?: string | RegExp | undefined;
  /** Whether the other tool's flag has a value, of any kind. */
  readonly hasValue?: boolean;
  /** Whether the value counts sequences, and the one here tokens. */
  readonly isPerSequence?: boolean;
  /** Whether the value counts the sequences of a step on all GPUs, or their tokens. */
  readonly isOfStep?: boolean;
  readonly isOfTokens?: boolean;
  /** Values of the flag, and what they are called here. */
  readonly values?: Readonly<Record<string, string>> | undefined;
}

/** Values of an object of JSON in one line: numbers and texts. */
const MEMBER = /"(\w+)"\s*:\s*(?:"([^"]*)"|([-\w.]+))/g;

/**
 * The pairs of `a=1,b=2`, and those of `{"a": 1}`, whose keys are `flag.a` as in vLLM.
 * @param flag The flag with its dashes.
 */
export function pairsIn(text: string, flag: string): (readonly [key: string, value: string])[] {
  if (!text.startsWith('{')) {
    return text.split(',').map((each) => {
      const [key = '', value = ''] = each.split(/=(.*)/s);
      return [key, value];
    });
  }
  const prefix = flag.replace(/^-+|=.*$/gs, '');
  return [...text.matchAll(MEMBER)].map(([, key, quoted, plain]) => [
    `${prefix}.${key}`,
    quoted ?? plain ?? '',
  ]);
}

/** A name in the table, with the value after it. */
function parsedName(text: string): { folded: string; value: string | undefined } {
  const [name = '', value] = text.split(/=(.*)/s);
  return { folded: foldedName(name), value };
}

/** Condition on a value: a name, or a pattern after `~`. */
const conditionOf = (value: string): string | RegExp =>
  value.startsWith('~') ? new RegExp(value.slice(1), 'i') : value;

/**
 * Settings of verl that do not describe the trained policy: those of the critic, of the reward and reference models, and of
 * rollouts. volcengine/verl verl/trainer/config/ppo_trainer.yaml
 */
const OF_ANOTHER_MODEL =
  /^(?:actor[-_]rollout[-_]ref\.(?:rollout|ref)|critic|reward[-_]model|algorithm)\./;

/**
 * Meanings of a flag's name in other tools, the most likely one first.
 * @param name The name; of `train.max_steps`, the last part can be the name.
 * @param command The command that has the flag.
 */
export function flagMeanings(name: string, command: string): FlagMeaning[] {
  const own = meaningsOf(foldedName(name), command);
  if (own.length === 0 && OF_ANOTHER_MODEL.test(name)) return [{ name: '<none>', hasValue: true }];
  const last = name.slice(name.lastIndexOf('.') + 1);
  return own.length > 0 || last === name ? own : meaningsOf(foldedName(last), command);
}

/** A row of the table, with the values of one name in it. */
interface NamedRow {
  readonly text: string;
  readonly conditions: Set<string | undefined>;
}

let rowsByName: Map<string, NamedRow[]> | undefined;

/** The rows of each name, in the order of the table. seq-len and seqlen are one name. */
function namedRows(): Map<string, NamedRow[]> {
  if (rowsByName !== undefined) return rowsByName;
  rowsByName = new Map();
  for (const [text, spellings] of FLAGS) {
    const own = new Map<string, NamedRow>();
    for (const { folded, value } of spellings.split(',').map(parsedName)) {
      const row = own.get(folded) ?? { text, conditions: new Set() };
      row.conditions.add(value);
      own.set(folded, row);
    }
    for (const [folded, row] of own) {
      rowsByName.set(folded, [...(rowsByName.get(folded) ?? []), row]);
    }
  }
  return rowsByName;
}

function meaningsOf(folded: string, command: string): FlagMeaning[] {
  return (namedRows().get(folded) ?? []).flatMap(({ text, conditions }) => {
    const [meaning = '', commands] = text.split('@');
    if (commands !== undefined && !commands.split('|').includes(command)) return [];
    return [...conditions].map((condition) => {
      const [sized = '', value] = meaning.split('=');
      const [flag = '', factor] = sized.split(/[*/]/);
      return {
        name: flag,
        value,
        off: value === undefined ? undefined : OFF[flag],
        onlyFor: condition ? conditionOf(condition) : undefined,
        hasValue: condition === '',
        isPerSequence: factor !== undefined && sized.includes('*'),
        isOfStep: sized.includes('/'),
        isOfTokens: factor === 'tokens',
        values: ownValue(VALUES, folded),
      };
    });
  });
}

let knownNames: readonly string[] | undefined;

/** All names of flags in other tools. */
export function otherNames(): readonly string[] {
  knownNames ??= [
    ...new Set(
      FLAGS.filter(([meaning]) => !/^(?:<none>|@|$)/.test(meaning))
        .flatMap(([, spellings]) => spellings.split(','))
        .filter((each) => !each.includes('=')),
    ),
  ];
  return knownNames;
}

/** Words of other tools that mean lines of one command, whose flags follow them. */
export const aliasesOf = (command: string): string[] =>
  VERBS.filter(([lines]) => lines.every((line) => commandOf(line) === command))
    .flatMap(([, words]) => words.split(','))
    .filter((word) => /^[\w-]+$/.test(word))
    // One spelling of kv-cache and kvcache.
    .filter(
      (word, at, all) => all.findIndex((each) => foldedName(each) === foldedName(word)) === at,
    );

/** The value of each word of a table. If several rows have the word, the first one counts. */
const byWord = <T>(rows: readonly (readonly [words: string, value: T])[]): ReadonlyMap<string, T> =>
  new Map(
    rows.toReversed().flatMap(([words, value]) => words.split(',').map((word) => [word, value])),
  );

const LINES = byWord(VERBS.map(([lines, words]) => [words, lines]));
const ADVICE_WITHOUT = byWord(WITHOUT_COMMAND);

/** The lines that a word means; none for a word that is not in the table. */
const linesOfWord = (word: string): readonly string[] => LINES.get(word) ?? [];

/** The words after the name of a command, with a test of the flags that have no value. */
export interface VerbWords {
  readonly words: readonly string[];
  /** Whether a flag has no value here. */
  readonly isSwitch: (word: string) => boolean;
  /** Whether a word is a command of ours. */
  readonly isCommand: (word: string) => boolean;
}

/** Words that are arguments, and all others. */
function argumentsOf({ words, isSwitch }: VerbWords): { given: string[]; flags: string[] } {
  const given: string[] = [];
  const flags: string[] = [];
  words.forEach((word, at) => {
    const before = words[at - 1] ?? '';
    const isValue = before.startsWith('-') && !before.includes('=') && !isSwitch(before);
    (word.startsWith('-') || isValue ? flags : given).push(word);
  });
  return { given, flags };
}

/** A flag with the model of a line, in programs that have one. */
const MODEL_FLAG = /^(?:-m|--model)$/;

/** Conditions of templates: a flag, a size or a file with weights as the first word, or a file that is there. */
const CONDITIONS: Readonly<Record<string, (words: readonly string[]) => boolean>> = {
  adapter: (words) =>
    flagIn(words, /^--(?:lora|peft|adapters?)(?:[-_](?!r$|rank|alpha)|$)/i) !== undefined,
  full: (words) =>
    flagIn(words, /^--(?:fine[-_]?tune|finetuning|train|tuner|sft)[-_]type$/)?.value === 'full',
  size: ([first = '']) => /^\d[\d.,_]*[kmbt]$/i.test(first),
  data: isOfData,
  weights: ([first = '']) => /\.(?:pt|pth|bin|ckpt|safetensors|gguf)$/i.test(first),
  here: (words) => words.some((word) => fs.existsSync(word.replace(/^--?[a-z][\w-]*=/i, ''))),
};

/** Configs of a training, and the text itself instead of its file. */
const IS_CONFIG = /\.(?:ya?ml|toml)$/i;

/** Whether the first argument of a line can be data, and no config, folder of a tokenizer, or text. */
function isOfData(words: readonly string[]): boolean {
  const [first = ''] = words.filter(
    (word, at) => !word.startsWith('-') && !/^--?(?:tokenizer|model)/.test(words[at - 1] ?? ''),
  );
  if (IS_CONFIG.test(first)) return false;
  return !isTextOfData(words, first);
}

/** Whether a word is a text, or the tokenizer for one. */
function isTextOfData(words: readonly string[], first: string): boolean {
  const isTokenizer = fs.existsSync(path.join(first, 'tokenizer.json'));
  const others = words.filter((word) => !word.startsWith('-') && word !== first);
  const isText = (word: string) => /\s/.test(word) && !fs.existsSync(word);
  return isText(first) || (isTokenizer && others.some((word) => !fs.existsSync(word)));
}

/** Advice for the tokens of a number of parameters: a plan is that of a model. */
function optimumAdvice(word: string, [size = '']: readonly string[]): string | undefined {
  const isAsked = /^(?:chinchilla|scaling-laws?|isoflops)$/.test(verbOf(word));
  if (!isAsked || !/^\d[\d.,_]*[kmbt]$/i.test(size)) return undefined;
  const [model = 'MODEL'] = presetsOfSize(size) ?? [];
  return `a plan is that of a model, with 20 tokens for each parameter: write it as in minimind train-plan ${model}`;
}

/** Advice for a line about data that names none. */
function dataAdvice(word: string, rest: readonly string[]): string | undefined {
  const own = isProgram([word, ...rest]) ? rest.slice(1) : rest;
  const verb = isProgram([word, ...rest]) ? (rest[0] ?? '') : word;
  if (!linesOfWord(verbOf(verb)).includes('?data data') || isOfData(own)) return undefined;
  const config = own.find((each) => IS_CONFIG.test(each));
  return config === undefined
    ? ADVICE_WITHOUT.get('encode')
    : `minimind data reads the samples, and ${shellWord(config)} names them: write it as in minimind data FILE.jsonl --tokenizer tokenizer.json`;
}

/** The words of a line that a template means; undefined where a part of it is missing. */
function filled(row: string, verb: VerbWords): string[] | undefined {
  const [, condition, template = ''] = /^(?:\?(\w+) )?(.*)$/.exec(row) ?? [];
  if (CONDITIONS[condition ?? '']?.(verb.words) === false) return undefined;
  if (!template.includes('$')) return [...template.split(' '), ...verb.words];
  const model = template.includes('$model') ? flagIn(verb.words, MODEL_FLAG) : undefined;
  if (template.includes('$model') && model === undefined) return undefined;
  const { given, flags } = argumentsOf({
    ...verb,
    words: model ? verb.words.toSpliced(model.at, model.length) : verb.words,
  });
  const used = new Set<number>();
  const words: string[] = [];
  for (const part of template.split(' ')) {
    const [, place, added, ending = '', file = ''] =
      /^\$(\d)(?:\+(\.\w+))?(\.\w+)?(\/[\w.]+)?$/.exec(part) ?? [];
    if (place === undefined) {
      words.push(part === '$model' ? (model?.value ?? '') : part);
      continue;
    }
    const word = given[Number(place) - 1];
    if (word === undefined || !word.toLowerCase().endsWith(ending)) return undefined;
    used.add(Number(place) - 1);
    const base = word.replace(/[/\\]+$/, '');
    if (added !== undefined) {
      words.push(`${path.basename(base)}${added}`);
      continue;
    }
    // A folder that is not there is not made.
    words.push(file === '' ? word : `${base}${isFolder(base) ? file : path.extname(file)}`);
  }
  return [...words, ...given.filter((_, at) => !used.has(at)), ...flags];
}

/** The form of a word of another tool in `VERBS`: `zero_to_fp32.py` is `zero-to-fp32`. */
const verbOf = (word: string) =>
  (programInFile(word) ?? word)
    .toLowerCase()
    .replace(/\.py$/, '')
    .replaceAll('_', '-')
    .replace(/^llama-(?=\w)/, '');

/** Whether a word is a command of another tool. */
export const isVerb = (word: string): boolean => linesOfWord(verbOf(word)).length > 0;

/** Whether a line begins with a program and its command. */
export const isProgram = ([word = '', next = '']: readonly string[]): boolean =>
  PROGRAMS.has(verbOf(word)) &&
  !(word === 'accelerate' && next === 'launch') &&
  (isVerb(next) || DOWNLOADS.has(next) || OF_A_STORE.has(next) || !/^(?:-|$)|\.py$/.test(next));

/**
 * Words of a line, with the name of a program apart from its command, `mlx_lm.generate`, and the command before the flags:
 * `trtllm-bench --model M throughput`.
 */
export function programWords(words: readonly string[]): readonly string[] {
  const [first = '', ...rest] = words;
  const late = ownValue(LATE_COMMANDS, verbOf(first)) ?? [];
  const at = rest.findIndex((word) => late.includes(word));
  if (at > 0) return [first, rest[at] ?? '', ...rest.toSpliced(at, 1)];
  const [, program = '', command = ''] = /^([\w-]+)\.([\w.-]+)$/.exec(first) ?? [];
  if (PROGRAMS.has(verbOf(program))) return [program, command, ...rest];
  // A name of Python: fvcore.nn.FlopCountAnalysis.
  const name = /^[a-z]\w*(?:\.\w+)*\.(\w{6,})$/i.exec(first)?.[1];
  return name !== undefined && !isVerb(first) && isVerb(name) ? [name, ...rest] : words;
}

/** Lines that a command of another tool means, the most likely one first. */
export function verbLines(word: string, verb: VerbWords): string[][] {
  const first = verbOf(word);
  const [next = ''] = verb.words;
  if (adviceWithout(word, verb.words) !== undefined) return [];
  if (first === 'ollama' && next === 'create' && commandAdvice(word, verb.words)) return [];
  const isOfProgram = isProgram([word, ...verb.words]);
  // Programs have `--` before the flags of a launcher.
  const own = (isOfProgram ? verb.words.slice(1).filter((each) => each !== '--') : verb.words)
    .flatMap(hubWords)
    .flatMap((each) => recipeWords(first, each));
  const rest = withProgramFlags(first, own, verb);
  if (!isOfProgram && isVerb(`${word} ${next}`)) {
    return filledLines(`${first} ${verbOf(next)}`, { ...rest, words: rest.words.slice(1) });
  }
  if (!isOfProgram) {
    return filledLines(first, numberedWords(first, withoutSecondVerb(first, rest)));
  }
  // A command can be one of ours that the program means otherwise.
  const name = `${first} ${verbOf(next)}`;
  if (isVerb(name)) return filledLines(name, rest);
  const isKnown = isVerb(next) || isVerb(`${next} ${rest.words[0]}`);
  if (isKnown) return verbLines(next, rest);
  // A program can be a command, too: lm_eval.
  if (isVerb(word)) return filledLines(first, verb);
  return verb.isCommand(next) ? [[next, ...rest.words]] : [];
}

/** The words without a second verb of the same command before the model: `fvcore flops my.yaml`, `estimate memory M`. */
function withoutSecondVerb(first: string, verb: VerbWords): VerbWords {
  const [next = '', model] = verb.words;
  const isWord = !fs.existsSync(next) && presetsNamed(next).length === 0;
  if (!isWord || model === undefined || model.startsWith('-')) return verb;
  const [own, other] = [first, verbOf(next)].map((each) => commandOf(linesOfWord(each)[0] ?? ''));
  const isSame = own === other || (own === verbOf(next) && own !== '');
  return isSame ? { ...verb, words: verb.words.slice(1) } : verb;
}

/** The words of llama-quantize with a type by its number: `llama-quantize model.gguf out.gguf 15`. */
function numberedWords(first: string, verb: VerbWords): VerbWords {
  const { given } = argumentsOf(verb);
  const number = given[2] ?? '';
  const type = first === 'quantize' ? numberedType(number) : undefined;
  if (type === undefined) return verb;
  const at = verb.words.indexOf(number);
  return { ...verb, words: verb.words.with(at, type) };
}

/** Registries before the name of a model: containers/ramalama docs/ramalama.1.md, "Model transports"; Docker Hub, `ai`. */
const OF_LIBRARY = /^(?:ollama:\/\/(?:library\/)?|ai\/)(?=[\w.:-]+$)/;
const OF_HUB = /^(?:hf|huggingface):\/\/(?=[\w.-]+\/)/;

/** A model of the hub as Ollama names it, with its type: `hf.co/ORG/NAME:Q4_K_M`. */
function hubWords(written: string, at: number, words: readonly string[]): string[] {
  const word = written.replace(OF_LIBRARY, '').replace(OF_HUB, 'hf:');
  const isValue = words[at - 1]?.startsWith('-') ?? false;
  const [, repository, type] =
    /^(?:hf\.co|huggingface\.co)\/([\w.-]+\/[\w.-]+):([\w-]+)$/.exec(word) ??
    (isValue ? null : /^([\w-][\w.-]*\/[\w.-]+-GGUF):([\w-]+)$/i.exec(word)) ??
    [];
  return repository === undefined || type === undefined
    ? [word]
    : [`--hf-repo=${repository}:${type}`];
}

/** The words of a program with its own flags by the names of the table. */
function withProgramFlags(program: string, words: readonly string[], verb: VerbWords): VerbWords {
  const flags = ownValue(PROGRAM_FLAGS, program);
  if (flags === undefined) return { ...verb, words };
  const has = (flag: string) => words.some((word) => word.split('=', 1)[0] === flag);
  return {
    ...verb,
    words: words.flatMap((each, at) => {
      const [written = '', inline] = each.split(/=(.*)/s);
      const meant = ownValue(flags, written);
      const value = inline ?? words[at + 1] ?? '';
      if (meant === undefined || meant.only?.test(value) === false) return [each];
      if (meant.when && !has(meant.when)) return [each];
      if (meant.without && words.some((word) => meant.without?.test(word))) return [each];
      if (meant.unless && has(meant.unless)) return [];
      return [inline === undefined ? meant.name : `${meant.name}=${inline}`];
    }),
  };
}

/** Whether words only ask for help. */
export const isHelp = (words: readonly string[]): boolean =>
  words.length > 0 && words.every((word) => /^(?:-h|--help)$/.test(word));

/** The command of a template, without conditions and flags. */
const commandOf = (template: string): string => template.replace(/^\?\w+ /, '').split(' ')[0] ?? '';

function filledLines(name: string, verb: VerbWords): string[][] {
  // The help of a word is that of its command.
  const [first] = linesOfWord(name);
  if (first !== undefined && isHelp(verb.words)) return [[commandOf(first), ...verb.words]];
  return linesOfWord(name).flatMap((template) => {
    const words = filled(template, verb);
    return words === undefined ? [] : [words];
  });
}

/** The command that `word` nearly is: the beginning of a single one, or one with a typing mistake. */
export function nearestCommand(word: string, known: readonly string[]): string | undefined {
  const folded = word.toLowerCase();
  const longer = known.filter((each) => each.startsWith(folded));
  if (longer.length === 1) return longer[0];
  const close = misspelled(word, known, 2);
  // Of three letters, another one makes another word: fmt is not fit.
  const isShort = folded.length <= 3 && close?.length === folded.length;
  const isSwapped = [...folded].sort().join('') === [...(close ?? '')].sort().join('');
  return isShort && !isSwapped ? undefined : close;
}
