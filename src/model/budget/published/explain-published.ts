/**
 * Explains why a published count differs from the true one. It tries all combinations of common errors and reports
 * those that match.
 */

import { formatInteger } from '../../../base/text/units.js';
import type { PublishedCount } from '../../../config/parse-published.js';
import type { LanguageModel, Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import {
  type AnyAttention,
  isAttention,
  packedMatrices,
  tensorsOf,
  walk,
} from '../../architecture/walk.js';
import type { KnownCount } from '../family-counts.js';
import type { Exact } from '../figure.js';
import { layerPattern } from '../parameters.js';
import {
  type CountingError,
  type Explanation,
  judged,
  type PublishedReport,
} from './explanations.js';
import { roundVocabularies } from './round-vocabularies.js';

type CountExplanation = Explanation<bigint>;

/** Common multiples for vocabulary padding. */
const VOCABULARY_MULTIPLES = [8, 16, 32, 64, 128, 256, 512, 1024] as const;

/** Padding adds at most 1/50 of the rows, or at most this many rows. */
const MOST_PADDING = 64;

/** Largest difference in rows from padding or a wrong vocabulary size. */
const MOST_OTHER_ROWS = 1024;

/** One way to count a part of the model: its change to the true count, and its errors. */
interface Choice {
  readonly adds: bigint;
  readonly reasons: readonly CountingError[];
}

const AS_IT_IS: Choice = { adds: 0n, reasons: [] };

const slip = (id: string, text: string, weight: number, adds: bigint): Choice => ({
  adds,
  reasons: [{ id, text, weight }],
});

/** Further known figures of a model. */
export interface PublishedContext {
  /** FLOPs by kind, to recognise a published count of FLOPs or MACs instead of parameters. */
  readonly operations?: Readonly<Record<string, Exact>>;
  /** Counts of other forms and parts of the model. */
  readonly known?: readonly KnownCount[];
  /** See `Family.predictionLayers`. */
  readonly predictionLayers?: number;
}

/** Tries every combination of counting errors on a published number. */
export function explainPublished(
  model: LanguageModel,
  published: PublishedCount,
  { operations = {}, known = [], predictionLayers = 0 }: PublishedContext = {},
): PublishedReport<bigint> {
  const truth = tensorsOf(model)
    .filter(({ role }) => role === 'parameter')
    .reduce((total, { elements }) => total + BigInt(elements), 0n);
  const parts = [
    vocabularyChoices(model),
    ...repeatedChoices(model),
    bufferChoices(model),
    ...oldBufferChoices(model),
    predictionChoices(model, predictionLayers),
    scaleChoices(model, predictionLayers),
  ];
  const counts = [...combinations(parts)].map(
    (choices): CountExplanation => ({
      value: choices.reduce((total, { adds }) => total + adds, truth),
      reasons: choices.flatMap(({ reasons }) => reasons),
    }),
  );
  // A part that one choice leaves is named by the choice.
  const named = new Set(
    counts.filter(({ reasons }) => reasons.length === 1).map(({ value }) => value),
  );
  const others = known
    .filter(({ value, isDimension }) => !named.has(value) && !(isDimension && isRounded(published)))
    .map(
      ({ id, text, value, weight = 1.2 }): CountExplanation => ({
        value,
        reasons: [{ id, text: `these are ${text}`, weight }],
      }),
    );
  const all = [...counts, ...others, ...operationCounts(operations)];
  return {
    unit: 'parameters',
    difference: published.value - truth,
    ...judged(all, published, () => {
      const rows = otherVocabulary(model, published, counts);
      return rows.length > 0 ? rows : otherEmbeddings(model, published);
    }),
  };
}

/** Widths and numbers of rows are published in full, or as thousands. */
const isRounded = ({ tolerance }: PublishedCount) => tolerance > 1000n;

/** Every combination of one choice from each group. */
function* combinations(groups: readonly (readonly Choice[])[]): Generator<Choice[]> {
  const [first, ...rest] = groups;
  if (!first) {
    yield [];
    return;
  }
  for (const others of combinations(rest)) {
    for (const choice of first) yield [choice, ...others];
  }
}

/** Possible numbers of vocabulary matrices in a count, each with its error. */
function matrixChoices(model: LanguageModel): { matrices: bigint; choice: Choice }[] {
  const { weight } = model.embedding;
  const matrix = BigInt(weight.elements);
  if (model.head.weight === weight) {
    const lost = slip('tie-lost', 'the tied head counted a second time', 1, matrix);
    const without = slip('no-embedding', 'the embedding, tied to the head, left out', 1.5, -matrix);
    return [
      { matrices: 1n, choice: AS_IT_IS },
      { matrices: 2n, choice: lost },
      { matrices: 0n, choice: without },
    ];
  }
  const text = 'the head taken as tied to the embedding, or the embedding left out';
  return [
    { matrices: 2n, choice: AS_IT_IS },
    { matrices: 1n, choice: slip('tie-assumed', text, 1, -matrix) },
    {
      matrices: 0n,
      choice: slip('no-vocabulary', 'embedding and head left out', 1.5, -2n * matrix),
    },
  ];
}

/** Vocabulary matrices, and padding of their rows. */
function vocabularyChoices(model: LanguageModel): Choice[] {
  const [vocabulary = 0, hidden = 0] = model.embedding.weight.shape;
  return matrixChoices(model).flatMap(({ matrices, choice }) => [
    choice,
    ...(matrices === 0n ? [] : paddings(vocabulary)).map(({ rows, multiple }) => {
      const text = `the vocabulary padded to ${vocabulary + rows} rows, a multiple of ${multiple}`;
      const added = matrices * BigInt(rows) * BigInt(hidden);
      const padded = slip(`padding-${vocabulary + rows}`, text, 2, added);
      return { adds: choice.adds + padded.adds, reasons: [...choice.reasons, ...padded.reasons] };
    }),
  ]);
}

/** Rows added by padding, each number once, with its largest multiple. */
function paddings(vocabulary: number): { rows: number; multiple: number }[] {
  const most = Math.max(MOST_PADDING, vocabulary / 50);
  const byRows = new Map<number, number>();
  for (const multiple of VOCABULARY_MULTIPLES) {
    const rows = (multiple - (vocabulary % multiple)) % multiple;
    if (rows > 0 && rows <= most) byRows.set(rows, multiple);
  }
  return [...byRows].map(([rows, multiple]) => ({ rows, multiple }));
}

/**
 * Fallback for an exact number: a different number of rows, such as the tokenizer's vocabulary before padding
 * (50257 for 50432).
 */
function otherVocabulary(
  model: LanguageModel,
  { value, tolerance }: PublishedCount,
  counts: readonly CountExplanation[],
): CountExplanation[] {
  if (tolerance > 0n) return [];
  const [vocabulary = 0, hidden = 0] = model.embedding.weight.shape;
  return matrixChoices(model).flatMap(({ matrices, choice }): CountExplanation[] => {
    const base = counts.find(
      ({ reasons }) =>
        reasons.every((each) => choice.reasons.includes(each)) &&
        reasons.length === choice.reasons.length,
    );
    const perRow = matrices * BigInt(hidden);
    if (!base || perRow === 0n || (value - base.value) % perRow !== 0n) return [];
    const rows = Number((value - base.value) / perRow);
    if (rows === 0 || Math.abs(rows) > MOST_OTHER_ROWS || vocabulary + rows < 1) return [];
    const text = `a vocabulary of ${vocabulary + rows} rows instead of ${vocabulary}`;
    return [{ value, reasons: [...choice.reasons, { id: 'other-vocabulary', text, weight: 2 }] }];
  });
}

/** The embedding of another vocabulary, of round size, for a number that nothing else gives. */
function otherEmbeddings(
  { embedding }: LanguageModel,
  { value, tolerance, above = tolerance }: PublishedCount,
): CountExplanation[] {
  const [rows = 0, hidden = 1] = embedding.weight.shape;
  return roundVocabularies(value - tolerance, value + above, hidden).map(
    ({ size: vocabulary, weight }) => {
      const text = `these are the parameters of an embedding of ${formatInteger(vocabulary)} rows of ${hidden}, not of ${formatInteger(rows)}`;
      const reason = { id: `embedding-${vocabulary}`, text, weight: 2 + weight };
      return { value: BigInt(vocabulary) * BigInt(hidden), reasons: [reason] };
    },
  );
}

/** Shared layers counted once per layer, with or without their own name. */
function repeatedChoices(model: LanguageModel): Choice[][] {
  const repeated = (role: Param['role']) =>
    tensorsOf(model).filter(
      (tensor) =>
        tensor.role === role && tensor !== model.embedding.weight && tensor.aliases.length > 0,
    );
  const choices = (tensors: readonly Param[], id: string, canonical: number): Choice[] => {
    if (tensors.length === 0) return [];
    const names = tensors.map(({ name }) => name).join(', ');
    const times = (count: (aliases: number) => number) =>
      tensors.reduce(
        (total, { elements, aliases }) =>
          total + BigInt(elements) * BigInt(count(aliases.length) + canonical),
        0n,
      );
    const every = slip(
      `${id}aliases`,
      `${names} counted under every name it has`,
      1.5,
      times((n) => n),
    );
    const layers = times((n) => n - 1);
    const perLayer = slip(`${id}per-layer`, `${names} counted once for each layer`, 1.5, layers);
    return layers === 0n ? [every] : [every, perLayer];
  };
  // A shared buffer is not a parameter, so even its first name adds a count.
  return [
    [AS_IT_IS, ...choices(repeated('parameter'), '', 0)],
    [AS_IT_IS, ...choices(repeated('buffer'), 'buffer-', 1)],
  ];
}

const attentionsIn = (model: LanguageModel): AnyAttention[] =>
  walk(model).flatMap(({ layer }) => (isAttention(layer) ? [layer] : []));

/** Derived buffers that old files store for every attention layer. */
function oldBufferChoices(model: LanguageModel): Choice[][] {
  const attentions = attentionsIn(model);
  const positions = BigInt(model.positions);
  // Models with shared keys are newer than such files.
  const masked = attentions.filter(
    (layer) => layer.kind === 'attention' && layer.heads === layer.keyValueHeads,
  );
  const frequencies = attentions.flatMap(({ rotary }) =>
    rotary && rotary.tables.length === 0 ? [BigInt(rotary.rotatedDim / 2)] : [],
  );
  const masks = slip(
    'masks',
    `the causal masks of ${masked.length} attention layers counted, ${positions} × ${positions} each, which old files keep`,
    1.5,
    BigInt(masked.length) * positions * positions,
  );
  const rotary = slip(
    'rotary-frequencies',
    `the rotary frequencies of ${frequencies.length} attention layers counted, which old files keep`,
    1.2,
    frequencies.reduce((total, each) => total + each, 0n),
  );
  return [masks, rotary].map((each) => (each.adds === 0n ? [AS_IT_IS] : [AS_IT_IS, each]));
}

/**
 * Files store the layers that predict further tokens after the last block (arXiv 2412.19437, 2.2). Each is a block
 * like the last, norms of both inputs, their product [2 H → H], a norm, and its own embedding and head.
 */
function predictionChoices(model: LanguageModel, layers: number): Choice[] {
  const { embedding, head, blocks } = model;
  const block = blocks.at(-1);
  if (layers === 0 || !block) return [AS_IT_IS];
  const hidden = BigInt(model.hidden);
  const own = [...tensorsOf(block), embedding.weight, head.weight];
  const values = sumOf(own) + 3n * hidden + 2n * hidden * hidden;
  const what = `${layers === 1 ? 'the layer' : `the ${layers} layers`} that predict${layers === 1 ? 's' : ''} further tokens`;
  return [AS_IT_IS, slip('prediction-layers', `${what} counted`, 1, BigInt(layers) * values)];
}

/** Side of the square blocks that share a scale. */
const SCALED_BLOCK = 128;

/** Scales of 8-bit weights: one per block of every product in the model's blocks, including further layers. */
function scaleChoices(model: LanguageModel, predictionLayers: number): Choice[] {
  const { blocks } = model;
  const last = blocks.at(-1);
  const further = last ? BigInt(predictionLayers) * scalesIn(last) : 0n;
  const scales = blocks.reduce((total, block) => total + scalesIn(block), further);
  const text = `the scales of 8-bit weights counted, one for each ${SCALED_BLOCK} × ${SCALED_BLOCK} of them`;
  return [AS_IT_IS, slip('scales', text, 2, scales)];
}

const scalesIn = (block: Layer): bigint =>
  walk(block).reduce((total, { layer }) => total + BigInt(scalesOf(layer)), 0n);

/** Routers, embeddings and heads are not quantized. */
function scalesOf(layer: Layer): number {
  const squares = (rows: number, columns: number) =>
    Math.ceil(rows / SCALED_BLOCK) * Math.ceil(columns / SCALED_BLOCK);
  if (layer.kind === 'linear' || layer.kind === 'transposedLinear') {
    const [rows = 0, columns = 0] = layer.weight.shape;
    return squares(rows, columns);
  }
  return packedMatrices(layer).reduce(
    (total, { copies, rows, length }) => total + copies * squares(rows, length),
    0,
  );
}

const sumOf = (tensors: readonly Param[]): bigint =>
  tensors.reduce((total, { elements }) => total + BigInt(elements), 0n);

/** Buffers counted as parameters: all, those of one module, or those of one name in all layers. */
function bufferChoices(model: LanguageModel): Choice[] {
  const kinds = new Map<string, bigint>();
  const contested = new Map<string, string>();
  for (const tensor of tensorsOf(model)) {
    if (tensor.role !== 'buffer') continue;
    const kind = layerPattern(tensor.name);
    kinds.set(kind, (kinds.get(kind) ?? 0n) + BigInt(tensor.elements));
    if (tensor.contested !== undefined) contested.set(kind, tensor.contested);
  }
  const modules = new Map<string, bigint>();
  for (const [kind, elements] of kinds) {
    const module = kind.slice(0, kind.lastIndexOf('.'));
    modules.set(module, (modules.get(module) ?? 0n) + elements);
  }
  const all = [...kinds.values()].reduce((total, elements) => total + elements, 0n);
  // Contested buffers are reported with their reason.
  const isContested = (start: string) =>
    [...contested.keys()].some((kind) => kind.startsWith(start));
  const counted = (kind: string, weight: number, elements: bigint) =>
    slip(`buffers:${kind}`, `the buffers ${kind} counted`, weight, elements);
  return [
    AS_IT_IS,
    ...[...contested].map(([kind, who]) =>
      slip(`contested:${kind}`, `the buffers ${kind} counted: ${who}`, 0.5, kinds.get(kind) ?? 0n),
    ),
    ...(modules.size > 1 ? [counted('all', 1, all)] : []),
    ...[...modules]
      .filter(([module]) => !isContested(`${module}.`))
      .map(([module, elements]) => counted(`${module}.*`, 1.2, elements)),
    ...[...kinds]
      .filter(([kind]) => !isContested(kind))
      .map(([kind, elements]) => counted(kind, 1.5, elements)),
  ];
}

/** Operation counts that could be published as parameters by mistake; MACs are half of FLOPs. */
function operationCounts(operations: Readonly<Record<string, Exact>>): CountExplanation[] {
  return Object.entries(operations).flatMap(([name, value]) => {
    const reason = (id: string, what: string): CountingError => ({
      id: `${id}: ${name}`,
      text: `these are the ${what} of ${name}, not parameters`,
      weight: 1,
    });
    return [
      { value: BigInt(value), reasons: [reason('flops', 'FLOPs')] },
      { value: BigInt(value) / 2n, reasons: [reason('macs', 'MACs')] },
    ];
  });
}
