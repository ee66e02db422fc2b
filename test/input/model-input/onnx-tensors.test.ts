import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readTensor } from '../../../src/checkpoint/view.js';
import { openModelCheckpoint } from '../../../src/input/model-input/gguf/gguf-checkpoint.js';
import { onnxViewOf } from '../../../src/input/model-input/onnx/onnx-tensors.js';
import { bytes, initializer, node, onnx } from '../../checkpoint/onnx/files.js';
import { fileIn, folderOf } from '../../checkpoint/temp-folder.js';
import { onTestEnd } from '../../cleanup.js';
import { runHere } from '../../run-here.js';

function opened(file: string) {
  const checkpoint = openModelCheckpoint(file);
  onTestEnd(() => checkpoint.close());
  return checkpoint;
}

describe('tensors of an exported graph', () => {
  it('have the names of the model, even where the exporter invented others', () => {
    const checkpoint = opened('fixtures/onnx/merged.onnx');
    const names = ['norm.weight', 'norm.bias', 'up.weight', 'up.bias', 'down.weight'];
    expect([...checkpoint.tensors.keys()].sort()).toEqual(
      [
        'embed.weight',
        'head.weight',
        ...names.flatMap((name) => [`layers.0.${name}`, `layers.1.${name}`]),
      ].sort(),
    );
    expect(checkpoint.tensors.get('layers.0.up.weight')?.shape).toEqual([12, 8]);
    const view = onnxViewOf(checkpoint);
    expect(view?.merged.map(({ name }) => name)).toEqual([
      'layers.1.norm.weight',
      'layers.1.norm.bias',
    ]);
    expect(view?.transposed).toContain('layers.1.down.weight');
  });

  it('are transposed back', () => {
    const data = { raw: Buffer.from(Float32Array.of(1, 2, 3, 4, 5, 6).buffer) };
    const file = fileIn(
      'x.onnx',
      onnx({
        initializers: [initializer({ name: 'onnx::MatMul_7', sizes: [2, 3], data })],
        nodes: [node({ op: 'MatMul', name: '/net/net.0/MatMul', inputs: ['x', 'onnx::MatMul_7'] })],
      }),
    );
    const tensor = opened(file).tensors.get('net.0.weight') ?? expect.unreachable();
    expect(tensor.shape).toEqual([3, 2]);
    expect([...new Float32Array(readTensor(tensor).slice().buffer)]).toEqual([1, 4, 2, 5, 3, 6]);
  });

  it('do not include constants of the graph', () => {
    const file = fileIn(
      'x.onnx',
      onnx({
        initializers: [
          initializer({ name: 'layers.0.w' }),
          initializer({ name: '/model/Constant_3_output_0' }),
          initializer({ name: 'val_12' }),
        ],
      }),
    );
    const checkpoint = opened(file);
    expect([...checkpoint.tensors.keys()]).toEqual(['layers.0.w']);
    expect(onnxViewOf(checkpoint)?.constants).toEqual(['/model/Constant_3_output_0', 'val_12']);
  });
});

describe('rows of a weight with a shape in the metadata', () => {
  /** A weight [2, 1, 2] as two rows, and its shape as listed. */
  function withShapes(shapes: string, rows = ['0+1', '1+1']) {
    const data = (...values: number[]) => ({ raw: Buffer.from(Float32Array.from(values).buffer) });
    const file = fileIn(
      'x.onnx',
      onnx({
        initializers: rows.map((each, at) =>
          initializer({ name: `w:${each}`, sizes: [1, 2], data: data(2 * at, 2 * at + 1) }),
        ),
        more: [bytes(14, bytes(1, 'shapes'), bytes(2, shapes))],
      }),
    );
    return opened(file).tensors;
  }

  it('are one weight, in any order', () => {
    for (const rows of [
      ['0+1', '1+1'],
      ['1+1', '0+1'],
    ]) {
      const tensor = withShapes('{"w":{"shape":[2,1,2]}}', rows).get('w') ?? expect.unreachable();
      expect(tensor.shape).toEqual([2, 1, 2]);
      const values = [...new Float32Array(readTensor(tensor).slice().buffer)];
      expect(values).toEqual(rows[0] === '0+1' ? [0, 1, 2, 3] : [2, 3, 0, 1]);
    }
  });

  it.each([
    ['a shape of other values', '{"w":{"shape":[2,2,2]}}', undefined],
    ['missing rows', '{"w":{"shape":[2,1,2]}}', ['0+1', '2+1']],
    ['the same rows twice', '{"w":{"shape":[2,1,2]}}', ['0+1', '0+2']],
    ['a shape beyond all numbers', '{"w":{"shape":[9007199254740993,9]}}', undefined],
    ['a shape of texts', '{"w":{"shape":["2","2"]}}', undefined],
    ['no shape', '{"w":null}', undefined],
    ['a list', '[1]', undefined],
    ['no JSON', '{', undefined],
    ['only the name of a prototype', '{"__proto__":{"shape":[2,1,2]}}', undefined],
  ])('are not read as a weight with %s', (_, shapes, rows) => {
    expect([...withShapes(shapes, rows).keys()]).toEqual([]);
  });
});

describe('verify of an exported graph', () => {
  const verify = async (...args: string[]) => {
    const { code, stdout } = await runHere(['verify', ...args, '--json', '-q']);
    return { code, ...JSON.parse(stdout) };
  };

  it('matches the model that PyTorch exported, to the bit', async () => {
    const answer = await verify(
      'fixtures/hf/llama',
      'fixtures/onnx/llama.onnx',
      '--values',
      'fixtures/hf/llama',
    );
    expect(answer).toMatchObject({ code: 0, matches: true, counts: { described: 21, stored: 21 } });
    expect(answer.values.types).toMatchObject([{ type: 'F32', tensors: 21, relativeError: 0 }]);
    expect(answer.onnx.transposed).toHaveLength(15);
  });

  it('reports the faults of another model', async () => {
    const answer = await verify(
      'fixtures/hf/llama',
      'fixtures/onnx/llama.onnx',
      '--set',
      'model.num_hidden_layers=3',
    );
    expect(answer).toMatchObject({ code: 1, faults: [{ kind: 'missing-layers' }] });
  });

  it.each([[], ['--external-data'], ['--weights', 'int8-32'], ['--weights', 'int4-32']])(
    'matches the file that export wrote with %s %s, by its included config',
    async (...args) => {
      const file = path.join(folderOf({ x: '' }), 'llama.onnx');
      await runHere(['export', 'fixtures/hf/llama', '--save', file, ...args.filter(Boolean), '-q']);
      const answer = await verify(file, '--values', 'fixtures/hf/llama');
      expect(answer).toMatchObject({ code: 0, matches: true, counts: { stored: 21 } });
    },
  );
});
