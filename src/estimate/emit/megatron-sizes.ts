/** Sizes of a model as arguments of Megatron-LM (arguments.py: _add_network_size_args, TransformerConfig). */
import { isRecord } from '../../base/values.js';
import type { TrainingRun } from '../../input/training-config/training-run.js';

/** Families whose blocks Megatron's GPT has, by what differs from Llama. */
const FAMILIES: Readonly<Record<string, Record<string, unknown>>> = {
  llama: {},
  mistral: {},
  qwen2: { 'add-qkv-bias': true },
  qwen3: { 'qk-layernorm': true },
};

/** @returns Nothing for a family whose blocks are others. */
export function megatronSizes(
  document: unknown,
  { context }: TrainingRun,
): Record<string, unknown> {
  const model = isRecord(document) ? document.model : undefined;
  if (!isRecord(model) || typeof model.family !== 'string') return {};
  const own = Object.hasOwn(FAMILIES, model.family) ? FAMILIES[model.family] : undefined;
  const number = (key: string) =>
    typeof model[key] === 'number' ? (model[key] as number) : undefined;
  const [layers, width, heads] = ['num_hidden_layers', 'hidden_size', 'num_attention_heads'].map(
    number,
  );
  if (own === undefined || layers === undefined || width === undefined || heads === undefined)
    return {};
  const groups = number('num_key_value_heads') ?? heads;
  return {
    'num-layers': layers,
    'hidden-size': width,
    'ffn-hidden-size': number('intermediate_size'),
    'num-attention-heads': heads,
    ...(groups !== heads && { 'group-query-attention': true, 'num-query-groups': groups }),
    'kv-channels': number('head_dim') ?? width / heads,
    'max-position-embeddings': number('max_position_embeddings') ?? context,
    'position-embedding-type': 'rope',
    'rotary-base': number('rope_theta') ?? 10_000,
    normalization: 'RMSNorm',
    'norm-epsilon': number('rms_norm_eps') ?? 1e-5,
    swiglu: true,
    'disable-bias-linear': true,
    // The vocabulary as it is: padding would add rows.
    'padded-vocab-size': number('vocab_size'),
    ...(model.tie_word_embeddings !== true && { 'untie-embeddings-and-output-weights': true }),
    ...own,
  };
}
