/** What `minimind fit` is asked, as flags, and what that comes to. */
import * as Flags from '@oclif/core/flags';
import type { TrainingHints } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { AttentionKernel, LossKernel } from '../budget/activation-setting.js';
import type { Origin } from '../budget/profile.js';
import { resolveSetting } from '../budget/profile.js';
import type { Bounds } from '../budget/quantity.js';
import { OPTIMIZER_NAMES, type Optimizer } from '../budget/training.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { fitTraining } from '../fit/remedies/remedies.js';
import { fitServing, type ServingFit } from '../fit/serving/serving.js';
import type { ServingFitSetting } from '../fit/serving/serving-work.js';
import {
  type ForwardSize,
  forwardBytesOf,
  forwardSecondsOf,
} from '../fit/serving/this-machine-forward.js';
import {
  parseWeightDtype,
  usualFormat,
  WEIGHT_DTYPE_NAMES,
  WEIGHT_DTYPES,
  type WeightDtype,
} from '../fit/serving/weight-types.js';
import type { TrainingFit } from '../fit/training/training.js';
import {
  CONVENTIONS,
  type Convention,
  type TrainingFitSetting,
  type ZeroStage,
} from '../fit/training/training-setting.js';
import type { Cluster } from '../hardware/gpu.js';
import type { MachineProfile } from '../hardware/machine-profile.js';
import type { ServedType } from '../quantization/quantization-config.js';
import type { Dtype } from '../tensor/dtype.js';
import {
  count,
  countLimit,
  dtype,
  duration,
  positive,
  settingFlags,
  share,
  typeSuggestion,
} from './flags.js';
import type { ModelFile } from './model-file.js';

const TRAINING = { helpGroup: 'TRAINING' };
const SERVING = { helpGroup: 'SERVING' };
const SPREAD = { helpGroup: 'HARDWARE' };

const CONVENTION_NAMES = Object.keys(CONVENTIONS) as Convention[];
const ZERO = ['0', '1', '2', '3'] as const;

export const PURPOSES = ['training', 'serving'] as const;

/** `--dtype q4_k_m`, by any of a type's usual names. */
const weightDtype = Flags.custom<WeightDtype>({
  helpValue: 'TYPE',
  parse: async (text, _context, { name }) => {
    const parsed = parseWeightDtype(text);
    if (parsed) return parsed;
    throw new UserError(
      'usage',
      `--${name}: ${quote(text)} is not a type that weights are served in`,
      {
        suggestion: typeSuggestion(text, WEIGHT_DTYPE_NAMES, parseWeightDtype),
      },
    );
  },
});

/** Of what is asked: training, serving, or both. */
export const fitFlags = {
  context: settingFlags.context,
  'tensor-parallel': count({ ...SPREAD, description: 'GPUs that share each layer [default: 1]' }),

  'micro-batch': count({
    ...TRAINING,
    description: 'sequences that a replica computes at a time [default: as in the file, or 1]',
  }),
  precision: { ...settingFlags.precision, ...TRAINING },
  optimizer: Flags.option({
    ...TRAINING,
    options: OPTIMIZER_NAMES,
    default: 'adamw',
    description: 'optimizer of the training',
  } as const)(),
  recompute: { ...settingFlags.recompute, ...TRAINING },
  attention: Flags.option({
    ...TRAINING,
    options: ['fused', 'plain'],
    default: 'fused',
    description: 'kernels of attention and scan: fused ones keep neither scores nor states',
  } as const)(),
  loss: Flags.option({
    ...TRAINING,
    options: ['full', 'chunked'],
    default: 'full',
    description:
      'logits of all tokens at a time, or of some, as kernels fused with the head take it',
  } as const)(),
  dropout: Flags.boolean({ ...TRAINING, description: 'count what dropout keeps' }),
  zero: Flags.option({
    ...TRAINING,
    options: ZERO,
    description: 'ZeRO stage: what the replicas split among them [default: as in the file, or 0]',
  } as const)(),
  convention: Flags.option({
    ...TRAINING,
    options: CONVENTION_NAMES,
    default: 'zero',
    description: 'gradients in the type of the weights (zero), or in float32 (megatron)',
  } as const)(),
  'pipeline-parallel': count({ ...TRAINING, description: 'stages of blocks [default: 1]' }),
  'sequence-parallel': Flags.boolean({
    ...TRAINING,
    description: 'split the residual stream among the GPUs that share a layer',
    dependsOn: ['tensor-parallel'],
  }),
  'global-batch': countLimit({
    ...TRAINING,
    description: 'tokens of a step of the optimizer, as in 4M [default: one micro-batch a stage]',
  }),
  'train-tokens': countLimit({
    ...TRAINING,
    description: 'tokens of the whole training, as in 300e9: tells its steps and time',
  }),
  mfu: share({
    ...TRAINING,
    helpValue: 'SHARE',
    description: 'model FLOPs utilisation to expect, as in 0.4',
  }),

  dtype: weightDtype({
    ...SERVING,
    description:
      'element type of the weights: f32, bf16, f16, f8, int8, int4, mxfp4, nvfp4, or a type of GGUF files, as q4_k_m [default: that of quantization_config, or bf16]',
  }),
  'group-size': count({
    ...SERVING,
    description: 'values of a row with a scale of their own [default: 128 for int4, else the row]',
  }),
  'scale-dtype': dtype({
    ...SERVING,
    description: 'of the scales [default: f16 for int4, else f32]',
  }),
  'cache-dtype': dtype({
    ...SERVING,
    description: 'of keys and values [default: bf16, or f32 with weights of f32]',
  }),
  batch: count({ ...SERVING, description: 'sequences at a time [default: 1]' }),
  prompt: count({ ...SERVING, description: 'tokens that a request brings' }),
  output: count({ ...SERVING, description: 'tokens that it gets' }),
  qps: positive({
    ...SERVING,
    helpValue: 'N',
    description: 'requests per second that come in',
    dependsOn: ['p95'],
  }),
  p95: duration({
    ...SERVING,
    description: 'within which 95 of 100 requests have their last token, as in 500ms',
    dependsOn: ['qps'],
  }),
};

/** What `fitFlags` parse to. */
export interface FitFlags {
  readonly for: (typeof PURPOSES)[number] | undefined;
  readonly context: number | undefined;
  readonly 'tensor-parallel': number | undefined;
  readonly 'micro-batch': number | undefined;
  readonly precision: 'mixed' | 'float32' | undefined;
  readonly optimizer: Optimizer;
  readonly recompute: 'none' | 'selective' | 'full' | undefined;
  readonly attention: AttentionKernel;
  readonly loss: LossKernel;
  readonly dropout: boolean | undefined;
  readonly zero: (typeof ZERO)[number] | undefined;
  readonly convention: Convention;
  readonly 'pipeline-parallel': number | undefined;
  readonly 'sequence-parallel': boolean | undefined;
  readonly 'global-batch': number | bigint | undefined;
  readonly 'train-tokens': number | bigint | undefined;
  readonly mfu: number | undefined;
  readonly dtype: WeightDtype | undefined;
  readonly 'group-size': number | undefined;
  readonly 'scale-dtype': Dtype | undefined;
  readonly 'cache-dtype': Dtype | undefined;
  readonly batch: number | undefined;
  readonly prompt: number | undefined;
  readonly output: number | undefined;
  readonly qps: number | undefined;
  readonly p95: number | undefined;
}

/** A setting, and who says how long a sequence is. */
interface Resolved<Setting> {
  readonly setting: Setting;
  readonly contextOrigin: Origin;
}

/**
 * The flag before the file before the default.
 * @param positions The longest input of the model.
 * @throws UserError when the context is longer than that.
 */
function trainingSettingOf(
  flags: FitFlags,
  hints: TrainingHints,
  positions: number,
  cluster: Cluster,
): Resolved<TrainingFitSetting> {
  refuseLoneSequence(flags);
  const { context, precision, optimizer, recompute } = flags;
  const wish = { context, precision, optimizer, recompute, batch: flags['micro-batch'] } as const;
  const resolved = resolveSetting({ ...wish, dtype: 'bf16', causal: false }, hints, positions);
  const { batch: microBatch, ...training } = resolved.training;
  return {
    contextOrigin: resolved.origins.context,
    setting: {
      ...training,
      cluster,
      microBatch,
      attention: flags.attention,
      loss: flags.loss,
      dropout: flags.dropout ?? false,
      zero: Number(flags.zero ?? hints.zeroStage ?? 0) as ZeroStage,
      convention: flags.convention,
      tensorParallel: flags['tensor-parallel'] ?? 1,
      pipelineParallel: flags['pipeline-parallel'] ?? 1,
      sequenceParallel: flags['sequence-parallel'] ?? false,
      globalBatchTokens: tokensOf(flags, 'global-batch'),
      trainTokens: tokensOf(flags, 'train-tokens'),
      mfu: flags.mfu,
    },
  };
}

/** What is shared by tokens is shared by the GPUs that share the layers. */
function refuseLoneSequence(flags: FitFlags): void {
  if (!flags['sequence-parallel'] || flags['tensor-parallel'] !== 1) return;
  throw new UserError('usage', '--sequence-parallel: no GPUs share the layers', {
    suggestion: 'write --tensor-parallel with 2 or more, or leave it out',
  });
}

/** Tokens are never so many that a double could not count them, or nobody could ever train on them. */
function tokensOf(flags: FitFlags, flag: 'global-batch' | 'train-tokens'): number | undefined {
  const value = flags[flag];
  if (value === undefined) return undefined;
  if (Number(value) > 0) return Number(value);
  throw new UserError('usage', `--${flag}: no tokens are nothing to train on`, {
    suggestion: `write a number of them, as in --${flag} 4M`,
  });
}

/** Of the context, when nobody says how many tokens a request gets. */
const USUAL_OUTPUT = 128;

/**
 * The same for serving: a request's prompt and output make the context, unless that is said.
 * @throws UserError when they do not fit together, or are more than the model takes.
 */
function servingSettingOf(
  flags: FitFlags,
  hints: TrainingHints,
  positions: number,
  cluster: Cluster,
  stored: ServedType | undefined,
): Resolved<ServingFitSetting> {
  const { prompt, output } = flags;
  const dtype = flags.dtype ?? stored?.dtype ?? 'bf16';
  const both = prompt !== undefined && output !== undefined ? prompt + output : undefined;
  const wish = {
    context: flags.context ?? both,
    dtype: 'bf16',
    causal: true,
    optimizer: 'adamw',
  } as const;
  const { inference, origins } = resolveSetting(wish, hints, positions);
  const { context } = inference;
  const gets = output ?? Math.min(USUAL_OUTPUT, Math.ceil(context / 2));
  const brings = prompt ?? context - gets;
  refuseTooLong(brings, gets, context);
  const usual = usualFormat(dtype);
  const storedGroup = flags.dtype === undefined ? stored?.group : undefined;
  refuseGroups(flags, dtype);
  return {
    contextOrigin: both !== undefined && flags.context === undefined ? 'flag' : origins.context,
    setting: {
      cluster,
      weights: {
        ...usual,
        groupSize: flags['group-size'] ?? storedGroup ?? usual.groupSize,
        scaleDtype: flags['scale-dtype'] ?? usual.scaleDtype,
      },
      cacheDtype: flags['cache-dtype'] ?? (dtype === 'f32' ? 'f32' : 'bf16'),
      stateDtype: 'f32',
      context,
      batch: flags.batch ?? 1,
      prompt: brings,
      output: gets,
      load:
        flags.qps === undefined || flags.p95 === undefined
          ? undefined
          : { requestsPerSecond: flags.qps, p95Seconds: flags.p95 },
      tensorParallel: flags['tensor-parallel'] ?? 1,
    },
  };
}

/** What is not quantised has no groups. */
function refuseGroups(flags: FitFlags, dtype: WeightDtype): void {
  const flag = (['group-size', 'scale-dtype'] as const).find((each) => flags[each] !== undefined);
  if (flag === undefined || WEIGHT_DTYPES[dtype].usual) return;
  const why = WEIGHT_DTYPES[dtype].blocks ? 'have the scales of their blocks' : 'have no scales';
  throw new UserError('usage', `--${flag}: weights in ${dtype} ${why}`, {
    suggestion: 'leave it out, or ask for --dtype int4, int8 or f8',
  });
}

function refuseTooLong(prompt: number, output: number, context: number): void {
  if (prompt > 0 && prompt + output <= context) return;
  throw new UserError(
    'usage',
    `a prompt of ${prompt} and an output of ${output} tokens do not fit into a context of ${context}`,
    { suggestion: `ask for --context ${Math.max(1, prompt) + output}, or for less` },
  );
}

/** What is asked of a model on some hardware: null for what is not. */
export interface Fits {
  readonly training: (Resolved<TrainingFitSetting> & { readonly fit: TrainingFit }) | null;
  readonly serving: (Resolved<ServingFitSetting> & { readonly fit: ServingFit }) | null;
}

/** What a flag of the other purpose would change, if it was asked. */
const GROUPS = {
  training: TRAINING.helpGroup,
  serving: SERVING.helpGroup,
} as const satisfies Record<(typeof PURPOSES)[number], string>;

/** @throws UserError when a flag is written that says nothing of what is asked. */
function refuseForeign(flags: FitFlags): void {
  const { for: purpose } = flags;
  if (purpose === undefined) return;
  const [other] = PURPOSES.filter((each) => each !== purpose);
  if (other === undefined) return;
  const foreign = Object.entries(fitFlags).find(([name, flag]) => {
    const value = flags[name as keyof typeof fitFlags];
    const isWritten = value !== undefined && value !== false && value !== flag.default;
    return flag.helpGroup === GROUPS[other] && isWritten;
  });
  if (foreign === undefined) return;
  throw new UserError(
    'usage',
    `--${foreign[0]} is of ${other}: with --for ${purpose} it changes nothing`,
    { suggestion: `leave it out, or ask for --for ${other}, or for both without --for` },
  );
}

/**
 * @throws UserError when the flags do not go together or are of what is not asked, or the model cannot be spread so.
 */
export function fitsOf(
  {
    family,
    document,
    model,
    quantization,
  }: Pick<ModelFile, 'family' | 'document' | 'model' | 'quantization'>,
  cluster: Cluster,
  flags: FitFlags,
): Fits {
  refuseForeign(flags);
  const hints = family.trainingHints?.(document) ?? {};
  const { positions } = model;
  const training = () => {
    const resolved = trainingSettingOf(flags, hints, positions, cluster);
    return { ...resolved, fit: fitTraining(model, resolved.setting) };
  };
  const serving = () => {
    const resolved = servingSettingOf(flags, hints, positions, cluster, quantization?.served);
    const { setting, fit } = leastShared(model, resolved.setting, flags['tensor-parallel']);
    return { ...resolved, setting, fit };
  };
  return {
    training: flags.for === 'serving' ? null : training(),
    serving: flags.for === 'training' ? null : serving(),
  };
}

/** Where nobody says how many GPUs share the layers: the fewest on which it fits, else as many as can. */
function leastShared(
  model: LanguageModel,
  setting: ServingFitSetting,
  wish: number | undefined,
): { readonly setting: ServingFitSetting; readonly fit: ServingFit } {
  let best = { setting, fit: fitServing(model, setting) };
  if (wish !== undefined) return best;
  for (let shared = 2; shared <= setting.cluster.gpus && best.fit.verdict !== 'fits'; shared *= 2) {
    const wider = { ...setting, tensorParallel: shared };
    best = { setting: wider, fit: fitServing(model, wider) };
  }
  return best;
}

/** A forward pass on this machine, as quick-test runs one. */
export interface MachineForward extends ForwardSize {
  readonly seconds: Bounds;
  /** More than the process has before. */
  readonly bytes: Bounds;
}

/** Bounded by what was measured of this machine, at the size that is asked of serving. */
export async function forwardOn(
  profile: MachineProfile,
  { family, document, model }: Pick<ModelFile, 'family' | 'document' | 'model'>,
  flags: FitFlags,
): Promise<MachineForward> {
  const { memoryNeed } = await import('../quicktest/memory.js');
  const hints = family.trainingHints?.(document) ?? {};
  const wish = { context: flags.context, batch: flags.batch, ...COUNTED } as const;
  const { batch, context: tokens } = resolveSetting(wish, hints, model.positions).inference;
  const size = { batch, tokens };
  return {
    ...size,
    seconds: forwardSecondsOf(model, size, profile),
    bytes: forwardBytesOf(memoryNeed(model, size, profile.engine.name)),
  };
}

/** What a setting is resolved for, where only its sizes are asked. */
const COUNTED = { dtype: 'f32', causal: false, optimizer: 'adamw' } as const;
