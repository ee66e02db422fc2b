/** The flags of `minimind generate`. */
import * as Flags from '@oclif/core/flags';
import { CACHE_TYPES } from '../../base/tensor/dtype.js';
import type { OutputFlags } from '../base-command.js';
import { device, engine, type ParsedFlags, threads, weightFlags } from './flags.js';
import { count, seedOf, tokens, unreadable, weightForm } from './value-flags.js';

/** Maximum of temperatures and penalties; larger values have no further effect. */
const MOST = 1_000_000;

/** A number within bounds: `0.8`, `1e-3`. */
const number = Flags.custom<number, { readonly least: number; readonly most?: number }>({
  helpValue: 'NUMBER',
  helpGroup: 'SAMPLING',
  parse: async (text, _context, { name, least, most }) => {
    const value = /^\s*[\d.]+(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= (most ?? MOST)) return value;
    const isOpen = most === undefined && !(value > MOST);
    const bounds = isOpen ? `from ${least} on` : `from ${least} to ${most ?? MOST}`;
    return unreadable(name, text, `a number ${bounds}`, `write it as in --${name} 0.8`);
  },
});

/** `--top-k 0` keeps all tokens. */
const wholeFromZero = Flags.custom<number>({
  helpValue: 'N',
  helpGroup: 'SAMPLING',
  parse: async (text, _context, { name }) => {
    if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text);
    return unreadable(name, text, 'a whole number from 0 on', `write it as in --${name} 50`);
  },
});

const SAMPLED = ['temperature', 'top-k', 'top-p', 'min-p'];

export const generationFlags = {
  chat: Flags.boolean({ description: 'use the chat template of the model' }),
  system: Flags.string({
    helpValue: 'TEXT',
    description: 'system prompt of the chat',
    dependsOn: ['chat'],
  }),
  ids: Flags.string({
    helpValue: 'IDS',
    description: 'token ids instead of a prompt: 1,2,3, or a JSON file [[5, 17, 3], …]',
    exclusive: ['chat', 'batch'],
  }),
  batch: Flags.string({
    helpValue: 'FILE',
    description: 'answer each line of a file: a prompt, or JSON with "prompt", "messages" or "ids"',
  }),
  logits: Flags.string({
    helpValue: 'N,N',
    description: 'sample from these logits, without a model: shows each filter of the flags below',
    helpGroup: 'SAMPLING',
  }),
  probabilities: Flags.string({
    helpValue: 'N,N',
    description: 'sample from these probabilities, without a model',
    helpGroup: 'SAMPLING',
    exclusive: ['logits'],
  }),
  'max-tokens': tokens({
    description: 'tokens of an answer [default: as in generation_config.json, or 256]',
  }),
  context: tokens({
    description: 'tokens of prompt and answer together [default: as many as they need]',
  }),
  stop: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'TEXT',
    description: 'text that ends an answer (repeatable)',
  }),
  temperature: number({
    least: 0,
    description:
      'divides the logits; 0 takes the likeliest token [default: as in generation_config.json, or 0]',
  }),
  'top-k': wholeFromZero({ description: 'sample from the K likeliest tokens; 0 is all' }),
  'top-p': number({
    least: 0,
    most: 1,
    description: 'sample from the likeliest tokens that have this share of the probability',
  }),
  'min-p': number({
    least: 0,
    most: 1,
    description: 'drop tokens below this share of the likeliest token’s probability',
  }),
  'repetition-penalty': number({
    least: 0.01,
    description: 'lower the logits of earlier tokens by this factor; 1 changes nothing',
  }),
  greedy: Flags.boolean({
    description: 'take the likeliest token, as --temperature 0',
    helpGroup: 'SAMPLING',
    exclusive: SAMPLED,
  }),
  seed: seedOf({
    description: 'seed of the draws, and of random weights [default: 0]',
    helpGroup: 'SAMPLING',
  }),
  'explain-sampling': Flags.boolean({
    description: 'show the distribution before and after each filter for the first tokens',
    helpGroup: 'SAMPLING',
  }),
  logprobs: count({ helpValue: 'K', description: 'show the K likeliest tokens at each position' }),
  draft: Flags.string({
    helpValue: 'MODEL|ngram:N',
    description: 'draft for speculative decoding: a smaller model, or the text so far',
  }),
  'draft-tokens': count({ description: 'tokens of a draft [default: 4]', dependsOn: ['draft'] }),
  against: Flags.string({
    helpValue: 'OTHER',
    description: 'show where another model would write another token; takes the likeliest tokens',
    exclusive: SAMPLED,
  }),
  tokenizer: Flags.string({
    helpValue: 'FILE',
    description: 'tokenizer.json [default: the one in the folder of the model]',
  }),
  ...weightFlags,
  weights: weightForm(),
  'cache-dtype': Flags.option({
    options: CACHE_TYPES,
    description: 'round cached keys and values as llama.cpp does [default: f32, not rounded]',
  } as const)(),
  engine: engine(),
  device: device(),
  threads: threads(),
};

export type GenerationFlags = OutputFlags & ParsedFlags<typeof generationFlags>;
