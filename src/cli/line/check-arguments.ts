/** Checks the arguments of a line, and the file of its answer. */
import fs from 'node:fs';
import { usageError } from '../../base/errors.js';
import { counted } from '../../base/text/words.js';
import { quote } from '../../config/quote.js';
import { nearestValue } from '../foreign/spellings.js';
import {
  asFlag,
  asFurtherValue,
  isSaying,
  jointName,
  KINDS,
  memoryAdvice,
  type PlacedWord,
  runsFrom,
  withWholeCard,
} from './extra-words.js';
import { type MeantLine, pasteable } from './line-mistake.js';
import { missingFile } from './missing-file.js';
import { MODEL_ARGUMENTS, type TypedLine } from './typed-line.js';

/** Endings of artifacts: configs, graphs and tensors. */
const SAVED_ENDING = /\.(?:ya?ml|onnx|gguf|safetensors|pt|pth|bin)$/i;

/** Endings of answers; another file of `--output` without an argument for it is an artifact. */
const ANSWER_ENDING = /\.(?:json|csv|md|markdown|txt|log|html|svg|sh|sbatch|ya?ml)$|^-$/i;

/** Words of a sentence that add nothing to its arguments. */
const FILLER =
  /^(?:on|an?|the|for|to|into|vs\.?|versus|with|and|in|as|from|against|of|using|models?)$/i;

/** Words that begin the name of a card, and are none. */
const IS_NO_CARD =
  /^(?:nvidia|geforce|rtx|gtx|tesla|quadro|amd|radeon|instinct|rx|intel|arc|apple|google|tpu|\d{1,3}\s*[x×])$/i;

export function checkArguments(typed: TypedLine): void {
  checkConfigAlone(typed);
  const declared = Object.values(typed.command.args);
  refuseCutCard(typed);
  refuseFillers(typed, declared.length);
  refuseOverrides(typed);
  refuseTypeAsFile(typed);
  const missing = declared.filter(
    ({ required }, index) => required && !typed.isPlanned && !typed.arguments[index],
  );
  if (missing.length > 0) {
    const names = missing.map(({ name }) => name.toUpperCase()).join(' and ');
    const given = typed.arguments.length;
    const form = typed.lineOf([...typed.words, ...missing.map(({ name }) => name.toUpperCase())]);
    throw usageError(
      `expected ${names}, found ${given === 0 ? 'no arguments' : counted(given, 'argument')}`,
      given === 0 ? typed.example : `write it as in ${pasteable(form.words)}`,
    );
  }
  const extra = typed.arguments[declared.length];
  if (typed.command.strict === false || extra === undefined) return;
  // Overrides as in Hydra: batch_size=4.
  const isOverride = /^\+{0,2}[a-z][\w.]*=./i.test(extra.word) && !fs.existsSync(extra.word);
  const override = `--${extra.word.replace(/^\+/g, '')}`;
  const memory = memoryAdvice(typed, extra.word);
  const further = asFurtherValue(typed, extra);
  const most = ['no argument', 'one argument'][declared.length] ?? `${declared.length} arguments`;
  throw typed.mistake(
    `minimind ${typed.name}: expected ${most}, found ${quote(extra.word)} as well`,
    // A size of memory is not a GPU, so that no line can keep it.
    memory !== undefined && further.length === 0
      ? []
      : [
          ...(isOverride ? [{ ...typed.corrected(extra.at, [override]), isSpelling: true }] : []),
          ...asKeyOfSwitch(typed, extra),
          ...further,
          ...asFlag(typed, extra),
          ...withoutPrompt(typed, extra),
          // A line without it would answer another question.
          ...(isSaying(extra.word) ? [] : [{ ...typed.corrected(extra.at, []), isShorter: true }]),
        ],
    memory ??
      missingModelFile(typed) ??
      modelAdvice(typed) ??
      cardAdvice(typed, extra) ??
      typed.example,
  );
}

/** Advice for a word after the name of a card, which no card has with it. */
function cardAdvice(typed: TypedLine, { word, at }: PlacedWord): string | undefined {
  const { name, value } = typed.flagBefore(at);
  return name === 'gpu'
    ? `${value} ${word} is not a GPU or machine of minimind fit --list-gpus`
    : undefined;
}

/** Advice for a model that is not there, of which no line can be checked. */
const missingModelFile = (typed: TypedLine): string | undefined =>
  MODEL_ARGUMENTS.has(typed.firstArgument)
    ? missingFile(typed.arguments.slice(0, 1).map(({ word }) => word))
    : undefined;

/** Advice for a name in several words that several models have. */
function modelAdvice(typed: TypedLine): string | undefined {
  const joint = jointName(typed);
  return joint === undefined ? undefined : typed.meanings.modelAdvice(joint);
}

/** Lines with a key of the config for a switch with a number: `--layers 4`. */
function asKeyOfSwitch(typed: TypedLine, { word, at }: PlacedWord): MeantLine[] {
  const [, name = ''] = /^--([a-z-]+)$/.exec(typed.words[at - 1] ?? '') ?? [];
  const isSwitch = typed.command.flags[name]?.type === 'boolean' && /^\d+$/.test(word);
  if (!isSwitch || !Object.hasOwn(typed.command.flags, 'set')) return [];
  const keys = typed.meanings.keysNamed(name).filter((key) => key !== name);
  return keys.map((key) => ({
    ...typed.corrected(at - 1, ['--set', `model.${key}=${word}`], 2),
    lead: 'a key of the config is set with --set:',
    isElsewhere: true,
  }));
}

/** One word of a language, which is not the value of a switch. */
const IS_PROMPT = /^(?!(?:true|false|yes|no|on|off|auto)$)\p{L}+[?!.]?$/iu;

/** The line without the prompt of a program that runs a model, for a command that does not. */
const withoutPrompt = (
  typed: TypedLine,
  { word, at }: { word: string; at: number },
): MeantLine[] =>
  typed.isOfTool && typed.command.id === 'fit' && (word.includes(' ') || IS_PROMPT.test(word))
    ? [{ ...typed.corrected(at, []), leftOut: [`the prompt ${quote(word)} is not needed`] }]
    : [];

/** Refuses words of a sentence between the arguments: `fit qwen3-8b on a 4090`, `compare A vs B`. */
function refuseFillers(typed: TypedLine, most: number): void {
  const isOpen = typed.command.strict === false;
  const filler = typed.arguments.find(
    ({ word, at }, index) =>
      FILLER.test(word) && !fs.existsSync(word) && (index > 0 || isBeforeMore(typed, at)),
  );
  if (filler === undefined || (!isOpen && typed.arguments.length <= most)) return;
  const card = afterOn(typed, filler);
  if (card !== undefined) {
    throw typed.mistake(
      `minimind ${typed.name}: expected no word ${quote(filler.word)}`,
      runsFrom(typed, card.at).map((run) => ({
        ...typed.corrected(filler.at, []),
        isSpelling: true,
        gpus: [run.join(' ')],
      })),
      `${card.word} is not a GPU or machine of minimind fit --list-gpus`,
    );
  }
  // Of a list of models, each further word is one.
  const models = typed.arguments.map(({ word }) => word).filter((word) => !FILLER.test(word));
  throw typed.mistake(`minimind ${typed.name}: expected no word ${quote(filler.word)}`, [
    { ...typed.corrected(filler.at, []), isSpelling: true, ...(isOpen && { models }) },
  ]);
}

/** The word after `on` that has to be a card: without it, the line would answer another question. */
function afterOn(typed: TypedLine, { word, at }: PlacedWord): PlacedWord | undefined {
  if (!/^on$/i.test(word) || !Object.hasOwn(typed.command.flags, 'gpu')) return undefined;
  const next = typed.arguments.find(
    (each) => each.at > at && !FILLER.test(each.word) && !/^(?:my|our|one)$/i.test(each.word),
  );
  const isCount = /^~?\d{1,3}$/.test(next?.word ?? '') || KINDS.size.test(next?.word ?? '');
  return next === undefined || isCount || fs.existsSync(next.word) ? undefined : next;
}

/** Whether a word at the beginning has an argument after it: `profile the qwen3-8b`. */
const isBeforeMore = (typed: TypedLine, at: number): boolean =>
  typed.arguments.some((each) => each.at === at + 1);

/** Refuses the name of a card that is cut at its first space: `--gpu rtx 4090`. */
function refuseCutCard(typed: TypedLine): void {
  for (const { word, at } of typed.arguments) {
    const { name, value } = typed.flagBefore(at);
    if (name !== 'gpu' || !IS_NO_CARD.test(value) || fs.existsSync(word)) continue;
    const lines = withWholeCard(typed, at).map((line) => ({ ...line, isSpelling: true }));
    throw typed.mistake(`--gpu: expected the name of a GPU, found ${quote(value)}`, lines);
  }
}

/** Refuses a type in the place of OUT: `convert-checkpoint hf q4_k_m`. */
function refuseTypeAsFile(typed: TypedLine): void {
  const [, out, ...others] = typed.arguments;
  if (typed.command.id !== 'convert-checkpoint' || out === undefined || others.length > 0) return;
  if (!KINDS.type.test(out.word) || fs.existsSync(out.word) || typed.given.has('dtype')) return;
  throw typed.mistake(`expected OUT, found the type ${quote(out.word)}`, [
    typed.corrected(out.at, ['--dtype', out.word]),
  ]);
}

/** Whether a name is that of a flag of the command, here or in another tool. */
const isFlagName = (typed: TypedLine, name: string): boolean =>
  typed.isFlag(`--${name}`) || typed.meanings.flagMeanings(name, typed.command.id).length > 0;

/** Refuses arguments as in Hydra and dd: `model=my.yaml`. */
function refuseOverrides(typed: TypedLine): void {
  const declared = Object.keys(typed.command.args);
  if (typed.command.strict === false) return;
  const given = typed.arguments.slice(0, declared.length).find(({ word }) => {
    const [, name] = /^([a-z][\w.-]*)=./i.exec(word) ?? [];
    if (name === undefined || fs.existsSync(word)) return false;
    // A prompt can be of any form, unless it names a flag.
    return !declared.includes('prompt') || isFlagName(typed, name);
  });
  if (given === undefined) return;
  throw typed.mistake(`expected ${declared[0]?.toUpperCase()}, found ${quote(given.word)}`, [
    { ...typed.corrected(given.at, [`--${given.word}`]), isSpelling: true },
  ]);
}

/** Refuses `--config FILE` without a checkpoint: a config alone is a model. */
function checkConfigAlone(typed: TypedLine): void {
  const at = typed.given.get('config');
  const [first = ''] = Object.keys(typed.command.args);
  const isOfModel =
    typed.command.strict !== false && (MODEL_ARGUMENTS.has(first) || first === 'in');
  if (at === undefined || !isOfModel || typed.arguments.length > 0) return;
  const [, inline] = typed.words[at]?.split(/=(.*)/s) ?? [];
  const file = inline ?? typed.words[at + 1] ?? '';
  const rest = typed.words.toSpliced(at, inline === undefined ? 2 : 1);
  throw typed.mistake('--config requires a checkpoint, found none', [
    { ...typed.lineOf([file, ...rest]), models: [file], isSpelling: true },
  ]);
}

/** Refuses `-o model.onnx` if the file is meant for `--save` or OUT: `--output` is the file of the answer. */
export function checkAnswerFile(typed: TypedLine): void {
  const at = typed.given.get('output');
  refuseFormatAsFile(typed, at);
  const isSaved = Object.hasOwn(typed.command.flags, 'save');
  const isArgument = Object.keys(typed.command.args)[typed.arguments.length] === 'out';
  if (at === undefined || !(isSaved || isArgument)) return;
  const word = typed.words[at] ?? '';
  const isAlone = /^(?:-o|--output)$/.test(word);
  const file = isAlone ? (typed.words[at + 1] ?? '') : word.replace(/^(?:-o|--output)=?/, '');
  if (!SAVED_ENDING.test(file) && (!isArgument || ANSWER_ENDING.test(file))) return;
  const length = isAlone ? 2 : 1;
  const asFlag = () => typed.corrected(at, typed.given.has('save') ? [] : ['--save', file], length);
  const asArgument = () => {
    const last = typed.arguments.at(-1)?.at ?? -1;
    const rest = typed.words.toSpliced(at, length);
    return typed.lineOf(rest.toSpliced(last < at ? last + 1 : last + 1 - length, 0, file));
  };
  throw typed.mistake(
    `--output: expected a file for the answer (.html, .json, .csv, .md, .txt), found ${quote(file)}`,
    // An argument that is given has `-o` for nothing else.
    [
      ...asCheckpoint(typed, file, at, length),
      { ...(isSaved ? asFlag() : asArgument()), isSpelling: isArgument && !isSaved },
    ],
  );
}

/** Refuses `--output json`, which would write the answer as it is into a file of that name. */
function refuseFormatAsFile(typed: TypedLine, at: number | undefined): void {
  const { options = [] } = (typed.command.flags.format ?? {}) as { options?: readonly string[] };
  const word = typed.words[at ?? -1] ?? '';
  const isAlone = /^(?:-o|--output)$/.test(word);
  const file = isAlone ? typed.words[(at ?? 0) + 1] : word.replace(/^(?:-o|--output)=?/, '');
  const format = nearestValue('format', file ?? '', options);
  if (at === undefined || format === undefined || typed.given.has('format')) return;
  throw typed.mistake(`--output: expected a file, found the format ${quote(file ?? '')}`, [
    typed.corrected(at, ['--format', format], isAlone ? 2 : 1),
  ]);
}

/** The line of a conversion, for a graph that is to be written as a checkpoint. */
function asCheckpoint(typed: TypedLine, file: string, at: number, length: number): MeantLine[] {
  if (typed.command.id !== 'export' || !KINDS.checkpoint.test(file)) return [];
  const [model, ...rest] = typed.words.toSpliced(at, length);
  return model === undefined ? [] : [{ words: ['convert-checkpoint', model, file, ...rest] }];
}
