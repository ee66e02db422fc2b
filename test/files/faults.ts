/** A file system that fails, and processes that die, without a process of their own. */

import fs from 'node:fs';
import { vi } from 'vitest';
import { fileHandlePrototype, watchOperations } from '../kill/operations.js';

/** An error as the system reports it. */
export const systemError = (code: string) =>
  Object.assign(new Error(`${code}: as the test wants it`), { code });

interface Fault {
  /** Operations that go well before. */
  readonly after: number;
  /** Whether every operation from then on fails, as if the process had ended, or one of them only. */
  readonly lasts: boolean;
  readonly code: string;
}

/**
 * Runs something while an operation on files fails.
 * @returns How many operations there were, and what was thrown.
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

/** Staging as a process of its own has it, which holds none of the locks of the others here. */
export async function freshStaging() {
  vi.resetModules();
  // Each of them listens for the end of the one process there is.
  process.setMaxListeners(0);
  const { Staging } = await import('../../src/files/staging.js');
  return Staging;
}

/** Lets nothing wait for the disk: what the process wrote is there after it, if not after a power cut. */
export async function withoutDisk(): Promise<void> {
  vi.spyOn(fs, 'fsyncSync').mockImplementation(() => undefined);
  vi.spyOn(await fileHandlePrototype(), 'sync').mockResolvedValue(undefined);
}
