/**
 * File types of llama.cpp: the type of each tensor in a mixture, for files that are written and for models that are
 * counted. Rules: llama_tensor_get_type and tensor_type_fallback of llama.cpp, src/llama-quant.cpp, commit 007dbbf.
 * Falcon's own rules are left out: no file of it is written here.
 */
import type { WritableBlocks } from './blocks/encode-blocks.js';
import { ggmlType } from './ggml-types.js';

/** Use of a matrix, as far as a mixture depends on it. A tied embedding is a head. */
export type MatrixRole =
  | 'head'
  | 'embedding'
  | 'query'
  | 'key'
  /** Values of an attention, or queries, keys and values in one. */
  | 'value'
  | 'attentionOutput'
  | 'down'
  | 'other';

/** Sizes of a model that a mixture depends on. */
export interface MixtureModel {
  /** Blocks. */
  readonly layers: number;
  /** Attentions with a matrix of values. */
  readonly attentions: number;
  /** Query heads for each head of keys and values. */
  readonly queriesPerKey: number;
  /** Experts that a router chooses from; 0 without. */
  readonly experts: number;
  /** Whether it is a model of Llama's architecture with 80 layers and shared keys, such as Llama-2-70B. */
  readonly is70B: boolean;
}

/** A matrix of a model. */
export interface MixtureMatrix {
  readonly role: MatrixRole;
  /** Number of the block; for `value`, number of the attention. */
  readonly index: number;
  /** Values of a row. */
  readonly columns: number;
}

interface Place {
  readonly index: number;
  readonly model: MixtureModel;
  readonly hasImportance: boolean;
}

/** Type of a matrix in a place; undefined for the usual one. */
type Rule = (place: Place) => WritableBlocks | undefined;

interface Mixture {
  readonly base: WritableBlocks;
  /** Whether every matrix has the type, as with `--pure`. */
  readonly isPure?: boolean;
  readonly value?: Rule;
  readonly down?: Rule;
  readonly attentionOutput?: Rule;
  /** Whether attention outputs of a model of 8 experts are Q5_K. */
  readonly raisesOutput?: boolean;
}

const always =
  (type: WritableBlocks): Rule =>
  () =>
    type;

/** The first eighth of the layers. */
const firstEighth =
  (type: WritableBlocks): Rule =>
  ({ index, model }) =>
    index < Math.floor(model.layers / 8) ? type : undefined;

/** Whether a layer is in the first or last eighth, or a third one between. */
function isFavoured(index: number, layers: number): boolean {
  const eighth = Math.floor(layers / 8);
  return index < eighth || index >= Math.floor((7 * layers) / 8) || (index - eighth) % 3 === 2;
}

const favoured = {
  value: ({ index, model }) => (isFavoured(index, model.attentions) ? 'Q6_K' : undefined),
  down: ({ index, model }) => (isFavoured(index, model.layers) ? 'Q6_K' : undefined),
} as const satisfies Partial<Record<MatrixRole, Rule>>;

/** The first eighth of the matrices of down, where an importance matrix is given. */
const guarded =
  (type: WritableBlocks): Rule =>
  (place) =>
    place.hasImportance ? firstEighth(type)(place) : undefined;

const sharesKeys = ({ queriesPerKey }: MixtureModel) => queriesPerKey >= 4;

/** File types that can be written, by their names in llama-quantize; q3_k, q4_k and q5_k are that type throughout. */
export const MIXTURES = {
  q8_0: { base: 'Q8_0' },
  q6_k: { base: 'Q6_K' },
  q5_k_m: { base: 'Q5_K', ...favoured },
  q5_k_s: { base: 'Q5_K' },
  q5_k: { base: 'Q5_K', isPure: true },
  q5_1: { base: 'Q5_1' },
  q5_0: { base: 'Q5_0', down: guarded('Q5_1') },
  q4_k_m: { base: 'Q4_K', ...favoured, raisesOutput: true },
  q4_k_s: {
    base: 'Q4_K',
    value: ({ index }) => (index < 4 ? 'Q5_K' : undefined),
    down: firstEighth('Q5_K'),
    raisesOutput: true,
  },
  q4_k: { base: 'Q4_K', isPure: true },
  q4_1: { base: 'Q4_1' },
  q4_0: { base: 'Q4_0', down: guarded('Q4_1') },
  q3_k_l: {
    base: 'Q3_K',
    value: always('Q5_K'),
    down: always('Q5_K'),
    attentionOutput: always('Q5_K'),
  },
  q3_k_m: {
    base: 'Q3_K',
    value: ({ index }) => (index < 2 ? 'Q5_K' : 'Q4_K'),
    down: ({ index, model }) => (index < Math.floor(model.layers / 16) ? 'Q5_K' : 'Q4_K'),
    attentionOutput: always('Q4_K'),
    raisesOutput: true,
  },
  q3_k_s: { base: 'Q3_K', raisesOutput: true },
  q3_k: { base: 'Q3_K', isPure: true },
  q2_k: {
    base: 'Q2_K',
    value: ({ model }) => (sharesKeys(model) ? 'Q4_K' : 'Q3_K'),
    down: always('Q3_K'),
    attentionOutput: always('Q3_K'),
    raisesOutput: true,
  },
  q2_k_s: {
    base: 'Q2_K',
    value: ({ model }) => (sharesKeys(model) ? 'Q4_K' : undefined),
    down: firstEighth('Q4_K'),
  },
} as const satisfies Readonly<Record<string, Mixture>>;

export type MixtureName = keyof typeof MIXTURES;

export const MIXTURE_NAMES = Object.keys(MIXTURES) as MixtureName[];

/** Type of a matrix in a file. F16 where a row is not a multiple of 32 values. */
export function mixtureType(
  name: MixtureName,
  { role, index, columns }: MixtureMatrix,
  model: MixtureModel,
  hasImportance = false,
): WritableBlocks | 'F16' {
  const mixture: Mixture = MIXTURES[name];
  const place = { index, model, hasImportance };
  const wanted = mixture.isPure ? mixture.base : typeOfRole(mixture, role, columns, place);
  return fitting(wanted, columns);
}

function typeOfRole(
  mixture: Mixture,
  role: MatrixRole,
  columns: number,
  place: Place,
): WritableBlocks {
  const { base } = mixture;
  const { model } = place;
  switch (role) {
    case 'head':
      return base === 'Q8_0' || columns % ggmlType(base).values !== 0 ? 'Q8_0' : 'Q6_K';
    case 'value': {
      if (model.experts === 8) return 'Q8_0';
      const type = mixture.value?.(place) ?? base;
      return model.is70B && (type === 'Q3_K' || type === 'Q4_K') ? 'Q5_K' : type;
    }
    case 'key':
      return model.experts === 8 ? 'Q8_0' : base;
    case 'down':
      return mixture.down?.(place) ?? base;
    case 'attentionOutput':
      if (model.experts === 8) return mixture.raisesOutput ? 'Q5_K' : base;
      return mixture.attentionOutput?.(place) ?? base;
    case 'embedding':
    case 'query':
    case 'other':
      return base;
  }
}

/** Types of 32 values in place of those of 256. */
const SHORTER: Readonly<Partial<Record<WritableBlocks, WritableBlocks>>> = {
  Q2_K: 'Q4_0',
  Q3_K: 'Q4_0',
  Q4_K: 'Q5_0',
  Q5_K: 'Q5_1',
  Q6_K: 'Q8_0',
};

/** The type, or the next one whose blocks divide a row. */
function fitting(type: WritableBlocks, columns: number): WritableBlocks | 'F16' {
  if (columns % ggmlType(type).values === 0) return type;
  const shorter = SHORTER[type];
  return shorter && columns % ggmlType(shorter).values === 0 ? shorter : 'F16';
}
