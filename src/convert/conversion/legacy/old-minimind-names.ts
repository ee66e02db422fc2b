/**
 * MiniMind's old names and layout of RoPE. Its files from before April 2025 have other names, and apply RoPE to
 * neighbouring values instead of to halves of a head. Their query and key projections are equivalent after reordering
 * the rows of each head: row j becomes old row 2j, and row d/2 + j old row 2j + 1.
 */
import { UserError, usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import type { SourceTensor, SourceTensors } from '../plan/conversion-plan.js';

/** Names in a layer, old and new. The list is complete: such a model has no biases. */
const LAYER_NAMES = new Map([
  ['attention.wq.weight', 'self_attn.q_proj.weight'],
  ['attention.wk.weight', 'self_attn.k_proj.weight'],
  ['attention.wv.weight', 'self_attn.v_proj.weight'],
  ['attention.wo.weight', 'self_attn.o_proj.weight'],
  ['attention_norm.weight', 'input_layernorm.weight'],
  ['ffn_norm.weight', 'post_attention_layernorm.weight'],
  // The router of a mixture of experts.
  ['feed_forward.gate.weight', 'mlp.gate.weight'],
]);

/** One feed-forward, or one of several experts; the shared one had no number. */
const FEED_FORWARD = /^feed_forward\.(experts\.\d+\.|shared_experts\.|)(w[123])\.weight$/;
const SHARED_EXPERT = 'shared_experts.';
const PROJECTIONS = { w1: 'gate_proj', w2: 'down_proj', w3: 'up_proj' } as const;

const TOP_NAMES = new Map([
  ['tok_embeddings.weight', 'model.embed_tokens.weight'],
  ['norm.weight', 'model.norm.weight'],
  ['output.weight', 'lm_head.weight'],
]);

/** Tables of RoPE, computed from the config and absent from today's files. */
const DROPPED = new Set(['pos_cis', 'freqs_cis', 'freqs_cos', 'freqs_sin']);

const LAYER_NAME = /^layers\.(0|[1-9]\d{0,4})\.(.+)$/s;
const UNPAIRED = /^attention\.w[qk]\.weight$/;

/**
 * The tensors of an old MiniMind file under today's names.
 * @param heads Attention heads: the query's rows are heads · head dimension.
 * @throws UserError when it has other names, or the sizes do not match that number of heads.
 */
export function fromOldMiniMind(
  file: string,
  sources: SourceTensors,
  heads: number,
): { readonly sources: SourceTensors; readonly dropped: readonly string[] } {
  const renamed = new Map<string, SourceTensor>();
  const dropped: string[] = [];
  const unknown: string[] = [];
  const headDim = legacyHeadDim(file, sources, heads);
  for (const [name, source] of sources) {
    const today = todaysName(name);
    if (DROPPED.has(name)) dropped.push(source.own);
    else if (today === undefined) unknown.push(source.own);
    else renamed.set(today, withHeads(file, name, source, headDim));
  }
  if (unknown.length > 0) {
    throw new UserError(
      'refused-file',
      `${file}: expected names of an old MiniMind checkpoint, found ${unknown
        .slice(0, 5)
        .map((name) => JSON.stringify(name))
        .join(', ')}${unknown.length > 5 ? ` and ${unknown.length - 5} more` : ''}`,
      { suggestion: `leave ${setting('dialect')} out if the checkpoint has current names` },
    );
  }
  return { sources: renamed, dropped };
}

function todaysName(name: string): string | undefined {
  const top = TOP_NAMES.get(name);
  if (top !== undefined) return top;
  const [, layer, rest = ''] = LAYER_NAME.exec(name) ?? [];
  const today = LAYER_NAMES.get(rest) ?? feedForwardName(rest);
  return today && `model.layers.${layer}.${today}`;
}

function feedForwardName(name: string): string | undefined {
  const [, expert, projection] = FEED_FORWARD.exec(name) ?? [];
  if (expert === undefined) return undefined;
  const owner = expert === SHARED_EXPERT ? `${SHARED_EXPERT}0.` : expert;
  return `mlp.${owner}${PROJECTIONS[projection as keyof typeof PROJECTIONS]}.weight`;
}

function legacyHeadDim(file: string, sources: SourceTensors, heads: number): number {
  const query = sources.get('layers.0.attention.wq.weight')?.tensor;
  if (query === undefined) {
    throw new UserError('refused-file', `${file} has no layers.0.attention.wq.weight`, {
      suggestion: `leave ${setting('dialect')} out when its names are of today`,
    });
  }
  const [rows = 0] = query.shape;
  if (rows % heads === 0 && (rows / heads) % 2 === 0) return rows / heads;
  throw usageError(
    `expected a query of ${heads} heads of an even size, found ${rows} rows`,
    `give the number of attention heads of the model with ${setting('heads')}`,
  );
}

function withHeads(
  file: string,
  name: string,
  source: SourceTensor,
  headDim: number,
): SourceTensor {
  const [, , rest = ''] = LAYER_NAME.exec(name) ?? [];
  if (!UNPAIRED.test(rest)) return source;
  const [rows = 0] = source.tensor.shape;
  if (source.tensor.shape.length === 2 && rows % headDim === 0) {
    return { ...source, heads: rows / headDim };
  }
  throw usageError(
    `${file}: ${JSON.stringify(source.own)} has ${rows} rows, which is not a multiple of the head size ${headDim}`,
    `give the number of attention heads of the model with ${setting('heads')}`,
  );
}
