/** The index of a checkpoint in several files: which tensor stands in which. */
import { isRecord } from '../../text/values.js';
import { ByteFile } from '../byte-file.js';
import { refusal } from '../refusal.js';
import { quoted } from '../wording.js';
import { parseIndexJson } from './index-json.js';
import { checkShardName } from './shard-name.js';

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
  if (!isRecord(document)) {
    throw refusal(path, {
      rule: 'shard-index-object',
      message: `is ${kindOf(document)} of JSON; expected an object with a weight_map`,
    });
  }
  const weightMap = weightMapIn(path, document);
  const metadata = isRecord(document.metadata) ? document.metadata : {};
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

const isTextEntry = (entry: [string, unknown]): entry is [string, string] =>
  typeof entry[1] === 'string';

function kindOf(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function weightMapIn(path: string, { weight_map }: JsonObject): ReadonlyMap<string, string> {
  if (!isRecord(weight_map)) {
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
