import fc from 'fast-check';
import { expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import {
  type Benchmark,
  type BenchmarkRun,
  benchmarkIn,
} from '../../../src/estimate/fit/calibration/benchmark-runs.js';
import { calibrationOf } from '../../../src/estimate/fit/calibration/calibration.js';
import { fitServing } from '../../../src/estimate/fit/serving/serving.js';
import type { ServingFitSetting } from '../../../src/estimate/fit/serving/serving-work.js';
import { runtimeSetting } from '../../../src/estimate/fit/serving/throughput/runtimes.js';
import { serversOf } from '../../../src/estimate/fit/serving/throughput/server.js';
import { simulate } from '../../../src/estimate/fit/serving/throughput/simulation.js';
import { SERVER_SEED } from '../../../src/estimate/fit/serving/throughput/throughput.js';
import { usualFormat, type WeightDtype } from '../../../src/estimate/fit/serving/weight-types.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import type { Cluster, Gpu } from '../../../src/estimate/hardware/gpu.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { inPackage } from '../../fixtures.js';

/** Fields of llama-bench for Qwen2.5-7B on an RTX 4080 (llama.cpp, tools/llama-bench, README). */
const FIELDS = {
  gpu_info: 'NVIDIA GeForce RTX 4080',
  backends: 'CUDA',
  model_type: 'qwen2 7B Q4_K - Medium',
  model_size: 4_677_120_000,
  model_n_params: 7_615_616_512,
};
const PROMPT = { ...FIELDS, n_prompt: 512, n_gen: 0, n_depth: 0, avg_ts: 7100.002 };
const ANSWER = { ...FIELDS, n_prompt: 0, n_gen: 128, n_depth: 0, avg_ts: 118.882 };
const DEEP = { ...ANSWER, n_depth: 4096, avg_ts: 110.5 };
const MIXED = { ...FIELDS, n_prompt: 512, n_gen: 128, n_depth: 0, avg_ts: 900 };
const RESULTS = [PROMPT, ANSWER, DEEP, MIXED];

const quoted = (value: unknown) => `"${String(value).replaceAll('"', '""')}"`;

const FORMATS: Readonly<Record<string, string>> = {
  json: JSON.stringify(RESULTS, null, 2),
  jsonl: RESULTS.map((each) => JSON.stringify(each)).join('\n'),
  csv: [
    `cpu_info,${Object.keys(PROMPT).join(',')}`,
    ...RESULTS.map(
      (each) => `${quoted('a "fast", one')},${Object.values(each).map(quoted).join(',')}`,
    ),
  ].join('\n'),
};

it.each(Object.keys(FORMATS))('llama-bench writes the same runs as %s', (format) => {
  const { runs, unused, hardware, program } = benchmarkIn(FORMATS[format] ?? '', 'bench');
  expect({ unused, hardware, program }).toEqual({
    ...{ unused: 1, hardware: 'NVIDIA GeForce RTX 4080', program: 'llama-bench' },
  });
  const model = {
    name: FIELDS.model_type,
    bytes: FIELDS.model_size,
    parameters: FIELDS.model_n_params,
  };
  expect(runs).toEqual([
    { kind: 'prompt', tokens: 512, depth: 0, tokensPerSecond: 7100.002, model },
    { kind: 'answer', tokens: 128, depth: 0, tokensPerSecond: 118.882, model },
    { kind: 'answer', tokens: 128, depth: 4096, tokensPerSecond: 110.5, model },
  ]);
});

const MARKDOWN = `
ggml_cuda_init: found 1 CUDA devices:
| model                          |       size |     params | backend    | ngl |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | --------------: | -------------------: |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  -1 |           pp512 |      7340.20 ± 23.45 |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  -1 |          tg 128 |        120.60 ± 0.59 |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  -1 |    tg128 @ d512 |        116.71 ± 0.60 |
| qwen2 7B Q4_K - Medium         |   4.36 GiB |     7.62 B | CUDA       |  -1 |   pp512+tg128   |        986.71 ± 0.60 |

build: 8cf427ff (5163)
`;

it('reads the table of llama-bench, with the text around it', () => {
  const { runs, unused } = benchmarkIn(MARKDOWN, 'bench.md');
  expect(unused).toBe(1);
  expect(runs.map((run) => [run.kind, run.tokens, run.tokensPerSecond])).toEqual([
    ['prompt', 512, 7340.2],
    ['answer', 128, 120.6],
    ['answer', 128, 116.71],
  ]);
  expect(runs[2]).toMatchObject({
    depth: 512,
    model: { bytes: Math.floor(4.36 * 2 ** 30), parameters: 7.62e9 },
  });
});

const SERVE = {
  model_id: 'meta-llama/Llama-3.1-8B',
  request_rate: 'inf',
  max_concurrency: 64,
  completed: 1000,
  total_input_tokens: 1_000_000,
  total_output_tokens: 200_000,
  total_token_throughput: 12_000,
};

it('reads the results of vllm bench serve', () => {
  expect(benchmarkIn(JSON.stringify(SERVE), 'v.json')).toEqual({
    program: 'vLLM',
    runs: [
      {
        ...{ kind: 'server', users: 64, tokensPerSecond: 12_000, tokens: 1200, output: 200 },
        modelName: 'meta-llama/Llama-3.1-8B',
      },
    ],
    unused: 0,
  });
  const { runs } = benchmarkIn(JSON.stringify({ ...SERVE, max_concurrency: null }), 'v.json');
  expect(runs).toMatchObject([{ users: 1000 }]);
});

const THROUGHPUT = {
  elapsed_time: 10.5,
  num_requests: 1000,
  total_num_tokens: 384_000,
  tokens_per_second: 36_571,
};

it.each([
  ['a depth of 10^17', JSON.stringify([{ ...ANSWER, n_depth: 1e17 }]), /n_depth to be a number of/],
  ['processor', JSON.stringify([{ ...ANSWER, backends: 'CPU' }]), /backend CPU/],
  [
    'no speed',
    JSON.stringify([{ ...ANSWER, avg_ts: 0 }]),
    /avg_ts to be a positive number, found 0/,
  ],
  ['a word for a speed', JSON.stringify([{ ...ANSWER, avg_ts: 'fast' }]), /avg_ts .* found fast/],
  ['prompts and answers together', JSON.stringify([MIXED]), /no run of prompts alone/],
  ['latency', JSON.stringify({ avg_latency: 1.5, latencies: [1.5] }), /do not have the lengths/],
  ['arrivals', JSON.stringify({ ...SERVE, request_rate: 4 }), /waited for requests/],
  ['no requests', JSON.stringify({ ...SERVE, completed: 0 }), /completed to be a positive number/],
  ['another object', '{"a": 1}', /expected results of llama-bench/],
  ['a list of numbers', '[1, 2]', /expected results of llama-bench/],
  ['another table', '| a | b |\n|---|---|\n| 1 | 2 |', /expected results of llama-bench/],
  ['prose', 'It is fast.', /expected results of llama-bench/],
  [
    'a table of a megabyte',
    (FORMATS.csv ?? '').replace('\n', '\n'.repeat(1_000_001)),
    /up to 1 million are read/,
  ],
  ['nothing', '', /expected results of llama-bench/],
  ['brackets', '['.repeat(100_000), /expected results of llama-bench/],
])('refuses %s', (_, text, message) => {
  expect(() => benchmarkIn(text, 'f')).toThrow(UserError);
  expect(() => benchmarkIn(text, 'f')).toThrow(message);
});

const modelOf = async (name: string) =>
  (await loadModelFile(inPackage(`fixtures/hf-configs/${name}/config.json`), { set: [] })).model;

const clusterOf = (name: string, gpus = 1): Cluster =>
  clusterNamed(name, gpus, { gpus: [], machines: [] });

function settingOn(cluster: Cluster, dtype: WeightDtype, lengths: Partial<ServingFitSetting>) {
  const setting: ServingFitSetting = {
    ...{ cluster, weights: usualFormat(dtype), cacheDtype: 'f16', stateDtype: 'f16' },
    ...{ context: 2048, batch: 1, prompt: 1920, output: 128, tensorParallel: 1 },
    ...{ load: undefined, measured: undefined },
    runtime: runtimeSetting({}, cluster.gpu, dtype),
    ...lengths,
  };
  return setting;
}

const withCalibration = (cluster: Cluster, calibration: NonNullable<Gpu['calibration']>) => ({
  ...cluster,
  gpu: { ...cluster.gpu, calibration },
});

const benchmarkOf = (...runs: BenchmarkRun[]): Benchmark => ({
  ...{ program: 'llama-bench', runs, unused: 0 },
});

const model7b = {
  name: FIELDS.model_type,
  bytes: FIELDS.model_size,
  parameters: FIELDS.model_n_params,
};
const answerAt = (tokensPerSecond: number, depth = 0): BenchmarkRun => ({
  ...{ kind: 'answer', tokens: 128, depth, tokensPerSecond, model: model7b },
});
const promptAt = (tokensPerSecond: number): BenchmarkRun => ({
  ...{ kind: 'prompt', tokens: 512, depth: 0, tokensPerSecond, model: model7b },
});

it('estimates the speeds of the benchmark for the same model', async () => {
  const model = await modelOf('qwen2.5-7b');
  const cluster = clusterOf('rtx-4080');
  const asked = settingOn(cluster, 'q4_k_m', {});
  const benchmark = benchmarkOf(answerAt(118.882), promptAt(7100));
  const calibration = calibrationOf(model, asked, benchmark, 'bench.json');
  expect(calibration.source).toBe('bench.json (llama-bench: tg128 and pp512)');
  const lengths = { context: 64, prompt: 32, output: 32 };
  const on = withCalibration(cluster, calibration);
  const { decode } = fitServing(model, settingOn(on, 'q4_k_m', lengths));
  expect(decode?.tokensPerSecond.expected.value).toBeCloseTo(118.882, 6);
  const prompt = { context: 513, prompt: 512, output: 1 };
  const { prefill } = fitServing(model, settingOn(on, 'q4_k_m', prompt));
  // The benchmark computes no logits before the last token, as the estimate.
  expect(512 / (prefill?.seconds.expected.value ?? 0)).toBeCloseTo(7100, 3);
  expect(prefill?.seconds.lower.value).toBeLessThanOrEqual(prefill?.seconds.expected.value ?? 0);
});

it('takes the median of several runs, and 1 without runs of a kind', async () => {
  const model = await modelOf('qwen2.5-7b');
  const asked = settingOn(clusterOf('rtx-4080'), 'q4_k_m', {});
  const of = (...runs: BenchmarkRun[]) => calibrationOf(model, asked, benchmarkOf(...runs), 'f');
  const [slow, middle, fast] = [80, 100, 120].map((speed) => of(answerAt(speed)).reading);
  expect(of(answerAt(80), answerAt(120), answerAt(100)).reading).toBe(middle);
  expect(of(answerAt(80), answerAt(120)).reading).toBeCloseTo(((slow ?? 0) + (fast ?? 0)) / 2, 12);
  expect(of(answerAt(100)).computing).toBe(1);
  expect(of(promptAt(3000)).reading).toBe(1);
});

it('takes the share of the bandwidth from a dense model of another size', async () => {
  const asked = settingOn(clusterOf('rtx-4080'), 'q4_k_m', {});
  const benchmark = benchmarkOf(answerAt(118.882));
  const own = calibrationOf(await modelOf('qwen2.5-7b'), asked, benchmark, 'f').reading;
  const other = calibrationOf(await modelOf('llama-3.1-8b'), asked, benchmark, 'f').reading;
  // Llama-3.1-8B has 32 blocks and Qwen2.5-7B 28, and their files hold an embedding that decoding does not read.
  expect(other / own).toBeGreaterThan(1);
  expect(other / own).toBeLessThan(1.15);
});

it('refuses speeds beyond the hardware', async () => {
  const model = await modelOf('qwen2.5-7b');
  const asked = settingOn(clusterOf('rtx-4080'), 'q4_k_m', {});
  expect(() => calibrationOf(model, asked, benchmarkOf(answerAt(500)), 'f')).toThrow(
    /tg128 of qwen2 7B .* with 500 tokens\/s is beyond the memory bandwidth of NVIDIA GeForce RTX 4080/,
  );
  expect(() => calibrationOf(model, asked, benchmarkOf(promptAt(1e6)), 'f')).toThrow(
    /beyond the compute peak/,
  );
});

it.each([1, 2])('simulates the throughput of the benchmark on %i GPUs', async (gpus) => {
  const model = await modelOf('llama-3.1-8b');
  const cluster = clusterOf('h100-80gb', gpus);
  const asked = settingOn(cluster, 'bf16', {});
  const run = {
    kind: 'server',
    users: 64,
    tokensPerSecond: 12_000,
    tokens: 1200,
    output: 200,
    modelName: 'org/model',
  } as const;
  const benchmark: Benchmark = { program: 'vLLM', runs: [run], unused: 0 };
  const calibration = calibrationOf(model, asked, benchmark, 'v.json');
  expect(calibration.reading).toBe(calibration.computing);
  expect(calibration.source).toBe('v.json (vLLM: 64 requests of org/model)');
  const lengths = { context: 1200, prompt: 1000, output: 200 };
  const setting = settingOn(withCalibration(cluster, calibration), 'bf16', lengths);
  const servers = serversOf(model, { setting });
  if (typeof servers === 'string') throw new Error(servers);
  const { seconds, outputTokens } = simulate(servers.expected, { users: 64 / gpus }, SERVER_SEED);
  expect((gpus * 6 * outputTokens) / seconds / 12_000).toBeCloseTo(1, 2);
});

it('refuses requests that are longer than the model takes', async () => {
  const model = await modelOf('gpt2');
  const setting = settingOn(clusterOf('l4'), 'bf16', { context: 512, prompt: 384, output: 128 });
  const benchmark = benchmarkIn(JSON.stringify(SERVE), 'v.json');
  expect(() => calibrationOf(model, setting, benchmark, 'v.json')).toThrow(
    /requests of 1200 tokens, and the model takes 1024/,
  );
});

it('names a few of many runs', async () => {
  const asked = settingOn(clusterOf('rtx-4080'), 'q4_k_m', {});
  const runs = [0, 1, 2, 3, 4, 5].map((depth) => answerAt(100, 512 * depth));
  const { source } = calibrationOf(await modelOf('qwen2.5-7b'), asked, benchmarkOf(...runs), 'f');
  expect(source).toBe(
    'f (llama-bench: tg128, tg128 @ d512, tg128 @ d1024, tg128 @ d1536 and 2 more)',
  );
});

it('requires the lengths where the file has only their sum', async () => {
  const model = await modelOf('llama-3.1-8b');
  const cluster = clusterOf('h100-80gb');
  const benchmark = benchmarkIn(JSON.stringify(THROUGHPUT), 't.json');
  const on = (lengths: Partial<ServingFitSetting>) =>
    calibrationOf(model, settingOn(cluster, 'bf16', lengths), benchmark, 't.json');
  expect(() => on({})).toThrow(/requests of 384 tokens, and the setting has 2048/);
  const { reading } = on({ context: 384, prompt: 256, output: 128 });
  expect(reading).toBeGreaterThan(0.3);
  expect(reading).toBeLessThan(3);
});

it('takes any text for a calibration, or refuses it', async () => {
  const model = await modelOf('gpt2');
  const setting = settingOn(clusterOf('l4'), 'bf16', { context: 512, prompt: 384, output: 128 });
  const values = fc.oneof(
    fc.constantFrom('', '-1', 'NaN', '1e999', '1e17', 'tg128', '4 GiB', '7 B', 0.5, 1e15, 512),
    fc.string(),
  );
  const fields = fc.constantFrom(
    ...Object.keys({ ...ANSWER, ...SERVE, ...THROUGHPUT }),
    ...['test', 'params'],
  );
  const changed = fc
    .tuple(fc.constantFrom(PROMPT, ANSWER, SERVE, THROUGHPUT), fields, values)
    .map(([result, field, value]) => ({ ...result, [field]: value }));
  const object = fc.dictionary(fields, fc.oneof(values, fc.double(), fc.jsonValue()));
  const table = fc
    .array(fc.array(fc.string(), { maxLength: 5 }), { maxLength: 4 })
    .map((rows) => rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n'));
  const json = fc.oneof(object, changed).map((each) => JSON.stringify(each));
  fc.assert(
    fc.property(fc.oneof(fc.string(), table, json), (text) => {
      try {
        const { reading, computing } = calibrationOf(model, setting, benchmarkIn(text, 'f'), 'f');
        expect(Math.min(reading, computing)).toBeGreaterThan(0);
        expect(Math.max(reading, computing)).toBeLessThan(100);
      } catch (error) {
        expect(error).toBeInstanceOf(UserError);
      }
    }),
    { numRuns: 300 },
  );
});
