/** Reads the configuration of a hybrid model from its tensor names and shapes. */
import type { Shape } from '../../../base/tensor/dtype.js';
import type { ReadSetting, StoredShapes } from '../family.js';

/** Tensors in every block that identify a checkpoint of this family. */
const SIGNATURE = ['mamba.A_log', 'gate.u.weight'] as const;

/**
 * Lower bound of the names in a block. A checkpoint with fewer per layer is malformed, and would build a
 * description many times its size.
 */
const FEWEST_IN_BLOCK = 20;

const SHARED = 'shared_srte';

/** Forms of the SRTE by the tensor unique to them, with its further tensors. */
const STORED_SRTE_FORMS = {
  freqs: { encoding: 'learnable', tensors: ['freqs'] },
  lowrank: { encoding: 'learnable', tensors: ['lowrank', 'proj.weight'] },
  inv_freq: { encoding: 'sincos', tensors: ['inv_freq'] },
} as const;

type StoredSrteForm = keyof typeof STORED_SRTE_FORMS;

/** Values shown by the tensors; none for a model of another family. */
export function readOff(stored: StoredShapes): ReadSetting[] {
  const layers = stored.numbersUnder('layers');
  const [first] = layers;
  const inBlock = (leaf: string) => stored.shapeOf(`layers.${first}.${leaf}`);
  if (!SIGNATURE.every(inBlock) || stored.size < layers.length * FEWEST_IN_BLOCK) return [];
  return [
    ...sizes(stored, inBlock),
    ...layerCount(layers),
    ...srte(stored, layers),
    ...alignment(inBlock),
    ...tying(stored),
  ];
}

const reading = (
  key: string,
  value: ReadSetting['value'],
  shows: string,
  convertible = false,
): ReadSetting => ({ path: `model.${key}`, value, shows, convertible });

function sizes(stored: StoredShapes, inBlock: (leaf: string) => Shape | undefined): ReadSetting[] {
  const embedding = stored.shapeOf('embed_tokens.weight') ?? stored.shapeOf('lm_head.weight');
  const vocabulary = embedding?.[0];
  const hidden = stored.shapeOf('norm.weight')?.[0] ?? embedding?.[1];
  const rank = inBlock('gate.u.weight')?.[0];
  const halfHead = inBlock('attention.rope.inv_freq')?.[0];
  const heads = hidden && halfHead ? hidden / (2 * halfHead) : undefined;
  return [
    ...(vocabulary
      ? [reading('vocab_size', vocabulary, `the vocabulary has ${vocabulary} tokens`)]
      : []),
    ...(hidden ? [reading('hidden_size', hidden, `its tensors are ${hidden} wide`)] : []),
    ...(heads && Number.isInteger(heads)
      ? [reading('num_heads', heads, `there are ${heads} attention heads`)]
      : []),
    ...(rank ? [reading('gate_rank', rank, `the gate has rank ${rank}`)] : []),
  ];
}

/** Layer numbers with gaps give no count. */
function layerCount(layers: readonly number[]): ReadSetting[] {
  const count = layers.length;
  return layers.at(-1) === count - 1
    ? [reading('num_layers', count, `there ${count === 1 ? 'is 1 layer' : `are ${count} layers`}`)]
    : [];
}

function srte(stored: StoredShapes, layers: readonly number[]): ReadSetting[] {
  const prefixes = [SHARED, ...layers.map((layer) => `layers.${layer}.srte`)];
  const forms = Object.keys(STORED_SRTE_FORMS) as StoredSrteForm[];
  const form = forms.find((each) => prefixes.some((place) => stored.shapeOf(`${place}.${each}`)));
  // Without a tensor it must be the formula, whose buffer is often left out.
  if (!form) return [reading('srte_encoding', 'sincos', 'the SRTE has no tensors')];
  const { encoding, tensors } = STORED_SRTE_FORMS[form];
  const held = prefixes.filter((place) => stored.shapeOf(`${place}.${form}`));
  return [
    encoding === 'sincos'
      ? reading('srte_encoding', encoding, 'the SRTE is sines and cosines')
      : reading('srte_encoding', encoding, 'the SRTE is learned'),
    ...srteSizes(form, stored.shapeOf(`${held[0]}.${form}`)),
    ...srteSharing(held, tensors, stored),
  ];
}

function srteSizes(form: StoredSrteForm, shape: Shape | undefined): ReadSetting[] {
  const [, rows, width] = shape ?? [];
  if (form === 'inv_freq' || rows === undefined || width === undefined) return [];
  const rank = form === 'lowrank' ? width : 0;
  return [
    reading('max_position_embeddings', rows, `the SRTE has ${rows} rows`, true),
    reading(
      'srte_factorized_rank',
      rank,
      rank === 0 ? 'the SRTE is a full table' : `the SRTE has rank ${rank}`,
      true,
    ),
  ];
}

/** @param held Places with SRTE tensors: the shared path, layers, or both. */
function srteSharing(
  held: readonly string[],
  tensors: readonly string[],
  stored: StoredShapes,
): ReadSetting[] {
  const isOne = tensors.every((tensor) => stored.areOne(held.map((place) => `${place}.${tensor}`)));
  const shared = isOne && (held[0] === SHARED || held.length > 1);
  const shows = shared ? 'all layers share one SRTE' : 'this checkpoint is not shared';
  return [reading('srte_share_across_layers', shared, shows, true)];
}

function alignment(inBlock: (leaf: string) => Shape | undefined): ReadSetting[] {
  const has = inBlock('alignment.net.0.weight') ?? inBlock('alignment.residual_proj.weight');
  return [
    has
      ? reading('use_alignment', true, 'its blocks have an alignment')
      : reading('use_alignment', false, 'its blocks have no alignment'),
  ];
}

function tying(stored: StoredShapes): ReadSetting[] {
  const [embedding, head] = ['embed_tokens.weight', 'lm_head.weight'] as const;
  const tied = stored.shapeOf(head)
    ? stored.areOne([embedding, head])
    : stored.shapeOf(embedding) !== undefined;
  const shows = tied ? 'the head is the embedding' : 'the head has weights of its own';
  return [reading('tie_word_embeddings', tied, shows, true)];
}
