/** `fit --calibrate`: settings on hardware with the shares of a benchmark. */
import { type Problem, usageError } from '../base/errors.js';
import { readText } from '../base/files/read-file.js';
import type { Benchmark } from '../estimate/fit/calibration/benchmark-runs.js';
import type { FitRequest } from '../estimate/fit/fits.js';
import type { Cluster } from '../estimate/hardware/gpu.js';
import { clusterNamed } from '../estimate/hardware/gpus.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { type FitFlags, fitRequestOf } from './flags/fit-flags.js';

/** Bytes of the longest results: vLLM saves each request on demand. */
const MOST_BYTES = 64e6;

/** A request, and the hardware that it is about. */
export interface CalibratedRequest {
  readonly cluster: Cluster;
  readonly request: FitRequest;
  readonly warnings: readonly Problem[];
}

/** Other files of a question: a draft model, and a benchmark. */
export interface FurtherFiles {
  readonly draft: LanguageModel | undefined;
  readonly benchmark: Benchmark | undefined;
}

/** Results in the file of `--calibrate`. @throws UserError as `readText` and `benchmarkIn`, and for measured times. */
export async function readBenchmark({
  calibrate: file,
  'token-time': tokenTime,
  'prefill-time': prefillTime,
}: FitFlags): Promise<Benchmark | undefined> {
  if (file === undefined) return undefined;
  if (tokenTime !== undefined && prefillTime !== undefined) {
    throw usageError(
      '--calibrate cannot be used with both --token-time and --prefill-time, which replace all that it measured',
      'remove --calibrate, or one of the times',
    );
  }
  const text = await readText(file, { most: MOST_BYTES, suggestion: 'name the results only' });
  const { benchmarkIn } = await import('../estimate/fit/calibration/benchmark-runs.js');
  return benchmarkIn(text, file);
}

/** @throws UserError as `fitRequestOf`, and for a benchmark that was not on this hardware. */
export async function calibratedRequest(
  loaded: ModelFile,
  cluster: Cluster,
  flags: FitFlags,
  { draft, benchmark }: FurtherFiles,
): Promise<CalibratedRequest> {
  const request = fitRequestOf(loaded, cluster, flags, draft);
  const { calibrate: file = '' } = flags;
  if (benchmark === undefined || request.serving === null) {
    return { cluster, request, warnings: [] };
  }
  const { calibrationOf } = await import('../estimate/fit/calibration/calibration.js');
  const calibration = calibrationOf(loaded.model, request.serving.setting, benchmark, file);
  const calibrated = { ...cluster, gpu: { ...cluster.gpu, calibration } };
  return {
    cluster: calibrated,
    request: fitRequestOf(loaded, calibrated, flags, draft),
    warnings: otherHardware(benchmark.hardware, cluster, file),
  };
}

/** Warning about a benchmark of another GPU, as far as its name is known. */
function otherHardware(named: string | undefined, { gpu }: Cluster, file: string): Problem[] {
  if (named === undefined) return [];
  const [first = named] = named.split(',');
  let measured: Cluster['gpu'];
  try {
    measured = clusterNamed(first.trim(), undefined, { gpus: [], machines: [] }).gpu;
  } catch {
    return [];
  }
  if (measured.name === gpu.name || measured.architecture === undefined) return [];
  if (measured.bandwidth === gpu.bandwidth && measured.architecture === gpu.architecture) return [];
  return [
    {
      severity: 'warning',
      file,
      message: `measured on ${first.trim()}, and the question is about ${gpu.title}`,
      suggestion: `write --gpu ${measured.name}`,
    },
  ];
}
