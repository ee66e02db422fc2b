/** Training and serving of a model on some hardware, and a forward pass on this machine. */
import type { Family, TrainingHints } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { Origin } from '../budget/profile.js';
import { resolveSetting } from '../budget/profile.js';
import type { Bounds } from '../budget/quantity.js';
import type { MachineProfile } from '../hardware/machine-profile.js';
import { fitTraining } from './remedies/remedies.js';
import type { ServingFit } from './serving/serving.js';
import { fitServing } from './serving/serving.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import type { ForwardNeed, ForwardSize } from './serving/this-machine-forward.js';
import { forwardBytesOf, forwardSecondsOf } from './serving/this-machine-forward.js';
import type { TrainingFit } from './training/training.js';
import type { TrainingFitSetting } from './training/training-setting.js';

/** A loaded config, as far as a fit needs it. */
export interface ModelToFit {
  readonly family: Pick<Family, 'trainingHints'>;
  readonly document: unknown;
  readonly model: LanguageModel;
}

/** Values of the config that settings of a training default to. */
export const hintsOf = ({ family, document }: ModelToFit): TrainingHints =>
  family.trainingHints?.(document) ?? {};

/** A setting, and the origin of its sequence length. */
export interface Resolved<Setting> {
  readonly setting: Setting;
  readonly contextOrigin: Origin;
}

/** The settings to fit; null for a purpose that was not asked for. */
export interface FitRequest {
  readonly training: Resolved<TrainingFitSetting> | null;
  readonly serving:
    | (Resolved<ServingFitSetting> & {
        /** Whether the number of GPUs that share the layers is fixed. */
        readonly isSharingChosen: boolean;
      })
    | null;
}

/** Null for a purpose that was not asked for. */
export interface Fits {
  readonly training: (Resolved<TrainingFitSetting> & { readonly fit: TrainingFit }) | null;
  readonly serving: (Resolved<ServingFitSetting> & { readonly fit: ServingFit }) | null;
}

/** @throws UserError when the model cannot be spread over the GPUs as the settings ask. */
export function fitsOf(model: LanguageModel, { training, serving }: FitRequest): Fits {
  return {
    training: training && { ...training, fit: fitTraining(model, training.setting) },
    serving: serving && {
      contextOrigin: serving.contextOrigin,
      ...leastShared(model, serving.setting, serving.isSharingChosen),
    },
  };
}

/** Unless the sharing is fixed: the fewest GPUs per layer on which the model fits, else the most. */
function leastShared(
  model: LanguageModel,
  setting: ServingFitSetting,
  isFixed: boolean,
): { readonly setting: ServingFitSetting; readonly fit: ServingFit } {
  let best = { setting, fit: fitServing(model, setting) };
  if (isFixed) return best;
  for (let shared = 2; shared <= setting.cluster.gpus && best.fit.verdict !== 'fits'; shared *= 2) {
    const wider = { ...setting, tensorParallel: shared };
    best = { setting: wider, fit: fitServing(model, wider) };
  }
  return best;
}

/** A forward pass on this machine, as quick-test runs one. */
export interface MachineForward extends ForwardSize {
  readonly seconds: Bounds;
  /** Beyond what the process has before. */
  readonly bytes: Bounds;
}

/**
 * A forward pass at the size of serving, bounded by what was measured of this machine.
 * @param memoryNeed Bytes of a forward pass in an engine, as `quicktest` counts them.
 */
export function forwardOn(
  profile: MachineProfile,
  loaded: ModelToFit,
  wish: { readonly context: number | undefined; readonly batch: number | undefined },
  memoryNeed: (
    model: LanguageModel,
    size: ForwardSize,
    engine: MachineProfile['engine']['name'],
  ) => ForwardNeed,
): MachineForward {
  const { model } = loaded;
  const asked = { context: wish.context, batch: wish.batch, ...COUNTED } as const;
  const { inference } = resolveSetting(asked, hintsOf(loaded), model.positions);
  const size = { batch: inference.batch, tokens: inference.context };
  return {
    ...size,
    seconds: forwardSecondsOf(model, size, profile),
    bytes: forwardBytesOf(memoryNeed(model, size, profile.engine.name)),
  };
}

/** A setting of which only the sizes matter. */
const COUNTED = { dtype: 'f32', causal: false, optimizer: 'adamw' } as const;
