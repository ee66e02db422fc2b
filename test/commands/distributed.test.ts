import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { folderOf } from '../checkpoint/temp-folder.js';
import { digests } from '../convert/conversion/convert.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { hashes } from '../scale/conversions/parts.js';

const FIXTURES = 'fixtures/distributed';
const CASES = fs
  .readdirSync(inPackage(FIXTURES), { withFileTypes: true })
  .filter((each) => each.isDirectory())
  .map(({ name }) => name);

/** Bytes of each tensor, as hexadecimal digits. */
function valuesIn(file: string): Map<string, string> {
  const checkpoint = openCheckpoint(file);
  try {
    return new Map(
      [...checkpoint.tensors]
        .map(([name, tensor]) => [name, Buffer.from(readTensor(tensor)).toString('hex')] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  } finally {
    checkpoint.close();
  }
}

describe('a checkpoint of several processes', () => {
  it.each(CASES)('is converted to one PyTorch file: %s', async (name) => {
    const out = path.join(folderOf({}), 'model.pt');
    const { code, stderr } = await runHere([
      ...['convert-checkpoint', `${FIXTURES}/${name}`, out, '--container', 'pt'],
      ...['--no-config', '--check'],
    ]);
    expect(code, stderr).toBe(0);
    expect(valuesIn(out)).toEqual(valuesIn(inPackage(FIXTURES, `${name}.safetensors`)));
  });

  it('is cast, with a list of the entries left out', async () => {
    const out = path.join(folderOf({}), 'model.safetensors');
    const { code, stdout } = await runHere([
      ...['convert-checkpoint', `${FIXTURES}/world2-nested`, out, '--dtype', 'bf16', '--json'],
    ]);
    expect(code).toBe(0);
    const { leftOut, input } = JSON.parse(stdout);
    expect(input.format).toBe('dcp');
    expect(leftOut.map(({ names }: { names: string[] }) => names)).toEqual([['optimizer']]);
  });
});

describe('a LoRA adapter', () => {
  it('is refused by verify --values', async () => {
    const words = ['verify', 'fixtures/hf/llama', 'fixtures/lora/llama-bf16', '--values'];
    const { code, stderr } = await runHere([...words, 'fixtures/hf/llama']);
    expect([code, stderr.replaceAll(/\s+/g, ' ')]).toEqual([
      2,
      expect.stringContaining('found the LoRA adapter fixtures/lora/llama-bf16'),
    ]);
  });

  it('is merged with the same changed tensors as in PEFT', async () => {
    const out = path.join(folderOf({}), 'model.safetensors');
    const args = ['convert-checkpoint', 'fixtures/hf/llama', out];
    const lora = 'fixtures/lora/llama-patterns';
    const { code, stdout, stderr } = await runHere([
      ...args,
      '--merge-lora',
      lora,
      '--check',
      '--json',
    ]);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout).adapter).toBe(lora);
    const [merged, before] = [valuesIn(out), valuesIn(inPackage('fixtures/hf/llama'))];
    const changed = [...merged.keys()].filter((name) => merged.get(name) !== before.get(name));
    expect(changed).toEqual([...valuesIn(inPackage(`${lora}.safetensors`)).keys()]);
  });

  it('of another model is refused, and verify exits with 1', async () => {
    const lora = 'fixtures/lora/llama-bf16';
    const verified = await runHere(['verify', 'fixtures/hf/gpt2', lora, '--json']);
    expect(verified.code).toBe(1);
    expect(JSON.parse(verified.stdout).faults.length).toBe(3);
    const profiled = await runHere(['profile', 'fixtures/hf/gpt2', '--adapter', lora]);
    expect(profiled.code).toBe(2);
    expect(profiled.stderr).toContain('does not fit the model');
  });

  it('has its parameters in inspect and profile, with the model that it names', async () => {
    const lora = 'fixtures/lora/qwen2-lora-bias';
    const inspected = JSON.parse((await runHere(['inspect', lora, '--json'])).stdout);
    const profiled = JSON.parse((await runHere(['profile', lora, '--json'])).stdout);
    expect(inspected.adapter).toEqual(profiled.adapter);
    // q: 4 × (32 + 32) + 32 biases, v: 4 × (32 + 16) + 16, in two layers.
    expect(profiled.adapter.parameters).toBe(2 * (4 * 64 + 32 + 4 * 48 + 16));
  });

  it('without its model is refused with the line to write', async () => {
    const folder = folderOf({});
    fs.cpSync(inPackage('fixtures/lora/llama-bf16'), folder, { recursive: true });
    const { code, stderr } = await runHere(['verify', folder]);
    expect(code).toBe(2);
    expect(stderr).toContain('write minimind verify ../../hf/llama');
  });

  it('is required by --merge-lora', async () => {
    const args = [
      'convert-checkpoint',
      'fixtures/hf/llama',
      'out',
      '--merge-lora',
      'fixtures/hf/gpt2',
    ];
    const { code, stderr } = await runHere(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not a LoRA adapter')]);
  });
});

/** Adapter of rank 2 in the format of PEFT, for linear layers of [rows, columns]. */
function adapterOf(layers: Readonly<Record<string, readonly [number, number]>>): string {
  const header: Record<string, object> = {};
  const pieces: Buffer[] = [];
  let end = 0;
  const add = (name: string, shape: readonly [number, number]) => {
    const length = shape[0] * shape[1];
    const values = Float32Array.from({ length }, (_, at) => Math.sin(at + end) / 2);
    header[`base_model.model.${name}.weight`] = {
      ...{ dtype: 'F32', shape, data_offsets: [end, end + 4 * length] },
    };
    pieces.push(Buffer.from(values.buffer));
    end += 4 * length;
  };
  for (const [name, [rows, columns]] of Object.entries(layers)) {
    add(`${name}.lora_A`, [2, columns]);
    add(`${name}.lora_B`, [rows, 2]);
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const target_modules = Object.keys(layers).map((name) => name.split('.').at(-1));
  const config = { peft_type: 'LORA', r: 2, lora_alpha: 4, target_modules };
  return folderOf({
    'adapter_config.json': JSON.stringify(config),
    'adapter_model.safetensors': Buffer.concat([length, text, ...pieces]),
  });
}

describe('a LoRA adapter on a checkpoint of several processes', () => {
  const llama = 'model.layers.0';
  const LLAMA = {
    [`${llama}.self_attn.q_proj`]: [24, 24],
    [`${llama}.self_attn.k_proj`]: [12, 24],
    [`${llama}.mlp.down_proj`]: [24, 44],
  } as const;

  it.each([
    ['world4-tp', LLAMA, []],
    ['world2-nested', LLAMA, []],
    ['world1', LLAMA, []],
    ['world3', LLAMA, ['--dtype', 'f32']],
    ['zero3-world3', { 'layers.0.linear': [5, 7] }, ['--no-config']],
    ['zero1-world3-bf16', { 'layers.0.linear': [5, 7] }, ['--no-config']],
  ] as const)('merges %s as it merges safetensors, also in parts', async (name, layers, more) => {
    const base = `${FIXTURES}/${name}`;
    const config = inPackage(base, 'config.json');
    const plain = folderOf({
      'model.safetensors': fs.readFileSync(inPackage(`${base}.safetensors`)),
      ...(fs.existsSync(config) && { 'config.json': fs.readFileSync(config) }),
    });
    const out = folderOf({});
    const at = (each: string) => path.join(out, each);
    const adapter = adapterOf(layers);
    const run = async (...args: string[]) => {
      const { code, stderr } = await runHere(['convert-checkpoint', ...args]);
      expect(code, stderr).toBe(0);
    };
    const flags = ['--merge-lora', adapter, '--shard-size', '3KB', ...more];
    await run(plain, at('plain'), '--check', ...flags);
    await run(base, at('single'), '--check', ...flags);
    await run(base, at('out'), ...flags, '--parts', '3', '--plan', at('plan'));
    for (const part of ['2', '3', '1']) await run('--plan', at('plan'), '--part', part);
    await run('--plan', at('plan'), '--finish', '--check');
    expect(hashes(at('out'))).toEqual(hashes(at('single')));
    // digests() lists a shared tensor under all its names.
    const [merged, expected] = [digests(at('single')), digests(at('plain'))];
    expect(merged).toEqual(expected);
    // The output differs from the base.
    const before = digests(plain);
    const changed = Object.entries(merged).filter(([each, value]) => value !== before[each]);
    if (more[0] !== '--dtype') {
      expect(changed.map(([each]) => each)).toEqual(
        Object.keys(layers)
          .map((each) => `${each}.weight`)
          .sort(),
      );
    }
  });
});
