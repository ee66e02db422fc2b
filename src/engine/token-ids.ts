/** Token ids: parsed, random, sliced and changed. */

import { UserError, usageError } from '../base/errors.js';
import { parseJson } from '../base/text/json.js';
import { setting } from '../base/text/setting.js';
import { formatInteger } from '../base/text/units.js';
import { asNumber } from '../base/values.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import type { TokenIds } from './engine.js';
import { randomIntegers } from './weights/weights.js';

/** Input limits of a model. */
export interface IdLimits {
  /** Upper bound of the ids, exclusive. */
  readonly vocabulary: number;
  /** Maximum tokens of a sequence. */
  readonly positions: number;
}

export const idLimitsOf = ({ embedding, positions }: LanguageModel): IdLimits => ({
  vocabulary: embedding.weight.shape[0] ?? 0,
  positions,
});

export interface InputSize {
  /** Number of sequences. */
  readonly batch: number;
  /** Tokens per sequence. */
  readonly tokens: number;
}

/** Default tokens, limited by the model's positions. */
const DEFAULT_CONTEXT = 512;

interface SizeWishes {
  readonly batch?: number | undefined;
  readonly context?: number | undefined;
  /** Given ids, which determine both. */
  readonly ids?: TokenIds | undefined;
}

/**
 * Size of a model's input.
 * @throws UserError when it exceeds the model's limits, or is given twice.
 */
export function inputSize(
  { batch, context, ids }: SizeWishes,
  { positions }: LanguageModel,
): InputSize {
  if (ids && (batch !== undefined || context !== undefined)) {
    throw usageError(
      `${setting('ids')} says already how many sequences and tokens there are`,
      `leave ${setting('batch')} and ${setting('context')} out`,
    );
  }
  if (ids) return ids;
  const tokens = context ?? Math.min(DEFAULT_CONTEXT, positions);
  if (tokens <= positions) return { batch: batch ?? 1, tokens };
  throw usageError(
    `${setting('context')}: ${formatInteger(tokens)} tokens are more than the ${formatInteger(positions)} positions of the model`,
    `write ${setting('context', positions)}, or less`,
  );
}

/** Random ids: the same for the same seed and name. */
export function randomIds(
  seed: number,
  name: string,
  { batch, tokens }: InputSize,
  { vocabulary }: IdLimits,
): TokenIds {
  return { batch, tokens, data: randomIntegers(seed, name, batch * tokens, vocabulary) };
}

/** Maximum number of reported problems; more usually have the same cause. */
const MOST_REPORTED = 5;

/**
 * Parses ids from a JSON text: a list of sequences of equal length.
 * @param file File name for the message.
 * @throws UserError with the invalid places.
 */
export function parseIds(text: string, file: string, limits: IdLimits): TokenIds {
  const rows = rowsIn(text, file);
  const tokens = rows[0]?.length ?? 0;
  const wrong: string[] = [];
  let count = 0;
  const reportProblem = (what: () => string) => {
    if (count++ < MOST_REPORTED) wrong.push(what());
  };
  for (const [index, row] of rows.entries()) {
    if (row.length !== tokens) {
      reportProblem(
        () =>
          `sequence ${index} has ${formatInteger(row.length)} ids, and the first ${formatInteger(tokens)}`,
      );
    }
    const invalid = firstInvalidId(row, limits.vocabulary);
    if (invalid) {
      reportProblem(
        () =>
          `id ${invalid.at} of sequence ${index} is ${invalid.found}, and ids go from 0 to ${limits.vocabulary - 1}`,
      );
    }
  }
  if (rows.length === 0 || tokens === 0) reportProblem(() => 'there are no ids');
  if (tokens > limits.positions) {
    reportProblem(
      () =>
        `${formatInteger(tokens)} tokens are more than the ${formatInteger(limits.positions)} positions of the model`,
    );
  }
  if (count > 0) {
    const more = count > MOST_REPORTED ? `; and ${count - MOST_REPORTED} more` : '';
    throw refused(file, `${wrong.join('; ')}${more}`);
  }
  return { batch: rows.length, tokens, data: Int32Array.from(rows.flat() as number[]) };
}

/**
 * Token ids of a command line: `1,2,3`; undefined for anything else, which is the name of a file.
 * @throws UserError for an id that the vocabulary does not have.
 */
export function listedIds(text: string, vocabulary: number): number[] | undefined {
  if (!/^-?[\d_]+(?:\s*[,\s]\s*-?[\d_]+)*,?$/.test(text.trim())) return undefined;
  const ids = text
    .split(/[,\s]+/)
    .filter(Boolean)
    .map((each) => Number(each.replaceAll('_', '')));
  const wrong = ids.find((id) => !(id >= 0 && id < vocabulary));
  if (wrong === undefined) return ids;
  throw usageError(
    `${setting('ids')}: expected ids from 0 to ${vocabulary - 1}, found ${wrong}`,
    'write ids of the vocabulary of the model',
  );
}

/** The first value that is not an id of the vocabulary, with its position; it can be a text or a list of any length. */
export function firstInvalidId(
  ids: readonly unknown[],
  vocabulary: number,
): { readonly at: number; readonly found: string } | undefined {
  const at = ids.findIndex(
    (id) => !(Number.isInteger(id) && asNumber(id) >= 0 && asNumber(id) < vocabulary),
  );
  return at < 0 ? undefined : { at, found: String(JSON.stringify(ids[at])).slice(0, 60) };
}

function rowsIn(text: string, file: string): readonly (readonly unknown[])[] {
  let value: unknown;
  try {
    // Some editors begin a file with a byte order mark.
    value = parseJson(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw refused(file, `is not JSON: ${(error as Error).message}`);
  }
  if (Array.isArray(value) && value.every((row) => Array.isArray(row))) return value;
  throw refused(file, 'is not a list of lists');
}

const refused = (file: string, what: string) =>
  new UserError('refused-file', `${file}: ${what}`, {
    suggestion: 'write a list of sequences of equal length, as in [[5, 17, 3], [9, 2, 2]]',
  });

/** The first `tokens` tokens of every row. */
export const firstTokens = (ids: TokenIds, tokens: number): TokenIds => idSpan(ids, 0, tokens);

/** `tokens` tokens of every row, from `start` on. */
export function idSpan(ids: TokenIds, start: number, tokens: number): TokenIds {
  const data = new Int32Array(ids.batch * tokens);
  for (let row = 0; row < ids.batch; row++) {
    const from = row * ids.tokens + start;
    data.set(ids.data.subarray(from, from + tokens), row * tokens);
  }
  return { batch: ids.batch, tokens, data };
}

/** Some rows, in this order. */
export function pickRows(ids: TokenIds, rows: readonly number[]): TokenIds {
  const { tokens } = ids;
  const data = new Int32Array(rows.length * tokens);
  for (const [to, row] of rows.entries()) {
    data.set(ids.data.subarray(row * tokens, (row + 1) * tokens), to * tokens);
  }
  return { batch: rows.length, tokens, data };
}

/** Ids with another token at a position in every row. */
export function withOtherToken(
  ids: TokenIds,
  position: number,
  { vocabulary }: IdLimits,
): TokenIds {
  const data = ids.data.slice();
  for (let row = 0; row < ids.batch; row++) {
    const at = row * ids.tokens + position;
    // Half a vocabulary away: neighbours may be similar.
    const other = ((data[at] ?? 0) + Math.max(1, Math.floor(vocabulary / 2))) % vocabulary;
    data[at] = other;
  }
  return { ...ids, data };
}
