/**
 * Differences of a language model inside the classes of transformers around it. Source: the classes of transformers
 * 5.18, walked by fixtures/text-parts/wrappers.py, whose result a test compares with this table.
 */
import type { FamilyName } from '../../../model/architecture/families.js';
import type { JsonObject } from '../../../model/architecture/transformer/config-keys.js';

/**
 * Which `tie_word_embeddings` ties the head: that of the whole, true by default (`tied`), false by default (`untied`)
 * or by default that of the text part (`as text`); either of them (`either`); that of the text part, whose class has
 * the head (`inner`); or none (`never`).
 */
export type Tying = 'tied' | 'untied' | 'as text' | 'either' | 'inner' | 'never';

/** Class of a model around a language model. */
export interface Wrapper {
  /** Kind of the text part where the file does not name it. */
  readonly text: string;
  /** Kinds that its class accepts, if not all; a class of one kind does not read the name. */
  readonly takes?: readonly string[];
  /** Other names of kinds, as its class reads them. */
  readonly names?: Readonly<Record<string, string>>;
  readonly ties: Tying;
  /** Values of keys that a text part lacks, where they are not those of its own class. */
  readonly defaults?: JsonObject;
  /** The same where there is no text part. */
  readonly absent?: JsonObject;
  /** Whether the outer `vocab_size` counts where there is no text part. */
  readonly outerVocabulary?: true;
  /** Keys with which the class changes the logits; `own`: all that the text part's own class with a head reads. */
  readonly logits?: 'own' | readonly string[];
  /** Whether the class multiplies by the factor that others divide by. */
  readonly isInverse?: true;
  /** Default of the outer `vocab_size`, where an untied head has this size. */
  readonly outerHead?: number;
}

const only = (...takes: [string, ...string[]]) => ({ text: takes[0], takes });

/** Voxtral's and GLM-ASR's classes fill in keys for text parts of any kind. */
const VOXTRAL: JsonObject = {
  vocab_size: 131_072,
  hidden_size: 3072,
  intermediate_size: 8192,
  num_hidden_layers: 30,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-5,
  rope_theta: 1e8,
  head_dim: 128,
};

const GLM_ASR: JsonObject = {
  vocab_size: 59_264,
  hidden_size: 2048,
  intermediate_size: 6144,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 4,
  max_position_embeddings: 8192,
  rms_norm_eps: 1e-5,
  rope_parameters: { rope_theta: 10_000, rope_type: 'default' },
};

const GOT_OCR: JsonObject = {
  vocab_size: 151_860,
  hidden_size: 1024,
  intermediate_size: 2816,
  num_hidden_layers: 24,
  num_attention_heads: 16,
  num_key_value_heads: 16,
  max_window_layers: 21,
  rope_parameters: { rope_theta: 1e6, rope_type: 'default' },
};

/** Sizes of Qwen3 0.6B. */
const SMALL_QWEN: JsonObject = {
  hidden_size: 1024,
  intermediate_size: 3072,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  max_position_embeddings: 40_960,
};

const CAPPED = ['final_logit_softcapping'];
const SCALED = ['logits_scaling'];

export const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  aria: { ...only('aria_text'), ties: 'untied' },
  audioflamingo3: { text: 'qwen2', ties: 'never' },
  aya_vision: { text: 'cohere2', ties: 'tied' },
  'blip-2': { text: 'opt', ties: 'inner', logits: 'own' },
  cohere2_vision: { text: 'cohere2', ties: 'tied' },
  cohere_compass: { ...only('cohere_compass_text'), ties: 'untied', logits: ['logit_scale'] },
  cosmos3_omni: { text: 'qwen3_vl_text', ties: 'untied' },
  deepseek_vl: { text: 'llama', ties: 'tied' },
  deepseek_vl_hybrid: { text: 'llama', ties: 'tied' },
  emu3: { ...only('emu3_text_model'), ties: 'untied' },
  ernie4_5_vl_moe: { ...only('ernie4_5_vl_moe_text'), ties: 'tied' },
  exaone4_5: { text: 'exaone4', names: { exaone4_5_text: 'exaone4' }, ties: 'untied' },
  fast_vlm: {
    text: 'qwen2',
    ties: 'either',
    absent: {
      vocab_size: 152_128,
      hidden_size: 3584,
      intermediate_size: 18_944,
      num_hidden_layers: 28,
      num_attention_heads: 28,
      num_key_value_heads: 4,
    },
  },
  fun_asr_nano: { text: 'qwen3', ties: 'tied', absent: SMALL_QWEN },
  fuyu: { text: 'persimmon', ties: 'untied' },
  gemma3: { ...only('gemma3_text'), ties: 'tied' },
  gemma3n: { ...only('gemma3n_text'), ties: 'tied', logits: CAPPED },
  gemma4: { ...only('gemma4_text'), ties: 'tied', logits: CAPPED },
  gemma4_unified: { ...only('gemma4_unified_text'), ties: 'tied', logits: CAPPED },
  glm46v: { text: 'glm4v_text', ties: 'untied' },
  glm4v: { ...only('glm4v_text'), ties: 'either' },
  glm4v_moe: { ...only('glm4v_moe_text'), ties: 'either' },
  glmasr: { text: 'llama', ties: 'tied', defaults: GLM_ASR },
  glmga: { text: 'glm4v_text', ties: 'untied' },
  got_ocr2: { text: 'qwen2', ties: 'tied', absent: GOT_OCR },
  granite4_vision: { ...only('granite4_vision_text', 'granite'), ties: 'untied', logits: SCALED },
  granite_speech: { text: 'granite', ties: 'tied' },
  granite_speech_plus: { text: 'granite', ties: 'tied' },
  hyperclovax_vision_v2: { text: 'hyperclovax', ties: 'tied', logits: SCALED, isInverse: true },
  idefics2: {
    text: 'mistral',
    ties: 'untied',
    absent: { max_position_embeddings: 32_768, rms_norm_eps: 1e-5 },
  },
  idefics3: { text: 'llama', ties: 'untied', absent: { rms_norm_eps: 1e-5 } },
  inkling_mm_model: { ...only('inkling_text'), ties: 'never' },
  instructblip: { text: 'opt', ties: 'inner', logits: 'own' },
  instructblipvideo: { text: 'opt', ties: 'inner', logits: 'own' },
  internvl: { text: 'qwen2', ties: 'tied' },
  janus: { text: 'llama', ties: 'tied' },
  kimi_k25: { text: 'deepseek_v3', names: { kimi_k2: 'deepseek_v3' }, ties: 'tied' },
  lfm2_vl: { text: 'lfm2', ties: 'tied' },
  lighton_ocr: {
    text: 'qwen3',
    ties: 'tied',
    absent: { ...SMALL_QWEN, rope_parameters: { rope_theta: 1e6, rope_type: 'default' } },
  },
  llama4: { ...only('llama4_text'), ties: 'inner', logits: 'own' },
  llava: { text: 'llama', ties: 'either' },
  llava_next: { text: 'llama', ties: 'untied' },
  llava_next_video: { text: 'llama', ties: 'either' },
  llava_onevision: { text: 'qwen2', ties: 'either' },
  minicpmv4_6: { text: 'qwen3_5_text', ties: 'untied' },
  minicpmv4_7: { text: 'qwen3_5_text', ties: 'untied' },
  minimax_m3_vl: { ...only('minimax_m3_vl_text'), ties: 'either' },
  mistral3: {
    text: 'mistral',
    ties: 'tied',
    absent: {
      vocab_size: 131_072,
      hidden_size: 5120,
      intermediate_size: 32_768,
      num_hidden_layers: 40,
      head_dim: 128,
      rms_norm_eps: 1e-5,
      rope_parameters: { rope_theta: 1e9, rope_type: 'default' },
      sliding_window: null,
    },
  },
  mllama: { ...only('mllama_text_model'), ties: 'never' },
  musicflamingo: { text: 'qwen2', ties: 'never' },
  nemotron_h_omni: { ...only('nemotron_h'), ties: 'never', logits: 'own' },
  ovis2: { text: 'qwen2', ties: 'tied', outerHead: 151_643 },
  paligemma: {
    ...only('gemma', 'gemma2', 'gemma3_text'),
    ties: 'tied',
    outerVocabulary: true,
    absent: {
      vocab_size: 257_152,
      hidden_size: 2048,
      intermediate_size: 16_384,
      num_hidden_layers: 18,
      num_attention_heads: 8,
      num_key_value_heads: 1,
    },
  },
  perception_lm: { text: 'llama', ties: 'as text' },
  pp_chart2table: { text: 'qwen2', ties: 'tied', absent: GOT_OCR },
  qianfan_ocr: { text: 'qwen3', ties: 'untied' },
  qwen2_5_vl: { ...only('qwen2_5_vl_text'), ties: 'either' },
  qwen2_audio: { text: 'qwen2', ties: 'never' },
  qwen2_vl: { ...only('qwen2_vl_text'), ties: 'either' },
  qwen3_5: { ...only('qwen3_5_text'), ties: 'untied' },
  qwen3_5_moe: { ...only('qwen3_5_moe_text'), ties: 'untied' },
  qwen4_exp: { ...only('qwen4_exp_text'), ties: 'untied' },
  qwen3_asr: {
    text: 'qwen3',
    ties: 'tied',
    absent: {
      ...SMALL_QWEN,
      hidden_size: 2048,
      intermediate_size: 6144,
      max_position_embeddings: 65_536,
    },
  },
  qwen3_vl: { ...only('qwen3_vl_text'), ties: 'untied' },
  qwen3_vl_moe: { ...only('qwen3_vl_moe_text'), ties: 'untied' },
  shieldgemma2: { text: 'gemma3_text', ties: 'as text' },
  smolvlm: { text: 'llama', ties: 'untied', absent: { rms_norm_eps: 1e-5 } },
  vibevoice: { text: 'qwen2', ties: 'as text' },
  vibevoice_asr: { text: 'qwen2', ties: 'never' },
  video_llama_3: { text: 'qwen2', ties: 'either' },
  video_llava: { text: 'llama', ties: 'untied' },
  vipllava: { text: 'llama', ties: 'untied' },
  voxtral: { text: 'llama', ties: 'never', defaults: VOXTRAL },
};

/** Families whose class with a head changes the logits, with the values of their keys that change nothing. */
export const PLAIN_LOGITS: Readonly<Partial<Record<FamilyName, JsonObject>>> = {
  cohere: { logit_scale: 1 },
  cohere2: { logit_scale: 1 },
  cohere2_moe: { logit_scale: 1 },
  cohere_compass_text: { logit_scale: null },
  falcon_h1: { lm_head_multiplier: 1 },
  gemma2: { final_logit_softcapping: null },
  gemma3_text: { final_logit_softcapping: null },
  gemma3n_text: { final_logit_softcapping: null },
  gemma4_text: { final_logit_softcapping: null },
  gemma4_unified_text: { final_logit_softcapping: null },
  granite: { logits_scaling: 1 },
  granitemoe: { logits_scaling: 1 },
  granitemoehybrid: { logits_scaling: 1 },
  granitemoeshared: { logits_scaling: 1 },
  granite_swa: { logits_scaling: 1 },
  granitemoe_swa: { logits_scaling: 1 },
  minicpm3: { dim_model_base: null },
  hyperclovax: { logits_scaling: 1 },
  nanochat: { final_logit_softcapping: null },
  phimoe: { lm_head_bias: false },
  vaultgemma: { final_logit_softcapping: null },
};

/** The same of families that scale the embeddings of tokens, but not those that a class around them gives. */
export const PLAIN_EMBEDDINGS: Readonly<Partial<Record<FamilyName, JsonObject>>> = {
  falcon_h1: { embedding_multiplier: 1 },
};

/** Kinds of text models whose class ties the head unless a file says otherwise. */
export const TIED_BY_DEFAULT: ReadonlySet<string> = new Set([
  'bart',
  'bigbird_pegasus',
  'biogpt',
  'blenderbot',
  'blenderbot-small',
  'bloom',
  'cohere',
  'cohere2',
  'cohere2_moe',
  'cohere_compass_text',
  'cpmant',
  'ctrl',
  'ernie4_5',
  'ernie4_5_moe',
  'ernie4_5_vl_moe_text',
  'falcon',
  'falcon_mamba',
  'gemma',
  'gemma2',
  'gemma3_text',
  'gemma3n_text',
  'gemma4_text',
  'gemma4_unified_text',
  'gpt2',
  'gpt_bigcode',
  'gpt_neo',
  'gpt_neox_japanese',
  'granite_swa',
  'jetmoe',
  'lfm2',
  'lfm2_moe',
  'mamba',
  'marian',
  'mbart',
  'minicpm3',
  'modernbert-decoder',
  'mpt',
  'mvp',
  'openai-gpt',
  'opt',
  'pegasus',
  'plbart',
  'qwen3_vl_moe_text',
  'recurrent_gemma',
  'smollm3',
  'starcoder2',
  'trocr',
  'vaultgemma',
  'whisper',
  'xglm',
  'xlm',
  'xlnet',
  'youtu',
  'zamba',
  'zamba2',
  'zaya',
]);

/** Kind of a text model that a family of another name describes. */
export interface TextKind {
  readonly family: FamilyName;
  /** Values of missing keys, where they are not those of the family. */
  readonly defaults?: JsonObject;
  /** Keys that its class does not read, with what it does. */
  readonly fixed?: JsonObject;
  /** Whether heads have the width of the model divided by their number, whatever `head_dim` is. */
  readonly dividesWidth?: boolean;
  /** Whether no layer has a window. */
  readonly isWithoutWindows?: boolean;
}

const QWEN2_VL: TextKind = {
  family: 'qwen2',
  dividesWidth: true,
  defaults: {
    vocab_size: 152_064,
    hidden_size: 8192,
    intermediate_size: 29_568,
    num_hidden_layers: 80,
    num_attention_heads: 64,
    num_key_value_heads: 8,
    rms_norm_eps: 1e-5,
    max_window_layers: 80,
    rope_theta: 1e6,
  },
};

/**
 * Kinds of text models that are another family. Their `mrope` gives a token three positions, for time, height and
 * width. Those of text are equal, so that each frequency turns by the same angle as without it.
 */
export const TEXT_KINDS: Readonly<Record<string, TextKind>> = {
  qwen2_vl_text: QWEN2_VL,
  qwen2_5_vl_text: QWEN2_VL,
  qwen3_vl_text: {
    family: 'qwen3',
    defaults: { max_position_embeddings: 128_000, rope_theta: 5e5 },
    isWithoutWindows: true,
  },
  qwen3_vl_moe_text: {
    family: 'qwen3_moe',
    defaults: {
      intermediate_size: 5632,
      num_attention_heads: 16,
      num_key_value_heads: 16,
      head_dim: 128,
      max_position_embeddings: 128_000,
      moe_intermediate_size: 1408,
      num_experts: 60,
      num_experts_per_tok: 4,
      rope_theta: 5e5,
    },
    fixed: { norm_topk_prob: true },
    isWithoutWindows: true,
  },
  glm4v_text: {
    family: 'glm4',
    defaults: { partial_rotary_factor: 1, rms_norm_eps: 1e-5, max_position_embeddings: 32_768 },
    // Its heads share the hidden size, and its queries, keys and values always have biases.
    fixed: { head_dim: null, attention_bias: true },
  },
  glm4v_moe_text: {
    family: 'glm4_moe',
    defaults: { vocab_size: 151_424, max_position_embeddings: 65_536, attention_bias: true },
    // Its attention has no norms of queries and keys, and its heads share the hidden size.
    fixed: { use_qk_norm: false },
  },
  granite4_vision_text: { family: 'granite' },
};
