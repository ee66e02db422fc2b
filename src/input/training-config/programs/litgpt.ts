/** litgpt's YAML. */
import { asNumber, asText, isRecord } from '../../../base/values.js';
import { LITGPT_KEYS } from '../known-keys.js';
import { LITGPT_MODELS } from '../litgpt-models.js';
import { alias, amount, count, meaning, numberOf, type TrainingProgram } from '../program.js';
import type { TrainingRun } from '../training-run.js';
import { optimizerMeaning } from './shared-values.js';

/** Types of Lightning Fabric. */
const PRECISIONS: Readonly<Record<string, Partial<TrainingRun>>> = {
  'bf16-true': { bf16: true, pureBf16: true },
  'bf16-mixed': { bf16: true },
  '16-mixed': { fp16: true },
  '16-true': { fp16: true },
  '32-true': {},
  32: {},
};

/** Switches of LoRA, and the products that each adapts in transformers' names. */
const TARGETS = {
  lora_query: ['q_proj'],
  lora_key: ['k_proj'],
  lora_value: ['v_proj'],
  lora_projection: ['o_proj'],
  lora_mlp: ['gate_proj', 'up_proj', 'down_proj'],
} as const;

/** Repository of a name of its list, or of a folder of weights: `checkpoints/meta-llama/Llama-3.2-1B`. */
function litgptModel(name: string): Partial<TrainingRun> {
  const folder = /(?:^|\/)checkpoints\/([^/]+\/[^/]+)\/?$/.exec(name)?.[1];
  if (folder !== undefined) return { model: folder };
  return { model: Object.hasOwn(LITGPT_MODELS, name) ? (LITGPT_MODELS[name] ?? name) : name };
}

/** `model_config` as a `config.json`: sizes of a Llama (litgpt/config.py: Config). */
function sizesOf(config: unknown): Partial<TrainingRun> {
  if (!isRecord(config)) return {};
  const { n_layer: layers, n_embd: width, n_head: heads } = config;
  const isLlama = config.mlp_class_name === 'LLaMAMLP' && config.norm_class_name === 'RMSNorm';
  if (typeof layers !== 'number' || typeof width !== 'number' || !isLlama || config.bias === true) {
    const named = isRecord(config.hf_config)
      ? `${asText(config.hf_config.org)}/${asText(config.hf_config.name)}`
      : config.name;
    return typeof named === 'string' ? litgptModel(named) : {};
  }
  const vocabulary =
    numberOf(config.padded_vocab_size) ??
    roundedUp(numberOf(config.vocab_size) ?? 50_254, numberOf(config.padding_multiple) ?? 512);
  return {
    sizes: {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      num_hidden_layers: layers,
      hidden_size: width,
      num_attention_heads: heads ?? 32,
      num_key_value_heads: config.n_query_groups ?? heads ?? 32,
      ...(typeof config.head_size === 'number' && { head_dim: config.head_size }),
      intermediate_size: config.intermediate_size ?? 4 * width,
      vocab_size: vocabulary,
      max_position_embeddings: config.block_size ?? 4096,
      rope_theta: config.rope_base ?? 10_000,
      rms_norm_eps: config.norm_eps ?? 1e-5,
      tie_word_embeddings: false,
    },
  };
}

const roundedUp = (value: number, multiple: number) => Math.ceil(value / multiple) * multiple;

const nameMeaning = (value: unknown) =>
  typeof value === 'string' ? (value === '' ? {} : litgptModel(value)) : undefined;

const learningRate = amount('optimizer.init_args.lr', 'learningRate');

export const LITGPT: TrainingProgram = {
  title: 'litgpt',
  version: '0.5.13',
  source: 'Lightning-AI/litgpt, tag v0.5.13: litgpt/{args,config,pretrain}.py, litgpt/finetune',
  rows: [
    meaning('model_name', nameMeaning),
    meaning('checkpoint_dir', nameMeaning),
    meaning('initial_checkpoint_dir', nameMeaning),
    meaning('model_config', sizesOf),
    meaning('precision', (value) =>
      Object.hasOwn(PRECISIONS, asText(value)) ? PRECISIONS[asText(value)] : undefined,
    ),
    meaning('quantize', (value) =>
      value === 'bnb.nf4' || value === 'bnb.nf4-dq' || value === 'bnb.fp4' || value === 'bnb.fp4-dq'
        ? { kind: 'qlora' }
        : undefined,
    ),
    meaning('devices', (value, { num_nodes: nodes }) => {
      const each = numberOf(value);
      // auto: all that the machine has.
      if (value === 'auto') return {};
      const gpus = (each ?? 0) * (numberOf(nodes) ?? 1);
      return Number.isSafeInteger(gpus) && gpus >= 1 ? { gpus } : undefined;
    }),
    meaning('num_nodes', () => ({})),
    count('lora_r', 'rank'),
    ...Object.keys(TARGETS).map((key) => meaning(key, () => ({}))),
    count('train.global_batch_size', 'globalBatch'),
    count('train.micro_batch_size', 'microBatch'),
    amount('train.lr_warmup_steps', 'warmupSteps'),
    amount('train.lr_warmup_fraction', 'warmupRatio'),
    amount('train.epochs', 'epochs'),
    amount('train.max_tokens', 'tokens'),
    // litgpt/finetune/lora.py: `train.max_steps or float("inf")`.
    count('train.max_steps', 'steps', { '0': 'no limit' }),
    count('train.max_seq_length', 'context', { '0': 'no limit' }),
    amount('train.max_norm', 'gradientClip'),
    amount('train.min_lr', 'minLearningRate'),
    meaning('optimizer.class_path', optimizerMeaning),
    meaning('optimizer', (value) => (typeof value === 'string' ? optimizerMeaning(value) : {})),
    learningRate,
    amount('optimizer.init_args.weight_decay', 'weightDecay'),
    amount('optimizer.init_args.eps', 'epsilon'),
    meaning('optimizer.init_args.betas', (value) =>
      Array.isArray(value) && value.length === 2
        ? { beta1: asNumber(value[0]), beta2: asNumber(value[1]) }
        : undefined,
    ),
    alias('learning_rate', learningRate),
  ],
  uncounted: [
    'train.tie_embeddings',
    'lora_head',
    'lora_dropout',
    'eval.max_iters',
    'train.max_time',
  ],
  known: [...LITGPT_KEYS, 'optimizer.init_args.fused', 'optimizer.init_args.amsgrad'],
  open: ['data', 'optimizer.init_args', 'model_config', 'log'],
  defaults: {
    microBatch: 1,
    schedule: 'cosine_with_min_lr',
    minLearningRate: 6e-5,
    optimizer: 'adamw',
  },
  complete(run, document) {
    const isLora = Object.hasOwn(document, 'lora_r');
    const isPretraining =
      Object.hasOwn(document, 'model_name') || Object.hasOwn(document, 'initial_checkpoint_dir');
    const targets = Object.entries(TARGETS).flatMap(([key, names]) => {
      const usual = key === 'lora_query' || key === 'lora_value';
      return (document[key] ?? usual) === true ? names : [];
    });
    return {
      kind: isLora ? (run.kind ?? 'lora') : 'training',
      isFineTuning: !isPretraining,
      ...(isLora && { targets }),
      // FSDP where there are several devices (litgpt/pretrain.py, finetune/*.py: FSDPStrategy, fully_shard).
      ...((run.gpus ?? 1) > 1 && {
        division: isPretraining ? 'hsdp' : isLora ? 'fsdp2' : 'fsdp',
      }),
      // Full fine-tuning and LoRA recompute activations of each block (activation_checkpointing_policy).
      ...((run.gpus ?? 1) > 1 && !isPretraining && { recompute: 'full' }),
    };
  },
  recognises: ({ value }) =>
    isRecord(value.train) &&
    ['checkpoint_dir', 'model_name', 'model_config', 'out_dir', 'lora_r'].some((key) =>
      Object.hasOwn(value, key),
    ) &&
    ['micro_batch_size', 'global_batch_size', 'max_tokens', 'max_seq_length'].some((key) =>
      Object.hasOwn(value.train as object, key),
    ),
};
