import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeWhole } from '../../../src/base/files/write-whole.js';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { writeSafetensors } from '../../../src/checkpoint/safetensors/write-safetensors.js';
import type { PickleValue } from '../../../src/checkpoint/torch/pickle/values.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { JsonWriter, parseJson } from '../../../src/convert/kv-projector/arguments.js';
import { savedProjector } from '../../../src/convert/kv-projector/saved.js';
import { planProjectorFiles } from '../../../src/convert/kv-projector/write-projector.js';
import { inPackage, readJson } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

const FIXTURES = 'fixtures/kv-projector';
const CASES = ['linear-one-teacher', 'two-teachers'] as const;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));
const inFolder = (name: string) => path.join(folder, name);

const run = async (...args: string[]) => {
  const done = await runHere(['kv-projector', ...args, '--json']);
  return { ...done, answer: JSON.parse(done.stdout) };
};

/** Whole content of a file, values as bytes. */
function contentOf(file: string) {
  const checkpoint = openCheckpoint(file);
  try {
    const tensors = [...checkpoint.tensors].map(([name, tensor]) => {
      const { dtype, shape } = tensor;
      return [name, { dtype, shape, bytes: Buffer.from(readTensor(tensor)) }] as const;
    });
    return {
      tensors: new Map(tensors),
      content: checkpoint.content,
      metadata: checkpoint.metadata,
    };
  } finally {
    checkpoint.close();
  }
}

type Content = ReturnType<typeof contentOf>['tensors'];

const numbersOf = (content: Content, name: string): Float64Array => {
  const { dtype, bytes } = content.get(name) ?? { dtype: 'F32', bytes: Buffer.alloc(0) };
  const numbers = new Float64Array(bytes.length);
  return numbers.subarray(0, decodeValues(dtype, bytes, numbers));
};

/** A file of float32 tensors. */
async function written(name: string, tensors: Record<string, [number[], number[]]>) {
  const parts: Buffer[] = [];
  const sink = {
    position: 0,
    write: async (bytes: Uint8Array) => {
      parts.push(Buffer.from(bytes));
    },
  };
  await writeSafetensors(
    sink,
    Object.entries(tensors).map(([key, [shape, values]]) => ({
      name: key,
      dtype: 'F32',
      shape,
      chunks: () => [new Uint8Array(Float32Array.from(values).buffer)],
    })),
  );
  fs.writeFileSync(inFolder(name), Buffer.concat(parts));
  return inFolder(name);
}

describe.each(CASES)('project %s', (name) => {
  it.each(['model.safetensors', 'saved.pt'])(
    '%s gives the values of PyTorch',
    async (projector) => {
      const input = `${FIXTURES}/${name}/expected.safetensors`;
      const output = inFolder(`${name}-${projector}.out.safetensors`);
      const { code, stderr } = await run(
        'project',
        `${FIXTURES}/${name}/${projector}`,
        input,
        '--save',
        output,
      );
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const expected = contentOf(inPackage(input)).tensors;
      const projected = contentOf(output).tensors;
      const names = [...expected.keys()].filter((each) => each.startsWith('output.'));
      expect([...projected.keys()].sort()).toEqual(names.sort());
      for (const each of names) {
        expect(projected.get(each)?.shape).toEqual(expected.get(each)?.shape);
        const target = numbersOf(expected, each);
        const differences = numbersOf(projected, each).map((value, at) =>
          Math.abs(value - (target[at] ?? Number.NaN)),
        );
        expect(differences.length).toBeGreaterThan(0);
        expect(Math.max(...differences)).toBeLessThan(1e-5);
      }
    },
  );

  it('counts parameters and keeps names', async () => {
    const described = readJson<{ parameters: number; keys?: string[] }>(
      FIXTURES,
      name,
      'case.json',
    );
    const output = inFolder(`${name}.pt`);
    const { answer } = await run('convert', `${FIXTURES}/${name}/saved.pt`, output);
    expect(answer.projector.parameters).toBe(described.parameters);
    if (described.keys) expect([...contentOf(output).tensors.keys()]).toEqual(described.keys);
  });

  it('converts there and back without a change', async () => {
    const saved = `${FIXTURES}/${name}/saved.pt`;
    const middle = inFolder(`${name}-middle.safetensors`);
    const back = inFolder(`${name}-back.pt`);
    expect((await run('convert', saved, middle)).code).toBe(0);
    expect((await run('convert', middle, back)).code).toBe(0);
    const [first, last] = [contentOf(inPackage(saved)), contentOf(back)];
    expect([...last.tensors]).toEqual([...first.tensors]);
    expect([...last.content]).toEqual([...first.content]);
    expect(contentOf(middle).metadata.get('student_d_model')).toBe('12');
  });
});

describe('project', () => {
  const identity = {
    'projectors.a_b.K.weight': [
      [2, 2],
      [1, 0, 0, 1],
    ] as [number[], number[]],
  };
  const both = {
    ...identity,
    'projectors.a_b.V.weight': [
      [2, 2],
      [0, 1, 1, 0],
    ] as [number[], number[]],
  };
  const kv = {
    'a.b.K': [
      [3, 2],
      [1, 2, 3, 4, 5, 6],
    ],
    'a.b.V': [[2], [7, 8]],
  } as Record<string, [number[], number[]]>;

  it('keeps names without a prefix and leading axes, in the requested type', async () => {
    const projector = await written('identity.safetensors', both);
    const input = await written('kv.safetensors', kv);
    const output = inFolder('projected.safetensors');
    const { answer } = await run('project', projector, input, '--save', output, '--dtype', 'bf16');
    const { tensors } = contentOf(output);
    expect(answer.tensors[0].output).toEqual({
      name: 'a.b.K',
      dtype: 'BF16',
      shape: [3, 2],
      nonFinite: 0,
    });
    expect([...numbersOf(tensors, 'a.b.K')]).toEqual([1, 2, 3, 4, 5, 6]);
    expect([...numbersOf(tensors, 'a.b.V')]).toEqual([8, 7]);
    // It does not replace the existing output.
    expect((await run('project', projector, input, '--save', output)).answer.message).toContain(
      'exists',
    );
  });

  it('reports NaN, overflows and unused teachers', async () => {
    const projector = await written('more.safetensors', {
      ...both,
      'projectors.c.K.weight': [
        [2, 2],
        [1, 1, 1, 1],
      ],
      'projectors.c.V.weight': [
        [2, 2],
        [1, 1, 1, 1],
      ],
    });
    const input = await written('odd.safetensors', {
      'a.b.K': [
        [2, 2],
        [Number.NaN, 1, 2, 3],
      ],
      'a.b.V': [
        [1, 2],
        [1e6, 1],
      ],
    });
    const { code, stderr, answer } = await run(
      'project',
      projector,
      input,
      '--save',
      inFolder('odd.out.safetensors'),
      '--dtype',
      'f16',
    );
    expect(code).toBe(0);
    expect(answer.unused).toEqual(['c']);
    const counts = answer.tensors.map(
      (each: { output: { nonFinite: number } }) => each.output.nonFinite,
    );
    expect(counts).toEqual([2, 1]);
    expect(stderr).toContain('no keys or values of the teacher "c"');
    expect(stderr).toContain('spoils its row');
    expect(stderr).toContain('beyond the range of the type');
  });

  it('accepts tensors without rows, and a teacher called __proto__', async () => {
    const projector = await written('proto.safetensors', {
      'projectors.__proto__.K.weight': [
        [1, 2],
        [1, 1],
      ],
      'projectors.__proto__.V.weight': [
        [1, 2],
        [1, 2],
      ],
    });
    const input = await written('proto-kv.safetensors', {
      '__proto__.K': [[0, 2], []],
      '__proto__.V': [
        [1, 2],
        [3, 4],
      ],
    });
    const output = inFolder('proto.out.safetensors');
    expect((await run('project', projector, input, '--save', output)).code).toBe(0);
    const { tensors } = contentOf(output);
    expect(tensors.get('__proto__.K')?.shape).toEqual([0, 1]);
    expect([...numbersOf(tensors, '__proto__.V')]).toEqual([11]);
  });

  it.each<[string, Record<string, [number[], number[]]>, string[]]>([
    [
      'a missing teacher',
      { 'x.K': [[2], [1, 2]], 'x.V': [[2], [1, 2]] },
      ['no adapter for the teacher \\"x\\"'],
    ],
    [
      'another width',
      { 'a.b.K': [[3], [1, 2, 3]], 'a.b.V': [[], [1]] },
      ['has shape [3], expected [..., 2]', 'has shape [], expected [..., 2]'],
    ],
    ['keys alone', { 'a.b.K': [[2], [1, 2]] }, ['no values (V)']],
    [
      'two teachers of one adapter',
      { ...kv, 'a-b.K': [[2], [1, 2]], 'a-b.V': [[2], [1, 2]] },
      ['would share one adapter'],
    ],
    ['other names', { ...kv, weight: [[2], [1, 2]] }, ['neither keys nor values']],
    ['an empty file', {}, ['holds no keys or values']],
  ])('refuses %s', async (_, tensors, messages) => {
    const projector = await written('refusing.safetensors', both);
    const input = await written('refused.safetensors', tensors);
    const output = inFolder('never.safetensors');
    const { code, stdout } = await run('project', projector, input, '--save', output);
    expect(code).toBe(2);
    for (const message of messages) expect(stdout).toContain(message);
    expect(fs.existsSync(output)).toBe(false);
  });

  it('reports only once that a file has no keys and values', async () => {
    const projector = await written('once.safetensors', both);
    const tensors = Object.fromEntries(
      Array.from({ length: 5 }, (_, index) => [`layers.${index}.weight`, [[2], [1, 2]]]),
    ) as Record<string, [number[], number[]]>;
    const model = await written('a-model.safetensors', tensors);
    const { stdout } = await run('project', projector, model, '--save', inFolder('no.safetensors'));
    expect(JSON.parse(stdout).problems).toMatchObject([{ message: 'holds no keys or values' }]);
  });

  it.each<[string, Record<string, [number[], number[]]>, string]>([
    [
      'NaN',
      {
        ...both,
        'projectors.a_b.V.weight': [
          [2, 2],
          [0, 1, Number.NaN, 0],
        ],
      },
      'has NaN or infinite values',
    ],
    [
      'other tensors',
      { ...both, 'lm_head.weight': [[1], [1]] },
      'tensors that belong to no projector',
    ],
    ['half an adapter', identity, 'is missing'],
    [
      'a shape that does not fit',
      { ...both, 'projectors.a_b.V.weight': [[4], [0, 1, 1, 0]] },
      'expected [student, teacher]',
    ],
    [
      'widths that differ',
      {
        ...both,
        'projectors.a_b.V.weight': [
          [2, 1],
          [0, 1],
        ],
      },
      'has teacher width 1',
    ],
    ['both kinds', { ...both, 'projectors.a_b.K.0.weight': [[2], [0, 1]] }, 'elastic'],
    ['no tensors', {}, 'holds no tensors of a projector'],
  ])('refuses a projector with %s', async (_, tensors, message) => {
    const projector = await written('broken.safetensors', tensors);
    const input = await written('good-kv.safetensors', kv);
    const output = inFolder('never.safetensors');
    const { code, stdout } = await run('project', projector, input, '--save', output);
    expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining(message) });
    expect(fs.readdirSync(folder).filter((each) => /never|\.tmp$/.test(each))).toEqual([]);
  });

  it('refuses files that are cut short', async () => {
    for (const file of ['saved.pt', 'model.safetensors']) {
      const bytes = fs.readFileSync(inPackage(FIXTURES, 'two-teachers', file));
      fs.writeFileSync(inFolder(`cut-${file}`), bytes.subarray(0, bytes.length - 100));
      const { code, answer } = await run(
        'convert',
        inFolder(`cut-${file}`),
        inFolder('cut-out.pt'),
      );
      expect({ code, problem: answer.code }).toEqual({ code: 2, problem: 'refused-file' });
    }
  });

  it('refuses a folder as output', async () => {
    const projector = await written('in-folder.safetensors', both);
    const input = await written('in-folder-kv.safetensors', kv);
    for (const place of [folder, `${folder}/`, `${folder}/not-there/`]) {
      const { code, answer } = await run('project', projector, input, '--save', place);
      expect(code).toBe(2);
      expect(answer.message).toBe(`${place} is a folder`);
    }
  });

  it('refuses an output named like another container', async () => {
    const projector = await written('named.safetensors', both);
    const input = await written('named-kv.safetensors', kv);
    const { code, answer } = await run(
      'project',
      projector,
      input,
      '--save',
      inFolder('results.pt'),
    );
    expect(code).toBe(2);
    expect(answer.message).toMatch(/--save: expected a \.safetensors file, found .*results\.pt/);
  });
});

it('reports arguments that differ from the tensors', () => {
  const checkpoint = openCheckpoint(inPackage(FIXTURES, 'two-teachers/model.safetensors'));
  const metadata = new Map([
    ['student_d_model', '7'],
    ['mlp_ratio', '2.0'],
    ['teacher_configs', '{"Qwen2-7B": {"d_model": 9}, "x": {"d_model": 1}, "Qwen2.7B": 24}'],
  ]);
  const { warnings } = savedProjector({ ...checkpoint, metadata });
  checkpoint.close();
  expect(warnings).toContain('student_d_model is 7, but the tensors have 12');
  expect(warnings).toContain('teacher_configs says width 9 of "Qwen2-7B", its tensors 24');
  expect(warnings).toContain(
    'teacher_configs has "Qwen2-7B" and "Qwen2.7B", which share the adapters of Qwen2_7B',
  );
  expect(warnings).toContain('teacher_configs has "x", but no tensors for it');
  expect(warnings).toContain(
    'mlp_ratio 2 makes a hidden width of 48, but that of projectors.Qwen2_7B.K.1 is 12',
  );
});

describe('convert', () => {
  it.each([
    ['expected a .safetensors or .pt file', 'projector'],
    ['would replace the input', inPackage(FIXTURES, 'two-teachers/saved.pt')],
  ])('refuses an output with the message: %s', async (message, out) => {
    const { code, answer } = await run(
      'convert',
      `${FIXTURES}/two-teachers/saved.pt`,
      out,
      '--force',
    );
    expect(code).toBe(2);
    expect(answer.message).toContain(message);
  });
});

/** A saved projector with more constructor arguments. */
async function savedWith(name: string, more: readonly (readonly [string, PickleValue])[]) {
  const checkpoint = openCheckpoint(inPackage(FIXTURES, 'linear-one-teacher/saved.pt'));
  try {
    const projector = savedProjector(checkpoint);
    const values = new Map([...projector.arguments.values, ...more]);
    const args = { ...projector.arguments, values };
    const planned = planProjectorFiles({ ...projector, arguments: args }, 'pt', () => {});
    await writeWhole(inFolder(name), true, planned.write);
    return inFolder(name);
  } finally {
    checkpoint.close();
  }
}

describe('the conversion of a projector', () => {
  const copied = (name: string) => {
    const file = inFolder(name);
    fs.copyFileSync(inPackage(FIXTURES, 'linear-one-teacher/saved.pt'), file);
    return file;
  };

  it.each<[string, (input: string, out: string) => string, string[]]>([
    ['the input', (input) => input, ['--force']],
    ['OUT', (_, out) => out, []],
    ['OUT, with --force', (_, out) => out, ['--force']],
    ['OUT, written another way', (_, out) => `${folder}/./${path.basename(out)}`, []],
  ])('refuses a report in the place of %s', async (_, place, flags) => {
    const [input, out] = [copied('victim.pt'), inFolder('report-victim.safetensors')];
    const before = fs.readFileSync(input);
    const report = place(input, out);
    const { code, stderr, stdout } = await runHere([
      ...['kv-projector', 'convert', input, out, '-o', report, '--json', ...flags],
    ]);
    expect(code).toBe(2);
    // Of a file that does not exist, the ending is refused first: no report ends like a projector.
    const message = report === input ? 'the report would replace' : '--output: expected a .json';
    expect(stderr + stdout).toContain(message);
    expect(fs.readFileSync(input)).toEqual(before);
    expect(fs.existsSync(out)).toBe(false);
  });

  it('writes a report next to its output', async () => {
    const [input, out] = [copied('beside.pt'), inFolder('beside.safetensors')];
    const report = inFolder('beside.json');
    const { code } = await runHere([
      ...['kv-projector', 'convert', input, out, '-o', report, '--json'],
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(fs.readFileSync(report, 'utf8')).output).toBe(out);
  });

  it('offers no container that it refuses', async () => {
    const { stdout } = await runHere(['kv-projector', 'convert', '--help']);
    expect(stdout).toMatch(/--container safetensors\|pt\s/);
  });

  it('refuses a container that cannot hold projectors', async () => {
    const out = inFolder('projector.gguf');
    const { code, stdout } = await run('convert', copied('to-gguf.pt'), out);
    expect(code).toBe(2);
    expect(stdout).toMatch(/OUT: expected a \.safetensors, \.pt, .* file, found .*projector\.gguf/);
    expect(fs.existsSync(out)).toBe(false);
  });

  it('keeps None', async () => {
    const input = await savedWith('none.pt', [['mlp_ratio', null]]);
    const [middle, back] = [inFolder('none.safetensors'), inFolder('none-back.pt')];
    expect((await run('convert', input, middle)).code).toBe(0);
    expect((await run('convert', middle, back)).code).toBe(0);
    const { content } = contentOf(back);
    expect(content.has('mlp_ratio')).toBe(true);
    expect(content.get('mlp_ratio')).toBeNull();
  });

  it('refuses an argument whose name is reserved in safetensors', async () => {
    const input = await savedWith('format.pt', [['format', 'mine']]);
    const out = inFolder('format.safetensors');
    const { code, stdout } = await run('convert', input, out);
    expect(code).toBe(2);
    expect(stdout).toContain('has a reserved name');
    expect(fs.existsSync(out)).toBe(false);
    const back = inFolder('format-back.pt');
    expect((await run('convert', input, back)).code).toBe(0);
    expect(contentOf(back).content.get('format')).toBe('mine');
  });
});

describe('arguments as JSON', () => {
  it.each([
    ['1.0', { kind: 'float', value: 1 }],
    ['-0.0', { kind: 'float', value: -0 }],
    ['1e+300', { kind: 'float', value: 1e300 }],
    ['NaN', { kind: 'float', value: Number.NaN }],
    ['-Infinity', { kind: 'float', value: Number.NEGATIVE_INFINITY }],
    ['12', 12],
    ['123456789012345678901', 123456789012345678901n],
    ['"n1 \\"NaN\\""', 'n1 "NaN"'],
    ['[true, null, "s"]', { kind: 'list', items: [true, null, 's'] }],
    [
      '{"__proto__": {"1": 1, "0": 2.5}}',
      {
        kind: 'dict',
        type: 'dict',
        entries: new Map([
          [
            '__proto__',
            {
              kind: 'dict',
              type: 'dict',
              entries: new Map<string, unknown>([
                ['1', 1],
                ['0', { kind: 'float', value: 2.5 }],
              ]),
            },
          ],
        ]),
      },
    ],
  ])('are read and written again: %s', (text, value) => {
    const read = parseJson(text);
    expect(read).toEqual(value);
    expect(new JsonWriter().text('x', read ?? null)).toBe(text);
  });

  it.each([
    'xavier',
    '1-2',
    '01',
    '{"a": 1',
    '[1,]',
    '"a" "b"',
    '['.repeat(100_000),
    `"${'\\"'.repeat(100_000)}`,
    '{"a": 1, a: 2}',
    '[1 2]',
    '"a',
    '',
    `${'['.repeat(70)}1${']'.repeat(70)}`,
  ])('cannot be read from %j', (text) => {
    expect(parseJson(text)).toBeUndefined();
  });

  it('count shared values each time that they are written', () => {
    const pair = (inner: PickleValue): PickleValue => ({ kind: 'list', items: [inner, inner] });
    const held = Array.from({ length: 50 }).reduce<PickleValue>(pair, 'x');
    expect(() => new JsonWriter().text('x', held)).toThrow('more than 4194304 characters');
  });

  it('cannot be written for values that JSON lacks', () => {
    expect(() =>
      new JsonWriter().text('x', { kind: 'set', type: 'set', items: new Set() }),
    ).toThrow('cannot store');
    expect(() => new JsonWriter().text('x', new Uint8Array(1))).toThrow('cannot store');
  });
});
