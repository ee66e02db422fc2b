import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { Staging, type StagingOptions } from '../../../src/base/files/staging.js';
import { temporaryName } from '../../../src/base/files/temporary.js';
import { fileHandlePrototype } from '../../kill/operations.js';
import { systemError } from './faults.js';
import {
  inFolder,
  MODEL,
  MODEL_FILE,
  OLD,
  options,
  putTexts,
  STAGING,
  textsIn,
  writeAll,
} from './outputs.js';

type Change = Partial<StagingOptions>;

const out = () => inFolder('out');
const open = (changed: Change = {}, target = out()) => Staging.open(target, options(changed));
const never = async () => {
  throw new Error('was asked for content');
};

async function build(
  texts: Readonly<Record<string, string>>,
  changed: Change = {},
  target = out(),
) {
  const staging = await open(changed, target);
  await writeAll(staging, texts);
  await staging.commit();
}

/** A run that fails after some files are finished. */
async function fail(texts: Readonly<Record<string, string>>, changed: Change = {}) {
  const staging = await open(changed);
  await writeAll(staging, texts);
  return staging.abandon();
}

describe('a folder', () => {
  it('appears at the end, at once, without other files', async () => {
    const staging = await open();
    fs.writeFileSync(staging.spool('mean'), 'scratch');
    await writeAll(staging, MODEL);
    expect(fs.readdirSync(inFolder())).toEqual([STAGING]);
    await staging.commit();
    expect(fs.readdirSync(inFolder())).toEqual(['out']);
    expect(textsIn('out')).toEqual(MODEL);
  });

  it('takes the place of an empty one', async () => {
    fs.mkdirSync(out());
    await build(MODEL);
    expect(textsIn('out')).toEqual(MODEL);
  });

  it('replaces a whole checkpoint when forced, and keeps its permissions', async () => {
    putTexts(OLD, 'out');
    fs.chmodSync(out(), 0o750);
    await expect(open()).rejects.toThrow(`${out()} exists already`);
    expect(textsIn()).toEqual({
      'out/model.safetensors': 'old weights',
      'out/model.safetensors.index.json': '{}',
    });
    await build(MODEL, { force: true });
    expect(fs.readdirSync(inFolder())).toEqual(['out']);
    expect(textsIn('out')).toEqual(MODEL);
    expect(fs.statSync(out()).mode & 0o777).toBe(0o750);
  });

  it.each([
    ['holds thesis.docx', { ...OLD, 'thesis.docx': '' }],
    ['holds .git', { ...OLD, '.git/config': '' }],
    ['holds logs.json', { ...OLD, 'logs.json/a.json': '' }],
    ['holds notes.txt', { ...OLD, 'notes.txt': '' }],
    ['holds no weights', { 'config.yaml': '' }],
  ])('is never replaced when it %s', async (why, texts) => {
    putTexts(texts, 'out');
    const attempt = open({ force: true });
    await expect(attempt).rejects.toThrow(
      `${out()} is not a folder written by a conversion: it ${why}`,
    );
    await expect(attempt).rejects.toMatchObject({ code: 'usage' });
    expect(fs.readdirSync(inFolder())).toEqual(['out']);
    expect(textsIn('out')).toEqual(texts);
  });

  it('is not replaced when an unknown file appears in it meanwhile', async () => {
    putTexts(OLD, 'out');
    const staging = await open({ force: true });
    await writeAll(staging, MODEL);
    putTexts({ 'thesis.docx': 'years' }, 'out');
    await expect(staging.commit()).rejects.toThrow('holds thesis.docx');
    expect(await staging.abandon()).toBe('kept');
    expect(textsIn('out')).toEqual({ ...OLD, 'thesis.docx': 'years' });
  });

  it('does not replace a folder that takes the name meanwhile', async () => {
    const staging = await open();
    await writeAll(staging, MODEL);
    putTexts(OLD, 'out');
    await expect(staging.commit()).rejects.toThrow('exists already');
    expect(textsIn('out')).toEqual(OLD);
  });

  it('is written to the target of a link, which stays a link', async () => {
    putTexts(OLD, 'disk/real');
    fs.symlinkSync('disk/real', out());
    await build(MODEL, { force: true });
    expect(textsIn('disk')).toEqual({
      'real/config.yaml': 'new config',
      'real/model.safetensors': 'new weights',
    });
    expect(fs.readlinkSync(out())).toBe('disk/real');
    expect(fs.readdirSync(inFolder())).toEqual(['disk', 'out']);
  });

  it('is created at the missing target of a link', async () => {
    fs.mkdirSync(inFolder('disk'));
    fs.symlinkSync('disk/real', inFolder('link'));
    fs.symlinkSync('link', out());
    await build(MODEL);
    expect(textsIn('disk/real')).toEqual(MODEL);
  });
});

describe('a file', () => {
  const kind = 'file';

  it('is written with its companions, and replaces nothing unless forced', async () => {
    await build(MODEL_FILE, { kind });
    expect(textsIn()).toEqual(MODEL_FILE);
    await expect(open({ kind })).rejects.toThrow(`${out()} exists already`);
    await build({ ...MODEL_FILE, out: 'newer' }, { kind, force: true });
    expect(textsIn()).toEqual({ ...MODEL_FILE, out: 'newer' });
  });

  it('refuses to replace a companion before writing it, unless forced', async () => {
    putTexts({ 'config.yaml': "another model's" });
    const staging = await open({ kind });
    await expect(staging.write('config.yaml', never)).rejects.toThrow(
      `${inFolder('config.yaml')} exists already`,
    );
    await staging.abandon();
    await build(MODEL_FILE, { kind, force: true });
    expect(textsIn()).toEqual(MODEL_FILE);
  });

  it('does not replace a companion that appears meanwhile', async () => {
    const staging = await open({ kind });
    await writeAll(staging, MODEL_FILE);
    putTexts({ 'config.yaml': "another model's" });
    await expect(staging.commit()).rejects.toThrow('config.yaml exists already');
    expect(textsIn()).toMatchObject({ 'config.yaml': "another model's" });
    expect(fs.existsSync(out())).toBe(false);
  });

  it('keeps its permissions and its links', async () => {
    putTexts({ 'disk/real': 'old' });
    fs.chmodSync(inFolder('disk/real'), 0o600);
    fs.symlinkSync('disk/real', out());
    const staging = await open({ kind, force: true });
    expect(staging.mainName).toBe('real');
    await writeAll(staging, { real: 'new', 'config.yaml': 'config' });
    await staging.commit();
    expect(textsIn()).toEqual({
      'disk/config.yaml': 'config',
      'disk/real': 'new',
      out: '-> disk/real',
    });
    expect(fs.statSync(inFolder('disk/real')).mode & 0o777).toBe(0o600);
  });
});

describe('an impossible place', () => {
  it.each<[string, Change, () => string]>([
    ['the name of the folder to write is empty', {}, () => ''],
    ['is the root of a disk', {}, () => '/'],
    ['there is no such folder', {}, () => inFolder('no/such/out')],
    ['is a file', {}, () => inFolder('file')],
    ['there is no such folder', {}, () => inFolder('file/out')],
    ['is a folder', { kind: 'file' }, () => inFolder('folder')],
    ['is neither a file nor a folder', { kind: 'file' }, () => '/dev/null'],
    ['is neither a file nor a folder', {}, () => '/dev/null'],
    ['is a mount point', {}, () => '/dev/shm'],
    ['ELOOP', {}, () => inFolder('loop')],
    ['ENAMETOOLONG', {}, () => inFolder('a'.repeat(250))],
  ])('is refused: %s', async (message, changed, target) => {
    putTexts({ file: '', 'folder/a': '' });
    fs.symlinkSync('loop', inFolder('loop'));
    const before = fs.readdirSync(inFolder());
    const attempt = open({ ...changed, force: true }, target());
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toBeInstanceOf(UserError);
    expect(fs.readdirSync(inFolder())).toEqual(before);
  });

  it('is refused when its staging folder is a link of another user', async () => {
    putTexts({ 'elsewhere/precious': 'text' });
    fs.symlinkSync('elsewhere', inFolder(STAGING));
    await expect(open()).rejects.toThrow(`expected a folder at ${inFolder(STAGING)}`);
    expect(textsIn('elsewhere')).toEqual({ precious: 'text' });
  });

  // Root may write everywhere.
  it.skipIf(process.getuid?.() === 0)('is refused when it cannot be written to', async () => {
    fs.mkdirSync(inFolder('locked'), { mode: 0o500 });
    const attempt = open({}, inFolder('locked/out'));
    await expect(attempt).rejects.toMatchObject({
      code: 'system',
      suggestion: 'check the permissions of the folder',
    });
  });

  it('is reported when the system refuses it', async () => {
    vi.spyOn(fs, 'mkdirSync').mockImplementationOnce(() => {
      throw systemError('EACCES');
    });
    await expect(open()).rejects.toMatchObject({
      code: 'system',
      message: expect.stringContaining(`cannot write ${out()}: EACCES`),
      suggestion: 'check the permissions of the folder',
    });
  });
});

describe('names in an output', () => {
  it.each(['', '.', '..', 'a/b', '../escape'])('cannot be %j', async (name) => {
    const staging = await open();
    await expect(staging.write(name, never)).rejects.toThrow(RangeError);
    await staging.abandon();
  });

  it('can be written only once', async () => {
    const staging = await open();
    await writeAll(staging, MODEL);
    await expect(staging.write('config.yaml', never)).rejects.toThrow('finished already');
    await staging.abandon();
  });
});

describe('a run that fails', () => {
  it('leaves nothing when nothing is finished', async () => {
    const staging = await open();
    fs.writeFileSync(staging.spool(`.${temporaryName()}.tmp`), 'half of it');
    const failure = new Error('no more');
    const attempt = staging.write('a', async (sink) => {
      await sink.write(Buffer.alloc(2 ** 20));
      throw failure;
    });
    await expect(attempt).rejects.toBe(failure);
    expect(await staging.abandon()).toBe('removed');
    expect(fs.readdirSync(inFolder())).toEqual([]);
  });

  it('keeps only complete scratch files, which a resumed run uses', async () => {
    const staging = await open();
    fs.writeFileSync(staging.spool('mean'), 'scratch');
    fs.writeFileSync(staging.spool(`.${temporaryName()}.tmp`), 'half of it');
    expect(await staging.abandon()).toBe('kept');
    await expect(open({ resume: true, identity: 'b' })).rejects.toThrow('other settings');
    const next = await open({ resume: true });
    expect(next.isResumed).toBe(true);
    expect(textsIn(STAGING, 'spool')).toEqual({ mean: 'scratch' });
    await writeAll(next, MODEL);
    await next.commit();
    expect(textsIn('.')).toEqual({
      'out/config.yaml': 'new config',
      'out/model.safetensors': 'new weights',
    });
  });

  it('removes everything when it is discarded', async () => {
    const staging = await open();
    await writeAll(staging, MODEL);
    await staging.discard();
    expect(fs.readdirSync(inFolder())).toEqual([]);
  });

  it('keeps only finished and scratch files', async () => {
    const staging = await open();
    fs.writeFileSync(staging.spool('mean'), 'scratch');
    await writeAll(staging, MODEL);
    await expect(staging.write('last', never)).rejects.toThrow('was asked');
    expect(await staging.abandon()).toBe('kept');
    expect(Object.keys(textsIn(STAGING))).toEqual([
      'files/config.yaml',
      'files/model.safetensors',
      'journal.json',
      'spool/mean',
    ]);
  });

  it('reports a full disk with the path of the output', async () => {
    const staging = await open();
    vi.spyOn(await fileHandlePrototype(), 'write').mockRejectedValueOnce(systemError('ENOSPC'));
    const attempt = staging.write('a', (sink) => sink.write(Buffer.alloc(2 ** 20)));
    await expect(attempt).rejects.toMatchObject({
      code: 'system',
      message: expect.stringContaining(
        `cannot write ${path.join(out(), 'a')}, after 0 bytes: ENOSPC`,
      ),
      suggestion: 'free some space, or write to another disk',
    });
    expect(textsIn(STAGING)).not.toHaveProperty('a.unfinished');
    await staging.abandon();
  });

  it('reports a full disk when the output is moved to its place', async () => {
    const staging = await open();
    await writeAll(staging, MODEL);
    vi.spyOn(fs, 'writeSync').mockImplementationOnce(() => {
      throw systemError('ENOSPC');
    });
    await expect(staging.commit()).rejects.toMatchObject({ code: 'system' });
    expect(await staging.abandon()).toBe('kept');
    expect(fs.existsSync(out())).toBe(false);
  });
});

describe('a later run', () => {
  it('continues with the finished files', async () => {
    expect(await fail({ 'config.yaml': 'new config' })).toBe('kept');
    const staging = await open({ resume: true });
    expect(staging.isResumed).toBe(true);
    expect(fs.readFileSync(staging.finished('config.yaml'), 'utf8')).toBe('new config');
    expect(await writeAll(staging, MODEL)).toEqual(['model.safetensors']);
    await staging.commit();
    expect(textsIn('out')).toEqual(MODEL);
    expect(fs.readdirSync(inFolder())).toEqual(['out']);
  });

  it('starts over without --resume', async () => {
    await fail({ 'config.yaml': 'earlier', 'other.json': 'earlier' });
    const staging = await open();
    expect(staging.isResumed).toBe(false);
    expect(await writeAll(staging, MODEL)).toEqual(Object.keys(MODEL));
    await staging.commit();
    expect(textsIn('out')).toEqual(MODEL);
  });

  it('starts anew when there is nothing to resume', async () => {
    const staging = await open({ resume: true });
    expect(staging.isResumed).toBe(false);
    expect(() => staging.finished('config.yaml')).toThrow('not finished');
    await staging.abandon();
  });

  it.each<[string, Change]>([
    ['another identity', { identity: 'b' }],
    ['another kind of output', { kind: 'file' }],
  ])('neither resumes nor removes the files of %s', async (_, changed) => {
    await fail(MODEL);
    const before = textsIn(STAGING);
    await expect(open({ ...changed, resume: true })).rejects.toMatchObject({
      code: 'usage',
      suggestion: expect.stringContaining('without --resume it starts over'),
    });
    expect(textsIn(STAGING)).toEqual(before);
    const staging = await open(changed);
    expect(textsIn(STAGING, 'files')).toEqual({});
    await staging.abandon();
  });

  it('keeps the files to resume when it is refused', async () => {
    await fail(MODEL);
    putTexts(OLD, 'out');
    await expect(open()).rejects.toThrow('exists already');
    const staging = await open({ resume: true, force: true });
    expect(await writeAll(staging, MODEL)).toEqual([]);
    await staging.commit();
    expect(textsIn('out')).toEqual(MODEL);
  });

  it.each(['', '{', 'null', '[]', '{"version":2,"kind":"folder","identity":"a"}'])(
    'starts over when the journal is %j',
    async (journal) => {
      await fail(MODEL);
      putTexts({ 'journal.json': journal }, STAGING);
      const staging = await open({ resume: true });
      expect(staging.isResumed).toBe(false);
      await staging.abandon();
    },
  );

  it('does not move files that a journal names outside the output', async () => {
    putTexts({ 'precious/a': 'text', 'out/a': '' });
    const journal = {
      version: 1,
      kind: 'file',
      identity: 'a',
      complete: ['../../precious', 'out'],
    };
    putTexts({ 'journal.json': JSON.stringify(journal), 'files/out': 'x' }, STAGING);
    await open({ resume: true }).catch(() => undefined);
    expect(textsIn('precious')).toEqual({ a: 'text' });
  });

  it('keeps files that were moved away when the journal is lost', async () => {
    putTexts({ 'replaced/out/model.safetensors': 'old weights' }, STAGING);
    for (const force of [true, false]) {
      await expect(open({ force })).rejects.toThrow(
        'has files of an interrupted run, but no journal',
      );
    }
    expect(textsIn(STAGING)).toEqual({ 'replaced/out/model.safetensors': 'old weights' });
  });

  it('keeps files that were moved away when another output has taken their place', async () => {
    const complete = Object.keys(MODEL);
    putTexts({ ...OLD, 'model.safetensors': 'third' }, 'out');
    putTexts(OLD, STAGING, 'replaced/out');
    putTexts(MODEL, STAGING, 'files');
    const journal = { version: 1, kind: 'folder', identity: 'a', complete };
    putTexts({ 'journal.json': JSON.stringify(journal) }, STAGING);
    const before = textsIn();
    for (const resume of [true, false]) {
      await expect(open({ resume, force: true })).rejects.toThrow('now there is another');
    }
    expect(textsIn()).toEqual(before);
  });
});

describe('two runs', () => {
  const lock = (holder: unknown) =>
    putTexts({ lock: typeof holder === 'string' ? holder : JSON.stringify(holder) }, STAGING);
  const host = os.hostname();

  it('do not write the same output at the same time', async () => {
    const staging = await open();
    await expect(open({ resume: true, force: true })).rejects.toMatchObject({
      code: 'usage',
      message: `${out()} is being written by another run: process ${process.pid} on ${host}, started less than a minute ago`,
      suggestion: expect.stringContaining(inFolder(STAGING, 'lock')),
    });
    await writeAll(staging, MODEL);
    await staging.commit();
    expect(textsIn('out')).toEqual(MODEL);
  });

  it.each([
    ['is running', { pid: process.ppid, host }, `process ${process.ppid} on ${host}, started`],
    ['may run elsewhere', { pid: 1, host: 'elsewhere' }, 'process 1 on elsewhere, started'],
  ])('exclude each other when the lock is of one that %s', async (_, holder, message) => {
    lock(holder);
    await expect(open()).rejects.toThrow(message);
    await expect(open()).rejects.toMatchObject({
      suggestion: expect.stringContaining(`remove ${inFolder(STAGING, 'lock')}`),
    });
    expect(JSON.parse(textsIn(STAGING).lock ?? '')).toEqual(holder);
  });

  it.each([
    [30, 'less than a minute'],
    [60, '1 minute'],
    [59 * 60, '59 minutes'],
    [26 * 3600, '1 day'],
    [75 * 3600, '3 days'],
  ])('report the age of the lock: %d s', async (seconds, age) => {
    lock({ pid: 1, host: 'elsewhere' });
    const then = Date.now() / 1000 - seconds - 1;
    fs.utimesSync(inFolder(STAGING, 'lock'), then, then);
    await expect(open()).rejects.toThrow(`started ${age} ago`);
    await expect(open()).rejects.toMatchObject({
      suggestion: `check on elsewhere whether it still runs; if not, remove ${inFolder(STAGING, 'lock')}`,
    });
  });

  it.each([
    // Beyond the process ids of Linux.
    ['has ended', { pid: 2 ** 22 + 1, host }],
    ['had the same id, in a container', { pid: process.pid, host }],
    ['left nothing readable', '{"pid":'],
    ['left nonsense', { pid: 'x', host }],
    ['would be a group of processes', { pid: -1, host }],
  ])('ignore the lock of one that %s', async (_, holder) => {
    lock(holder);
    await build(MODEL);
    expect(fs.readdirSync(inFolder())).toEqual(['out']);
  });
});

afterEach(() => vi.restoreAllMocks());
