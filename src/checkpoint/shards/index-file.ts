/** The index of a checkpoint in several files: which tensor stands in which. */

import { isUtf8 } from 'node:buffer';
import type { UserError } from '../../errors.js';
import { ByteFile } from '../byte-file.js';
import { refusal } from '../rules.js';
import { quoted } from '../wording.js';
import { checkShardName } from './shard-name.js';

// The JSON of a shard index, read so that no file can hide a key, or need much more than its own size.

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
function parseIndexJson(path: string, bytes: Buffer): unknown {
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

/** That of a model with 100,000 tensors has about 10 MB. */
const MAX_INDEX_BYTES = 32_000_000;
const MAX_SHARDS = 10_000;

export interface ShardIndex {
  /** Of the index itself, as the user wrote it. */
  readonly path: string;
  /** A shard's name → the tensors that are placed in it. Ordered by the numbers in the names. */
  readonly shards: ReadonlyMap<string, readonly string[]>;
  /** A tensor's name → its shard's. */
  readonly weightMap: ReadonlyMap<string, string>;
  /** What the metadata gives as the sum of all tensors' bytes. */
  readonly totalBytes: number | undefined;
  /** Those of the metadata that are strings. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** Whether a file's name is that of an index. */
export const isShardIndex = (path: string) => path.endsWith('.index.json');

/**
 * Reads an index. Whether its shards are there is not looked at.
 * @throws UserError when it cannot be read, or breaks a rule.
 */
export function readShardIndex(path: string): ShardIndex {
  const document = parseIndexJson(path, bytesOf(path));
  if (!isObject(document)) {
    throw refusal(path, {
      rule: 'shard-index-object',
      message: `is ${kindOf(document)} of JSON; expected an object with a weight_map`,
    });
  }
  const weightMap = weightMapIn(path, document);
  const metadata = isObject(document.metadata) ? document.metadata : {};
  return {
    path,
    shards: shardsOf(path, weightMap),
    weightMap,
    totalBytes: typeof metadata.total_size === 'number' ? metadata.total_size : undefined,
    metadata: new Map(Object.entries(metadata).filter(isTextEntry)),
  };
}

function bytesOf(path: string): Buffer {
  const file = ByteFile.open(path);
  try {
    if (file.size > MAX_INDEX_BYTES) {
      throw refusal(path, {
        rule: 'shard-index-size',
        message: `has ${file.size} bytes; an index has at most ${MAX_INDEX_BYTES}`,
        suggestion: 'check that this is the index of a checkpoint',
      });
    }
    return file.read(0, file.size);
  } finally {
    file.close();
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const isTextEntry = (entry: [string, unknown]): entry is [string, string] =>
  typeof entry[1] === 'string';

function kindOf(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function weightMapIn(path: string, { weight_map }: JsonObject): ReadonlyMap<string, string> {
  if (!isObject(weight_map)) {
    throw refusal(path, {
      rule: 'shard-index-map',
      place: 'weight_map',
      message: `is ${kindOf(weight_map)}; expected an object: the name of each tensor, and of its file`,
    });
  }
  const map = new Map<string, string>();
  // By keys, for an array of all entries is as large as the map itself.
  for (const tensor of Object.keys(weight_map)) {
    const shard = weight_map[tensor];
    if (typeof shard !== 'string') {
      throw refusal(path, {
        rule: 'shard-name-text',
        place: 'weight_map',
        message: `gives ${kindOf(shard)} for the tensor ${quoted(tensor)}; expected a file's name`,
      });
    }
    map.set(tensor, shard);
  }
  return map;
}

/** `model-2` before `model-10`. */
const { compare: compareNumbers } = new Intl.Collator('en', { numeric: true });

function shardsOf(
  path: string,
  weightMap: ReadonlyMap<string, string>,
): ReadonlyMap<string, readonly string[]> {
  const shards = new Map<string, string[]>();
  for (const [tensor, shard] of weightMap) {
    const tensors = shards.get(shard);
    if (tensors) tensors.push(tensor);
    else shards.set(shard, [tensor]);
  }
  if (shards.size === 0) {
    throw refusal(path, {
      rule: 'shard-index-empty',
      place: 'weight_map',
      message: 'names no tensors',
    });
  }
  if (shards.size > MAX_SHARDS) {
    throw refusal(path, {
      rule: 'shard-count',
      place: 'weight_map',
      message: `names ${shards.size} files; at most ${MAX_SHARDS} are opened`,
    });
  }
  for (const shard of shards.keys()) checkShardName(path, shard);
  return new Map([...shards].sort(([a], [b]) => compareNumbers(a, b)));
}
