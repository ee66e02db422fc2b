/** Parts of an answer's JSON: named fields, or what a jq expression selects. */
import { readFileSync } from 'node:fs';
import { type UserError, usageError } from '../base/errors.js';
import { builtThread } from '../base/files/file-system.js';
import { jsonPieces, printable } from '../base/text/escape.js';
import { parseJson } from '../base/text/json.js';
import { shortened } from '../base/text/words.js';
import { isRecord } from '../base/values.js';
import { nearest } from '../config/nearest.js';

/** The value as its JSON says it: large integers, NaN and infinities are texts. */
const asJson = (value: object): unknown => parseJson([...jsonPieces(value)].join(''));

/**
 * An object with the named fields of a value. A field of a field is named with dots, as in `memory.bytes`, also in the
 * elements of a list.
 * @throws UserError for a name that the value lacks.
 */
export function selectedFields(value: object, names: string): Record<string, unknown> {
  const json = asJson(value);
  const selected = names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .map((name) => [name, fieldOf(json, name.split('.'), name)] as const);
  if (selected.length === 0) {
    throw usageError('--fields: expected names of fields, found none', fieldsText(json));
  }
  return Object.fromEntries(selected);
}

function fieldOf(value: unknown, path: readonly string[], name: string): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(value)) return value.map((each) => fieldOf(each, path, name));
  if (!isRecord(value) || !Object.hasOwn(value, key)) throw unknownField(value, key, name);
  return fieldOf(value[key], rest, name);
}

function unknownField(value: unknown, key: string, name: string): UserError {
  const known = isRecord(value) ? Object.keys(value) : [];
  const meant = nearest(key, known);
  return usageError(
    `--fields: unknown field ${shortened(name, 80)}`,
    meant === undefined ? fieldsText(value) : `did you mean ${name.replace(key, meant)}?`,
  );
}

const fieldsText = (value: unknown): string =>
  isRecord(value) && Object.keys(value).length > 0
    ? `the fields here are ${shortened(Object.keys(value).join(', '), 400)}`
    : 'it has no fields';

/**
 * Values that a jq expression selects, one a line: texts as they are, other values as JSON.
 * @throws UserError for an expression that is not valid, or fails.
 */
export async function selectedText(value: object, expression: string): Promise<string> {
  const { loadJq } = await import('jq-wasm');
  const jq = await loadJq({ wasmBinary: readFileSync(builtThread('dist/jq.wasm')) });
  const json = [...jsonPieces(value)].join('');
  const { stdout, stderr, exitCode } = jq.raw(json, expression, ['-r', '-c']);
  if (exitCode !== 0) {
    throw usageError(
      `--jq: ${problemOf(stderr)}`,
      `its language is that of jq ${jq.version.replace(/^jq-/, '')}: jqlang.org`,
    );
  }
  // Control characters of names out of files must not reach a terminal.
  return stdout === '' ? '' : `${stdout.split('\n').map(printable).join('\n')}\n`;
}

/** The first line of jq's message, without its own places. */
const problemOf = (stderr: string): string =>
  shortened(
    /^jq: error(?: \([^)]*\))?: (.*?)(?: at <top-level>.*)?$/m.exec(stderr)?.[1] ?? stderr,
    200,
  );
