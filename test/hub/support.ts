/** Commands run against a hub on this machine. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestEnd } from '../cleanup.js';
import { inPackage, ROOT } from '../fixtures.js';
import type { Run } from '../run-cli.js';
import type { LoopbackHub } from './loopback-hub.js';

/** A folder that is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-hub-'));
  onTestEnd(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface HubUser {
  readonly home: string;
  /** Runs the built command line in a process of its own, while the hub of this process answers. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Run>;
  /** Runs several command lines one after the other in one other process, which spares the starts. */
  runAll(
    commands: readonly (readonly string[])[],
    env?: Readonly<Record<string, string>>,
  ): Promise<Run[]>;
}

/** Runs the command lines in its first argument, and prints their answers as JSON. */
const SESSION = `
const [main, root, commands] = process.argv.slice(1);
const { runCommandLine } = await import(main);
const write = process.stdout.write.bind(process.stdout);
const runs = [];
for (const args of JSON.parse(commands)) {
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (text, ...rest) => {
      said[name] += Buffer.from(text).toString();
      for (const each of rest) if (typeof each === 'function') each();
      return true;
    };
  }
  process.exitCode = undefined;
  await runCommandLine(args, new URL(root));
  runs.push({ code: Number(process.exitCode ?? 0), ...said });
}
process.exitCode = 0;
write(JSON.stringify(runs));`;

/** A user with caches of their own and no token. */
export function hubUser(hub: Pick<LoopbackHub, 'endpoint'>, home = temporaryFolder()): HubUser {
  const own: Record<string, string> = {
    HF_ENDPOINT: hub.endpoint,
    HF_HOME: path.join(home, 'hf'),
    XDG_CACHE_HOME: path.join(home, 'cache'),
    LOCALAPPDATA: path.join(home, 'cache'),
    HOME: home,
  };
  const start = (words: readonly string[], env: Readonly<Record<string, string>>) =>
    new Promise<Run>((resolve) => {
      const given = Object.entries(process.env).filter(
        ([name]) => !/^(?:HF_|HUGGING|TRANSFORMERS_|NO_COLOR|FORCE_COLOR)|_proxy$/i.test(name),
      );
      const child = spawn(process.execPath, words, {
        cwd: ROOT,
        env: { ...Object.fromEntries(given), ...own, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (text) => {
        stdout += text;
      });
      child.stderr.on('data', (text) => {
        stderr += text;
      });
      child.on('close', (code) => resolve({ code, stdout, stderr }));
    });
  return {
    home,
    run: (args, env = {}) => start([inPackage('bin/run.js'), ...args], env),
    runAll: async (commands, env = {}) => {
      const urls = [inPackage('dist/cli/main.js'), ROOT].map((file) => pathToFileURL(file).href);
      const words = ['--input-type=module', '-e', SESSION, ...urls, JSON.stringify(commands)];
      const { stdout, stderr } = await start(words, env);
      if (stdout === '') throw new Error(stderr);
      return JSON.parse(stdout);
    },
  };
}
