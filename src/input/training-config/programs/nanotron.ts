/** nanotron's YAML. */
import { isRecord } from '../../../base/values.js';
import { NANOTRON_KEYS } from '../known-keys.js';
import { amount, count, meaning, onOff, switchOf, type TrainingProgram } from '../program.js';
import type { TrainingRun } from '../training-run.js';

/** Its classes of models, each by the mark in its config (config/models_config.py), as transformers calls them. */
const CLASSES = {
  is_llama_config: { model_type: 'llama', architectures: ['LlamaForCausalLM'] },
  is_qwen2_config: { model_type: 'qwen2', architectures: ['Qwen2ForCausalLM'] },
  is_starcoder2_config: { model_type: 'starcoder2', architectures: ['Starcoder2ForCausalLM'] },
} as const;

/** Keys of the model that only nanotron has. */
const OWN = new Set([
  ...[
    'is_llama_config',
    'is_qwen2_config',
    'is_starcoder2_config',
    'pretraining_tp',
    'z_loss_enabled',
  ],
  ...[
    'z_loss_coefficient',
    '_attn_implementation',
    'flex_attention_mask',
    '_fused_rotary_emb',
    'moe_config',
  ],
  ...[
    '_fused_rms_norm',
    '_use_qkv_packed',
    '_use_doc_masking',
    'log_attn_probs',
    'rope_interleaved',
  ],
  ...[
    'ring_attn_heads_k_stride',
    'rope_seq_len_interpolation_factor',
    'no_rope_layer',
    'sliding_window_size',
  ],
]);

function sizesOf(config: unknown): Partial<TrainingRun> {
  if (!isRecord(config)) return {};
  const mark = (Object.keys(CLASSES) as (keyof typeof CLASSES)[]).find(
    (each) => config[each] === true,
  );
  // Without a mark it is Llama, or a class of the user's own code.
  if (mark === undefined && typeof config.num_hidden_layers !== 'number') return {};
  const kind = CLASSES[mark ?? 'is_llama_config'];
  const kept = Object.entries(config).filter(([key, value]) => !OWN.has(key) && value !== null);
  const moe = isRecord(config.moe_config) ? config.moe_config : undefined;
  return {
    sizes: {
      ...Object.fromEntries(kept),
      ...kind,
      ...(moe && {
        model_type: 'qwen2_moe',
        architectures: ['Qwen2MoeForCausalLM'],
        num_experts: moe.num_experts,
        num_experts_per_tok: moe.top_k,
        moe_intermediate_size: moe.moe_intermediate_size,
        shared_expert_intermediate_size: moe.shared_expert_intermediate_size ?? 0,
      }),
      // Qwen2 of nanotron has biases only where attention_bias says so; Qwen2 of transformers always.
      ...(mark === 'is_qwen2_config' &&
        !moe &&
        config.attention_bias !== true &&
        CLASSES.is_llama_config),
    },
  };
}

export const NANOTRON: TrainingProgram = {
  title: 'nanotron',
  version: '0.5',
  source: 'huggingface/nanotron, commit 2411b022 (2026-04-07): src/nanotron/config',
  rows: [
    meaning('model.model_config', sizesOf),
    meaning('model.dtype', (value) =>
      value === 'bfloat16'
        ? { bf16: true }
        : value === 'float16'
          ? { fp16: true }
          : value === 'float32' || value === 'double'
            ? {}
            : undefined,
    ),
    count('parallelism.dp', 'dataParallel'),
    count('parallelism.tp', 'tensorParallel'),
    count('parallelism.pp', 'pipelineParallel'),
    count('parallelism.context_parallel_size', 'contextParallel'),
    count('parallelism.expert_parallel_size', 'expertParallel'),
    // REDUCE_SCATTER splits the residual stream by tokens.
    meaning('parallelism.tp_mode', (value) =>
      value === 'REDUCE_SCATTER'
        ? { sequenceParallel: true }
        : value === 'ALL_REDUCE'
          ? { sequenceParallel: false }
          : undefined,
    ),
    meaning('parallelism.recompute_layer', (value) => {
      const isOn = switchOf(value);
      return isOn === undefined ? undefined : { recompute: isOn ? 'full' : 'none' };
    }),
    count('tokens.sequence_length', 'context'),
    count('tokens.train_steps', 'steps'),
    count('tokens.micro_batch_size', 'microBatch'),
    count('tokens.batch_accumulation_per_replica', 'accumulation'),
    amount('optimizer.learning_rate_scheduler.learning_rate', 'learningRate'),
    amount('optimizer.learning_rate_scheduler.lr_warmup_steps', 'warmupSteps'),
    meaning('optimizer.learning_rate_scheduler.lr_decay_style', (value) =>
      typeof value === 'string' ? { decayType: value } : undefined,
    ),
    count('optimizer.learning_rate_scheduler.lr_decay_steps', 'decaySteps', { '0': 'no decay' }),
    amount('optimizer.learning_rate_scheduler.min_decay_lr', 'minLearningRate'),
    meaning('optimizer.optimizer_factory.name', (value) =>
      value === 'adamW'
        ? { optimizer: 'adamw-fused' }
        : value === 'sgd'
          ? { optimizer: 'sgd' }
          : undefined,
    ),
    amount('optimizer.optimizer_factory.adam_beta1', 'beta1'),
    amount('optimizer.optimizer_factory.adam_beta2', 'beta2'),
    amount('optimizer.optimizer_factory.adam_eps', 'epsilon'),
    // As in its older configs.
    amount('optimizer.adam_beta1', 'beta1'),
    amount('optimizer.adam_beta2', 'beta2'),
    amount('optimizer.adam_eps', 'epsilon'),
    amount('optimizer.weight_decay', 'weightDecay'),
    amount('optimizer.clip_grad', 'gradientClip'),
    onOff('optimizer.accumulate_grad_in_fp32', 'float32Gradients'),
    meaning('optimizer.zero_stage', (value) =>
      value === 0 || value === 1 ? { division: `${value}` } : undefined,
    ),
  ],
  uncounted: [
    ...[
      'parallelism.pp_engine',
      'parallelism.tp_linear_async_communication',
      'model.make_vocab_size_divisible_by',
    ],
    ...[
      'parallelism.tp_recompute_allgather',
      'model.ddp_bucket_cap_mb',
      'optimizer.weight_decay_exclude_named_params',
    ],
    ...[
      'optimizer.learning_rate_scheduler.lr_warmup_style',
      'optimizer.learning_rate_scheduler.lr_decay_starting_step',
    ],
    ...[
      'optimizer.optimizer_factory.torch_adam_is_fused',
      'optimizer.torch_adam_is_fused',
      'data_stages',
    ],
  ],
  known: NANOTRON_KEYS,
  open: [
    'data_stages',
    'data',
    'lighteval',
    's3_upload',
    'profiler',
    'model.model_config',
    'model.init_method',
    'kill_switch_path',
    'doremi',
    'metrics_logging',
    'checkpoints.s3',
    'moe',
  ],
  defaults: { kind: 'training', recompute: 'none', division: '0', optimizer: 'adamw-fused' },
  complete: (run) => {
    const { decayType, decaySteps, warmupSteps = 0, steps } = run;
    if (steps === undefined || run.schedule !== undefined) return {};
    if (decayType === undefined || decayType === 'constant')
      return { schedule: 'constant_with_warmup' };
    // A decay that begins after the warm-up is a whole schedule; a shorter one comes after a stable part.
    const isWhole = decaySteps === undefined || decaySteps >= steps - warmupSteps;
    const curve = decayType === '1-sqrt' || decayType === 'cosine' ? decayType : 'linear';
    return isWhole && curve === 'cosine'
      ? { schedule: 'cosine_with_min_lr' }
      : isWhole && curve === 'linear'
        ? { schedule: 'polynomial' }
        : { schedule: 'wsd', decayType: curve, decaySteps: decaySteps ?? steps - warmupSteps };
  },
  recognises: ({ value: { parallelism, tokens, model } }) =>
    isRecord(parallelism) &&
    (isRecord(tokens) || (isRecord(model) && isRecord(model.model_config))) &&
    ['dp', 'tp', 'pp'].some((key) => Object.hasOwn(parallelism, key)),
};
