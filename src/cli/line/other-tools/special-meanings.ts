/** Meanings of flags of other tools that are more than one flag here: sequences of a step, models of the hub, drafts. */
import { isHubName } from '../../../base/text/hub-names.js';
import type { FlagMeaning } from '../../foreign/meanings.js';
import type { DeclaredFlag } from '../flag-example.js';
import { valueGiven } from '../given-flags.js';
import type { MeantLine } from '../line-mistake.js';
import { asArgument, NUMERIC, type Option, withoutFlag } from '../meant-lines.js';
import { missingText } from '../missing-file.js';
import type { GivenFlag, TypedLine } from '../typed-line.js';

/** A flag of ours as a key in a part of a config: `--optim.lr`. */
export function lastPart({ command, isOfTool }: TypedLine, { name }: GivenFlag): FlagMeaning[] {
  const last = name.slice(name.lastIndexOf('.') + 1).replaceAll('_', '-');
  const isOwn = isOfTool && last !== name && Object.hasOwn(command.flags, last);
  return isOwn ? [{ name: last }] : [];
}

/** The line with `-hf ORG/NAME:Q8_0` as a model of the hub, and its type. */
export function hubModelLines(
  typed: TypedLine,
  value: string | undefined,
  at: number,
  length: number,
): MeantLine[] {
  const [, repository, written] = /^([\w.-]+\/[\w.-]+)(?::([\w-]+))?$/.exec(value ?? '') ?? [];
  // Unsloth's mixtures by layer have names of their own.
  const type = written && typed.meanings.nearType(written.replace(/^UD-/i, ''));
  const mixture = type === written ? [] : [`${written} is counted as ${type}`];
  // Our own names of models, which a program of the hub would not find.
  if (repository === undefined) return asArgument(typed, 'model', value, at, length);
  const flag = typed.meanings.typeFlag(typed.command, typed.words);
  if (type !== undefined && flag === undefined) return [];
  const added = type === undefined ? [] : [`--${flag}`, type];
  // A repository of GGUF files often has no config: the model that it is named after has the sizes.
  return [
    ...typed.meanings
      .namesInPath(repository)
      .map(({ model, dtype }) => ({ model, type: type ?? dtype })),
    undefined,
  ].flatMap((named) => {
    const [line] = asArgument(typed, 'model', named?.model ?? `hf:${repository}`, at, length);
    if (line === undefined || (named?.type !== undefined && flag === undefined)) return [];
    if (named === undefined)
      return [{ ...line, words: [...line.words, ...added], leftOut: mixture }];
    const words = named.type === undefined ? [] : [`--${flag}`, named.type];
    const note =
      type === undefined && named.type ? [`${repository} is read as ${named.type}`] : mixture;
    return [{ ...line, words: [...line.words, ...words], models: [named.model], leftOut: note }];
  });
}

/** The line with `--model_args a=1,b=2` as `--a 1 --b 2`. */
export function linesOfPairs(
  typed: TypedLine,
  found: string | undefined,
  at: number,
  length: number,
): MeantLine[] {
  const pairs = typed.meanings.pairsIn(found ?? '', typed.words[at] ?? '');
  if (pairs.length === 0 || pairs.some(([, value]) => !value)) return [];
  const words = pairs.flatMap(([key = '', value = '']) => [`--${key}`, value]);
  const line = typed.corrected(at, words, length);
  const [kind] = typed.arguments;
  // In `--model hf --model_args pretrained=FILE`, hf is a kind of model.
  if (kind === undefined || !pairs.some(([key]) => key === 'pretrained')) return [line];
  const place = line.words.indexOf(kind.word, typed.name.split(' ').length);
  return [
    { words: line.words.toSpliced(place, 1), leftOut: [`--model ${kind.word} is not needed`] },
  ];
}

/** The line with a number of sequences in tokens, for a line with the tokens of a sequence. */
export function inTokens(
  typed: TypedLine,
  { name }: FlagMeaning,
  own: string | undefined,
  at: number,
  length: number,
): MeantLine[] {
  const context = valueGiven(typed, 'context');
  const tokens = Number(own) * Number(context);
  if (!Object.hasOwn(typed.command.flags, name) || !(tokens > 0)) return [];
  const lead = `--${name} counts tokens, ${own} × ${context}:`;
  return [{ ...typed.corrected(at, [`--${name}`, String(tokens)], length), lead }];
}

/**
 * Whether the word after a flag that nothing here knows is the model, which no other word of the line is:
 * `--omni Qwen/Qwen3-8B`, `--no-mtp out.gguf`.
 */
export function isOnlyModel(typed: TypedLine, at: number): boolean {
  const word = typed.words[at] ?? '';
  const isSwitch = /^--(?:no|enable|disable|use|allow|skip|with|without)[-_]/.test(
    typed.words[at - 1] ?? '',
  );
  const isFile = /\.(?:gguf|safetensors|pt|pth|bin|onnx)$/i.test(word);
  const isModel = isHubName(word) || typed.meanings.isPreset(word) || (isSwitch && isFile);
  const isComplete = typed.arguments.length >= Object.keys(typed.command.args).length;
  if (!isModel || isComplete) return false;
  // A word that follows no flag can be the model, too, and a flag can name it.
  return !typed.words.some((each, index) => {
    const before = typed.words[index - 1] ?? '';
    const isPlain = index > at && !each.startsWith('-') && !before.startsWith('-');
    return isPlain || (index < at - 1 && isModelFlag(typed, each));
  });
}

/** Whether a word is a flag that names a model in another tool. */
function isModelFlag(typed: TypedLine, word: string): boolean {
  const name = /^--?([a-z][\w.-]*)/i.exec(word)?.[1];
  if (name === undefined) return false;
  return typed.meanings
    .flagMeanings(name, typed.command.id)
    .some((each) => each.name === '<model>' && each.onlyFor === undefined);
}

/** Flags that share one replica of a model among GPUs: the GPUs of one product work on the same sequences. */
const OF_A_REPLICA = ['tensor-parallel', 'pipeline-parallel', 'context-parallel'] as const;

/** Whether a word is a flag or a key of another tool with this meaning, which is not yet read. */
function isMeaning(typed: TypedLine, word: string, meant: RegExp): boolean {
  const name = /^--([a-z][\w.-]*)/i.exec(word)?.[1] ?? /^([a-z]\w*(?:\.\w+)+)=/i.exec(word)?.[1];
  if (name === undefined || typed.isFlag(`--${name}`)) return false;
  const [first] = typed.meanings
    .flagMeanings(name, typed.command.id)
    .filter((each) => each.onlyFor === undefined);
  return first !== undefined && meant.test(first.name) && first.isOfStep !== true;
}

/** The line with the sequences of a step on all GPUs as a number of steps that add up, or as those of one GPU. */
export function perStep(
  typed: TypedLine,
  { name, isOfTokens = false }: FlagMeaning,
  own: string | undefined,
  at: number,
  length: number,
): MeantLine[] {
  if (!Object.hasOwn(typed.command.flags, name)) return [];
  const words = typed.words.slice(at, at + length);
  const rest = typed.words.slice(at + length);
  // What a GPU computes at once, and the number of GPUs, are read first.
  if (rest.some((word) => isMeaning(typed, word, /^(?:batch|gpus)$/))) {
    return [typed.lineOf([...typed.words.slice(0, at), ...rest, ...words])];
  }
  const tokens = isOfTokens ? Number(valueGiven(typed, 'context')) : 1;
  const [, machine] = /^(\d+)x/i.exec(valueGiven(typed, 'gpu') ?? '') ?? [];
  const gpus = Number(valueGiven(typed, 'gpus') ?? machine ?? 1);
  const shared = OF_A_REPLICA.map((each) => Number(valueGiven(typed, each) ?? 1));
  const sequences = Number(own) / tokens;
  const share = (sequences * shared.reduce((all, each) => all * each, 1)) / gpus;
  const batch = valueGiven(typed, 'batch', at);
  const added = valueGiven(typed, name, at);
  // Without a number of steps that add up, the default of a plan multiplies the sequences.
  const alone = added === undefined ? [`--${name}`, '1'] : [];
  const count = share / Number(batch ?? added ?? 1);
  if (!Number.isInteger(count) || count <= 0 || (batch !== undefined && added !== undefined)) {
    return [];
  }
  const written =
    batch === undefined ? ['--batch', String(count), ...alone] : [`--${name}`, String(count)];
  const lead = `${sequences} sequences in a step:`;
  return [{ ...typed.corrected(at, written, length), lead }];
}

/** Lines with a draft model, which a path can be named after. */
export function draftLines(
  typed: TypedLine,
  value: string,
  given: GivenFlag,
  length: number,
): MeantLine[] {
  const lineOf = (model: string): MeantLine => ({
    ...typed.corrected(given.at, ['--draft', model], length),
    lead: 'did you mean --draft?',
    models: [model],
  });
  const named = typed.meanings.namesInPath(value).map(({ model, dtype }) => ({
    ...lineOf(model),
    leftOut: [
      missingText(value),
      ...(dtype === undefined ? [] : [`${dtype} of a draft has no counterpart here`]),
    ],
  }));
  // A head of EAGLE or Medusa works only with its model.
  const isHead = /eagle|medusa|mtp|nextn/i.test(typed.words.join(' '));
  const ofHub = isHubName(value) && !isHead ? [lineOf(`hf:${value}`)] : [];
  return [...named, lineOf(value), ...ofHub, withoutFlag(typed, given, '<none>', length)];
}

/**
 * The line with the first of several numbers of another tool, for a flag that takes one: `-p 512,1024`; undefined for
 * another value.
 */
export function firstNumber(
  typed: TypedLine,
  flag: DeclaredFlag,
  value: string,
  at: number,
  length: number,
): MeantLine | undefined {
  const { delimiter, helpValue = '', name } = flag as Option & { name: string };
  const [first = '', ...others] = value.split(',');
  const isOne = delimiter === undefined && NUMERIC.test(helpValue) && name !== 'batch';
  if (!typed.isOfTool || !isOne || others.length === 0 || !/^[\d,]+$/.test(value)) return undefined;
  const leftOut = [`--${name} takes one number at a time, not ${others.join(' and ')} as well`];
  return { ...typed.corrected(at, [`--${name}`, first], length), leftOut };
}
