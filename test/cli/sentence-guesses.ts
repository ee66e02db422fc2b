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

const STARTS: readonly (readonly [line: string, right: Right])[] = [
  ['hf download Qwen/Qwen3-8B --local-dir q', says(['hf download Qwen/Qwen3-8B'], ['Qwen3-8B-q'])],
  ['./minimind profile my.yaml', is('profile my.yaml')],
  [
    'torchrun --nproc_per_node=8 --nnodes=1:4 train.py my.yaml --gpu h100',
    says(['--nnodes=1:4 is not a number: write minimind train-plan my.yaml --gpu h100 --gpus 8']),
  ],
  [
    'torchrun --nproc_per_node=gpu train.py my.yaml --gpu h100',
    says(['--nproc_per_node=gpu is not a number: write minimind train-plan my.yaml --gpu h100']),
  ],
  [
    'deepspeed --num_nodes=2 train.py my.yaml --gpu h100',
    says(['2 machines without a number of GPUs: write minimind train-plan my.yaml --gpu h100']),
  ],
  [
    'deepspeed --include localhost:0,1 train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpu h100 --gpus 2'),
  ],
  [
    'CUDA_VISIBLE_DEVICES=0,1 python train.py my.yaml --gpu h100',
    is('train-plan my.yaml --gpu h100 --gpus 2'),
  ],
  ['OLLAMA_CONTEXT_LENGTH=128 ollama serve --gpu 4090', is('fit --gpu 4090 --context 128')],
  ['quick_test hf --seqlen 32', is('quick-test hf --context 32')],
  [
    'python train.py config/train_gpt2.py --batch_size=12 --n_layer=12',
    is('train-plan gpt2 --batch 12 --set model.n_layer=12'),
  ],
  ['python -m minimind profile my.yaml', is('profile my.yaml')],
  ['--gpu 4090 fit qwen3-8b', is('fit qwen3-8b --gpu 4090')],
  ['--context 4096 profile qwen3-8b', is('profile qwen3-8b --context 4096')],
  ['npx minimind@latest profile my.yaml', is('profile my.yaml')],
  ['npm exec minimind -- profile my.yaml', is('profile my.yaml')],
  ['npx', says(['found "npx" alone'])],
  ['minimind', says(['found "minimind" alone'])],
  ['python', says(['found "python"'], ['the script'])],
  ['help help', 'as it is'],
  ['tune run foo_bar', says(['found "tune"'], ['found "train"'])],
  ['profile my.yaml --output json', is('profile my.yaml --format json')],
];

export const SENTENCE_GUESSES: readonly Guess[] = [...SENTENCES, ...CARDS, ...STARTS];
