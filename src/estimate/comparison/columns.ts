/** Columns of `minimind compare`, computed from a model's description or profile. */
import type { TrainingHints } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import {
  type AnyAttention,
  isAttention,
  memoized,
  queryHeads,
  walkCounted,
} from '../../model/architecture/walk.js';
import type { Exact } from '../../model/budget/figure.js';
import type {
  ModelBudgets,
  ProfileRequest,
  ResolvedSetting,
} from '../../model/budget/profile-model.js';
import { resolveSetting } from '../../model/budget/profile-model.js';

// Common setting of compared models: figures at different lengths are not comparable.

/** Setting on which the models' files disagree. */
export interface Disagreement {
  /** Setting on which the configs disagree. */
  readonly of: 'batch' | 'context' | 'precision' | 'recompute';
  /** Values of the configs. @integer */
  readonly said: readonly (number | string | boolean)[];
}

export interface CommonSetting extends ResolvedSetting {
  /** Settings on which the configs disagree. */
  readonly disagreements: readonly Disagreement[];
}

/**
 * Setting from flags, then from values on which all files agree, then from defaults. If the files have different
 * lengths, the shortest is used, unless a model supports less. If they have different batches or precisions, the
 * default is used.
 * @param hints Hints of each file.
 * @param positions Maximum input length of each model.
 */
export function commonSetting(
  wish: ProfileRequest,
  hints: readonly TrainingHints[],
  positions: readonly number[],
): CommonSetting {
  const least = Math.min(...positions);
  const shortest = Math.min(...hints.flatMap(({ context }) => context ?? []));
  const disagreements: Disagreement[] = [];
  const agreed = <Key extends Disagreement['of']>(key: Key): TrainingHints[Key] => {
    const said = [...new Set(hints.map((hint) => hint[key]).filter((each) => each !== undefined))];
    const isFitting = said.length <= 1 && (key !== 'context' || shortest <= least);
    if (said.length > 0 && !isFitting && wish[key] === undefined) {
      disagreements.push({ of: key, said });
    }
    return said.length > 1 ? undefined : said[0];
  };
  agreed('context');
  const common: TrainingHints = {
    batch: agreed('batch'),
    context: shortest <= least ? shortest : undefined,
    precision: agreed('precision'),
    recompute: agreed('recompute'),
    beyondOneDevice: [...new Set(hints.flatMap(({ beyondOneDevice = [] }) => beyondOneDevice))],
  };
  // A length from the user may exceed a model's limit; each model reports that itself.
  const setting = resolveSetting(wish, common, wish.context ?? least);
  return { ...setting, disagreements };
}

export interface ModelFigures {
  readonly family: string;
  readonly model: LanguageModel;
  readonly profile: ModelBudgets;
  /** Tokens of a forward pass. */
  readonly tokens: number;
  /** Figures of a text under the model's tokenizer. */
  readonly text?: TextFigures | undefined;
}

export interface TextFigures {
  /** Vocabulary size of the tokenizer. */
  readonly vocabulary: number;
  readonly tokens: number;
  readonly characters: number;
}

/** Null if a model has no such value, or more than one. */
export type ColumnValue = Exact | string | boolean | null;

/** Figures of a model by the names of `COLUMNS`. */
export interface ComparedFigures {
  /** All stored parameters. */
  readonly parameters: Exact;
  /** Parameters that a token uses; of a mixture, only its chosen experts. */
  readonly active: Exact;
  /** Parameters of the table of token vectors. */
  readonly embedding: Exact;
  /** Parameters outside the table of token vectors. */
  readonly 'non-embedding': Exact;
  /** Bytes of the parameters in the element type of inference. */
  readonly weights: Exact;
  /** Bytes that a token of one sequence adds to the cache. */
  readonly 'kv-per-token': Exact;
  /** Bytes of keys and values at the setting. */
  readonly 'kv-cache': Exact;
  /** Bytes of the recurrent states, without the inputs that convolutions keep; `inference-memory` has both. */
  readonly 'mamba-state': Exact;
  /** Bytes of weights, buffers and state. */
  readonly 'inference-memory': Exact;
  /** FLOPs of a forward pass at the setting. */
  readonly 'forward-flops': Exact;
  /** FLOPs of a training step. */
  readonly 'training-flops': Exact;
  /** Bytes of training on one device with fused attention, without the workspace of kernels. */
  readonly 'training-memory': Exact;
  /** Family of the model. */
  readonly family: string;
  /** Number of blocks. @count */
  readonly layers: number;
  /** Width of the model. @count */
  readonly hidden: number;
  /** Width ÷ number of blocks. */
  readonly 'width-per-layer': number;
  /** Query heads; a range where the layers differ, null without any. @integer */
  readonly heads: number | string | null;
  /** Key heads; a range where the layers differ, null without any. @integer */
  readonly 'kv-heads': number | string | null;
  /** Size of the vocabulary. @count */
  readonly vocabulary: number;
  /** Longest input in tokens. @count */
  readonly positions: number;
  /** Whether the head is the embedding. */
  readonly tied: boolean;
  /** Tokens of the text; null where no tokenizer fits. @count */
  readonly tokens: number | null;
  /** Size of the tokenizer's vocabulary; null where none fits. @count */
  readonly 'tokenizer-vocabulary': number | null;
  /** Unicode code points of the text per token; null where no tokenizer fits. */
  readonly 'chars-per-token': number | null;
  /** Bytes that a character adds to the cache; null where no tokenizer fits. */
  readonly 'kv-per-char': number | null;
  /** FLOPs of a forward pass per character; null where no tokenizer fits. */
  readonly 'flops-per-char': number | null;
}

export interface ModelColumn {
  /** Header in text output. */
  readonly title: string;
  readonly unit: 'parameters' | 'bytes' | 'FLOP' | 'number' | 'ratio' | 'word';
  /** Whether lower is better. */
  readonly isCost: boolean;
  readonly of: (described: ModelFigures) => ColumnValue;
}

const cost = (title: string, unit: ModelColumn['unit'], of: (profile: ModelBudgets) => Exact) =>
  ({ title, unit, isCost: true, of: ({ profile }: ModelFigures) => of(profile) }) as const;

const fact = (
  title: string,
  unit: ModelColumn['unit'],
  of: (model: LanguageModel) => ColumnValue,
) => ({ title, unit, isCost: false, of: ({ model }: ModelFigures) => of(model) }) as const;

const ofText = (
  title: string,
  unit: ModelColumn['unit'],
  isCost: boolean,
  of: (text: TextFigures, described: ModelFigures) => number,
) =>
  ({
    title,
    unit,
    isCost,
    of: (described: ModelFigures) => (described.text ? of(described.text, described) : null),
  }) as const;

/** Cost per character, from the cost per token. */
const forCharacter = ({ tokens, characters }: TextFigures, ofToken: number) =>
  (ofToken * tokens) / characters;

/** Columns by their names in `--columns` and in JSON. */
export const COLUMNS = {
  parameters: cost('parameters', 'parameters', ({ parameters }) => parameters.total.value),
  active: cost('active', 'parameters', ({ parameters }) => parameters.active.value),
  embedding: cost('embedding', 'parameters', ({ parameters }) => parameters.embedding.value),
  'non-embedding': cost(
    'non-embedding',
    'parameters',
    ({ parameters }) => parameters.nonEmbedding.value,
  ),
  weights: cost('weights', 'bytes', ({ inference }) => inference.weights.value),
  'kv-per-token': cost(
    'KV per token',
    'bytes',
    ({ inference }) => inference.state.keyValuePerToken.value,
  ),
  'kv-cache': cost('KV cache', 'bytes', ({ inference }) => inference.state.keyValueCache.value),
  'mamba-state': cost(
    'recurrent state',
    'bytes',
    ({ inference }) => inference.state.mambaState.value,
  ),
  'inference-memory': cost('inference memory', 'bytes', ({ inference }) => inference.total.value),
  'forward-flops': cost('forward pass', 'FLOP', ({ forwardFlops }) => forwardFlops.total.value),
  'training-flops': cost('training step', 'FLOP', ({ trainingFlops }) => trainingFlops.total.value),
  'training-memory': cost('training memory', 'bytes', ({ training }) => training.total.value),
  family: { title: 'family', unit: 'word', isCost: false, of: ({ family }) => family },
  layers: fact('layers', 'number', (model) => model.blocks.length),
  hidden: fact('hidden', 'number', hiddenOf),
  'width-per-layer': fact(
    'width per layer',
    'ratio',
    (model) => hiddenOf(model) / model.blocks.length,
  ),
  heads: fact('heads', 'number', (model) => alike(model, queryHeads)),
  'kv-heads': fact('KV heads', 'number', (model) => alike(model, keyValueHeadsOf)),
  vocabulary: fact('vocabulary', 'number', ({ embedding }) => embedding.weight.shape[0] ?? 0),
  positions: fact('positions', 'number', ({ positions }) => positions),
  tied: fact('tied', 'word', ({ embedding, head }) => embedding.weight === head.weight),
  tokens: ofText('tokens of the text', 'number', true, ({ tokens }) => tokens),
  'tokenizer-vocabulary': ofText('tokenizer', 'number', false, ({ vocabulary }) => vocabulary),
  'chars-per-token': ofText(
    'chars per token',
    'ratio',
    false,
    ({ tokens, characters }) => characters / tokens,
  ),
  'kv-per-char': ofText('KV per char', 'bytes', true, (text, { profile }) =>
    forCharacter(text, Number(profile.inference.state.keyValuePerToken.value)),
  ),
  'flops-per-char': ofText('forward per char', 'FLOP', true, (text, { profile, tokens }) =>
    forCharacter(text, Number(profile.forwardFlops.total.value) / tokens),
  ),
} as const satisfies Record<keyof ComparedFigures, ModelColumn>;

export type ColumnName = keyof typeof COLUMNS;

/** Other names of columns. */
export const COLUMN_ALIASES: Readonly<Record<string, ColumnName>> = {
  params: 'parameters',
  size: 'weights',
  memory: 'inference-memory',
  flops: 'forward-flops',
  vocab: 'vocabulary',
  depth: 'layers',
  width: 'hidden',
};

export const COLUMN_NAMES = Object.keys(COLUMNS) as readonly ColumnName[];

export const DEFAULT_COLUMNS = [
  'parameters',
  'active',
  'weights',
  'kv-per-token',
  'forward-flops',
  'training-memory',
] as const satisfies readonly ColumnName[];

/** Structure columns, for models of different families. */
export const STRUCTURE_COLUMNS: readonly ColumnName[] = [
  'layers',
  'hidden',
  'heads',
  'kv-heads',
  'vocabulary',
  'positions',
  'tied',
];

/** Default columns for a text with tokenizers. */
export const TEXT_COLUMNS = [
  'parameters',
  'chars-per-token',
  'kv-per-token',
  'kv-per-char',
  'flops-per-char',
] as const satisfies readonly ColumnName[];

/** Width of the residual stream. */
function hiddenOf({ embedding }: LanguageModel): number {
  return embedding.weight.shape[1] ?? 0;
}

/** Layers of attention, each kind of expert once. */
const attentionsOf = memoized((model: LanguageModel): readonly AnyAttention[] =>
  walkCounted(model).flatMap(({ layer }) => (isAttention(layer) ? [layer] : [])),
);

/** Common value of all attention layers; a range such as `2–8` if they differ, null if there are none. */
function alike(model: LanguageModel, of: (layer: AnyAttention) => number | undefined) {
  const values = attentionsOf(model).flatMap((layer) => of(layer) ?? []);
  if (values.length === 0) return null;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? least : `${least}–${most}`;
}

/** Key-value heads; latent attention has one latent for all heads instead. */
const keyValueHeadsOf = (layer: AnyAttention) =>
  'keyValueHeads' in layer ? layer.keyValueHeads : undefined;
