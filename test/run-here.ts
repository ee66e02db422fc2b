import { pathToFileURL } from 'node:url';
import { inPackage, ROOT } from './fixtures.js';
import type { Run } from './run-cli.js';

type Write = typeof process.stdout.write;

/**
 * Runs the built command line in this process, which spares the start of one. For what commands answer: how a process
 * reads its input, takes signals, pipes and full disks, and what it takes of memory is for `runCli`.
 */
export async function runHere(
  args: readonly string[],
  { cwd = ROOT }: { readonly cwd?: string } = {},
): Promise<Run> {
  const { runCommandLine } = await builtMain();
  const before = process.cwd();
  const out: string[] = [];
  const err: string[] = [];
  const { stdout, stderr, exitCode } = process;
  const [writeOut, writeErr] = [stdout.write, stderr.write];
  process.exitCode = undefined;
  process.chdir(cwd);
  [stdout.write, stderr.write] = [writingTo(out), writingTo(err)];
  try {
    await runCommandLine(args, pathToFileURL(ROOT));
    return { code: Number(process.exitCode ?? 0), stdout: out.join(''), stderr: err.join('') };
  } finally {
    [stdout.write, stderr.write] = [writeOut, writeErr];
    process.exitCode = exitCode;
    process.chdir(before);
  }
}

function builtMain(): Promise<typeof import('../src/cli/main.js')> {
  // As in a pipe, whatever the terminal of the tests is.
  delete process.env.NO_COLOR;
  delete process.env.FORCE_COLOR;
  return import(pathToFileURL(inPackage('dist/cli/main.js')).href);
}

const writingTo = (texts: string[]): Write =>
  ((text: string | Uint8Array, ...rest: unknown[]) => {
    texts.push(typeof text === 'string' ? text : Buffer.from(text).toString('utf8'));
    for (const each of rest) if (typeof each === 'function') each();
    return true;
  }) as Write;
