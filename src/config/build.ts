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
import type { Finding } from '../errors.js';
import type { Entry, Flaw, Mark } from './mark.js';
import { nearest } from './nearest.js';
import { isMapping, setOwn } from './path.js';
import { type Found, Unreadable } from './problems.js';
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
 * it; `refusedTags` are the tags that were already found wrong. A value that is undefined, and one
 * whose mark has a flaw, is told of in what is found. Parts that aliases share are shared here too, so
 * a small file never becomes a large object.
 *
 * @throws Unreadable when the value is too large or too deep
 */
export function buildValue(
  root: Node,
  source: Source,
  refusedTags: readonly Found[],
): { value: unknown; mark: Mark; found: readonly Found[] } {
  const builder = new Builder(source, refusedTags);
  const { value, mark } = builder.build(root, 0);
  return { value, mark, found: builder.found };
}

class Builder {
  readonly found: Found[];
  readonly #source: Source;
  readonly #refusesTags: boolean;
  /** What each anchor names at this point of the text; 'open' while it is being built. */
  readonly #anchors = new Map<string, Built | 'open'>();
  #values = 0;

  constructor(source: Source, refusedTags: readonly Found[]) {
    this.#source = source;
    this.#refusesTags = refusedTags.length > 0;
    this.found = [...refusedTags];
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

  #leaf(value: unknown, offset: number, flaw?: Flaw): Built {
    const place = { source: this.#source, offset };
    return { value, mark: flaw === undefined ? { place } : { place, flaw }, size: 1, height: 0 };
  }

  #scalar(node: Scalar): Built {
    const offset = node.range?.[0] ?? 0;
    const { value, source = '' } = node;
    // A refused tag makes a text of what it stands before, whatever that was meant to be.
    if (this.#refusesTags && node.tag !== undefined) return this.#leaf(value, offset, 'wrong');
    if (typeof value !== 'number') return this.#leaf(value, offset);
    if (WHOLE_NUMBER.test(source) && !Number.isSafeInteger(value)) {
      this.#report(offset, {
        message: `${source.slice(0, 60)}${source.length > 60 ? '…' : ''} is beyond 2^53 − 1`,
        suggestion: 'larger integers cannot be read exactly: write a smaller one',
      });
      return this.#leaf(value, offset, 'wrong');
    }
    if (!Number.isFinite(value) && !/inf|nan/i.test(source)) {
      this.#report(offset, {
        message: `${source.slice(0, 60)} is too large for a number`,
        suggestion: 'write a smaller number',
      });
      return this.#leaf(value, offset, 'wrong');
    }
    return this.#leaf(value, offset);
  }

  #alias(node: Alias, depth: number): Built {
    const offset = node.range?.[0] ?? 0;
    const target = this.#anchors.get(node.source);
    if (target === undefined) {
      this.#report(offset, () => this.#explainUnknownAnchor(node.source));
      return this.#leaf(undefined, offset, 'wrong');
    }
    if (target === 'open') {
      this.#report(offset, {
        message: `the alias ${quote(`*${node.source}`)} stands inside what it names`,
        suggestion: 'a value cannot contain itself: remove the alias',
      });
      return this.#leaf(undefined, offset, 'wrong');
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
    let isWhole = true;
    for (const pair of node.items) {
      const keyOffset = offsetOf(pair.key) ?? offset;
      const key = this.#key(pair.key, keyOffset);
      const built = this.build(pair.value, depth + 1, keyOffset);
      size += built.size;
      height = Math.max(height, built.height);
      if (key === undefined) {
        isWhole = false;
        continue;
      }
      if (isMergeKey(pair.key)) {
        merges.push({ offset: offsetOf(pair.value) ?? keyOffset, built });
        continue;
      }
      const earlier = entries.get(key.name);
      if (earlier?.key !== undefined) this.#duplicate(key.name, keyOffset, earlier.key.offset);
      // Of a key that stands twice the last value is kept, though it is not known which was meant.
      const isWrong = earlier !== undefined || key.isWrong;
      const mark: Mark = isWrong ? { ...built.mark, flaw: 'wrong' } : built.mark;
      entries.set(key.name, { key: { source: this.#source, offset: keyOffset }, mark });
      setOwn(value, key.name, built.value);
    }
    for (const merge of merges) {
      if (!this.#merge(merge.built, merge.offset, value, entries)) isWhole = false;
    }
    const place = { source: this.#source, offset };
    const mark: Mark = isWhole ? { place, entries } : { place, entries, flaw: 'incomplete' };
    return { value, mark, size, height: height + 1 };
  }

  /** The text of a key as it is written: `1.0` stays `1.0`. Undefined when it is none. */
  #key(node: unknown, offset: number): { name: string; isWrong: boolean } | undefined {
    const built = this.build(node, 0, offset);
    const isWrong = built.mark.flaw === 'wrong';
    if (isScalar(node)) {
      return { name: typeof node.value === 'string' ? node.value : (node.source ?? ''), isWrong };
    }
    // An alias that was found wrong.
    if (built.value === undefined) return undefined;
    if (isAlias(node) && typeof built.value !== 'object') {
      return { name: String(built.value), isWrong };
    }
    if (node === null) return { name: '', isWrong };
    this.#report(offset, {
      message: `a key must be a text, but is ${describeValue(built.value)}`,
      suggestion: 'put a key that begins with a bracket in quotes',
    });
    return undefined;
  }

  /**
   * Takes over what `<<` names, unless it is already there: the first that gives a key wins. Returns
   * whether that was all of it.
   */
  #merge(
    merged: Built,
    offset: number,
    value: Record<string, unknown>,
    entries: Map<string, Entry>,
  ): boolean {
    let isWhole = true;
    const parts = Array.isArray(merged.value)
      ? merged.value.map((part: unknown, i) => ({
          value: part,
          mark: merged.mark.items?.[i]?.mark,
        }))
      : [merged];
    for (const part of parts) {
      // Undefined is what is left of an alias that was found wrong.
      if (part.value === undefined) {
        isWhole = false;
        continue;
      }
      if (!isMapping(part.value)) {
        this.#report(offset, {
          message: `<< must name a mapping, or a list of mappings, but is ${describeValue(part.value)}`,
          suggestion: 'write "<<: *name", with the mapping marked as "&name" above',
        });
        return false;
      }
      if (part.mark?.flaw !== undefined) isWhole = false;
      for (const [key, entry] of part.mark?.entries ?? []) {
        if (entries.has(key)) continue;
        entries.set(key, entry);
        setOwn(value, key, part.value[key]);
      }
    }
    return isWhole;
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

  #stop(offset: number, finding: Finding): Unreadable {
    this.#report(offset, finding);
    return new Unreadable(this.found);
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
