/**
 * Strict reader for the zip archives that `torch.save` writes. Reads the directory and the entry headers, not
 * the tensors.
 */
import type { ByteFile } from '../../byte-file.js';
import { quoted, refusal, SAVE_TORCH_AGAIN } from '../../rules.js';
import { entryPlace, readDirectory } from './zip-directory.js';
import { readEnd } from './zip-end.js';
import { type EntryPlace, HeaderReader } from './zip-header.js';
import type { RecordFindings, ZipRecord } from './zip-records.js';
import { checkTiling, checkTorchRecords } from './zip-records.js';

export interface TorchArchive extends RecordFindings {
  /** Folder of all entries. */
  readonly root: string;
  /** Records by name without the root: `data.pkl`, `data/0`. */
  readonly records: ReadonlyMap<string, ZipRecord>;
}

/**
 * Locates the records of a PyTorch file. Checksums are not verified: PyTorch can omit them.
 * @throws UserError that names the violated rule.
 */
export function readTorchArchive(file: ByteFile): TorchArchive {
  const directory = readEnd(file);
  const headers = new HeaderReader(file, directory.position);
  const records = new Map<string, ZipRecord>();
  const places: EntryPlace[] = [];
  /** PyTorch ignores the case of names. */
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
