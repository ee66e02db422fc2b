/** The JSON of a shard index, read so that no file can hide a key, or need much more than its own size. */
import { isUtf8 } from 'node:buffer';
import type { UserError } from '../../errors.js';
import { refusal } from '../refusal.js';
import { quoted } from '../wording.js';

const MAX_DEPTH = 32;

/** A large model has 100,000 tensors. A key takes many times its length, so bytes alone are no bound. */
const MAX_KEYS = 400_000;

const NO_INDEX = 'check that this is the index of a checkpoint';
const DAMAGED = 'download it again';

/**
 * The value of a JSON text.
 * @param path Of the file, as the user wrote it.
 * @throws UserError when the text is no strict JSON, is out of all proportion or repeats a key.
 */
export function parseIndexJson(path: string, bytes: Buffer): unknown {
  if (!isUtf8(bytes)) {
    throw refusal(path, {
      rule: 'shard-index-utf8',
      message: 'holds bytes that are no UTF-8',
      suggestion: DAMAGED,
    });
  }
  const keys = checkProportions(path, bytes);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw refusal(path, {
      rule: 'shard-index-json',
      message: `is no JSON: ${(error as Error).message}`,
      suggestion: DAMAGED,
    });
  }
  // Of equal keys JSON.parse keeps the last, and says nothing.
  if (keysIn(value) < keys) throw repeatedKey(path, bytes);
  return value;
}

/** Checks what would cost memory before it is spent. Returns how many keys are written in the text. */
function checkProportions(path: string, bytes: Buffer): number {
  let depth = 0;
  let keys = 0;
  for (const { kind, start } of tokensOf(bytes)) {
    if (kind === 'key') keys++;
    else depth += kind === 'end' ? -1 : 1;
    if (depth > MAX_DEPTH) {
      throw refusal(path, {
        rule: 'shard-index-depth',
        place: `byte ${start}`,
        message: `nests values more than ${MAX_DEPTH} deep; an index needs 2`,
        suggestion: NO_INDEX,
      });
    }
    if (keys > MAX_KEYS) {
      throw refusal(path, {
        rule: 'shard-index-keys',
        place: `byte ${start}`,
        message: `has more than ${MAX_KEYS} keys`,
        suggestion: NO_INDEX,
      });
    }
  }
  return keys;
}

/** The keys in a value of bounded depth, of all its objects. */
function keysIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  return members.reduce<number>(
    (sum, member) => sum + keysIn(member),
    Array.isArray(value) ? 0 : members.length,
  );
}

/** The error of a text in which some key stands twice in its object. */
function repeatedKey(path: string, bytes: Buffer): UserError {
  const open: Set<string>[] = [];
  for (const { kind, start, end } of tokensOf(bytes)) {
    if (kind === 'end') open.pop();
    if (kind === 'begin') open.push(new Set());
    if (kind !== 'key') continue;
    // One key can be written in several ways.
    const key = JSON.parse(bytes.toString('utf8', start, end)) as string;
    if (open.at(-1)?.has(key)) {
      return refusal(path, {
        rule: 'shard-index-key-twice',
        place: `byte ${start}`,
        message: `has the key ${quoted(key)} twice in one object`,
        suggestion: DAMAGED,
      });
    }
    open.at(-1)?.add(key);
  }
  throw new Error(`${path} repeats a key that cannot be found`);
}

/** A bracket, or a string that is a key. */
interface Token {
  readonly kind: 'begin' | 'end' | 'key';
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const BLANKS: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** `{`, `[`, `}` and `]` */
const BRACKETS: ReadonlyMap<number | undefined, 'begin' | 'end'> = new Map([
  [0x7b, 'begin'],
  [0x5b, 'begin'],
  [0x7d, 'end'],
  [0x5d, 'end'],
]);

/** The brackets and keys of a text in their order. Whether it is JSON at all is not looked at. */
function* tokensOf(bytes: Buffer): Generator<Token> {
  for (let position = 0; position < bytes.length; position++) {
    const start = position;
    const kind = BRACKETS.get(bytes[start]);
    if (kind !== undefined) yield { kind, start, end: start + 1 };
    if (bytes[start] !== QUOTE) continue;
    const end = endOfString(bytes, start);
    if (isFollowedByColon(bytes, end)) yield { kind: 'key', start, end };
    position = end - 1;
  }
}

/** Behind the closing quote, or the end of the text. */
function endOfString(bytes: Buffer, start: number): number {
  let position = start + 1;
  while (position < bytes.length && bytes[position] !== QUOTE) {
    position += bytes[position] === BACKSLASH ? 2 : 1;
  }
  return Math.min(position + 1, bytes.length);
}

function isFollowedByColon(bytes: Buffer, start: number): boolean {
  let position = start;
  while (BLANKS.has(bytes[position])) position++;
  return bytes[position] === COLON;
}
