/** Locks of units with competing owners, dead owners and different clocks. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { pulse } from '../../src/base/files/mounted.js';
import { LockWatch, ownerIn, PartLock } from '../../src/scale/part-lock.js';
import { folderOf } from '../checkpoint/temp-folder.js';
import { TIMES } from './conversions/parts.js';

const lockFile = () => path.join(folderOf({}), 'unit.lock');
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The lock of an owner on another machine with another clock. */
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

  it('shows that its owner is alive, and the progress', async () => {
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

  it('shows that its owner is alive while a read blocks the process', () => {
    const file = lockFile();
    const lock = PartLock.take(file, { beat: 1e9, stale: 1e9 });
    pulse();
    pulse();
    expect(ownerIn(file)?.beat).toBe(2);
    lock?.release();
    pulse();
    expect(fs.existsSync(file)).toBe(false);
  });

  it('does not remove the lock of another owner when it is released', () => {
    const file = lockFile();
    const lock = PartLock.take(file, TIMES);
    fs.rmSync(file);
    foreignLock(file);
    lock?.release();
    expect(ownerIn(file)?.host).toBe('far');
  });
});

describe('LockWatch', () => {
  it('keeps the lock of a running process at any age', () => {
    const file = lockFile();
    const lock = PartLock.take(file, { beat: 1e9, stale: 0 });
    const watch = new LockWatch({ beat: 1, stale: 0 });
    expect(watch.breakStale(file)).toBe(false);
    expect(watch.breakStale(file)).toBe(false);
    lock?.release();
  });

  it('removes the lock of a killed process of this machine', async () => {
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
    // It was killed before it removed its second name of the lock.
    fs.linkSync(file, `${file}.dead`);
    expect(new LockWatch(TIMES).breakStale(file)).toBe(true);
    expect(fs.readdirSync(path.dirname(file))).toEqual([]);
  });

  it('removes only the lock when the token of its owner is a path', () => {
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
    'removes the lock when another process has the id of the owner',
    () => {
      const file = lockFile();
      const lock = PartLock.take(file, TIMES);
      const owner = ownerIn(file);
      lock?.release();
      const other = { ...owner, pid: process.ppid, born: '1', token: 'dead' };
      fs.writeFileSync(file, JSON.stringify(other).padEnd(512));
      expect(new LockWatch(TIMES).breakStale(file)).toBe(true);
    },
  );

  it.each([
    ['an hour behind', -3600e3],
    ['the same', 0],
    ['a day ahead', 24 * 3600e3],
  ])(
    'judges an owner on another machine by the local clock only: the other clock is %s',
    (_, skew) => {
      const file = lockFile();
      let now = 5_000;
      const watch = new LockWatch({ beat: 20, stale: 200 }, () => now);
      foreignLock(file, { beat: 1 }, Date.now() + skew);
      expect(watch.breakStale(file)).toBe(false);
      now += 199;
      expect(watch.breakStale(file)).toBe(false);
      // A heartbeat with an unchanged time of the file.
      foreignLock(file, { beat: 2 }, Date.now() + skew);
      now += 199;
      expect(watch.breakStale(file)).toBe(false);
      now += 199;
      expect(watch.breakStale(file)).toBe(false);
      now += 1;
      expect(watch.breakStale(file)).toBe(true);
      expect(ownerIn(file)).toBeUndefined();
    },
  );

  it('treats an unreadable lock like one of another machine', () => {
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
