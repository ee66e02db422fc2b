/** Options that several functions take. */
import {
  CACHE_DTYPE_NAMES,
  type CacheDtype,
  DTYPE_NAMES,
  type Dtype,
} from '../base/tensor/dtype.js';
import { RECOMPUTES, type Recompute } from '../model/budget/flops.js';
import {
  OPTIMIZER_NAMES,
  type Optimizer,
  PRECISION_NAMES,
  type Precision,
} from '../model/budget/optimizers.js';
import type { OptionKinds } from './arguments.js';

/** Sizes and types that a profile is counted for. A missing one is as in the config, or has its usual value. */
export interface SettingOptions {
  /** Sequences per batch. Default: 1, in training as in the config. */
  readonly batch?: number | undefined;
  /** Tokens per sequence. Default: as in the config, or 2048. */
  readonly context?: number | undefined;
  /** Type of the weights in inference. Default: as stored, or `bf16`. */
  readonly dtype?: Dtype | undefined;
  /** Type of keys, values and states. Default: that of the weights, with 16 bits or more. */
  readonly cacheDtype?: CacheDtype | undefined;
  /** Whether only unmasked attention scores count. */
  readonly causal?: boolean | undefined;
  /** Precision of the training. Default: as in the config, or `mixed`. */
  readonly precision?: Precision | undefined;
  /** Optimizer of the training. Default: `adamw`. */
  readonly optimizer?: Optimizer | undefined;
  /** Activations of the training that are computed again. Default: as in the config, or `none`. */
  readonly recompute?: Recompute | undefined;
}

/** Kinds of the values of a setting. */
export const SETTING_KINDS: OptionKinds<SettingOptions> = {
  batch: 'count',
  context: 'count',
  dtype: DTYPE_NAMES,
  cacheDtype: CACHE_DTYPE_NAMES,
  causal: 'flag',
  precision: PRECISION_NAMES,
  optimizer: OPTIMIZER_NAMES,
  recompute: Object.keys(RECOMPUTES),
};
