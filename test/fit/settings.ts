import { gpt2 } from '../../src/architecture/models/gpt2.js';
import type { TrainingFitSetting } from '../../src/fit/training-setting.js';
import type { Cluster } from '../../src/hardware/gpu.js';
import { gpuNamed } from '../../src/hardware/gpus.js';

export const H100 = (gpus: number): Cluster => ({
  gpu: gpuNamed('h100-80gb'),
  gpus,
  network: null,
});

/** One sequence on one GPU, nothing divided, plain, unless said otherwise. */
export const fitSetting = (wish: Partial<TrainingFitSetting> = {}): TrainingFitSetting => ({
  cluster: H100(1),
  microBatch: 1,
  context: 64,
  precision: 'mixed',
  optimizer: 'adamw',
  recompute: 'none',
  attention: 'plain',
  loss: 'full',
  zero: 0,
  convention: 'zero',
  tensorParallel: 1,
  pipelineParallel: 1,
  sequenceParallel: false,
  ...wish,
});

/** A model of GPT's shape: GELU, f = 4h, learned positions, tied head. */
export const gptLike = (config: Record<string, unknown>) =>
  gpt2.build(gpt2.schema.parse({ model: { family: 'gpt2', ...config } }));
