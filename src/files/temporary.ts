/** Temporary files and folders: they never outlive the process, and those of a killed one are removed later. */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { UserError } from '../errors.js';
import { removeQuietly } from './config-names.js';

/**
 * The processes among which a process id is unique: a machine since it booted, and on Linux one namespace of it.
 * Containers often share folders and a host name, and each counts its processes from 1. Short, for a name that has
 * little room.
 */
const SPACE = createHash('sha256')
  .update([os.hostname(), ...processSpace()].join('\n'))
  .digest('hex')
  .slice(0, 8);

function processSpace(): readonly string[] {
  if (process.platform !== 'linux') return [];
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return [boot, fs.readlinkSync('/proc/self/ns/pid')];
  } catch {
    // Shared with no other process: their files are removed by age.
    return [randomUUID()];
  }
}

/** A free name. It names the process that has taken it. */
export const temporaryName = () => `minimind-${process.pid}-${SPACE}-${randomUUID()}`;

const NAME = 'minimind-(\\d+)-([0-9a-f]{8})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const FILE = new RegExp(`^\\.${NAME}\\.tmp$`);
const FOLDER = new RegExp(`^${NAME}$`);

/** The name of a hidden file that becomes another when it is complete. */
export const temporaryFileName = () => `.${temporaryName()}.tmp`;

/** Whether a name is one of `temporaryFileName`. */
export const isTemporaryFile = (name: string) => FILE.test(name);

/** Milliseconds after which an unchanged file belongs to no process any more: a day. */
const MAX_AGE = 24 * 3600 * 1000;

/**
 * Removes from a folder the temporary files and folders of this user's processes that were killed. Whether a process
 * of another machine or container runs is not known: what it wrote is removed when it is a day old.
 */
export function sweep(folder: string): void {
  for (const name of namesIn(folder)) {
    const [, pid, space] = FILE.exec(name) ?? FOLDER.exec(name) ?? [];
    if (space === undefined || (space === SPACE && isRunning(Number(pid)))) continue;
    const file = path.join(folder, name);
    const status = fs.lstatSync(file, { throwIfNoEntry: false });
    if (status === undefined || !isOwn(status)) continue;
    if (isTemporaryFile(name) ? !status.isFile() : !status.isDirectory()) continue;
    if (space === SPACE || Date.now() - status.mtimeMs > MAX_AGE) removeQuietly(file);
  }
}

function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    // Writing there will fail, with a message of its own.
    return [];
  }
}

/** In a folder that others can write to, they could lead the removal of a folder of theirs elsewhere. */
const isOwn = ({ uid }: fs.Stats) => process.getuid === undefined || uid === process.getuid();

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user.
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
