/** Compares exported graphs, run by ONNX Runtime alone, with the originals. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PbfReader } from 'pbf';
import { afterAll, describe, expect, it } from 'vitest';
import type { WeightForm } from '../../../src/base/tensor/group-quantization.js';
import type { TokenIds, Values } from '../../../src/engine/engine.js';
import { loadLibrary } from '../../../src/engine/onnx/library.js';
import { planExport } from '../../../src/engine/onnx/plan-export.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { inPackage } from '../../fixtures.js';
import { sampled } from '../../sampled.js';
import { familyCase, ONE_OF_EACH_FAMILY } from '../family-cases.js';
import { differenceAt, fixtureModel } from '../fixture-models.js';
import { partOf } from '../sequences.js';
import { describeWithOnnx, loaded } from './support.js';

/** Largest difference from the original, which is also in float32. */
const LIMIT = 2e-5;

/** Largest value, at least 1. Rounding errors are in proportion to it. */
const sizeOf = ({ data }: Values) =>
  data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

interface Exported {
  readonly model: LanguageModel;
  readonly weights: WeightSource;
}

/** Writes a planned export. @returns The path of the graph. */
function written({ model, weights }: Exported, external: boolean, weightForm?: WeightForm): string {
  const name = external ? 'beside.onnx' : 'inside.onnx';
  const about = { version: '1.2.3', metadata: new Map([['family', 'a family']]) };
  const { files } = planExport(model, weights, { ...about, name, external, weightForm });
  expect(files.map((file) => file.name)).toEqual(external ? [name, `${name}.data`] : [name]);
  for (const file of files) {
    const descriptor = fs.openSync(path.join(folder, file.name), 'w');
    for (const piece of file.pieces()) fs.writeSync(descriptor, piece);
    fs.closeSync(descriptor);
    expect(fs.statSync(path.join(folder, file.name)).size).toBe(file.length);
  }
  return path.join(folder, name);
}

/** Logits of each input, by ONNX Runtime alone. */
async function logitsOf(file: string, inputs: readonly TokenIds[]): Promise<Values[]> {
  const { InferenceSession, Tensor } = loadLibrary();
  const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
  expect([session.inputNames, session.outputNames]).toEqual([['input_ids'], ['logits']]);
  const results: Values[] = [];
  for (const { data, batch, tokens } of inputs) {
    const ids = new Tensor('int64', BigInt64Array.from(data, BigInt), [batch, tokens]);
    const { logits } = await session.run({ input_ids: ids });
    results.push({ shape: logits?.dims ?? [], data: logits?.data as Float32Array });
  }
  await session.release();
  return results;
}

/** Three copies of the first half of the first sequence: another batch size and length. */
function others(ids: TokenIds): TokenIds {
  const tokens = Math.ceil(ids.tokens / 2);
  const row = partOf(ids, 0, tokens).data.subarray(0, tokens);
  return { batch: 3, tokens, data: Int32Array.from([...row, ...row, ...row]) };
}

describeWithOnnx('an exported graph gives the results of the original:', () => {
  it.each(sampled(ONE_OF_EACH_FAMILY, 3))('%s', async (place) => {
    const { ids, expected, ...exported } = await familyCase(place);
    const other = others(ids);
    const [whole, part] = await logitsOf(written(exported, false), [ids, other]);
    const reference = expected.get('logits') as Values;
    expect(whole?.shape).toEqual(reference.shape);
    expect(differenceAt(whole as Values, reference, 1)).toBeLessThan(LIMIT * sizeOf(reference));
    // For another length there are no original values, because angles or windows may depend on it.
    const { output } = await (await loaded(exported.model, exported.weights)).run({ ids: other });
    expect(part?.shape).toEqual(output.shape);
    expect(differenceAt(part as Values, output, 1)).toBeLessThan(LIMIT);
  });

  it.each(sampled(fs.readdirSync(inPackage('fixtures/hybrid')), 3))('hybrid/%s', async (name) => {
    const { ids, expected, every, ...exported } = fixtureModel(name);
    const [whole] = await logitsOf(written(exported, false), [ids]);
    expect(differenceAt(whole as Values, expected.get('logits') as Values, every)).toBeLessThan(
      LIMIT,
    );
  });

  it.each(['hf/qwen3-moe', 'hf/gpt2'])('with its weights in a separate file: %s', async (place) => {
    const { ids, expected, ...exported } = await familyCase(place);
    const [whole] = await logitsOf(written(exported, true), [ids]);
    expect(differenceAt(whole as Values, expected.get('logits') as Values, 1)).toBeLessThan(LIMIT);
  });
});

describeWithOnnx('an exported model with quantized weights', () => {
  it.each([
    ['hf/llama', false],
    ['hf/llama-tied-rope3', true],
    ['hf/gpt2', false],
    ['hf/mixtral', true],
  ] as const)(
    'gives the results of the engine: %s, with weights in a separate file: %s',
    async (place, external) => {
      const { model, weights, ids } = await familyCase(place);
      const form = { bits: 4, group: 32 } as const;
      const program = await loaded(model, weights, { weightForm: form });
      const { output } = await program.run({ ids });
      const [whole] = await logitsOf(written({ model, weights }, external, form), [ids]);
      expect(whole?.shape).toEqual(output.shape);
      expect(differenceAt(whole as Values, output, 1)).toBeLessThan(LIMIT);
    },
  );
});

describe('an exported file', () => {
  /** Fields by number, each with all its values; see onnx.proto3. */
  const fieldsOf = (bytes: Uint8Array) =>
    new PbfReader(bytes).readFields<Map<number, Uint8Array[]>>((field, fields, reader) => {
      const value = reader.type === 2 ? reader.readBytes() : Uint8Array.of(reader.readVarint());
      fields.set(field, [...(fields.get(field) ?? []), value.slice()]);
    }, new Map());
  const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

  it('names its producer, its model and its requirements', async () => {
    const model = fieldsOf(fs.readFileSync(written(await familyCase('hf/llama'), false)));
    expect(model.get(1)).toEqual([Uint8Array.of(9)]);
    expect([model.get(2), model.get(3)].map((each) => text(each?.[0]))).toEqual([
      'minimind',
      '1.2.3',
    ]);
    const sets = (model.get(8) ?? []).map(fieldsOf);
    expect(sets.map((set) => [text(set.get(1)?.[0]), set.get(2)?.[0]?.[0]])).toEqual([
      ['', 20],
      ['com.microsoft', 1],
    ]);
    const [entry] = (model.get(14) ?? []).map(fieldsOf);
    expect([text(entry?.get(1)?.[0]), text(entry?.get(2)?.[0])]).toEqual(['family', 'a family']);
  });

  it('has every tensor once, with its name in the checkpoint', () => {
    const fixture = fixtureModel('shared-lowrank-tied');
    const model = fieldsOf(fs.readFileSync(written(fixture, false)));
    const graph = fieldsOf(model.get(7)?.[0] ?? new Uint8Array());
    const initializers = (graph.get(5) ?? []).map((each) => fieldsOf(each));
    const names = initializers.map((each) => text(each.get(8)?.[0]));
    expect(new Set(names).size).toBe(names.length);
    // Buffers that the configuration determines are not needed here.
    const own = tensorsOf(fixture.model).filter(({ role }) => role === 'parameter');
    expect(names).toEqual(expect.arrayContaining(own.map(({ name }) => name)));
  });

  it('is planned without reading weights', async () => {
    const { model } = await familyCase('hf/llama');
    const weights: WeightSource = {
      rangeOf: () => undefined,
      read: () => {
        throw new Error('read');
      },
    };
    const about = { version: '1', metadata: new Map(), name: 'x', external: false };
    const { files } = planExport(model, weights, about);
    expect(() => [...(files[0]?.pieces() ?? [])]).toThrow('read');
  });
});
