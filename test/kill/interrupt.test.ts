import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandNames, inPackage } from '../fixtures.js';
import { COMMAND_ROWS, makeInputs } from './command-rows.js';
import { type Ending, TerminalUser } from './interrupt.js';
import { KILL_TIMEOUT_MS } from './settings.js';
import { NO_TERMINAL } from './terminal.js';

const isKillRun = process.env.MINIMIND_KILLS !== undefined;

/** Milliseconds until a command has to have ended. */
const LIMIT = isKillRun ? 1000 : 3000;

/** Ten moments each way in the kill run; elsewhere few commands, which show the ways. */
const MOMENTS = isKillRun ? 10 : 1;
const ENDINGS: readonly Ending[] = ['Ctrl-C', 'twice', 'SIGTERM', 'closed terminal'];
const FEW: readonly string[] = ['validate -'];

it('covers every command', () => {
  expect(
    Object.keys(COMMAND_ROWS)
      .map((id) => id.replace(':', ' '))
      .sort(),
  ).toEqual(commandNames());
});

/** Whether a command is the cause of a late end, rather than a busy machine: it computed, or it waited for long. */
async function isSlow(user: TerminalUser, { wall, busy }: { wall: number; busy: number }) {
  if (wall <= LIMIT) return false;
  return busy > LIMIT || (wall > 3 * LIMIT && (await user.endsWaiting(LIMIT)));
}

describe.skipIf(NO_TERMINAL !== undefined)(
  `a command in a terminal${NO_TERMINAL === undefined ? '' : ` (skipped: ${NO_TERMINAL})`}`,
  () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-inputs-'));
    // A hub that takes every connection and answers none.
    const hub = net.createServer((socket) => socket.on('error', () => {}));
    let user: TerminalUser | undefined;
    beforeAll(async () => {
      if (isKillRun) makeInputs(folder);
      await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve));
      const { port } = hub.address() as AddressInfo;
      user = new TerminalUser(folder, { HF_ENDPOINT: `http://127.0.0.1:${port}` });
    }, KILL_TIMEOUT_MS);
    afterAll(() => {
      user?.close();
      hub.close();
      fs.rmSync(folder, { recursive: true });
    }, KILL_TIMEOUT_MS);

    const rows = Object.values(COMMAND_ROWS)
      .flat()
      .map((row) => ({ row, line: row.words.join(' ') }));
    const durations = new Map<string, number>();
    it.runIf(isKillRun).each(rows)(
      'runs to its end, or for a while: $line',
      async ({ row, line }) => {
        if (user === undefined) throw new Error('no user');
        durations.set(line, await user.durationOf(row));
      },
      KILL_TIMEOUT_MS,
    );

    it.each(rows.filter(({ line }) => isKillRun || FEW.includes(line)))(
      'ends within a second, and leaves nothing: $line',
      async ({ row, line }) => {
        if (user === undefined) throw new Error('no user');
        const duration = durations.get(line) ?? 1500;
        let worst = { wall: 0, busy: 0 };
        const faults: string[] = [];
        for (const ending of ENDINGS) {
          for (let at = 0; at < MOMENTS; at++) {
            // The first moment is in the start-up of the program.
            const moment = isKillRun && at === 0 ? 50 * Math.random() : Math.random() * duration;
            const { isLate, ...result } = await user.interrupt(row, { moment, ending });
            const when = `${ending} after ${moment.toFixed(0)} ms`;
            faults.push(...result.faults.map((fault) => `${when}: ${fault}`));
            if (isLate) continue;
            if (result.wall > worst.wall) worst = result;
            if (await isSlow(user, result)) {
              faults.push(`${when}: ended after ${result.wall.toFixed(0)} ms`);
            }
          }
        }
        if (isKillRun) {
          const [wall, busy] = [worst.wall, worst.busy].map((each) => each.toFixed(0));
          const each = [`${line}: ${wall} ms at worst, ${busy} ms of the processor`, ...faults];
          process.stdout.write(`${each.join('\n  ')}\n`);
        }
        expect(faults).toEqual([]);
      },
      KILL_TIMEOUT_MS,
    );

    it.runIf(isKillRun)(
      'ends while nobody reads its answer',
      async () => {
        if (user === undefined) throw new Error('no user');
        for (const redirection of ['| (trap "" INT; sleep 3)', '| true']) {
          const row = { words: ['inspect', 'tiny', '--json', '--tensors'] };
          const { faults } = await user.interrupt(row, {
            ...{ moment: 2000, ending: 'Ctrl-C', redirection },
          });
          expect(faults.filter((fault) => !fault.startsWith('exit code'))).toEqual([]);
        }
      },
      KILL_TIMEOUT_MS,
    );
  },
);

describe.skipIf(process.platform === 'win32')('a program that computes without a pause', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-busy-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])(
    'ends at %s and leaves no temporary folder',
    (signal) => {
      const source = `
      import { spawn } from 'node:child_process';
      import fs from 'node:fs';
      import path from 'node:path';
      import { handleSignals, watchEnd } from './early-end.ts';
      import { TemporaryFolder } from './temporary.ts';
      handleSignals(() => process.exit(130));
      await watchEnd();
      fs.writeFileSync(path.join(new TemporaryFolder().path, 'file'), 'text');
      spawn('sh', ['-c', \`sleep 0.2; kill -${signal.slice(3)} \${process.pid}\`], { stdio: 'ignore' });
      const end = Date.now() + 30_000;
      while (Date.now() < end);`;
      const program = bundledSource(source);
      const TMPDIR = fs.mkdtempSync(path.join(folder, 'temporary-'));
      const start = performance.now();
      const run = spawnSync(process.execPath, [program], { env: { ...process.env, TMPDIR } });
      expect(String(run.stderr)).toBe('');
      expect({ code: run.status, signal: run.signal }).toEqual({ code: null, signal });
      expect(fs.readdirSync(TMPDIR)).toEqual([]);
      expect(performance.now() - start).toBeLessThan(25_000);
    },
  );

  /** A program of src/base/files, in dist, next to which it finds the thread. */
  function bundledSource(contents: string): string {
    const outfile = path.join(folder, 'program.mjs');
    buildSync({
      stdin: { contents, resolveDir: inPackage('src/base/files'), loader: 'ts' },
      ...{ outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' },
      define: { 'import.meta.url': JSON.stringify(pathToFileURL(inPackage('dist/cli/x.js')).href) },
    });
    return outfile;
  }
});
