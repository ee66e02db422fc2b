/** Runs commands with a hub on this machine. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onFileEnd, onTestEnd } from '../../cleanup.js';
import { CommandProcess, type Environment } from '../../command-process.js';
import type { Run } from '../../run-cli.js';
import type { LoopbackHub } from './loopback-hub.js';

/** A folder that is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-hub-'));
  onTestEnd(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface HubUser {
  readonly home: string;
  /** Runs the built command line in a shared process. */
  run(args: readonly string[], env?: Environment): Promise<Run>;
  /** Runs it in a separate process, which leaves only files for the next one. */
  runAlone(args: readonly string[], env?: Environment): Promise<Run>;
  /** Runs several command lines one after the other in one separate process. */
  runAll(commands: readonly (readonly string[])[], env?: Environment): Promise<Run[]>;
}

let commands: CommandProcess | undefined;

/** The shared process of the current test file. */
function commandProcess(): CommandProcess {
  if (commands) return commands;
  onFileEnd(() => {
    commands?.close();
    commands = undefined;
  });
  commands = new CommandProcess();
  return commands;
}

/** A user with caches of their own and no token. */
export function hubUser(hub: Pick<LoopbackHub, 'endpoint'>, home = temporaryFolder()): HubUser {
  const own: Record<string, string> = {
    HF_ENDPOINT: hub.endpoint,
    HF_HOME: path.join(home, 'hf'),
    XDG_CACHE_HOME: path.join(home, 'cache'),
    LOCALAPPDATA: path.join(home, 'cache'),
    HOME: home,
  };
  const environment = (env: Environment) => {
    const given = Object.entries(process.env).filter(
      ([name]) => !/^(?:HF_|HUGGING|TRANSFORMERS_|NO_COLOR|FORCE_COLOR)|_proxy$/i.test(name),
    );
    return { ...Object.fromEntries(given), ...own, ...env };
  };
  const runAll = async (lines: readonly (readonly string[])[], env: Environment = {}) => {
    const all = environment(env);
    const alone = new CommandProcess(all);
    try {
      const runs: Run[] = [];
      for (const args of lines) runs.push(await alone.run(args, all));
      return runs;
    } finally {
      alone.close();
    }
  };
  return {
    home,
    run: (args, env = {}) => commandProcess().run(args, environment(env)),
    runAlone: async (args, env) => {
      const [run] = await runAll([args], env);
      if (run === undefined) throw new Error('no answer');
      return run;
    },
    runAll,
  };
}
