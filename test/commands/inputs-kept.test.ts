/** A command never replaces its inputs by its output, even if the two are one file with several names. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { folderOf } from '../checkpoint/temp-folder.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const TORCH = inPackage('fixtures/checkpoints/valid/zip_proto5.pt');
const HYBRID = inPackage('fixtures/hybrid/shared-lowrank-tied');
const PROJECTOR = inPackage('fixtures/kv-projector/two-teachers');

/** Folder with the inputs of all commands below. */
const inputs = () =>
  folderOf({
    'a/in.pt': fs.readFileSync(TORCH),
    'a/config.yaml': fs.readFileSync(path.join(HYBRID, 'config.yaml')),
    'a/model.safetensors': fs.readFileSync(path.join(HYBRID, 'model.safetensors')),
    'a/saved.pt': fs.readFileSync(path.join(PROJECTOR, 'saved.pt')),
    'a/projector.safetensors': fs.readFileSync(path.join(PROJECTOR, 'model.safetensors')),
    'a/kv.safetensors': fs.readFileSync(path.join(PROJECTOR, 'expected.safetensors')),
    'a/ids.json': '[[1, 2, 3]]',
    'a/text.txt': 'some text',
    'a/tokenizer.json': fs.readFileSync(inPackage('fixtures/tokenizers/bpe-512.json')),
  });

/** Commands, each with the input that is the same file as OUT. */
const COMMANDS: readonly (readonly [string, string, readonly string[]])[] = [
  ['inspect', 'a/in.pt', ['inspect', 'a/in.pt', '-o', 'OUT']],
  ['verify', 'a/model.safetensors', ['verify', 'a/model.safetensors', '-o', 'OUT']],
  ['verify: config', 'a/config.yaml', ['verify', 'a/model.safetensors', '-o', 'OUT']],
  ['profile', 'a/config.yaml', ['profile', 'a/config.yaml', '-o', 'OUT']],
  ['validate', 'a/config.yaml', ['validate', 'a/config.yaml', '-o', 'OUT']],
  [
    'compare: text',
    'a/text.txt',
    [
      ...['compare', 'a/config.yaml', '--tokenizer', 'a/tokenizer.json', '--text', 'a/text.txt'],
      ...['-o', 'OUT'],
    ],
  ],
  [
    'compare: tokenizer',
    'a/tokenizer.json',
    [
      ...['compare', 'a/config.yaml', '--tokenizer', 'a/tokenizer.json', '--text', 'a/text.txt'],
      ...['-o', 'OUT'],
    ],
  ],
  ['convert-checkpoint', 'a/in.pt', ['convert-checkpoint', 'a/in.pt', 'OUT', '--to', 'shared']],
  [
    'convert-checkpoint: report',
    'a/in.pt',
    [...['convert-checkpoint', 'a/in.pt', 'new.pt', '--to', 'shared', '--json', '-o', 'OUT']],
  ],
  ['export', 'a/model.safetensors', ['export', 'a/model.safetensors', '--save', 'OUT']],
  ['export: config', 'a/config.yaml', ['export', 'a/config.yaml', '--random', '--save', 'OUT']],
  ['kv-projector convert', 'a/saved.pt', ['kv-projector', 'convert', 'a/saved.pt', 'OUT']],
  [
    'kv-projector project',
    'a/kv.safetensors',
    [
      ...[
        'kv-projector',
        'project',
        'a/projector.safetensors',
        'a/kv.safetensors',
        '--save',
        'OUT',
      ],
    ],
  ],
  [
    'kv-projector project: projector',
    'a/projector.safetensors',
    [
      ...[
        'kv-projector',
        'project',
        'a/projector.safetensors',
        'a/kv.safetensors',
        '--save',
        'OUT',
      ],
    ],
  ],
  [
    'quick-test: ids',
    'a/ids.json',
    [...['quick-test', 'a/config.yaml', '--trace', '--ids', 'a/ids.json', '-o', 'OUT']],
  ],
  ['quick-test: --save', 'a/config.yaml', ['quick-test', 'a/config.yaml', '--save', 'OUT']],
];

const contents = (folder: string) =>
  Object.fromEntries(
    fs
      .readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .map(
        (file) => [path.relative(folder, file), fs.readFileSync(file).toString('base64')] as const,
      )
      .sort(),
  );

/** Runs a command with --force, and expects a refusal without changed files. */
async function expectRefused(folder: string, args: readonly string[], out: string): Promise<void> {
  const before = contents(folder);
  const words = args.map((word) => (word === 'OUT' ? out : word));
  const { code, stderr } = await runHere([...words, '--force'], { cwd: folder });
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/ (is read|is an input|would replace|belongs to the same model)/),
  });
  expect(contents(folder)).toEqual(before);
}

/** Other path with the same extension. */
const renamed = (file: string) => `b/other${path.extname(file)}`;

describe('an output that is an input', () => {
  it.each(COMMANDS)('is refused by its path: %s', async (_, file, args) => {
    await expectRefused(inputs(), args, file);
  });

  it.each(COMMANDS)('is refused by a hard link: %s', async (_, file, args) => {
    const folder = inputs();
    fs.mkdirSync(path.join(folder, 'b'));
    fs.linkSync(path.join(folder, file), path.join(folder, renamed(file)));
    await expectRefused(folder, args, renamed(file));
  });

  it.each(COMMANDS)('is refused by a symbolic link: %s', async (_, file, args) => {
    const folder = inputs();
    fs.mkdirSync(path.join(folder, 'b'));
    fs.symlinkSync(path.join('..', file), path.join(folder, renamed(file)));
    await expectRefused(folder, args, renamed(file));
  });
});

describe('a folder mounted twice', () => {
  const folder = inputs();
  const [from, to] = [path.join(folder, 'a'), path.join(folder, 'mounted')];
  fs.mkdirSync(to);
  const isMounted = spawnSync('/bin/mount', ['--bind', from, to]).status === 0;
  afterAll(() => {
    if (isMounted) spawnSync('/bin/umount', [to]);
  });

  // Only the superuser of Linux mounts.
  describe.runIf(isMounted)('counts as one folder', () => {
    it.each(COMMANDS)('for %s', async (_, file, args) => {
      await expectRefused(folder, args, file.replace('a/', 'mounted/'));
    });

    it.each(['mounted/out', 'mounted/out.pt', 'mounted'])('for the output %s', async (out) => {
      const convert = ['convert-checkpoint', 'a', 'OUT', '--to', 'shared'];
      fs.mkdirSync(path.join(folder, 'x'), { recursive: true });
      for (const name of fs.readdirSync(from)) {
        if (!['model.safetensors', 'config.yaml'].includes(name)) {
          fs.renameSync(path.join(from, name), path.join(folder, 'x', name));
        }
      }
      await expectRefused(folder, convert, out);
    });
  });
});

describe('a folder OUT', () => {
  it('is refused if it has a link to the input', async () => {
    const folder = inputs();
    fs.mkdirSync(path.join(folder, 'out'));
    const [input, other] = ['a/model.safetensors', 'out/model.safetensors'];
    fs.linkSync(path.join(folder, input), path.join(folder, other));
    await expectRefused(folder, ['convert-checkpoint', input, 'OUT', '--dtype', 'f16'], 'out');
  });

  it('is refused if its unfinished files are the input', async () => {
    const folder = folderOf({
      '.out.minimind/files/model.safetensors': fs.readFileSync(
        path.join(HYBRID, 'model.safetensors'),
      ),
    });
    const input = '.out.minimind/files/model.safetensors';
    await expectRefused(folder, ['convert-checkpoint', input, 'OUT', '--dtype', 'f16'], 'out');
  });

  it('is refused if it contains the input', async () => {
    const folder = inputs();
    await expectRefused(folder, ['convert-checkpoint', 'a/in.pt', 'OUT', '--to', 'shared'], 'a');
  });
});

describe('standard input', () => {
  it('is not replaced if it is a file', () => {
    const folder = inputs();
    const file = path.join(folder, 'a/config.yaml');
    const before = contents(folder);
    const stdin = fs.openSync(file, 'r');
    const { status, stderr } = spawnSync(
      process.execPath,
      [inPackage('bin/run.js'), 'profile', '-', '-o', 'a/config.yaml', '--force', '--json'],
      { cwd: folder, stdio: [stdin, 'pipe', 'pipe'], encoding: 'utf8' },
    );
    fs.closeSync(stdin);
    expect({ status, stderr }).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(' is read, and would be replaced'),
    });
    expect(contents(folder)).toEqual(before);
  });
});

describe('a report over a file of the model', () => {
  const MODEL = ['inspect', 'a/model.safetensors', '-o', 'OUT', '--json', '--force'];

  it.each([
    'a/tokenizer.json',
    'a/config.yaml',
    'a/model-00002-of-00002.safetensors',
    'a/model.safetensors.index.json',
    'a/in.pt',
  ])('is refused although the command has not read it: %s', async (out) => {
    const folder = inputs();
    fs.writeFileSync(path.join(folder, 'a/model-00002-of-00002.safetensors'), 'weights');
    fs.writeFileSync(path.join(folder, 'a/model.safetensors.index.json'), '{}');
    const before = contents(folder);
    const args = MODEL.map((word) => (word === 'OUT' ? out : word));
    const { code, stderr } = await runHere(args, { cwd: folder });
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/ belongs to the same model as | is read/),
    });
    expect(contents(folder)).toEqual(before);
  });

  it.each(['a/report.json', 'b/config.json', 'a/new/config.json'])(
    'is written if it replaces no file of the model: %s',
    async (out) => {
      const folder = inputs();
      for (const each of ['a/new', 'b']) fs.mkdirSync(path.join(folder, each));
      fs.writeFileSync(path.join(folder, out), 'an old report');
      const args = MODEL.map((word) => (word === 'OUT' ? out : word));
      const { code, stderr } = await runHere(args, { cwd: folder });
      expect({ code, stderr }).toMatchObject({ code: 0 });
    },
  );
});

describe('a safe output', () => {
  it.each([
    ['an answer next to the input', ['inspect', 'a/in.pt', '-o', 'a/report.json', '--json']],
    ['an answer in the input folder', ['inspect', 'a', '-o', 'a/report.txt']],
    ['a file next to the input', ['convert-checkpoint', 'a/in.pt', 'a/new.pt', '--to', 'shared']],
    ['a folder next to the input', ['convert-checkpoint', 'a/in.pt', 'a/new', '--to', 'shared']],
    ['a folder next to the input folder', ['convert-checkpoint', 'a/in.pt', 'b', '--to', 'shared']],
    ['a graph in the folder of the model', ['export', 'a', '--save', 'a/model.onnx']],
  ])('is written: %s', async (_, args) => {
    const folder = inputs();
    const keeps = args.includes('a') ? ['model.safetensors', 'config.yaml'] : ['in.pt'];
    for (const name of fs.readdirSync(path.join(folder, 'a'))) {
      if (!keeps.includes(name)) fs.rmSync(path.join(folder, 'a', name));
    }
    // The second run replaces the first output with --force.
    for (const more of [[], ['--force']]) {
      const { code, stderr } = await runHere([...args, ...more], { cwd: folder });
      expect({ code, stderr }).toMatchObject({ code: 0 });
    }
  });
});
