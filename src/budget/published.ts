/**
 * Why a published count may differ from the true one. Every usual slip, and every combination of them,
 * is tried; what is found is named, and what is not is said.
 */

import type { LanguageModel } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { tensorsOf } from '../architecture/walk.js';
import type { Exact } from './figure.js';
import { layerPattern } from './parameters.js';

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
  /** How far-fetched it is; the usual slips have 1. */
  readonly weight: number;
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
  /** The likeliest first; empty when no combination gives the number. */
  readonly explanations: readonly Explanation[];
  /** How many combinations were tried. */
  readonly tried: number;
}

/** Numbers to which a vocabulary is padded in practice. */
const VOCABULARY_MULTIPLES = [8, 16, 32, 64, 128, 256, 512, 1024] as const;

/** Padding adds at most a fiftieth of the rows, or this many where that is less. */
const MOST_PADDING = 64;

/** So many rows a vocabulary may have been before it was padded, or be given too many. */
const MOST_OTHER_ROWS = 1024;

const MOST_EXPLANATIONS = 5;

/** One way of counting a part of the model: what it adds to the true count, and the slips in it. */
interface Choice {
  readonly adds: bigint;
  readonly reasons: readonly Reason[];
}

const AS_IT_IS: Choice = { adds: 0n, reasons: [] };

const slip = (id: string, text: string, weight: number, adds: bigint): Choice => ({
  adds,
  reasons: [{ id, text, weight }],
});

/**
 * Tries every combination of slips on a published number.
 * @param operations FLOPs of the model by what they are of, to tell a count of operations, or of
 * multiply-accumulates, from one of parameters.
 */
export function explainPublished(
  model: LanguageModel,
  published: PublishedNumber,
  operations: Readonly<Record<string, Exact>> = {},
): PublishedReport {
  const truth = tensorsOf(model)
    .filter(({ role }) => role === 'parameter')
    .reduce((total, { elements }) => total + BigInt(elements), 0n);
  const parts = [vocabularyChoices(model), ...repeatedChoices(model), bufferChoices(model)];
  const counts = [...combinations(parts)].map(
    (choices): Explanation => ({
      value: choices.reduce((total, { adds }) => total + adds, truth),
      reasons: choices.flatMap(({ reasons }) => reasons),
    }),
  );
  const all = [...counts, ...operationCounts(operations)];
  const near = all.filter(({ value }) => distance(value, published.value) <= published.tolerance);
  const found = near.length > 0 ? near : otherVocabulary(model, published, counts);
  return {
    ...published,
    difference: published.value - truth,
    explanations: ranked(found, published.value).slice(0, MOST_EXPLANATIONS),
    tried: all.length,
  };
}

/** The likeliest first; what holds all slips of another explanation explains nothing more. */
function ranked(found: readonly Explanation[], published: bigint): Explanation[] {
  const ids = ({ reasons }: Explanation) => reasons.map(({ id }) => id);
  const weight = ({ reasons }: Explanation) =>
    reasons.reduce((total, reason) => total + reason.weight, 0);
  const isPartOf = (a: Explanation, b: Explanation) =>
    a !== b && a.reasons.length < b.reasons.length && ids(a).every((id) => ids(b).includes(id));
  const closer = (a: Explanation, b: Explanation) =>
    Number(distance(a.value, published) - distance(b.value, published));
  return found
    .filter((each) => !found.some((other) => isPartOf(other, each)))
    .sort((a, b) => weight(a) - weight(b) || closer(a, b));
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

/** How many matrices of the vocabulary a count may hold, and by which slip. */
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

/** Matrices of the vocabulary, and their rows padded. */
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

/** Rows that padding adds, each number once, with the largest multiple that gives it. */
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
 * When nothing else explains an exact number: another number of rows, such as that of the tokenizer
 * before its vocabulary was padded (50257 for 50432).
 */
function otherVocabulary(
  model: LanguageModel,
  { value, tolerance }: PublishedNumber,
  counts: readonly Explanation[],
): Explanation[] {
  if (tolerance > 0n) return [];
  const [vocabulary = 0, hidden = 0] = model.embedding.weight.shape;
  return matrixChoices(model).flatMap(({ matrices, choice }): Explanation[] => {
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

/** What a state dict names once for each layer, counted as often: with its own name besides, or not. */
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
  // A shared buffer is no parameter, so even its first name is one too many.
  return [
    [AS_IT_IS, ...choices(repeated('parameter'), '', 0)],
    [AS_IT_IS, ...choices(repeated('buffer'), 'buffer-', 1)],
  ];
}

/** Buffers counted as parameters: all, those of one module, or those of one name, in all layers. */
function bufferChoices(model: LanguageModel): Choice[] {
  const kinds = new Map<string, bigint>();
  for (const { name, elements, role } of tensorsOf(model)) {
    if (role !== 'buffer') continue;
    const kind = layerPattern(name);
    kinds.set(kind, (kinds.get(kind) ?? 0n) + BigInt(elements));
  }
  const modules = new Map<string, bigint>();
  for (const [kind, elements] of kinds) {
    const module = kind.slice(0, kind.lastIndexOf('.'));
    modules.set(module, (modules.get(module) ?? 0n) + elements);
  }
  const all = [...kinds.values()].reduce((total, elements) => total + elements, 0n);
  const counted = (kind: string, weight: number, elements: bigint) =>
    slip(`buffers:${kind}`, `the buffers ${kind} counted`, weight, elements);
  return [
    AS_IT_IS,
    ...(modules.size > 1 ? [counted('all', 1, all)] : []),
    ...[...modules].map(([module, elements]) => counted(`${module}.*`, 1.2, elements)),
    ...[...kinds].map(([kind, elements]) => counted(kind, 1.5, elements)),
  ];
}

/** Counts of operations that might have been printed in place of parameters; MACs are half of FLOPs. */
function operationCounts(operations: Readonly<Record<string, Exact>>): Explanation[] {
  return Object.entries(operations).flatMap(([name, value]) => {
    const reason = (id: string, what: string): Reason => ({
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
