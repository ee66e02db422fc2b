/** Sentences in place of a command: `can i run qwen3-8b on a 4060`. Each word has a meaning, or there is no line. */
import path from 'node:path';
import { freeName } from '../../base/files/file-system.js';
import { ownValue } from '../../base/values.js';
import { flagCounting, KINDS } from '../line/extra-words.js';
import { modelAdvice } from './meanings.js';
import { inEnglish, isBeginning, isFiller, type Topic, topicOf } from './spoken-words.js';

/** Tests of words that other modules know. */
export interface Vocabulary {
  /** Whether a word is a model that is here. */
  readonly isModel: (word: string) => Promise<boolean>;
  readonly isCard: (word: string) => boolean;
}

/** The line that a sentence means. */
export interface SaidLine {
  /** Its words from the command on. */
  readonly words: readonly string[];
  /** Whether it is spoken: with words of a language, or a name first. Other words can be a command and its arguments. */
  readonly isSpoken: boolean;
  /** A card with the memory that the words have in the place of one: many cards have as much. */
  readonly exampleOf?: string;
  /** Whether it names a format: as a command and its arguments, the format would be the name of a file. */
  readonly hasFormat?: boolean;
}

/** Most words of the name of a card, and of a model. */
const MOST_OF_NAME = 6;

interface Said {
  readonly models: string[];
  readonly flags: string[];
  readonly topics: Set<Topic>;
  size?: string;
  /** A number of thousands: the context of a model, or the size of one. */
  thousands?: string;
  /** Memory of a card. */
  memory?: string;
  /** Tokens of a training: millions are more than a context. */
  tokens?: string;
  isQuantized: boolean;
}

/**
 * The line that a sentence means; undefined for words that are not a sentence, or of which one has no meaning. Words
 * from the first flag on are kept.
 */
export async function sentenceLine(
  words: readonly string[],
  vocabulary: Vocabulary,
): Promise<SaidLine | undefined> {
  const end = words.findIndex((word) => word.startsWith('-'));
  const own = (end < 0 ? words : words.slice(0, end)).map((word) =>
    word.replace(/[?!,。？！，]+$/, ''),
  );
  const rest = end < 0 ? [] : words.slice(end);
  const conversion = await conversionLine(own, vocabulary);
  if (conversion) return { words: [...conversion, ...rest], isSpoken: true, hasFormat: true };
  const english = inEnglish(own);
  const isTranslated = english.join(' ') !== own.join(' ');
  const [first = '', ...others] = own;
  const isBegun = isBeginning(first) || topicOf(first) !== undefined;
  const isSpoken =
    isTranslated || (isBegun && others.some(isFiller)) || (await isNameFirst(own, vocabulary));
  if (!isSpoken && !isBegun) return undefined;
  const said = await meaningOf(english, vocabulary);
  const card = said && cardWith(said);
  if (said && card !== undefined) said.flags.push('--gpu', card);
  const line = said && (said.memory === undefined || card !== undefined) ? lineOf(said) : undefined;
  const example =
    card === undefined || said?.memory === undefined ? {} : { exampleOf: said.memory };
  return line && { words: [...line, ...rest], isSpoken, ...example };
}

/** Usual cards by their memory in GB. */
const USUAL_CARDS: Readonly<Record<string, string>> = {
  ...{ '6': 'rtx-2060-6gb', '8': 'rtx-4060', '10': 'rtx-3080-10gb', '11': 'gtx-1080-ti' },
  ...{ '12': 'rtx-3060-12gb', '16': 'rtx-5060-ti-16gb', '20': 'rx-7900-xt', '24': 'rtx-4090' },
  ...{ '32': 'rtx-5090', '40': 'a100-40gb', '48': 'l40s', '80': 'a100-80gb', '141': 'h200' },
  ...{ '192': 'mi300x' },
};

/** A card for a memory in a sentence without one, about what it runs. */
const cardWith = ({ memory, flags, topics }: Said): string | undefined =>
  memory === undefined || flags.includes('--gpu') || !topics.has('hardware')
    ? undefined
    : ownValue(USUAL_CARDS, /^\d+/.exec(memory)?.[0] ?? '');

/** Whether a model or a card is followed by what is asked of it: `qwen3-8b vram`, `qwen3-8b 4090 q4_k_m`. */
const isNameFirst = async (words: readonly string[], { isModel, isCard }: Vocabulary) =>
  words.length > 1 &&
  ((await isModel(words[0] ?? '')) || (isCard(words[0] ?? '') && /\d{3}/.test(words[0] ?? '')));

/** Advice for a memory, which many cards have. */
export const memoryAdvice = (memory: string): string =>
  `name a GPU with --gpu: minimind fit --list-gpus ${memory} lists those with this memory`;

/** Advice for a memory of a sentence in place of a card: `does qwen3-8b fit in 16GB`. */
export function memoryInSentence(words: readonly string[]): string | undefined {
  const memory = words.find((word) => KINDS.size.test(word) && /g/i.test(word));
  return memory === undefined || !isBeginning(words[0] ?? '') ? undefined : memoryAdvice(memory);
}

/** Advice for words of a sentence that several models have in their names: `can i run llama 70b`. */
export function modelsInSentence(words: readonly string[]): string | undefined {
  if (!isBeginning(words[0] ?? '') && topicOf(words[0] ?? '') === undefined) return undefined;
  const hasMeaning = (word: string) => isFiller(word) || topicOf(word) !== undefined;
  const own = words.map((word) => word.replace(/[?!,.]+$/, ''));
  for (let length = Math.min(MOST_OF_NAME, own.length - 1); length > 0; length--) {
    for (let at = 1; at + length <= own.length; at++) {
      const run = own.slice(at, at + length);
      const advice = run.some(hasMeaning) ? undefined : modelAdvice(run.join('-'));
      if (advice !== undefined) return advice;
    }
  }
  return undefined;
}

async function meaningOf(
  words: readonly string[],
  { isModel, isCard }: Vocabulary,
): Promise<Said | undefined> {
  const said: Said = { models: [], flags: [], topics: new Set(), isQuantized: false };
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    const next = words[at + 1] ?? '';
    const flag = flagCounting(next);
    if (/^tokens?$/i.test(next) && /^\d[\d.,_]*[mbt]$/i.test(word)) {
      said.tokens = word;
      at++;
      continue;
    }
    if (flag !== undefined && KINDS.count.test(word)) {
      said.flags.push(flag, word);
      at++;
      continue;
    }
    const topic = topicOf(word);
    if (topic !== undefined) {
      said.topics.add(topic);
      if (/^qlora$/i.test(word)) said.isQuantized = true;
      continue;
    }
    const card = cardAt(words, at, isCard);
    if (card !== undefined) {
      said.flags.push(...card.flags);
      at += card.length - 1;
      continue;
    }
    if (isFiller(word) || (at === 0 && isBeginning(word))) continue;
    const length = await modelAt(words, at, isModel);
    if (length > 0) {
      said.models.push(words.slice(at, at + length).join(' '));
      at += length - 1;
    } else if (/^[48]$/.test(word) && /^bits?$/i.test(next)) {
      said.flags.push('--dtype', `int${word}`);
      at++;
    } else if (/^q[48]$/i.test(word)) said.flags.push('--dtype', `int${word.slice(1)}`);
    else if (KINDS.bits.test(word)) said.flags.push('--dtype', word);
    else if (/^\d+g(?:i?b)?$/i.test(word) && said.memory === undefined) said.memory = word;
    else if (/^\d[\d.]*k$/i.test(word)) said.thousands = word;
    else if (/^\d[\d.]*[mbt]$/i.test(word) && said.size === undefined) said.size = word;
    else return undefined;
  }
  return said;
}

/** Number of words from one on that name a model; 0 for none. */
async function modelAt(
  words: readonly string[],
  at: number,
  isModel: Vocabulary['isModel'],
): Promise<number> {
  const most = Math.min(MOST_OF_NAME, words.length - at);
  for (let length = most; length > 0; length--) {
    if (await isModel(words.slice(at, at + length).join(' '))) return length;
  }
  return 0;
}

/** The card that begins at a word: `2 h100s`, `rtx 4090`, `cpu`. */
function cardAt(
  words: readonly string[],
  at: number,
  isCard: Vocabulary['isCard'],
): { flags: string[]; length: number } | undefined {
  const most = Math.min(MOST_OF_NAME, words.length - at);
  for (let length = most; length > 0; length--) {
    const name = words.slice(at, at + length).join(' ');
    // A card has a digit in its name, unless it is a processor.
    if (!/\d/.test(name) && !/^cpu$/i.test(name)) continue;
    const [, count, one] = /^(\d{1,3}) (.*\d)s$/i.exec(name) ?? [];
    if (count !== undefined && one !== undefined && isCard(one)) {
      return { flags: ['--gpu', one, '--gpus', count], length };
    }
    // 4080s is a card of its own, and a100s are several.
    const single = isCard(name) ? name : name.replace(/(?<=\d)s$/i, '');
    const isProcessor = /^cpu$/i.test(name);
    if (isProcessor || (!/^\d{1,3}$/.test(name) && isCard(single)))
      return { flags: ['--gpu', single], length };
  }
  return undefined;
}

function lineOf(said: Said): string[] | undefined {
  const { models, topics, thousands, isQuantized } = said;
  const [model, ...others] = models;
  const context = model !== undefined && thousands !== undefined ? ['--context', thousands] : [];
  const flags = [...said.flags, ...context];
  const size = said.size ?? (model === undefined ? thousands : undefined);
  const hasCard = flags.includes('--gpu');
  if (model === undefined) {
    if (size !== undefined && !topics.has('adapters')) {
      return ['plan', '--max-params', size, ...flags];
    }
    return hasCard && size === undefined && topics.has('hardware') ? ['fit', ...flags] : undefined;
  }
  // A sentence with a model and a size asks something else. One with tokens does, too, except about a training.
  const isTrained = (topics.has('training') || topics.has('full')) && others.length === 0;
  if (size !== undefined || (said.tokens !== undefined && !isTrained)) return undefined;
  if (others.length > 0) return ['compare', ...models, ...flags];
  const isFull = topics.has('full');
  if (topics.has('adapters') && !isFull)
    return ['fit', model, '--for', isQuantized ? 'qlora' : 'lora', ...flags];
  if (topics.has('training') || isFull) {
    if (said.tokens !== undefined) return ['train-plan', model, '--tokens', said.tokens, ...flags];
    return hasCard
      ? ['fit', model, '--for', 'training', ...flags]
      : ['train-plan', model, ...flags];
  }
  if (topics.has('hardware') || hasCard) return ['fit', model, ...flags];
  return ['profile', model, ...flags];
}

/** Formats that a model is converted to in a sentence, with the words after the model and its name without an ending. */
const FORMATS: Readonly<Record<string, (model: string, name: string) => string[]>> = {
  gguf: (model, name) => ['convert-checkpoint', model, freeName(`${name}.gguf`)],
  onnx: (model, name) => ['export', model, '--save', freeName(`${name}.onnx`)],
  safetensors: (model, name) => ['convert-checkpoint', model, freeName(`${name}.safetensors`)],
  pt: (model, name) => ['convert-checkpoint', model, freeName(`${name}.pt`)],
};

/** The line of `convert MODEL to gguf` and `quantize MODEL to int4`. */
async function conversionLine(
  [verb = '', model = '', to = '', format = '', ...more]: readonly string[],
  { isModel }: Vocabulary,
): Promise<string[] | undefined> {
  const isSaid =
    /^(?:convert|export|quantize|save|turn)$/i.test(verb) && /^(?:to|into|as|in)$/i.test(to);
  // `to 4 bit`
  const isApart = more.length === 1 && /^[48]$/.test(format) && /^bits?$/i.test(more[0] ?? '');
  if (!isSaid || (more.length > 0 && !isApart) || !(await isModel(model))) return undefined;
  const name = path.basename(model).replace(/\.(?:safetensors|pt|pth|bin|gguf)$/i, '');
  const container = ownValue(FORMATS, format.toLowerCase());
  if (container) return container(model, name);
  if (KINDS.type.test(format) && /^q/i.test(format)) {
    const out = freeName(`${name}-${format.toLowerCase()}.gguf`);
    return ['convert-checkpoint', model, out, '--dtype', format];
  }
  const bits = /^(?:int|nf|q)?([48])[-_]?(?:bits?)?$/i.exec(format)?.[1];
  if (bits !== undefined) {
    return [
      'convert-checkpoint',
      model,
      freeName(`${name}-int${bits}`),
      '--quantize',
      `int${bits}`,
    ];
  }
  const isFloat = /^(?:b?f(?:p|loat)?(?:16|32)|half)$/i.test(format);
  return isFloat
    ? ['convert-checkpoint', model, freeName(`${name}-${format.toLowerCase()}`), '--dtype', format]
    : undefined;
}
