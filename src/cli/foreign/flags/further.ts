/** Flags of serving programs, launchers and fine-tuning programs that come before the others. */
import type { FlagRow } from './flag-row.js';

/** A rule of llama.cpp for the experts of all layers and all three matrices: without a layer, and without a choice. */
const ALL_EXPERTS = String.raw`^(?:blk|ffn|weight|\\d|\((?:(?:gate|up|down)\|?){3}\)|[\\.*+^$_])*exps(?:weight|[\\.*+^$_])*=cpu$`;

/** Rows that come first. */
export const FURTHER_FLAGS: readonly FlagRow[] = [
  ['rank@fit', 'lora-r,lora-rank', ['peft', 'axolotl', 'llama-factory', 'litgpt']],
  ['targets@fit', 'lora-target-modules,lora-target,target-modules', ['peft', 'llama-factory']],
  ...['ot', 'override-tensor'].map(
    (name): FlagRow => ['cpu-experts=all', `${name}=~${ALL_EXPERTS}`, ['llama.cpp']],
  ),
  [
    'training-config@train-plan|fit',
    'deepspeed-config,deepspeed-config-file,config-file',
    ['deepspeed', 'accelerate'],
  ],
  [
    'offload=optimizer',
    'offload-optimizer=cpu,offload-optimizer,offload-optimizer-device=cpu,optimizer-cpu-offload,zero-offload',
    ['deepspeed', 'accelerate', 'megatron'],
  ],
  [
    'offload=parameters',
    'offload-param=cpu,offload-param,offload-param-device=cpu,fsdp-offload-params',
    ['deepspeed', 'accelerate'],
  ],
  ['cache-dtype=q8_0', 'quantkv=1', ['koboldcpp']],
  ['cache-dtype=q4_0', 'quantkv=2', ['koboldcpp']],
  ['', 'quantkv=0', ['koboldcpp']],
  ['cache-dtype', 'quant-policy', ['lmdeploy']],
  ['context', 'session-len', ['lmdeploy']],
  ['<out>@convert-checkpoint', 'work-dir', ['lmdeploy']],
  ['group', 'w-group-size', ['lmdeploy']],
  ['quantize=int4@convert-checkpoint', 'b=4.0,b=4', ['exllama']],
  ['quantize=int8@convert-checkpoint', 'b=8.0,b=8', ['exllama']],
  ['@convert-checkpoint', 'w=', ['exllama']],
  ['<model>@generate|evaluate', 'out-dir', ['nanogpt']],
  ['tokens@train-plan', 'max-tokens', ['litgpt']],
  ['@train-plan', 'train,do-train,launcher=', ['mlx', 'transformers', 'axolotl']],
  ['repeat@quick-test', 'r', ['llama.cpp']],
  ['micro-batch', 'device-batch-size', ['nanochat']],
  ['batch', 'device-batch-size', ['nanochat']],
  ['accumulation', 'ga', ['speech']],
  [
    'accumulation/batch@train-plan',
    'global-batch-size,gbs,global-train-batch-size',
    ['megatron', 'litgpt'],
  ],
  ['decay@train-plan', 'num-decay-steps', ['transformers']],
  ['<each>', 'speculative-config', ['vllm']],
  ['draft', 'speculative-config.model', ['vllm']],
  ['draft-tokens', 'speculative-config.num-speculative-tokens', ['vllm']],
  ['<none>', 'speculative-config.method=,cache-max-entry-count=', ['vllm', 'lmdeploy']],
  ['@convert-checkpoint', 'split', ['llama.cpp']],
  ['', 'torch-dtype=auto,dtype=auto', ['transformers']],
];
