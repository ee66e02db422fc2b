/** Commands run against a hub on this machine. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
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
  return {
    home,
    run: (args, env = {}) =>
      new Promise((resolve) => {
        const given = Object.entries(process.env).filter(
          ([name]) => !/^(?:HF_|HUGGING|TRANSFORMERS_|NO_COLOR|FORCE_COLOR)|_proxy$/i.test(name),
        );
        const child = spawn(process.execPath, [inPackage('bin/run.js'), ...args], {
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
      }),
  };
}
