/** `plan` as a function: the best shape of a model for a parameter budget. */
import { usageError } from '../base/errors.js';
import { solveSweep } from '../base/sweep.js';
import { DTYPE_NAMES, type Dtype } from '../base/tensor/dtype.js';
import { clusterNamed } from '../estimate/hardware/cluster-named.js';
import type { Cluster } from '../estimate/hardware/gpu.js';
import { withReserved } from '../estimate/hardware/gpu.js';
import { CRITERION_NAMES, type CriterionName } from '../estimate/plan/criteria.js';
import { decodingTarget, missingPeakText } from '../estimate/plan/decode.js';
import type { PlanRequest } from '../estimate/plan/plan-models.js';
import { type PlanResult, planSweep, type VocabularyPlan } from '../estimate/plan/plan-sweep.js';
import type { SizeRange } from '../estimate/plan/space.js';
import { squareRootRule, type TokenizedText } from '../estimate/plan/vocabulary.js';
import { type FamilyName, loadFamily } from '../model/architecture/families.js';
import type { Exact } from '../model/budget/figure.js';
import { usualCacheDtype } from '../model/budget/profile-model.js';
import { checkOptions, type OptionKinds } from './arguments.js';
import { overridesOf, type SetOptions } from './models/describe-model.js';

/** Options of a plan without the hardware. */
export interface PlanOptions {
  readonly maxParameters: Exact;
  /** Default: 95% of the maximum, or of the largest model below it. */
  readonly minParameters?: Exact | undefined;
  /** Memory of inference. */
  readonly maxMemoryBytes?: Exact | undefined;
  /** Default: `minimind`. */
  readonly family?: FamilyName | undefined;
  /** Tokens of the vocabulary. Default: that of the family. */
  readonly vocabulary?: number | undefined;
  /** Tokens per sequence. Default: 2048. */
  readonly context?: number | undefined;
  /** Sequences per batch. Default: 1. */
  readonly batch?: number | undefined;
  /** Type of the weights, and of caches with 16 bits or more. Default: `bf16`. */
  readonly dtype?: Dtype | undefined;
  /** Default: 2 to 128 layers. */
  readonly depth?: SizeRange | undefined;
  /** Hidden sizes. Default: 64 to 65536. */
  readonly width?: SizeRange | undefined;
  /** Default: 64 and other common ones. */
  readonly headDims?: readonly number[] | undefined;
  /** Divisor of the feed-forward width. Default: 64. */
  readonly align?: 64 | 128 | undefined;
  /** Values of the config, which the search does not change. */
  readonly set?: SetOptions | undefined;
  /** Criterion of the order. Default: `balance`. */
  readonly sort?: CriterionName | undefined;
  /** Models of the answer. Default: 10. */
  readonly top?: number | undefined;
  /** Whether to compare with the rule of thumb √parameters × 100 for the vocabulary. */
  readonly squareRootRule?: boolean | undefined;
}

/** Options of a plan, with the hardware by name. */
export interface NamedPlanOptions extends PlanOptions {
  /** The GPU for decoding speeds. */
  readonly gpu?: string | undefined;
  /** Memory of the GPU for other programs. */
  readonly reserveBytes?: number | undefined;
}

/** Options by default. */
export const PLAN_DEFAULTS = {
  family: 'minimind',
  context: 2048,
  batch: 1,
  dtype: 'bf16',
  sort: 'balance',
  top: 10,
} as const satisfies Partial<PlanOptions>;

const PLAN_KINDS: OptionKinds<NamedPlanOptions> = {
  maxParameters: 'amount',
  minParameters: 'amount',
  maxMemoryBytes: 'amount',
  family: 'text',
  vocabulary: 'count',
  context: 'count',
  batch: 'count',
  dtype: DTYPE_NAMES,
  depth: 'other',
  width: 'other',
  headDims: 'list',
  align: 'count',
  set: 'other',
  sort: CRITERION_NAMES,
  top: 'count',
  squareRootRule: 'flag',
  gpu: 'text',
  reserveBytes: 'amount',
};

/**
 * The best shapes of a model for a parameter budget, by depth, width, heads and feed-forward width.
 * @example
 * const { rows } = await plan({ maxParameters: 26e6, vocabulary: 6400, gpu: 'h100-80gb' });
 * const model = await describeModel(rows[0].document);
 * @throws UserError when no model has these parameters, or an option contradicts another.
 */
export async function plan(given: NamedPlanOptions): Promise<PlanResult> {
  checkOptions('plan', given, PLAN_KINDS);
  if (given.maxParameters === undefined) {
    throw usageError('plan: maxParameters is missing', 'write plan({ maxParameters: 26e6 })');
  }
  const { gpu, reserveBytes, ...options } = given;
  const cluster = gpu === undefined ? undefined : clusterNamed(gpu, 1, { gpus: [], machines: [] });
  const request = planRequest(
    options,
    overridesOf(options.set),
    cluster && { ...cluster, gpu: withReserved(cluster.gpu, reserveBytes) },
  );
  const sweep = await planSweepOf(options, request, undefined);
  return planResult(options, await solveSweep(sweep));
}

/** @param set Overrides as texts. */
export function planRequest(
  options: PlanOptions,
  set: readonly string[],
  cluster: Cluster | undefined,
): PlanRequest {
  const { dtype = PLAN_DEFAULTS.dtype } = options;
  const inference = {
    batch: options.batch ?? PLAN_DEFAULTS.batch,
    context: options.context ?? PLAN_DEFAULTS.context,
    dtype,
    cacheDtype: usualCacheDtype(dtype),
  };
  const { maxParameters, minParameters, vocabulary, depth, width, headDims, align } = options;
  return {
    ...{ maxParameters, minParameters, vocabulary, depth, width, headDims, align, set, inference },
    maxMemory: options.maxMemoryBytes,
    sort: options.sort ?? PLAN_DEFAULTS.sort,
    top: options.top ?? PLAN_DEFAULTS.top,
    ...(cluster && {
      gpu: cluster.gpu.name,
      decode: decodingTarget(cluster, inference),
      withoutPeak: missingPeakText(cluster, inference),
    }),
  };
}

/** The plan as work on single widths. @param texts A text under several tokenizers. */
export const planSweepOf = async (
  { family = PLAN_DEFAULTS.family }: PlanOptions,
  request: PlanRequest,
  texts: readonly TokenizedText[] | undefined,
) => planSweep(await loadFamily(family), request, texts);

/** The answer with what was found. */
export function planResult(
  options: PlanOptions,
  { plan: found, vocabularies }: VocabularyPlan,
): PlanResult {
  const [best] = found.rows;
  return {
    schema: 'minimind/plan@1',
    ...found,
    ...(vocabularies && { vocabularies }),
    ...(options.squareRootRule &&
      best && { squareRootRule: squareRootRule(options.maxParameters, best.sizes.width) }),
  };
}
