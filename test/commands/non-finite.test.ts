import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { indexAt, nonFiniteIn } from '../../src/checkpoint/non-finite.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { fileIn, folderOf } from '../checkpoint/temp-folder.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const LLAMA = 'fixtures/hf/llama';

/** The model of the fixture, with other values at some places of its tensors. */
function brokenModel(changes: readonly (readonly [tensor: string, at: number, value: number])[]) {
  const file = fs.readFileSync(inPackage(LLAMA, 'model.safetensors'));
  const start = 8 + Number(file.readBigUInt64LE());
  const entries = JSON.parse(file.toString('utf8', 8, start));
  for (const [tensor, at, value] of changes) {
    file.writeFloatLE(value, start + entries[tensor].data_offsets[0] + 4 * at);
  }
  return folderOf({
    'config.json': fs.readFileSync(inPackage(LLAMA, 'config.json')),
    'model.safetensors': file,
  });
}

/** A NaN in row 5, column 7 of [88, 32], and an infinity in row 2 of [97, 32]. */
const NAN = [
  ['lm_head.weight', 2 * 32 + 1, Number.NEGATIVE_INFINITY],
  ['model.layers.1.mlp.up_proj.weight', 5 * 32 + 7, Number.NaN],
] as const;

describe('verify', () => {
  it('names the first tensor of the model with NaN, and all others', async () => {
    const { code, stdout } = await runHere(['verify', brokenModel(NAN)]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^broken weights: 2 tensors of 21 with NaN or infinities, first model\.layers\.1\.mlp\.up_proj\.weight: 1 NaN at \[5, 7\]\n/,
    );
    expect(stdout).toMatch(/^lm_head\.weight +f32 +\[97, 32\] +1 infinite +\[2, 1\]$/m);
  });

  it('says what it searched, and fails neither for finite weights nor for large ones', async () => {
    const whole = await runHere(['verify', LLAMA]);
    expect(whole.code).toBe(0);
    expect(whole.stdout).toMatch(/^ +values +no NaN or infinity in 21 tensors, \d+\.\d kB$/m);
    // Halves to infinity in float16: 65,504 is its largest number, and 65,520 the first that rounds up.
    const large = brokenModel([
      ['lm_head.weight', 0, 65_519],
      ['model.norm.weight', 3, -65_520],
    ]);
    const { code, stdout } = await runHere(['verify', large]);
    expect(code).toBe(0);
    expect(stdout).toContain('1 value of model.norm.weight. float16 makes them infinite.');
  });

  it('does not search what is too large, and says so', async () => {
    const rows = 2 ** 22 + 1;
    const large = Object.fromEntries(
      ['lm_head.weight', 'model.embed_tokens.weight'].map((name) => [name, rows * 32 * 4]),
    );
    const file = fs.readFileSync(inPackage(LLAMA, 'model.safetensors'));
    const start = 8 + Number(file.readBigUInt64LE());
    const entries = JSON.parse(file.toString('utf8', 8, start));
    // Both tables come first in the file; larger ones of zeros come last.
    const [first] = entries['model.layers.0.input_layernorm.weight'].data_offsets;
    for (const [name, entry] of Object.entries<{ data_offsets?: number[] }>(entries)) {
      if (large[name] === undefined) {
        Object.assign(entry, { data_offsets: entry.data_offsets?.map((at) => at - first) });
      }
    }
    let end = file.length - start - first;
    for (const [name, bytes] of Object.entries(large)) {
      entries[name] = { dtype: 'F32', shape: [rows, 32], data_offsets: [end, end + bytes] };
      end += bytes;
    }
    delete entries.__metadata__;
    const header = Buffer.from(JSON.stringify(entries));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    const config = JSON.parse(fs.readFileSync(inPackage(LLAMA, 'config.json'), 'utf8'));
    const folder = folderOf({
      'config.json': JSON.stringify({ ...config, vocab_size: rows }),
      'model.safetensors': Buffer.concat([length, header, file.subarray(start + first)]),
    });
    // A file with a hole: no byte of the tables is stored.
    fs.truncateSync(path.join(folder, 'model.safetensors'), 8 + header.length + end);
    const { code, stdout } = await runHere(['verify', folder]);
    expect(stdout).toContain('not searched for NaN, 1.1 GB: --scan does');
    expect(code).toBe(0);
  });
});

describe('a search by bits', () => {
  const typed = (dtype: string, data: Buffer) => {
    const header = Buffer.from(
      JSON.stringify({ x: { dtype, shape: [data.length / 2], data_offsets: [0, data.length] } }),
    );
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    return fileIn('x.safetensors', Buffer.concat([length, header, data]));
  };

  it.each([
    // 1, −∞, NaN, 65,504, −0
    [
      'F16',
      [0x3c00, 0xfc00, 0x7e01, 0x7bff, 0x8000],
      { nan: 1, infinite: 1, first: 1, beyondFloat16: 0 },
    ],
    // 1, 65,536, 65,280, +∞, NaN
    [
      'BF16',
      [0x3f80, 0xc780, 0x477f, 0x7f80, 0xffff],
      { nan: 1, infinite: 1, first: 3, beyondFloat16: 1 },
    ],
  ])('finds each kind in %s', async (dtype, codes, expected) => {
    const data = Buffer.from(Uint16Array.from(codes).buffer);
    const checkpoint = openCheckpoint(typed(dtype, data));
    try {
      const tensor = checkpoint.tensors.get('x');
      if (!tensor) throw new Error('no tensor');
      let bytes = 0;
      expect(await nonFiniteIn(tensor, (more) => (bytes += more))).toEqual(expected);
      expect(bytes).toBe(data.length);
    } finally {
      checkpoint.close();
    }
  });

  it('has an index for each axis', () => {
    expect(indexAt(5 * 64 + 7, [128, 64])).toEqual([5, 7]);
    expect(indexAt(23, [2, 3, 4])).toEqual([1, 2, 3]);
    expect(indexAt(0, [])).toEqual([]);
  });
});

describe('runs of a model with NaN', () => {
  it('quick-test names the weight on its first screen', async () => {
    const { code, stdout } = await runHere(['quick-test', brokenModel(NAN), '--only', 'forward']);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^ +cause +the weight model\.layers\.1\.mlp\.up_proj\.weight has 1 NaN among 2,816 values \[88, 32\], the\s+first at \[5, 7\]/m,
    );
  });

  it('quick-test names the layer in which finite weights overflow', async () => {
    const large = Array.from(
      { length: 32 },
      (_, at) => ['model.layers.1.self_attn.v_proj.weight', at, 3e38] as const,
    );
    const { stdout } = await runHere(['quick-test', brokenModel(large), '--only', 'forward']);
    expect(stdout).toMatch(/cause +first .*at the latest in model\.layers\.1\.self_attn/);
  });

  it.each([
    ['generate', ['--ids', '1,2,3', '--max-tokens', '2']],
    ['evaluate', ['--ids', '1,2,3']],
  ])('%s refuses with the weight', async (command, flags) => {
    const { code, stderr } = await runHere([command, brokenModel(NAN), ...flags]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      'the weight model.layers.1.mlp.up_proj.weight has 1 NaN, the first at [5, 7]',
    );
  });
});
