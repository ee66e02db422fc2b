/**
 * Why a published count may differ from the true one. Every usual slip, and every combination of them,
 * is tried; what is found is named, and what is not is said.
 */

import { type LanguageModel, tensorsOf } from '../architecture/layer.js';
import type { FlopsBudget } from './flops.js';

/** A number as somebody printed it. */
export interface PublishedNumber {
  readonly value: bigint;
  /** How far the printed digits allow the true number to be away: 50,000,000 for `13.8B`; 0 for all digits. */
  readonly tolerance: bigint;
}

/** A slip that turns the true count into another. */
export interface Reason {
  readonly id: string;
  readonly text: string;
}

export interface Explanation {
  /** None when the number is right as it is. */
  readonly reasons: readonly Reason[];
  /** What these slips give. */
  readonly value: bigint;
}

export interface PublishedReport {
  readonly value: bigint;
  readonly tolerance: bigint;
  /** value − the true number of parameters. */
  readonly difference: bigint;
  /** The simplest first; empty when no combination gives the number. */
  readonly explanations: readonly Explanation[];
  /** How many combinations were tried. */
  readonly tried: number;
}

/** Numbers to which a vocabulary is padded in practice. */
const VOCABULARY_MULTIPLES = [8, 16, 32, 64, 128, 256, 512, 1024] as const;

const MOST_EXPLANATIONS = 5;

/** One way of counting a part of the model: what it adds to the true count, and the slips in it. */
interface Choice {
  readonly adds: bigint;
  readonly reasons: readonly Reason[];
}

const AS_IT_IS: Choice = { adds: 0n, reasons: [] };

const slip = (id: string, text: string, adds: bigint): Choice => ({
  adds,
  reasons: [{ id, text }],
});

/**
 * Tries every combination of slips on a published number.
 * @param work FLOPs of the model, to tell a count of operations from one of parameters.
 */
export function explainPublished(
  model: LanguageModel,
  published: PublishedNumber,
  work?: { readonly forwardFlops: FlopsBudget; readonly trainingFlops: FlopsBudget },
): PublishedReport {
  const truth = tensorsOf(model)
    .filter(({ role }) => role === 'parameter')
    .reduce((total, { elements }) => total + BigInt(elements), 0n);
  const parts = [vocabularyChoices(model), aliasChoices(model), ...bufferChoices(model)];
  const counts = [...combinations(parts)].map(
    (choices): Explanation => ({
      value: choices.reduce((total, { adds }) => total + adds, truth),
      reasons: choices.flatMap(({ reasons }) => reasons),
    }),
  );
  const operations = work ? operationCounts(work.forwardFlops, work.trainingFlops) : [];
  const all = [...counts, ...operations];
  const matching = all
    .filter(({ value }) => distance(value, published.value) <= published.tolerance)
    .sort((a, b) => a.reasons.length - b.reasons.length);
  // When the number is right there is nothing to explain.
  const explanations = matching[0]?.reasons.length === 0 ? matching.slice(0, 1) : matching;
  return {
    ...published,
    difference: published.value - truth,
    explanations: explanations.slice(0, MOST_EXPLANATIONS),
    tried: all.length,
  };
}

/** Counts of operations that might have been printed in place of parameters, MACs for FLOPs too. */
function operationCounts(forward: FlopsBudget, training: FlopsBudget): Explanation[] {
  const counts = [
    ['flops', 'these are the FLOPs of the forward pass', forward.forward],
    ['macs', 'these are MACs of the forward pass: half its FLOPs in matrix products', forward.macs],
    ['training-flops', 'these are the FLOPs of the training step', training.training],
  ] as const;
  return counts.map(([id, text, { value }]) => ({
    value: BigInt(value),
    reasons: [{ id, text }],
  }));
}

const distance = (a: bigint, b: bigint) => (a > b ? a - b : b - a);

/** Every way to take one choice from each group. */
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

/** Rows and matrices of the vocabulary: a tie lost or doubled, padding, the embedding left out. */
function vocabularyChoices(model: LanguageModel): Choice[] {
  const { weight } = model.embedding;
  const [vocabulary = 0, hidden = 0] = weight.shape;
  const matrix = BigInt(weight.elements);
  const tied = model.head.weight === weight;
  // How many matrices of the vocabulary are counted, and by which slip.
  const counted: { matrices: bigint; choice: Choice }[] = tied
    ? [
        { matrices: 1n, choice: AS_IT_IS },
        { matrices: 2n, choice: slip('tie-lost', 'the tied head counted a second time', matrix) },
        {
          matrices: 0n,
          choice: slip('no-embedding', 'the embedding, tied to the head, left out', -matrix),
        },
      ]
    : [
        { matrices: 2n, choice: AS_IT_IS },
        {
          matrices: 1n,
          choice: slip(
            'tie-assumed',
            'the head taken as tied to the embedding, or the embedding left out',
            -matrix,
          ),
        },
        {
          matrices: 0n,
          choice: slip('no-vocabulary', 'embedding and head left out', -2n * matrix),
        },
      ];
  return counted.flatMap(({ matrices, choice }) => [
    choice,
    ...(matrices === 0n ? [] : paddings(vocabulary)).map(({ rows, multiple }) => {
      const text = `the vocabulary padded to ${vocabulary + rows} rows, a multiple of ${multiple}`;
      const padded = slip(
        `padding-${vocabulary + rows}`,
        text,
        matrices * BigInt(rows) * BigInt(hidden),
      );
      return { adds: choice.adds + padded.adds, reasons: [...choice.reasons, ...padded.reasons] };
    }),
  ]);
}

/** Rows that padding adds, each number once, with the largest multiple that gives it. */
function paddings(vocabulary: number): { rows: number; multiple: number }[] {
  const byRows = new Map<number, number>();
  for (const multiple of VOCABULARY_MULTIPLES) {
    const rows = (multiple - (vocabulary % multiple)) % multiple;
    if (rows > 0) byRows.set(rows, multiple);
  }
  return [...byRows].map(([rows, multiple]) => ({ rows, multiple }));
}

/** What a state dict names once for each layer, counted as often: with its own name besides, or not. */
function aliasChoices(model: LanguageModel): Choice[] {
  const shared = tensorsOf(model).filter(
    ({ role, aliases }) => role === 'parameter' && aliases.length > 1,
  );
  if (shared.length === 0) return [AS_IT_IS];
  const times = (count: (names: number) => number) =>
    shared.reduce(
      (total, { elements, aliases }) => total + BigInt(elements) * BigInt(count(aliases.length)),
      0n,
    );
  const names = shared.map(({ name }) => name).join(', ');
  return [
    AS_IT_IS,
    slip(
      'aliases',
      `${names} counted under every name it has`,
      times((layers) => layers),
    ),
    slip(
      'per-layer',
      `${names} counted once for each layer`,
      times((layers) => layers - 1),
    ),
  ];
}

/** Buffers counted as parameters; those of one name in all layers together. */
function bufferChoices(model: LanguageModel): Choice[][] {
  const kinds = new Map<string, bigint>();
  for (const { name, elements, role } of tensorsOf(model)) {
    if (role !== 'buffer') continue;
    const kind = name.replace(/\.\d+\./g, '.*.');
    kinds.set(kind, (kinds.get(kind) ?? 0n) + BigInt(elements));
  }
  return [...kinds].map(([kind, elements]) => [
    AS_IT_IS,
    slip(`buffer:${kind}`, `the buffers ${kind} counted`, elements),
  ]);
}
