/** Files that a conversion keeps for itself while it works. */
import fs from 'node:fs';
import path from 'node:path';
import { ByteFile } from '../checkpoint/byte-file.js';
import type { Scratch } from '../conversion/make-tables.js';
import { TemporaryFolder } from '../files/temporary.js';
import { writeWhole } from '../files/write-whole.js';

export interface ClosableScratch extends Scratch {
  close(): void;
}

/** @param pathOf Where a file is, by its name. */
export function scratchAt(pathOf: (name: string) => string): ClosableScratch {
  const opened = new Map<string, ByteFile>();
  return {
    has: (name) => fs.existsSync(pathOf(name)),
    write: (name, fill) => writeWhole(pathOf(name), true, fill),
    open(name) {
      const file = opened.get(name) ?? ByteFile.open(pathOf(name));
      opened.set(name, file);
      return file;
    },
    close() {
      for (const file of opened.values()) file.close();
    },
  };
}

/** In a folder of its own, for this user alone, that goes with `close` or with the process. */
export function temporaryScratch(): ClosableScratch {
  const folder = new TemporaryFolder();
  const scratch = scratchAt((name) => path.join(folder.path, name));
  return {
    ...scratch,
    close() {
      scratch.close();
      folder.remove();
    },
  };
}
