import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
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

const COMPANIONS = ['config.json', 'model-1.safetensors'];

describe('a process that is killed', () => {
  it.each<[string, Pick<KillTest, 'prepare' | 'output'>]>([
    ['folder', { prepare: putOld(), output: ['out'] }],
    ['folder', { prepare: putOld('out/a.safetensors', 'out/b.json'), output: ['out'] }],
    ['file', { prepare: putOld('out', 'config.json'), output: ['out', ...COMPANIONS] }],
  ])(
    'leaves a whole %s, old or new',
    async (kind, { prepare, output }) => {
      const report = await runKills({
        prepare,
        output,
        args: () => [script, kind, 'out'],
        resumeArgs: () => [script, kind, 'out', '--resume'],
        ...KILLS,
      });
      // Of the kills at operations, some come early and some late.
      expect(report.old).toBeGreaterThan(0);
      expect(report.new).toBeGreaterThan(0);
      expect(report.operations).toBeGreaterThan(20);
    },
    KILL_TIMEOUT_MS,
  );
});
