/**
 * The archive of a PyTorch file: a strict reader of just the zip files that `torch.save` writes. It reads
 * the directory and the headers of entries, and none of the tensors.
 */
import type { ByteFile } from '../../byte-file.js';
import { quoted, refusal, SAVE_TORCH_AGAIN } from '../../rules.js';
import { entryPlace, readDirectory } from './zip-directory.js';
import { readEnd } from './zip-end.js';
import { type EntryPlace, HeaderReader } from './zip-header.js';
import type { RecordFindings, ZipRecord } from './zip-records.js';
import { checkTiling, checkTorchRecords } from './zip-records.js';

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
  const places: EntryPlace[] = [];
  /** PyTorch looks names up without their case. */
  const folded = new Set<string>();
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
        suggestion: SAVE_TORCH_AGAIN,
      });
    }
    const name = entry.name.slice(slash + 1);
    if (folded.has(name.toLowerCase())) {
      throw refusal(file.path, {
        rule: 'zip-name-once',
        place: entryPlace(entry.name),
        message: 'has the name of an entry before it: PyTorch ignores the case of letters',
        suggestion: SAVE_TORCH_AGAIN,
      });
    }
    folded.add(name.toLowerCase());
    const place = headers.locate(entry);
    places.push(place);
    records.set(name, { position: place.data, bytes: place.end - place.data });
  }
  checkTiling(file, places, directory.position);
  return { root: root ?? '', records, ...checkTorchRecords(file, records) };
}
