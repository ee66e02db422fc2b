/** What only the values of tensors tell, found in one pass over their bytes. */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { NamedView } from './sharing.js';
import { type Statistics, StatisticsFold } from './statistics.js';
import type { StoredTensor } from './stored-tensor.js';
import { streamTensor } from './view.js';

export interface Measurement {
  /** Of the contiguous little-endian bytes, in hexadecimal. */
  readonly sha256?: string;
  readonly stats?: Statistics;
}

export interface MeasureOptions {
  readonly hash: boolean;
  readonly stats: boolean;
  /** Told of bytes of tensors that are done, time and again. */
  readonly onBytes: (bytes: number) => void;
}

/**
 * Reads each tensor once, in the order in which they lie in their files. The result has all their names.
 * @throws UserError when reading fails.
 */
export async function measureTensors(
  views: readonly NamedView[],
  options: MeasureOptions,
): Promise<Map<string, Measurement>> {
  const measured = new Map<string, Measurement>();
  let turn = performance.now();
  for (const { tensor, names } of inFileOrder(views)) {
    const measurement = await measureTensor(tensor, options);
    for (const name of names) measured.set(name, measurement);
    // A small tensor is read without waiting; many of them must not keep Ctrl-C out.
    if (performance.now() - turn > MOST_WITHOUT_A_BREAK) {
      await setImmediate();
      turn = performance.now();
    }
  }
  return measured;
}

/** Milliseconds. */
const MOST_WITHOUT_A_BREAK = 50;

async function measureTensor(
  tensor: StoredTensor,
  { hash, stats, onBytes }: MeasureOptions,
): Promise<Measurement> {
  const digest = hash ? createHash('sha256') : undefined;
  const fold = stats ? new StatisticsFold(tensor.dtype) : undefined;
  await streamTensor(tensor, (bytes) => {
    digest?.update(bytes);
    fold?.take(bytes);
    onBytes(bytes.length);
  });
  return {
    ...(digest && { sha256: digest.digest('hex') }),
    ...(fold && { stats: fold.result() }),
  };
}

/** A disk is fastest when it is read from front to back. Files come in the order of their first tensor. */
function inFileOrder(views: readonly NamedView[]): NamedView[] {
  const files = [...new Set(views.map(({ tensor }) => tensor.storage.file))];
  const turns = new Map(files.map((file, index) => [file, index]));
  const turnOf = ({ storage }: StoredTensor) => turns.get(storage.file) ?? 0;
  return views.toSorted(
    ({ tensor: a }, { tensor: b }) =>
      turnOf(a) - turnOf(b) || a.storage.position - b.storage.position || a.offset - b.offset,
  );
}
