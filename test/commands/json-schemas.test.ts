import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Ajv2020, type SchemaObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { safetensorsFile } from '../checkpoint/reconcile/files.js';
import { describeModel, SMALL, Workshop } from '../checkpoint/reconcile/support.js';
import { inPackage, readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { isWhole, sampled } from '../sampled.js';

/** Schema that forbids unknown fields, so that every field is described. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, closed(value)]);
  const copy = Object.fromEntries(entries);
  return 'properties' in copy && copy.type === 'object'
    ? { ...copy, additionalProperties: false }
    : copy;
}

const validators = new Map<string, ValidateFunction>();

/** Validator of a schema in docs/schemas, compiled once. */
function validatorOf(name: string): ValidateFunction {
  const cached = validators.get(name);
  if (cached) return cached;
  const schema = closed(readJson('docs/schemas', `${name}.schema.json`)) as SchemaObject;
  const validator = new Ajv2020({ allErrors: true, strict: true }).compile(schema);
  validators.set(name, validator);
  return validator;
}

/** Violations of the schema that an output names. */
function violationsIn(output: string): unknown[] {
  const value = JSON.parse(output);
  const name = /^minimind\/([\w-]+)@1$/.exec(value.schema)?.[1];
  const validate = validatorOf(name ?? expect.unreachable());
  validate(value);
  return validate.errors ?? [];
}

const CONFIG = 'configs/hybrid/original.yaml';
const SMALL_CONFIG = 'configs/minimind/minimind2-small.yaml';
const EXPERTS = 'fixtures/hf-configs/qwen1.5-moe-a2.7b/config.json';
const LOAD = ['--qps', '100', '--prompt-tokens', '200', '--output-tokens', '50', '--p95', '2s'];
const MEASURED = [
  '--token-time',
  '12ms',
  '--prefill-time',
  '20ms',
  '--batch',
  '32',
  '--price',
  '0.8',
];
const TOKENIZERS = 'fixtures/tokenizers';
const TEXT = ['--tokenizer', `${TOKENIZERS}/bpe-512.json`, '--text', `${TOKENIZERS}/text.txt`];

describe('JSON output follows docs/schemas', () => {
  const invocations: [string, string[]][] = [
    ['compare-srte', [CONFIG]],
    ['compare-srte', [CONFIG, '--presets', '--tie', '--max-positions', '5', '--vocab-sizes', '7']],
    ['compare-srte', ['configs/hybrid/tiny.yaml']],
    ['compare', [CONFIG, 'configs/hybrid/tiny.yaml', '--context', '64']],
    ['compare', [CONFIG, '--set', 'model.num_heads=32,33', '--columns', 'model.gate_rank,heads']],
    ['compare', ['configs/hybrid/tiny.yaml', '--set', 'model.vocab_size=512,600', ...TEXT]],
    ['rope', [CONFIG, '--context', '32768']],
    ['draw', [CONFIG]],
    ['train-plan', [SMALL_CONFIG, '--tokens', '1B']],
    [
      'train-plan',
      [
        SMALL_CONFIG,
        ...['--data', 'fixtures/data/pretrain.jsonl', '--tokenizer', 'fixtures/data/tokenizer'],
      ],
    ],
    ['train-plan', ['fixtures/training/good/wsd.yaml', '--gpu', 'h100', '--price', '2']],
    [
      'train-plan',
      [
        'fixtures/hf/llama/config.json',
        ...['--set', 'training.fp16=true', '--tokens', '1M', '--context', '64'],
        ...['--gradients', 'fixtures/hf/llama/model.safetensors'],
      ],
    ],
    ['attention', [CONFIG, '--global-heads', '4', '--published', '2,3.8']],
    ['attention', ['fixtures/hf-configs/deepseek-v3-main', '--context', '8,1M', '--window', '1']],
    ['attention', [SMALL_CONFIG, '--context', '8192', '--chunk', '512']],
    ...[
      'gemma3',
      'llama-dynamic-beyond',
      'deepseek-v3-yarn',
      'phi3-longrope-beyond',
      'smollm3',
    ].map((name): [string, string[]] => ['rope', [`fixtures/hf/${name}`, '--context', '999']]),
    ['rope', ['fixtures/hf-configs/llama-3.1-8b', '--context', '8', '--trained', '7']],
    ['modules', ['activations']],
    ['modules', []],
    ...['rms-norm', 'ntk-rope', 'online-softmax', 'parallel-embedding'].map(
      (block): [string, string[]] => ['modules', [block]],
    ),
    ['validate', [CONFIG, 'configs/hybrid/tiny.yaml']],
    ['validate', ['configs/hybrid/tiny.yaml', '--set', 'model.gate_rank=99']],
    ['profile', [CONFIG, '--layers', '--tensors', '--published', '7B', '--max-params', '30B']],
    ['profile', [CONFIG, '--published', '536MB']],
    ['profile', [CONFIG, '--published', '57x']],
    ['profile', [CONFIG, '--published', '96.9%']],
    ['profile', [CONFIG, '--published', '+96M']],
    ['profile', [CONFIG, '--published', '3-5 GFLOP']],
    ['profile', [CONFIG, '--published', '7.777777x']],
    [
      'profile',
      ['configs/hybrid/tiny.yaml', '--batch', '1000000', '--set', 'model.num_layers=100'],
    ],
    ['profile', ['fixtures/hf-configs/deepseek-v3-main', '--context', '8']],
    ['list', []],
    ['diff', ['hybrid/tiny', CONFIG]],
    ['diff', ['fixtures/hf-configs/llama-3.1-8b', CONFIG]],
    ['diff', ['fixtures/hf/llama', 'fixtures/hf/llama-tied-rope3', '--values']],
    ['diff', ['fixtures/checkpoints/valid/zip_proto5.pt', 'fixtures/onnx/merged.onnx']],
    ...['llama', 'merged'].map((name): [string, string[]] => [
      'inspect',
      [`fixtures/onnx/${name}.onnx`],
    ]),
    ['verify', ['fixtures/hf/llama', 'fixtures/onnx/llama.onnx']],
    ['quick-test', ['configs/hybrid/tiny.yaml', '--cross-check', '--context', '40']],
    ['quick-test', ['configs/hybrid/tiny.yaml', '--full', '--context', '1']],
    ...['llama', 'mixtral'].map((name): [string, string[]] => [
      'quick-test',
      [`fixtures/hf/${name}`, '--context', '8', '--only', 'timing'],
    ]),
    ['quick-test', ['configs/hybrid/tiny.yaml', '--weights', 'int4', '--context', '24']],
    ['quick-test', [CONFIG, '--only', 'created', '--context', '8']],
    ['quick-test', [CONFIG, '--trace']],
    ['quick-test', ['fixtures/hf/llama', '--overfit', '--steps', '5']],
    [
      'evaluate',
      ['hybrid/tiny', '--random', '--set', 'model.vocab_size=512', '--context', '64', ...TEXT],
    ],
    [
      'evaluate',
      [
        'fixtures/hf/llama',
        ...['--ids', 'fixtures/evaluation/ids.json', '--bos', '1'],
        ...['--against', 'fixtures/hf/llama-tied-rope3'],
      ],
    ],
    ['quick-test', ['configs/hybrid/tiny.yaml', '--against', 'tfjs', '--context', '8']],
    [
      'quick-test',
      [
        'configs/hybrid/tiny.yaml',
        '--against',
        'configs/hybrid/tiny.yaml',
        '--set',
        'model.num_layers=1',
      ],
    ],
    ['doctor', ['--only', 'tfjs:cpu']],
    ['doctor', []],
    ['generate', ['fixtures/hf/llama', '--ids', '1,5', '--max-tokens', '3']],
    [
      'generate',
      [
        ...['fixtures/hf/llama', '--ids', '5,6,5,6,5', '--max-tokens', '6', '--draft', 'ngram:2'],
        ...['--top-k', '4', '--min-p', '0.1', '--logprobs', '2', '--explain-sampling'],
      ],
    ],
    [
      'generate',
      [
        ...['fixtures/hf/llama', '--ids', '5,6', '--max-tokens', '6'],
        ...['--against', 'fixtures/hf/llama-linear', '--set', 'model.num_hidden_layers=2'],
      ],
    ],
    ['plan', ['--max-params', '26M', '--vocab', '6400', '--gpu', 'h100-80gb', '--top', '2']],
    ['plan', ['--max-params', '26M', '--vocab', '6400', '--gpu', 'm4-max-36gb', '--top', '1']],
    [
      'plan',
      [
        ...[
          '--max-params',
          '8M',
          '--tokenizer',
          `${TOKENIZERS}/bpe-512.json,${TOKENIZERS}/bpe-4096.json`,
        ],
        ...['--text', `${TOKENIZERS}/text.txt`, '--sqrt-rule'],
      ],
    ],
    [
      'data',
      ['fixtures/data/chat.jsonl', '--tokenizer', 'fixtures/data/tokenizer', '--tokens', '1M'],
    ],
    [
      'data',
      ['fixtures/data/preference.jsonl', '--tokenizer', 'fixtures/data/tokenizer', '--show', '1'],
    ],
    ['data', ['fixtures/tokenizers/text.txt']],
    ['plan', ['--max-params', '1e17', '--family', 'hybrid', '--top', '1', '--depth', '4']],
    [
      'fit',
      [CONFIG, '--gpu', 'h100-80gb', '--gpus', '8', '--for', 'training', '--train-tokens', '3e11'],
    ],
    ['fit', [SMALL_CONFIG, '--gpu', 'l4', '--for', 'serving', ...LOAD, '--dtype', 'int4']],
    ['fit', [SMALL_CONFIG, '--gpu', 'l4', ...LOAD, ...MEASURED, '--train-tokens', '3e9']],
    ['fit', [SMALL_CONFIG, '--gpu', 'm4-max-36gb']],
    ['fit', [CONFIG, '--gpu', 'l4', '--users', '50']],
    ['fit', [SMALL_CONFIG, '--gpu', 'l4', '--output-mix', '100,10']],
    ['fit', [SMALL_CONFIG, '--gpu', 'dgx-h100', '--gpus', '16', '--pipeline-parallel', '2']],
    ['fit', [EXPERTS, '--gpu', 'h200', '--gpus', '4', '--tensor-parallel', '2', ...LOAD]],
    ['fit', [CONFIG, '--gpu', 'l4', ...LOAD, '--mfu', '0.3', '--global-batch', '4M']],
  ];

  it.each(sampled(invocations, 4, ([command]) => command))('for %s %j', async (command, args) => {
    const { code, stdout } = await runHere([command, ...args, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).schema).toBe(`minimind/${command}@1`);
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.each([
    [CONFIG],
    [SMALL_CONFIG, '--for', 'serving', '--dtype', 'q4_k_m', '--users', '9'],
    [EXPERTS, '--for', 'training'],
  ])('for fit %j without hardware', async (...args) => {
    const { code, stdout } = await runHere(['fit', ...args, '--json']);
    expect({ code, schema: JSON.parse(stdout).schema }).toEqual({
      code: 0,
      schema: 'minimind/fit-table@1',
    });
    expect(violationsIn(stdout)).toEqual([]);
  });

  it('for fit with lists', async () => {
    const { code, stdout } = await runHere([
      'fit',
      SMALL_CONFIG,
      '--gpu',
      'l4,a100',
      '--batch',
      '1,8',
      '--json',
    ]);
    expect({ code, schema: JSON.parse(stdout).schema }).toEqual({
      code: 0,
      schema: 'minimind/fit-list@1',
    });
    expect(violationsIn(stdout)).toEqual([]);
  });

  it('for generate without a model', async () => {
    const args = ['--logits', '8,7,6', '--temperature', '2', '--top-p', '0.9'];
    const { code, stdout } = await runHere(['generate', ...args, '--json']);
    expect({ code, schema: JSON.parse(stdout).schema }).toEqual({
      code: 0,
      schema: 'minimind/sampling@1',
    });
    expect(violationsIn(stdout)).toEqual([]);
  });

  it('for fit --list-gpus', async () => {
    const args = ['--list-gpus', '--hardware', 'configs/hardware/example.yaml'];
    const { code, stdout } = await runHere(['fit', ...args, '--json']);
    const { schema, gpus, machines } = JSON.parse(stdout);
    expect({ code, schema }).toEqual({ code: 0, schema: 'minimind/gpus@1' });
    expect(gpus[0].name).toBe('rtx-4090-300w');
    expect(machines.length).toBeGreaterThan(1);
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.runIf(isWhole && onnxVersion() !== undefined)('for fit --this-machine', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    const args = [
      ...['--this-machine', '--device', 'cpu', '--threads', '1'],
      ...['--profile', path.join(folder, 'p.json')],
    ];
    const { code, stdout } = await runHere([
      'fit',
      SMALL_CONFIG,
      ...args,
      '--context',
      '8',
      '--json',
    ]);
    fs.rmSync(folder, { recursive: true });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).forward.tokens).toBe(8);
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.each([
    ['a few steps', ['--teacher-width', '24', '--student', '8', '--steps', '3']],
    [
      'linear data',
      ['--teacher-width', '24', '--student', '8', '--steps', '3', '--data', 'linear'],
    ],
  ])('for kv-projector verify: %s', async (_, args) => {
    const { code, stdout } = await runHere(['kv-projector', 'verify', ...args, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).schema).toBe('minimind/kv-projector-verify@1');
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.each([
    ['the published changes', ['--teacher-width', '24', '--student', '8', '--seeds', '1']],
    ['a teacher', ['--teacher', 'A:24', '--student', '8', '--activation', 'relu']],
  ])('for ablations of kv-projector verify: %s', async (_, args) => {
    const { code, stdout } = await runHere([
      ...['kv-projector', 'verify', ...args],
      ...['--steps', '2', '--context', '8', '--json'],
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).schema).toBe('minimind/kv-projector-ablations@1');
    expect(violationsIn(stdout)).toEqual([]);
  });

  it('for quick-test of a training that fails', async () => {
    const args = ['fixtures/hf/llama', '--overfit', '--steps', '3', '--lr', '1e30'];
    const { code, stdout } = await runHere(['quick-test', ...args, '--json']);
    expect(code).toBe(1);
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.skipIf(onnxVersion() === undefined)('for quick-test in float16', async () => {
    const args = ['configs/hybrid/tiny.yaml', '--compute', 'f16', '--device', 'cpu'];
    const { stdout } = await runHere(['quick-test', ...args, '--context', '8', '--json']);
    expect(JSON.parse(stdout).checks.at(-1).details).toHaveProperty('float16');
    expect(violationsIn(stdout)).toEqual([]);
  });

  it('for init', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    const { stdout } = await runHere(['init', 'tiny', '--json'], { cwd: folder });
    fs.rmSync(folder, { recursive: true });
    expect(JSON.parse(stdout).file).toBe('tiny.yaml');
    expect(violationsIn(stdout)).toEqual([]);
  });

  it('for explore', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    const words = ['explore', 'tiny', '--save', 'page.html', '--json'];
    const { stdout } = await runHere(words, { cwd: folder });
    fs.rmSync(folder, { recursive: true });
    expect(JSON.parse(stdout).file).toBe('page.html');
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.each([
    ['a broken flag', ['validate', CONFIG, '--nonsense']],
    ['an unknown command', ['nonsense']],
    ['a missing file', ['validate', 'no-such-file.yaml']],
    [
      'three mistakes',
      ['profile', CONFIG, '--set', 'model.x=1', '--set', 'model.num_heads=3', '--set', 'y'],
    ],
    ['a model that is too large', ['profile', CONFIG, '--set', 'model.num_layers=1000000000']],
  ])('for an error: %s', async (_, args) => {
    const { code, stdout, stderr } = await runHere([...args, '--json']);
    expect(code).toBe(2);
    expect(JSON.parse(stdout).schema).toBe('minimind/error@1');
    expect(violationsIn(stdout)).toEqual([]);
    expect(stderr).toMatch(/^error: /);
  });

  it('with a check that finds undescribed fields', async () => {
    const { stdout } = await runHere(['list', '--json']);
    expect(violationsIn(stdout.replace('"families"', '"extra": 1, "families"'))).toHaveLength(1);
  });
});

describe('JSON output about checkpoints follows docs/schemas', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  const workshop = new Workshop();
  const config = path.join(folder, 'model.json');
  const checkpoint = path.join(folder, 'model.safetensors');

  beforeAll(async () => {
    fs.writeFileSync(config, JSON.stringify({ model: SMALL }));
    const tensors = workshop.stateDict(describeModel().model, false);
    await safetensorsFile(checkpoint, tensors);
  });
  afterAll(() => {
    workshop.close();
    fs.rmSync(folder, { recursive: true });
  });

  it.each([
    [[], 0],
    [['--set', 'model.num_layers=3', '--set', 'model.tie_word_embeddings=true'], 1],
    [['--set', 'model.srte_factorized_rank=3', '--set', 'model.vocab_size=9'], 1],
  ])('for verify %j, which exits with %d', async (args, exitCode) => {
    const { code, stdout } = await runHere(['verify', config, checkpoint, ...args, '--json']);
    expect(code).toBe(exitCode);
    expect(violationsIn(stdout)).toEqual([]);
  });

  it.each([[[]], [['--set', 'model.vocab_size=9']]])(
    'for profile of a checkpoint %j',
    async (args) => {
      const { code, stdout } = await runHere([
        'profile',
        checkpoint,
        '--config',
        config,
        ...args,
        '--json',
      ]);
      expect(code).toBe(0);
      expect(JSON.parse(stdout).checkpoint.matches).toBe(args.length === 0);
      expect(violationsIn(stdout)).toEqual([]);
    },
  );
});

describe('JSON output of kv-projector follows docs/schemas', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  const fixture = 'fixtures/kv-projector/two-teachers';
  const output = path.join(folder, 'out.safetensors');
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it.each([
    ['params', ['--teacher', 'A-14B:5120x40', '--teacher', 'B-72B:8192', '--student', '1536']],
    ['params', ['--teacher', 'unknown:64', '--student', '9007199254740991', '--ratio', '0.1,3']],
    ['params', ['--teacher', 'fixtures/hf-configs/llama-3.1-8b', '--student', '8']],
    ['init', [path.join(folder, 'new.pt'), '--teacher', 'A:8x2', '--student', '4']],
    [
      'init',
      [path.join(folder, 'v1.pt'), '--teacher', 'A:8', '--student', '4', '--kind', 'linear'],
    ],
    ['project', [`${fixture}/saved.pt`, `${fixture}/expected.safetensors`, '--save', output]],
    ['convert', [`${fixture}/saved.pt`, path.join(folder, 'projector.safetensors')]],
    ['convert', [`${fixture}/model.safetensors`, path.join(folder, 'projector.pt')]],
  ])('for %s %j', async (topic, args) => {
    const { code, stdout, stderr } = await runHere(['kv-projector', topic, ...args, '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout).schema).toBe(`minimind/kv-projector-${topic}@1`);
    expect(violationsIn(stdout)).toEqual([]);
  });
});

describe('JSON output of inspect follows docs/schemas', () => {
  it.each([
    [['nested_train_proto4.pt', '--hash', '--stats', '--srte']],
    [['st_nan_inf.safetensors', '--stats', '--srte']],
    [['st_all_dtypes.safetensors', '--hash', '--stats']],
    [['zip_odd_names.pt', '--filter', '*o*']],
    [['legacy_shapes_dtypes.pth']],
    [['zip_big_endian.pt']],
    [['../../distributed/world2-nested']],
    [['../../distributed/zero3-world2', '--hash']],
    [['../../lora/llama-embedding', '--tensors']],
  ])('for %j', async ([file = '', ...flags]) => {
    const { code, stdout } = await runHere([
      'inspect',
      `fixtures/checkpoints/valid/${file}`,
      ...flags,
      '--json',
    ]);
    expect(code).toBe(0);
    expect(violationsIn(stdout)).toEqual([]);
  });
});

describe('JSON output of convert-checkpoint follows docs/schemas', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it.each([
    ['checkpoints/valid/zip_proto5.pt', 'plan.pt', ['--to', 'shared', '--dry-run']],
    ['checkpoints/valid/zip_proto5.pt', 'pair', ['--to', 'low-rank', '--max-error', '0.75']],
    ['checkpoints/valid/zip_proto5.pt', 'same.safetensors', ['--dtype', 'bf16']],
    ['checkpoints/valid/zip_proto5.pt', 'sincos.pt', ['--to', 'sincos']],
    [
      'checkpoints/valid/nested_train_proto4.pt',
      'first.pt',
      ['--to', 'shared', '--merge', 'first'],
    ],
    [
      'hybrid/shared-lowrank-tied',
      'half',
      ['--dtype', 'f16', '--prove', '--context', '8', '--device', 'cpu'],
    ],
    ['hf/llama', 'packed', ['--quantize', 'int4', '--group', '32']],
    ['hf/llama', 'model.gguf', ['--dtype', 'q8_0', '--check']],
    ['hf/gpt2', 'smaller.gguf', ['--dtype', 'q4_0', '--dry-run']],
    ['hybrid/shared-lowrank-tied', 'own', ['--to', 'per-layer', '--check', '--shard-size', '1MB']],
    [
      'hybrid/shared-lowrank-tied',
      'longer',
      ['--to', 'shared', '--max-positions', '70', '--extend', 'zero'],
    ],
  ])('for %s → %s %j', async (input, output, flags) => {
    const target = path.join(folder, output);
    // This process holds the memory of all earlier commands.
    const room = ['--max-memory', '4GB', '--json'];
    const args = ['convert-checkpoint', `fixtures/${input}`, target, ...flags, ...room];
    const { code, stdout, stderr } = await runHere(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(violationsIn(stdout)).toEqual([]);
  });
});

describe('JSON output of a conversion in parts', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it('follows its schemas from the plan to the end', async () => {
    const plan = ['convert-checkpoint', '--plan', path.join(folder, 'plan.json'), '--json'];
    const room = ['--shard-size', '60kB', '--max-memory', '4GB'];
    const files = ['fixtures/hf/llama', path.join(folder, 'out')];
    const steps: readonly (readonly [string[], number])[] = [
      [[...files, '--dtype', 'bf16', '--parts', '3', ...room], 0],
      [['--launch', 'slurm'], 0],
      [['--launch', 'kubernetes', '--image', 'minimind', '--claim', 'data'], 0],
      [['--part', '2'], 0],
      [['--status'], 0],
      [['--finish'], 1],
      [['--part', '1', '--phase', '2'], 0],
      [['--part', '3'], 0],
      [['--finish', '--check'], 0],
      [['--finish'], 0],
      [['--part', '3'], 0],
    ];
    for (const [flags, expected] of steps) {
      const { code, stdout, stderr } = await runHere([...plan, ...flags]);
      expect({ flags, code, stderr }).toEqual({ flags, code: expected, stderr: '' });
      expect(violationsIn(stdout)).toEqual([]);
    }
  });
});

describe('JSON output of a sweep in parts', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it.each([
    ['compare', ['configs/hybrid/tiny.yaml', '--set', 'model.num_layers=2,4,6']],
    ['plan', ['--max-params', '1M', '--vocab', '512', '--context', '256']],
    ['evaluate', ['fixtures/hf/llama', '--ids', 'fixtures/evaluation/ids.json', '--context', '32']],
  ])('follows its schemas from the plan to the end: %s', async (command, request) => {
    const plan = [command, '--plan', path.join(folder, `${command}.json`), '--json', '-q'];
    const steps: readonly (readonly [string[], number])[] = [
      [[...request, '--parts', '2'], 0],
      [['--launch', 'slurm'], 0],
      [['--launch', 'kubernetes', '--image', 'minimind', '--claim', 'data'], 0],
      [['--part', '2'], 0],
      [['--status'], 0],
      [['--finish'], 1],
      [['--part', '1'], 0],
      [['--finish'], 0],
    ];
    for (const [flags, expected] of steps) {
      const { code, stdout, stderr } = await runHere([...plan, ...flags]);
      expect({ flags, code, stderr }).toEqual({ flags, code: expected, stderr: '' });
      expect(violationsIn(stdout)).toEqual([]);
    }
  });
});

describe('JSON output of export follows docs/schemas', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it.each([
    ['fixtures/hf/llama', []],
    ['configs/hybrid/tiny.yaml', ['--random', '--seed', '7', '--external-data']],
    ['fixtures/hf/llama', ['--weights', 'int4', '--force']],
  ])('for %s %j', async (input, flags) => {
    const target = path.join(folder, `${path.parse(input).name}.onnx`);
    const { code, stdout, stderr } = await runHere([
      'export',
      input,
      '--save',
      target,
      ...flags,
      '--json',
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(violationsIn(stdout)).toEqual([]);
    expect(JSON.parse(stdout).files).toHaveLength(flags.includes('--external-data') ? 2 : 1);
  });
});

/** Folders of models; another folder has hardware. */
const families = fs
  .readdirSync(inPackage('configs'))
  .filter((name) => !['hardware', 'published.yaml'].includes(name));

describe.each(families)('the JSON Schema of %s configs', (family) => {
  const schema = readJson<SchemaObject>(`docs/schemas/config-${family}.schema.json`);
  const validate = new Ajv2020({ strict: true, allErrors: true }).compile(schema);

  it('in docs is the output of minimind schema', async () => {
    const { stdout } = await runHere(['schema', family]);
    expect(JSON.parse(stdout)).toEqual(schema);
  });

  it.each(fs.readdirSync(inPackage('configs', family)))('accepts %s', async (name) => {
    const { parse } = await import('yaml');
    const config = parse(fs.readFileSync(inPackage('configs', family, name), 'utf8'));
    expect(validate(config), JSON.stringify(validate.errors)).toBe(true);
  });
});

describe('the JSON Schema of all configs', () => {
  const schema = readJson<SchemaObject>('docs/schemas/config.schema.json');
  const ajv = new Ajv2020({ strict: true, allErrors: true });
  for (const family of families) {
    ajv.addSchema(
      readJson<SchemaObject>(`docs/schemas/config-${family}.schema.json`),
      `config-${family}.schema.json`,
    );
  }
  const validate = ajv.compile(schema);

  it('has the JSON Schema of each family', () => {
    const chosen = (schema.allOf as { if: unknown; then: unknown }[]).map((each) => each.then);
    expect(chosen).toEqual(
      [...families].sort().map((family) => ({ $ref: `config-${family}.schema.json` })),
    );
    expect(schema.properties.model.properties.family.examples).toEqual([...families].sort());
  });

  it.each([
    { model: { family: 'minimind', hidden_size: 512, num_hidden_layers: 8 } },
    { model: { family: 'hybrid' }, training: { max_seq_length: 64 } },
    // No JSON Schema is published for this family, and a config without one is of the family that has all its keys.
    { model: { family: 'llama4_text', anything: 1 } },
    { model: { num_layers: 3 } },
  ])('accepts %j', (config) =>
    expect(validate(config), JSON.stringify(validate.errors)).toBe(true),
  );

  it.each([
    { model: { family: 'minimind', hidden_size: '512', num_hidden_layers: 8 } },
    { model: { family: 'hybrid', num_hidden_layers: 3 } },
    { model: { family: 1 } },
    { training: {} },
  ])('refuses %j', (config) => expect(validate(config)).toBe(false));
});

describe('the entry for the catalog of SchemaStore', () => {
  const entry = readJson<{ name: string; description: string; fileMatch: string[]; url: string }>(
    '.github/schemastore.json',
  );

  it('has the fields of the catalog, and the address in the $id of the schema', () => {
    expect(Object.keys(entry)).toEqual(['name', 'description', 'fileMatch', 'url']);
    expect(entry.url).toBe(readJson<{ $id: string }>('docs/schemas/config.schema.json').$id);
    // SchemaStore refuses entries that say so of themselves, and descriptions of several lines.
    expect(`${entry.name} ${entry.description}`).not.toMatch(/schema|json|yaml|\n/i);
  });

  it('matches names that a command reads by itself, and no file of another program', () => {
    expect(entry.fileMatch.length).toBeGreaterThan(0);
    for (const pattern of entry.fileMatch) expect(pattern).toMatch(/^(?:\*\.)?minimind\.ya?ml$/);
  });

  it('gets the address of the repository when the package does', async () => {
    const { schemaFolder, withPublisher, withSchemaAddress } = await import(
      inPackage('scripts/publisher.js')
    );
    const folder = schemaFolder(withPublisher({}, 'https://github.com/a/b', 'A'));
    const address = 'https://github.com/a/b/raw/HEAD/docs/schemas/config.schema.json';
    const published = withSchemaAddress(entry, folder);
    expect(published).toEqual({ ...entry, url: address });
    expect(withSchemaAddress(published, folder)).toEqual(published);
  });
});

describe('the JSON Schema of hybrid configs', () => {
  const schema = readJson<SchemaObject>('docs/schemas/config-hybrid.schema.json');
  const validate = new Ajv2020({ strict: true, allErrors: true }).compile(schema);

  it.each([
    { model: { srte_encoding: 'factorized' } },
    { model: { num_hidden_layers: 3 } },
    { model: { num_layers: 0 } },
    { model: { hidden_size: '64' } },
    { training: {} },
  ])('refuses %j', (config) => expect(validate(config)).toBe(false));
});
