/** What must not outlive the process, and what one that was killed has left. */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { UserError } from '../errors.js';
import { removeQuietly } from './names.js';

/** Short, for there may be room for little more in a name. */
const HOST = createHash('sha256').update(os.hostname()).digest('hex').slice(0, 8);

const OWNED = /^\.?minimind-(\d+)-([0-9a-f]{8})-[0-9a-f-]{36}(?:\.tmp)?$/;

/** A name that is free, and says which process of which machine has taken it. */
export const temporaryName = () => `minimind-${process.pid}-${HOST}-${randomUUID()}`;

/** Removes from a folder what this user's processes on this machine have left there when they were killed. */
export function sweep(folder: string): void {
  for (const name of namesIn(folder)) {
    const [, pid, host] = OWNED.exec(name) ?? [];
    if (host !== HOST || isRunning(Number(pid))) continue;
    const file = path.join(folder, name);
    if (isOwn(file)) removeQuietly(file);
  }
}

function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    // What is to be written there will fail by itself.
    return [];
  }
}

/** In a folder that others can write to, they could lead the removal of a folder of theirs elsewhere. */
function isOwn(file: string): boolean {
  const status = fs.lstatSync(file, { throwIfNoEntry: false });
  return status !== undefined && (process.getuid === undefined || status.uid === process.getuid());
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is another user's.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const folders = new Set<string>();
process.on('exit', () => {
  for (const folder of folders) removeQuietly(folder);
});

/** A folder for this user alone, in the system's for temporary files, until it is removed or the process ends. */
export class TemporaryFolder {
  /** Without symbolic links: some libraries follow none. */
  readonly path: string;

  /** @throws UserError when it cannot be made. */
  constructor() {
    try {
      const parent = fs.realpathSync(os.tmpdir());
      sweep(parent);
      this.path = path.join(parent, temporaryName());
      fs.mkdirSync(this.path, { mode: 0o700 });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new UserError('system', `cannot make a folder in ${os.tmpdir()}: ${why}`, {
        suggestion: 'set TMPDIR to a folder that can be written to',
        cause: error,
      });
    }
    folders.add(this.path);
  }

  /** May be called again: Windows keeps a file that is mapped, which goes when the process ends at the latest. */
  remove(): void {
    removeQuietly(this.path);
    if (!fs.existsSync(this.path)) folders.delete(this.path);
  }
}
