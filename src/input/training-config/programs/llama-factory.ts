/** LLaMA-Factory's YAML: of its trainer, of its version 1, and with Megatron. */
import { asNumber, asText, isRecord } from '../../../base/values.js';
import {
  LLAMA_FACTORY_1_KEYS,
  LLAMA_FACTORY_KEYS,
  TRANSFORMERS_KEYS,
  TRANSFORMERS_OLD_KEYS,
} from '../known-keys.js';
import {
  amount,
  count,
  meaning,
  onOff,
  switchOf,
  type TrainingProgram,
  textRow,
} from '../program.js';
import { deepspeedFileMeaning, fsdpOf, optimizerMeaning, targetsOf } from './shared-values.js';
import { TRAINER_DEFAULTS, TRAINER_OPEN, TRAINER_ROWS, TRAINER_UNCOUNTED } from './transformers.js';

const SOURCE = 'hiyouga/LLaMA-Factory, commit ff6d4d12 (2026-08-18)';

const model = textRow('model_name_or_path', 'model');
const context = count('cutoff_len', 'context');

const isQuantized = (document: Readonly<Record<string, unknown>>) =>
  asNumber(document.quantization_bit) === 4;

export const LLAMA_FACTORY: TrainingProgram = {
  title: 'LLaMA-Factory',
  version: '0.9.6.dev0',
  source: `${SOURCE}: src/llamafactory/hparams`,
  rows: [
    model,
    {
      ...meaning('finetuning_type', (value, document) => {
        if (value === 'lora') return { kind: isQuantized(document) ? 'qlora' : 'lora' };
        return value === 'full' ? { kind: 'training' } : undefined;
      }),
      isDecisive: true,
    },
    meaning('quantization_bit', (value) => (asNumber(value) === 4 ? {} : undefined)),
    ...TRAINER_ROWS,
    context,
    count('lora_rank', 'rank'),
    meaning('lora_target', (value) => targetsOf(value)),
    meaning('pure_bf16', (value) =>
      switchOf(value)
        ? { pureBf16: true, bf16: true }
        : switchOf(value) === undefined
          ? undefined
          : {},
    ),
    onOff('packing', 'packing'),
    onOff('fp8', 'fp8'),
    meaning('use_galore', (value) => (switchOf(value) ? { optimizer: 'galore' } : {})),
    meaning('use_muon', (value) => (switchOf(value) ? { optimizer: 'muon' } : {})),
    meaning('disable_gradient_checkpointing', (value) =>
      switchOf(value) ? { recompute: 'none' } : switchOf(value) === undefined ? undefined : {},
    ),
    count('tensor_model_parallel_size', 'tensorParallel'),
    count('pipeline_model_parallel_size', 'pipelineParallel'),
    count('expert_model_parallel_size', 'expertParallel'),
    count('context_parallel_size', 'contextParallel'),
    onOff('sequence_parallel', 'sequenceParallel'),
    meaning('use_distributed_optimizer', (value) => (switchOf(value) ? { division: '1' } : {})),
    meaning('recompute_granularity', (value) =>
      value === 'full' || value === 'selective' ? { recompute: value } : undefined,
    ),
    count('ray_num_workers', 'gpus'),
  ],
  uncounted: [
    ...TRAINER_UNCOUNTED,
    ...[
      'flash_attn',
      'use_unsloth',
      'use_unsloth_gc',
      'enable_liger_kernel',
      'shift_attn',
      'use_badam',
    ],
    ...[
      'use_apollo',
      'use_adam_mini',
      'use_llama_pro',
      'neat_packing',
      'streaming',
      'upcast_layernorm',
    ],
    ...[
      'upcast_lmhead_output',
      'freeze_trainable_layers',
      'freeze_vision_tower',
      'mixture_of_depths',
    ],
    ...[
      'use_dora',
      'additional_target',
      'loraplus_lr_ratio',
      'stage',
      'max_samples',
      'lora_dropout',
    ],
    ...[
      'use_kt',
      'quantization_method',
      'double_quantization',
      'train_from_scratch',
      'block_diag_attn',
    ],
    ...[
      'virtual_pipeline_model_parallel_size',
      'pref_loss',
      'ref_model',
      'fp8_backend',
      'resize_vocab',
    ],
  ],
  known: [
    ...[...LLAMA_FACTORY_KEYS, ...TRANSFORMERS_KEYS, ...TRANSFORMERS_OLD_KEYS],
    // Arguments of generation and of trainers above TrainingArguments.
    ...[
      'predict_with_generate',
      'generation_max_length',
      'generation_num_beams',
      'sortish_sampler',
    ],
  ],
  open: [
    ...TRAINER_OPEN,
    'rope_scaling',
    'ray_init_kwargs',
    'vllm_config',
    'sglang_config',
    'extra_config',
    'megatron_bridge_args',
  ],
  defaults: {
    ...TRAINER_DEFAULTS,
    kind: 'lora',
    context: 2048,
    rank: 8,
    targets: ['all'],
    // Gradient checkpointing is on unless it is disabled (model/model_utils/checkpointing.py).
    recompute: 'full',
  },
  complete: (_, { stage }) => ({ isFineTuning: stage !== 'pt' }),
  recognises: ({ value }) =>
    typeof value.model_name_or_path === 'string' &&
    ['stage', 'finetuning_type', 'template', 'cutoff_len'].some((key) => Object.hasOwn(value, key)),
};

/** Name of the plugin in a section. */
const nameIn = (value: unknown): unknown => (isRecord(value) ? value.name : undefined);

export const LLAMA_FACTORY_1: TrainingProgram = {
  title: 'LLaMA-Factory 1',
  version: '0.9.6.dev0',
  source: `${SOURCE}: src/llamafactory/v1/config`,
  rows: [
    textRow('model', 'model'),
    count('micro_batch_size', 'microBatch'),
    count('global_batch_size', 'globalBatch'),
    context,
    amount('learning_rate', 'learningRate'),
    amount('num_train_epochs', 'epochs'),
    count('max_steps', 'steps'),
    amount('max_grad_norm', 'gradientClip'),
    onOff('bf16', 'bf16'),
    meaning('enable_activation_checkpointing', (value) => {
      const isOn = switchOf(value);
      return isOn === undefined ? undefined : { recompute: isOn ? 'full' : 'none' };
    }),
    count('dp_size', 'dataParallel'),
    count('cp_size', 'contextParallel'),
    meaning('dist_config', (value) => {
      const name = nameIn(value);
      if (name === 'deepspeed' && isRecord(value)) {
        return typeof value.config_file === 'string' ? deepspeedFileMeaning(value.config_file) : {};
      }
      return name === 'fsdp2' ? fsdpOf('full_shard', {}, 2) : value === null ? {} : undefined;
    }),
    meaning('peft_config', (value) => {
      if (!isRecord(value) || value.name !== 'lora') return value === null ? {} : undefined;
      return {
        kind: 'lora',
        ...(typeof value.r === 'number' && { rank: value.r }),
        ...targetsOf(value.target_modules),
      };
    }),
    meaning('quant_config', (value) => (value === null ? {} : undefined)),
    meaning('optim_config', (value) => optimizerMeaning(nameIn(value))),
    meaning('lr_scheduler_config', (value) =>
      typeof nameIn(value) === 'string' ? { schedule: asText(nameIn(value)) } : undefined,
    ),
  ],
  uncounted: [
    'flash_attn',
    'kernel_config',
    'batching_strategy',
    'mp_replicate_size',
    'mp_shard_size',
    'init_config',
  ],
  known: LLAMA_FACTORY_1_KEYS,
  open: [
    'dist_config',
    'peft_config',
    'quant_config',
    'kernel_config',
    'optim_config',
    'lr_scheduler_config',
    'init_config',
  ],
  defaults: {
    kind: 'training',
    microBatch: 1,
    context: 2048,
    learningRate: 1e-4,
    epochs: 3,
    gradientClip: 1,
    bf16: true,
    recompute: 'full',
  },
  recognises: ({ value }) =>
    typeof value.model === 'string' &&
    ['model_class', 'dist_config', 'train_dataset', 'sample_backend'].some((key) =>
      Object.hasOwn(value, key),
    ),
};
