/** Reads TOML into values with the lines of their keys. */
import { parse, TomlDate, TomlError } from 'smol-toml';
import { UserError } from '../../../base/errors.js';
import { isRecord } from '../../../base/values.js';
import { ConfigDocument } from '../../../config/document.js';
import { invalidConfig } from '../../../config/document-problems.js';
import { escapeText, splitDotted } from '../../../config/quote.js';
import { type LocatedValue, type SourcePosition, TextSource } from '../../../config/source.js';

/** Bounds as for YAML: a config has a few hundred values. */
const MOST_VALUES = 150_000;
const MOST_DEPTH = 100;

/** Header of a table, `[a.b]` or `[[a.b]]`. */
const HEADER = /^[ \t]*\[{1,2}([^\]\n]+)\]{1,2}/;

/** Beginning of a line with a key. */
const KEY =
  /^[ \t]*((?:"[^"\n]*"|'[^'\n]*'|[\w-]+)(?:[ \t]*\.[ \t]*(?:"[^"\n]*"|'[^'\n]*'|[\w-]+))*)[ \t]*=/;

/**
 * Parses a text as TOML 1.0.
 * @param file Name in messages.
 * @throws UserError `invalid-config` for another text, `refused-file` beyond the bounds.
 */
export function parseToml(text: string, file: string): ConfigDocument {
  refuseBeyondBounds(text, file);
  const source = new TextSource(file, text);
  let value: unknown;
  try {
    value = parse(source.text, { maxDepth: MOST_DEPTH });
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [message = ''] = cause.message.split('\n');
    const place = { file, line: cause.line, column: cause.column };
    throw invalidConfig(
      file,
      [
        {
          severity: 'error',
          ...place,
          message: `not TOML: ${escapeText(message.replace(/^Invalid TOML document: /, ''), 200)}`,
          suggestion: 'correct this line',
        },
      ],
      1,
    );
  }
  const places = keyPlaces(source);
  return new ConfigDocument(file, located(value, [], { source, offset: 0 }, places));
}

/** Refuses what the parser would take long for: its tables of tables have no limit of their own. A dotted key is several. */
function refuseBeyondBounds(text: string, file: string): void {
  let values = 0;
  let dots = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // = , [ {
    if (code === 61) values += 1 + dots;
    else if (code === 44 || code === 91 || code === 123) values++;
    if (code === 46) dots++;
    else if (code === 10) dots = 0;
    if (values > MOST_VALUES || dots > 10_000) {
      throw new UserError('refused-file', `${escapeText(file)} has more than 150,000 values`, {
        suggestion: 'give a config: a short TOML file',
      });
    }
  }
}

/** Places of keys by their path. */
function keyPlaces(source: TextSource): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  let table: string[] = [];
  let offset = 0;
  for (const line of source.text.split('\n')) {
    const header = HEADER.exec(line)?.[1];
    const key = KEY.exec(line)?.[1];
    if (header !== undefined) {
      table = pathOf(header);
      if (table.length <= MOST_DEPTH) note(places, table, offset + line.indexOf('['));
    } else if (key !== undefined) {
      const path = [...table, ...pathOf(key)];
      if (path.length <= MOST_DEPTH) note(places, path, offset + line.search(/\S/));
    }
    offset += line.length + 1;
  }
  return places;
}

/** The first place of a path: a line in a text of several lines can look like a key too. */
function note(places: Map<string, number>, path: readonly string[], offset: number): void {
  const key = path.join('\0');
  if (!places.has(key)) places.set(key, offset);
}

const pathOf = (dotted: string): string[] =>
  splitDotted(dotted.replaceAll(/["']/g, '')).map((each) => each.trim());

function located(
  value: unknown,
  path: readonly string[],
  outer: SourcePosition,
  places: ReadonlyMap<string, number>,
): LocatedValue {
  const offset = places.get(path.join('\0'));
  const place = offset === undefined ? outer : { source: outer.source, offset };
  if (value instanceof TomlDate) return { value: value.toISOString(), place, key: place };
  if (Array.isArray(value)) {
    const parts = value.map((each, index) =>
      located(each, [...path, String(index)], place, places),
    );
    return {
      value: parts.map((each) => each.value),
      place,
      key: place,
      parts: new Map(parts.map((each, index) => [String(index), each])),
    };
  }
  if (!isRecord(value)) return { value, place, key: place };
  const parts = new Map(
    Object.entries(value).map(([key, inner]) => [
      key,
      located(inner, [...path, key], place, places),
    ]),
  );
  return {
    value: Object.fromEntries([...parts].map(([key, part]) => [key, part.value])),
    place,
    key: place,
    parts,
  };
}
