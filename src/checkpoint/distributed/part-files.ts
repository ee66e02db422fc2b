/** The files of a checkpoint that several processes wrote into one folder. */
import path from 'node:path';
import { announceFiles, mountedPath, pathExists } from '../../files/mounted.js';
import { ByteFile } from '../byte-file.js';
import { quoted, refusal } from '../checkpoint-rules.js';
import { allowedFolders, isAllowed } from '../shards/beside.js';

/** Open files of a folder by name. */
export class PartFiles {
  readonly #folder: string;
  readonly #files = new Map<string, ByteFile>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  get all(): readonly ByteFile[] {
    return [...this.#files.values()];
  }

  /** Bytes of all files. */
  get bytes(): number {
    return this.all.reduce((sum, { size }) => sum + size, 0);
  }

  get(name: string): ByteFile {
    const file = this.#files.get(name);
    if (file === undefined) throw new Error(`${name} is not open`);
    return file;
  }

  /**
   * Opens files, and returns the names of those that are not there.
   * @throws UserError when a file is a link that leads out of the folder.
   */
  openAll(names: Iterable<string>, check: (name: string) => void): string[] {
    const allowed = allowedFolders(this.#folder);
    const missing: string[] = [];
    const ordered = [...names].sort(compareNumbers);
    for (const name of ordered) check(name);
    const placeOf = (name: string) => path.join(this.#folder, name);
    announceFiles(ordered.map(placeOf).filter(pathExists));
    for (const name of ordered) {
      const place = placeOf(name);
      if (!pathExists(place)) {
        missing.push(name);
        continue;
      }
      const file = ByteFile.open(place);
      this.#files.set(name, file);
      if (mountedPath(place)) continue;
      const target = file.locate();
      if (isAllowed(target, allowed)) continue;
      throw refusal(place, {
        rule: 'part-in-folder',
        message: `is a link to ${quoted(target)}, which is outside of the folder`,
        suggestion: 'put the file itself into the folder',
      });
    }
    return missing;
  }

  close(): void {
    for (const file of this.#files.values()) file.close();
  }
}

/** `__2_0` sorts before `__10_0`. */
const { compare: compareNumbers } = new Intl.Collator('en', { numeric: true });
