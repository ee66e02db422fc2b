/**
 * The archive of a PyTorch file: a strict reader of just the zip files that `torch.save` writes. It reads
 * the directory and the headers of entries, and none of the tensors.
 */
import type { ByteFile } from '../byte-file.js';
import { refusal } from '../refusal.js';
import { quoted } from '../wording.js';
import { SAVE_AGAIN } from './advice.js';
import { readDirectory } from './zip-directory.js';
import { readEnd } from './zip-end.js';
import { HeaderReader } from './zip-header.js';
import { entryPlace } from './zip-names.js';
import { checkTorchRecords, type RecordFindings, type ZipRecord } from './zip-records.js';

export interface TorchArchive extends RecordFindings {
  /** The folder that all entries lie in. */
  readonly root: string;
  /** By name without the root: `data.pkl`, `data/0`. */
  readonly records: ReadonlyMap<string, ZipRecord>;
}

/**
 * Reads where the records of a PyTorch file are. Checksums are not looked at: PyTorch can be told to
 * write none.
 * @throws UserError that names the rule that the file breaks.
 */
export function readTorchArchive(file: ByteFile): TorchArchive {
  const directory = readEnd(file);
  const headers = new HeaderReader(file, directory.position);
  const records = new Map<string, ZipRecord>();
  const starts: number[] = [];
  const ends: number[] = [];
  let root: string | undefined;
  for (const entry of readDirectory(file, directory)) {
    const slash = entry.name.indexOf('/');
    const folder = entry.name.slice(0, Math.max(0, slash));
    root ??= folder;
    if (slash < 0 || folder !== root) {
      throw refusal(file.path, {
        rule: 'zip-root',
        place: entryPlace(entry.name),
        message: `does not lie in the one folder that holds all entries${root && ` before it, ${quoted(root)}`}`,
        suggestion: SAVE_AGAIN,
      });
    }
    const name = entry.name.slice(slash + 1);
    if (records.has(name)) {
      throw refusal(file.path, {
        rule: 'zip-name-once',
        place: entryPlace(entry.name),
        message: 'is there twice, and readers differ in which they take',
        suggestion: SAVE_AGAIN,
      });
    }
    const { header, data, end } = headers.locate(entry);
    starts.push(header);
    ends.push(end);
    records.set(name, { position: data, bytes: end - data });
  }
  checkOverlap(file, starts, ends);
  return { root: root ?? '', records, ...checkTorchRecords(file, records) };
}

/** When each entry ends before the next one begins, the n-th to begin is also the n-th to end. */
function checkOverlap(file: ByteFile, starts: readonly number[], ends: readonly number[]): void {
  const sortedStarts = Float64Array.from(starts).sort();
  const sortedEnds = Float64Array.from(ends).sort();
  const index = sortedEnds.findIndex((end, n) => end > (sortedStarts[n + 1] ?? Infinity));
  if (index >= 0) {
    throw refusal(file.path, {
      rule: 'zip-overlap',
      place: `byte ${sortedStarts[index + 1]}`,
      message: `an entry begins here, but one before it ends only at byte ${sortedEnds[index]}`,
      suggestion: SAVE_AGAIN,
    });
  }
}
