/** Weights in the layout of compressed-tensors, compared with its code (fixtures/quantized/make.py). */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { readQuantization } from '../../../src/model/quantization/quantization-config.js';
import { inPackage } from '../../fixtures.js';
import { convertTo, digests, numbersOf } from './convert.js';
import { type Made, made, safetensorsFile } from './files.js';

const LLAMA = inPackage('fixtures/hf/llama');

const CASES = [
  { label: 'int4-f32', flags: { quantize: 4, group: 32 } },
  { label: 'int8-bf16', flags: { quantize: 8, group: 32, dtype: 'BF16' } },
] as const;

const configIn = (folder: string) =>
  JSON.parse(fs.readFileSync(path.join(folder, 'config.json'), 'utf8'));

describe('the layout pack-quantized', () => {
  it.each(CASES)(
    'is written with the bytes of compressed-tensors: $label',
    async ({ label, flags }) => {
      const { file } = await convertTo(label, LLAMA, flags);
      const output = openCheckpoint(file, { keepPacked: true });
      const expected = openCheckpoint(
        inPackage('fixtures/quantized', `${label}.packed.safetensors`),
        {
          keepPacked: true,
        },
      );
      for (const [name, target] of expected.tensors) {
        const actual = output.tensors.get(name);
        expect([actual?.dtype, actual?.shape], name).toEqual([target.dtype, target.shape]);
        if (actual) expect(readTensor(actual), name).toEqual(readTensor(target));
      }
      expect(expected.tensors.size).toBeGreaterThan(20);
      output.close();
      expected.close();
    },
  );

  it.each(CASES)(
    'is read with the values of compressed-tensors, bit for bit: $label',
    ({ label }) => {
      const packed = openCheckpoint(inPackage('fixtures/quantized', `${label}.packed.safetensors`));
      const expected = openCheckpoint(
        inPackage('fixtures/quantized', `${label}.floats.safetensors`),
      );
      expect([...packed.tensors.keys()].sort()).toEqual([...expected.tensors.keys()].sort());
      for (const [name, target] of expected.tensors) {
        const tensor = packed.tensors.get(name);
        expect([tensor?.dtype, tensor?.shape], name).toEqual([target.dtype, target.shape]);
        if (!tensor) continue;
        const whole = readTensor(tensor);
        expect(whole, name).toEqual(readTensor(target));
        // Bytes from any position, also inside a value.
        expect(new Uint8Array(tensor.storage.file.read(3, 11))).toEqual(whole.slice(3, 14));
      }
      packed.close();
      expected.close();
    },
  );

  it('has a config that lists the modules that are not packed', async () => {
    const { file, quantization } = await convertTo('named', LLAMA, { quantize: 4, group: 32 });
    const { quantization_config: settings, ...rest } = configIn(file);
    expect(rest).toEqual(configIn(LLAMA));
    expect(settings).toMatchObject({
      quant_method: 'compressed-tensors',
      format: 'pack-quantized',
    });
    expect(settings.ignore).toEqual([
      'model.layers.0.mlp.down_proj',
      'model.layers.1.mlp.down_proj',
    ]);
    expect(quantization?.ignored).toEqual(settings.ignore);
    const { quantization: read, doubts } = readQuantization(configIn(file));
    expect(doubts).toEqual([]);
    expect(read?.label).toBe('compressed-tensors pack-quantized, 4 bits, groups of 32');
  });

  it('keeps a tied head and an untied embedding as floats', async () => {
    const { file, quantization } = await convertTo(
      'tied',
      inPackage('fixtures/hf/llama-tied-rope3'),
      { quantize: 8, group: 32 },
    );
    expect(configIn(file).quantization_config.ignore).toContain('lm_head');
    expect(quantization?.weights.some((name) => /embed|lm_head|norm/.test(name))).toBe(false);
  });

  it('keeps routers of a mixture, and quantizes each of its experts', async () => {
    const { quantization } = await convertTo('mixture', await wideMixture(), {
      quantize: 4,
      group: 32,
    });
    expect(quantization?.weights).toContain('model.layers.0.block_sparse_moe.experts.1.w1.weight');
    expect(quantization?.ignored).toContain('model.layers.0.block_sparse_moe.gate');
    expect(quantization?.ignored).toContain('model.layers.0.block_sparse_moe.experts.1.w2');
  });
});

/** Folder of fixtures/hf/mixtral-saved with a width of 32 instead of 24, and an inner width of 16. */
async function wideMixture(): Promise<string> {
  const from = inPackage('fixtures/hf/mixtral-saved');
  const sizes = new Map([
    [24, 32],
    [12, 16],
  ]);
  const source = openCheckpoint(from);
  const tensors = [...source.tensors].map(([name, { shape }]): [string, Made] => {
    const wide = shape.map((size) => sizes.get(size) ?? size);
    return [name, made(wide, (index) => Math.sin(index))];
  });
  source.close();
  const file = await safetensorsFile(new Map(tensors));
  const config = { ...configIn(from), hidden_size: 32, intermediate_size: 16 };
  fs.writeFileSync(path.join(path.dirname(file), 'config.json'), JSON.stringify(config));
  return path.dirname(file);
}

describe('errors per weight', () => {
  it.each(CASES)('are measured, and within their bound: $label', async ({ flags }) => {
    const { file, quantization } = await convertTo('errors', LLAMA, flags);
    expect(quantization?.errors.map(({ name }) => name)).toEqual(quantization?.weights);
    for (const { name, relativeError, largestError, bound } of quantization?.errors ?? []) {
      const [before, after] = [numbersOf(LLAMA, name), numbersOf(file, name)];
      let [squares, whole, largest] = [0, 0, 0];
      for (const [at, value] of before.entries()) {
        const difference = Math.abs(value - (after[at] ?? Number.NaN));
        squares += difference ** 2;
        whole += value ** 2;
        largest = Math.max(largest, difference);
      }
      expect(relativeError).toBeCloseTo(Math.sqrt(squares / whole), 10);
      expect(largestError).toBe(largest);
      expect(largest).toBeLessThanOrEqual(bound);
      expect(relativeError).toBeLessThan(flags.quantize === 4 ? 0.1 : 0.01);
    }
  });
});

describe('the bound of an error', () => {
  it('has the rounding to bfloat16 twice: of the weight, and of the result', async () => {
    const flags = { quantize: 8, group: 32, dtype: 'BF16' } as const;
    const { file, quantization } = await convertTo('rounded', LLAMA, flags);
    const packed = openCheckpoint(file, { keepPacked: true });
    for (const { name, bound } of quantization?.errors ?? expect.unreachable()) {
      const scales = packed.tensors.get(`${name}_scale`) ?? expect.unreachable();
      const values = new Float64Array(scales.elements);
      decodeValues('BF16', readTensor(scales), values);
      // A value has up to 255 steps, and bfloat16 rounds it by up to 2⁻⁸ of itself: nearly one step, twice.
      expect(bound / Math.max(...values)).toBeCloseTo(0.5 + 255 / 256 + 255 / 256, 12);
    }
    packed.close();
  });
});

describe('dequantizing', () => {
  it('writes exactly the values of the packed weights', async () => {
    const { file: packed } = await convertTo('packed', LLAMA, { quantize: 4, group: 32 });
    const { file: back } = await convertTo('back', packed, { dequantize: true });
    expect(digests(back)).toEqual(digests(packed));
    expect(configIn(back)).toEqual(configIn(LLAMA));
    const { file: cast } = await convertTo('cast', packed, { dtype: 'BF16' });
    expect(openCheckpoint(cast).packed).toBeUndefined();
  });

  it('is not needed to quantize again, which gives the same codes', async () => {
    const { file: packed } = await convertTo('once', LLAMA, { quantize: 8, group: 32 });
    const { file: again } = await convertTo('again', packed, { quantize: 8, group: 32 });
    const codesOf = (file: string) => {
      const { tensors } = openCheckpoint(file, { keepPacked: true });
      return [...tensors].flatMap(([name, tensor]) =>
        /_packed$|_zero_point$/.test(name) ? [[name, readTensor(tensor)]] : [],
      );
    };
    expect(codesOf(again)).toEqual(codesOf(packed));
  });

  it('is never done without a flag', async () => {
    const { file } = await convertTo('silent', LLAMA, { quantize: 4, group: 32 });
    await expect(convertTo('one', file, { container: 'safetensors' })).rejects.toThrow(
      /has 13 quantized weights/,
    );
  });
});

describe('quantizing', () => {
  it.each([
    ['a PyTorch file', { quantize: 4, container: 'pt' }, 'found a PyTorch file'],
    ['a model without linear layers of whole groups', { quantize: 4, group: 128 }, 'found none'],
    ['an input without packed weights', { dequantize: true }, 'expected packed weights'],
  ] as const)('refuses %s', async (_, flags, message) => {
    const name = 'container' in flags ? 'out.pt' : 'out';
    await expect(convertTo(name, LLAMA, flags)).rejects.toThrow(message);
  });

  it('refuses a conversion without a config', async () => {
    const file = await safetensorsFile({ 'a.weight': made([4, 32], (at) => at) });
    await expect(convertTo('names', file, { quantize: 4 })).rejects.toThrow('has no config');
  });
});

describe('packed weights of another layout', () => {
  it('stay unchanged, with a warning', async () => {
    const file = await safetensorsFile({
      'a.weight_packed': made([2, 3], (at) => at),
      'a.weight_scale': made([2, 1], () => 1),
    });
    const { tensors, warnings, packed } = openCheckpoint(file);
    expect(packed).toBeUndefined();
    expect([...tensors.keys()]).toEqual(['a.weight_packed', 'a.weight_scale']);
    expect(warnings.join()).toContain('a.weight_packed is not read as floats');
  });
});
