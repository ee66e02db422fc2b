/**
 * Shares of the peaks on the user's own machine, from a benchmark there: factors for the shares of published runs, so that
 * the estimate for the setting of the benchmark is its result.
 */
import { usageError } from '../../../base/errors.js';
import { setting as settingText } from '../../../base/text/setting.js';
import { counted, joined } from '../../../base/text/words.js';
import { median } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { realValue } from '../../../model/budget/figure.js';
import { countParameters } from '../../../model/budget/parameters.js';
import type { Calibration, Cluster, Gpu } from '../../hardware/gpu.js';
import { peakIfKnown } from '../../hardware/gpu.js';
import type { WeightWidth } from '../efficiency.js';
import { servedParameters } from '../serving/quantized.js';
import type { Rates } from '../serving/roofline.js';
import { decodeTerms, prefillTerms } from '../serving/roofline.js';
import type { ServingFitSetting } from '../serving/serving-work.js';
import { decodeWork, prefillWork, servedModel } from '../serving/serving-work.js';
import { runtimeSetting } from '../serving/throughput/runtimes.js';
import { serversOf, servingRates } from '../serving/throughput/server.js';
import { simulate } from '../serving/throughput/simulation.js';
import { SERVER_SEED } from '../serving/throughput/throughput.js';
import type { WeightDtype } from '../serving/weight-types.js';
import { usualFormat, WEIGHT_DTYPE_NAMES, WEIGHT_DTYPES } from '../serving/weight-types.js';
import type { Benchmark, SequenceRun, ServerRun } from './benchmark-runs.js';

/** Largest share of a peak that a run may reach: clocks and caches differ a little from the data sheets. */
const MOST = 1.1;

/** Relative difference of parameters below which a benchmark is of the same model. */
const SAME = 0.02;

/**
 * Factors of the shares by a benchmark.
 * @param setting Setting of serving, for the lengths and the type of a server.
 * @param file Name of the file, for texts.
 * @throws UserError for a run that is faster than the GPU, and for a server that the setting does not describe.
 */
export function calibrationOf(
  model: LanguageModel,
  setting: ServingFitSetting,
  { program, runs, unused }: Benchmark,
  file: string,
): Calibration {
  const sequences = runs.filter((run) => run.kind !== 'server');
  const servers = runs.filter((run) => run.kind === 'server');
  const place = settingText('calibrate', file);
  const served = servers.map((run) => serverFactor(model, setting, run, place));
  const answers = sequences.filter(({ kind }) => kind === 'answer');
  // A prompt behind others also reads their cache.
  const prompts = sequences.filter(({ kind, depth }) => kind === 'prompt' && depth === 0);
  const left = unused + sequences.length - answers.length - prompts.length;
  const reading = middle([
    ...answers.map((run) => readingFactor(model, setting, run, place)),
    ...served,
  ]);
  const computing = middle([
    ...prompts.map((run) => computingFactor(model, setting, run, { place, reading })),
    ...served,
  ]);
  return {
    reading,
    computing,
    source: `${file} (${program}: ${runNames(runs)}${left > 0 ? `; ${counted(left, 'result')} not used` : ''})`,
  };
}

/** Runs that a line names. */
const MOST_NAMED = 4;

function runNames(runs: Benchmark['runs']): string {
  const names = [...new Set(runs.map(nameOfRun))];
  const more = names.length - MOST_NAMED;
  return joined(more > 0 ? [...names.slice(0, MOST_NAMED), `${more} more`] : names);
}

/** Characters of the name of a model that a line shows. */
const MOST_NAME = 60;

const nameOfRun = (run: SequenceRun | ServerRun): string => {
  if (run.kind === 'server') {
    const of = run.modelName === undefined ? '' : ` of ${run.modelName.slice(0, MOST_NAME)}`;
    return `${counted(run.users, 'request')}${of}`;
  }
  const depth = run.depth > 0 ? ` @ d${run.depth}` : '';
  return `${run.kind === 'prompt' ? 'pp' : 'tg'}${run.tokens}${depth}`;
};

/** Median of factors; 1 without any. */
const middle = (factors: readonly number[]): number => (factors.length === 0 ? 1 : median(factors));

/** Setting of llama-bench: one sequence on one GPU. Several GPUs take their layers in turn, as fast as one. */
function benchSetting(
  model: LanguageModel,
  { cluster, ...setting }: ServingFitSetting,
  { bytes, parameters }: SequenceRun['model'],
) {
  const { calibration: _, ...gpu } = cluster.gpu;
  const isSame = Math.abs(parameters / countParameters(model).parameters - 1) < SAME;
  const dtype = isSame
    ? nearestDtype(model, bytes)
    : OF_WIDTH[weightWidth((8 * bytes) / parameters)];
  const one: Cluster = { ...cluster, gpu, gpus: 1 };
  const bench: ServingFitSetting = {
    ...setting,
    cluster: one,
    weights: usualFormat(dtype),
    cacheDtype: 'f16',
    batch: 1,
    tensorParallel: 1,
    runtime: runtimeSetting({ name: 'llama.cpp' }, gpu, dtype),
  };
  return { bench, isSame, rates: servingRates(bench) };
}

/** Type of GGUF files in which the model has about these bytes. */
function nearestDtype(model: LanguageModel, bytes: number): WeightDtype {
  const distance = (dtype: WeightDtype) =>
    Math.abs(Math.log(Number(servedParameters(model, usualFormat(dtype)).value) / bytes));
  return WEIGHT_DTYPE_NAMES.filter(
    (dtype) => dtype === 'f16' || WEIGHT_DTYPES[dtype].blocks,
  ).reduce((a, b) => (distance(b) < distance(a) ? b : a));
}

const weightWidth = (bits: number): WeightWidth =>
  bits > 10 ? 'wide' : bits > 6 ? 'eight' : 'four';

const OF_WIDTH = { wide: 'f16', eight: 'q8_0', four: 'q4_k_m' } as const satisfies Record<
  WeightWidth,
  WeightDtype
>;

/** Measured share of the bandwidth, divided by the share of published runs. */
function readingFactor(
  model: LanguageModel,
  setting: ServingFitSetting,
  run: SequenceRun,
  place: string,
): number {
  const { gpu } = setting.cluster;
  const { bench, isSame, rates } = benchSetting(model, setting, run.model);
  const context = run.depth + Math.max(1, Math.round(run.tokens / 2));
  const work = decodeWork(servedModel(model, bench), context);
  const terms = decodeTerms(work, rates, 1, 'expected');
  const { weightUtilisation } = rates.efficiencies.expected;
  const reading = isSame
    ? realValue(terms.weights) + realValue(terms.cache)
    : run.model.bytes / (rates.bandwidth * weightUtilisation);
  return measuredFactor({
    ...{ run, place, part: reading, most: MOST / weightUtilisation },
    // A model of another size launches about as many kernels.
    seconds: 1 / run.tokensPerSecond - realValue(terms.launches),
    peak: 'memory bandwidth',
    gpu,
  });
}

/**
 * Measured share of the compute peak, divided by the share of published runs.
 * @param reading Factor of the bandwidth, at which the prompt moves its bytes.
 */
function computingFactor(
  model: LanguageModel,
  setting: ServingFitSetting,
  run: SequenceRun,
  { place, reading }: { readonly place: string; readonly reading: number },
): number {
  const { gpu } = setting.cluster;
  const { bench, isSame } = benchSetting(model, setting, run.model);
  const { computes } = WEIGHT_DTYPES[bench.weights.dtype];
  const peak = peakIfKnown(bench.cluster.gpu, computes);
  const rates: Rates = { ...servingRates(bench), peakFlops: peak?.value ?? null };
  const { computeUtilisation, memoryUtilisation } = rates.efficiencies.expected;
  if (rates.peakFlops === null) return 1;
  const terms = prefillTerms(prefillWork(servedModel(model, bench), run.tokens), rates, 'expected');
  const computing = isSame
    ? realValue(terms.compute)
    : (2 * run.model.parameters * run.tokens) / (rates.peakFlops * computeUtilisation);
  const moving = isSame
    ? realValue(terms.memory)
    : run.model.bytes / (rates.bandwidth * memoryUtilisation);
  return measuredFactor({
    ...{ run, place, part: computing },
    // Programs may compute quantized weights in another type.
    most:
      (MOST * Math.max(...Object.values(gpu.peakFlops))) / (rates.peakFlops * computeUtilisation),
    seconds: run.tokens / run.tokensPerSecond - moving / reading - realValue(terms.launches),
    peak: 'compute peak',
    gpu,
  });
}

interface Measured {
  readonly run: SequenceRun;
  readonly place: string;
  /** Seconds of the part at the share of published runs. */
  readonly part: number;
  /** Largest factor that the hardware allows. */
  readonly most: number;
  /** Measured seconds of the part. */
  readonly seconds: number;
  readonly peak: string;
  readonly gpu: Gpu;
}

/** @throws UserError for more than the peak. */
function measuredFactor({ run, place, part, most, seconds, peak, gpu }: Measured): number {
  const factor = part / seconds;
  if (seconds > 0 && factor <= most) return factor;
  throw usageError(
    `${place}: ${nameOfRun(run)} of ${run.model.name} with ${run.tokensPerSecond} tokens/s is beyond the ${peak} of ${gpu.title}`,
    `name the GPU of the benchmark with ${settingText('gpu')}; of a mixture of experts, the benchmark must be of the same model`,
  );
}

/** Passes that find the factor of a server: throughput is nearly proportional to it. */
const PASSES = 6;

/** Factor of both shares with which the simulation has the throughput of a server. */
function serverFactor(
  model: LanguageModel,
  setting: ServingFitSetting,
  run: ServerRun,
  place: string,
): number {
  if (run.tokens > model.positions) {
    throw usageError(
      `${place}: requests of ${Math.round(run.tokens)} tokens, and the model takes ${model.positions}`,
      'name the results of the same model',
    );
  }
  const output = run.output ?? setting.output;
  const asked = setting.prompt + setting.output;
  if (run.output === undefined && Math.abs(asked / run.tokens - 1) > SAME) {
    throw usageError(
      `${place}: requests of ${Math.round(run.tokens)} tokens, and the setting has ${asked}`,
      `write ${settingText('promptTokens')} and ${settingText('outputTokens')} as in the benchmark`,
    );
  }
  const [prompt, generated] = [Math.max(1, Math.round(run.tokens - output)), Math.round(output)];
  const { calibration: _, ...gpu } = setting.cluster.gpu;
  const replicas = Math.floor(setting.cluster.gpus / setting.tensorParallel);
  const rateWith = (factor: number) => {
    const calibration = { reading: factor, computing: factor, source: place };
    const bench = {
      ...setting,
      cluster: { ...setting.cluster, gpu: { ...gpu, calibration } },
      ...{ prompt, output: Math.max(1, generated), context: prompt + Math.max(1, generated) },
      ...{ load: undefined, measured: undefined, outputMix: undefined },
    };
    const servers = serversOf(model, { setting: bench });
    if (typeof servers === 'string') throw notServed(place, servers);
    // More requests than places wait, and change nothing.
    const users = Math.min(Math.max(1, Math.round(run.users / replicas)), servers.expected.places);
    const { seconds, outputTokens } = simulate(servers.expected, { users }, SERVER_SEED);
    return (replicas * (outputTokens / seconds) * run.tokens) / output;
  };
  let factor = 1;
  for (let pass = 0; pass < PASSES; pass++) factor *= run.tokensPerSecond / rateWith(factor);
  if (factor < MOST_FACTOR) return factor;
  throw usageError(
    `${place}: ${Math.round(run.tokensPerSecond)} tokens/s are beyond the peaks of ${setting.cluster.gpus} × ${gpu.title}`,
    `name the GPUs of the benchmark with ${settingText('gpu')} and ${settingText('gpus')}`,
  );
}

/** Most shares are above a third, so three times as much is beyond the peaks. */
const MOST_FACTOR = 3;

/** Settings that a server of the benchmark shares with the question. */
const OF_SERVER = ['gpu', 'gpus', 'tensorParallel', 'dtype'] as const;

const notServed = (place: string, why: string) =>
  usageError(
    `${place}: no server of this model on these GPUs (${why})`,
    `write ${joined(OF_SERVER.map((name) => settingText(name)))} as in the benchmark`,
  );
