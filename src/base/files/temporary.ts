/**
 * Temporary files and folders, removed when the process exits. Those of a killed process are removed by a later run.
 */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { UserError } from '../errors.js';
import { removeAtEnd } from './early-end.js';
import { codeOf, namesIn, removeQuietly } from './file-system.js';

/**
 * Scope in which process ids are unique: a machine since boot, and on Linux a PID namespace. Containers often share
 * folders and a host name, and each counts processes from 1. Hashed, so that it is short enough for a file name.
 */
export const PROCESS_SPACE = createHash('sha256')
  .update([os.hostname(), ...processSpace()].join('\n'))
  .digest('hex')
  .slice(0, 8);

function processSpace(): readonly string[] {
  if (process.platform !== 'linux') return [];
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return [boot, fs.readlinkSync('/proc/self/ns/pid')];
  } catch {
    // Unknown scope: files with it are removed only by age.
    return [randomUUID()];
  }
}

/** An unused name with the id of this process. */
export const temporaryName = () => `minimind-${process.pid}-${PROCESS_SPACE}-${randomUUID()}`;

const NAME = 'minimind-(\\d+)-([0-9a-f]{8})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const FILE = new RegExp(`^\\.${NAME}\\.tmp$`);
const FOLDER = new RegExp(`^${NAME}$`);

/** Name of a hidden file that is renamed when it is complete. */
export const temporaryFileName = () => `.${temporaryName()}.tmp`;

export const isTemporaryFile = (name: string) => FILE.test(name);

/** Age in milliseconds after which an unchanged file is considered abandoned: a day. */
const MAX_AGE = 24 * 3600 * 1000;

/**
 * Removes temporary files and folders of this user's killed processes. Processes of other machines or
 * containers cannot be checked: their files are removed after a day.
 */
export function removeStaleFiles(folder: string): void {
  for (const name of namesIn(folder)) {
    const [, pid, space] = FILE.exec(name) ?? FOLDER.exec(name) ?? [];
    if (space === undefined || (space === PROCESS_SPACE && isRunning(Number(pid)))) continue;
    const file = path.join(folder, name);
    const status = fs.lstatSync(file, { throwIfNoEntry: false });
    if (status === undefined || !isOwn(status)) continue;
    if (isTemporaryFile(name) ? !status.isFile() : !status.isDirectory()) continue;
    if (space === PROCESS_SPACE || Date.now() - status.mtimeMs > MAX_AGE) removeQuietly(file);
  }
}

/** Ownership check: in a shared folder, links of others could redirect the removal to another folder. */
const isOwn = ({ uid }: fs.Stats) => process.getuid === undefined || uid === process.getuid();

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user.
    return codeOf(error) === 'EPERM';
  }
}

const folders = new Map<string, () => void>();
process.on('exit', () => {
  for (const folder of folders.keys()) removeQuietly(folder);
});

/** A private folder in the system's temporary folder. Exists until it is removed or the process exits. */
export class TemporaryFolder {
  /** Path without symbolic links, which some libraries do not follow. */
  readonly path: string;

  /** @throws UserError if it cannot be created. */
  constructor() {
    try {
      const parent = fs.realpathSync(os.tmpdir());
      removeStaleFiles(parent);
      this.path = path.join(parent, temporaryName());
      folders.set(this.path, removeAtEnd({ kind: 'folder', path: this.path }));
      fs.mkdirSync(this.path, { mode: 0o700 });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new UserError('system', `cannot make a folder in ${os.tmpdir()}: ${why}`, {
        suggestion: 'set TMPDIR to a folder that can be written to',
        cause: error,
      });
    }
  }

  /** Can be called again: on Windows a mapped file can be removed only when the process exits. */
  remove(): void {
    removeQuietly(this.path);
    if (fs.existsSync(this.path)) return;
    folders.get(this.path)?.();
    folders.delete(this.path);
  }
}
