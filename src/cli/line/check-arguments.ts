/** Checks the arguments of a line, and the file of its answer. */
import fs from 'node:fs';
import { usageError } from '../../base/errors.js';
import { parseDtype } from '../../base/tensor/dtype.js';
import { counted } from '../../base/text/words.js';
import { quote } from '../../config/quote.js';
import { type MeantLine, pasteable } from './line-mistake.js';
import type { Option } from './meant-lines.js';
import { MODEL_ARGUMENTS, type TypedLine } from './typed-line.js';

/** Endings of artifacts: configs, graphs and tensors. */
const SAVED_ENDING = /\.(?:ya?ml|onnx|gguf|safetensors|pt|pth|bin)$/i;

/** Endings of answers; another file of `--output` without an argument for it is an artifact. */
const ANSWER_ENDING = /\.(?:json|csv|md|markdown|txt|log|html|svg|sh|sbatch|ya?ml)$|^-$/i;

/** Words of a sentence, which say nothing beside its arguments. */
const FILLER = /^(?:on|an?|the|for|to|into|vs\.?|versus|with|and|in|as|from|against|of|using)$/i;

const KINDS = {
  type: /^(?:q\d_(?:k(?:_[sml])?|[01])|b?f16|f32)$/i,
  count: /^~?\d[\d_,.]*\s*(?:[kmbt]|e\d+)?$/i,
  data: /\.(?:jsonl|json|txt|csv|parquet)$/i,
  config: /\.ya?ml$/i,
  onnx: /\.onnx$/i,
  checkpoint: /\.(?:gguf|safetensors|pt)$/i,
  few: /^\d{1,3}$/,
  family: /^[a-z]/i,
} as const;

/** Words without a flag that people write, by command: the kind of a word determines the flag or command. */
const EXTRA_WORDS: Readonly<Record<string, readonly ExtraWord[]>> = {
  plan: [
    { kind: 'count', words: ['--max-params'] },
    { kind: 'family', words: ['--family'] },
    { kind: 'gpu', words: ['--gpu'] },
  ],
  profile: [{ kind: 'model', words: ['compare'] }],
  export: [
    { kind: 'onnx', words: ['--save'] },
    { kind: 'checkpoint', words: ['convert-checkpoint'] },
  ],
  fit: [
    { kind: 'gpu', words: ['--gpu'] },
    { kind: 'few', words: ['--gpus'] },
    { kind: 'model', words: ['compare'] },
  ],
  'convert-checkpoint': [{ kind: 'type', words: ['--dtype'] }],
  attention: [{ kind: 'gpu', words: ['--gpu'] }],
  'train-plan': [
    { kind: 'gpu', words: ['--gpu'] },
    { kind: 'data', words: ['--data'] },
    { kind: 'count', words: ['--tokens'] },
  ],
  evaluate: [{ kind: 'data', words: ['--text'] }],
  init: [{ kind: 'config', words: ['--save'] }],
  diff: [{ kind: 'model', words: ['compare'] }],
};

interface ExtraWord {
  readonly kind: keyof typeof KINDS | 'model' | 'gpu';
  /** The flag that the word is a value of, or another command that takes it with the arguments. */
  readonly words: readonly string[];
}

export function checkArguments(typed: TypedLine): void {
  checkConfigAlone(typed);
  const declared = Object.values(typed.command.args);
  refuseFillers(typed, declared.length);
  refuseOverrides(typed);
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
  const most = ['no argument', 'one argument'][declared.length] ?? `${declared.length} arguments`;
  throw typed.mistake(
    `minimind ${typed.name}: expected ${most}, found ${quote(extra.word)} as well`,
    [
      ...(isOverride ? [{ ...typed.corrected(extra.at, [override]), isSpelling: true }] : []),
      ...asFurtherValue(typed, extra),
      ...asFlag(typed, extra),
      { ...typed.corrected(extra.at, []), isShorter: true },
    ],
    typed.example,
  );
}

/** Refuses words of a sentence between the arguments: `fit qwen3-8b on a 4090`, `compare A vs B`. */
function refuseFillers(typed: TypedLine, most: number): void {
  const isOpen = typed.command.strict === false;
  const filler = typed.arguments.find(
    ({ word }, index) => index > 0 && FILLER.test(word) && !fs.existsSync(word),
  );
  if (filler === undefined || (!isOpen && typed.arguments.length <= most)) return;
  throw typed.mistake(`minimind ${typed.name}: expected no word ${quote(filler.word)}`, [
    { ...typed.corrected(filler.at, []), isSpelling: true },
  ]);
}

/** Refuses arguments as in Hydra and dd: `model=my.yaml`. */
function refuseOverrides(typed: TypedLine): void {
  const declared = Object.keys(typed.command.args);
  if (typed.command.strict === false) return;
  const given = typed.arguments.slice(0, declared.length).find(({ word }) => {
    const [, name] = /^([a-z][\w.-]*)=./i.exec(word) ?? [];
    return name !== undefined && !fs.existsSync(word) && !declared.includes('prompt');
  });
  if (given === undefined) return;
  throw typed.mistake(`expected ${declared[0]?.toUpperCase()}, found ${quote(given.word)}`, [
    { ...typed.corrected(given.at, [`--${given.word}`]), isSpelling: true },
  ]);
}

/** The line with a word as one more value of the flag before: `--targets q_proj v_proj`, `--dtypes float32 float16`. */
function asFurtherValue(
  typed: TypedLine,
  { word, at }: { readonly word: string; readonly at: number },
): MeantLine[] {
  const name = typed.words[at - 2]?.replace(/^--/, '') ?? '';
  const flag = typed.command.flags[name];
  if (flag?.type !== 'option' || typed.words[at - 2] !== `--${name}`) return [];
  const { delimiter, helpValue = '' } = flag as Option;
  if (delimiter === ',' || helpValue === 'NAMES') {
    const joined = `${typed.words[at - 1]},${word}`;
    return [typed.lineOf(typed.words.toSpliced(at - 1, 2, joined))];
  }
  const isType = helpValue === 'TYPE' && parseDtype(word) !== undefined;
  return isType
    ? [{ ...typed.corrected(at, []), leftOut: [`${word}: --${name} takes one type at a time`] }]
    : [];
}

/** Refuses `--config FILE` without a checkpoint: a config alone is a model. */
function checkConfigAlone(typed: TypedLine): void {
  const at = typed.given.get('config');
  const [first = ''] = Object.keys(typed.command.args);
  const isOfModel = typed.command.strict !== false && MODEL_ARGUMENTS.has(first);
  if (at === undefined || !isOfModel || typed.arguments.length > 0) return;
  const [, inline] = typed.words[at]?.split(/=(.*)/s) ?? [];
  const file = inline ?? typed.words[at + 1] ?? '';
  const rest = typed.words.toSpliced(at, inline === undefined ? 2 : 1);
  throw typed.mistake('--config requires a checkpoint, found none', [
    { ...typed.lineOf([file, ...rest]), models: [file], isSpelling: true },
  ]);
}

/** Lines in which a word beyond the arguments is the value of the flag that it was meant for. */
function asFlag(
  typed: TypedLine,
  { word, at }: { readonly word: string; readonly at: number },
): MeantLine[] {
  const joint = typed.arguments.map((each) => each.word).join('-');
  const isNamed = typed.arguments.length === 2 && MODEL_ARGUMENTS.has(typed.firstArgument);
  const first = typed.arguments[0]?.at ?? 0;
  // A name can be written in two words: llama-3.2 1b.
  const names = isNamed ? [joint, typed.meanings.hubReference(joint)] : [];
  const named: MeantLine[] = names
    .filter((each) => each !== undefined)
    .map((each) => ({
      ...typed.lineOf(typed.words.toSpliced(at, 1).with(first, each)),
      models: [each],
    }));
  const flags = asFlagOfCommand(typed, word, at);
  return [...named, ...flags];
}

function asFlagOfCommand(typed: TypedLine, word: string, at: number): MeantLine[] {
  return (EXTRA_WORDS[typed.command.id] ?? []).flatMap(({ kind, words }) => {
    if (kind !== 'model' && kind !== 'gpu' && !KINDS[kind].test(word)) return [];
    const needs = { models: kind === 'model' ? [word] : [], gpus: kind === 'gpu' ? [word] : [] };
    const [first = ''] = words;
    if (!first.startsWith('-')) {
      const given = typed.arguments.map((each) => each.at);
      const flags = typed.words.filter((_, index) => !given.includes(index));
      const models = typed.arguments.map((each) => each.word);
      return [{ words: [...words, ...models, ...flags], models, gpus: [] }];
    }
    if (typed.given.has(first.slice(2))) return [];
    const value = kind === 'type' ? word.toLowerCase() : word;
    const lines: MeantLine[] = [{ ...typed.corrected(at, [...words, value]), ...needs }];
    const [model] = typed.arguments;
    if (kind === 'gpu' && model !== undefined) {
      // The user wrote the GPU first.
      const swapped = typed.words.with(model.at, word).toSpliced(at, 1, first, model.word);
      lines.push({ ...typed.lineOf(swapped), models: [word], gpus: [model.word] });
    }
    return lines;
  });
}

/** Refuses `-o model.onnx` if the file is meant for `--save` or OUT: `--output` is the file of the answer. */
export function checkAnswerFile(typed: TypedLine): void {
  const at = typed.given.get('output');
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

/** The line of a conversion, for a graph that is to be written as a checkpoint. */
function asCheckpoint(typed: TypedLine, file: string, at: number, length: number): MeantLine[] {
  if (typed.command.id !== 'export' || !KINDS.checkpoint.test(file)) return [];
  const [model, ...rest] = typed.words.toSpliced(at, length);
  return model === undefined ? [] : [{ words: ['convert-checkpoint', model, file, ...rest] }];
}
