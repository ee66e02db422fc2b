/** A process that runs command lines one after another, each as in a new process. */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { ROOT } from './fixtures.js';
import type { Run } from './run-cli.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Runs the built command line in a separate process, which starts once: for commands that block their thread while this
 * process answers them.
 */
export class CommandProcess {
  readonly #env: Environment;
  readonly #root: string;
  #child: ChildProcess | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /**
   * @param env Environment of the new process, for variables that Node reads only at its start.
   * @param root Folder of the package, or of a copy of it with `test`.
   */
  constructor(env: Environment = process.env, root = ROOT) {
    this.#env = env;
    this.#root = root;
  }

  /** Runs a command line in the folder of the package, after the earlier ones have ended. */
  run(args: readonly string[], env: Environment = this.#env): Promise<Run> {
    const run = this.#last.then(() => this.#send(args, env));
    this.#last = run.catch(() => undefined);
    return run;
  }

  close(): void {
    this.#child?.kill();
    this.#child = undefined;
  }

  #send(args: readonly string[], env: Environment): Promise<Run> {
    this.#child ??= spawn(process.execPath, [path.join(this.#root, 'test/command-program.js')], {
      cwd: this.#root,
      env: this.#env,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null, signal: string | null) => {
        this.#child = undefined;
        reject(
          new Error(`the process of commands ended with ${code ?? signal}: ${args.join(' ')}`),
        );
      };
      child.once('exit', onExit);
      child.once('message', (run: Run) => {
        child.off('exit', onExit);
        resolve(run);
      });
      child.send({ args, env });
    });
  }
}
