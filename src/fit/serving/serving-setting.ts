/** How a model is served, and what is asked of it. */

import type { Cluster } from '../../hardware/gpu.js';
import type { Dtype } from '../../tensor/dtype.js';
import type { WeightFormat } from './weight-types.js';

/** Requests that come in. */
export interface LoadWish {
  readonly requestsPerSecond: number;
  /** 95 of 100 requests have their last token within so many seconds. */
  readonly p95Seconds: number;
}

export interface ServingFitSetting {
  readonly cluster: Cluster;
  readonly weights: WeightFormat;
  /** Of keys and values. */
  readonly cacheDtype: Dtype;
  /** Of the states of Mamba, and of the inputs that its convolution keeps. */
  readonly stateDtype: Dtype;
  /** Tokens of each sequence, prompt and output, for which there must be room. */
  readonly context: number;
  /** Sequences at a time. */
  readonly batch: number;
  /** Tokens that a request brings. */
  readonly prompt: number;
  /** Tokens that it gets. */
  readonly output: number;
  readonly load?: LoadWish | undefined;
  /** GPUs that share each layer. */
  readonly tensorParallel: number;
}
