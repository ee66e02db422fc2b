/** Simulated failures of the file system and deaths of the process, within this process. */

import fs from 'node:fs';
import { createRequire } from 'node:module';
import vm from 'node:vm';
import { buildSync } from 'esbuild';
import { vi } from 'vitest';
import type { Staging } from '../../../src/base/files/staging.js';
// So that `vitest related` finds the tests of what is bundled below.
import '../../../src/base/files/staging.js';
import { inPackage } from '../../fixtures.js';
import { fileHandlePrototype, watchOperations } from '../../kill/operations.js';

/** An error of the operating system. */
export const systemError = (code: string) =>
  Object.assign(new Error(`${code}: as the test wants it`), { code });

interface Fault {
  /** Operations that succeed first. */
  readonly after: number;
  /** Whether every later operation fails, as if the process had ended, or only the next one. */
  readonly lasts: boolean;
  readonly code: string;
}

/**
 * Runs something while an operation on files fails.
 * @returns The number of operations, and the error that was thrown.
 */
export async function withFault(
  { after, lasts, code }: Fault,
  act: () => Promise<unknown>,
): Promise<{ operations: number; error: unknown }> {
  let operations = 0;
  const restore = await watchOperations({
    before: () => {
      operations++;
      if (lasts ? operations > after : operations === after + 1) throw systemError(code);
    },
  });
  try {
    await act();
    return { operations, error: undefined };
  } catch (error) {
    return { operations, error };
  } finally {
    restore();
  }
}

/** Compiled once: importing the modules anew for each of thousands of runs took most of the time of the tests. */
const script = new vm.Script(
  `(require, module) => { ${
    buildSync({
      entryPoints: [inPackage('src/base/files/staging.ts')],
      bundle: true,
      platform: 'node',
      format: 'cjs',
      // Nothing here looks for files of the package.
      define: { 'import.meta.url': '""' },
      write: false,
    }).outputFiles[0]?.text
  }\n}`,
  { filename: 'staging.cjs' },
);
const require = createRequire(import.meta.url);

/** Staging of a new process, which shares no locks with the others here. */
export function freshStaging(): typeof Staging {
  // Each copy listens for the end of this process.
  process.setMaxListeners(0);
  const module: { exports: { readonly Staging?: typeof Staging } } = { exports: {} };
  script.runInThisContext()(require, module);
  if (module.exports.Staging === undefined) throw new Error('the bundle has no Staging');
  return module.exports.Staging;
}

/** A file system in memory, on Linux. */
const MEMORY = '/dev/shm';

function isWritable(folder: string): boolean {
  try {
    fs.accessSync(folder, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Skips waiting for the disk: written data survives the process, only not a power cut. Temporary folders are in memory
 * where that is possible, which halves the time of operations.
 */
export async function withoutDisk(): Promise<void> {
  if (isWritable(MEMORY)) vi.stubEnv('TMPDIR', MEMORY);
  vi.spyOn(fs, 'fsyncSync').mockImplementation(() => undefined);
  vi.spyOn(await fileHandlePrototype(), 'sync').mockResolvedValue(undefined);
}
