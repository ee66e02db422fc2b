/**
 * Lines as people say them: sentences after a model, names of cards with spaces, launchers with their variables and
 * counts, scripts by their names. What is right was written before any of them was run.
 */
import type { Guess, Right, Saying } from './guesses.js';

const is = (...lines: string[]): readonly string[] => lines;

/** An answer with these texts and none of `never`, where a line would answer another question. */
const says = (texts: readonly string[], never: readonly string[] = []): Saying => ({
  says: texts,
  never,
});

const SENTENCES: readonly (readonly [line: string, right: Right])[] = [
  ['fit qwen3-8b lora on 3090', is('fit qwen3-8b --for lora --gpu 3090')],
  ['fit qwen3-8b lora 4bit on 2x rtx 4090', is("fit qwen3-8b --for qlora --gpu '2x rtx 4090'")],
  ['fit qwen3-8b in 24GB', says(['fit --list-gpus 24GB'], ['write minimind'])],
  ['fit qwen3-8b on 24GB', says(['fit --list-gpus 24GB'], ['write minimind'])],
  ['fit qwen3-8b on an a100 and h100', is('fit qwen3-8b --gpu a100+h100')],
  ['fit qwen3-8b on 4x h100', is("fit qwen3-8b --gpu '4x h100'")],
  ['fit qwen3-8b fp8 on h100', is('fit qwen3-8b --dtype f8 --gpu h100')],
  ['fit qwen3-8b for training on h100', is('fit qwen3-8b --for training --gpu h100')],
  ['fit qwen3-8b on h100 for 50 users', is('fit qwen3-8b --gpu h100 --users 50')],
  ['fit qwen3-8b on h100 with 32k context', is('fit qwen3-8b --gpu h100 --context 32k')],
  ['fit qwen3-8b --gpu h100 x8', is("fit qwen3-8b --gpu 'h100 x8'")],
  ['fit qwen3-8b --gpu A100 40GB', is("fit qwen3-8b --gpu 'A100 40GB'")],
  ['fit qwen3-8b --gpu 4090 q4', is('fit qwen3-8b --gpu 4090 --dtype int4')],
  ['profile the qwen3-8b', is('profile qwen3-8b')],
  ['compare qwen3-8b with the minimind2', is('compare qwen3-8b minimind2')],
];

const CARDS: readonly (readonly [line: string, right: Right])[] = [
  ['fit qwen3-8b --gpu rtx 4090 --context 32k', is("fit qwen3-8b --gpu 'rtx 4090' --context 32k")],
  ['fit --gpu rtx 4090 qwen3-8b', is("fit --gpu 'rtx 4090' qwen3-8b")],
  ['fit --gpu=rtx 4090', is("fit --gpu 'rtx 4090'")],
  ['fit qwen3-8b --gpu 2x 3090', is("fit qwen3-8b --gpu '2x 3090'")],
  ['fit qwen3-8b --gpu 8 h100', is("fit qwen3-8b --gpu '8 h100'")],
  [
    'fit qwen3-8b --gpu NVIDIA GeForce RTX 4090',
    is("fit qwen3-8b --gpu 'NVIDIA GeForce RTX 4090'"),
  ],
];

export const SENTENCE_GUESSES: readonly Guess[] = [...SENTENCES, ...CARDS];
