/** Training checkpoints that the original implementation has also converted: see fixtures/README.md. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import type { Engine } from '../../../src/engine/engine.js';
import { onnxVersion } from '../../../src/engine/onnx/library.js';
import { openOnnx } from '../../../src/engine/onnx/onnx-engine.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import { checkpointWeights } from '../../../src/engine/weights/weights.js';
import { configOf } from '../../../src/input/model-input/checkpoint/required-config.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { differenceAt, idsOf, valuesOf } from '../../engine/fixture-models.js';
import { referenceEngine } from '../../engine/reference-engine.js';
import { inPackage, readJson } from '../../fixtures.js';
import { convertTo, type Flags, look, namedTensors, numbersOf } from './convert.js';

const FOLDER = inPackage('fixtures/old-checkpoint');
const CHECKPOINTS = ['trained-random-start', 'trained-same-start'] as const;
const inCase = (name: string, file: string) => path.join(FOLDER, name, file);
const inputOf = (name: string) => inCase(name, 'checkpoint_step_30.pt');
const expectedOf = (name: string) => inCase(name, 'expected.safetensors');

/** Flags of each conversion, its name in the fixtures, and the size of its table. */
const CONVERSIONS = [
  { flags: { layout: 'shared' }, title: 'shared_mean', rows: 48, rank: null },
  { flags: { layout: 'low-rank', rank: 3 }, title: 'shared_rank3', rows: 48, rank: 3 },
  {
    flags: { layout: 'low-rank', rank: 3, maxPositions: 32, tie: 'embed' },
    title: 'shared_rank3_len32_tied_to_embedding',
    table: 'shared_rank3_len32',
    rows: 32,
    rank: 3,
  },
] as const satisfies readonly {
  readonly flags: Flags;
  readonly title: string;
  readonly table?: string;
  readonly rows: number;
  readonly rank: number | null;
}[];

const CASES = CHECKPOINTS.flatMap((name) =>
  CONVERSIONS.flatMap((conversion) =>
    ['out.pt', 'out.safetensors', 'out'].map(
      (out) => [name, conversion.title, out, conversion] as const,
    ),
  ),
);

const HIDDEN = 8;

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  'plain loops': async () => referenceEngine(),
  'TensorFlow.js': () => openTfjs({ threads: 1, backend: 'wasm' }),
  ...(onnxVersion() === undefined ? {} : { 'ONNX Runtime': () => openOnnx({ threads: 1 }) }),
};

const isKept = (name: string) => !name.includes('.rope.');

/** Columns of a matrix [rows, columns]. */
function columnsOf(values: Float64Array, columns: number): Float64Array[] {
  return Array.from({ length: columns }, (_, column) =>
    values.filter((_, index) => index % columns === column),
  );
}

const dot = (a: Float64Array, b: Float64Array) =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? Number.NaN), 0);

/** rows · projectionᵀ, row by row. */
function product(rows: Float64Array, projection: Float64Array, rank: number): Float64Array {
  const [left, right] = [rows, projection].map((matrix) =>
    Array.from({ length: matrix.length / rank }, (_, row) =>
      matrix.subarray(row * rank, (row + 1) * rank),
    ),
  );
  return Float64Array.from(
    left?.flatMap((row) => right?.map((other) => dot(row, other)) ?? []) ?? [],
  );
}

const largestDifference = (a: Float64Array, b: Float64Array) =>
  a.length === b.length
    ? a.reduce((most, value, at) => Math.max(most, Math.abs(value - (b[at] ?? Number.NaN))), 0)
    : Number.NaN;

describe.each(CASES)('the conversion of %s to %s in %s', (name, title, out, conversion) => {
  const { flags, rows, rank } = conversion;
  const expectedTable = numbersOf(
    expectedOf(name),
    `${'table' in conversion ? conversion.table : title}.table`,
  );
  let file = '';
  beforeAll(async () => {
    ({ file } = await convertTo(out, inputOf(name), flags));
  });

  it('has the table of the original implementation', () => {
    const actual =
      rank === null
        ? numbersOf(file, 'shared_srte.freqs')
        : product(
            numbersOf(file, 'shared_srte.lowrank'),
            numbersOf(file, 'shared_srte.proj.weight'),
            rank,
          );
    expect(actual).toHaveLength(rows * HIDDEN);
    expect(largestDifference(actual, expectedTable)).toBeLessThan(1e-5);
  });

  it.runIf(rank !== null && rows === 48)('has the singular values of the mean in its pair', () => {
    const singular = numbersOf(expectedOf(name), 'svd.singular_values').subarray(0, 3);
    const left = columnsOf(numbersOf(file, 'shared_srte.lowrank'), 3);
    const right = columnsOf(numbersOf(file, 'shared_srte.proj.weight'), 3);
    for (const [index, value] of singular.entries()) {
      // U·√Σ and V·√Σ: orthogonal columns of squared length σ.
      for (const columns of [left, right]) {
        const squares = columns.map((column) => dot(column, columns[index] ?? column) / value);
        const orthogonal = [0, 1, 2].map((other) => Number(other === index));
        expect(
          largestDifference(Float64Array.from(squares), Float64Array.from(orthogonal)),
        ).toBeLessThan(1e-4);
      }
    }
  });

  // All containers have the same bytes, and engines load slowly: one container is enough for them.
  it.each(out === 'out.pt' ? Object.keys(ENGINES) : ['plain loops'])(
    'computes the logits of the original implementation, on %s',
    async (engineName) => {
      const { input_ids } = readJson<{ input_ids: number[][] }>(
        'fixtures/old-checkpoint',
        name,
        'case.json',
      );
      const checkpoint = openCheckpoint(file);
      const expected = openCheckpoint(expectedOf(name));
      afterAll(() => checkpoint.close());
      const { document } = await configOf(checkpoint, undefined);
      const { model } = await modelOf(document);
      const engine = await ENGINES[engineName]?.();
      const program = await engine?.load(model, checkpointWeights(model, checkpoint));
      const { output } = (await program?.run({ ids: idsOf(input_ids) })) ?? {};
      const logits = expected.tensors.get(`logits.${title}`);
      if (!output || !logits) throw new Error('no logits');
      expect(differenceAt(output, valuesOf(logits), 1)).toBeLessThan(1e-5);
      await program?.release();
      await engine?.close();
      expected.close();
    },
  );

  it('has every name that a strict load requires, in order and on one storage', () => {
    const parts = rank === null ? ['freqs'] : ['lowrank', 'proj.weight'];
    const before = readJson<readonly [name: string, shape: number[]][]>(
      'fixtures/old-checkpoint/trained-random-start/state-dict.json',
    ).map(([each]) => each);
    const [embedding = '', ...others] = before.flatMap((each) =>
      each.endsWith('.srte.freqs') ? parts.map((part) => each.replace('freqs', part)) : [each],
    );
    const expectedNames = [embedding, ...parts.map((part) => `shared_srte.${part}`), ...others];
    look(file, (checkpoint) => {
      const tensors = namedTensors(checkpoint);
      // A state dict has the order of its model; a safetensors file is sorted.
      if (out.endsWith('.pt')) expect([...tensors.keys()]).toEqual(expectedNames);
      // Loaders of safetensors compute the tables of RoPE, which the input also lacks.
      else expect([...tensors.keys()].sort()).toEqual(expectedNames.filter(isKept).sort());
      const isTied = 'tie' in flags;
      expect(tensors.get('lm_head.weight') === tensors.get(embedding)).toBe(isTied);
      for (const part of parts) {
        const storages = [0, 1, 2].map(
          (layer) => tensors.get(`layers.${layer}.srte.${part}`)?.storage,
        );
        expect(new Set([...storages, tensors.get(`shared_srte.${part}`)?.storage]).size).toBe(1);
      }
    });
  });
});
