/** The program of this package, which other processes run: the trial of an engine, and the tasks of a scheduler. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';

let file: string | undefined;

/**
 * @param root Folder of the package.
 * @param program Path in the package.
 */
export function setProgram(root: URL, program: string): void {
  file = path.join(fileURLToPath(root), program);
}

/** Absolute path of the program. Not `process.argv[1]`, which is another one where a command line runs in a host process. */
export function programFile(): string {
  if (file === undefined) throw new Error('no command line runs');
  return file;
}
