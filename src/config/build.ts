import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { Finding, UserError } from '../errors.js';
import type { Entry, Mark } from './mark.js';
import { nearest } from './nearest.js';
import { isMapping, setOwn } from './path.js';
import { type Found, invalidConfig, toProblems } from './problems.js';
import { describeValue, quote } from './quote.js';
import type { Source } from './source.js';
import { MAX_DEPTH, TOO_DEEP } from './syntax-messages.js';

/** Aliases may multiply what is written, up to this many values: enough for a file of lists. */
const MAX_VALUES = 1_000_000;

const WHOLE_NUMBER = /^[-+]?(\d+|0x[\da-f]+|0o[0-7]+)$/i;

interface Built {
  readonly value: unknown;
  readonly mark: Mark;
  /** How many values it holds with all aliases written out. */
  readonly size: number;
  /** How many mappings and lists stand in each other, with all aliases written out. */
  readonly height: number;
}

/**
 * The JavaScript value of a syntax tree, with the place of each of its parts, and what is wrong with
 * it. Parts that aliases share are shared here too, so a small file never becomes a large object.
 */
export function buildValue(
  root: Node,
  source: Source,
): { value: unknown; mark: Mark; found: readonly Found[] } {
  const builder = new Builder(source);
  const { value, mark } = builder.build(root, 0);
  return { value, mark, found: builder.found };
}

class Builder {
  readonly found: Found[] = [];
  readonly #source: Source;
  /** What each anchor names at this point of the text; 'open' while it is being built. */
  readonly #anchors = new Map<string, Built | 'open'>();
  #values = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  build(node: unknown, depth: number, fallbackOffset = 0): Built {
    if (isAlias(node)) return this.#alias(node, depth);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.#content(node, depth, fallbackOffset);
    this.#anchors.set(anchor, 'open');
    const built = this.#content(node, depth, fallbackOffset);
    // The same name may have been given to something inside, which then is the later of the two.
    if (this.#anchors.get(anchor) === 'open') this.#anchors.set(anchor, built);
    return built;
  }

  #content(node: unknown, depth: number, fallbackOffset: number): Built {
    this.#count(1, fallbackOffset);
    if (isMap(node)) return this.#map(node, depth);
    if (isSeq(node)) return this.#list(node, depth);
    if (isScalar(node)) return this.#scalar(node);
    return this.#leaf(null, fallbackOffset);
  }

  #leaf(value: unknown, offset: number): Built {
    return { value, mark: { place: { source: this.#source, offset } }, size: 1, height: 0 };
  }

  #scalar(node: Scalar): Built {
    const offset = node.range?.[0] ?? 0;
    const { value, source = '' } = node;
    if (typeof value !== 'number') return this.#leaf(value, offset);
    if (WHOLE_NUMBER.test(source) && !Number.isSafeInteger(value)) {
      this.#report(offset, {
        message: `${source.slice(0, 60)}${source.length > 60 ? '…' : ''} is beyond 2^53 − 1`,
        suggestion: 'larger integers cannot be read exactly: write a smaller one',
      });
    } else if (!Number.isFinite(value) && !/inf|nan/i.test(source)) {
      this.#report(offset, {
        message: `${source.slice(0, 60)} is too large for a number`,
        suggestion: 'write .inf if infinity is meant',
      });
    }
    return this.#leaf(value, offset);
  }

  #alias(node: Alias, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const target = this.#anchors.get(node.source);
    if (target === undefined) {
      this.#report(offset, () => this.#explainUnknownAnchor(node.source));
      return this.#leaf(undefined, offset);
    }
    if (target === 'open') {
      this.#report(offset, {
        message: `the alias ${quote(`*${node.source}`)} stands inside what it names`,
        suggestion: 'a value cannot contain itself: remove the alias',
      });
      return this.#leaf(undefined, offset);
    }
    this.#count(target.size, offset);
    if (depth + target.height > MAX_DEPTH) throw this.#stop(offset, TOO_DEEP);
    // The alias stands here; what is inside it stands where it was written.
    return { ...target, mark: { ...target.mark, place: { source: this.#source, offset } } };
  }

  #list(node: YAMLSeq, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const value: unknown[] = [];
    const items: Entry[] = [];
    let size = 1;
    let height = 0;
    for (const item of node.items) {
      const built = this.build(item, depth + 1, offset);
      value.push(built.value);
      items.push({ mark: built.mark });
      size += built.size;
      height = Math.max(height, built.height);
    }
    const mark = { place: { source: this.#source, offset }, items };
    return { value, mark, size, height: height + 1 };
  }

  #map(node: YAMLMap, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const entries = new Map<string, Entry>();
    const value: Record<string, unknown> = {};
    const merges: { offset: number; built: Built }[] = [];
    let size = 1;
    let height = 0;
    for (const pair of node.items) {
      const keyOffset = offsetOf(pair.key) ?? offset;
      const key = this.#key(pair.key, keyOffset);
      const built = this.build(pair.value, depth + 1, keyOffset);
      size += built.size;
      height = Math.max(height, built.height);
      if (key === undefined) continue;
      if (isMergeKey(pair.key)) {
        merges.push({ offset: offsetOf(pair.value) ?? keyOffset, built });
        continue;
      }
      const earlier = entries.get(key);
      if (earlier?.key !== undefined) this.#duplicate(key, keyOffset, earlier.key.offset);
      entries.set(key, { key: { source: this.#source, offset: keyOffset }, mark: built.mark });
      setOwn(value, key, built.value);
    }
    for (const merge of merges) this.#merge(merge.built, merge.offset, value, entries);
    const mark = { place: { source: this.#source, offset }, entries };
    return { value, mark, size, height: height + 1 };
  }

  /** The text of a key as it is written: `1.0` stays `1.0`. Undefined when it is none. */
  #key(node: unknown, offset: number): string | undefined {
    const built = this.build(node, 0, offset);
    if (isScalar(node)) return typeof node.value === 'string' ? node.value : (node.source ?? '');
    if (isAlias(node) && typeof built.value !== 'object') return String(built.value);
    if (node === null) return '';
    this.#report(offset, {
      message: `a key must be a text, but is ${describeValue(built.value)}`,
      suggestion: 'put a key that begins with a bracket in quotes',
    });
    return undefined;
  }

  /** Takes over what `<<` names, unless it is already there: the first that gives a key wins. */
  #merge(
    merged: Built,
    offset: number,
    value: Record<string, unknown>,
    entries: Map<string, Entry>,
  ): void {
    const parts = Array.isArray(merged.value)
      ? merged.value.map((part: unknown, i) => ({
          value: part,
          mark: merged.mark.items?.[i]?.mark,
        }))
      : [merged];
    for (const part of parts) {
      // Undefined is what is left of an alias that was found wrong.
      if (part.value === undefined) continue;
      if (!isMapping(part.value)) {
        this.#report(offset, {
          message: `<< must name a mapping, or a list of mappings, but is ${describeValue(part.value)}`,
          suggestion: 'write "<<: *name", with the mapping marked as "&name" above',
        });
        return;
      }
      for (const [key, entry] of part.mark?.entries ?? []) {
        if (entries.has(key)) continue;
        entries.set(key, entry);
        setOwn(value, key, part.value[key]);
      }
    }
  }

  #explainUnknownAnchor(name: string): Finding {
    const near = nearest(name, this.#anchors.keys());
    const message = `no anchor ${quote(`&${name}`)} stands above this alias`;
    return near === undefined
      ? { message, suggestion: 'put a text that begins with * in quotes' }
      : { message, suggestion: `did you mean ${quote(`*${near}`)}?` };
  }

  #duplicate(key: string, offset: number, earlier: number): void {
    this.#report(offset, () => {
      const { line, column } = this.#source.at(earlier);
      const where = line === undefined ? '' : `; the first is at ${line}:${column}`;
      return {
        message: `the key ${quote(key)} stands twice in this mapping${where}`,
        suggestion: 'remove one of them',
      };
    });
  }

  #count(values: number, offset: number): void {
    this.#values += values;
    if (this.#values <= MAX_VALUES) return;
    throw this.#stop(offset, {
      message: 'the aliases multiply this document to more than 1,000,000 values',
      suggestion: 'use fewer aliases',
    });
  }

  #report(offset: number, finding: Found['finding']): void {
    this.found.push({ severity: 'error', place: { source: this.#source, offset }, finding });
  }

  /** The error for a document that is not worth, or not safe, reading on. */
  #stop(offset: number, finding: Finding): UserError {
    this.#report(offset, finding);
    return invalidConfig(this.#source.file, toProblems(this.found));
  }
}

/** Only `<<` as it is: in quotes, as it would be in JSON, it is a key like any other. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) && key.type === Scalar.PLAIN && key.source === '<<' && key.tag === undefined;
}

function offsetOf(node: unknown): number | undefined {
  if (isAlias(node) || isScalar(node) || isMap(node) || isSeq(node)) return node.range?.[0];
  return undefined;
}
