import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const hf = (name: string) => inPackage('fixtures/hf', name);
const inFolder = (...parts: string[]) => path.join(folder, ...parts);
const textOf = (...parts: string[]) => fs.readFileSync(path.join(...parts), 'utf8');

/** Folder with only a config.json. */
function alone(name: string, model: string): string {
  fs.mkdirSync(inFolder(name));
  fs.copyFileSync(path.join(hf(model), 'config.json'), inFolder(name, 'config.json'));
  return inFolder(name);
}

async function convert(from: string, to: string, ...flags: string[]) {
  const { code, stdout, stderr } = await runHere([
    'convert-checkpoint',
    from,
    to,
    ...flags,
    '--json',
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

const verified = async (checkpoint: string, config = path.join(checkpoint, 'config.json')) =>
  JSON.parse((await runHere(['verify', config, checkpoint, '--json'])).stdout);

/** Dtypes and values of all tensors. */
function contents(file: string) {
  const checkpoint = openCheckpoint(file);
  try {
    return new Map(
      [...checkpoint.tensors].map(([name, tensor]) => [
        name,
        { dtype: tensor.dtype, bytes: Buffer.from(readTensor(tensor)).toString('hex') },
      ]),
    );
  } finally {
    checkpoint.close();
  }
}

describe('a folder', () => {
  it('with weights is read as a checkpoint with its config.json', async () => {
    const { code, stdout, stderr } = await runHere(['profile', hf('mixtral-saved'), '--json']);
    expect(code).toBe(0);
    expect(stderr).toContain('mixtral-saved/config.json');
    const { family, checkpoint } = JSON.parse(stdout);
    expect(family).toBe('mixtral');
    expect(checkpoint).toMatchObject({ matches: true, config: { origin: 'beside' } });
  });

  it('with only a config.json is read as that config', async () => {
    const config = alone('only', 'llama');
    const { code, stdout } = await runHere(['profile', config, '--json']);
    expect(code).toBe(0);
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ family: 'llama', file: path.join(config, 'config.json') });
    expect(result.checkpoint).toBe(undefined);
    const checked = JSON.parse((await runHere(['validate', config, hf('gpt2'), '--json'])).stdout);
    expect(checked.files.map(({ family }: { family: string }) => family)).toEqual([
      'llama',
      'gpt2',
    ]);
  });

  it.each([
    [['verify', 'only', 'only']],
    [['quick-test', 'only', '--checkpoint', 'only']],
    [['convert-checkpoint', 'only', 'out', '--dtype', 'bf16']],
    [['inspect', 'only']],
  ])('without weights is refused if weights are required: %j', async (args) => {
    const { code, stderr } = await runHere(args, { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('only: holds no weights');
    expect(stderr).toContain('config.json only describes the model');
  });

  it('is read by quick-test as a config with its weights', async () => {
    const { code, stdout, stderr } = await runHere([
      ...['quick-test', inPackage('fixtures/hybrid/shared-lowrank-tied')],
      ...['--only', 'created', '--device', 'cpu', '--json'],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout).checkpoint).toMatch(/shared-lowrank-tied$/);
    const both = await runHere(['quick-test', hf('llama'), '--checkpoint', hf('llama')]);
    expect(both).toMatchObject({ code: 2, stdout: '' });
    expect(both.stderr).toContain('is a checkpoint, and so is --checkpoint');
  });
});

describe('convert-checkpoint', () => {
  it.each(['gpt2', 'bloom', 'mixtral', 'mixtral-saved', 'gpt-neox-saved', 'deepseek-v3-saved'])(
    'converts %s to a PyTorch file and back, and to other dtypes, with its config',
    async (name) => {
      const source = contents(hf(name));
      await convert(hf(name), inFolder(`${name}.pt`), '--container', 'pt');
      await convert(inFolder(`${name}.pt`), inFolder(name), '--container', 'safetensors');
      expect(fs.readdirSync(inFolder(name))).toEqual(['config.json', 'model.safetensors']);
      expect(contents(inFolder(name))).toEqual(source);
      await convert(
        inFolder(name),
        inFolder(`${name}-bf16`),
        '--dtype',
        'bf16',
        '--shard-size',
        '30kB',
      );
      await convert(inFolder(`${name}-bf16`), inFolder(`${name}-f32`), '--dtype', 'f32');
      const verification = await verified(inFolder(`${name}-f32`));
      expect(verification).toMatchObject({ matches: true, faults: [] });
      expect(
        (await verified(inFolder(`${name}-bf16`), path.join(hf(name), 'config.json'))).matches,
      ).toBe(true);
    },
  );

  it('changes only affected keys of a config.json', async () => {
    const before = textOf(hf('mixtral-saved'), 'config.json');
    const { configChanges } = await convert(
      hf('mixtral-saved'),
      inFolder('cast'),
      '--dtype',
      'bf16',
    );
    expect(configChanges).toEqual([{ path: 'dtype', from: 'float32', to: 'bfloat16' }]);
    expect(before).toContain('"dtype": "float32"');
    expect(textOf(inFolder('cast'), 'config.json')).toBe(
      before.replace('"dtype": "float32"', '"dtype": "bfloat16"'),
    );
    await convert(hf('mixtral-saved'), inFolder('sharded'), '--shard-size', '30kB');
    expect(textOf(inFolder('sharded'), 'config.json')).toBe(before);
    await convert(hf('llama'), inFolder('tied'), '--tie', 'embed');
    const expected = {
      ...JSON.parse(textOf(hf('llama'), 'config.json')),
      tie_word_embeddings: true,
    };
    expect(JSON.parse(textOf(inFolder('tied'), 'config.json'))).toEqual(expected);
    expect((await verified(inFolder('tied'))).matches).toBe(true);
  });

  it('keeps the name of the dtype key in a config.json', async () => {
    fs.cpSync(hf('llama'), inFolder('older'), { recursive: true });
    const { dtype: _, ...config } = JSON.parse(textOf(hf('llama'), 'config.json'));
    const older = JSON.stringify({ ...config, torch_dtype: 'float32' });
    fs.writeFileSync(inFolder('older', 'config.json'), older);
    const { configChanges } = await convert(
      inFolder('older'),
      inFolder('older-cast'),
      ...['--dtype', 'bf16', '--tie', 'embed'],
    );
    expect(configChanges).toEqual([
      { path: 'tie_word_embeddings', from: false, to: true },
      { path: 'torch_dtype', from: 'float32', to: 'bfloat16' },
    ]);
  });

  it('names a config.json after its file if the folder has another config', async () => {
    fs.mkdirSync(inFolder('several'));
    fs.writeFileSync(inFolder('several', 'config.yaml'), 'model: {}');
    await convert(hf('llama'), inFolder('several', 'small.safetensors'), '--dtype', 'bf16');
    expect(fs.readdirSync(inFolder('several'))).toEqual([
      'config.yaml',
      'small.config.json',
      'small.safetensors',
    ]);
    const { stdout } = await runHere([
      'profile',
      inFolder('several', 'small.safetensors'),
      '--json',
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ family: 'llama', checkpoint: { matches: true } });
  });
});
