/** The config of a GGUF file: its metadata as a `config.json` of transformers. */

import { UserError } from '../../../base/errors.js';
import { decodeValues } from '../../../base/tensor/decode-values.js';
import { commandText } from '../../../base/text/setting.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import type { GgufKeyValues } from '../../../checkpoint/gguf/gguf-scanner.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { readTensor } from '../../../checkpoint/view.js';
import { UndescribedModel } from '../undescribed-model.js';
import type { GgufArchitecture } from './gguf-names.js';
import { isGgufArchitecture, LARGEST_GEMMA, TENSOR_NAMES } from './gguf-names.js';

type Config = Record<string, unknown>;
type Tensors = ReadonlyMap<string, StoredTensor>;

/** Values of an architecture's keys in the metadata. */
export class GgufMetadata {
  readonly file: string;
  readonly architecture: GgufArchitecture;
  readonly #values: GgufKeyValues;

  /** @throws UserError when no family here is of the file's architecture. */
  constructor(file: string, values: GgufKeyValues) {
    this.file = file;
    this.#values = values;
    const name = values.get('general.architecture')?.value;
    if (!isGgufArchitecture(name)) {
      const found = name === undefined ? 'states no architecture' : `has the architecture ${name}`;
      throw new UndescribedModel(
        new UserError('refused-file', `${file} ${found}, which no family supports`, {
          suggestion: `known are ${Object.keys(TENSOR_NAMES).join(', ')}; ${commandText('inspect')} shows the tensors of any file`,
        }),
      );
    }
    this.architecture = name;
  }

  /** A number of the architecture: `attention.head_count`; of a list, its only value. */
  number(key: string): number | undefined {
    const found = this.#values.get(`${this.architecture}.${key}`);
    const value = found?.value;
    if (typeof value === 'number') return found?.type === 'f32' ? shortest(value) : value;
    if (!Array.isArray(value)) return undefined;
    const [first] = value;
    if (typeof first === 'number' && value.every((each) => each === first)) return first;
    throw new UserError('refused-file', `${this.file} has layers of different ${key}`, {
      suggestion: `such models are not described yet; ${commandText('inspect')} shows the tensors`,
    });
  }

  /** @throws UserError when it is missing. */
  required(key: string): number {
    const value = this.number(key);
    if (value !== undefined) return value;
    throw new UserError('refused-file', `${this.file} lacks ${this.architecture}.${key}`, {
      suggestion: 'convert the model again; every file of this architecture has that key',
    });
  }

  text(key: string): string | undefined {
    const value = this.#values.get(`${this.architecture}.${key}`)?.value;
    return typeof value === 'string' ? value : undefined;
  }

  flag(key: string): boolean | undefined {
    const value = this.#values.get(`${this.architecture}.${key}`)?.value;
    return typeof value === 'boolean' ? value : undefined;
  }
}

/** The shortest number with the same float32: 1e-5, not 0.0000099999997. */
function shortest(value: number): number {
  for (let digits = 1; digits < 10; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

/** Query heads and key-value heads of a file. */
export function headCountsOf(metadata: GgufMetadata) {
  const heads = metadata.required('attention.head_count');
  return { heads, keyValueHeads: metadata.number('attention.head_count_kv') ?? heads };
}

/** Numbers of a small tensor. */
function numbersOf(tensor: StoredTensor): number[] {
  const numbers = new Float64Array(tensor.elements);
  decodeValues(tensor.dtype, readTensor(tensor), numbers);
  return Array.from(numbers, (value) => shortest(Math.fround(value)));
}

/** Factors of all published models with the scaling of Llama 3.1. */
const [LOW, HIGH] = [1, 4];

/** Lengths tried where no divisor lies between: several can give the same divisors. */
const LENGTHS = Array.from({ length: 16 }, (_, power) => 2 ** (power + 4));

/**
 * The scaling of Llama 3.1, which a file stores by its divisors alone: the largest is the factor, and one between it and 1
 * gives the length of the training. Other divisors are a list, as longrope has it.
 */
function scalingOfDivisors(divisors: readonly number[], metadata: GgufMetadata): Config {
  const factor = Math.max(...divisors);
  const base = metadata.number('rope.freq_base') ?? 10_000;
  const waveAt = (pair: number) => 2 * Math.PI * base ** (pair / divisors.length);
  const between = divisors.findIndex((each) => each > 1 && each < factor);
  const part = (1 / (divisors[between] ?? 1) - 1 / factor) / (1 - 1 / factor);
  const lengths = [Math.round(waveAt(between) * (LOW + part * (HIGH - LOW))), 8192, ...LENGTHS];
  const trained = lengths.find((length) =>
    divisors.every((each, pair) => {
      const smooth = (length / waveAt(pair) - LOW) / (HIGH - LOW);
      const clamped = Math.max(0, Math.min(1, smooth));
      return Math.abs(1 / ((1 - clamped) / factor + clamped) - each) <= 1e-3 * each;
    }),
  );
  if (trained === undefined) {
    return {
      rope_type: 'longrope',
      long_factor: divisors,
      short_factor: divisors,
      attention_factor: 1,
      original_max_position_embeddings: metadata.required('context_length'),
    };
  }
  return {
    rope_type: 'llama3',
    factor,
    low_freq_factor: LOW,
    high_freq_factor: HIGH,
    original_max_position_embeddings: trained,
  };
}

/** `rope_scaling` of a file; undefined without scaling. */
function ropeScaling(metadata: GgufMetadata, tensors: Tensors): Config | undefined {
  const trained = metadata.number('rope.scaling.original_context_length');
  const [long, short] = ['long', 'short'].map((name) => tensors.get(`rope_factors_${name}.weight`));
  const attention = metadata.number('rope.scaling.attn_factor');
  if (long && short) {
    return {
      rope_type: 'longrope',
      long_factor: numbersOf(long),
      short_factor: numbersOf(short),
      ...(trained && { original_max_position_embeddings: trained }),
      ...(attention && { attention_factor: attention }),
    };
  }
  const divisors = tensors.get('rope_freqs.weight');
  if (divisors) return scalingOfDivisors(numbersOf(divisors), metadata);
  const type = metadata.text('rope.scaling.type');
  const factor = metadata.number('rope.scaling.factor') ?? metadata.number('rope.scale_linear');
  if (factor === undefined || type === 'none') return undefined;
  if (type !== 'yarn') return { rope_type: 'linear', factor };
  const strength = metadata.number('rope.scaling.yarn_log_multiplier');
  const [fast, slow] = ['yarn_beta_fast', 'yarn_beta_slow'].map((key) =>
    metadata.number(`rope.scaling.${key}`),
  );
  return {
    rope_type: 'yarn',
    factor,
    ...(trained && { original_max_position_embeddings: trained }),
    ...(fast && { beta_fast: fast }),
    ...(slow && { beta_slow: slow }),
    ...(strength && { mscale: shortest(10 * strength), mscale_all_dim: shortest(10 * strength) }),
  };
}

/** Keys that all decoders with RMS norms share. */
function decoderConfig(metadata: GgufMetadata, tensors: Tensors): Config {
  const hidden = metadata.required('embedding_length');
  const { heads, keyValueHeads } = headCountsOf(metadata);
  const headDim = metadata.number('attention.key_length');
  const scaling = ropeScaling(metadata, tensors);
  return {
    vocab_size: vocabularyOf(tensors),
    hidden_size: hidden,
    intermediate_size: metadata.number('feed_forward_length'),
    num_hidden_layers: metadata.required('block_count'),
    num_attention_heads: heads,
    num_key_value_heads: keyValueHeads,
    ...(headDim !== undefined && headDim !== hidden / heads && { head_dim: headDim }),
    max_position_embeddings: metadata.required('context_length'),
    rms_norm_eps: metadata.number('attention.layer_norm_rms_epsilon'),
    rope_theta: metadata.number('rope.freq_base'),
    ...(scaling && { rope_scaling: scaling }),
    tie_word_embeddings: !tensors.has('output.weight'),
  };
}

const vocabularyOf = (tensors: Tensors): number | undefined =>
  tensors.get('token_embd.weight')?.shape[0];

/** Experts of Qwen's mixtures. */
const sparse = (metadata: GgufMetadata): Config => ({
  num_experts: metadata.required('expert_count'),
  num_experts_per_tok: metadata.required('expert_used_count'),
  moe_intermediate_size: metadata.number('expert_feed_forward_length'),
});

/** Gemma divides scores by the root of the width of a head, the largest sizes by that of hidden / heads. */
function gemmaScale(metadata: GgufMetadata): Config {
  const hidden = metadata.required('embedding_length');
  const heads = metadata.required('attention.head_count');
  const isLargest = metadata.required('block_count') === LARGEST_GEMMA[metadata.architecture];
  const headDim = metadata.number('attention.key_length') ?? hidden / heads;
  return { head_dim: headDim, query_pre_attn_scalar: isLargest ? hidden / heads : headDim };
}

type Reader = (
  metadata: GgufMetadata,
  tensors: Tensors,
) => Config & { readonly model_type: string };

/** The config of each architecture. */
const READERS: Readonly<Record<GgufArchitecture, Reader>> = {
  llama(metadata, tensors) {
    const config = decoderConfig(metadata, tensors);
    const experts = metadata.number('expert_count') ?? 0;
    if (experts > 0) {
      return {
        model_type: 'mixtral',
        ...config,
        num_local_experts: experts,
        num_experts_per_tok: metadata.required('expert_used_count'),
      };
    }
    return {
      model_type: 'llama',
      ...config,
      attention_bias: tensors.has('blk.0.attn_q.bias'),
      mlp_bias: tensors.has('blk.0.ffn_gate.bias'),
    };
  },
  smollm3: (metadata, tensors) => ({
    model_type: 'smollm3',
    ...decoderConfig(metadata, tensors),
  }),
  qwen2: (metadata, tensors) => ({ model_type: 'qwen2', ...decoderConfig(metadata, tensors) }),
  qwen2moe: (metadata, tensors) => ({
    model_type: 'qwen2_moe',
    ...decoderConfig(metadata, tensors),
    ...sparse(metadata),
    shared_expert_intermediate_size: metadata.number('expert_shared_feed_forward_length'),
  }),
  qwen3: (metadata, tensors) => ({ model_type: 'qwen3', ...decoderConfig(metadata, tensors) }),
  qwen3moe: (metadata, tensors) => ({
    model_type: 'qwen3_moe',
    ...decoderConfig(metadata, tensors),
    ...sparse(metadata),
    // llama.cpp divides by the sum of the chosen weights for this architecture.
    norm_topk_prob: true,
  }),
  gemma: (metadata, tensors) => ({
    model_type: 'gemma',
    ...decoderConfig(metadata, tensors),
    head_dim: gemmaScale(metadata).head_dim,
  }),
  gemma2: (metadata, tensors) => ({
    model_type: 'gemma2',
    ...decoderConfig(metadata, tensors),
    ...gemmaScale(metadata),
    attn_logit_softcapping: metadata.number('attn_logit_softcapping'),
    final_logit_softcapping: metadata.number('final_logit_softcapping'),
    sliding_window: metadata.number('attention.sliding_window'),
  }),
  gemma3(metadata, tensors) {
    const {
      rope_theta: base = 1e6,
      rope_scaling: scaling,
      ...config
    } = decoderConfig(metadata, tensors);
    const full = { rope_type: 'default', ...(scaling as Config | undefined), rope_theta: base };
    const local = metadata.number('rope.freq_base_swa') ?? 10_000;
    return {
      model_type: 'gemma3_text',
      ...config,
      ...gemmaScale(metadata),
      sliding_window: metadata.number('attention.sliding_window'),
      final_logit_softcapping: metadata.number('final_logit_softcapping') ?? null,
      rope_parameters: {
        full_attention: full,
        sliding_attention: { rope_type: 'default', rope_theta: local },
      },
    };
  },
  olmo2: (metadata, tensors) => ({ model_type: 'olmo2', ...decoderConfig(metadata, tensors) }),
  phi3(metadata, tensors) {
    const { rope_scaling: scaling, ...config } = decoderConfig(metadata, tensors);
    const headDim =
      metadata.required('embedding_length') / metadata.required('attention.head_count');
    const rotated = metadata.number('rope.dimension_count') ?? headDim;
    const trained = metadata.number('rope.scaling.original_context_length');
    const window = metadata.number('attention.sliding_window');
    return {
      model_type: 'phi3',
      ...config,
      ...(scaling !== undefined && { rope_scaling: scaling }),
      ...(rotated !== headDim && { partial_rotary_factor: rotated / headDim }),
      ...(trained && { original_max_position_embeddings: trained }),
      sliding_window: window ? window : null,
    };
  },
  deepseek2(metadata, tensors) {
    const config = decoderConfig(metadata, tensors);
    const rotated = metadata.required('rope.dimension_count');
    const number = (key: string) =>
      metadata.number(`attention.${key}_mla`) ?? metadata.required(`attention.${key}`);
    const isV3 = metadata.number('expert_gating_func') === 2;
    const [groups, kept] = ['expert_group_count', 'expert_group_used_count'].map((key) =>
      metadata.number(key),
    );
    return {
      model_type: isV3 ? 'deepseek_v3' : 'deepseek_v2',
      ...config,
      head_dim: undefined,
      num_key_value_heads: metadata.required('attention.head_count'),
      q_lora_rank: metadata.number('attention.q_lora_rank') ?? null,
      kv_lora_rank: metadata.required('attention.kv_lora_rank'),
      qk_rope_head_dim: rotated,
      qk_nope_head_dim: number('key_length') - rotated,
      v_head_dim: number('value_length'),
      first_k_dense_replace: metadata.number('leading_dense_block_count'),
      n_routed_experts: metadata.number('expert_count'),
      num_experts_per_tok: metadata.number('expert_used_count'),
      n_shared_experts: metadata.number('expert_shared_count'),
      moe_intermediate_size: metadata.number('expert_feed_forward_length'),
      routed_scaling_factor: metadata.number('expert_weights_scale'),
      norm_topk_prob: metadata.flag('expert_weights_norm'),
      ...(groups && { n_group: groups }),
      ...(kept && { topk_group: kept }),
    };
  },
  gpt2: (metadata, tensors) => ({
    model_type: 'gpt2',
    vocab_size: vocabularyOf(tensors),
    n_positions: metadata.required('context_length'),
    n_embd: metadata.required('embedding_length'),
    n_layer: metadata.required('block_count'),
    n_head: metadata.required('attention.head_count'),
    n_inner: metadata.number('feed_forward_length'),
    layer_norm_epsilon: metadata.number('attention.layer_norm_epsilon'),
    tie_word_embeddings: !tensors.has('output.weight'),
  }),
  gptneox(metadata, tensors) {
    const [hidden, heads] = ['embedding_length', 'attention.head_count'].map((key) =>
      metadata.required(key),
    );
    const headDim = (hidden ?? 0) / (heads ?? 1);
    return {
      model_type: 'gpt_neox',
      vocab_size: vocabularyOf(tensors),
      hidden_size: hidden,
      num_hidden_layers: metadata.required('block_count'),
      num_attention_heads: heads,
      intermediate_size: metadata.number('feed_forward_length'),
      max_position_embeddings: metadata.required('context_length'),
      rotary_pct: (metadata.number('rope.dimension_count') ?? headDim) / headDim,
      rotary_emb_base: metadata.number('rope.freq_base') ?? 10_000,
      layer_norm_eps: metadata.number('attention.layer_norm_epsilon'),
      use_parallel_residual: metadata.flag('use_parallel_residual') ?? true,
      tie_word_embeddings: !tensors.has('output.weight'),
    };
  },
  bloom: (metadata, tensors) => ({
    model_type: 'bloom',
    vocab_size: vocabularyOf(tensors),
    hidden_size: metadata.required('embedding_length'),
    n_layer: metadata.required('block_count'),
    n_head: metadata.required('attention.head_count'),
    layer_norm_epsilon: metadata.number('attention.layer_norm_epsilon'),
    tie_word_embeddings: !tensors.has('output.weight'),
  }),
};

/**
 * The metadata of a GGUF file as a `config.json`.
 * @throws UserError for an architecture that no family here describes, or a missing key.
 */
export function configOfGguf({ path, keyValues, tensors }: Checkpoint): Config {
  const metadata = new GgufMetadata(path, keyValues ?? new Map());
  const config = READERS[metadata.architecture](metadata, tensors);
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}
