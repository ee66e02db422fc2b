/** What can be asked of the machine about its graphics cards. */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import { pathToFileURL } from 'node:url';

/** None of these throws: what cannot be had is empty. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly memoryBytes: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names in a folder, sorted. */
  list(folder: string): Promise<string[]>;
  /** The text of a file. */
  read(file: string): Promise<string>;
  /** Whether this process may read and write a file. */
  mayOpen(file: string): Promise<boolean>;
  /** What a program prints until it ends, however it does, or until patience does. */
  ask(program: string, words: readonly string[]): Promise<string>;
  /** URL of the module that a package is; null when it is not installed. */
  locate(packageName: string): string | null;
}

export const THIS_MACHINE: Machine = {
  platform: process.platform,
  memoryBytes: os.totalmem(),
  env: process.env,
  list: async (folder) => (await readdir(folder).catch(() => [])).sort(),
  read: (file) => readFile(file, 'utf8').catch(() => ''),
  mayOpen: (file) =>
    access(file, constants.R_OK | constants.W_OK).then(
      () => true,
      () => false,
    ),
  ask,
  locate(packageName) {
    try {
      return pathToFileURL(createRequire(import.meta.url).resolve(packageName)).href;
    } catch {
      return null;
    }
  },
};

/** Milliseconds. A driver that sleeps is awake in two or three seconds; some never answer. */
const PATIENCE = 10_000;
/** Characters that are listened to. */
const MAX_ANSWER = 2 ** 20;

/** @param patience In milliseconds. */
export function ask(
  program: string,
  words: readonly string[],
  patience = PATIENCE,
): Promise<string> {
  let answer = '';
  const answered = new Promise<void>((resolve) => {
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'ignore'],
      windowsHide: true,
    });
    const end = () => {
      clearTimeout(timer);
      // One that a driver holds in the kernel cannot even be killed: it is left behind.
      child.kill('SIGKILL');
      child.unref();
      child.stdout?.destroy();
      resolve();
    };
    const timer = setTimeout(end, patience);
    child.on('error', end).on('close', end);
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
      if (answer.length > MAX_ANSWER) end();
    });
  });
  return answered.catch(() => {}).then(() => answer);
}
