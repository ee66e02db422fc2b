/** Watches all operations of a process that change files. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';

type Call = (...args: unknown[]) => unknown;
type Owner = Record<string, Call>;

const SYNC = [
  'writeSync',
  'writeFileSync',
  'fsyncSync',
  'fdatasyncSync',
  'ftruncateSync',
  'renameSync',
  'linkSync',
  'symlinkSync',
  'unlinkSync',
  'rmSync',
  'mkdirSync',
  'rmdirSync',
  'copyFileSync',
  'chmodSync',
];
const PROMISES = [
  'writeFile',
  'rename',
  'link',
  'symlink',
  'unlink',
  'rm',
  'mkdir',
  'rmdir',
  'copyFile',
];
const FILE_HANDLE = ['write', 'writev', 'writeFile', 'truncate', 'sync', 'datasync', 'chmod'];

/** Functions called with the name of the operation. The operation fails with the error that they throw. */
export interface Watcher {
  readonly before?: (operation: string) => void;
  readonly after?: (operation: string) => void;
}

/** Watches every operation of this process. @returns A function that ends the watching. */
export async function watchOperations(watcher: Watcher): Promise<() => void> {
  const restores = [
    ...SYNC.map((name) => watch(fs as unknown as Owner, name, watcher)),
    ...PROMISES.map((name) => watch(fs.promises as unknown as Owner, name, watcher)),
    ...(await fileHandlePrototype().then((owner) =>
      FILE_HANDLE.map((name) => watch(owner, name, watcher)),
    )),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const restore of restores) restore();
    syncBuiltinESMExports();
  };
}

/** Prototype of the file handles of node:fs/promises. */
export async function fileHandlePrototype(): Promise<Owner> {
  const handle = await fs.promises.open(os.tmpdir(), 'r');
  await handle.close();
  return Object.getPrototypeOf(handle);
}

function watch(owner: Owner, name: string, { before, after }: Watcher): () => void {
  const original = owner[name];
  if (original === undefined) throw new Error(`there is no ${name}`);
  // An operation may call others, as writeFileSync calls writeSync. They count too.
  owner[name] = function (this: unknown, ...args) {
    before?.(name);
    const result = original.apply(this, args);
    if (!(result instanceof Promise)) {
      after?.(name);
      return result;
    }
    return result.then((value) => {
      after?.(name);
      return value;
    });
  };
  return () => {
    owner[name] = original;
  };
}
