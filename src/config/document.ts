import type { Problem, PropertyPath } from '../errors.js';
import { buildValue } from './build.js';
import { decode } from './decode.js';
import { follow, type Mark } from './mark.js';
import { isMapping } from './path.js';
import { type Found, invalidConfig, toProblems } from './problems.js';
import { describeValue } from './quote.js';
import { type Location, type Place, type Source, TextSource } from './source.js';
import { parseSyntax } from './syntax.js';

/** A document that was read: its value, and where each part of it stands. Never changed. */
export class ConfigDocument {
  /** As the user wrote it, or `<stdin>`. */
  readonly file: string;
  readonly value: Record<string, unknown>;
  /** For the other files of this folder. */
  readonly mark: Mark;

  constructor(file: string, value: Record<string, unknown>, mark: Mark) {
    this.file = file;
    this.value = value;
    this.mark = mark;
  }

  /** Whether something stands at `path`. */
  has(path: PropertyPath): boolean {
    return follow(this.mark, path).isWhole;
  }

  /**
   * Where the value at `path` stands, or its key. For a path that the document does not have: the key
   * of the nearest mapping above it that it has.
   */
  locate(path: PropertyPath, of: 'value' | 'key' = 'value'): Location {
    const { source, offset } = this.place(path, of);
    return source.at(offset);
  }

  /** `locate`, before the work of finding line and column. */
  place(path: PropertyPath, of: 'value' | 'key' = 'value'): Place {
    const { entry, isWhole } = follow(this.mark, path);
    const wantsKey = of === 'key' || !isWhole;
    return wantsKey && entry.key !== undefined ? entry.key : entry.mark.place;
  }
}

/**
 * The document in `text`: YAML 1.2, of which JSON is a part. `file` is its name in messages.
 *
 * @throws UserError `refused-file` when it is too large or not text; `invalid-config`, with all its
 * problems, when it is not one mapping in good YAML.
 */
export function parseDocument(text: string | Uint8Array, file: string): ConfigDocument {
  const decoded = decode(text, file);
  const source = new TextSource(file, decoded);
  const { value, mark } = parseValue(decoded, source);
  if (isMapping(value)) return new ConfigDocument(file, value, mark);
  throw invalidConfig(file, [rootProblem(value, source.at(mark.place.offset))]);
}

/**
 * One YAML value of any kind; null when the text is empty.
 *
 * @throws UserError `invalid-config`
 */
export function parseValue(text: string, source: Source): { value: unknown; mark: Mark } {
  const { root, found, isCut } = parseSyntax(text, source);
  throwIfAny(source, found, isCut);
  if (root === null) return { value: null, mark: { place: { source, offset: 0 } } };
  const built = buildValue(root, source);
  throwIfAny(source, built.found, false);
  return built;
}

function throwIfAny(source: Source, found: readonly Found[], isCut: boolean): void {
  if (found.length > 0) throw invalidConfig(source.file, toProblems(found, isCut));
}

function rootProblem(value: unknown, location: Location): Problem {
  const severity = 'error';
  if (value === null) {
    const suggestion = 'write at least one line such as "key: value"';
    return { severity, ...location, message: 'the document is empty', suggestion };
  }
  const message = `must be a mapping of keys to values, but is ${describeValue(value)}`;
  const suggestion =
    typeof value === 'string' && value.includes(':')
      ? 'put a space after the colon: "key: value"'
      : 'write lines such as "key: value"';
  return { severity, ...location, message, suggestion };
}
