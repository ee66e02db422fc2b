/** The YAML of accelerate: the launch of a training, without its model and batch. */
import { isRecord } from '../../../base/values.js';
import { ACCELERATE_KEYS, AXOLOTL_FSDP_KEYS } from '../known-keys.js';
import { count, meaning, switchOf, type TrainingProgram } from '../program.js';
import { deepspeedFileMeaning, fsdpOf } from './shared-values.js';

const isFsdp = (division: string | undefined) => division !== undefined && /sdp/.test(division);

const PLUGIN = [
  ...['zero_stage', 'gradient_accumulation_steps', 'gradient_clipping', 'offload_optimizer_device'],
  ...['offload_param_device', 'zero3_init_flag', 'zero3_save_16bit_model', 'deepspeed_config_file'],
  ...['deepspeed_multinode_launcher', 'deepspeed_hostfile', 'deepspeed_moe_layer_cls_names'],
];

export const ACCELERATE: TrainingProgram = {
  title: 'accelerate',
  version: '1.15.0.dev0',
  source:
    'huggingface/accelerate, commit 16cb6eb8 (2026-07-24): src/accelerate/commands/config/config_args.py, commands/launch.py, utils/dataclasses.py',
  rows: [
    meaning(
      'distributed_type',
      (value) => (typeof value === 'string' ? {} : undefined),
      ({ division, gpus = 1 }) =>
        isFsdp(division)
          ? 'FSDP'
          : division && division !== '0'
            ? 'DEEPSPEED'
            : gpus > 1
              ? 'MULTI_GPU'
              : 'NO',
    ),
    meaning(
      'mixed_precision',
      (value) =>
        value === 'bf16'
          ? { bf16: true }
          : value === 'fp16'
            ? { fp16: true }
            : value === 'fp8'
              ? { fp8: true, bf16: true }
              : value === 'no' || value === false
                ? {}
                : undefined,
      ({ fp8, bf16, fp16 }) => (fp8 ? 'fp8' : bf16 ? 'bf16' : fp16 ? 'fp16' : 'no'),
    ),
    // commands/config/config_args.py: -1 is no number.
    count('num_processes', 'gpus', { '-1': 'the launcher decides' }),
    meaning(
      'fsdp_config',
      (value, { distributed_type: type }) =>
        value === null || (isRecord(value) && type !== 'FSDP')
          ? {}
          : isRecord(value)
            ? fsdpOf(true, value, undefined)
            : undefined,
      ({ division, offloadParameters, recompute }) =>
        isFsdp(division)
          ? {
              fsdp_version: division === 'fsdp2' ? 2 : 1,
              fsdp_auto_wrap_policy: 'TRANSFORMER_BASED_WRAP',
              ...(division === 'fsdp2'
                ? { fsdp_reshard_after_forward: true }
                : { fsdp_sharding_strategy: division === 'hsdp' ? 'HYBRID_SHARD' : 'FULL_SHARD' }),
              fsdp_state_dict_type: 'SHARDED_STATE_DICT',
              fsdp_offload_params: offloadParameters === true,
              ...(recompute === 'full' && { fsdp_activation_checkpointing: true }),
            }
          : undefined,
    ),
    meaning(
      'deepspeed_config',
      (value) => {
        if (!isRecord(value)) return value === null ? {} : undefined;
        const { zero_stage: stage, deepspeed_config_file: file } = value;
        const accumulation = count('', 'accumulation').read(
          value.gradient_accumulation_steps,
          value,
        );
        return {
          ...(typeof file === 'string' && deepspeedFileMeaning(file)),
          ...(typeof stage === 'number' &&
            stage >= 0 &&
            stage <= 3 && { division: `${stage}` as '0' }),
          ...accumulation,
          ...(value.offload_optimizer_device === 'cpu' && { offloadOptimizer: true }),
          ...(value.offload_param_device === 'cpu' && { offloadParameters: true }),
          ...(typeof value.gradient_clipping === 'number' && {
            gradientClip: value.gradient_clipping,
          }),
        };
      },
      ({ division = '0', accumulation, gradientClip, offloadOptimizer, offloadParameters }) =>
        /^[123]$/.test(division)
          ? {
              zero_stage: Number(division),
              ...(accumulation !== undefined && { gradient_accumulation_steps: accumulation }),
              ...(gradientClip !== undefined && { gradient_clipping: gradientClip }),
              offload_optimizer_device: offloadOptimizer ? 'cpu' : 'none',
              offload_param_device: offloadParameters ? 'cpu' : 'none',
              ...(division === '3' && { zero3_init_flag: true, zero3_save_16bit_model: true }),
            }
          : undefined,
    ),
    meaning('parallelism_config', (value) => {
      if (!isRecord(value)) return value === null ? {} : undefined;
      const size = (key: string) => {
        const number = value[`parallelism_config_${key}`] ?? value[key];
        return typeof number === 'number' && number >= 1 ? number : undefined;
      };
      const [tp, cp, shard, replicate] = [
        'tp_size',
        'cp_size',
        'dp_shard_size',
        'dp_replicate_size',
      ].map(size);
      return {
        ...(tp !== undefined && { tensorParallel: tp }),
        ...(cp !== undefined && { contextParallel: cp }),
        ...(shard !== undefined && { dataParallel: shard * (replicate ?? 1) }),
        ...((replicate ?? 1) > 1 && (shard ?? 1) > 1 && { division: 'hsdp' as const }),
      };
    }),
    meaning('use_cpu', (value) => (switchOf(value) === false ? {} : undefined)),
  ],
  uncounted: ['dynamo_config', 'megatron_lm_config', 'fp8_config'],
  known: [
    ...ACCELERATE_KEYS,
    ...AXOLOTL_FSDP_KEYS.map((key) => `fsdp_config.${key}`),
    ...PLUGIN.map((key) => `deepspeed_config.${key}`),
  ],
  open: [
    'fsdp_config',
    'deepspeed_config',
    'parallelism_config',
    'dynamo_config',
    'megatron_lm_config',
    'fp8_config',
    'mpirun_config',
    'tpu_env',
    'use_parallelism_config',
    'downcast_bf16',
  ],
  defaults: { kind: 'training' },
  recognises: ({ value }) =>
    Object.hasOwn(value, 'distributed_type') &&
    [
      'num_processes',
      'compute_environment',
      'mixed_precision',
      'fsdp_config',
      'deepspeed_config',
    ].some((key) => Object.hasOwn(value, key)),
};
