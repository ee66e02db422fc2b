/** Parts on an imitated NFS: lost answers, stale attributes, names of removed files, replaced files. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { renameTo, takeFreeName } from '../../../src/base/files/file-system.js';
import { LockWatch, ownerIn, PartLock } from '../../../src/scale/part-lock.js';
import { systemError } from '../../base/files/faults.js';
import { imitateNfs } from '../../base/files/nfs.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { convert, type Flags } from '../../convert/conversion/convert.js';
import { inPackage } from '../../fixtures.js';
import { finish, hashes, opened, plan, run, TIMES } from './parts.js';

const OLD = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');
const FLAGS: Flags = { layout: 'shared', noConfig: true, shardSize: 15e3 };

async function prepared() {
  const folder = folderOf({ 'in/old.pt': fs.readFileSync(OLD) });
  const at = (...names: string[]) => path.join(folder, ...names);
  await convert(at('in/old.pt'), at('single'), FLAGS);
  const planned = await plan(at('in/old.pt'), at('out'), FLAGS, 4, 8);
  const built = () => at(fs.readdirSync(folder).find((name) => name.startsWith('.out')) ?? '');
  return { folder, at, planned, single: hashes(at('single')), out: at('out'), built };
}

/** True the first time, then every third time. */
const often = () => {
  let count = 0;
  return () => count++ % 3 === 0;
};

describe.runIf(process.platform === 'linux')('on NFS', () => {
  it('a lock has one owner, even if the answer to its link is lost', () => {
    const folder = folderOf({});
    imitateNfs(folder, { isLost: () => true });
    const file = path.join(folder, 'unit.lock');
    const lock = PartLock.take(file, TIMES);
    expect(lock?.isOwn).toBe(true);
    expect(PartLock.take(file, TIMES)).toBeUndefined();
    lock?.release();
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it('links and renames succeed if only their answer is lost', () => {
    const folder = folderOf({ one: '1', two: '2' });
    const at = (name: string) => path.join(folder, name);
    imitateNfs(folder, { isLost: () => true });
    takeFreeName(at('one'), at('linked'));
    renameTo(at('one'), at('renamed'));
    expect(fs.readFileSync(at('renamed'), 'utf8')).toBe('1');
    expect(() => takeFreeName(at('two'), at('linked'))).toThrow('EEXIST');
    expect(() => renameTo(at('none'), at('renamed'))).toThrow('ENOENT');
    expect(() => renameTo(at('two'), at('none/two'))).toThrow('ENOENT');
  });

  it('an observer waits for an owner with stale beats, and removes a dead one', () => {
    const folder = folderOf({});
    const file = path.join(folder, 'unit.lock');
    let now = 0;
    const watch = new LockWatch({ beat: 5_000, stale: 90_000 }, () => now);
    // This client reads content of up to 60 s ago; a beat takes 5 s.
    const write = (beat: number) => {
      const owner = { token: 'other', host: 'far', space: 'elsewhere', beat };
      fs.writeFileSync(file, JSON.stringify(owner).padEnd(512));
    };
    for (now = 0; now <= 600_000; now += 1_000) {
      if (now % 60_000 === 0) write(now / 5_000);
      expect(watch.breakStale(file)).toBe(false);
    }
    now += 90_000;
    expect(watch.breakStale(file)).toBe(true);
  });

  it('an observer reads a lock that is replaced meanwhile', () => {
    const folder = folderOf({});
    const file = path.join(folder, 'unit.lock');
    const lock = PartLock.take(file, TIMES);
    let count = 0;
    imitateNfs(folder, { isStale: () => count++ < 3 });
    expect(ownerIn(file)?.token).toBe(lock?.token);
    count = 0;
    expect(new LockWatch(TIMES).breakStale(file)).toBe(false);
    lock?.release();
  });

  it('a lock is released even if closing reports an earlier error', () => {
    const folder = folderOf({});
    const lock = PartLock.take(path.join(folder, 'unit.lock'), TIMES);
    const { closeSync } = fs;
    fs.closeSync = (descriptor) => {
      closeSync(descriptor);
      throw systemError('ENOSPC');
    };
    try {
      lock?.release();
    } finally {
      fs.closeSync = closeSync;
    }
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it('parts write the files of a single run with lost answers and stale files', async () => {
    const { folder, planned, single, out, built } = await prepared();
    let isStale = often();
    imitateNfs(folder, { isLost: often(), isStale: () => isStale(), cached: 60_000 });
    const numbers = [1, 2, 3, 4, 4, 2];
    const results = await Promise.all(numbers.map((part) => run(planned, part)));
    // No unit was done twice.
    const done = results.reduce((sum, { ran }) => sum + (ran ? ran.units - ran.unitsThere : 0), 0);
    const units = planned.plan.parts.flatMap((part) => [...part.files, ...part.slices]);
    expect(done).toBeLessThanOrEqual(units.length + 1);
    expect((await opened(planned)).progress().parts.map(({ state }) => state)).toEqual(
      planned.plan.parts.map(() => 'done'),
    );
    await finish(planned, true);
    isStale = () => false;
    expect(hashes(out)).toEqual(single);
    expect(fs.readdirSync(built())).toContain('finished.json');
  });

  it('a new result of another machine is found although its absence is cached', async () => {
    const { folder, planned } = await prepared();
    await run(planned, 1);
    imitateNfs(folder, { cached: 60_000 });
    expect(await finish(planned)).toMatchObject({ array: '2-4' });
    // Parts write through another client, without its cache.
    for (const part of [2, 3]) await run(planned, part);
    expect(await finish(planned)).toMatchObject({ array: '4' });
    const again = await run(planned, 2);
    expect(again.ran?.unitsThere).toBe(again.ran?.units);
  });

  it('names of removed files are neither results nor parts of the output', async () => {
    const { folder, planned, single, out, built } = await prepared();
    for (const part of [1, 2, 3]) await run(planned, part);
    const hidden = '.nfs000000000004b1f500000001';
    for (const subfolder of ['files', 'receipts', 'locks', 'spool']) {
      fs.writeFileSync(path.join(built(), subfolder, hidden), '{}');
    }
    expect(await finish(planned)).toMatchObject({ array: '4' });
    await run(planned, 4);
    imitateNfs(folder);
    // A late task reads a file while the last task clears the folder.
    const open = fs.openSync(path.join(built(), 'spool', hidden), 'r');
    await finish(planned, true);
    fs.closeSync(open);
    expect(hashes(out)).toEqual(single);
    expect(fs.existsSync(path.join(built(), 'finished.json'))).toBe(true);
    expect(await finish(planned)).toMatchObject({ isFinished: true });
  });

  it('a file can be replaced while another process reads it', async () => {
    const { folder, planned, single, out, built } = await prepared();
    for (const part of [1, 2, 3, 4]) await run(planned, part);
    const [name = ''] = planned.plan.parts[1]?.files ?? [];
    imitateNfs(folder);
    const open = fs.openSync(path.join(built(), 'files', name), 'r');
    for (const receipt of fs.readdirSync(path.join(built(), 'receipts'))) {
      if (receipt.includes(name)) fs.rmSync(path.join(built(), 'receipts', receipt));
    }
    await run(planned, 2);
    expect(fs.readdirSync(path.join(built(), 'files')).join()).toContain('.nfs');
    await finish(planned, true);
    fs.closeSync(open);
    expect(hashes(out)).toEqual(single);
  });
});
