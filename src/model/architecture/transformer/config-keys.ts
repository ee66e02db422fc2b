/**
 * Use of the `config.json` keys that no family has a setting for. Sources:
 * `configuration_utils.py`, `masking_utils.py`, `cache_utils.py` and the models of transformers 5.18.
 */

import type { Severity } from '../../../base/errors.js';
import { asNumber, asText } from '../../../base/values.js';

export type JsonObject = Readonly<Record<string, unknown>>;

/** A key that is supported for some values only. */
export interface LimitedKey {
  /** Whether the value is supported. */
  readonly allows: (value: unknown, config: JsonObject) => boolean;
  /** Effect of an unsupported value in transformers. */
  readonly why: string;
  /** A warning if the logits stay the same. */
  readonly severity: Severity;
  /** How to fix a value without effect; default: to remove it. */
  readonly advice?: string;
}

export type KeyUse =
  | { readonly use: 'read' }
  | { readonly use: 'harmless'; readonly why: string }
  | ({ readonly use: 'limited' } & LimitedKey)
  | { readonly use: 'unknown' };

export type HarmlessKeys = Readonly<Record<string, string>>;
export type LimitedKeys = Readonly<Record<string, LimitedKey>>;

/** One reason for many keys. */
export const harmless = (why: string, keys: readonly string[]): HarmlessKeys =>
  Object.fromEntries(keys.map((key) => [key, why]));

const isOneOf = (values: readonly unknown[]) => (value: unknown) => values.includes(value);

/** A key with these supported values, or null; others compute something else. */
const refusedUnless = (values: readonly unknown[], why: string): LimitedKey => ({
  allows: isOneOf([null, ...values]),
  why,
  severity: 'error',
});

/** A key that transformers ignores for a family; the model behaves as with these values. */
export const unreadBut = (
  allows: readonly unknown[] | LimitedKey['allows'],
  why = 'transformers does not read it for this family',
): LimitedKey => ({
  allows: typeof allows === 'function' ? allows : isOneOf([null, ...allows]),
  why,
  severity: 'warning',
});

/** `unreadBut` of many keys. */
export const unreadEach = (
  keys: readonly string[],
  allows: Parameters<typeof unreadBut>[0] = [],
  why?: string,
): LimitedKeys => Object.fromEntries(keys.map((key) => [key, unreadBut(allows, why)]));

/** `head_dim` of a class that reads it only for the rotation. @param usual Sizes of a file without any. */
export const headDimOfWidth = (usual: {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
}): LimitedKey => ({
  allows: (width, { hidden_size, num_attention_heads }) =>
    width === null ||
    width ===
      Math.floor(
        asNumber(hidden_size ?? usual.hidden_size) /
          asNumber(num_attention_heads ?? usual.num_attention_heads),
      ),
  why: 'it is taken for the number of dimensions that are rotated',
  severity: 'error',
});

/** Keys of the class that classifies whole texts, in the families of GPT-2. */
export const SUMMARY_KEYS: HarmlessKeys = harmless('of a head that classifies whole texts', [
  'summary_type',
  'summary_use_proj',
  'summary_activation',
  'summary_proj_to_labels',
  'summary_first_dropout',
  'summary_last_dropout',
]);

/** Keys of rotary positions, for families that have none. */
export const NO_ROTARY_KEYS = unreadEach([
  'rope_parameters',
  'rope_scaling',
  'rope_theta',
  'partial_rotary_factor',
  'head_dim',
]);

/** Keys that change no logits in any family. */
export const HARMLESS: HarmlessKeys = {
  ...harmless('names a token', [
    'bos_token_id',
    'eos_token_id',
    'pad_token_id',
    'unk_token_id',
    'sep_token_id',
    'cls_token_id',
    'mask_token_id',
    'decoder_start_token_id',
    'image_token_id',
  ]),
  ...harmless('controls generation, not the logits', [
    'use_cache',
    'cache_implementation',
    'max_length',
    'min_length',
    'max_new_tokens',
    'do_sample',
    'early_stopping',
    'num_beams',
    'num_beam_groups',
    'diversity_penalty',
    'temperature',
    'top_k',
    'top_p',
    'typical_p',
    'repetition_penalty',
    'length_penalty',
    'no_repeat_ngram_size',
    'encoder_no_repeat_ngram_size',
    'bad_words_ids',
    'num_return_sequences',
    'output_scores',
    'return_dict_in_generate',
    'forced_bos_token_id',
    'forced_eos_token_id',
    'remove_invalid_values',
    'exponential_decay_length_penalty',
    'suppress_tokens',
    'begin_suppress_tokens',
    'epsilon_cutoff',
    'eta_cutoff',
    'encoder_repetition_penalty',
    'num_assistant_tokens',
    'num_assistant_tokens_schedule',
    'assistant_confidence_threshold',
    'assistant_lookbehind',
    'target_lookbehind',
    'prefix',
    'task_specific_params',
  ]),
  ...harmless('used in training only', [
    'initializer_range',
    'attention_dropout',
    'hidden_dropout',
    'resid_pdrop',
    'embd_pdrop',
    'attn_pdrop',
    'attention_probs_dropout_prob',
    'hidden_dropout_prob',
    'residual_dropout',
    'embedding_dropout',
    'classifier_dropout',
    'router_aux_loss_coef',
    'router_jitter_noise',
    'aux_loss_alpha',
    'seq_aux',
    'gradient_checkpointing',
  ]),
  ...harmless('chooses how the same values are computed', [
    'attn_implementation',
    '_attn_implementation',
    '_attn_implementation_autoset',
    '_attn_implementation_internal',
    'experts_implementation',
    '_experts_implementation',
    '_experts_implementation_internal',
    '_flash_attn_2_enabled',
    'use_flash_attention',
    'chunk_size_feed_forward',
    'pretraining_tp',
    'ep_size',
    'torchscript',
    'use_bfloat16',
    'tf_legacy_loss',
  ]),
  ...harmless('chooses what is returned with the logits', [
    'return_dict',
    'use_return_dict',
    'output_attentions',
    '_output_attentions',
    'output_hidden_states',
    'output_past',
    'output_router_logits',
    'tie_last_hidden_states',
  ]),
  ...harmless('labels the classes of a classifier', [
    'id2label',
    'label2id',
    'num_labels',
    '_num_labels',
    'problem_type',
    'finetuning_task',
  ]),
  ...harmless('records where the file comes from', [
    'model_type',
    'transformers_version',
    'tokenizer_class',
    'auto_map',
    '_name_or_path',
    'name_or_path',
    '_commit_hash',
    'model_name',
    'unsloth_version',
    'unsloth_fixed',
  ]),
  ...harmless('type of the stored weights', ['dtype', 'torch_dtype']),
  ...harmless(
    'says how the weights are stored: `profile` counts that, `verify` names the tensors of it',
    ['quantization_config', 'quantization', 'expert_dtype'],
  ),
  is_decoder: 'all models here are decoders',
  tie_encoder_decoder: 'there is no encoder',
};

/** Supported classes: the whole model, or all but its head. */
const CAUSAL_CLASS = /(?:ForCausalLM|LMHeadModel|(?<!Reward)Model)$/;

/** Reason of a remark on a class whose head is not described. */
export const OTHER_HEAD = 'the class has another head than the language model that is described';

/** Whether a class is the model without a head: `MistralModel`. */
export const isHeadless = (name: string): boolean =>
  /Model$/.test(name) && !/LMHead|For[A-Z]/.test(name);

export const isEmptyValue = (value: unknown) =>
  value === null || (typeof value === 'object' && Object.keys(value).length === 0);

/** Kind of all layers in a family without a list of kinds. */
const kindOfAllLayers = ({ sliding_window: window, use_sliding_window: use }: JsonObject) =>
  window == null || use === false ? 'full_attention' : 'sliding_attention';

/** Keys that transformers reads in every family, with one supported value. */
export const LIMITED: LimitedKeys = {
  // Python reads null as false, which also disables the mask.
  is_causal: {
    allows: (value) => value === true,
    why: 'attention also reads the tokens that follow',
    severity: 'error',
  },
  layer_types: {
    allows: (value, config) =>
      value === null ||
      (Array.isArray(value) && value.every((kind) => kind === kindOfAllLayers(config))),
    why: 'the layers have different windows',
    severity: 'error',
  },
  sliding_window: refusedUnless([], 'the key-value cache forgets what is outside the window'),
  attention_chunk_size: refusedUnless([], 'the key-value cache forgets all but a chunk'),
  num_kv_shared_layers: refusedUnless([0], 'layers share keys and values'),
  use_sliding_window: unreadBut([false]),
  use_mrope: refusedUnless([false], 'positions have several dimensions'),
  per_layer_config: {
    allows: isEmptyValue,
    why: 'some layers have other sizes',
    severity: 'error',
  },
  pruned_heads: { allows: isEmptyValue, why: 'some heads are removed', severity: 'error' },
  is_encoder_decoder: refusedUnless([false], 'the model has an encoder'),
  add_cross_attention: refusedUnless([false], 'the model attends to an encoder'),
  cross_attention_hidden_size: refusedUnless([], 'the model attends to an encoder'),
  partial_rotary_factor: unreadBut([1], 'this family rotates whole heads'),
  architectures: {
    allows: (value) =>
      !Array.isArray(value) || value.every((name) => CAUSAL_CLASS.test(asText(name))),
    why: OTHER_HEAD,
    advice:
      'remove it if the language model is meant; a checkpoint of that class is counted from its tensors',
    severity: 'warning',
  },
};
