import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { toJson } from '../../src/base/text/escape.js';
import { formatSeconds } from '../../src/base/text/units.js';
import { type FitFlags, fitOptions } from '../../src/cli/flags/fit-flags.js';
import { typeSuggestion } from '../../src/cli/flags/value-flags.js';
import { fitRequestOf } from '../../src/estimate/fit/fit-request.js';
import type { FitResult } from '../../src/estimate/fit/fits.js';
import { fitsOf } from '../../src/estimate/fit/fits.js';
import { unmetRequirementsOf } from '../../src/estimate/fit/remedies/remedies.js';
import {
  parseWeightDtype,
  WEIGHT_DTYPE_NAMES,
} from '../../src/estimate/fit/serving/weight-types.js';
import { clusterNamed } from '../../src/estimate/hardware/cluster-named.js';
import type { Gpu } from '../../src/estimate/hardware/gpu.js';
import { memoryOf } from '../../src/estimate/hardware/gpu.js';
import { GPUS } from '../../src/estimate/hardware/gpus.js';
import { MACHINES } from '../../src/estimate/hardware/machines.js';
import { loadModelFile } from '../../src/input/model-input/read-model-file.js';
import { countParameters } from '../../src/model/budget/parameters.js';
import { fitReport, hardwareReport } from '../../src/report/fit/fit-report.js';
import { textWidth } from '../../src/report/kit/layout.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { renderMarkdown } from '../../src/report/render/markdown.js';
import { renderTable } from '../../src/report/render/table.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { sampled } from '../sampled.js';

const SMALL = 'configs/minimind/minimind2-small.yaml';
const LARGE = 'configs/hybrid/original.yaml';
const published = (name: string) => `fixtures/hf-configs/${name}/config.json`;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-fit-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Defaults of the flags. */
const FLAGS: FitFlags = {
  for: undefined,
  calibrate: undefined,
  context: undefined,
  'tensor-parallel': undefined,
  'expert-parallel': undefined,
  'expert-tensor-parallel': undefined,
  'context-parallel': undefined,
  'dp-attention': undefined,
  'prefill-gpus': undefined,
  'micro-batch': undefined,
  precision: undefined,
  optimizer: 'adamw',
  recompute: undefined,
  rank: undefined,
  targets: undefined,
  'optimizer-in-backward': false,
  'base-dtype': undefined,
  attention: 'fused',
  loss: 'full',
  dropout: false,
  zero: undefined,
  convention: 'zero',
  'pipeline-parallel': undefined,
  'sequence-parallel': false,
  'global-batch': undefined,
  accumulation: undefined,
  'train-tokens': undefined,
  mfu: undefined,
  dtype: undefined,
  'group-size': undefined,
  'scale-dtype': undefined,
  'cache-dtype': undefined,
  batch: undefined,
  users: undefined,
  'prompt-tokens': undefined,
  'output-tokens': undefined,
  'output-mix': undefined,
  qps: undefined,
  p95: undefined,
  price: undefined,
  ram: undefined,
  'ram-speed': undefined,
  cpu: undefined,
  'tensor-split': undefined,
  offload: undefined,
  'gpu-layers': undefined,
  'cpu-experts': undefined,
  'token-time': undefined,
  'prefill-time': undefined,
  'min-speed': undefined,
  runtime: undefined,
  eager: false,
  'gpu-memory-utilization': undefined,
  'chunked-prefill': undefined as unknown as boolean,
  batching: undefined,
  'prefix-cache': undefined,
  draft: undefined,
  acceptance: undefined,
  'draft-tokens': undefined,
};

type Settings = Partial<FitFlags> & { readonly gpus?: number; readonly set?: readonly string[] };

const models = new Map<string, ReturnType<typeof loadModelFile>>();

/** Model, loaded once: results about a description are cached with it. */
function loadedOnce(file: string, set: readonly string[]) {
  const key = JSON.stringify([file, set]);
  const loaded = models.get(key) ?? loadModelFile(inPackage(file), { set });
  models.set(key, loaded);
  return loaded;
}

/** Result of the command, in this process. */
async function answered(
  file: string,
  gpu: string | Gpu,
  settings: Settings = {},
): Promise<FitResult> {
  const { gpus, set = [], ...flags } = settings;
  const loaded = await loadedOnce(file, set);
  const cluster =
    typeof gpu === 'string'
      ? clusterNamed(gpu, gpus, { gpus: [], machines: [] })
      : { gpu, gpus: gpus ?? 1, network: null };
  const fits = fitsOf(
    loaded.model,
    fitRequestOf(loaded, cluster, fitOptions({ ...FLAGS, ...flags })),
  );
  return {
    schema: 'minimind/fit@1',
    file,
    family: loaded.family.name,
    parameters: countParameters(loaded.model).parameters,
    cluster,
    memory: memoryOf(cluster.gpu),
    profile: null,
    forward: null,
    doubts: unmetRequirementsOf({ cluster, ...fits }),
    ...fits,
  };
}

/** JSON of the command for a published model. */
async function answeredAsJson(name: string, gpu: string | Gpu, settings: Settings) {
  const result = await answered(published(name), gpu, settings);
  return JSON.parse(toJson(result));
}

/** 275 TFLOP/s (PaLM, arXiv 2204.02311, appendix B), without links. */
const TPU_V4: Gpu = {
  name: 'tpu-v4',
  title: 'TPU v4',
  kind: 'other',
  memoryBytes: 32e9,
  bandwidth: 1.2e12,
  peakFlops: { bf16: 275e12 },
  links: [],
  source: 'arXiv 2304.01433, table 4',
};

const LOAD = { qps: 100, p95: 2, 'prompt-tokens': 200, 'output-tokens': 50 } as const;

/** Measured times for 100 requests per second within half a second. */
const MEASURED_LOAD = {
  for: 'serving',
  qps: 100,
  p95: 0.5,
  'prompt-tokens': 200,
  'output-tokens': 30,
  batch: 32,
  'token-time': 0.008,
  'prefill-time': 0.003,
} as const;

/** Models that fit and that do not, on one and several GPUs, with possible and impossible loads. */
const CASES: readonly (readonly [title: string, file: string, gpu: string, settings: Settings])[] =
  [
    ['that fits', SMALL, 'l4', { ...LOAD, 'train-tokens': 3e9 }],
    ['that does not fit', LARGE, 'l4', LOAD],
    ['in stages', LARGE, 'dgx-h100', { 'pipeline-parallel': 4, 'train-tokens': 3e11 }],
    ['of experts', published('mixtral-8x7b'), 'h100-80gb', { gpus: 8, 'tensor-parallel': 2 }],
    ['with measured times', SMALL, 'l4', { ...MEASURED_LOAD, for: undefined, price: 0.8 }],
    ['in int4, too slow for its load', LARGE, 'l4', { ...LOAD, p95: 0.01, dtype: 'int4' }],
  ];

const results = new Map<string, Promise<FitResult>>();

/** Result for a case, computed once. */
function answeredOnce(...request: Parameters<typeof answered>): Promise<FitResult> {
  const key = JSON.stringify(request);
  const answer = results.get(key) ?? answered(...request);
  results.set(key, answer);
  return answer;
}

interface Explained {
  readonly label: string;
  readonly value: number | string;
  readonly formula: string;
  readonly inputs: Readonly<Record<string, number | string>>;
  readonly source: string;
}

function* figuresIn(value: unknown): Generator<Explained> {
  if (typeof value !== 'object' || value === null) return;
  if ('formula' in value && 'inputs' in value) yield value as Explained;
  else for (const inner of Object.values(value)) yield* figuresIn(inner);
}

describe('the exit code of fit', () => {
  it.each([
    ['a model that fits, with --check', [SMALL, '--gpu', 'l4', '--check'], ''],
    ['a model that does not fit', [LARGE, '--gpu', 'l4'], ''],
    [
      'a model that does not fit, with --check',
      [LARGE, '--gpu', 'l4', '--check', '--for', 'serving'],
      'serving does not fit',
    ],
    [
      'a question whose answer is no, with --check',
      [LARGE, '--gpu', 'h200', '--check', '--for', 'training'],
      'training does not fit', // although serving does
    ],
    ['what was not asked, with --check', [LARGE, '--gpu', 'h200', '--check'], ''],
  ] as const)('is correct for %s', async (_, args, doubt) => {
    const { code, stdout, stderr } = await runHere(['fit', ...args]);
    const expected = doubt === '' ? '' : `--check: ${doubt}\n`;
    expect({ code, stderr }).toEqual({ code: doubt === '' ? 0 : 1, stderr: expected });
    expect(stdout).toMatch(/^(Fits on|Does not fit on) 1 × NVIDIA/);
  });

  it.each([
    ['no model', ['--gpu', 'l4', '--qps', '5'], /expected a model, found none/],
    ['GPUs without a name', [SMALL, '--gpus', '2'], /--gpus requires hardware\n.*--this-machine/],
    ['a price without hardware', [SMALL, '--price', '2'], /--price requires hardware/],
    ['a time without hardware', [SMALL, '--token-time', '9ms'], /--token-time requires hardware/],
    ['an unknown GPU', [SMALL, '--gpu', 'h1000'], /unknown GPU or machine "h1000"\n.*h100\?/],
    ['an unknown flag', [SMALL, '--gpu', 'l4', '--nonsense'], /--nonsense/],
    ['two kinds of hardware', [SMALL, '--gpu', 'l4', '--this-machine'], /--this-machine/],
    ['a limit without requests', [SMALL, '--gpu', 'l4', '--p95', '1s'], /--qps/],
    ['a list without hardware', [SMALL, '--batch', '1,8'], /list of batches .* requires hardware/],
    [
      'chunks in static batches',
      [SMALL, '--gpu', 'l4', '--runtime', 'transformers', '--chunked-prefill'],
      /only static batches/,
    ],
    [
      'a limit of no time',
      [SMALL, '--gpu', 'l4', '--qps', '1', '--p95', '0s'],
      /expected a time with its unit, found "0s"/,
    ],
    [
      'sequences shared by one GPU',
      [SMALL, '--gpu', 'l4', '--tensor-parallel', '1', '--sequence-parallel'],
      /requires GPUs that share layers\n.*--tensor-parallel/,
    ],
    [
      'an MFU that is not a number',
      [SMALL, '--gpu', 'l4', '--mfu', 'NaN'],
      /expected a share above 0, at most 1, found "NaN"/,
    ],
  ])('is 2 for %s', async (_, args, message) => {
    const { code, stdout, stderr } = await runHere(['fit', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it.each([
    ['prompt and output beyond the context', { ...LOAD, context: 100 }, /found 200 \+ 50/],
    [
      'a context beyond the model',
      { ...LOAD, 'prompt-tokens': 40_000 },
      /40,050 tokens are more than the/,
    ],
    [
      'a prompt as long as the context',
      { context: 50, 'prompt-tokens': 50 },
      /within the context of 50 tokens, found 50/,
    ],
    [
      'heads that do not divide',
      { for: 'training', gpus: 3, 'tensor-parallel': 3 },
      /3 GPUs cannot share the 8 heads/,
    ],
    ['more sharing than GPUs', { 'tensor-parallel': 2 }, /2 does not divide 1/],
    [
      'a flag of training',
      { for: 'serving', 'micro-batch': 2 },
      /^--micro-batch is a setting of training/,
    ],
    [
      'a type of training',
      { for: 'serving', optimizer: 'sgd' },
      /^--optimizer is a setting of training/,
    ],
    ['a flag of serving', { for: 'training', ...LOAD }, /^--prompt-tokens is a setting of serving/],
    ['a type of serving', { for: 'training', dtype: 'int4' }, /^--dtype is a setting of serving/],
    [
      'a measured time',
      { for: 'training', 'token-time': 0.01 },
      /^--token-time is a setting of serv/,
    ],
    [
      'a price without tokens',
      { for: 'training', price: 2 },
      /^--price requires the tokens of a training/,
    ],
    [
      'more stages than blocks',
      { gpus: 9, 'pipeline-parallel': 9 },
      /at most 8 stages, one for each block, found 9/,
    ],
  ] as const)('is that of a user error for %s', async (_, settings, message) => {
    const error = await answered(SMALL, 'l4', settings).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).message).toMatch(message);
  });
});

it.each([
  [{ for: 'lora', batch: 4 }, /^write --micro-batch 4 for a training/],
  [{ for: 'serving', 'micro-batch': 2 }, /^write --batch 2 for serving/],
] as const)('the sequences of another purpose are named: %j', async (settings, suggestion) => {
  const error = await answered(SMALL, 'l4', settings).catch((thrown: unknown) => thrown);
  expect((error as UserError).suggestion).toMatch(suggestion);
});

it.each([
  ['e4m3', 'did you mean f8?'],
  ['q4', 'write one of q4_k_m, q4_k_s, q4_k, q4_1, q4_0'],
  ['bf17', 'did you mean bf16?'],
])('--dtype %s gets a suggestion: %s', (text, suggestion) => {
  expect(typeSuggestion(text, WEIGHT_DTYPE_NAMES, parseWeightDtype)).toBe(suggestion);
});

it.each(['__proto__', 'constructor', ''])('a GPU called %j is refused', async (name) => {
  await expect(answered(SMALL, name)).rejects.toThrow(/unknown GPU or machine/);
});

describe('the answer of fit', () => {
  it.each(sampled(CASES, 2))('for a model %s fits 80 columns', async (_, file, gpu, settings) => {
    const result = await answeredOnce(file, gpu, settings);
    for (const explain of [false, true]) {
      const report = fitReport(result, { explain, argv: [] });
      const text = renderTable(report, { width: 80, colourLevel: 0, details: true });
      // A command is never wrapped, because a wrapped one cannot be pasted.
      const wide = text
        .split('\n')
        .filter((line) => textWidth(line) > 80 && !line.startsWith('Next: '));
      expect(wide).toEqual([]);
    }
  });

  it('lists GPUs and machines in 80 columns', () => {
    const report = hardwareReport({ gpus: GPUS, machines: MACHINES });
    const text = renderTable(report, { width: 80, colourLevel: 0 });
    expect(text.split('\n').filter((line) => textWidth(line) > 80)).toEqual([]);
    for (const { name } of [...GPUS, ...MACHINES]) expect(text).toContain(name);
  });

  it.each(sampled(CASES, 2))(
    'for a model %s explains every figure',
    async (_, file, gpu, settings) => {
      const result = await answeredOnce(file, gpu, settings);
      const report = fitReport(result, { explain: true, argv: [] });
      const text = renderTable(report, { width: Number.POSITIVE_INFINITY, colourLevel: 0 });
      const fit = result.serving?.fit;
      // A model that does not fit has no speed.
      const served = fit?.withoutRoom === null ? fit : { ...fit, prefill: null, decode: null };
      const figures = [...figuresIn(result.training?.fit), ...figuresIn(served)];
      expect(figures.length).toBeGreaterThan(60);
      for (const { label, formula, source } of figures) {
        expect(text).toContain(label);
        expect(text).toContain(formula);
        expect(text).toContain(source);
      }
    },
  );

  it.each(CASES)('for a model %s has ordered bounds', async (_, file, gpu, settings) => {
    const { training, serving } = await answeredOnce(file, gpu, settings);
    const bounds = [training?.fit.total, training?.fit.step?.seconds, serving?.fit.total];
    for (const each of [...bounds, serving?.fit.prefill?.seconds, serving?.fit.decode?.seconds]) {
      if (!each) throw new Error('a bound is missing');
      expect(each.lower.value).toBeGreaterThan(0);
      expect(each.expected.value).toBeGreaterThanOrEqual(each.lower.value);
      expect(each.upper.value).toBeGreaterThanOrEqual(each.expected.value);
    }
  });

  it.each([
    ['a GPU', 'nvidia', 'GPU', 'the GPU has'],
    ['a processor', 'processor', 'machine', 'this machine has'],
  ] as const)('names the memory of %s', async (_, kind, each, has) => {
    const result = await answered(SMALL, { ...TPU_V4, kind });
    const text = renderMarkdown(fitReport(result, { explain: false, argv: [] }), { details: true });
    const [, serving, training] = text.split(/^## (?=Serving|Training)/m);
    for (const part of [training, serving]) {
      expect(part).toMatch(new RegExp(`^\\| memory of the fullest ${each} `, 'm'));
      expect(part).toMatch(new RegExp(`^\\| ${has} `, 'm'));
    }
  });

  it('uses the memory that the driver leaves on an H200', async () => {
    const { serving } = await answered(SMALL, 'h200', { for: 'serving' });
    expect(serving?.fit.capacity.value).toBe(Math.floor(139.8 * 2 ** 30));
  });

  it('has the number of GPUs that a load needs, as does --check', async () => {
    const load = [
      '--qps',
      '5000',
      '--prompt-tokens',
      '200',
      '--output-tokens',
      '50',
      '--p95',
      '2s',
    ];
    const args = ['fit', SMALL, '--gpu', 'l4', '--for', 'serving', ...load];
    const { code, stdout, stderr } = await runHere([...args, '--check']);
    expect(code).toBe(1);
    const short = /the load needs (\d+) GPUs \(estimate\), found 1/;
    expect(stderr).toMatch(short);
    expect(stdout).toMatch(new RegExp(short.source, 'i'));
    const [, gpus] = short.exec(stderr) ?? [];
    const enough = await runHere([...args, '--gpus', gpus ?? '', '--check']);
    expect({ code: enough.code, stderr: enough.stderr }).toEqual({ code: 0, stderr: '' });
  });

  describe('--calibrate', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-calibrate-'));
    afterAll(() => fs.rmSync(folder, { recursive: true }));
    const results = path.join(folder, 'bench.json');
    const answer = { model_type: 'llama 7B Q4_0', model_size: 3.8e9, model_n_params: 6.74e9 };
    const run = { ...answer, gpu_info: 'NVIDIA L4', n_prompt: 0, n_gen: 128, avg_ts: 60 };
    fs.writeFileSync(results, JSON.stringify([run]));
    const asked = ['fit', SMALL, '--calibrate', results];

    it('takes the shares of a benchmark, and says so', async () => {
      const { code, stdout, stderr } = await runHere([...asked, '--gpu', 'l4']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('shares    of bandwidth 1.');
      expect(stdout).toContain(`the usual: ${results} (llama-bench: tg128)`);
    });

    it('warns of a benchmark of another GPU', async () => {
      const { code, stderr } = await runHere([...asked, '--gpu', 'a100-80gb']);
      expect(code).toBe(0);
      expect(stderr).toContain('measured on NVIDIA L4, and the question is about NVIDIA A100');
    });

    it('reads the results once for all rows of a list, and warns there, too', async () => {
      const { code, stderr } = await runHere([...asked, '--gpu', 'a100-80gb', '--batch', '1,8']);
      expect(code).toBe(0);
      expect(stderr.split('measured on NVIDIA L4')).toHaveLength(2);
    });

    it.each([
      ['without hardware', [], /--calibrate requires hardware/],
      ['several GPUs', ['--gpu', 'l4,a100-80gb'], /is about one GPU, and --gpu lists several/],
      ['a training', ['--gpu', 'l4', '--for', 'training'], /--calibrate is a setting of serving/],
      [
        'measured times',
        ['--gpu', 'l4', '--token-time', '5ms', '--prefill-time', '9ms'],
        /--calibrate cannot be used with both --token-time and --prefill-time/,
      ],
      ['a slow card', ['--gpu', 't4', '--set', 'model.vocab_size=6400'], /beyond the memory/],
    ])('is refused for %s', async (title, args, message) => {
      fs.writeFileSync(
        results,
        JSON.stringify([{ ...run, avg_ts: title === 'a slow card' ? 160 : 60 }]),
      );
      const { code, stderr } = await runHere([...asked, ...args]);
      expect(code).toBe(2);
      expect(stderr).toMatch(message);
    });
  });

  it('replaces the estimates by measured times', async () => {
    const { serving } = await answered(SMALL, 'l4', MEASURED_LOAD);
    const { prefill, decode, load } = serving?.fit ?? {};
    for (const bound of ['lower', 'expected', 'upper'] as const) {
      expect(prefill?.seconds[bound].value).toBe(0.003);
      expect(decode?.seconds[bound].value).toBe(0.008);
      expect(decode?.tokensPerSecond[bound].value).toBeCloseTo(32 / 0.008, 9);
    }
    if (!load?.expected.met) throw new Error('the load is not met');
    const { batch, replicas, p95Seconds, meanSeconds } = load.expected;
    expect(batch.value).toBe(32);
    // A request alone takes its prefill, and a step for each token after the first one.
    expect(meanSeconds.value).toBeGreaterThan(0.003 + 29 * 0.008);
    expect(p95Seconds.value).toBeLessThanOrEqual(0.5);
    expect(meanSeconds.value).toBeLessThan(p95Seconds.value);
    expect(replicas.value).toBe(2);
    // With a batch of one, only the time of a request and its wait count.
    const alone = await answered(SMALL, 'l4', { ...MEASURED_LOAD, batch: 1 });
    expect(alone.serving?.fit.load?.expected).toMatchObject({ met: true, batch: { value: 1 } });
  });

  it('needs no published peak if both times are measured', async () => {
    const unknown = { ...TPU_V4, peakFlops: {} };
    const { 'prefill-time': _, ...half } = MEASURED_LOAD;
    await expect(answered(SMALL, unknown, half)).rejects.toThrow(/no peak of/);
    const { serving } = await answered(SMALL, unknown, MEASURED_LOAD);
    expect(serving?.fit.withoutPeak).toBeNull();
    expect(serving?.fit.load?.expected.met).toBe(true);
  });

  it('has the price of the GPUs of a load, and of a training', async () => {
    const { serving } = await answered(SMALL, 'l4', { ...MEASURED_LOAD, price: 0.8 });
    const { perHour, perThousandRequests, perMillionOutputTokens } = serving?.cost ?? {};
    expect(perHour?.value).toBeCloseTo(1.6, 12);
    expect(perThousandRequests?.value).toBeCloseTo(1.6 / 360, 12);
    expect(perMillionOutputTokens?.value).toBeCloseTo((1.6 * 1e6) / (100 * 3600 * 30), 12);
    const settings = { for: 'training', price: 0.8, 'train-tokens': 3e9 } as const;
    const { training } = await answered(SMALL, 'l4', settings);
    const seconds = training?.fit.time?.totalSeconds.expected.value ?? 0;
    expect(training?.cost?.expected.value).toBeCloseTo((0.8 * seconds) / 3600, 9);
  });

  it('has a warning that a token time without --batch means one request at a time', async () => {
    const load = ['--qps', '9', '--prompt-tokens', '20', '--output-tokens', '5', '--p95', '1s'];
    const args = ['fit', SMALL, '--gpu', 'l4', '--for', 'serving', ...load, '--token-time', '8ms'];
    const { stderr, stdout } = await runHere(args);
    expect(stderr).toMatch(/^--token-time without --batch: .* one request at a time/);
    expect(stdout).toMatch(/latency\s+mean .*, 95th percentile .*; up to 1 request per replica/);
    expect((await runHere([...args, '--batch', '4'])).stderr).toBe('');
  });

  it('is one table of exact numbers as CSV', async () => {
    const result = await answered(SMALL, 'l4', LOAD);
    const csv = await renderCsv(fitReport(result, { explain: false, argv: [] }));
    const [head, ...rows] = csv.trim().split('\n');
    expect(head?.trim()).toBe('for,what,unit,lower,expected,upper');
    for (const row of rows) {
      const [purpose, what, unit, ...values] = row.trim().split(',');
      expect(['training', 'serving']).toContain(purpose);
      expect(what).not.toBe('');
      const units = ['bytes', 'seconds', 'tokens/s', 'tokens', 'sequences', 'GPUs', 'requests'];
      expect([...units, '1 or 0']).toContain(unit);
      expect(values).toHaveLength(3);
      // Parts outside the peak are negative in the lower bound.
      if (what === 'not at the peak') continue;
      for (const value of values) expect(Number(value)).toBeGreaterThanOrEqual(0);
    }
    // 25,829,888 parameters (MiniMind2-Small) in 2 bytes, and in the 12 of AdamW.
    expect(csv).toContain('training,weights,bytes,51659776,51659776,51659776');
    expect(csv).toContain('training,optimizer,bytes,309958656,309958656,309958656');
    expect(csv).toContain('training,fits,1 or 0,1,1,1');
    expect(csv).toMatch(/^training,total with --micro-batch \d+,bytes,/m);
    const load = result.serving?.fit.load?.expected;
    const gpus = load?.met ? load.gpus.value : undefined;
    expect(csv).toMatch(new RegExp(`^serving,load: GPUs,GPUs,\\d+,${gpus},\\d+`, 'm'));
  });

  it('has the speed of decoding alone for a chip without a published peak', async () => {
    const result = await answered(SMALL, 'm4-max-36gb', { for: 'serving', context: 512 });
    const text = renderMarkdown(fitReport(result, { explain: false, argv: [] }), { details: true });
    expect(text).toMatch(
      /^- \*\*speed\*\*: decoding [\d,.]+ tokens\/s \(estimate, by bandwidth alone; .*prompts: no published peak for this GPU$/m,
    );
    expect(text).toMatch(/^## Serving: fits$/m);
    expect(text).toMatch(
      /^No estimate of prompts and of many users: .*A decoding step takes at least [\d.]+ [µm]s/m,
    );
    expect(text).not.toContain('prefill');
    const csv = await renderCsv(fitReport(result, { explain: false, argv: [] }));
    expect(csv).toMatch(/^serving,step of decoding,seconds,/m);
    expect(csv).not.toContain('prefill');
  });

  it('has no speed for a model that does not fit, and the reason in JSON', async () => {
    const result = await answered('fixtures/hf-configs/llama-3.1-8b/config.json', 't4', {
      for: 'serving',
      context: 512,
    });
    const { serving } = result;
    expect(serving?.fit).toMatchObject({
      verdict: 'does not fit',
      withoutRoom: 'no speed estimate: the model does not fit into the memory',
    });
    const flat = await renderCsv(fitReport(result, { explain: false, argv: [] }));
    const texts = [false, true].map((explain) =>
      renderTable(fitReport(result, { explain, argv: [] }), {
        width: Number.POSITIVE_INFINITY,
        colourLevel: 0,
        details: true,
      }),
    );
    for (const text of [flat, ...texts]) {
      // With system memory it would have one.
      const alone = text.replace(/^ {2}with RAM .*$/m, '');
      expect(alone).not.toMatch(/tokens\/s|^prefill|^decoding step of|^step of decoding/m);
    }
    expect(texts[0]).toContain('No speed estimate: the model does not fit into the memory.');
    const fits = await answered(SMALL, 't4', { for: 'serving', context: 512 });
    expect(fits.serving?.fit.withoutRoom).toBeNull();
  });

  it('refuses a load without a published peak', async () => {
    await expect(answered(SMALL, 'm4-max-36gb', { ...LOAD, for: 'serving' })).rejects.toThrow(
      'no peak of m4-max-36gb is published for bf16',
    );
  });

  it('has tables and headings as Markdown', async () => {
    const result = await answered(SMALL, 'l4', LOAD);
    const text = renderMarkdown(fitReport(result, { explain: false, argv: [] }), { details: true });
    expect(text).toMatch(/^## Training: fits$/m);
    expect(text).toMatch(/^## Serving: fits$/m);
    expect(text).toMatch(/^\| weights +\| +51\.7 MB \|/m);
    expect(text).toMatch(/^Assumed: Poisson arrivals/m);
  });

  it('names GPUs with unknown links, and suggests a machine', async () => {
    const text = async (gpu: string) => {
      const result = await answered(SMALL, gpu, { gpus: 16, 'tensor-parallel': 2 });
      return renderMarkdown(fitReport(result, { explain: false, argv: [] }), { details: true });
    };
    const unknownLinks =
      /no link between more than 8 of h100-80gb is known: name a machine, as in --gpu dgx-h100/;
    expect(await text('h100-80gb')).toMatch(unknownLinks);
    // Without the link, nothing is as fast as the rest of its parts.
    expect(await text('h100-80gb')).not.toMatch(/tokens\/s \(estimate\), .* an MFU/);
    expect(await text('dgx-h100')).toMatch(
      /tokens\/s \(estimate\), limited by memory traffic and launches to an MFU/,
    );
    expect(await text('dgx-h100')).not.toMatch(/known: name a machine/);
  });

  it('suggests changes that make the model fit', async () => {
    const request = { gpus: 8, for: 'training' } as const;
    const { training } = await answered(LARGE, 'h100-80gb', request);
    expect(training?.fit.verdict).toBe('does not fit');
    const staged = training?.fit.remedies.find(({ flags }) => flags.pipelineParallel);
    const { pipelineParallel, tensorParallel, sequenceParallel, ...others } = staged?.flags ?? {};
    const again = await answered(LARGE, 'h100-80gb', {
      ...request,
      'pipeline-parallel': pipelineParallel,
      'tensor-parallel': tensorParallel,
      'sequence-parallel': sequenceParallel ?? false,
      'global-batch': others.globalBatchTokens,
      ...(others.recompute && { recompute: others.recompute }),
      ...(others.loss && { loss: others.loss }),
      ...(others.zero !== undefined && { zero: String(others.zero) as FitFlags['zero'] }),
    });
    expect(again.training?.fit.verdict).toBe('fits');
    expect(again.training?.fit.total).toEqual(staged?.total);
    // 79.1 GiB, the memory reported by PyTorch.
    expect(staged?.total.upper.value).toBeLessThanOrEqual(79.1 * 2 ** 30);
  });

  it('has no NaN and no negative figures for the largest numbers', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    for (const settings of [
      { batch: most, 'micro-batch': most },
      { gpus: most },
      { ...LOAD, qps: 1e308, p95: 1e-300 },
      { 'group-size': most, dtype: 'int4' },
      { 'global-batch': 1, 'train-tokens': 1 },
    ] as const) {
      const result = await answered(SMALL, 'l4', settings);
      for (const { label, value } of [
        ...figuresIn(result.training),
        ...figuresIn(result.serving),
      ]) {
        expect(value).not.toBeNaN();
        if (label === 'parts outside the peak') continue;
        expect(Number(value)).toBeGreaterThanOrEqual(0);
      }
    }
  });
});

describe('published numbers', () => {
  // arXiv 2505.09343, table 1. OPT-13B has 40 layers of 40 heads of 128 (arXiv 2205.01068).
  it.each([
    ['deepseek-v3-main', [], 70_272],
    ['qwen2.5-72b', [], 327_680],
    ['llama-3.1-405b', [], 516_096],
    ['gpt2', ['model.n_layer=40', 'model.n_head=40', 'model.n_embd=5120'], 819_200],
  ] as const)('for %s with %j are %d bytes per token', async (name, set, bytes) => {
    const settings = { set, for: 'serving', context: 1024, 'tensor-parallel': 1 } as const;
    const { training, serving } = await answeredAsJson(name, 'h200', { ...settings, gpus: 8 });
    expect(training).toBeNull();
    expect(serving.fit.cachePerToken.value).toBe(bytes);
    expect(serving.fit.cachePerSequence.value).toBe(1024 * bytes);
  });

  // arXiv 1910.02054, figure 1: 7.5e9 parameters in 36 layers of 4096 on 64 GPUs.
  it.each([
    ['0', '120.0'],
    ['1', '31.4'],
    ['2', '16.6'],
    ['3', '1.9'],
  ] as const)(
    'for ZeRO-%s are %s GB of 7.5e9 parameters on each of 64 GPUs',
    async (zero, gigabytes) => {
      const set = [
        'model.n_layer=36',
        'model.n_head=32',
        'model.n_embd=4096',
        'model.n_positions=2048',
        'model.vocab_size=59065',
      ];
      const settings = { for: 'training', gpus: 64, zero, context: 1024, set } as const;
      const { parameters, training } = await answeredAsJson('gpt2', 'h100-80gb', settings);
      expect((parameters / 1e9).toFixed(4)).toBe('7.5000');
      const [stage] = training.fit.stages;
      const parts: { part: string; bytes: { value: number } }[] = stage.parts;
      const bytes = parts
        .filter(({ part }) => ['weights', 'gradients', 'optimizer'].includes(part))
        .reduce((sum, each) => sum + each.bytes.value, 0);
      expect((bytes / 1e9).toFixed(1)).toBe(gigabytes);
    },
  );

  // arXiv 2205.05198, section 5: a middle stage of a single layer saves sbh(34 + 5as/h).
  it.each([
    ['GPT-3', { layers: 96, heads: 96, hidden: 12_288 }, 80, '70'],
    ['530B', { layers: 105, heads: 128, hidden: 20_480 }, 64, '65'],
  ] as const)(
    'for a layer of %s include the saving of selective recomputation',
    async (_, shape, scores, saved) => {
      const { layers, heads, hidden } = shape;
      const set = [
        `model.n_layer=${layers}`,
        `model.n_head=${heads}`,
        `model.n_embd=${hidden}`,
        'model.n_positions=2048',
      ];
      const savedWith = async (recompute: 'none' | 'selective') => {
        const spread = { gpus: layers, 'pipeline-parallel': layers, 'global-batch': 2048 } as const;
        const plain = { attention: 'plain', dropout: true, context: 2048, recompute } as const;
        const settings = { ...spread, ...plain, for: 'training', set } as const;
        const { training } = await answeredAsJson('gpt2', 'h100-80gb', settings);
        return training.fit.stages[1].activations.total.value / (2048 * hidden);
      };
      const [none, selective] = [await savedWith('none'), await savedWith('selective')];
      expect(none).toBe(34 + scores);
      expect((100 * (1 - selective / none)).toFixed(0)).toBe(saved);
    },
  );

  it('for PaLM 540B are 46.2 % MFU at 238.3K tokens/s (arXiv 2204.02311, table 3)', async () => {
    const set = [
      'model.hidden_size=18432',
      'model.num_hidden_layers=118',
      'model.num_attention_heads=48',
      'model.num_key_value_heads=1',
      'model.head_dim=256',
      'model.intermediate_size=73728',
      'model.vocab_size=256000',
      'model.tie_word_embeddings=true',
      'model.max_position_embeddings=2048',
    ];
    const flags = { mfu: 0.4623, context: 2048, for: 'training', gpus: 6144, set } as const;
    const { parameters, training } = await answeredAsJson('llama-2-7b', TPU_V4, flags);
    // 540.35e9, and one more norm per layer than PaLM.
    expect(parameters).toBeCloseTo(540.354e9 + 119 * 2 * 18_432, -6);
    const { step } = training.fit;
    expect((step.tokensPerSecond.value / 1e3).toFixed(1)).toBe('238.3');
    expect((100 * step.mfu.value).toFixed(1)).toBe('46.2');
  });

  it('for GPT-3 are 3.14e23 FLOP for 300e9 tokens (arXiv 2005.14165, table D.1)', async () => {
    const set = [
      'model.n_layer=96',
      'model.n_head=96',
      'model.n_embd=12288',
      'model.n_positions=2048',
    ];
    // The paper does not count attention, which is negligible for a context of one token.
    const flags = { context: 1, for: 'training', 'train-tokens': 300e9, set } as const;
    const { training } = await answeredAsJson('gpt2', 'h100-80gb', flags);
    const { steps, stepSeconds } = training.fit.time;
    expect((steps.value * stepSeconds.expected.inputs.flops).toExponential(2)).toBe('3.14e+23');
  });

  it('in JSON are the values of their formulas', async () => {
    const args = ['--gpu', 'l4', '--qps', '10', '--p95', '2s', '--train-tokens', '3e9'];
    const { stdout } = await runHere(['fit', SMALL, ...args, '--json']);
    const figures = [...figuresIn(JSON.parse(stdout))];
    expect(figures.length).toBeGreaterThan(100);
    for (const { formula, inputs, value } of figures) {
      expect(value).toBeTypeOf('number');
      expect(byFormula(formula, inputs) / Number(value || 1)).toBeCloseTo(value === 0 ? 0 : 1, 9);
    }
  });
});

/** Value of a formula, evaluated by JavaScript. */
function byFormula(formula: string, inputs: Explained['inputs']): number {
  const { min, max, ceil, floor, sqrt, exp, log: ln } = Math;
  const ceildiv = (a: number, b: number) => ceil(a / b);
  const names = { min, max, ceil, floor, sqrt, exp, ln, ceildiv, ...inputs };
  return new Function(...Object.keys(names), `return ${formula}`)(...Object.values(names));
}

describe('-o of fit', () => {
  it('writes the answer to a file, like --output', async () => {
    const file = path.join(folder, 'answer.json');
    const settings = [
      '--for',
      'serving',
      '--gpu',
      'l4',
      '--prompt-tokens',
      '30',
      '--output-tokens',
      '7',
    ];
    const { code, stdout } = await runHere(['fit', SMALL, ...settings, '-o', file, '--json']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    const { setting } = JSON.parse(fs.readFileSync(file, 'utf8')).serving;
    expect(setting).toMatchObject({ prompt: 30, output: 7, context: 37 });
    const again = await runHere(['fit', SMALL, ...settings, '--output', file]);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain('--force');
  });
});

describe('the number of users', () => {
  const MODEL = 'fixtures/hf-configs/qwen3-8b/config.json';
  const request = { for: 'serving', context: 2048 } as const;

  it('is multiplied by the number of replicas', async () => {
    const one = (await answered(MODEL, 'h100-80gb', request)).serving;
    const four = (await answered(MODEL, 'h100-80gb', { ...request, gpus: 4 })).serving;
    const each = one?.users.total.expected.value ?? 0;
    // The largest batch in memory, which is an older field of the JSON.
    expect(each).toBe(one?.fit.largestBatch?.value);
    expect(four?.users.total.expected.value).toBe(4 * each);
    const result = await answered(MODEL, 'h100-80gb', { ...request, gpus: 4 });
    const text = renderMarkdown(fitReport(result, { explain: false, argv: [] }));
    expect(text).toContain(`${each} per replica × 4 = ${4 * each} users`);
  });

  it.each([
    ['h100-80gb', 200, 0, /^Fits on .* serves 200 users at 2,048 tokens, [\d.]+ tokens\/s each/m],
    ['rtx-4090', 200, 1, /^Does not fit on .* room for \d+ of 200 users/m],
  ] as const)('on %s is checked for %d with --check', async (gpu, users, code, verdict) => {
    const args = ['--gpu', gpu, '--for', 'serving', '--users', String(users), '--check'];
    const run = await runHere(['fit', MODEL, ...args]);
    expect(run.stdout).toMatch(verdict);
    expect({ code: run.code, stderr: run.stderr }).toEqual({
      code,
      stderr: code === 0 ? '' : `--check: serving does not fit ${users} users\n`,
    });
  });

  it('fits on the suggested GPUs', async () => {
    const { serving } = await answered(MODEL, 'rtx-4090', { ...request, users: 200 });
    const needed = serving?.users.needed;
    expect(needed?.gpus).toBeGreaterThan(1);
    const enough = await answered(MODEL, 'rtx-4090', {
      ...request,
      users: 200,
      gpus: needed?.gpus ?? 0,
    });
    expect(enough.serving?.fit.verdict).toBe('fits');
  });
});

describe('serving that does not fit', () => {
  const MODEL = 'fixtures/hf-configs/qwen3-8b/config.json';

  it.each([
    ['rtx-3060-12gb', {}, ['dtype', 'gpus', 'gpu']],
    ['rtx-3060-12gb', { dtype: 'int8', batch: 96 }, ['gpus', 'gpu', 'batch']],
    ['rtx-3060-12gb', { dtype: 'int8', context: 30_000 }, ['gpus', 'gpu', 'context']],
  ] as const)('on %s with %j has changes that make it fit', async (gpu, settings, changed) => {
    const { serving } = await answered(MODEL, gpu, { ...settings, for: 'serving' });
    expect(serving?.remedies.map(({ flags }) => Object.keys(flags)[0])).toEqual(changed);
    for (const { flags, total } of serving?.remedies ?? []) {
      const { gpu: other = gpu, tensorParallel: _, ...others } = flags;
      const again = await answered(MODEL, other, { ...settings, ...others, for: 'serving' });
      expect(again.serving?.fit.verdict).toBe('fits');
      expect(again.serving?.fit.total.upper.value).toBe(total.upper.value);
    }
  });

  it('has a command to paste', async () => {
    const args = ['fit', MODEL, '--gpu', 'rtx-3060-12gb', '--for', 'serving'];
    const { stdout } = await runHere([...args, '--details']);
    expect(stdout).toContain(`Next: minimind ${args.join(' ')} --dtype int8  `);
    expect((await runHere([...args, '--dtype', 'int8', '--check'])).code).toBe(0);
  });
});

/** Question of each use of the table. */
const USES = { serve: 'serving', lora: 'lora', qlora: 'qlora', train: 'training' } as const;

/** Whether it fits: as it is, or with changes that keep the training the same. */
const isEnough = ({ verdict, remedies }: ReturnType<typeof fitOf>): boolean =>
  verdict === 'fits' ||
  remedies.some(
    ({ flags }) => !['cluster', 'optimizer', 'context'].some((name) => Object.hasOwn(flags, name)),
  );

const fitOf = ({ serving, training, adapters }: FitResult) => {
  const { fit } = serving ?? training ?? adapters ?? {};
  if (fit === undefined) throw new Error('no answer');
  return { verdict: fit.verdict, remedies: 'remedies' in fit ? fit.remedies : [] };
};

describe('fit without hardware', () => {
  it('has a row for each common GPU, with the answers of --gpu', async () => {
    const MODEL = 'fixtures/hf-configs/qwen3-8b/config.json';
    const { code, stdout } = await runHere(['fit', MODEL, '--json']);
    expect(code).toBe(0);
    const { rows } = JSON.parse(stdout);
    expect(rows).toHaveLength(12);
    for (const { name, unit, cells } of rows) {
      for (const { use, dtype, verdict, gpus, machine = name } of cells) {
        const purpose = USES[use as keyof typeof USES];
        const settings = { for: purpose, ...(dtype && { dtype }) };
        const here = fitOf(await answered(MODEL, name, settings));
        expect([name, use, here.verdict]).toEqual([name, use, verdict]);
        if (gpus === null || (verdict === 'fits' && gpus >= unit)) continue;
        const enough = fitOf(await answered(MODEL, machine, { ...settings, gpus }));
        expect([name, use, gpus, isEnough(enough)]).toEqual([name, use, gpus, true]);
        if (gpus <= unit || use === 'serve') continue;
        const fewer = fitOf(await answered(MODEL, machine, { ...settings, gpus: gpus / 2 }));
        expect([name, use, gpus / 2, isEnough(fewer)]).toEqual([name, use, gpus / 2, false]);
      }
    }
  });

  it('shows a table, and refuses flags that require hardware', async () => {
    const { stdout } = await runHere(['fit', SMALL]);
    expect(stdout).toMatch(
      /^minimind2-small \(25.8M parameters\): serving in bf16, LoRA, QLoRA and training need rtx-3060-12gb\n/,
    );
    expect(stdout).toMatch(/^h100-80gb +84\.9 GB +fits +fits +fits +fits +fits +fits$/m);
    const { code, stderr } = await runHere(['fit', SMALL, '--check']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/--check requires hardware/);
  });
});

describe("a user's hardware", () => {
  const file = path.join(folder, 'own.yaml');
  beforeAll(() => {
    const lines = [
      'gpus:',
      '  mine:',
      '    title: "red \\e[31m card"',
      '    memory: 1GB',
      '    bandwidth: 100GB/s',
      '    peak: { f32: 1TFLOP/s }',
    ];
    fs.writeFileSync(file, lines.join('\n'));
  });

  it.each([[['--gpu', file]], [['--hardware', file, '--gpu', 'mine']], [['--hardware', file]]])(
    'is read with %j',
    async (flags) => {
      const { code, stdout } = await runHere(['fit', SMALL, ...flags, '--json']);
      expect(code).toBe(0);
      const { cluster, training } = JSON.parse(stdout);
      expect(cluster.gpu).toMatchObject({ name: 'mine', memoryBytes: 1e9, bandwidth: 1e11 });
      expect(training.fit.verdict).toBe('may fit');
    },
  );

  it('has escaped control characters in its title', async () => {
    const { stdout } = await runHere(['fit', SMALL, '--gpu', file]);
    expect(stdout).toContain('red ');
    expect(stdout).not.toContain('\x1b');
  });

  it('is refused with the line of a mistake', async () => {
    const wrong = path.join(folder, 'wrong.yaml');
    fs.writeFileSync(wrong, 'gpus:\n  mine:\n    extends: l4\n    memory: much\n');
    const { code, stderr } = await runHere(['fit', SMALL, '--gpu', wrong]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/wrong\.yaml:4:13: gpus\.mine\.memory: /);
  });
});

describe('LoRA on a GPU', () => {
  const MODEL_8B = 'fixtures/hf-configs/qwen3-8b';
  const lora = async (...args: string[]) => {
    const { code, stdout } = await runHere(['fit', MODEL_8B, ...args]);
    expect(code).toBe(0);
    return stdout.split('\n').find((line) => line.startsWith('  LoRA'));
  };

  it.each([
    [['--gpu', 'rtx-5090'], /^ {2}LoRA {6}fits: \d+\.\d GB \(rank 16, full recompute\)$/],
    [['--gpu', 'a10g'], /^ {2}LoRA .*: .* GB \(.*\); fits on 4 GPUs$/],
    // Eight of them are too few, and no link between more is known.
    [['--gpu', 't4'], /; no number of linked GPUs is enough$/],
    [['--gpu', 'm4-max-36gb'], /fits: \d+\.\d GB \(rank 16, full recompute\)$/],
    [
      ['--gpu', 'l4', '--gpus', '2', '--recompute', 'selective'],
      / GB per GPU \(rank 16, selective recompute\)/,
    ],
  ])('is one line of the answer with %j', async (args, line) => {
    expect(await lora(...args)).toMatch(line);
  });

  it('is part of the training only', async () => {
    expect(await lora('--gpu', 'l4', '--for', 'serving')).toBeUndefined();
    expect(await lora('--gpu', 'l4', '--for', 'training')).toBeDefined();
  });

  it('has the parts in the details, and a derivation with several GPUs', async () => {
    const args = ['fit', MODEL_8B, '--gpu', 'h100-80gb', '--gpus', '8', '--for', 'training'];
    const { stdout } = await runHere([...args, '--details']);
    expect(stdout).toMatch(/^LoRA: fits$/m);
    expect(stdout).toContain('43.6M parameters');
    expect(stdout).toContain('optimizer of the adapters');
    const { code, stdout: explained } = await runHere([...args, '--explain']);
    expect(code).toBe(0);
    expect(explained).toContain('How the figures are computed: LoRA');
  });
});

it('remedies include no GPU without links if several share the model', async () => {
  const args = ['fixtures/hf-configs/deepseek-v3-main', '--gpu', 'h100-80gb', '--gpus', '8'];
  const { stdout } = await runHere(['fit', ...args, '--for', 'serving', '--json']);
  const flags = JSON.parse(stdout).serving.remedies.map(
    (each: { flags: { gpu?: string } }) => each.flags.gpu,
  );
  expect(flags).toContain('h200');
});

describe('servers', () => {
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await runHere(['fit', ...args, '--json']);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  };

  it('26M parameters on an A100 have the speed of graphs and of eager PyTorch, and the screen both', async () => {
    const args = ['minimind2-small', '--gpu', 'a100-80gb'];
    const { stdout } = await runHere(['fit', ...args]);
    expect(stdout).toMatch(/^ +1 +[23],\d\d\d /m);
    expect(stdout).toMatch(/vLLM \(default\).*CUDA graphs \(eager: 8\d\d tokens\/s\)/);
    const { serving } = await json(...args, '--runtime', 'transformers');
    expect(serving.throughput).toMatchObject({ launching: 'eager', batching: 'static' });
    expect(serving.fit.decode.tokensPerSecond.expected.value).toBeCloseTo(
      serving.throughput.oneUser.eager.value,
      6,
    );
  });

  it.each([
    ['qwen3-8b', '--gpu', 'rtx-4090'],
    ['qwen3-30b-a3b', '--gpu', 'h100', '--dtype', 'f8'],
    ['llama-3.1-70b', '--gpu', 'h100', '--gpus', '4'],
  ])('the first token of a lone user is the prefill of its prompt: %s', async (model, ...args) => {
    const { prefill } = (await json(model, ...args, '--for', 'serving')).serving.fit;
    const { value } = prefill.seconds.expected;
    const alone = await json(model, ...args, '--for', 'serving', '--users', '1');
    const { users, throughput } = alone.serving;
    expect(users.speed.firstToken.median.value / value).toBeCloseTo(1, 6);
    expect(throughput.firstTokenAlone.value / value).toBeCloseTo(1, 6);
    const { stdout } = await runHere(['fit', model, ...args, '--for', 'serving']);
    expect(stdout).toMatch(new RegExp(`^ +1 .* ${formatSeconds(value)} `, 'm'));
  });

  it('users who were asked about have a first token, of the same simulation as others', async () => {
    const args = ['qwen3-8b', '--gpu', 'h100', '--for', 'serving'];
    const { throughput } = (await json(...args)).serving;
    const { users } = throughput.full;
    const asked = (await json(...args, '--users', String(users))).serving.users.speed;
    expect(asked.firstToken.median.value).toBe(throughput.full.firstToken.median.value);
  });

  it('a price alone gives the cost of tokens', async () => {
    const { serving } = await json(SMALL, '--gpu', 'l4', '--price', '0.8');
    const { cost, tokensPerSecond } = serving.throughput.atSpeed;
    const expected = (0.8 * 1e6) / 3600 / tokensPerSecond.expected.value;
    expect(cost.perMillionOutputTokens.value).toBeCloseTo(expected, 9);
  });

  it('a share of the memory limits the verdict and the requests', async () => {
    const at = (share: string) =>
      json(published('qwen3-8b'), '--gpu', 'rtx-4090', '--gpu-memory-utilization', share);
    const [most, few] = [await at('0.95'), await at('0.8')];
    expect(few.serving.fit.capacity.value / most.serving.fit.capacity.value).toBeCloseTo(
      0.8 / 0.95,
      6,
    );
    expect(few.serving.throughput.full.users).toBeLessThan(most.serving.throughput.full.users);
    expect((await at('0.3')).serving).toMatchObject({
      fit: { verdict: 'does not fit' },
      throughput: null,
    });
  });

  it('lists name the whole line in their page', async () => {
    const line = ['fit', SMALL, '--gpu', 'l4,a10', '--context', '512,1k', '--format', 'html'];
    const { stdout } = await runHere(line);
    expect(stdout).toContain(`<header><code>minimind ${line.join(' ')}</code></header>`);
  });

  it('lists have a row for each combination, with the answer of each alone', async () => {
    const list = await json(SMALL, '--gpu', 'l4,a10', '--context', '512,1k', '--batch', '1,8');
    expect(list.schema).toBe('minimind/fit-list@1');
    expect(list.rows).toHaveLength(8);
    const { serving } = await json(SMALL, '--gpu', 'a10', '--context', '512', '--batch', '8');
    const row = list.rows.find(
      (each: { gpu: string; context: number; batch: number }) =>
        each.gpu === serving.setting.cluster.gpu.name && each.context === 512 && each.batch === 8,
    );
    expect(row).toMatchObject({
      tokensPerSecond: serving.fit.decode.tokensPerSecond.expected.value,
      memoryBytes: serving.fit.total.expected.value,
      users: serving.throughput.atSpeed.users,
    });
  });
});

describe('what ran in published measurements', () => {
  const QWEN = 'fixtures/hf-configs/qwen3-30b-a3b/config.json';
  const GPT_OSS = 'fixtures/hf-configs/gpt-oss-120b/config.json';

  it.each([
    // AlexsJones/llmfit, llmfit-core/data/community/apple-m4-pro.
    [QWEN, 'm4-pro-24gb', 'q4_k_m', 512],
    // lhl/strix-halo-testing, llm-bench; 104.8 GB are usable there.
    [GPT_OSS, 'ryzen-ai-max-395-128gb', 'mxfp4', 640],
    ['fixtures/hf-configs/qwen2.5-72b/config.json', 'ryzen-ai-max-395-128gb', 'q8_0', 640],
  ] as const)('%s on %s is not ruled out', async (file, gpu, dtype, context) => {
    const { serving, memory } = await answered(file, gpu, { dtype, context, for: 'serving' });
    expect(serving?.fit.verdict).not.toBe('does not fit');
    expect(serving?.fit.decode?.tokensPerSecond.expected.value).toBeGreaterThan(0);
    expect(memory.kind).toBe('shared');
    expect(serving?.fit.capacity.value).toBe(memory.usableBytes);
  });
});

describe('the memory of a GPU', () => {
  const lineOf = (text: string, name: string) =>
    text.split('\n').find((line) => line.startsWith(`  ${name} `)) ?? '';

  it.each([
    [['--gpu', '4090'], '24 GB card, 23.6 GiB (25.3 GB) usable; --reserve 2GB for a screen'],
    [['--gpu', 'h100-80gb'], '80 GB card, 79.1 GiB (84.9 GB) usable'],
    [
      ['--gpu', 'm4-pro-24gb'],
      '24 GB shared with the system, 17.8 GiB (19.1 GB) usable (--reserve)',
    ],
    [['--gpu', '4090', '--reserve', '2GB'], '24 GB, 21.7 GiB (23.3 GB) left with --reserve 2.0 GB'],
    [
      ['--gpu', 'm4-pro-24gb', '--reserve', '4GB'],
      '24 GB, 20.3 GiB (21.8 GB) left with --reserve 4.0 GB',
    ],
  ])('is named with %j, and is that of JSON', async (flags, text) => {
    const { stdout } = await runHere(['fit', SMALL, ...flags]);
    expect(lineOf(stdout, 'GPU')).toBe(`  GPU       ${text}`);
    const { memory, serving } = JSON.parse(
      (await runHere(['fit', SMALL, ...flags, '--json'])).stdout,
    );
    expect(memory.usableBytes).toBe(serving.fit.capacity.value);
    expect(text).toContain(`(${(memory.usableBytes / 1e9).toFixed(1)} GB)`);
  });

  it('is smaller by what is reserved, in each command and in the table', async () => {
    const MODEL = published('qwen3-8b');
    const memoryOf = async (words: readonly string[]) =>
      JSON.parse((await runHere([...words, '--json'])).stdout);
    const reserve = ['--reserve', '2GB'];
    const { rows } = await memoryOf(['fit', MODEL, ...reserve]);
    const row = rows.find(({ name }: { name: string }) => name === 'rtx-4090');
    const { memory } = await memoryOf(['fit', MODEL, '--gpu', 'rtx-4090', ...reserve]);
    expect(row.memoryBytes).toBe(memory.usableBytes);
    const { memory: whole } = await memoryOf(['fit', MODEL, '--gpu', 'rtx-4090']);
    expect(memory.usableBytes).toBe(whole.usableBytes - 2e9);
    const plan = ['train-plan', SMALL, '--gpu', 'rtx-3060-12gb', '--steps', '10'];
    const { hardware } = await memoryOf([...plan, '--reserve', '12GB']);
    expect([(await memoryOf(plan)).hardware.verdict, hardware.verdict]).toEqual([
      'fits',
      'does not fit',
    ]);
    const { code, stderr } = await runHere([
      'fit',
      MODEL,
      '--gpu',
      'rtx-4090',
      '--reserve',
      '30GB',
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('--reserve: expected less than the memory of rtx-4090');
  });
});

describe('the first line and the next command', () => {
  const questions = ['qwen3-8b', 'llama-3.1-405b', 'deepseek-v3-main', 'qwen2.5-72b'].flatMap(
    (model) => ['serving', 'training', 'lora', 'qlora'].map((purpose) => ({ model, purpose })),
  );

  it.each(sampled(questions, 2, ({ purpose }) => purpose))(
    'name the same hardware: $model for $purpose',
    async ({ model, purpose }) => {
      const { stdout } = await runHere(['fit', published(model), '--for', purpose]);
      const [first = ''] = stdout.split('\n');
      const [, gpu = '', gpus = ''] = /--gpu (\S+)(?: --gpus (\d+))?/.exec(stdout) ?? [];
      const [, needed] = / needs (.+)$/.exec(first) ?? [];
      const named = gpus === '' ? [gpu] : [`${gpus} × ${gpu}`, `${gpus} GPUs of ${gpu}`];
      expect(named).toContain(needed);
    },
  );
});

describe('a config as it is published', () => {
  const write = (name: string, changes: object, from = 'qwen3-8b') => {
    const config = JSON.parse(fs.readFileSync(inPackage(published(from)), 'utf8'));
    const file = path.join(folder, `${name}.json`);
    fs.writeFileSync(file, JSON.stringify({ ...config, ...changes }));
    return file;
  };

  // The model card of Qwen3-8B adds this, and leaves max_position_embeddings at 40,960.
  const YARN = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32_768 };

  it('reaches the context of its YaRN factor, and not more', async () => {
    const file = write('yarn', { rope_scaling: YARN, max_position_embeddings: 40_960 });
    const { code, stdout } = await runHere([
      'fit',
      file,
      '--gpu',
      'h100-80gb',
      '--context',
      '128k',
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('131,072 tokens');
    const beyond = await runHere(['fit', file, '--gpu', 'h100-80gb', '--context', '131073']);
    expect(beyond.code).toBe(2);
    const without = await runHere([
      'fit',
      published('qwen3-8b'),
      '--gpu',
      '4090',
      '--context',
      '128k',
    ]);
    expect(without.code).toBe(2);
  });

  it('can have 142,784 tensors', async () => {
    const sizes = { num_experts: 512, num_hidden_layers: 92, hidden_size: 512 };
    const file = write('experts', { ...sizes, moe_intermediate_size: 64 }, 'qwen3-30b-a3b');
    const { code, stdout } = await runHere(['fit', file, '--gpu', 'h100-80gb', '--for', 'serving']);
    expect({ code, isAnswered: stdout.includes('parameters') }).toEqual({
      code: 0,
      isAnswered: true,
    });
  });

  it('is served as stored where a preset or a file says how', async () => {
    const { stdout } = await runHere(['fit', 'gpt-oss-20b', '--gpu', '4090', '--json']);
    const { setting, fit } = JSON.parse(stdout).serving;
    expect(setting.weights.dtype).toBe('mxfp4');
    // 12.8 GiB: arXiv 2508.10925, table 1.
    expect(Number(fit.weights.value) / 2 ** 30).toBeCloseTo(12.8, 1);
  });
});
