/** Configs as PyTorch files hold them. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { isKind } from '../checkpoint/torch/pickle/pickle-machine.js';
import type { Dict, Value } from '../checkpoint/torch/pickle/values.js';
import type { Writable, WritableDict } from '../checkpoint/torch/pickle/write-opcodes.js';
import { isMapping, splitDotted } from '../config/path.js';

interface Setting {
  readonly path: string;
  readonly value: unknown;
}

/**
 * The config of a checkpoint with some values changed, all others as they were saved: the whole numbers
 * and the floats among them. Undefined when it holds none that is a dict.
 */
export function configWith(
  { content }: Checkpoint,
  settings: readonly Setting[],
): Writable | undefined {
  const config = content.get('config');
  if (config === undefined || !isKind(config, 'dict')) return undefined;
  return settings.reduce<Value>(
    (whole, { path, value }) => withValue(whole, splitDotted(path), value),
    config,
  );
}

function withValue(at: Value, [key, ...rest]: readonly string[], value: unknown): Value {
  // Plain values are written as they are read.
  if (key === undefined) return writableOf(value) as Value;
  const dict: Dict = isKind(at, 'dict') ? at : { kind: 'dict', type: 'dict', entries: new Map() };
  const inner = withValue(dict.entries.get(key) ?? null, rest, value);
  return { ...dict, entries: new Map(dict.entries).set(key, inner) };
}

/** Plain data as what Python would have read from the same YAML. */
export function writableOf(data: unknown): Writable {
  if (data === null || data === undefined) return null;
  if (typeof data === 'number') {
    return Number.isSafeInteger(data) && !Object.is(data, -0)
      ? data
      : { kind: 'float', value: data };
  }
  if (typeof data === 'string' || typeof data === 'boolean' || typeof data === 'bigint')
    return data;
  if (Array.isArray(data)) return { kind: 'list', items: data.map(writableOf) };
  const entries = isMapping(data) ? Object.entries(data) : [];
  const dict: WritableDict = {
    kind: 'dict',
    type: 'dict',
    entries: new Map(entries.map(([key, value]) => [key, writableOf(value)] as const)),
  };
  return dict;
}
