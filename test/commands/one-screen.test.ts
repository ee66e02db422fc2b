import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';
import { isWhole, sampled } from '../sampled.js';

/** Models of every kind. */
const CONFIGS = [
  'configs/hybrid/original.yaml',
  'configs/hybrid/tiny.yaml',
  'configs/minimind/minimind2-moe.yaml',
  'configs/minigpt/minigpt-large.yaml',
  'fixtures/hf-configs/deepseek-v3-main',
  'fixtures/hybrid/shared-lowrank-tied',
];

/** Commands whose default answer fits on one screen. */
const COMMANDS: readonly string[][] = [
  ...CONFIGS.flatMap((file) => [
    ['profile', file],
    ['fit', file],
    ['fit', file, '--gpu', 'rtx-4090'],
    ['fit', file, '--gpu', 'h100-80gb', '--gpus', '8', '--users', '50'],
    ['rope', file],
    ['attention', file],
    ['train-plan', file],
    ['train-plan', file, '--tokens', '10B', '--lr', '0.05', '--gpu', 'h100-80gb', '--price', '2.5'],
    ['compare', file, 'configs/hybrid/shared.yaml'],
  ]),
  ...[
    'mistakes/fp16-without-scaler',
    'mistakes/tokenizer-apart',
    'mistakes/learning-rate-above-width',
    'mistakes/decayed-norms-by-name',
    'good/wsd',
    'good/torchtitan',
  ].map((name) => ['train-plan', `fixtures/training/${name}.yaml`]),
  [
    ...['train-plan', 'configs/minimind/minimind2-small.yaml', '--epochs', '2'],
    ...['--data', 'fixtures/data/pretrain.jsonl', '--tokenizer', 'fixtures/data/tokenizer'],
  ],
  ...['lora', 'qlora', 'training'].map((question) => [
    ...['fit', 'fixtures/hf-configs/llama-3.1-8b', '--gpu', 'h100-80gb', '--for', question],
  ]),
  [
    ...['fit', 'fixtures/hf-configs/llama-3.1-8b', '--gpu', 'l4', '--gpus', '4'],
    ...['--qps', '3', '--price', '2'],
  ],
  [
    ...['fit', 'fixtures/hf-configs/llama-3.1-8b', '--gpu', 'h100-pcie-80gb,rtx-3060-12gb'],
    ...['--context', '2k,8k', '--batch', '1,8'],
  ],
  ['compare', ...CONFIGS.slice(0, 4)],
  ['compare', ...CONFIGS, '--set', 'model.num_layers=2,4,6'],
  ['compare-srte', 'configs/hybrid/original.yaml'],
  ['compare-srte', 'configs/hybrid/tiny.yaml', '--presets', '--tie'],
  ['plan', '--max-params', '26M', '--vocab', '6400'],
  ['plan', '--max-params', '7B', '--family', 'hybrid', '--gpu', 'l4'],
  ['plan', '--max-params', '26M', '--sqrt-rule'],
  ['list'],
  ['quick-test', 'configs/hybrid/tiny.yaml'],
  // The number of lines does not depend on the context.
  ['quick-test', 'configs/hybrid/original.yaml', '--context', '64'],
  ['quick-test', 'fixtures/hybrid/shared-lowrank-tied', '--against', 'tfjs'],
  ['quick-test', 'configs/hybrid/tiny.yaml', '--overfit', '--steps', '5'],
  ...(isWhole ? [['doctor']] : []),
  ['modules'],
  ...['layer-norm', 'parallel-embedding', 'ntk-rope', 'gqa', 'online-softmax'].map((block) => [
    'modules',
    block,
  ]),
  ['list', 'hybrid'],
  ['diff', 'minimind2-small', 'minimind2'],
  ['diff', 'configs/hybrid/original.yaml', 'configs/hybrid/shared.yaml'],
  ['diff', 'fixtures/hf-configs/deepseek-v3-main', 'configs/hybrid/original.yaml'],
  ['diff', 'fixtures/hf/llama', 'fixtures/hf/llama-tied-rope3', '--values'],
  ['diff', 'fixtures/checkpoints/valid/zip_proto5.pt', 'fixtures/onnx/merged.onnx', '--values'],
  ['validate', ...CONFIGS.slice(0, 4)],
  ...['pretrain', 'chat', 'preference'].map((name) => [
    ...['data', `fixtures/data/${name}.jsonl`, '--tokenizer', 'fixtures/data/tokenizer'],
    ...['--tokens', '10B'],
  ]),
  ['data', 'fixtures/tokenizers/text.txt'],
  ['data', 'fixtures/data/pretrain.jsonl', 'fixtures/data/pretrain.jsonl', '--context', '64'],
  [
    ...['plan', '--max-params', '8M', '--text', 'fixtures/tokenizers/text.txt', '--sqrt-rule'],
    ...['--tokenizer', 'fixtures/tokenizers/bpe-512.json,fixtures/tokenizers/bpe-4096.json'],
  ],
];

/** Checkpoints of every kind. */
const CHECKPOINTS = [
  ...[
    'zip_proto5.pt',
    'nested_train_proto4.pt',
    'zip_odd_names.pt',
    'st_all_dtypes.safetensors',
  ].map((name) => `fixtures/checkpoints/valid/${name}`),
  ...[
    'hybrid/shared-lowrank-tied',
    'hf/mixtral-saved',
    'hf/deepseek-v3-saved',
    'minimind/v3-moe',
    'distributed/world2-nested',
    'distributed/zero3-world2',
    'lora/llama-embedding',
  ].map((name) => `fixtures/${name}`),
];
const OLD = 'fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt';
const OUT = path.join(os.tmpdir(), `minimind-${process.pid}-screen`);
const convert = (...args: string[]) => ['convert-checkpoint', OLD, `${OUT}.pt`, ...args, '--force'];

const OF_CHECKPOINTS = [
  ...CHECKPOINTS.map((file) => ['inspect', file]),
  ['inspect', OLD, '--srte'],
  ['inspect', 'fixtures/onnx/llama.onnx'],
  ['verify', 'fixtures/hf/llama', 'fixtures/onnx/llama.onnx', '--values', 'fixtures/hf/llama'],
  ['verify', 'fixtures/hf/mixtral-saved'],
  ['verify', 'configs/hybrid/tiny.yaml', OLD],
  ['verify', 'fixtures/distributed/world8'],
  ['verify', 'fixtures/lora/gpt2-bias'],
  ['verify', 'fixtures/hf/gpt2', 'fixtures/lora/llama-bf16'],
  ['profile', 'fixtures/distributed/world4-tp'],
  ['profile', 'fixtures/hf/llama', '--adapter', 'fixtures/lora/llama-patterns'],
  convert('--to', 'shared', '--no-config'),
  convert('--to', 'low-rank', '--max-error', '0.5', '--no-config', '--tie', 'mean'),
  convert('--to', 'shared', '--dry-run', '--no-config'),
  ['convert-checkpoint', 'fixtures/hf/llama', `${OUT}-int4`, '--quantize', 'int4', '--dry-run'],
  convert('--to', 'shared', '--no-config', '--parts', '64', '--plan', `${OUT}.plan.json`),
  ['convert-checkpoint', '--plan', `${OUT}.plan.json`, '--part', '1'],
  ['convert-checkpoint', '--plan', `${OUT}.plan.json`, '--status'],
  [
    ...[
      'compare',
      'hybrid/tiny',
      '--set',
      'model.num_layers=2,3,4,5,6,7,8,9,10,11,12,13',
      '--parts',
      '64',
    ],
    ...['--plan', `${OUT}.sweep.json`],
  ],
  ['compare', '--plan', `${OUT}.sweep.json`, '--part', '1'],
  ['compare', '--plan', `${OUT}.sweep.json`, '--status'],
  ['kv-projector', 'params', '--teacher', 'Qwen2-14B:5120x40', '--student', '1536'],
  [
    ...['kv-projector', 'init', `${OUT}.pt`, '--teacher', 'Qwen2-14B:64x40', '--student', '8'],
    '--force',
  ],
  ['kv-projector', 'verify', '--teacher-width', '32', '--student', '8', '--seeds', '1'],
  ['kv-projector', 'verify', '--teacher-width', '32', '--student', '8', '--steps', '9'],
];

describe('the answer about a checkpoint', () => {
  afterAll(() => {
    const { dir, base } = path.parse(OUT);
    for (const name of fs.readdirSync(dir)) {
      if (name.includes(base)) fs.rmSync(path.join(dir, name), { recursive: true, force: true });
    }
  });

  it.each(OF_CHECKPOINTS)('fits on a screen of 80 × 24: %s %s %s %s %s', async (...command) => {
    const { stdout } = await runHere([...command.filter(Boolean), '-q'], {
      terminal: { columns: 80, rows: 24 },
    });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length, stdout).toBeLessThan(24);
    // A command to paste is never wrapped.
    const texts = lines.filter((line) => !line.startsWith('Next: '));
    expect(Math.max(...texts.map((line) => line.length)), stdout).toBeLessThanOrEqual(80);
  });
});

describe('the answer of a command', () => {
  it.each(sampled(COMMANDS, 4, ([command]) => command).map((command) => [command]))(
    'fits on a screen of 80 × 24: %j',
    async (command) => {
      const { stdout, code } = await runHere([...command, '-q'], {
        terminal: { columns: 80, rows: 24 },
      });
      const lines = stdout.trimEnd().split('\n');
      expect(code).toBe(0);
      // The last line is for the prompt.
      expect(lines.length, stdout).toBeLessThan(24);
      // A command to paste is never wrapped.
      const wide = lines.filter((line) => line.length > 80 && !line.startsWith('Next: '));
      expect(wide).toEqual([]);
    },
  );
});
