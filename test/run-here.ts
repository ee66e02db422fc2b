import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { inPackage, ROOT } from './fixtures.js';
import type { Run } from './run-cli.js';

type Write = typeof process.stdout.write;

/** The running command, and the test that runs it. */
let running: { readonly test: string; readonly end: Promise<unknown> } | undefined;

/**
 * Runs the built command line in this process, which saves the start of a new one. Only for the answers of commands:
 * use `runCli` for input, signals, pipes, full disks and memory.
 */
export async function runHere(args: readonly string[], options: Options = {}): Promise<Run> {
  const { testPath, currentTestName } = expect.getState();
  const test = `${testPath} ${currentTestName}`;
  while (running) {
    // Two commands would write into each other's answers.
    if (running.test === test) throw new Error('one command at a time: await the one before');
    // The test of the other command has timed out.
    await running.end;
  }
  const end = runNow(args, options);
  running = { test, end: end.catch(() => undefined) };
  try {
    return await end;
  } finally {
    running = undefined;
  }
}

interface Options {
  readonly cwd?: string;
  readonly terminal?: Terminal;
}

async function runNow(args: readonly string[], { cwd = ROOT, terminal }: Options): Promise<Run> {
  const before = process.cwd();
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const { stdout, stderr, exitCode } = process;
  const [writeOut, writeErr] = [stdout.write, stderr.write];
  const restore = terminal && pretend(stdout, terminal);
  try {
    process.exitCode = undefined;
    process.chdir(cwd);
    const { runCommandLine, load } = await mainOf();
    [stdout.write, stderr.write] = [writingTo(out), writingTo(err)];
    await runCommandLine(args, pathToFileURL(ROOT), load);
    return { code: Number(process.exitCode ?? 0), stdout: textOf(out), stderr: textOf(err) };
  } finally {
    restore?.();
    [stdout.write, stderr.write] = [writeOut, writeErr];
    process.exitCode = exitCode;
    process.chdir(before);
  }
}

/** Size in characters. */
interface Terminal {
  readonly columns: number;
  readonly rows: number;
}

/** Makes a stream look like a terminal without colours. Returns a function that restores it. */
function pretend(stream: NodeJS.WriteStream, { columns, rows }: Terminal): () => void {
  const given = {
    isTTY: true,
    columns,
    rows,
    getColorDepth: () => 1,
    getWindowSize: () => [columns, rows],
  };
  const before = Object.getOwnPropertyDescriptors(stream);
  for (const [name, value] of Object.entries(given)) {
    Object.defineProperty(stream, name, { value, configurable: true, writable: true });
  }
  return () => {
    for (const name of Object.keys(given)) {
      const own = before[name as keyof typeof before];
      if (own) Object.defineProperty(stream, name, own);
      else Reflect.deleteProperty(stream, name);
    }
  };
}

/** Settings of the command library, which all its copies in a process read here when they are loaded. */
declare global {
  var oclif: { enableAutoTranspile?: boolean } | undefined;
}

/** The built program; that of the sources where those are changed, as in `npm run test:mutants`. */
async function mainOf(): Promise<
  Pick<typeof import('../src/cli/main.js'), 'runCommandLine'> & { readonly load?: object }
> {
  // As in bin/run.js. In tests, the library would otherwise load a TypeScript compiler for later imports.
  globalThis.oclif ??= {};
  globalThis.oclif.enableAutoTranspile = false;
  // As in a pipe, for any terminal of the tests.
  delete process.env.NO_COLOR;
  delete process.env.FORCE_COLOR;
  // As users run it: otherwise the command library reads its list of commands again for each one.
  process.env.NODE_ENV = 'production';
  if (process.env.MINIMIND_SOURCES !== undefined) {
    const { sourceCommands } = await import('./mutants/source-commands.js');
    const { runCommandLine } = await import('../src/cli/main.js');
    return { runCommandLine, load: await sourceCommands() };
  }
  return import(pathToFileURL(inPackage('dist/cli/main.js')).href);
}

const textOf = (chunks: readonly Buffer[]) => Buffer.concat(chunks).toString('utf8');

const writingTo = (chunks: Buffer[]): Write =>
  ((text: string | Uint8Array, ...rest: unknown[]) => {
    chunks.push(Buffer.from(text as string));
    for (const each of rest) if (typeof each === 'function') each();
    return true;
  }) as Write;
