/** The index of a sharded checkpoint: maps each tensor to its shard. */

import { isUtf8 } from 'node:buffer';
import { basename, extname } from 'node:path';
import { goesDown } from '../../base/files/linked-files.js';
import { groupBy } from '../../base/values.js';
import { ByteFile } from '../byte-file.js';
import { quoted, refusal } from '../checkpoint-rules.js';
import { SHARD_EXTENSIONS } from '../formats.js';
import type { JsonRules, JsonValue } from '../json-scanner.js';
import { JsonScanner } from '../json-scanner.js';

/**
 * Checks the text of a shard name in an index.
 * @param path The path of the index as the user wrote it.
 * @throws UserError if the name could leave the folder, or is not a weight file.
 */
function checkShardName(path: string, name: string): void {
  if (!goesDown(name)) {
    throw refusal(path, {
      rule: 'shard-name-path',
      place: 'weight_map',
      message: `names the file ${quoted(name)}; expected a path below the folder of the index, without a drive, a root, "." or ".."`,
      suggestion: 'do not use this index unless you know who made it',
    });
  }
  const expected = extensionsFor(path);
  if (!expected.includes(extname(name))) {
    throw refusal(path, {
      rule: 'shard-name-extension',
      place: 'weight_map',
      message: `names the file ${quoted(name)}; expected the extension ${expected.join(' or ')}`,
      suggestion: 'check that the index belongs to these files',
    });
  }
}

/** Extensions allowed for an index: `model.safetensors.index.json` allows `.safetensors`; `index.json` allows all. */
function extensionsFor(index: string): readonly string[] {
  const stated = extname(basename(index, '.index.json'));
  return SHARD_EXTENSIONS.includes(stated) ? [stated] : SHARD_EXTENSIONS;
}

const MAX_DEPTH = 32;

/** A large model has 100,000 tensors. A key takes many times its length, so a limit on bytes is not enough. */
const MAX_KEYS = 400_000;

export const NO_INDEX = 'check that this is the index of a checkpoint';
const DAMAGED = 'download it again';

const INDEX_RULES: JsonRules = {
  syntax: 'shard-index-json',
  depth: {
    rule: 'shard-index-depth',
    most: MAX_DEPTH,
    message: `nests values more than ${MAX_DEPTH} deep; an index needs 2`,
  },
  keys: { rule: 'shard-index-keys', most: MAX_KEYS },
  repeatedKey: 'shard-index-key-twice',
};

/** @throws UserError if the text is not strict JSON, nests too deep, has too many keys or repeats one. */
function parseIndexJson(path: string, bytes: Buffer): JsonValue {
  if (!isUtf8(bytes)) {
    throw refusal(path, {
      rule: 'shard-index-utf8',
      message: 'has bytes that are not UTF-8',
      suggestion: DAMAGED,
    });
  }
  const scanner = new JsonScanner({
    file: path,
    bytes,
    rules: INDEX_RULES,
    suggestion: DAMAGED,
    otherFile: NO_INDEX,
  });
  const value = scanner.value();
  scanner.end();
  return value;
}

/** The index of a model with 100,000 tensors has about 10 MB. */
const MAX_INDEX_BYTES = 32_000_000;
const MAX_SHARDS = 4000;

export interface ShardIndex {
  /** The path of the index as the user wrote it. */
  readonly path: string;
  /** Shard name → its tensors, ordered by the numbers in the names. */
  readonly shards: ReadonlyMap<string, readonly string[]>;
  readonly weightMap: ReadonlyMap<string, string>;
  /** Total bytes of all tensors according to the metadata. */
  readonly totalBytes: number | undefined;
  /** Metadata entries that are strings. */
  readonly metadata: ReadonlyMap<string, string>;
}

export const isShardIndex = (path: string) => path.endsWith('.index.json');

/**
 * Reads an index, without checking that its shards exist.
 * @throws UserError if it cannot be read, or violates a rule.
 */
export function readShardIndex(path: string): ShardIndex {
  const document = parseIndexJson(path, indexBytes(path));
  if (!isIndexObject(document)) {
    throw refusal(path, {
      rule: 'shard-index-object',
      message: `is ${jsonKind(document)} of JSON; expected an object with a weight_map`,
    });
  }
  const weightMap = weightMapIn(path, document);
  const metadata = document.get('metadata');
  const said: IndexJson = isIndexObject(metadata) ? metadata : new Map();
  const totalBytes = said.get('total_size');
  return {
    path,
    shards: shardsOf(path, weightMap),
    weightMap,
    totalBytes: typeof totalBytes === 'number' ? totalBytes : undefined,
    metadata: new Map([...said].filter(isTextEntry)),
  };
}

function indexBytes(path: string): Buffer {
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

type IndexJson = ReadonlyMap<string, JsonValue>;

const isIndexObject = (value: JsonValue | undefined): value is IndexJson => value instanceof Map;

const isTextEntry = (entry: [string, JsonValue]): entry is [string, string] =>
  typeof entry[1] === 'string';

function jsonKind(value: JsonValue | undefined): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function weightMapIn(path: string, document: IndexJson): ReadonlyMap<string, string> {
  const weightMap = document.get('weight_map');
  if (!isIndexObject(weightMap)) {
    throw refusal(path, {
      rule: 'shard-index-map',
      place: 'weight_map',
      message: `is ${jsonKind(weightMap)}; expected an object: the name of each tensor, and of its file`,
    });
  }
  const map = new Map<string, string>();
  for (const [tensor, shard] of weightMap) {
    if (typeof shard !== 'string') {
      throw refusal(path, {
        rule: 'shard-name-text',
        place: 'weight_map',
        message: `gives ${jsonKind(shard)} for the tensor ${quoted(tensor)}; expected a file's name`,
      });
    }
    map.set(tensor, shard);
  }
  return map;
}

/** `model-2` sorts before `model-10`. */
const { compare: compareNumbers } = new Intl.Collator('en', { numeric: true });

function shardsOf(
  path: string,
  weightMap: ReadonlyMap<string, string>,
): ReadonlyMap<string, readonly string[]> {
  const shards = groupBy(weightMap.keys(), (tensor) => weightMap.get(tensor) ?? '');
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
