/** Locks of units: two owners at once, owners that are gone, and clocks that differ. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { pulse } from '../../src/files/mounted.js';
import { LockWatch, ownerIn, PartLock } from '../../src/parts/part-lock.js';
import { folderOf } from '../checkpoint/temp-folder.js';
import { TIMES } from '../conversion/parts/parts.js';

const lockFile = () => path.join(folderOf({}), 'unit.lock');
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The lock of an owner on another machine, whose clock shows another time. */
function foreignLock(file: string, changes: object = {}, clock = Date.now()): void {
  const lock = PartLock.take(file, TIMES);
  const owner = { ...ownerIn(file), token: 'other', host: 'far', space: 'elsewhere', ...changes };
  lock?.release();
  fs.writeFileSync(file, JSON.stringify(owner).padEnd(512));
  fs.utimesSync(file, clock / 1000, clock / 1000);
}

describe('PartLock', () => {
  it('is taken by one owner at a time', () => {
    const file = lockFile();
    const lock = PartLock.take(file, TIMES);
    expect(PartLock.take(file, TIMES)).toBeUndefined();
    expect(lock?.isOwn).toBe(true);
    lock?.release();
    expect(fs.readdirSync(path.dirname(file))).toEqual([]);
    const next = PartLock.take(file, TIMES);
    expect(next).toBeDefined();
    next?.release();
  });

  it('shows that its owner lives, and its progress', async () => {
    const file = lockFile();
    const lock = PartLock.take(file, TIMES);
    lock?.add(123);
    await pause(80);
    const owner = ownerIn(file);
    expect(owner?.beat).toBeGreaterThan(0);
    expect(owner?.bytes).toBe(123);
    expect(fs.statSync(file).size).toBe(512);
    lock?.release();
  });

  it('shows that its owner lives while a read blocks the process', () => {
    const file = lockFile();
    const lock = PartLock.take(file, { beat: 1e9, stale: 1e9 });
    pulse();
    pulse();
    expect(ownerIn(file)?.beat).toBe(2);
    lock?.release();
    pulse();
    expect(fs.existsSync(file)).toBe(false);
  });

  it('leaves the lock of another alone when it is released', () => {
    const file = lockFile();
    const lock = PartLock.take(file, TIMES);
    fs.rmSync(file);
    foreignLock(file);
    lock?.release();
    expect(ownerIn(file)?.host).toBe('far');
  });
});

describe('LockWatch', () => {
  it('keeps the lock of a process that runs, however old it is', () => {
    const file = lockFile();
    const lock = PartLock.take(file, { beat: 1e9, stale: 0 });
    const watch = new LockWatch({ beat: 1, stale: 0 });
    expect(watch.breakStale(file)).toBe(false);
    expect(watch.breakStale(file)).toBe(false);
    lock?.release();
  });

  it('removes the lock of a process of this machine that was killed', async () => {
    const file = lockFile();
    const own = PartLock.take(file, TIMES);
    const owner = ownerIn(file);
    own?.release();
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    const { pid } = child;
    const killed = once(child, 'exit');
    child.kill('SIGKILL');
    await killed;
    fs.writeFileSync(file, JSON.stringify({ ...owner, pid, token: 'dead' }).padEnd(512));
    // It was killed before it gave up the name of its own.
    fs.linkSync(file, `${file}.dead`);
    expect(new LockWatch(TIMES).breakStale(file)).toBe(true);
    expect(fs.readdirSync(path.dirname(file))).toEqual([]);
  });

  it('removes nothing but a lock for an owner whose token is a path', () => {
    const file = lockFile();
    const other = path.join(path.dirname(file), 'other');
    fs.writeFileSync(other, 'keep');
    fs.mkdirSync(`${file}.a`);
    fs.writeFileSync(file, JSON.stringify({ token: 'a/../other' }).padEnd(512));
    const watch = new LockWatch({ beat: 1, stale: 0 });
    watch.breakStale(file);
    expect(watch.breakStale(file)).toBe(true);
    expect(fs.existsSync(file)).toBe(false);
    expect(fs.readFileSync(other, 'utf8')).toBe('keep');
  });

  it.runIf(process.platform === 'linux')(
    'is not misled by another process with the id of the owner',
    () => {
      const file = lockFile();
      const lock = PartLock.take(file, TIMES);
      const owner = ownerIn(file);
      lock?.release();
      const stranger = { ...owner, pid: process.ppid, born: '1', token: 'dead' };
      fs.writeFileSync(file, JSON.stringify(stranger).padEnd(512));
      expect(new LockWatch(TIMES).breakStale(file)).toBe(true);
    },
  );

  it.each([
    ['an hour behind', -3600e3],
    ['the same', 0],
    ['a day ahead', 24 * 3600e3],
  ])('judges an owner elsewhere by its own clock alone: the other is %s', (_, skew) => {
    const file = lockFile();
    let now = 5_000;
    const watch = new LockWatch({ beat: 20, stale: 200 }, () => now);
    foreignLock(file, { beat: 1 }, Date.now() + skew);
    expect(watch.breakStale(file)).toBe(false);
    now += 199;
    expect(watch.breakStale(file)).toBe(false);
    // A sign of life, with the same time of the file.
    foreignLock(file, { beat: 2 }, Date.now() + skew);
    now += 199;
    expect(watch.breakStale(file)).toBe(false);
    now += 199;
    expect(watch.breakStale(file)).toBe(false);
    now += 1;
    expect(watch.breakStale(file)).toBe(true);
    expect(ownerIn(file)).toBeUndefined();
  });

  it('treats an unreadable lock as one of elsewhere', () => {
    const file = lockFile();
    let now = 0;
    const watch = new LockWatch({ beat: 1, stale: 10 }, () => now);
    fs.writeFileSync(file, '{"tok');
    expect(watch.breakStale(file)).toBe(false);
    now = 10;
    expect(watch.breakStale(file)).toBe(true);
  });

  it.each(['{}', 'null', '7', '{"token":7}', '{"token":"../x"}', '{"token":""}'])(
    'finds no owner in %s',
    (content) => {
      const file = lockFile();
      fs.writeFileSync(file, content);
      expect(ownerIn(file)).toBeUndefined();
    },
  );
});
