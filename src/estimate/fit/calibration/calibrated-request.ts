/** A fit with the shares of the peaks that a benchmark on the hardware shows. */
import { type Problem, usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import { clusterNamed } from '../../hardware/cluster-named.js';
import type { Cluster } from '../../hardware/gpu.js';
import type { FitOptions } from '../fit-options.js';
import { fitRequestOf } from '../fit-request.js';
import type { FitRequest, ModelToFit } from '../fits.js';
import type { StoredModel } from '../model-memory.js';
import { calibrationOf } from './calibration.js';

/** A request, and the hardware that it is about. */
export interface CalibratedRequest {
  readonly cluster: Cluster;
  readonly request: FitRequest;
  readonly warnings: readonly Problem[];
}

/** @throws UserError as `fitRequestOf`, and for a benchmark that was not on this hardware. */
export function calibratedRequest(
  loaded: ModelToFit & StoredModel,
  cluster: Cluster,
  options: FitOptions,
): CalibratedRequest {
  const request = fitRequestOf(loaded, cluster, options);
  const { benchmark, file } = options.calibrate ?? { file: '' };
  if (benchmark === undefined || request.serving === null) {
    return { cluster, request, warnings: [] };
  }
  if (cluster.cards !== undefined) {
    throw usageError(
      `${setting('calibrate', file)} is about one kind of GPU, and ${setting('gpu')} names several`,
      'leave one of them out',
    );
  }
  const calibration = calibrationOf(loaded.model, request.serving.setting, benchmark, file);
  const calibrated = { ...cluster, gpu: { ...cluster.gpu, calibration } };
  return {
    cluster: calibrated,
    request: fitRequestOf(loaded, calibrated, options),
    warnings: otherHardware(benchmark.hardware, cluster, file),
  };
}

/** @throws UserError for a benchmark together with the measured times that replace all of it. */
export function refuseIdleBenchmark({ calibrate, tokenSeconds, prefillSeconds }: FitOptions): void {
  if (calibrate === undefined || tokenSeconds === undefined || prefillSeconds === undefined) return;
  throw usageError(
    `${setting('calibrate')} cannot be used with both ${setting('tokenSeconds')} and ${setting('prefillSeconds')}, which replace all that it measured`,
    `remove ${setting('calibrate')}, or one of the times`,
  );
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
      suggestion: `write ${setting('gpu', measured.name)}`,
    },
  ];
}
