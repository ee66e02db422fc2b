/** Words without a flag that people write after the arguments, and the flags that they mean. */
import { parseDtype } from '../../base/tensor/dtype.js';
import { ownValue } from '../../base/values.js';
import { nearestValue } from '../foreign/spellings.js';
import type { DeclaredFlag } from './flag-example.js';
import { valueGiven } from './given-flags.js';
import type { MeantLine } from './line-mistake.js';
import { type Option, substring } from './meant-lines.js';
import { MODEL_ARGUMENTS, type TypedLine } from './typed-line.js';

export const KINDS = {
  type: /^(?:q\d_(?:k(?:_[sml])?|[01])|b?f16|f32)$/i,
  /** A type of the weights by any name: fp8, q4, 4-bit. */
  bits: /^(?:i?q\d\w*|b?f(?:p|loat)?\d+|u?int[48]|[48]-?bits?|nf4|mxfp4|nvfp4|awq|gptq)$/i,
  purpose: /^(?:training|train|serving|inference|q?lora|fine-?tun(?:e|ing)|chat)$/i,
  size: /^\d[\d.]*g(?:i?b)?$/i,
  count: /^~?\d[\d_,.]*\s*(?:[kmbt]|e\d+)?$/i,
  data: /\.(?:jsonl|json|txt|csv|parquet)$/i,
  config: /\.ya?ml$/i,
  onnx: /\.onnx$/i,
  checkpoint: /\.(?:gguf|safetensors|pt)$/i,
  weights: /\.(?:gguf|safetensors|pt|pth|bin|onnx)$/i,
  device: /^(?:cpu|gpu|cuda|webgpu|directml|coreml)$/i,
  /** A name of a tensor, or a part of one, and no file. */
  tensor: /^(?!.*\.(?:safetensors|gguf|pt|pth|bin|onnx|ckpt|ya?ml|json)$)[a-z][\w.*-]+$/i,
  /** A file for an answer: `--json report.json`. */
  answer: /\.(?:html|svg|json|csv|md|txt)$/i,
  few: /^\d{1,3}$/,
  family: /^[a-z]/i,
} as const;

/** Flags for a number, by the word after it: users, GPUs or tokens. */
const COUNTED: Readonly<Record<string, string>> = {
  ...{ users: '--users', user: '--users', people: '--users', clients: '--users' },
  ...{ client: '--users', stream: '--users', streams: '--users' },
  ...{ session: '--users', sessions: '--users' },
  ...{ gpus: '--gpus', gpu: '--gpus', cards: '--gpus', card: '--gpus' },
  ...{ context: '--context', ctx: '--context', tokens: '--context', token: '--context' },
};

/** The flag for a number before a word. */
export const flagCounting = (word: string): string | undefined =>
  ownValue(COUNTED, word.toLowerCase());

/** Words beyond the arguments, by command: the kind of a word determines the flag or command. */
const EXTRA_WORDS: Readonly<Record<string, readonly ExtraWord[]>> = {
  plan: [
    { kind: 'count', words: ['--max-params'] },
    { kind: 'family', words: ['--family'] },
    { kind: 'gpu', words: ['--gpu'] },
  ],
  profile: [
    { kind: 'model', words: ['compare'] },
    { kind: 'answer', words: ['--output'] },
  ],
  export: [
    { kind: 'onnx', words: ['--save'] },
    { kind: 'checkpoint', words: ['convert-checkpoint'] },
  ],
  fit: [
    { kind: 'purpose', words: ['--for'] },
    { kind: 'bits', words: ['--dtype'] },
    { kind: 'gpu', words: ['--gpu'] },
    { kind: 'few', words: ['--gpus'] },
    { kind: 'model', words: ['compare'] },
    { kind: 'answer', words: ['--output'] },
  ],
  'convert-checkpoint': [{ kind: 'type', words: ['--dtype'] }],
  attention: [{ kind: 'gpu', words: ['--gpu'] }],
  'train-plan': [
    { kind: 'gpu', words: ['--gpu'] },
    { kind: 'data', words: ['--data'] },
    { kind: 'count', words: ['--tokens'] },
  ],
  evaluate: [
    { kind: 'data', words: ['--text'] },
    { kind: 'model', words: ['--against'] },
  ],
  init: [{ kind: 'config', words: ['--save'] }],
  'quick-test': [{ kind: 'device', words: ['--device'] }],
  inspect: [
    { kind: 'weights', words: ['diff'] },
    { kind: 'tensor', words: ['--filter'] },
  ],
  diff: [{ kind: 'model', words: ['compare'] }],
  'compare-srte': [{ kind: 'model', words: ['compare'] }],
  draw: [{ kind: 'model', words: ['--against'] }],
  explore: [{ kind: 'model', words: ['--against'] }],
};

interface ExtraWord {
  readonly kind: keyof typeof KINDS | 'model' | 'gpu';
  /** The flag that the word is a value of, or another command that takes it with the arguments. */
  readonly words: readonly string[];
}

/** A word of a line, and its place. */
export interface PlacedWord {
  readonly word: string;
  readonly at: number;
}

/** Whether a word is a type, size, count, GPU or purpose: the answer without it is another one. */
export const isSaying = (word: string): boolean =>
  [KINDS.bits, KINDS.purpose, KINDS.size].some((kind) => kind.test(word)) ||
  // Names of cards have a number, and so do counts: a100, 4x, x8.
  /^(?:[a-z]{0,3}\d[\w-]*|\d+[x×]|rtx|nvidia|geforce)$/i.test(word);

/** Names of the memory of a card in flags of others. */
const MEMORY_OF_CARD =
  /^(?:max[-_]?)?(?:v?ram[-_]?(?:gb|size)?|(?:gpu|device)[-_]?(?:mem|memory|ram|vram)|mem|memory)$/i;

/** Advice for the memory of a card as a flag: `--vram 24`. */
export function memoryOfCard(
  typed: TypedLine,
  name: string,
  value: string | undefined,
): string | undefined {
  if (!MEMORY_OF_CARD.test(name) || !/^\d[\d.]*(?:g(?:i?b)?)?$/i.test(value ?? ''))
    return undefined;
  return memoryAdvice(typed, /\d$/.test(value ?? '') ? `${value}GB` : (value ?? ''));
}

/** Advice for a memory in place of a card, which has no flag: many cards have as much. */
export const memoryAdvice = (typed: TypedLine, word: string): string | undefined =>
  KINDS.size.test(word) && Object.hasOwn(typed.command.flags, 'list-gpus')
    ? `name a GPU with --gpu: minimind fit --list-gpus ${word} lists those with this memory`
    : undefined;

/** Most words of a card's name: `NVIDIA RTX PRO 6000 Blackwell Max-Q`. */
const MOST_OF_NAME = 6;

/** The arguments from one on that follow each other in the line, longest run first. */
export function runsFrom(typed: TypedLine, at: number): string[][] {
  const run: string[] = [];
  for (let next = at; run.length < MOST_OF_NAME; next++) {
    const word = typed.arguments.find((each) => each.at === next)?.word;
    if (word === undefined) break;
    run.push(word);
  }
  return run.map((_, index) => run.slice(0, run.length - index));
}

/** The lines in which the value of `--gpu` has the words after it, the longest name first. */
export function withWholeCard(typed: TypedLine, at: number): MeantLine[] {
  const { value, length } = typed.flagBefore(at);
  return runsFrom(typed, at).map((run) => {
    const card = [value, ...run].join(' ');
    const words = typed.words.toSpliced(at - length, length + run.length, '--gpu', card);
    return { ...typed.lineOf(words), gpus: [card] };
  });
}

/**
 * The line with a word as one more value of the flag before: `--targets q_proj v_proj`, `--dtypes float32 float16`,
 * `--gpu A100 40GB`.
 */
export function asFurtherValue(typed: TypedLine, { word, at }: PlacedWord): MeantLine[] {
  const cut = typed.arguments.find((each) => typed.flagBefore(each.at).name === 'gpu');
  const whole = cut === undefined ? [] : withWholeCard(typed, cut.at);
  const { name, value } = typed.flagBefore(at);
  const { delimiter, helpValue = '' } = (typed.command.flags[name] ?? {}) as Option;
  if (name === '' || typed.words[at - 2] !== `--${name}`) return whole;
  if (delimiter === ',' || helpValue === 'NAMES') {
    return [...whole, typed.lineOf(typed.words.toSpliced(at - 1, 2, `${value},${word}`))];
  }
  const isType = helpValue === 'TYPE' && parseDtype(word) !== undefined;
  if (!isType) return whole;
  const one = {
    ...typed.corrected(at, []),
    leftOut: [`${word}: --${name} takes one type at a time`],
  };
  return typed.isOfTool && typed.command.id === 'fit' ? [withAllTypes(typed, at), one] : [one];
}

/** The line that shows a model in all types, for a list of them that begins before a word. */
function withAllTypes(typed: TypedLine, at: number): MeantLine {
  const after = typed.words.slice(at).findIndex((word) => parseDtype(word) === undefined);
  const end = after < 0 ? typed.words.length : at + after;
  const types = typed.words.slice(at - 1, end);
  return {
    words: ['profile', ...typed.words.toSpliced(at - 2, types.length + 1), '--details'],
    isOfTool: true,
    leftOut: [`minimind profile shows ${types.join(' and ')}`],
  };
}

/** Lines in which a word beyond the arguments is the value of the flag that it was meant for. */
export function asFlag(typed: TypedLine, { word, at }: PlacedWord): MeantLine[] {
  const [first] = typed.arguments;
  const joint = jointName(typed);
  const { hubReference, modelWithWords } = typed.meanings;
  const names = joint === undefined ? [] : [joint, hubReference(joint), modelWithWords(joint)];
  const start = first?.at ?? 0;
  const named: MeantLine[] = names
    .filter((each) => each !== undefined)
    .map((each) => ({
      ...typed.lineOf(typed.words.toSpliced(start, typed.arguments.length, each)),
      models: [each],
    }));
  return [
    ...named,
    ...asCounted(typed, word, at),
    ...asFlagOfCommand(typed, word, at),
    ...asOneFile(typed, word, at),
  ];
}

/** The arguments as the name of a model in several words, `llama-3.2 1b`; undefined where one is a path or a file. */
export function jointName(typed: TypedLine): string | undefined {
  const [first] = typed.arguments;
  const joint = typed.arguments.map((each) => each.word).join('-');
  const isRun = typed.arguments.every((each, index) => each.at === (first?.at ?? 0) + index);
  const isName = MODEL_ARGUMENTS.has(typed.firstArgument) && !/[/\\]|\.(?!\d)/.test(joint);
  return isRun && isName && typed.arguments.length <= MOST_OF_NAME ? joint : undefined;
}

/** The line with a number and what it counts as a flag: `8 users`, `32k context`. */
function asCounted(typed: TypedLine, word: string, at: number): MeantLine[] {
  const noun = typed.arguments.find((each) => each.at === at + 1)?.word ?? '';
  const flag = flagCounting(noun);
  if (flag === undefined || !KINDS.count.test(word)) return [];
  if (!Object.hasOwn(typed.command.flags, flag.slice(2)) || typed.given.has(flag.slice(2))) {
    return [];
  }
  return [typed.corrected(at, [flag, word], 2)];
}

function asFlagOfCommand(typed: TypedLine, word: string, at: number): MeantLine[] {
  return (EXTRA_WORDS[typed.command.id] ?? []).flatMap(({ kind, words }): MeantLine[] => {
    if (kind === 'gpu') return asCard(typed, word, at);
    if (kind !== 'model' && !KINDS[kind].test(word)) return [];
    // A family is not chosen by letters alone.
    const { options = [] } = (typed.command.flags.family ?? {}) as Option;
    if (kind === 'family' && nearestValue('family', word, options) === undefined) return [];
    const [first = ''] = words;
    if (!first.startsWith('-')) {
      const given = typed.arguments.map((each) => each.at);
      const flags = typed.words.filter((_, index) => !given.includes(index));
      const models = typed.arguments.map((each) => each.word);
      return [{ words: [...words, ...models, ...flags], models, gpus: [] }];
    }
    if (typed.given.has(first.slice(2))) return [];
    // A short flag of other tools for the type, and not our switch: -q q4_k_m, -q 4.
    const isType = /^-q$/.test(typed.words[at - 1] ?? '') && first !== '--for';
    if (isType && Object.hasOwn(typed.command.flags, 'dtype')) return ofShortType(typed, word, at);
    // Other tools have a switch of this name, whose meaning a training has its own of.
    if (kind === 'bits') {
      return [`--${word}`, first].map((flag) =>
        typed.corrected(at, flag === first ? [first, word] : [flag]),
      );
    }
    const value = kind === 'type' ? word.toLowerCase() : word;
    const models = kind === 'model' ? [word] : [];
    // A number after a name that no card has is part of that name.
    const gpus =
      kind === 'few' ? [valueGiven(typed, 'gpu')].filter((each) => each !== undefined) : [];
    if (kind === 'tensor')
      return [typed.corrected(at, [...words, substring('filter', 'name', value)])];
    return [{ ...typed.corrected(at, [...words, value]), models, gpus }];
  });
}

/** The line with the value of `-q` as a type of the weights. */
function ofShortType(typed: TypedLine, word: string, at: number): MeantLine[] {
  const flag = typed.command.flags.dtype as DeclaredFlag;
  const type = typed.meanings.quantizedValue(typed.command.id, flag, word, typed.words);
  const line = typed.corrected(at - 1, ['--dtype', type?.value ?? word.toLowerCase()], 2);
  return [type === undefined ? line : { ...line, leftOut: [type.note] }];
}

/** The line for the first of several files of a command that takes one: `inspect a.safetensors b.safetensors --hash`. */
function asOneFile(typed: TypedLine, word: string, at: number): MeantLine[] {
  if (typed.command.id !== 'inspect' || !KINDS.weights.test(word)) return [];
  return [{ ...typed.corrected(at, []), leftOut: [`${word} in a line of its own`] }];
}

/** Lines with a word, and those after it, as a card: `4x h100`, `rtx 4090`. A second card is one more. */
function asCard(typed: TypedLine, word: string, at: number): MeantLine[] {
  const place = typed.given.get('gpu');
  const cards = runsFrom(typed, at).map((run) => ({ card: run.join(' '), length: run.length }));
  if (place !== undefined) {
    const [, inline] = typed.words[place]?.split(/=(.*)/s) ?? [];
    const length = inline === undefined ? 2 : 1;
    const own = inline ?? typed.words[place + 1] ?? '';
    return cards.map((each) => {
      const both = typed.words.with(
        place + length - 1,
        `${length === 1 ? '--gpu=' : ''}${own}+${each.card}`,
      );
      return { ...typed.lineOf(both.toSpliced(at, each.length)), gpus: [each.card] };
    });
  }
  const lines: MeantLine[] = cards.map(({ card, length }) => ({
    ...typed.corrected(at, ['--gpu', card], length),
    gpus: [card],
  }));
  const [model] = typed.arguments;
  if (model === undefined) return lines;
  // The user wrote the GPU first.
  const swapped = typed.words.with(model.at, word).toSpliced(at, 1, '--gpu', model.word);
  return [...lines, { ...typed.lineOf(swapped), models: [word], gpus: [model.word] }];
}
