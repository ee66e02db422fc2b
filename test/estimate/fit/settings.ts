import type { TrainingFitSetting } from '../../../src/estimate/fit/training/training-setting.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import type { Cluster } from '../../../src/estimate/hardware/gpu.js';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { gpt2 } from '../../../src/model/architecture/models/gpt2.js';

export const H100 = (gpus: number): Cluster => ({
  gpu: gpuNamed('h100-80gb'),
  gpus,
  network: null,
});

/** H100s with a network between machines of eight. */
export const DGX_H100 = (gpus: number): Cluster =>
  clusterNamed('dgx-h100', gpus, { gpus: [], machines: [] });

/** One sequence on one GPU, without parallelism or savings, and with these changes. */
export const fitSetting = (changes: Partial<TrainingFitSetting> = {}): TrainingFitSetting => ({
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
  ...changes,
});

/** A model with the shape of GPT: GELU, f = 4h, learned positions, tied head. */
export const gptLike = (config: Record<string, unknown>) =>
  gpt2.build(gpt2.schema.parse({ model: { family: 'gpt2', ...config } }));

/** Sizes of a small qwen3_moe model. */
export const SMALL_MIXTURE = {
  vocab_size: 500,
  hidden_size: 64,
  intermediate_size: 128,
  moe_intermediate_size: 32,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 16,
  num_experts: 8,
  num_experts_per_tok: 2,
  max_position_embeddings: 512,
} as const;
