import { pathToFileURL } from 'node:url';
import { inPackage, ROOT } from './fixtures.js';
import type { Run } from './run-cli.js';

type Write = typeof process.stdout.write;

let isRunning = false;

/**
 * Runs the built command line in this process, which spares the start of one. For what commands answer: how a process
 * reads its input, takes signals, pipes and full disks, and what it takes of memory is for `runCli`.
 */
export async function runHere(
  args: readonly string[],
  { cwd = ROOT }: { readonly cwd?: string } = {},
): Promise<Run> {
  // They would write into each other's answers.
  if (isRunning) throw new Error('one command at a time: await the one before');
  isRunning = true;
  const before = process.cwd();
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const { stdout, stderr, exitCode } = process;
  const [writeOut, writeErr] = [stdout.write, stderr.write];
  try {
    process.exitCode = undefined;
    process.chdir(cwd);
    const { runCommandLine } = await builtMain();
    [stdout.write, stderr.write] = [writingTo(out), writingTo(err)];
    await runCommandLine(args, pathToFileURL(ROOT));
    return { code: Number(process.exitCode ?? 0), stdout: textOf(out), stderr: textOf(err) };
  } finally {
    isRunning = false;
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

const textOf = (chunks: readonly Buffer[]) => Buffer.concat(chunks).toString('utf8');

const writingTo = (chunks: Buffer[]): Write =>
  ((text: string | Uint8Array, ...rest: unknown[]) => {
    chunks.push(Buffer.from(text as string));
    for (const each of rest) if (typeof each === 'function') each();
    return true;
  }) as Write;
