import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { isWhole } from '../sampled.js';
import { bundled, type KillTest, runKills } from './kills.js';
import { KILL_TIMEOUT_MS, KILLS } from './settings.js';

const scripts = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(scripts, { recursive: true }));
const script = bundled('build-output.ts', scripts);

const putOld =
  (...names: string[]) =>
  (folder: string) => {
    for (const name of ['in.safetensors', ...names]) {
      fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
      fs.writeFileSync(path.join(folder, name), `old ${name}`);
    }
  };

const COMPANIONS = ['config.yaml', 'model-00001-of-00002.safetensors'];

describe.runIf(isWhole)('a killed process', () => {
  const cases: [string, Pick<KillTest, 'prepare' | 'output'>][] = [
    [
      'folder',
      {
        prepare: putOld('out/model.safetensors', 'out/model.safetensors.index.json'),
        output: ['out'],
      },
    ],
    ['folder', { prepare: putOld(), output: ['out'] }],
    ['file', { prepare: putOld('out', 'config.yaml'), output: ['out', ...COMPANIONS] }],
  ];
  it.each(cases)(
    'leaves a whole %s, old or new',
    async (kind, { prepare, output }) => {
      const report = await runKills({
        prepare,
        output,
        args: () => [script, kind, 'out'],
        resumeArgs: () => [script, kind, 'out', '--resume'],
        ...KILLS,
      });
      // Some kills at operations come early, and some late.
      expect(report.old).toBeGreaterThan(0);
      expect(report.new).toBeGreaterThan(0);
      expect(report.operations).toBeGreaterThan(20);
    },
    KILL_TIMEOUT_MS,
  );
});

describe('an interrupted process', () => {
  // Without a handler, the system would end the program at once. The command line has handlers.
  const ending = (finish: number) => `
    import fs from 'node:fs';
    import { Staging } from ${JSON.stringify(pathToFileURL(path.resolve('src/base/files/staging.ts')).href)};
    process.on('SIGINT', () => process.exit(130));
    const options = { kind: 'folder', force: false, resume: false, identity: '' };
    const staging = await Staging.open('out', options);
    fs.writeFileSync(staging.spool('mean'), 'scratch');
    for (let i = 0; i < ${finish}; i++) await staging.write('file-' + i, (sink) => sink.write(Buffer.from('text')));
    await staging.write('last', async (sink) => {
      await sink.write(Buffer.alloc(2 ** 20));
      process.kill(process.pid, 'SIGINT');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    });`;

  it.each([
    [0, ['journal.json', 'spool', 'spool/mean']],
    [2, ['files/file-0', 'files/file-1', 'journal.json', 'spool', 'spool/mean']],
  ])('keeps only the %i finished files', (finish, expected) => {
    const folder = fs.mkdtempSync(path.join(scripts, 'run-'));
    const program = path.join(scripts, `end-${finish}.mjs`);
    fs.writeFileSync(program, ending(finish));
    const tsx = import.meta.resolve('tsx');
    const run = spawnSync(process.execPath, ['--import', tsx, program], { cwd: folder });
    expect(run.status, String(run.stderr)).toBe(130);
    const staging = path.join(folder, '.out.minimind');
    const kept = fs.existsSync(staging) ? fs.readdirSync(staging, { recursive: true }) : [];
    expect(kept.filter((name) => name !== 'files' && name !== 'replaced').sort()).toEqual(expected);
    expect(fs.readdirSync(folder)).toEqual(expected.length > 0 ? ['.out.minimind'] : []);
  });
});
