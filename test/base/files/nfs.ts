/** A folder on the disk that behaves like NFS for this process. */
import fs from 'node:fs';
import path from 'node:path';
import { vi } from 'vitest';
import { onTestEnd } from '../../cleanup.js';
import { systemError } from './faults.js';

interface NfsFaults {
  /** Whether the answer to a link, a rename or a removal is lost: it was done, and the repeated request fails. */
  readonly isLost?: () => boolean;
  /** Whether a read finds that another machine has replaced the file. */
  readonly isStale?: () => boolean;
  /** Milliseconds for which this client caches contents and attributes. */
  readonly cached?: number;
}

/**
 * Imitates an NFS client until the test ends. A removed file that is open stays under a name `.nfs…`, and its folder
 * stays too. Attributes are cached; opening a file asks for them again.
 */
export function imitateNfs(folder: string, { isLost, isStale, cached = 0 }: NfsFaults = {}): void {
  const real = { ...fs };
  const isInside = (file: unknown): file is string =>
    typeof file === 'string' && file.startsWith(folder);
  const lose = (file: unknown, code: string) => {
    if (isInside(file) && isLost?.()) throw systemError(code);
  };
  let removed = 0;
  /** Renames a file that is open and about to be removed. */
  const keepOpen = (file: string) => {
    if (!isOpen(file)) return false;
    const hidden = `.nfs${String(++removed).padStart(24, '0')}`;
    real.renameSync(file, path.join(path.dirname(file), hidden));
    return true;
  };
  const remove = (file: string): void => {
    if (path.basename(file).startsWith('.nfs') && isOpen(file)) throw systemError('EBUSY');
    if (!keepOpen(file)) real.unlinkSync(file);
  };
  const removeAll = (file: string): void => {
    const status = real.lstatSync(file, { throwIfNoEntry: false });
    if (status === undefined) return;
    if (!status.isDirectory()) {
      remove(file);
      return;
    }
    for (const name of real.readdirSync(file)) removeAll(path.join(file, name));
    // Not empty where a removed file is open.
    real.rmdirSync(file);
  };
  const seen = new Map<string, { readonly status: unknown; readonly since: number }>();
  const spy = (name: string, act: (...args: never[]) => unknown) => {
    const replaced = vi.spyOn(fs, name as 'statSync').mockImplementation(act as never);
    onTestEnd(() => replaced.mockRestore());
  };
  spy('linkSync', (from: string, to: string) => {
    real.linkSync(from, to);
    lose(to, 'EEXIST');
  });
  spy('renameSync', (from: string, to: string) => {
    if (isInside(to) && real.statSync(to, { throwIfNoEntry: false })?.isFile()) keepOpen(to);
    real.renameSync(from, to);
    lose(to, 'ENOENT');
  });
  spy('unlinkSync', (file: string) => {
    if (isInside(file)) remove(file);
    else real.unlinkSync(file);
    lose(file, 'ENOENT');
  });
  spy('rmSync', (file: string, options?: fs.RmOptions) => {
    if (!isInside(file)) return real.rmSync(file, options);
    removeAll(file);
    if (!options?.force) lose(file, 'ENOENT');
  });
  spy('readFileSync', (file: string, options: never) => {
    if (isInside(file) && isStale?.()) throw systemError('ESTALE');
    seen.delete(file);
    return real.readFileSync(file, options);
  });
  spy('openSync', (file: string, ...rest: never[]) => {
    // Opening asks for the folder's names and the file's attributes again.
    for (const each of seen.keys()) {
      if (each === file || path.dirname(each) === file) seen.delete(each);
    }
    return (real.openSync as (...args: unknown[]) => number)(file, ...rest);
  });
  spy('closeSync', (descriptor: number) => {
    const file = real.readlinkSync(`/proc/self/fd/${descriptor}`);
    real.closeSync(descriptor);
    const isHidden = isInside(file) && path.basename(file).startsWith('.nfs');
    if (isHidden && !isOpen(file)) real.rmSync(file, { force: true });
  });
  spy('statSync', (file: string, options: never) => {
    const known = seen.get(file);
    if (cached > 0 && known && performance.now() - known.since < cached) {
      if (known.status !== undefined) return known.status;
      if ((options as fs.StatOptions | undefined) !== undefined) return undefined;
      throw systemError('ENOENT');
    }
    const status = real.statSync(file, { ...(options as object), throwIfNoEntry: false });
    if (isInside(file)) seen.set(file, { status, since: performance.now() });
    return status ?? real.statSync(file, options);
  });
}

/** Whether this process has a file open. */
function isOpen(file: string): boolean {
  return fs.readdirSync('/proc/self/fd').some((descriptor) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${descriptor}`) === file;
    } catch {
      return false;
    }
  });
}
