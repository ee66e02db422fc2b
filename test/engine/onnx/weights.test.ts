import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import { compile } from '../../../src/engine/onnx/compile.js';
import { PlacedWeights } from '../../../src/engine/onnx/placed-weights.js';
import type { Initializer } from '../../../src/engine/onnx/proto.js';
import type { FileRange, WeightSource } from '../../../src/engine/weights/weights.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import {
  mixtureOfExperts,
  packedExperts,
  router,
} from '../../../src/model/architecture/constructors/feed-forward-layers.js';
import type { Layer } from '../../../src/model/architecture/layer.js';
import type { Param } from '../../../src/model/architecture/param.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { inPackage } from '../../fixtures.js';
import { differenceAt, idsOf, modelOfConfig } from '../fixture-models.js';
import { referenceEngine } from '../reference-engine.js';
import { describeWithOnnx, loaded } from './support.js';

const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-test-')));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Folder of spools in these tests. */
const spools = path.join(folder, 'spools');
fs.mkdirSync(spools);
const { TMPDIR } = process.env;
process.env.TMPDIR = spools;
afterAll(() => {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
});
afterEach(() => expect(fs.readdirSync(spools)).toEqual([]));

const model = modelOfConfig({
  vocab_size: 50,
  hidden_size: 32,
  num_layers: 2,
  num_heads: 4,
  window_size: 8,
  gate_rank: 8,
  max_position_embeddings: 64,
  tie_word_embeddings: true,
});
const random = randomWeights(model, 7);
const ids = idsOf([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]]);

type Half = 'F16' | 'BF16';

interface Filing {
  readonly files?: number;
  readonly of?: Layer;
  readonly source?: WeightSource;
}

/** Writes all tensors into files, with a byte between them, and gives their places. */
function inFiles(
  dtype: 'F32' | Half,
  name: string,
  { files = 1, of = model, source = random }: Filing = {},
): WeightSource {
  const ranges = new Map<Param, FileRange>();
  const values = new Map<Param, Float32Array>();
  const parts: Buffer[][] = Array.from({ length: files }, () => []);
  for (const [index, tensor] of tensorsOf(of).entries()) {
    const numbers = new Float32Array(tensor.elements);
    source.read(tensor, 0, numbers);
    const bytes = dtype === 'F32' ? Buffer.from(numbers.buffer) : halved(dtype, numbers);
    const part = parts[index % files] ?? [];
    part.push(Buffer.from([index]));
    const position = part.reduce((sum, { length }) => sum + length, 0);
    const folderOfFile = path.join(folder, `${name}-${index % files}`);
    ranges.set(tensor, {
      path: path.join(folderOfFile, 'weights of a model.bin'),
      position,
      bytes: bytes.length,
      dtype,
    });
    values.set(tensor, numbers);
    part.push(bytes);
  }
  for (const [index, part] of parts.entries()) {
    fs.mkdirSync(path.join(folder, `${name}-${index}`));
    const file = path.join(folder, `${name}-${index}`, 'weights of a model.bin');
    fs.writeFileSync(file, Buffer.concat(part));
  }
  return {
    rangeOf: (tensor) => ranges.get(tensor),
    read: (tensor, first, target) =>
      target.set(values.get(tensor)?.subarray(first, first + target.length) ?? []),
  };
}

/** Numbers in half precision; also rounds the given ones. */
function halved(dtype: Half, numbers: Float32Array): Buffer {
  const codes = new Uint16Array(numbers.length);
  const words = new Uint32Array(numbers.buffer);
  for (const [i, word] of words.entries()) {
    const sign = (word >>> 16) & 0x8000;
    // Exponent and first bits of the fraction, for numbers below 2 that are not too small.
    const magnitude = Math.max(0, ((word & 0x7fffffff) >>> 13) - ((127 - 15) << 10));
    codes[i] = dtype === 'BF16' ? word >>> 16 : sign | magnitude;
  }
  const bytes = new Uint8Array(codes.buffer);
  const exact = new Float64Array(numbers.length);
  decodeValues(dtype, bytes, exact);
  numbers.set(exact);
  return Buffer.from(bytes);
}

const fromReader = ({ read }: WeightSource): WeightSource => ({ rangeOf: () => undefined, read });

describe('the weights of a graph', () => {
  const described = tensorsOf(model)
    .filter(({ name }) => !name.includes('.rope.'))
    .reduce((sum, { elements }) => sum + elements, 0);
  const placed = (name: string, { shape }: Param): Initializer => ({
    name,
    shape,
    type: 'f32',
    bytes: { raw: new Uint8Array(0) },
  });

  it('have the number of elements of the description', () => {
    const { weightElements } = compile(model, (tensor) => placed(tensor.name, tensor), {});
    expect(weightElements).toBe(described);
  });

  it('have more elements when a shared tensor is stored twice', () => {
    let count = 0;
    const { weightElements } = compile(model, (tensor) => placed(`copy ${count++}`, tensor), {});
    // The embedding, which the head is tied to.
    expect(weightElements).toBe(described + 50 * 32);
  });
});

describeWithOnnx('weights in a file are used in place:', () => {
  it.each(['F32', 'F16', 'BF16'] as const)('%s', async (dtype) => {
    const source = inFiles(dtype, dtype);
    const expected = await (await loaded(model, fromReader(source))).run({ ids });
    const large: string[] = [];
    const watched: WeightSource = {
      rangeOf: source.rangeOf,
      read(tensor, first, target) {
        if (tensor.elements >= 256) large.push(tensor.name);
        source.read(tensor, first, target);
      },
    };
    const program = await loaded(model, watched);
    expect(await program.run({ ids })).toEqual(expected);
    expect(large).toEqual([]);
    const distinct = tensorsOf(model).filter(({ name }) => !name.includes('.rope.'));
    expect(program.elements).toBe(distinct.reduce((sum, { elements }) => sum + elements, 0));
  });

  it.each(['F32', 'F16'] as const)('%s of experts that are parts of a tensor', async (dtype) => {
    const sizes = { experts: 3, hidden: 16, inner: 12 };
    const layer = mixtureOfExperts('mixture', {
      router: router('router', 16, { experts: 3, expertsPerToken: 2, scoring: 'softmax' }),
      experts: packedExperts('experts', sizes, 'silu'),
    });
    const source = inFiles(dtype, `experts-${dtype}`, {
      of: layer,
      source: randomWeights(layer, 4),
    });
    const shape = [1, 5, 16];
    const data = Float32Array.from({ length: 80 }, (_, index) => Math.sin(index));
    const expected = await (await referenceEngine().load(layer, source)).run({
      inputs: [{ shape, data }],
    });
    for (const weights of [fromReader(source), source]) {
      const program = await loaded(layer, weights);
      const { output } = await program.run({ inputs: [{ shape, data }] });
      expect(differenceAt(output, expected.output, 1)).toBeLessThan(1e-6);
      expect(program.elements).toBe(3 * 16 + 3 * 3 * 12 * 16);
    }
  });

  it('in several folders, some without a file', async () => {
    const source = inFiles('F32', 'parts', { files: 3 });
    const expected = await (await loaded(model, fromReader(source))).run({ ids });
    const [table] = tensorsOf(model);
    const mixed: WeightSource = {
      rangeOf: (tensor) => (tensor === table ? undefined : source.rangeOf(tensor)),
      read: source.read,
    };
    expect(await (await loaded(model, mixed)).run({ ids })).toEqual(expected);
  });

  it('but a truncated file is a user error', async () => {
    const source = inFiles('F32', 'short');
    const file = path.join(folder, 'short-0', 'weights of a model.bin');
    fs.truncateSync(file, 5000);
    await expect(loaded(model, source)).rejects.toThrow(
      expect.objectContaining({
        code: 'system',
        message: expect.stringContaining('a file of weights cannot be read'),
      }),
    );
  });
});

describe('the spool', () => {
  it('is accessible to the user only, has float32 values and is removed when released', async () => {
    const weights = new PlacedWeights(fromReader(random));
    const [first] = tensorsOf(model);
    if (!first) throw new Error('no tensor');
    const initializer = weights.place(first);
    expect(weights.place(first)).toBe(initializer);
    await weights.write();
    const { bytes } = initializer;
    if (!('location' in bytes)) throw new Error('the tensor is in the graph');
    const file = path.join(weights.root, bytes.location);
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    expect(fs.statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    const values = new Float32Array(first.elements);
    random.read(first, 0, values);
    const stored = fs.readFileSync(file).subarray(bytes.offset, bytes.offset + bytes.length);
    expect(stored.equals(Buffer.from(values.buffer))).toBe(true);
    weights.release();
    expect(fs.existsSync(path.dirname(file))).toBe(false);
    weights.release();
  });

  it('is removed when the weights cannot be read', async () => {
    const weights = new PlacedWeights({
      rangeOf: () => undefined,
      read: () => {
        throw new Error('the disk is gone');
      },
    });
    for (const tensor of tensorsOf(model).slice(0, 1)) weights.place(tensor);
    await expect(weights.write()).rejects.toThrow('the disk is gone');
    weights.release();
  });

  it('fails with a suggestion when its folder cannot be created', () => {
    process.env.TMPDIR = path.join(folder, 'nowhere');
    try {
      const weights = new PlacedWeights(fromReader(random));
      for (const tensor of tensorsOf(model).slice(0, 1)) {
        expect(() => weights.place(tensor)).toThrow(
          expect.objectContaining({
            code: 'system',
            suggestion: expect.stringContaining('set TMPDIR to a folder'),
          }),
        );
      }
    } finally {
      process.env.TMPDIR = spools;
    }
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'is removed when the process ends by %s',
    async (signal) => {
      const script = `
      process.env.TMPDIR = ${JSON.stringify(spools)};
      process.on('${signal}', () => process.exit(1));
      const { Spool } = await import('./src/engine/onnx/placed-weights.ts');
      const spool = new Spool();
      const tensor = { name: 'a', aliases: [], shape: [4], elements: 4, role: 'parameter' };
      spool.add(tensor);
      await spool.write({ rangeOf() {}, read() {} });
      console.log(spool.file);
      setInterval(() => {}, 1000);`;
      const child = spawn(
        process.execPath,
        ['--import', 'tsx', '--input-type=module', '-e', script],
        {
          cwd: inPackage(),
          env: { ...process.env, TMPDIR: folder },
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      );
      const file = await new Promise<string>((resolve) =>
        child.stdout.once('data', (data) => resolve(String(data).trim())),
      );
      expect(fs.existsSync(file)).toBe(true);
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill(signal);
      expect(await ended).toBe(1);
      expect(fs.existsSync(file)).toBe(false);
    },
  );
});
