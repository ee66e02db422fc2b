import { spawnSync } from 'node:child_process';
import { inPackage, ROOT } from './fixtures.js';

export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly input?: string | Buffer;
  readonly env?: Record<string, string>;
  readonly cwd?: string;
}

/** Runs the built command line in a new process, with pipes. */
export function runCli(args: readonly string[], options: RunOptions = {}): Run {
  const { NO_COLOR, FORCE_COLOR, ...env } = process.env;
  const result = spawnSync(process.execPath, [inPackage('bin/run.js'), ...args], {
    cwd: options.cwd ?? ROOT,
    input: options.input ?? '',
    env: { ...env, ...options.env },
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  return { code: result.status, stdout: result.stdout, stderr: result.stderr };
}
