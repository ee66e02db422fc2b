/** Comparison of models: figures at one setting, config differences, and the lowest costs. */

import type { Problem } from '../../base/errors.js';
import { problemsOf, UserError, usageError } from '../../base/errors.js';
import type { Dtype } from '../../base/tensor/dtype.js';
import { formatJson } from '../../base/text/json.js';
import { setting } from '../../base/text/setting.js';
import { modelName } from '../../base/text/words.js';
import { isRecord } from '../../base/values.js';
import { nearest } from '../../config/nearest.js';
import { formatPath, quote, valueAt } from '../../config/quote.js';
import type { Family, FamilyDocument } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { type SettingFacts, settingFacts } from '../../model/architecture/training-hints.js';
import { BOOKKEEPING_KEYS } from '../../model/architecture/transformer/settings.js';
import { refuseCacheWidths } from '../../model/budget/cache-widths.js';
import type { ProfileRequest } from '../../model/budget/profile-model.js';
import { modelBudgets, requirePositions } from '../../model/budget/profile-model.js';
import type { Quantization } from '../../model/quantization/quantization-config.js';
import { inferenceIn, servedFormat, storedWeightFormat } from '../fit/model-memory.js';
import type {
  ColumnName,
  ColumnValue,
  CommonSetting,
  ComparedFigures,
  ModelColumn,
  ModelFigures,
  TextFigures,
} from './columns.js';
import {
  COLUMN_ALIASES,
  COLUMN_NAMES,
  COLUMNS,
  commonSetting,
  DEFAULT_COLUMNS,
  STRUCTURE_COLUMNS,
  TEXT_COLUMNS,
} from './columns.js';
import type { DocumentValue, KeptDocument } from './kept-documents.js';
import { documentKeeper, documentValue } from './kept-documents.js';

interface LoadedModel {
  readonly family: Family;
  readonly document: FamilyDocument;
  readonly model: LanguageModel;
  readonly quantization?: Quantization;
  readonly storedType?: string;
}

/** Model to compare: a file with one choice of overrides. */
export interface ModelCandidate {
  readonly file: string;
  /** Values of the swept keys as written. */
  readonly chosen: readonly string[];
  /** Undefined if the model is invalid; see `problems`. */
  readonly loaded: LoadedModel | undefined;
  readonly problems: readonly Problem[];
}

/** Figures of the text under a tokenizer. */
export interface ComparedText extends TextFigures {
  readonly tokenizer: string;
}

export interface ComparisonRequest extends Omit<ProfileRequest, 'dtype'> {
  /** Type of the weights; undefined: that of each checkpoint, or bf16. */
  readonly dtype?: Dtype | undefined;
  /** Names of `COLUMNS`, or dotted paths of the document: `model.num_layers`. */
  readonly columns?: readonly string[] | undefined;
  /** Sort column; a `-` prefix means largest first. */
  readonly sort?: string | undefined;
  /** Baseline of the changes: a number in the given order, or a name; default: the first valid model. */
  readonly baseline?: string | undefined;
  /** Tokenizers; each model uses the largest one that fits its vocabulary. */
  readonly texts?: readonly ComparedText[] | undefined;
}

export interface ComparedRow {
  /** Path of the config as the user wrote it. */
  readonly file: string;
  /** Values of the swept keys as written. */
  readonly chosen: readonly string[];
  /** Whether the config is valid. */
  readonly valid: boolean;
  /** Figures by the names of `COLUMNS`; null for an invalid model. */
  readonly figures: ComparedFigures | null;
  /** Type of the weights in inference; null for an invalid model. */
  readonly weights: string | null;
  /** File of the tokenizer; null without one. */
  readonly tokenizer: string | null;
  /** Document values that differ between models or that the columns name. */
  readonly values: Readonly<Record<string, DocumentValue>> | null;
  /** Problems of the config. */
  readonly problems: readonly Problem[];
}

export interface ShownColumn {
  /** Name of `COLUMNS`, or a dotted path of the document. */
  readonly name: string;
  /** Title for people. */
  readonly title: string;
  /** Unit of the values. */
  readonly unit: ModelColumn['unit'] | 'value';
  /** Whether a smaller value is better. */
  readonly isCost: boolean;
}

export interface ComparisonTable {
  /** Sizes and types that the figures are counted for. */
  readonly setting: CommonSetting;
  /** Dotted paths of the keys with several values in `--set`. */
  readonly swept: readonly string[];
  /** Other document keys in which the models differ. */
  readonly differing: readonly string[];
  /** Models as columns if there are few, or as rows if there are many or a sweep. */
  readonly layout: 'columns' | 'rows';
  /** Columns to show, in order. */
  readonly columns: readonly ShownColumn[];
  /** Index in `rows` of the baseline of changes: the first valid model, or the chosen one. @count */
  readonly baseline: number;
  /** Lowest value of each cost in which the models differ. */
  readonly least: Readonly<Partial<ComparedFigures>>;
  /** The models. */
  readonly rows: readonly ComparedRow[];
}

/**
 * Figures of several models, a row each.
 * @answer minimind compare --json
 */
export interface ComparisonResult extends ComparisonTable {
  readonly schema: 'minimind/compare@1';
}

/** `ComparedRow` with its document. */
interface DocumentRow extends ComparedRow {
  readonly document: ReadonlyMap<string, DocumentValue>;
}

/** `ComparedRow` as a table keeps it. */
interface KeptRow extends ComparedRow {
  readonly document: KeptDocument;
}

/** Models to compare, each loaded on request. */
export interface ModelCandidates {
  readonly count: number;
  /** Dotted paths of the keys of the values in `chosen`. */
  readonly swept: readonly string[];
  /** Indices of a few models that usually cover all values on which the common setting depends. */
  readonly sample: readonly number[];
  candidate(index: number): Promise<ModelCandidate>;
  /** Facts of a model for the common setting, remembered where it was loaded before. */
  brief(index: number): Promise<{ readonly facts: SettingFacts | undefined }>;
}

/** A model counted at the expected setting. */
export interface MeasuredCandidate {
  /** Null for a model that is not valid. */
  readonly facts: SettingFacts | null;
  readonly row: DocumentRow;
}

/** A comparison as work on single models, and a table of their results. */
export interface Comparison {
  /** Counts a model. */
  measure(index: number): Promise<MeasuredCandidate>;
  /**
   * The table of all models, in their order. An invalid model keeps its row, without figures.
   * @throws UserError when no model is valid, or a column is unknown.
   */
  table(measured: (index: number) => Promise<MeasuredCandidate>): Promise<ComparisonTable>;
}

/**
 * Compares models. Their common setting depends on all of them, so it is expected from a sample. Only if that turns out
 * wrong are the models counted again.
 * @throws UserError when two tokenizers have the same size.
 */
export async function comparisonOf(
  models: ModelCandidates,
  wish: ComparisonRequest,
): Promise<Comparison> {
  refuseAlike(wish.texts ?? []);
  const known: SettingFacts[] = [];
  for (const index of models.sample) {
    const { facts } = await models.brief(index);
    if (facts !== undefined) known.push(facts);
  }
  const expected = comparedSetting(known, wish);
  // Other sweeps have no two equal models, and what is remembered of them would only take memory.
  const isOfTraining = models.swept.some((key) => !key.startsWith('model.'));
  const figures = isOfTraining ? new KnownFigures() : undefined;
  const measureAt = async (index: number, setting: CommonSetting | undefined) => {
    const candidate = await models.candidate(index);
    const { loaded } = candidate;
    const facts = loaded === undefined ? null : settingFacts(loaded);
    return { facts, row: measure(candidate, setting, wish, figures) };
  };
  return {
    measure: (index) => measureAt(index, expected),
    async table(measured) {
      // Equal ones once: a sweep has few, and any number of models.
      const facts = new Map<string, SettingFacts>();
      const rows: KeptRow[] = [];
      const keptDocument = documentKeeper();
      const kept = (row: DocumentRow): KeptRow => ({
        ...row,
        document: keptDocument(row.document),
      });
      for (let index = 0; index < models.count; index++) {
        const { facts: own, row } = await measured(index);
        if (own !== null) facts.set(JSON.stringify(own), own);
        rows.push(kept(row));
      }
      const setting = comparedSetting([...facts.values()], wish);
      if (setting === undefined) throw noneIsValid(rows);
      if (!isSameSetting(setting, expected)) {
        for (const index of rows.keys()) {
          rows[index] = kept((await measureAt(index, setting)).row);
        }
      }
      return comparisonTable(rows, setting, models.swept, wish);
    },
  };
}

/** Whether models have the same figures at both. */
function isSameSetting(one: CommonSetting, other: CommonSetting | undefined): boolean {
  const [a, b] = [one, other].map((each) => JSON.stringify({ ...each, disagreements: [] }));
  return other !== undefined && a === b;
}

function comparisonTable(
  measured: readonly KeptRow[],
  setting: CommonSetting,
  swept: readonly string[],
  wish: ComparisonRequest,
): ComparisonTable {
  const valid = measured.filter((each) => each.valid);
  const [first] = valid;
  if (!first) throw noneIsValid(measured);
  const baseline = wish.baseline === undefined ? first : namedBaseline(measured, wish.baseline);
  // Rows of a sweep can share one document.
  const documents = new Set(valid.map(({ document }) => document));
  const shapes = new Set([...documents].map(({ places }) => places));
  const keys = [...new Set([...shapes].flatMap((places) => [...places.keys()]))];
  const isMixed = valid.some(({ figures }) => figures?.family !== first.figures?.family);
  const differing = keys
    .filter((key) => key === 'model.family' || !(isMixed || saysNothing(key)))
    .filter((key) =>
      [...documents].some(
        (document) => documentValue(document, key) !== documentValue(first.document, key),
      ),
    );
  const layout = swept.length > 0 || measured.length > MOST_SIDE_BY_SIDE ? 'rows' : 'columns';
  const columns =
    wish.columns?.map((name) => knownColumn(name, keys)) ??
    defaultColumns({ layout, isMixed, isText: wish.texts !== undefined }, valid);
  const rows = sorted(measured, wish.sort, keys);
  const kept = new Set([...differing, ...columns.filter((name) => !isColumn(name))]);
  return {
    setting,
    swept,
    differing: differing.filter((key) => !swept.includes(key)),
    layout,
    columns: columns.map(shownColumn),
    baseline: rows.indexOf(baseline),
    least: leastOf(valid),
    rows: rows.map(({ document, ...row }) => ({
      ...row,
      values: row.valid
        ? Object.fromEntries([...kept].map((key) => [key, documentValue(document, key)]))
        : null,
    })),
  };
}

/** @throws UserError when the baseline is unknown, not unique or not valid. */
function namedBaseline(rows: readonly KeptRow[], text: string): KeptRow {
  const namesOf = ({ file, chosen }: KeptRow) => [file, modelName(file), chosen.join(',')];
  const named = rows.filter((row) => namesOf(row).includes(text));
  const numbered = named.length === 0 && /^\d+$/.test(text) ? [rows[Number(text) - 1]] : named;
  const [row] = numbered;
  const refuse = (message: string, suggestion: string) =>
    usageError(`${setting('baseline')}: ${message}`, suggestion);
  const numbers = `write a number from 1 to ${rows.length}`;
  if (!row) {
    const names = rows.flatMap(namesOf).filter(Boolean);
    const close = nearest(text, new Set(names));
    throw refuse(
      `${quote(text)} is not one of the ${rows.length} models`,
      close
        ? `did you mean ${close}?`
        : `${numbers}, or a model such as ${modelName(rows[0]?.file ?? '')}`,
    );
  }
  if (numbered.length > 1) {
    throw refuse(`${quote(text)} is the name of ${numbered.length} models`, numbers);
  }
  if (!row.valid) throw refuse(`${quote(text)} is not valid`, 'choose a valid model');
  return row;
}

/** Limit of models as columns. */
const MOST_SIDE_BY_SIDE = 4;

/**
 * View for default columns. Columns of models show all costs. Columns without any value are left out, as are those
 * equal to the parameters in all models.
 */
interface ColumnChoice {
  readonly layout: ComparisonTable['layout'];
  /** Whether the models are of several families, whose configs share few keys. */
  readonly isMixed: boolean;
  readonly isText: boolean;
}

function defaultColumns(
  { layout, isMixed, isText }: ColumnChoice,
  rows: readonly ComparedRow[],
): readonly ColumnName[] {
  const few: readonly ColumnName[] = isText ? TEXT_COLUMNS : DEFAULT_COLUMNS;
  const isShown = (name: ColumnName) =>
    COLUMNS[name].isCost || few.includes(name) || (isMixed && STRUCTURE_COLUMNS.includes(name));
  const all = layout === 'rows' ? few : COLUMN_NAMES.filter(isShown);
  return all.filter((name) =>
    rows.some(
      ({ figures }) =>
        figures?.[name] && (name === 'parameters' || figures[name] !== figures.parameters),
    ),
  );
}

const MAIN: ReadonlySet<string> = new Set([
  ...DEFAULT_COLUMNS,
  ...TEXT_COLUMNS,
  ...STRUCTURE_COLUMNS,
]);

/** Structure that a short answer leaves out. */
const MINOR: ReadonlySet<string> = new Set(['kv-heads', 'tied']);

/** The columns of a short answer. */
export const mainColumns = ({ columns }: ComparisonTable): readonly ShownColumn[] =>
  columns.filter(({ name }) => MAIN.has(name) && !MINOR.has(name));

/** Whether a key does not affect a model's figures. */
const saysNothing = (key: string) => BOOKKEEPING_KEYS.has(key.replace(/^model\./, ''));

function shownColumn(name: string): ShownColumn {
  if (!isColumn(name)) return { name, title: name, unit: 'value', isCost: false };
  const { title, unit, isCost } = COLUMNS[name];
  return { name, title, unit, isCost };
}

/** Whether a name is a figure rather than a document key. */
const isColumn = (name: string): name is ColumnName => Object.hasOwn(COLUMNS, name);

/** The common setting of models; undefined without any. */
const comparedSetting = (
  facts: readonly SettingFacts[],
  wish: ComparisonRequest,
): CommonSetting | undefined =>
  facts.length === 0
    ? undefined
    : commonSetting(
        { ...wish, dtype: wish.dtype ?? 'bf16' },
        facts.map(({ hints }) => hints),
        facts.map(({ positions }) => positions),
      );

function noneIsValid(rows: readonly { readonly problems: readonly Problem[] }[]): UserError {
  const message =
    rows.length === 1 ? 'the model is not valid' : `none of the ${rows.length} models is valid`;
  return new UserError('invalid-config', message, { problems: distinctProblems(rows) });
}

/** Limit of warnings to show; the rest is counted. */
const TOLD = 10;

/** Warnings of a comparison: in a successful comparison, problems of single models are warnings. */
export function comparisonWarnings({ rows }: ComparisonTable): Problem[] {
  const all = distinctProblems(rows).map((each): Problem => ({ ...each, severity: 'warning' }));
  const more = all[TOLD];
  if (!more) return all;
  const message = `and ${all.length - TOLD} more warnings`;
  return [...all.slice(0, TOLD), { severity: 'warning', file: more.file, message }];
}

/** Problems of all rows; shared ones, such as a mistake in `--set`, once. */
function distinctProblems(rows: readonly { readonly problems: readonly Problem[] }[]): Problem[] {
  const all = rows.flatMap(({ problems }) => problems);
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
}

/** Figures of models by their `model` sections: a sweep can have many with other training settings only. */
class KnownFigures {
  readonly #known = new Map<string, Measured>();
  #setting: CommonSetting | undefined;

  /** @param setting Setting of the figures; another one than before forgets all. */
  of(loaded: LoadedModel, setting: CommonSetting, count: () => Measured): Measured {
    if (setting !== this.#setting || this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#setting = setting;
    const key = JSON.stringify([
      loaded.family.name,
      valueAt(loaded.document, ['model']),
      storedWeightFormat(loaded) ?? null,
    ]);
    const known = this.#known.get(key) ?? count();
    this.#known.set(key, known);
    return known;
  }
}

const MOST_KNOWN = 5000;

/** The part of a row that the `model` section determines. */
type Measured = Pick<DocumentRow, 'figures' | 'document' | 'tokenizer' | 'weights'> & {
  readonly vocabulary: number;
};

function measure(
  { file, chosen, loaded, problems }: ModelCandidate,
  setting: CommonSetting | undefined,
  { texts, dtype }: ComparisonRequest,
  known: KnownFigures | undefined,
): DocumentRow {
  const row = { file, chosen, values: null, weights: null, tokenizer: null };
  const invalid = { ...row, valid: false, figures: null, document: new Map() };
  if (!loaded || !setting) return { ...invalid, problems };
  const { model } = loaded;
  try {
    requirePositions(setting.inference.context, model.positions);
    refuseCacheWidths(model, setting.inference.cacheDtype);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { ...invalid, problems: problemsOf(error, file) };
  }
  const count = () => figuresOf(loaded, setting, { texts, dtype });
  const { vocabulary, ...measured } = known ? known.of(loaded, setting, count) : count();
  return {
    ...row,
    ...measured,
    valid: true,
    problems:
      texts && measured.tokenizer === null
        ? [...problems, noTokenizer(file, vocabulary)]
        : problems,
  };
}

function figuresOf(
  { family, model, document, ...stored }: LoadedModel,
  setting: CommonSetting,
  { texts, dtype }: Pick<ComparisonRequest, 'texts' | 'dtype'>,
): Measured {
  const vocabulary = model.embedding.weight.shape[0] ?? 0;
  const text = fitting(texts, vocabulary);
  const { batch, context } = setting.inference;
  const format = servedFormat(dtype, storedWeightFormat(stored));
  const profile = modelBudgets(model, setting);
  const described: ModelFigures = {
    family: family.name,
    model,
    profile: { ...profile, inference: inferenceIn(model, format, profile.inference) },
    tokens: batch * context,
    text,
  };
  const figures = Object.fromEntries(
    COLUMN_NAMES.map((name) => [name, COLUMNS[name].of(described)]),
  );
  return {
    figures: figures as unknown as ComparedFigures,
    weights: format?.dtype ?? setting.inference.dtype,
    document: documentLeaves(valueAt(document, ['model']), ['model']),
    tokenizer: text?.tokenizer ?? null,
    vocabulary,
  };
}

/** Largest tokenizer that fits. Models often pad the vocabulary to a round number of rows. */
function fitting(
  texts: readonly ComparedText[] = [],
  vocabulary: number,
): ComparedText | undefined {
  return texts
    .filter((text) => text.vocabulary <= vocabulary)
    .reduce<ComparedText | undefined>(
      (best, text) => (best && best.vocabulary >= text.vocabulary ? best : text),
      undefined,
    );
}

const noTokenizer = (file: string, vocabulary: number): Problem => ({
  severity: 'warning',
  file,
  path: 'model.vocab_size',
  message: `no tokenizer that is given fits a vocabulary of ${vocabulary}`,
  suggestion: `add a smaller one with ${setting('tokenizer')}`,
});

/** @throws UserError when two tokenizers would fit the same models. */
function refuseAlike(texts: readonly ComparedText[]): void {
  const bySize = new Map<number, string>();
  for (const { vocabulary, tokenizer } of texts) {
    const other = bySize.get(vocabulary);
    if (other !== undefined) {
      throw usageError(
        `${setting('tokenizer')}: ${other} and ${tokenizer} both have ${vocabulary} tokens, so either fits`,
        'give one of them',
      );
    }
    bySize.set(vocabulary, tokenizer);
  }
}

/** Leaf values below `value`, by path. */
function documentLeaves(value: unknown, path: readonly string[]): Map<string, DocumentValue> {
  const leaves = new Map<string, DocumentValue>();
  addLeaves(value, path, leaves);
  return leaves;
}

function addLeaves(
  value: unknown,
  path: readonly string[],
  leaves: Map<string, DocumentValue>,
): void {
  if (!isRecord(value)) leaves.set(formatPath(path), leafValue(value));
  else for (const [key, inner] of Object.entries(value)) addLeaves(inner, [...path, key], leaves);
}

function leafValue(value: unknown): DocumentValue {
  if (value === undefined) return null;
  return typeof value === 'object' && value !== null ? formatJson(value) : (value as DocumentValue);
}

/** @throws UserError when `name` is neither a column nor a key. */
function knownColumn(name: string, keys: readonly string[]): string {
  if (isColumn(name) || keys.includes(name)) return name;
  const other = Object.hasOwn(COLUMN_ALIASES, name) ? COLUMN_ALIASES[name] : undefined;
  if (other !== undefined) return other;
  const inModel = `model.${name}`;
  const close = keys.includes(inModel) ? inModel : nearest(name, [...COLUMN_NAMES, ...keys]);
  throw usageError(
    `unknown column ${quote(name)}`,
    close
      ? `did you mean ${close}?`
      : `use ${COLUMN_NAMES.join(', ')}, or a key such as model.num_layers`,
  );
}

/** Stable sort by a column, rows without a value last. */
function sorted(
  rows: readonly KeptRow[],
  sort: string | undefined,
  keys: readonly string[],
): readonly KeptRow[] {
  if (sort === undefined) return rows;
  const direction = sort.startsWith('-') ? -1 : 1;
  const name = knownColumn(sort.replace(/^-/, ''), keys);
  const key = ({ figures, document }: KeptRow) =>
    isColumn(name) ? (figures?.[name] ?? null) : documentValue(document, name);
  return rows.toSorted((a, b) => {
    const [left, right] = [key(a), key(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return direction * order(left, right);
  });
}

function order(a: Exclude<ColumnValue, null>, b: Exclude<ColumnValue, null>): number {
  if (typeof a === typeof b || (isNumber(a) && isNumber(b))) return Number(a > b) - Number(a < b);
  return order(String(a), String(b));
}

const isNumber = (value: unknown) => typeof value === 'number' || typeof value === 'bigint';

/** Lowest value of each cost in which the models differ. */
function leastOf(rows: readonly ComparedRow[]): ComparisonTable['least'] {
  const found = COLUMN_NAMES.flatMap((name) => {
    if (!COLUMNS[name].isCost) return [];
    const values = rows.flatMap(({ figures }) => figures?.[name] ?? []);
    const [first] = values;
    if (first === undefined || values.every((value) => value === first)) return [];
    return [[name, values.reduce((a, b) => (b < a ? b : a))] as const];
  });
  return Object.fromEntries(found);
}
