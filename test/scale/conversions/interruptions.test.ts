/** Parts that run at once, are killed, or find a full disk or another input, and a finish with missing parts. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { fileUnit } from '../../../src/scale/conversions/receipts.js';
import { systemError } from '../../base/files/faults.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { convert, type Flags } from '../../convert/conversion/convert.js';
import { inPackage } from '../../fixtures.js';
import { watchOperations } from '../../kill/operations.js';
import { finish, hashes, opened, type Planned, plan, run } from './parts.js';

const OLD = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');
const FLAGS: Flags = { layout: 'shared', noConfig: true, shardSize: 15e3 };

/** Hashes of a single run, computed once: its files do not depend on the folder. */
let single: Record<string, string> | undefined;

/** Copy of the input, a plan and the hashes of a single run. */
async function prepared(parts = 4) {
  const folder = folderOf({ 'in/old.pt': fs.readFileSync(OLD) });
  const at = (...names: string[]) => path.join(folder, ...names);
  if (single === undefined) {
    const target = path.join(folderOf({}), 'single');
    await convert(at('in/old.pt'), target, FLAGS);
    single = hashes(target);
  }
  const planned = await plan(at('in/old.pt'), at('out'), FLAGS, parts, 8);
  const built = () => at(fs.readdirSync(folder).find((name) => name.startsWith('.out')) ?? '');
  return { at, planned, single, out: at('out'), built };
}

const refusal = (work: Promise<unknown>): Promise<UserError> =>
  work.then(
    () => Promise.reject(new Error('not refused')),
    (error) => (error instanceof UserError ? error : Promise.reject(error)),
  );

const runAll = async (planned: Planned) => {
  for (const { part } of planned.plan.parts) await run(planned, part);
};

describe('parts', () => {
  it('can run at once, with several runners for each', async () => {
    const { planned, single, out } = await prepared();
    const numbers = [1, 2, 3, 4, 4, 3, 2, 1, 1, 2, 3, 4];
    const results = await Promise.all(numbers.map((part) => run(planned, part)));
    for (const { ran } of results) expect(ran?.units).toBeGreaterThan(0);
    // No unit was done twice.
    const done = results.reduce((sum, { ran }) => sum + (ran ? ran.units - ran.unitsThere : 0), 0);
    const units = planned.plan.parts.flatMap((part) => [
      ...part.files,
      ...part.slices,
      ...part.tables,
    ]);
    expect(done).toBeLessThanOrEqual(units.length);
    await finish(planned, true);
    expect(hashes(out)).toEqual(single);
  });

  it('do nothing if they run again, also after the end', async () => {
    const { planned, single, out } = await prepared();
    await runAll(planned);
    const { ran } = await run(planned, 2);
    expect(ran?.unitsThere).toBe(ran?.units);
    await finish(planned);
    const again = await run(planned, 2);
    expect(again).toMatchObject({ isFinished: true, ran: { units: 0, writtenBytes: 0 } });
    expect(await finish(planned)).toMatchObject({ isFinished: true, missing: [] });
    expect(hashes(out)).toEqual(single);
  });

  it('can run in phases, or without the first phase', async () => {
    const { planned, single, out } = await prepared();
    for (const part of [3, 1]) await run(planned, part, { phase: 1 });
    // The rows of parts 2 and 4 are missing: the part that needs the table computes them.
    for (const part of [4, 2, 1, 3]) await run(planned, part, { phase: 2 });
    await finish(planned, true);
    expect(hashes(out)).toEqual(single);
  });

  it('are shared by fewer tasks', async () => {
    const { planned, single, out } = await prepared(16);
    for (const id of ['2', '1', '3']) {
      const environment = {
        SLURM_ARRAY_TASK_ID: id,
        SLURM_ARRAY_TASK_MIN: '1',
        SLURM_ARRAY_TASK_MAX: '3',
        SLURM_ARRAY_TASK_COUNT: '3',
      };
      await run(planned, 'auto', { environment });
    }
    await finish(planned);
    expect(hashes(out)).toEqual(single);
  });

  it('continue after a runner was killed at any write', async () => {
    const { planned, single, out, built } = await prepared();
    for (let at = 1; at < 40; at += 3) {
      let writes = 0;
      const restore = await watchOperations({
        before: (operation) => {
          // Ends the run here, like a killed process.
          if (operation === 'write' && ++writes === at) throw systemError('EIO');
        },
      });
      await run(planned, 1 + (at % 4)).catch(() => {});
      restore();
    }
    await runAll(planned);
    await finish(planned, true);
    expect(hashes(out)).toEqual(single);
    expect(fs.readdirSync(built())).toEqual(['finished.json']);
  });

  it('report a full disk, and continue when there is space', async () => {
    const { planned, single, out, built } = await prepared();
    await run(planned, 1);
    const restore = await watchOperations({
      before: (operation) => {
        if (operation === 'write') throw systemError('ENOSPC');
      },
    });
    const error = await refusal(run(planned, 2)).finally(restore);
    expect(error).toMatchObject({ code: 'system', message: expect.stringContaining('ENOSPC') });
    expect(error.suggestion).toBe('free some space, or write to another disk');
    expect(fs.readdirSync(path.join(built(), 'locks'))).toEqual([]);
    expect(await finish(planned)).toMatchObject({ missing: [2, 3, 4], array: '2-4' });
    await runAll(planned);
    await finish(planned);
    expect(hashes(out)).toEqual(single);
  });
});

describe('a process with a part', () => {
  it('can be killed during a write, and another process continues its unit', async () => {
    const { planned, single, out, built } = await prepared();
    await run(planned, 3);
    const unit = fs.readdirSync(path.join(built(), 'receipts')).find((name) => /^file/.test(name));
    const id = (unit ?? expect.unreachable()).replace(/\.json$/, '');
    // A killed owner leaves its lock and a part of its file, but no receipt.
    fs.rmSync(path.join(built(), 'receipts', `${id}.json`));
    const script = `
      const fs = require('node:fs');
      fs.writeFileSync(process.argv[1], JSON.stringify({ token: 'dead', host: 'here', pid: process.pid,
        space: process.argv[2], born: '', beat: 0, bytes: 0, seconds: 0 }).padEnd(512));
      setInterval(() => {}, 1000);`;
    const { PROCESS_SPACE } = await import('../../../src/base/files/temporary.js');
    const lock = path.join(built(), 'locks', `${id}.lock`);
    const child = spawn(process.execPath, ['-e', script, lock, PROCESS_SPACE]);
    while (!fs.existsSync(lock)) await new Promise((resolve) => setTimeout(resolve, 5));
    const partial = path.join(built(), 'files', `.${id}.dead.tmp`);
    fs.writeFileSync(partial, 'half');
    const waiting = run(planned, 3);
    await new Promise((resolve) => setTimeout(resolve, 60));
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    expect((await waiting).ran).toMatchObject({ unitsThere: expect.any(Number) });
    expect(fs.existsSync(partial)).toBe(false);
    await runAll(planned);
    await finish(planned, true);
    expect(hashes(out)).toEqual(single);
  });
});

describe('finish', () => {
  it('lists missing parts', async () => {
    const { planned } = await prepared(64);
    const first = await finish(planned);
    const withWork = planned.plan.parts.filter(({ files }) => files.length > 0);
    expect(first).toMatchObject({ isFinished: false, missing: withWork.map(({ part }) => part) });
    await run(planned, 1);
    await run(planned, 3);
    expect(await finish(planned)).toMatchObject({ array: '2,4-6' });
  });

  it('lists a part with a truncated file', async () => {
    const { planned, built, single, out } = await prepared();
    await runAll(planned);
    const [name = ''] = planned.plan.parts[2]?.files ?? [];
    fs.truncateSync(path.join(built(), 'files', name), 100);
    expect(await finish(planned)).toMatchObject({ array: '3' });
    await run(planned, 3);
    await finish(planned);
    expect(hashes(out)).toEqual(single);
  });

  it('reads the receipts of all parts, and a part only its own', async () => {
    const { planned, built } = await prepared();
    await runAll(planned);
    const [name = ''] = planned.plan.parts[2]?.files ?? [];
    fs.writeFileSync(path.join(built(), 'receipts', `${fileUnit(name).id}.json`), 'not JSON');
    expect(await run(planned, 2)).toMatchObject({
      missing: [],
      doneBytes: planned.plan.parts.reduce((sum, { writeBytes }) => sum + writeBytes, 0),
    });
    expect(await finish(planned)).toMatchObject({ array: '3' });
  });

  it('finds changed bytes with --check, and removes the receipt', async () => {
    const { planned, built, single, out } = await prepared();
    await runAll(planned);
    const [name = ''] = planned.plan.parts[1]?.files ?? [];
    const file = path.join(built(), 'files', name);
    const bytes = fs.readFileSync(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    fs.writeFileSync(file, bytes);
    const error = await refusal(finish(planned, true));
    expect(error.suggestion).toContain('--array=2');
    expect(await finish(planned)).toMatchObject({ array: '2' });
    await run(planned, 2);
    await finish(planned, true);
    expect(hashes(out)).toEqual(single);
  });

  it('continues an interrupted finish', async () => {
    const { planned, single, out, at } = await prepared();
    await runAll(planned);
    for (let count = 1; count < 12; count++) {
      let renames = 0;
      const restore = await watchOperations({
        before: (operation) => {
          if (operation === 'rename' && ++renames === count) throw systemError('EIO');
        },
      });
      await finish(planned).catch(() => {});
      restore();
    }
    expect(await finish(planned)).toBeDefined();
    expect(hashes(out)).toEqual(single);
    expect(fs.readdirSync(at()).filter((name) => /minimind$/.test(name))).toEqual([]);
  });

  it('names a folder in place of a lock', async () => {
    const { planned, built } = await prepared();
    await runAll(planned);
    fs.rmSync(path.join(built(), 'receipts'), { recursive: true });
    const [name = ''] = planned.plan.parts.flatMap(({ files }) => files);
    fs.mkdirSync(path.join(built(), 'locks', `${fileUnit(name).id}.lock`), { recursive: true });
    expect((await refusal(runAll(planned))).code).toBe('system');
  });

  it('replaces an output only with --force', async () => {
    const { planned, at, single, out } = await prepared();
    await runAll(planned);
    fs.mkdirSync(out);
    fs.writeFileSync(path.join(out, 'mine.txt'), 'mine');
    expect((await refusal(finish(planned))).message).toContain('exists already');
    fs.rmSync(out, { recursive: true });
    await finish(planned);
    await expect(plan(at('in/old.pt'), out, FLAGS, 2)).rejects.toThrow('exists already');
    const again = await plan(at('in/old.pt'), out, { ...FLAGS, force: true }, 2);
    await runAll(again);
    // Whether it replaces is for the one who finishes to say.
    expect((await refusal(finish(again))).message).toContain('exists already');
    await finish(again, false, true);
    expect(hashes(out)).toEqual(single);
  });
});

describe('a plan', () => {
  it('is the same for the same input and number of parts', async () => {
    const { at, planned } = await prepared();
    const again = await plan(at('in/old.pt'), at('out'), FLAGS, 4, 8);
    expect(again.plan).toEqual(planned.plan);
    const moved = Date.now() / 1000 - 1e6;
    fs.utimesSync(at('in/old.pt'), moved, moved);
    expect((await plan(at('in/old.pt'), at('out'), FLAGS, 4, 8)).plan).toEqual(planned.plan);
    expect((await plan(at('in/old.pt'), at('out'), FLAGS, 5, 8)).plan.hash).not.toBe(
      planned.plan.hash,
    );
  });

  it('refuses a changed input', async () => {
    const { at, planned } = await prepared();
    const bytes = fs.readFileSync(at('in/old.pt'));
    fs.writeFileSync(at('in/old.pt'), Buffer.concat([bytes, Buffer.from('x')]));
    expect((await refusal(run(planned, 1))).message).toMatch(
      /is not the input of the plan: .*bytes/,
    );
    fs.rmSync(at('in/old.pt'));
    expect((await refusal(run(planned, 1))).message).toContain('missing');
    const middle = bytes.indexOf(Buffer.from('layers.1')) > 0 ? 40_000 : 40_000;
    const changed = Buffer.from(bytes);
    changed[middle] = (changed[middle] ?? 0) ^ 1;
    fs.writeFileSync(at('in/old.pt'), changed);
    expect((await refusal(run(planned, 1))).message).toMatch(
      /other bytes|other tensors|broken|refused/,
    );
    fs.writeFileSync(at('in/old.pt'), bytes);
    await run(planned, 1);
  });

  it.each([
    [
      'edited by hand',
      (text: string) => text.replace('"saturate": false', '"saturate": true'),
      'was changed',
    ],
    ['not JSON', (text: string) => text.slice(0, -3), 'is not JSON'],
    ['of another kind', () => '{"schema":"minimind/plan@1"}', 'is not a plan of --parts'],
    [
      'without a key',
      (text: string) => text.replace('"request"', '"other"'),
      'is not a valid plan',
    ],
    [
      'with a value of another type',
      (text: string) => text.replace(/"tensors": \d+/, '"tensors": "all"'),
      /:\d+:\d+ is not a valid plan: input\.tensors: must be an integer ≥ 0, but is "all"$/,
    ],
  ])('is refused: %s', async (_, edit, message) => {
    const { planned } = await prepared();
    fs.writeFileSync(planned.file, edit(fs.readFileSync(planned.file, 'utf8')));
    expect((await refusal(run(planned, 1))).message).toMatch(message);
    expect((await refusal(finish(planned))).message).toMatch(message);
  });

  it('is refused by another version', async () => {
    const { planned } = await prepared();
    const other = opened(planned, '9.9.9');
    expect((await refusal(other)).message).toContain('is a plan of minimind 0.0.1');
  });
});
