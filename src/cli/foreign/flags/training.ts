/** Memory, optimizers, steps and rates of a training. */
import { type FlagRow, ofStage } from './flag-row.js';

/** Rows of training. */
export const TRAINING: readonly FlagRow[] = [
  [
    'recompute',
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,recompute-granularity',
    ['megatron', 'speech'],
  ],
  ['recompute=selective', 'recompute-granularity=selective,recompute-activations', ['megatron']],
  [
    'recompute=full',
    'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation,grad-checkpointing,' +
      'use-gradient-checkpointing,use-gradient-checkpointing=unsloth,gradient-checkpointing=unsloth,grad-ckpt,' +
      'checkpoint-activations,enable-activation-checkpointing,grad-checkpoint,enable-gradient-checkpointing',
    ['transformers', 'deepspeed', 'megatron', 'axolotl', 'unsloth', 'torchtune', 'mlx', 'speech'],
  ],
  [
    'recompute=none',
    'no-gradient-checkpointing,no-activation-checkpointing,no-checkpointing,no-recompute,no-recomputation,' +
      'disable-gradient-checkpointing',
    ['llama-factory', 'speech'],
  ],
  [
    'zero',
    'zero-stage,stage,deepspeed,deepspeed-stage,zero-optimization,ds-stage,zero-opt-level,zero-optimization-stage',
    ['accelerate', 'deepspeed', 'speech'],
  ],
  [
    'zero=1',
    `zero1,zero-stage1,stage1,use-distributed-optimizer,deepspeed=${ofStage(1)}`,
    ['megatron', 'axolotl', 'deepspeed'],
  ],
  [
    'zero=2',
    'zero2,zero-stage2,stage2,fsdp=shard-grad-op,sharding-strategy=shard-grad-op,fsdp-sharding-strategy=shard-grad-op,' +
      `fsdp-sharding-strategy=2,deepspeed=${ofStage(2)}`,
    ['fsdp', 'accelerate', 'transformers', 'axolotl', 'llama-factory'],
  ],
  [
    'zero=3',
    'fsdp=full-shard,sharding-strategy=full-shard,fsdp-sharding-strategy=full-shard,' +
      'fsdp-sharding-strategy=1,' +
      'fsdp=~^["\']?full_shard,zero3,zero-stage3,stage3,fsdp,fsdp2,full-shard,use-fsdp,' +
      `deepspeed=${ofStage(3)}`,
    ['fsdp', 'accelerate', 'transformers', 'axolotl', 'llama-factory'],
  ],
  [
    'zero=hsdp',
    'fsdp=hybrid-shard,fsdp-sharding-strategy=hybrid-shard,sharding-strategy=hybrid-shard,fsdp-sharding-strategy=4,' +
      'hsdp,hybrid-shard',
    ['fsdp', 'accelerate', 'transformers'],
  ],
  [
    'zero=0',
    'no-zero,sharding-strategy=no-shard,fsdp-sharding-strategy=no-shard,fsdp-sharding-strategy=3,ddp,' +
      `deepspeed=${ofStage(0)}`,
    ['fsdp', 'accelerate', 'llama-factory', 'speech'],
  ],
  // A config without a stage in its name, which is read.
  [
    'training-config@train-plan|fit',
    'deepspeed=~\\.(?:json|ya?ml)$',
    ['transformers', 'axolotl', 'llama-factory'],
  ],
  [
    'optimizer',
    'optim,opt,optimiser,optimizer-type,optimizer-name,optim-type',
    ['transformers', 'axolotl', 'speech'],
  ],
  [
    'optimizer=adamw-8bit',
    'adam8bit,8bit-adam,adamw8bit,8bit-optimizer,use-8bit-adam,use-8bit-optimizer',
    ['speech'],
  ],
  [
    'lr',
    'learning-rate,learn-rate,learningrate,max-lr,peak-lr,base-lr,rate,projector-lr,lr-max,max-learning-rate,optimizer-lr',
    ['transformers', 'axolotl', 'nanogpt', 'minimind', 'speech'],
  ],
  ['linear-lr', 'linear-learning-rate,lr-linear', ['speech']],
  ['elastic-lr', 'elastic-learning-rate,mlp-lr,mlp-learning-rate,lr-elastic', ['speech']],
  [
    'schedule',
    'scheduler,lr-scheduler,lr-scheduler-type,lr-schedule,lr-decay-style,lr-decay,lr-policy,scheduler-type',
    ['transformers', 'axolotl', 'megatron', 'speech'],
  ],
  [
    'warmup',
    'warmup-steps,num-warmup-steps,warmup-ratio,warmup-iters,lr-warmup-iters,warmup-share,warmup-proportion,' +
      'lr-warmup-steps,lr-warmup-fraction,warmup-num-steps,warmup-fraction,warm-up-steps,warmup-percent',
    [
      'transformers',
      'accelerate',
      'deepspeed',
      'megatron',
      'axolotl',
      'nanogpt',
      'litgpt',
      'speech',
    ],
  ],
  ['weight-decay', 'wd,decay', ['speech']],
  [
    'repeat',
    'repetitions,num-iters,n-repeat,runs,num-runs,iterations,rounds',
    ['llama.cpp', 'vllm', 'speech'],
  ],
  [
    'steps',
    'max-steps,train-steps,num-training-steps,iters,max-iters,total-steps,train-iters,num-steps,n,training-steps,n-steps,' +
      'max-iterations,max-train-steps,total-num-steps,num-iterations,iterations,training-iters',
    ['transformers', 'accelerate', 'deepspeed', 'megatron', 'nanogpt', 'mlx', 'litgpt', 'speech'],
  ],
  [
    'epochs',
    'num-train-epochs,num-epochs,epoch,e,max-epochs,train-epochs,n-epochs,total-epochs',
    ['transformers', 'axolotl', 'litgpt', 'minimind', 'speech'],
  ],
  [
    'data',
    'dataset,train-data,train-file,data-path,corpus,train-dataset,datasets,data-dir,training-data,train-data-path,' +
      'dataset-path,dataset-name',
    [
      'transformers',
      'megatron',
      'axolotl',
      'llama-factory',
      'nanogpt',
      'minimind',
      'unsloth',
      'speech',
    ],
  ],
];
