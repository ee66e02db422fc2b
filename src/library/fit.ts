/** `fit` as a function: whether a model fits on hardware, and how fast it runs there. */
import { type Problem, usageError } from '../base/errors.js';
import { setting } from '../base/text/setting.js';
import {
  calibratedRequest,
  refuseIdleBenchmark,
} from '../estimate/fit/calibration/calibrated-request.js';
import type { FitOptions } from '../estimate/fit/fit-options.js';
import {
  refuseContradictions,
  refuseMixOfTraining,
  refuseOtherBlocks,
  refuseWithoutHardware,
  tableRequestOf,
} from '../estimate/fit/fit-request.js';
import {
  bestHardware,
  type FitTableResult,
  fitTable,
  tableSettingOf,
} from '../estimate/fit/fit-table.js';
import { type FitResult, type FoundMachine, fitsOf, forwardOn } from '../estimate/fit/fits.js';
import {
  idleAxes,
  idleGpus,
  idleTrainingOptions,
  idleZero,
  mixedTraining,
} from '../estimate/fit/idle-options.js';
import { dividersOf, parallelismOf } from '../estimate/fit/parallelism/parallelism.js';
import { idleRam } from '../estimate/fit/places/places-options.js';
import { unmetRequirementsOf } from '../estimate/fit/remedies/remedies.js';
import { batchingOf } from '../estimate/fit/serving/batching.js';
import { clusterNamed, withGpus } from '../estimate/hardware/cluster-named.js';
import type { Cluster, Hardware } from '../estimate/hardware/gpu.js';
import { memoryOf, withReserved } from '../estimate/hardware/gpu.js';
import type { MachineProfile } from '../estimate/hardware/machine-profile.js';
import { isProcessorName, PROCESSOR } from '../estimate/hardware/system-memory.js';
import { countParameters } from '../model/budget/parameters.js';
import { type AnswerNotes, type Model, withNotes } from './answer.js';
import { checkOptions, requireModel } from './arguments.js';
import { FIT_KINDS } from './fit-kinds.js';

/** Options of a fit on hardware with a name. */
export interface NamedFitOptions extends FitOptions {
  /** A GPU or machine: `h100-80gb`, `RTX 4090`, `8xA100`. */
  readonly gpu: string;
  /** Number of GPUs. Default: 1, or all of a machine. */
  readonly gpus?: number | undefined;
  /** Memory of each GPU for other programs. */
  readonly reserveBytes?: number | undefined;
}

/** Options of the table of common hardware. */
export type FitTableOptions = FitOptions & {
  readonly gpu?: undefined;
  readonly reserveBytes?: number | undefined;
};

/** A remark on an option. */
export interface FitRemark {
  readonly problem: Problem;
  /** Whether the option is harmless. */
  readonly isNote: boolean;
}

/** A fit with the remarks on its options. */
interface RemarkedFit {
  readonly result: FitResult;
  readonly remarks: readonly FitRemark[];
}

/** Measurements of this machine, where it is the hardware. */
export interface MeasuredMachine {
  readonly profile: MachineProfile;
  readonly memoryNeed: Parameters<typeof forwardOn>[3];
}

/** Requests of a batch by default. */
const USUAL_BATCH = 32;

/**
 * Whether a model fits on hardware, and how fast it runs there. Without a GPU: common hardware on which it fits.
 * @example
 * const model = await loadModel('hybrid/recommended');
 * fit(model, { gpu: 'h100-80gb', users: 50 }).serving?.fit.verdict;
 * @throws UserError for options that contradict each other or the model, and for an unknown GPU.
 */
export function fit(model: Model, options: NamedFitOptions): FitResult & AnswerNotes;
export function fit(model: Model, options?: FitTableOptions): FitTableResult & AnswerNotes;
export function fit(
  model: Model,
  options: NamedFitOptions | FitTableOptions = {},
): (FitResult | FitTableResult) & AnswerNotes {
  requireModel(model, 'fit');
  checkOptions('fit', options, FIT_KINDS);
  const { warnings, references } = model;
  if (options.gpu === undefined) {
    return withNotes(fitOnCommonHardware(model, options), { warnings, references });
  }
  const { result, remarks } = fitOn(model, namedHardware(options), options);
  const all = [...warnings, ...remarks.map(({ problem }) => problem)];
  return withNotes(result, { warnings: all, references });
}

/** Hardware by its name. @throws UserError for an unknown one. */
export function namedHardware({ gpu, gpus, reserveBytes }: NamedFitOptions): Cluster {
  const none: Hardware = { gpus: [], machines: [] };
  if (!isProcessorName(gpu)) {
    const cluster = clusterNamed(gpu, gpus, none);
    return withGpus(cluster, (each) => withReserved(each, reserveBytes));
  }
  if (gpus === undefined && reserveBytes === undefined) return PROCESSOR;
  throw usageError(
    `${setting(gpus === undefined ? 'reserveBytes' : 'gpus')} requires a GPU, found ${setting('gpu', gpu)}`,
    'leave one of them out',
  );
}

const factsOf = ({ file, family, model }: Model) => ({
  file,
  family: family.name,
  parameters: countParameters(model).parameters,
});

/** Common hardware on which a model fits. @throws UserError for an option that requires hardware. */
export function fitOnCommonHardware(model: Model, options: FitTableOptions): FitTableResult {
  refuseContradictions(options);
  refuseWithoutHardware({ ...options });
  refuseMixOfTraining(options);
  refuseOtherBlocks(model.model, options);
  const request = tableRequestOf(model, options, options.reserveBytes);
  const setting = tableSettingOf(request);
  const rows = fitTable(model.model, request);
  return {
    schema: 'minimind/fit-table@1',
    ...factsOf(model),
    setting,
    rows,
    best: bestHardware(model.model, request, rows),
  };
}

/**
 * A model on hardware.
 * @param view.isBrief Whether proposals for what was not asked are left out.
 * @param view.found This machine, where it was looked at.
 */
export function fitOn(
  loaded: Model,
  hardware: Cluster,
  options: FitOptions,
  {
    machine,
    isBrief = false,
    found,
  }: {
    machine?: MeasuredMachine | undefined;
    isBrief?: boolean;
    found?: FoundMachine | undefined;
  } = {},
): RemarkedFit {
  refuseMixOfTraining(options);
  refuseIdleBenchmark(options);
  refuseOtherBlocks(loaded.model, options);
  const { model } = loaded;
  const { request, cluster, warnings } = calibratedRequest(loaded, hardware, options);
  const fits = fitsOf(model, { ...request, isBrief });
  const { batch, users, outputMix } = options;
  const result: FitResult = {
    schema: 'minimind/fit@1',
    ...factsOf(loaded),
    cluster,
    memory: memoryOf(cluster.gpu),
    ...(found && { found }),
    profile: machine?.profile ?? null,
    ...fits,
    ...(outputMix && { batching: batchingOf(outputMix, batch ?? users ?? USUAL_BATCH) }),
    doubts: unmetRequirementsOf({ cluster, ...fits }),
    forward: machine
      ? forwardOn(machine.profile, loaded, { context: options.context, batch }, machine.memoryNeed)
      : null,
  };
  const { notWithAxes: message } = request;
  const remarks = [
    ...warnings.map(asWarning),
    ...(message === undefined
      ? []
      : [{ problem: { severity: 'warning', file: loaded.file, message }, isNote: true } as const]),
    ...remarksOn(loaded, options, result),
  ];
  return { result, remarks };
}

const asWarning = (problem: Problem): FitRemark => ({ problem, isNote: false });

/** Remarks on options without an effect. */
function remarksOn({ file, model }: Model, options: FitOptions, fits: FitResult): FitRemark[] {
  const note = (message: string | undefined): FitRemark[] =>
    message === undefined
      ? []
      : [{ problem: { severity: 'warning', file, message }, isNote: true }];
  const { training, serving, adapters } = fits;
  const { cluster } = fits;
  return [
    ...note(
      (adapters ?? (fits.purpose === 'training' && training)) ? mixedTraining(cluster) : undefined,
    ),
    ...(adapters ? note(idleAxes(options)) : []),
    ...(training
      ? [
          ...note(idleZero(options.zero, dividersOf(parallelismOf(model, training.setting)))),
          ...idleTrainingOptions(model, training.setting, options, file).map(asWarning),
        ]
      : []),
    ...(serving
      ? [
          ...(serving.places?.isAsked ? [] : idleGpus(serving.setting, file).map(asWarning)),
          ...note(idleRam(options, serving.places !== undefined)),
        ]
      : []),
  ];
}
