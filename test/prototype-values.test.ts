import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as toml from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as yaml from 'yaml';
import { UserError } from '../src/base/errors.js';
import { isRecord } from '../src/base/values.js';
import { readAdapterConfig } from '../src/checkpoint/adapter/adapter-config.js';
import { documentOfData } from '../src/config/document.js';
import { benchmarkIn } from '../src/estimate/fit/calibration/benchmark-runs.js';
import { hardwareOfDocument } from '../src/estimate/hardware/hardware-file.js';
import { modelOf } from '../src/input/model-input/model-file.js';
import { readTrainingConfig } from '../src/input/training-config/read-training-config.js';
import { parseTokenizer } from '../src/language/tokenizer/parse.js';
import { inPackage } from './fixtures.js';
import { isWhole, sampled } from './sampled.js';

/** Values in place of any other in a file: `String` and `Number` throw for both objects, and for a list of them. */
const POISONS = [{ toString: 1 }, [{ toString: {}, valueOf: 1 }]] as const;

type Json = Readonly<Record<string, unknown>>;

/** Keys that published files have and some fixtures lack. */
const MORE_KEYS: Json = {
  architectures: ['X'],
  transformers_version: '5.0.0',
  dtype: 'bfloat16',
  torch_dtype: 'bfloat16',
  rope_scaling: { rope_type: 'yarn', factor: 2, type: 'yarn', formula: 1 },
  quantization_config: {
    ...{ quant_method: 'compressed-tensors', format: 'x', bits: 4, version: 'gemm' },
    ...{ weight_block_size: [1, 1], packing_format: 'x', config_groups: {} },
  },
  expert_dtype: 'fp8',
};

/** The value with a poison in place of one of its parts at a time, at any depth; lists by their first item. */
function poisoned(value: unknown, poison: unknown): unknown[] {
  if (Array.isArray(value)) {
    return value.length === 0
      ? [poison]
      : [poison, ...poisoned(value[0], poison).map((first) => [first, ...value.slice(1)])];
  }
  if (!isRecord(value)) return [poison];
  return [
    poison,
    ...Object.keys(value).flatMap((key) =>
      poisoned(value[key], poison).map((part) => ({ ...value, [key]: part })),
    ),
  ];
}

/** Documents with a poison in place of each value. */
const everyPoisoned = (document: Json): Json[] =>
  (isWhole ? POISONS : POISONS.slice(0, 1)).flatMap((poison) =>
    poisoned(document, poison).slice(1).filter(isRecord),
  );

/** Failures on values of a file that are not errors for the user. */
async function faultsOf(
  values: readonly Json[],
  read: (value: Json) => unknown,
): Promise<string[]> {
  const faults: string[] = [];
  for (const value of values) {
    try {
      await read(value);
    } catch (error) {
      if (!(error instanceof UserError)) {
        faults.push(`${JSON.stringify(value)}: ${(error as Error).stack}`);
      }
    }
  }
  return faults.slice(0, 3);
}

const json = (...parts: string[]): Json =>
  JSON.parse(fs.readFileSync(inPackage('fixtures', ...parts), 'utf8'));

/** The first config of each model type. */
const configs = new Map<string, Json>();
for (const name of fs.readdirSync(inPackage('fixtures/hf'))) {
  if (!fs.existsSync(inPackage('fixtures/hf', name, 'config.json'))) continue;
  const config = json('hf', name, 'config.json');
  if (!configs.has(String(config.model_type))) configs.set(String(config.model_type), config);
}

/** Configs with a text model among other parts. */
const wrapped = json('text-parts', 'wrapped.json') as unknown as { name: string; config: Json }[];

/** A run of llama-bench and one of the benchmark of vLLM's server. */
const BENCHMARKS: readonly Json[] = [
  {
    ...{ backend: 'llama.cpp', model_type: 'qwen2 7B Q4_K - Medium', model_size: 4_677_120_000 },
    ...{ model_n_params: 7_615_616_512, n_prompt: 0, n_gen: 128, n_depth: 0, avg_ts: 118.8 },
  },
  {
    ...{ backend: 'vllm', num_prompts: 10, request_rate: 'inf', max_concurrency: 4, duration: 3 },
    ...{ completed: 10, total_input_tokens: 100, total_output_tokens: 100, output_throughput: 33 },
  },
];

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** The path of a file with the text. */
const written = (name: string, text: string) => {
  const file = path.join(folder, name);
  fs.writeFileSync(file, text);
  return file;
};

describe('an object with a toString of its own', () => {
  it('stands for each value of each model type', () => {
    expect(configs.size).toBeGreaterThan(60);
    expect(everyPoisoned(configs.get('llama') ?? {}).length).toBeGreaterThan(20);
  });

  it.each(sampled([...configs.keys()], 3))('is read or refused in a config of %s', async (type) => {
    const whole = { ...MORE_KEYS, ...configs.get(type) };
    const values = everyPoisoned(whole);
    const read = (value: Json) => modelOf(documentOfData(value, 'config.json'));
    expect(await faultsOf(values, read)).toEqual([]);
  });

  it.each(sampled(wrapped, 6))('is read or refused in the config of $name', async ({ config }) => {
    const read = (value: Json) => modelOf(documentOfData(value, 'config.json'));
    expect(await faultsOf(everyPoisoned(config), read)).toEqual([]);
  });

  it.each(
    fs
      .readdirSync(inPackage('fixtures/training-configs'))
      .filter((name) => /\.(?:yaml|json|toml)$/.test(name)),
  )('is read or refused in the training config %s', async (name) => {
    const text = fs.readFileSync(inPackage('fixtures/training-configs', name), 'utf8');
    const isToml = name.endsWith('.toml');
    const config = isToml ? toml.parse(text) : yaml.parse(text);
    const print = isToml ? toml.stringify : JSON.stringify;
    const read = (value: Json) => readTrainingConfig(written(name, print(value)));
    expect(await faultsOf(everyPoisoned(config), read)).toEqual([]);
  });

  it.each(['gpt2-bias', 'llama-patterns'])('is read or refused in the adapter %s', async (name) => {
    const read = (value: unknown) =>
      readAdapterConfig(written('adapter_config.json', JSON.stringify(value)));
    expect(await faultsOf(everyPoisoned(json('lora', name, 'adapter_config.json')), read)).toEqual(
      [],
    );
  });

  it('is read or refused in a tokenizer', async () => {
    const tokenizer = json('tokenizers', 'bpe-512.json');
    const few = { vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] };
    const model = { ...(tokenizer.model as Json), ...few };
    const read = (value: unknown) => parseTokenizer(JSON.stringify(value), 'tokenizer.json');
    expect(await faultsOf(everyPoisoned({ ...tokenizer, model }), read)).toEqual([]);
  });

  it('is read or refused in a file of hardware', async () => {
    const gpu = { memory: '24 GB', bandwidth: '1 TB/s', tflops: { bf16: 100 }, extends: 'h100' };
    const hardware = { gpus: { own: gpu }, machines: { box: { gpu: 'own', gpus: 2 } } };
    const read = (value: Json) => hardwareOfDocument(documentOfData(value, 'hardware.json'));
    expect(await faultsOf(everyPoisoned(hardware), read)).toEqual([]);
  });

  it.each(BENCHMARKS)('is read or refused in a benchmark of $backend', async (run) => {
    const read = (value: unknown) => benchmarkIn(JSON.stringify([value]), 'runs.json');
    expect(await faultsOf(everyPoisoned(run), read)).toEqual([]);
  });
});
