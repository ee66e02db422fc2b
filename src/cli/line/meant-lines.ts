/** Lines that a flag of another tool can mean. */
import fs from 'node:fs';
import { isHubName } from '../../base/text/hub-names.js';
import { ownValue } from '../../base/values.js';
import type { FlagMeaning } from '../foreign/meanings.js';
import { foldedName, nearestValue } from '../foreign/spellings.js';
import { type DeclaredFlag, exampleOf, isPlaceholder } from './flag-example.js';
import { FALSE, givenFlag, TRUE } from './given-flags.js';
import type { MeantLine } from './line-mistake.js';
import { missingFile } from './missing-file.js';
import { type GivenFlag, isPlainValue, MODEL_ARGUMENTS, type TypedLine } from './typed-line.js';

/** A flag with a value: what it accepts. */
export interface Option {
  readonly options?: readonly string[];
  readonly delimiter?: string;
  readonly helpValue?: string;
}

/** Placeholders of numbers, and those of files. */
export const NUMERIC =
  /^(?:N|K|N,N|N\.\.M|NUMBER|SHARE|RATE|STEPS|SIZE|TIME|P|P,P|RATIO|RATIO,RATIO)$/;
const OF_FILES = /^(?:FILE|PATH|DIR|FILE,FILE|MODEL|OTHER|ORIGINAL)$/;

/** Names of formats, which are not files. */
const FORMAT_NAMES = { safetensors: true, pt: true, pth: true, gguf: true, onnx: true, bin: true };

/** Words of a line about a training. */
const OF_TRAINING =
  /^--(?:micro-batch|accumulation|optimizer|zero|recompute|global-batch|train-tokens|loss)\b|^--for=?training$|^training$/;

/** The same in the words of other tools. */
const OF_OTHER_TRAINING =
  /^--?(?:micro[-_]?batch|mbs|(?:per[-_]device[-_])?train[-_]|grad|accum|optim|zero|lr\b|learning[-_]rate|epochs|lora)|^--for=?training$|^training$/i;

/** Flags for the type of quantized weights, which other tools have in addition to one for the arithmetic. */
const OF_QUANTIZATION = /^(?:quant|load[-_]in|bits|q[-_]bits|w?bits)/i;

/** A mixture of llama.cpp in words: the type, and its size. */
const MIXTURE = /^(--dtype=)?(q\d_k)_[sml]$/i;

/** Lines with the meanings of a flag's name in other tools. The only one that keeps its value is a matter of spelling. */
export function meantLines(typed: TypedLine, given: GivenFlag): MeantLine[] {
  const whole = typed.meanings.wholeLine(typed, given);
  if (whole) return [whole];
  const known = typed.meanings.flagMeanings(nameOf(typed, given), typed.command.id);
  const meanings = (known.length > 0 ? known : typed.meanings.lastPart(typed, given)).filter(
    ({ name }) => name !== given.name || `--${name}` !== given.written,
  );
  // bf16 is a type of the weights in serving, and of the arithmetic in training.
  const isTraining = typed.words.some((word) => OF_TRAINING.test(word));
  if (isTraining) {
    const isOfTraining = ({ name, value }: FlagMeaning) =>
      name === 'precision' || value === 'qlora';
    meanings.sort((a, b) => Number(isOfTraining(b)) - Number(isOfTraining(a)));
  }
  // The type of weights that adapters leave as they are has a flag of its own, and is the type of the weights elsewhere.
  const line = typed.words.join(' ');
  const isOfAdapters = [
    /(?:^| )--for[ =]lora(?= |$)/,
    typed.meanings.OF_LORA,
    typed.meanings.OF_ADAPTERS,
  ].some((each) => each.test(line));
  const isFirst = ({ name }: FlagMeaning) => (name === 'base-dtype') === isOfAdapters;
  meanings.sort((a, b) => Number(isFirst(b)) - Number(isFirst(a)));
  const found = meanings.map((meaning) => ({
    meaning,
    lines: linesOfMeaning(typed, meaning, given),
  }));
  // To leave a flag out is the last choice.
  const [only, ...others] = found.filter(
    ({ meaning: { name }, lines }) => lines.length > 0 && name !== '' && name !== '<none>',
  );
  // Names of cards have a number. Without one, it is a kind of device: hpu, neuron.
  const device = given.value ?? typed.words[given.at + 1] ?? '';
  const isDevice = typed.isOfTool && given.name === 'device' && !/\d/.test(device);
  // One value can mean that the flag is not needed: `--ctx-size 0`.
  const isUnneeded = found.some(
    ({ meaning: { name, onlyFor }, lines }) =>
      (name === '' || name === '<none>') && onlyFor !== undefined && lines.length > 0,
  );
  const isOne = only !== undefined && others.length === 0 && !isDevice && !isUnneeded;
  if (isOne && typed.meanings.isSpelling(given.name, only.meaning)) {
    return only.lines.map((line) => ({
      ...line,
      isSpelling: !line.hasExample && line.leftOut === undefined,
    }));
  }
  const lines = found.flatMap((each) => each.lines);
  return isTypedAtFit(typed, given) ? firstAsMeant(lines) : lines;
}

/** Names that people type at `fit`, where they say nothing but the question, 4 bits, or the layers on the GPU. */
const SWITCHES_AT_FIT = /^(?:q?lora|fine-?tune|load[-_]in[-_]4bit)$/i;
const LAYERS_AT_FIT = /^(?:ngl|n-gpu-layers)$/i;

function isTypedAtFit(typed: TypedLine, { name, value, at }: GivenFlag): boolean {
  if (typed.command.id !== 'fit' || typed.isOfTool) return false;
  const isSwitch = value === undefined && !typed.isLooseValue(at + 1);
  return LAYERS_AT_FIT.test(name) || (isSwitch && SWITCHES_AT_FIT.test(name));
}

/** Lines of which the first is run, unless it leaves something out. */
const firstAsMeant = (lines: readonly MeantLine[]): MeantLine[] =>
  lines.map((line, index) => {
    const isWhole = !line.hasExample && !line.isShorter && line.leftOut === undefined;
    const isLed = /^did you mean --(?:for|dtype|gpu-layers)\?$/.test(line.lead ?? '');
    return index === 0 && isWhole && isLed ? { ...line, isSpelling: true } : line;
  });

/** The name of a flag. Where another flag counts the sequences of a GPU, --batch_size counts those of a step. */
function nameOf({ words, command }: TypedLine, { name }: GivenFlag): string {
  const isPlan = command.id === 'train-plan';
  const isOfStep =
    /^batch[-_]size$/i.test(name) &&
    words.some((word) => OF_MICRO_BATCH.test(word) || (isPlan && /^--batch(?:=|$)/.test(word)));
  return isOfStep ? 'train-batch-size' : name;
}

/** The sequences that a GPU computes at once, in other tools and here. */
const OF_MICRO_BATCH = /^--micro[-_]batch(?:[-_]size)?(?:=|$)/i;

/** Whether a flag only says that a line trains, which one about adapters says already: `--do_train`. */
const isOfAdapters = (typed: TypedLine, { name, value }: FlagMeaning, given: GivenFlag): boolean =>
  name === 'for' &&
  value === 'training' &&
  !/type$|full/i.test(given.name) &&
  typed.meanings.OF_LORA.test(typed.words.join(' '));

/** A flag of another tool in a line, with one of its meanings. */
interface Reading {
  readonly typed: TypedLine;
  readonly meaning: FlagMeaning;
  readonly given: GivenFlag;
  /** The value as it is written; undefined without one. */
  readonly found: string | undefined;
  /** The value as it is called here; '' for one that needs no flag. */
  readonly own: string | undefined;
  /** Number of words of the flag with its value. */
  readonly length: number;
}

/** Lines with a flag of another tool as one of this command. */
export function linesOfMeaning(
  typed: TypedLine,
  meaning: FlagMeaning,
  given: GivenFlag,
): MeantLine[] {
  const { values = {}, onlyFor } = meaning;
  const next = typed.isValueMissing(given.at + 1) ? undefined : typed.words[given.at + 1];
  const found = given.value ?? next;
  const length = found !== undefined && given.value === undefined ? 2 : 1;
  const own = found === undefined ? undefined : (ownValue(values, found.toLowerCase()) ?? found);
  const reading: Reading = { typed, meaning, given, found, own, length };
  if (onlyFor !== undefined) return conditionalLines(reading, onlyFor);
  if (meaning.name.startsWith('>')) return linesElsewhere(reading);
  return specialLines(reading) ?? flagLines(reading);
}

/** Lines for a meaning that one value has, or one kind of values: `--model_args pretrained=FILE` is `--pretrained FILE`. */
function conditionalLines(reading: Reading, onlyFor: string | RegExp): MeantLine[] {
  const { typed, meaning, given, found, length } = reading;
  const { name, value: implied } = meaning;
  const isKey = typeof onlyFor === 'string';
  const [key = '', value] = found?.split(/=(.*)/s) ?? [];
  const isMeant = isKey ? foldedName(key) === foldedName(onlyFor) : onlyFor.test(found ?? '');
  if (!isMeant || (isKey && value?.includes(','))) return [];
  // A config that is there is read, not its name.
  if (name === 'zero' && found !== undefined && fs.existsSync(found)) return [];
  if (name === '' || name === '<none>') return [withoutFlag(typed, given, name, length)];
  if (name.startsWith('>')) return linesElsewhere(reading);
  if (isOfAdapters(typed, meaning, given)) return [withoutFlag(typed, given, '', length)];
  if (name.startsWith('<') && (value !== undefined || !isKey)) {
    return asArgument(typed, name.slice(1, -1), isKey ? value : found, given.at, length);
  }
  const flag = typed.command.flags[name];
  if (flag === undefined) return [];
  // A pattern without a value of its own is a kind of values.
  const own = implied ?? (isKey || flag.type === 'boolean' ? undefined : found);
  const words = [`--${name}`, ...(own === undefined ? [] : [own])];
  const line = { ...typed.corrected(given.at, words, length), lead: `did you mean --${name}?` };
  const missing = name === 'zero' && found !== undefined ? missingFile([found]) : undefined;
  return [
    missing === undefined ? line : { ...line, leftOut: [`${missing}, only a stage in its name`] },
  ];
}

/**
 * The line of another command, with the value after its own argument or after flags: `profile A --vs B` is `compare A B`,
 * `profile A --lora-rank 8` is `fit A --for lora --rank 8`.
 */
function linesElsewhere({ typed, meaning, given, found, length }: Reading): MeantLine[] {
  const [command = '', ...flags] = meaning.name.slice(1).split(' ');
  const [model] = typed.arguments;
  const isOfModel = Object.keys(typed.command.args).some((each) => MODEL_ARGUMENTS.has(each));
  if (isOfModel && flags.length === 0 && model === undefined) return [];
  const rest = typed.words.toSpliced(given.at, length);
  const at = flags.length > 0 ? rest.length : rest.indexOf(model?.word ?? '') + 1;
  const value = found === undefined ? [] : [found];
  const words = [command, ...rest.toSpliced(at, 0, ...flags, ...value)];
  const lead = command === typed.command.id ? {} : { lead: `did you mean ${command}?` };
  return [{ words, ...lead, isElsewhere: true }];
}

/** Lines for meanings other than a flag of this command with its value; undefined for such a flag. */
function specialLines(reading: Reading): MeantLine[] | undefined {
  const { typed, meaning, given, found, own, length } = reading;
  const { name } = meaning;
  if (name === '<hub>') return typed.meanings.hubModelLines(typed, own, given.at, length);
  if (name === '<each>') return typed.meanings.linesOfPairs(typed, found, given.at, length);
  if (name === '<shown>') {
    const isShown = found === undefined || meaning.hasValue || !typed.isLooseValue(given.at + 1);
    const lead = 'the answer shows it without a flag:';
    const replaced = meaning.hasValue ? length : 1;
    return isShown ? [{ ...typed.corrected(given.at, [], replaced), lead }] : [];
  }
  if (name === '<of-gpu>') return found === undefined ? linesOfGpu(typed, given) : [];
  if (name === '<more>') {
    return own === undefined ? [] : [typed.corrected(given.at, [own], length)];
  }
  if (name === '' || name === '<none>' || own === '') {
    // The word after a switch of the table is an argument: `--leave-output-tensor model.gguf`.
    const isValue =
      found !== undefined && (given.value !== undefined || meaning.hasValue || isPlainValue(found));
    return [withoutFlag(typed, given, own === '' ? '' : name, isValue ? length : 1)];
  }
  const isNoFile = own !== undefined && !fs.existsSync(own);
  // A data set of the hub is no file, and its tokens are not counted here.
  const isOfHub = name === 'data' && isNoFile && !/\.\w+$/.test(own);
  // A training replicates the whole model, and not only its attention.
  const isReplicas =
    name === 'dp-attention' && typed.words.some((word) => OF_OTHER_TRAINING.test(word));
  if (isOfHub || isReplicas) return [withoutFlag(typed, given, '<none>', length)];
  // A checkpoint is a file; the name of a model is an argument.
  const isName = own !== undefined && (!/[/\\]|\.(?!\d)\w+$/.test(own) || isHubName(own));
  if (name === 'checkpoint' && isNoFile && (isName || typed.isOfTool)) return [];
  if (meaning.isPerSequence) return typed.meanings.inTokens(typed, meaning, own, given.at, length);
  if (meaning.isOfStep) return typed.meanings.perStep(typed, meaning, own, given.at, length);
  if (name.startsWith('<')) return asArgument(typed, name.slice(1, -1), own, given.at, length);
  return undefined;
}

/** The line for a figure that an answer about a GPU has. */
function linesOfGpu(typed: TypedLine, { at }: GivenFlag): MeantLine[] {
  const isGiven = typed.words.some((word) => /^--gpu(?:=|$)/.test(word));
  if (!Object.hasOwn(typed.command.flags, 'gpu')) return [];
  const words = isGiven ? [] : ['--gpu', typed.meanings.USUAL_GPU];
  const lead = `the answer shows it ${isGiven ? 'without a flag' : 'with a GPU'}:`;
  return [{ ...typed.corrected(at, words), lead, hasExample: !isGiven }];
}

/** Lines for a meaning that is a flag of this command. */
function flagLines(reading: Reading): MeantLine[] {
  const { typed, meaning, given, own, length } = reading;
  const { name, value: implied } = meaning;
  const flag = typed.command.flags[name];
  if (flag === undefined || flag.hidden) return [];
  const isTruth = own !== undefined && (TRUE.test(own) || FALSE.test(own));
  if (isOfAdapters(typed, meaning, given)) {
    return [withoutFlag(typed, given, '', isTruth ? length : 1)];
  }
  if (implied !== undefined) return switchLines(reading, [`--${name}`, implied]);
  if (name === 'list-gpus') return asList(typed, given);
  if (flag.type === 'boolean') {
    // A line of another tool can have it already.
    return switchLines(reading, typed.words.includes(`--${name}`) ? [] : [`--${name}`]);
  }
  if (own !== undefined) return valueLines(reading, flag, own);
  const example = exampleOf(flag);
  if (flag.options || isPlaceholder(example)) return [];
  const line = typed.corrected(given.at, [`--${name}`, example]);
  return [{ ...line, lead: `did you mean --${name}?`, hasExample: true }];
}

/** Lines for a switch, which words of this command mean: `true` and `false` after it are its value. */
function switchLines(
  { typed, meaning: { name, off }, given, own, length }: Reading,
  words: readonly string[],
): MeantLine[] {
  const line = (meant: readonly string[], replaced: number): MeantLine[] => [
    { ...typed.corrected(given.at, meant, replaced), lead: `did you mean --${name}?` },
  ];
  if (own === undefined) return line(words, 1);
  if (TRUE.test(own)) return line(words, length);
  if (FALSE.test(own)) return line(off === undefined ? [] : [`--${name}`, off], length);
  // The next word can be an argument. If it is the value, another row of the table applies.
  return given.value === undefined ? line(words, 1) : [];
}

/** The line with a flag and its value; none for a value of another kind. */
function valueLines(
  { typed, meaning: { name }, given, length }: Reading,
  flag: DeclaredFlag,
  own: string,
): MeantLine[] {
  const lead = `did you mean --${name}?`;
  const type = typed.meanings.quantizedValue(typed.command.id, flag, own, typed.words);
  const value = type?.value ?? acceptedValue(flag, substring(name, given.name, own));
  if (value === undefined) return [];
  const first = typed.meanings.firstNumber(typed, flag, value, given.at, length);
  if (first !== undefined) return [{ ...first, lead }];
  if (name === 'draft' && typed.isOfTool)
    return typed.meanings.draftLines(typed, value, given, length);
  const cache = name === 'cache-dtype' ? givenFlag(typed, name, given.at) : undefined;
  if (cache !== undefined && cache.at < given.at && cache.value !== value) {
    const line = typed.corrected(given.at, [], length);
    return [{ ...line, leftOut: [`${given.written} ${own}: keys and values have one type here`] }];
  }
  const other = name === 'dtype' ? givenFlag(typed, 'dtype', given.at) : undefined;
  if (other === undefined || !OF_QUANTIZATION.test(given.name)) {
    const line = typed.corrected(given.at, [`--${name}`, value], length);
    const leftOut = type === undefined ? {} : { leftOut: [type.note] };
    return [{ ...line, lead, gpus: name === 'gpu' ? [value] : [], ...leftOut }];
  }
  // One flag here: the type of the quantized weights.
  const words = typed.words.slice(other.at, other.at + other.length).join(' ');
  const changed = typed.words
    .with(given.at, length === 1 ? `--dtype=${value}` : '--dtype')
    .map((word, index) => (length === 2 && index === given.at + 1 ? value : word))
    .toSpliced(other.at, other.length);
  const isSame = other.value?.toLowerCase() === own.toLowerCase();
  const leftOut = isSame ? [] : [`${words} is replaced by ${given.written} ${own}`];
  return [{ ...typed.lineOf(changed), lead, leftOut: [...leftOut, ...(type ? [type.note] : [])] }];
}

/** Flags of other tools for a part of a name, and for its beginning; a filter here is the whole name. */
const OF_A_PART = /^(?:grep|match|contains|search|find|substring)$/i;
const OF_A_NAME = /^(?:tensor|print|show|key|select|name)$/i;

/** The value of a filter for a part of a name: `--grep q_proj` is `--filter '*q_proj*'`. */
export function substring(flag: string, given: string, value: string): string {
  if (flag !== 'filter' || /[*?[{]/.test(value)) return value;
  if (given === 'prefix') return `${value}*`;
  if (/^layers?$/i.test(given) && /^\d+$/.test(value)) return `*.${value}.*`;
  // A name with its parts is a whole one: embed.weight.
  const isPart = OF_A_PART.test(given) || (OF_A_NAME.test(given) && !value.includes('.'));
  return isPart ? `*${value}*` : value;
}

/** Lines with the list of cards: its argument is a part of their names, and no model. */
function asList(typed: TypedLine, { at }: GivenFlag): MeantLine[] {
  const lead = 'did you mean --list-gpus?';
  const whole = { ...typed.corrected(at, ['--list-gpus']), lead };
  const [model, ...others] = typed.arguments;
  if (model === undefined || others.length > 0) return [whole];
  const without = typed.words.with(at, '--list-gpus').toSpliced(model.at, 1);
  const leftOut = [`${model.word} is not needed`];
  // A name that is no card is not part of a list of cards.
  return [whole, { ...typed.lineOf(without), lead, leftOut, isShorter: true }];
}

/** The command that counts what another one leaves out. */
const COUNTERPARTS: Readonly<Record<string, string>> = {
  ...{ fit: 'train-plan', 'train-plan': 'fit', 'quick-test': 'fit' },
};

/** The line without a flag of another tool and its value, and the reason. */
export function withoutFlag(
  typed: TypedLine,
  { at, written, value }: GivenFlag,
  meaning: string,
  length: number,
): MeantLine {
  const words = [
    typed.meanings.writtenFlag(written),
    ...(value === undefined ? typed.words.slice(at + 1, at + length) : [value]),
  ];
  const name = written.replace(/^-+/, '');
  const owner = typed.others.find(
    ({ id, flags }) =>
      id !== typed.command.id &&
      ownValue(COUNTERPARTS, typed.command.id) === id &&
      [{ name, isOfStep: false }, ...typed.meanings.flagMeanings(name, id)].some(
        (each) =>
          Object.hasOwn(flags, each.name) &&
          !Object.hasOwn(typed.command.flags, each.name) &&
          !each.isOfStep,
      ),
  );
  const without = owner
    ? `is counted by minimind ${owner.id}, not here`
    : 'has no counterpart here';
  const reason = meaning === '<none>' ? without : 'is not needed';
  const line = typed.corrected(at, [], length);
  // llama-quantize --pure writes one type, which has a name of its own here.
  const isPure = typed.name === 'convert-checkpoint' && foldedName(written.slice(2)) === 'pure';
  if (isPure && line.words.some((word) => MIXTURE.test(word))) {
    return { ...line, words: line.words.map((word) => word.replace(MIXTURE, '$1$2')) };
  }
  return { ...line, leftOut: [`${words.join(' ')} ${reason}`] };
}

/** The line with the value of `--model FILE` as an argument. */
export function asArgument(
  typed: TypedLine,
  kind: string,
  value: string | undefined,
  at: number,
  length: number,
): MeantLine[] {
  const names = Object.keys(typed.command.args);
  const isFirst =
    (kind === 'data' && typed.command.id === 'data') ||
    (kind === 'model' && MODEL_ARGUMENTS.has(names[0] ?? ''));
  const index = isFirst ? 0 : names.indexOf(kind);
  const isFormat =
    kind === 'out' && value !== undefined && Object.hasOwn(FORMAT_NAMES, value.toLowerCase());
  if (value === undefined || index < 0 || isFormat || typed.arguments[index]) return [];
  const rest = typed.words.toSpliced(at, length);
  const line = typed.lineOf(index === 0 ? [value, ...rest] : [...rest, value]);
  if (kind !== 'model') return [line];
  const place = line.words.indexOf(value, typed.name.split(' ').length);
  const type = typed.meanings.typeFlag(typed.command, typed.words);
  // A repository whose sizes are not here is read from the hub.
  return [
    { ...line, models: [value] },
    ...typed.meanings.linesWithOther(line.words, place, { type, hub: true }),
  ];
}

/**
 * The value in the flag's own spelling; undefined for a value of another kind. The flag's parser makes the final
 * check.
 */
function acceptedValue(flag: DeclaredFlag, value: string): string | undefined {
  const { options, delimiter, helpValue = '' } = flag as Option;
  if (options !== undefined) {
    const items = delimiter === undefined ? [value] : value.split(delimiter);
    const meant = items.map((item) => nearestValue(flag.name, item, options));
    return meant.includes(undefined) ? undefined : meant.join(delimiter);
  }
  const isKind =
    helpValue === 'KEY=VALUE'
      ? value.includes('=')
      : NUMERIC.test(helpValue)
        ? /^[\d.~]/.test(value)
        : !OF_FILES.test(helpValue) || !/^[\d.]+$/.test(value);
  return isKind ? value : undefined;
}
