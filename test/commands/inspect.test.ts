import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import stringWidth from 'string-width';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changedCheckpoint, type Zeros } from '../checkpoint/changed-checkpoint.js';
import { fileIn, safetensors } from '../checkpoint/temp-folder.js';
import { inPackage, readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';

const CHECKPOINTS = 'fixtures/checkpoints';
const TRAINING = `${CHECKPOINTS}/valid/nested_train_proto4.pt`;
const ODD_NAMES = `${CHECKPOINTS}/valid/zip_odd_names.pt`;
const NOT_FINITE = `${CHECKPOINTS}/valid/st_nan_inf.safetensors`;
const AMBIGUOUS = `${CHECKPOINTS}/refuse/ambiguous_two.pt`;

const inspect = (...args: string[]) => runHere(['inspect', ...args]);
const json = async (...args: string[]) => JSON.parse((await inspect(...args, '--json')).stdout);

interface Expected {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly sha256: string;
}

interface Manifest {
  readonly entries: readonly {
    readonly path: string;
    readonly tensors?: Readonly<Record<string, Expected>>;
  }[];
}

/** Tensors of a file, as read by PyTorch. */
function expectedOf(file: string) {
  const { entries } = readJson<Manifest>(CHECKPOINTS, 'manifest.json');
  return entries.find((entry) => `${CHECKPOINTS}/${entry.path}` === file)?.tensors ?? {};
}

describe('inspect', () => {
  it('shows a training checkpoint by layer, with its other content', async () => {
    const { code, stdout, stderr } = await inspect(TRAINING);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^PyTorch \(zip\) · 20\.8 kB · 4 tensors · 416 values · f32 · per-layer SRTE\n/,
    );
    expect(stdout).toMatch(/^ {2}state dict +model$/m);
    expect(stdout).toMatch(/^layers\.0–1 +2 +256 +1\.0 kB /m);
    const long = (await inspect(TRAINING, '--details')).stdout;
    expect(long).toMatch(/^layers\.0 … layers\.1 +2 +1 +128 +512 B +F32$/m);
    expect(long).toMatch(/^optimizer +dict +21 tensors, 3\.6 kB$/m);
    expect(long).toMatch(/^step +numpy\.core\.multiarray\.scalar +1234$/m);
  });

  it.each([TRAINING, ODD_NAMES, NOT_FINITE])(
    'reads names, shapes and values of %s',
    async (file) => {
      const { tensors } = await json(file, '--hash');
      const actual = Object.entries(tensors as Record<string, Expected>).map(
        ([name, { dtype, shape, sha256 }]) => [name, { dtype, shape, sha256 }] as const,
      );
      const expected = Object.entries(expectedOf(file));
      expect(expected.length).toBeGreaterThan(0);
      expect(new Map(actual)).toEqual(new Map(expected));
    },
  );

  it('reads no values without a flag', async () => {
    const { tensors } = await json(TRAINING);
    expect(Object.keys(tensors['embed.weight'])).toEqual([
      'dtype',
      'shape',
      'elements',
      'bytes',
      'storage',
      'offset',
    ]);
  });

  it('counts values that are not finite', async () => {
    const { tensors } = await json(NOT_FINITE, '--stats');
    expect(tensors['layers.0.srte.freqs'].stats).toMatchObject({ nan: 1, positiveInfinity: 0 });
    expect(tensors['layers.1.srte.freqs'].stats).toMatchObject({ nan: 0, positiveInfinity: 1 });
    expect(tensors['embed.weight'].stats).toMatchObject({ nan: 0, max: expect.any(Number) });
  });

  it('shows the requested tensors', async () => {
    const { stdout } = await inspect(TRAINING, '--filter', '*.{0,1}.*');
    expect(stdout).toContain('Tensors that match *.{0,1}.*: 2 of 4\n');
    expect(Object.keys((await json(TRAINING, '--filter', 'h*')).tensors)).toEqual(['head.weight']);
    const [, ...rows] = (await inspect(TRAINING, '--tensors', '--format', 'csv')).stdout
      .trim()
      .split('\n');
    expect(rows).toHaveLength(4);
  });

  it('refuses a filter without a match', async () => {
    expect(await inspect(TRAINING, '--filter', 'embed')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'error: --filter: no tensor has a name like "embed"\n' +
        `  → did you mean *embed*? write minimind inspect ${TRAINING} --filter '*embed*'\n`,
    });
  });

  it('aligns the columns of names with wide characters', async () => {
    const lines = (await inspect(ODD_NAMES)).stdout.split('\n');
    const ends = ['head ', 'ünï/코드 '].map((name) => {
      const line = lines.find((each) => each.startsWith(name)) ?? '';
      return stringWidth(/^.+? B /.exec(line)?.[0] ?? '');
    });
    expect(ends[0]).toBeGreaterThan(0);
    expect(ends[1]).toBe(ends[0]);
  });

  it('compares the SRTE tables', async () => {
    const { srte } = await json(TRAINING, '--srte', '--ranks', '2,4');
    expect(srte).toMatchObject({ sharing: 'per-layer', positions: 16, hidden: 8 });
    expect(srte.options.map(({ rank }: { rank: number | null }) => rank)).toEqual([null, 2, 4]);
    expect((await inspect(TRAINING, '--srte')).stdout).toContain(
      '\nSRTE\n2 tables, one for each layer',
    );
    expect((await inspect('--ranks', '2', TRAINING)).stderr).toContain('--srte');
  });

  it('has a row for the count of its first line, where tensors are shared', async () => {
    const { stdout } = await inspect('fixtures/distributed/zero3-world1');
    expect(stdout).toMatch(/^DeepSpeed ZeRO · 9\.7 kB · 10 tensors · 167 values · /);
    expect(stdout).toMatch(/^total +11 +233 +876 B +100\.0%\ndistinct +10 +167 +612 B +69\.9%$/m);
    expect((await inspect('fixtures/hf/llama')).stdout).not.toContain('distinct');
  });

  it('lists a tensor without a name for an empty filter', async () => {
    const nameless = fileIn('model.safetensors', safetensors({ '': [1], other: [1, 2] }));
    const { stdout } = await inspect(nameless, '--filter', '');
    expect(stdout).toMatch(/^"" +U8 +\[1\] +1 B$/m);
    expect((await inspect('fixtures/hf/llama', '--filter', '')).code).toBe(2);
  });

  it('requires --state-dict for several state dicts', async () => {
    const { code, stdout, stderr } = await inspect(AMBIGUOUS);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const [, key = ''] = /--state-dict (\S+)/.exec(stderr) ?? [];
    expect((await json(AMBIGUOUS, '--state-dict', key)).stateDict).toEqual(key.split('.'));
  });
});

describe('inspect of an invalid checkpoint', () => {
  let folder = '';
  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  });
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  it.each(['other/text.pt', 'other/html.pt', 'pickle/builtins_eval.pt', 'truncated/zip_01315.pt'])(
    'refuses %s in a line or two',
    async (name) => {
      const { code, stdout, stderr } = await inspect(`${CHECKPOINTS}/hostile/${name}`);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^error: /);
      expect(stderr).not.toMatch(/^\s+at /m);
    },
  );

  it('refuses a missing file and an empty folder', async () => {
    expect(await inspect(path.join(folder, 'nothing.pt'))).toMatchObject({ code: 2, stdout: '' });
    expect(await inspect(folder)).toMatchObject({ code: 2, stdout: '' });
  });

  it('has the broken rule in JSON', async () => {
    const { stdout } = await inspect(`${CHECKPOINTS}/hostile/pickle/builtins_eval.pt`, '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'minimind/error@1',
      code: 'refused-file',
      problems: [{ rule: expect.stringMatching(/^[a-z-]+$/) }],
    });
  });

  it('counts the parameters of packed weights, not their words', async () => {
    const packed = path.join(folder, 'packed');
    const args = ['convert-checkpoint', 'fixtures/hf/llama', packed, '--quantize', 'int4'];
    expect((await runHere([...args, '--max-memory', '4GB'])).code).toBe(0);
    const { parameters } = await json('fixtures/hf/llama');
    expect((await json(packed)).parameters).toBe(parameters);
    expect((await inspect(packed)).stdout).toContain('29.4K parameters');
  });

  const K_PROJ = 'model.layers.0.self_attn.k_proj';

  it.each([
    ['positions and a mask', { 'model.ids': ['I64', [1, 4], 32], mask: ['BOOL', [2, 2], 4] }],
    ['old buffers of floats', { 'model.layers.0.self_attn.rotary_emb.inv_freq': ['F32', [4], 16] }],
    [
      'scales of weights in float8',
      {
        [`${K_PROJ}.weight`]: ['F8_E4M3', [16, 32], 512],
        [`${K_PROJ}.weight_scale_inv`]: ['F32', [1, 1], 4],
      },
    ],
    [
      'scales of weights in int8',
      { [`${K_PROJ}.weight`]: ['I8', [16, 32], 512], [`${K_PROJ}.SCB`]: ['F32', [16], 64] },
    ],
  ] as [string, Zeros][])('does not count %s as parameters', async (_, changes) => {
    const { parameters } = await json('fixtures/hf/llama');
    expect((await json(changedCheckpoint('fixtures/hf/llama', changes))).parameters).toBe(
      parameters,
    );
  });

  it('counts no parameters when two of them share a byte', async () => {
    const model = changedCheckpoint('fixtures/hf/llama', {
      [`${K_PROJ}.weight`]: ['U8', [256, 1], 256],
    });
    expect(await json(model)).not.toHaveProperty('parameters');
  });

  it('counts no parameters in words of an unknown packing', async () => {
    const model = path.join(folder, 'gptq');
    fs.mkdirSync(model);
    fs.copyFileSync(inPackage('fixtures/hf/llama/config.json'), path.join(model, 'config.json'));
    const name = 'model.layers.0.mlp.down_proj.qweight';
    const header = JSON.stringify({
      [name]: { dtype: 'I32', shape: [11, 32], data_offsets: [0, 1408] },
    });
    const file = Buffer.alloc(8 + header.length + 1408);
    file.writeBigUInt64LE(BigInt(header.length));
    file.write(header, 8);
    fs.writeFileSync(path.join(model, 'model.safetensors'), file);
    expect(await json(model)).not.toHaveProperty('parameters');
    expect((await inspect(model)).stdout).toContain('1 tensor · 352 values · i32 · llama model');
  });

  it('names the E8M0 scales of MXFP4, which are stored as bytes', async () => {
    // Written by transformers' layout of gpt-oss: blocks [experts, rows, groups, 16], scales [experts, rows, groups].
    const file = 'fixtures/mxfp4/model.safetensors';
    const { stdout } = await inspect(inPackage(file), '--tensors');
    expect(stdout).toMatch(
      /^ {2}MXFP4 +1 weight: .*\(E2M1\) in w_blocks, E8M0 scales .* w_scales/m,
    );
    expect(stdout).toMatch(/^w_scales +U8 \(E8M0\) +\[3, 6, 2\]/m);
    expect(stdout).toMatch(/^w_blocks +U8 +\[3, 6, 2, 16\]/m);
    expect((await json(inPackage(file))).tensors.w_scales.dtype).toBe('U8');
  });

  it('takes no other bytes for scales of MXFP4', async () => {
    const model = path.join(folder, 'no-mxfp4.safetensors');
    const header = JSON.stringify({
      a_blocks: { dtype: 'U8', shape: [2, 8], data_offsets: [0, 16] },
      a_scales: { dtype: 'U8', shape: [2], data_offsets: [16, 18] },
      b_scales: { dtype: 'U8', shape: [2], data_offsets: [18, 20] },
    });
    const file = Buffer.alloc(8 + header.length + 20);
    file.writeBigUInt64LE(BigInt(header.length));
    file.write(header, 8);
    fs.writeFileSync(model, file);
    const { code, stdout } = await inspect(model, '--tensors');
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/MXFP4|E8M0/);
  });

  it('warns of one shard without the others', async () => {
    const shard = path.join(folder, 'model-00001-of-00002.safetensors');
    fs.copyFileSync(inPackage(NOT_FINITE), shard);
    const { code, stderr } = await inspect(shard);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: .*shard 1 of 2/);
    expect((await inspect(shard, '--quiet')).stderr).toBe('');
    expect((await json(shard, '--quiet')).warnings).toHaveLength(1);
  });
});
