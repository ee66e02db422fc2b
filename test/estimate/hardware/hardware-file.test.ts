import fs from 'node:fs';
import { Ajv2020, type SchemaObject } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { UserError } from '../../../src/base/errors.js';
import { parseDocument } from '../../../src/config/document.js';
import { clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import { GPUS, gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import {
  hardwareJsonSchema,
  hardwareOfDocument,
  onlyGpu,
} from '../../../src/estimate/hardware/hardware-file.js';
import { MACHINES, withKnownHardware } from '../../../src/estimate/hardware/machines.js';
import { inPackage, readJson } from '../../fixtures.js';

const read = (text: string) => hardwareOfDocument(parseDocument(text, 'own.yaml'));

/** Problems as `2:12 gpus.a.memory: must be …; did you mean …`. */
function mistakes(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return error.problems.map(
      ({ line, column, path, message, suggestion }) =>
        `${line}:${column} ${path}: ${message}${suggestion ? `; ${suggestion}` : ''}`,
    );
  }
  return [];
}

describe('the example file', () => {
  const text = fs.readFileSync(inPackage('configs/hardware/example.yaml'), 'utf8');
  const { gpus, machines } = read(text);

  it('has a GPU that extends one of the table', () => {
    const base = gpuNamed('rtx-4090');
    expect(gpus[0]).toEqual({
      ...base,
      name: 'rtx-4090-300w',
      title: 'NVIDIA GeForce RTX 4090, as rtx-4090-300w',
      peakFlops: { ...base.peakFlops, f16: 150e12, bf16: 150e12 },
      source: `measured at 300 W; the rest: ${base.source}`,
    });
  });

  it('has a GPU that is not in the table', () => {
    expect(gpus[1]).toEqual({
      name: 'card-of-my-own',
      title: 'A card of my own',
      kind: 'nvidia',
      memoryBytes: 24_000_000_000,
      usable: { bytes: 23_500_000_000, source: 'own.yaml' },
      bandwidth: 1_008_000_000_000,
      peakFlops: { f32: 40_000_000_000_000 },
      links: [{ name: 'PCIe 4 x16', bandwidth: 32_000_000_000, gpus: 4 }],
      source: 'own.yaml',
    });
  });

  it('has a machine with its first GPU', () => {
    expect(machines).toEqual([
      {
        name: 'workstation',
        title: 'workstation',
        gpu: gpus[0],
        gpus: 2,
        network: {
          name: 'Ethernet, 10 Gbit/s of 2',
          bandwidth: 625e6,
          gpus: Number.POSITIVE_INFINITY,
        },
        source: 'own.yaml',
      },
    ]);
  });

  it('matches the JSON Schema in docs, which equals that of the code', () => {
    const schema = readJson<SchemaObject>('docs/schemas/hardware.schema.json');
    expect(schema).toEqual(JSON.parse(JSON.stringify(hardwareJsonSchema())));
    const validate = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true }).compile(
      schema,
    );
    expect(validate(parse(text)), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ gpus: { a: { memroy: '24GB' } } })).toBe(false);
  });
});

describe('a hardware file', () => {
  it('may change a GPU of the table under the same name', () => {
    const [gpu] = read('gpus: { t4: { extends: t4, memory: 15GiB } }').gpus;
    expect(gpu?.memoryBytes).toBe(15 * 2 ** 30);
    expect(gpu?.bandwidth).toBe(300e9);
  });

  it('replaces GPUs and machines of the table by name', () => {
    const own = read(
      'gpus: { t4: { extends: t4, memory: 15GB } }\nmachines: { dgx-h100: { gpu: t4, gpus: 2 } }',
    );
    const { gpus, machines } = withKnownHardware(own);
    expect(gpus.filter(({ name }) => name === 't4')).toEqual(own.gpus);
    expect(machines.filter(({ name }) => name === 'dgx-h100')).toEqual(own.machines);
    expect([gpus.length, machines.length]).toEqual([GPUS.length, MACHINES.length]);
    expect(clusterNamed('t4', undefined, own).gpu.memoryBytes).toBe(15e9);
    expect(clusterNamed('dgx-h100', undefined, own)).toMatchObject({ gpus: 2, gpu: own.gpus[0] });
  });

  it('may extend a GPU that comes later', () => {
    const { gpus } = read('gpus: { a: { extends: b, memory: 1GB }, b: { extends: t4 } }');
    expect(gpus.map(({ name, bandwidth }) => [name, bandwidth])).toEqual([
      ['a', 300e9],
      ['b', 300e9],
    ]);
  });

  it('is read without rounding', () => {
    const [gpu] = read(
      'gpus: { a: { memory: 24564MiB, bandwidth: 1.008001TB/s, peak: { f8: 1.9789PFLOPS, int8: 660.6 TOPS } } }',
    ).gpus;
    expect(gpu).toMatchObject({
      memoryBytes: 24_564 * 2 ** 20,
      bandwidth: 1_008_001_000_000,
      peakFlops: { f8: 1_978_900_000_000_000, int8: 660_600_000_000_000 },
    });
  });

  it('inherits the available memory unless the size changes', () => {
    const usable = (more: string) => read(`gpus: { a: { extends: l4, ${more} } }`).gpus[0]?.usable;
    expect(usable('title: A')).toEqual(gpuNamed('l4').usable);
    expect(usable('memory: 48GB')).toBeUndefined();
    expect(usable('memory: 48GB, usable: 46GB')).toEqual({ bytes: 46e9, source: 'own.yaml' });
  });

  it('inherits the kind unless it has one', () => {
    const kind = (entry: string) => read(`gpus: { a: { ${entry} } }`).gpus[0]?.kind;
    expect(kind('extends: t4')).toBe('nvidia');
    expect(kind('extends: t4, kind: other')).toBe('other');
    expect(kind('memory: 1GB, bandwidth: 1GB/s')).toBe('other');
  });

  it('has its links sorted by bandwidth', () => {
    const link = (rate: string) => `{ name: ${rate}, bandwidth: ${rate} }`;
    const [gpu] = read(
      `gpus: { a: { extends: t4, links: [${link('1GB/s')}, ${link('2GB/s')}] } }`,
    ).gpus;
    expect(gpu?.links.map(({ bandwidth }) => bandwidth)).toEqual([2e9, 1e9]);
  });
});

describe('a mistake is reported with its place', () => {
  it.each<[string, string, string[]]>([
    [
      'a unit that is not of a size',
      'gpus:\n  a:\n    extends: t4\n    memory: 24 GB/s\n',
      ['4:13 gpus.a.memory: must be bytes above zero, such as 24GB, but is "24 GB/s"'],
    ],
    [
      'zero',
      'gpus:\n  a: { extends: t4, bandwidth: 0 }\n',
      ['2:32 gpus.a.bandwidth: must be bytes/s above zero, such as 1.008TB/s, but is 0'],
    ],
    [
      'numbers without a unit',
      'gpus:\n  a: { extends: t4, memory: 24, bandwidth: 900, peak: { f16: 165 } }\n',
      [
        '2:29 gpus.a.memory: must have its unit, such as 24GB, but is 24',
        '2:44 gpus.a.bandwidth: must have its unit, such as 1.008TB/s, but is 900',
        '2:62 gpus.a.peak.f16: must have its unit, such as 165TFLOP/s, but is 165',
      ],
    ],
    [
      'a negative number',
      'gpus:\n  a: { extends: t4, peak: { f16: -3TFLOP/s } }\n',
      ['2:34 gpus.a.peak.f16: must be FLOP/s above zero, such as 165TFLOP/s, but is "-3TFLOP/s"'],
    ],
    [
      'an unknown key',
      'gpus:\n  a: { extends: t4, memroy: 3GB }\n',
      ['2:21 gpus.a.memroy: unknown key "memroy"; did you mean "memory"?'],
    ],
    [
      'an unknown type',
      'gpus:\n  a: { extends: t4, peak: { fp16: 3TFLOP/s } }\n',
      ['2:29 gpus.a.peak.fp16: unknown key "fp16"; did you mean "f16"?'],
    ],
    [
      'half a GPU',
      'gpus:\n  a: { memory: 3GB }\n',
      [
        '2:3 gpus.a.bandwidth: the key "bandwidth" is missing, which only a GPU with "extends" can omit',
      ],
    ],
    [
      'an unknown base',
      'gpus:\n  a: { extends: rtx-4091 }\n  b: { extends: a }\n',
      ['2:17 gpus.a.extends: unknown GPU "rtx-4091"; did you mean rtx-4090?'],
    ],
    [
      'a circular base',
      'gpus:\n  a: { extends: b }\n  b: { extends: a }\n',
      ['3:17 gpus.b.extends: "a" and this GPU extend each other; extend a GPU of the table'],
    ],
    [
      'a machine without GPUs',
      'machines:\n  m: { gpu: a, gpus: 0 }\n',
      ['2:22 machines.m.gpus: must be an integer ≥ 1 and ≤ 1000000, but is 0'],
    ],
    [
      'a machine of an unknown GPU',
      'gpus: { own: { extends: t4 } }\nmachines:\n  m: { gpu: owm, gpus: 2 }\n',
      ['3:13 machines.m.gpu: unknown GPU "owm"; did you mean own?'],
    ],
    [
      'a machine with the name of a GPU of the table',
      'machines:\n  h100-80gb: { gpu: t4, gpus: 2 }\n',
      [
        '2:3 machines.h100-80gb: "h100-80gb" is already the name of a GPU; choose a name that no GPU or machine has',
      ],
    ],
    [
      'a machine with the name of a GPU of the file',
      'gpus:\n  a: { extends: t4 }\nmachines:\n  a: { gpu: a, gpus: 2 }\n',
      ['4:3 machines.a: "a" is already the name of a GPU'],
    ],
    [
      'a GPU with the name of a machine',
      'gpus:\n  dgx-h100: { extends: t4 }\n',
      ['2:3 gpus.dgx-h100: "dgx-h100" is already the name of a machine'],
    ],
    [
      'more usable memory than the chips hold',
      'gpus:\n  a: { extends: t4, memory: 16GB, usable: 16.1GiB }\n',
      [
        '2:43 gpus.a.usable: must be at most the memory with its label in GiB, 17179869184 bytes, but is 17287243366',
      ],
    ],
    ['a hostile name', 'gpus:\n  __proto__: { extends: t4 }\n', ['2:3']],
    ['a name with a space', 'gpus:\n  "a b": { extends: t4 }\n', ['2:3']],
  ])('%s', (_, text, expected) => {
    const messages = mistakes(text);
    expect(messages).toHaveLength(expected.length);
    for (const [at, start] of expected.entries()) {
      expect(messages[at]?.slice(0, start.length)).toBe(start);
    }
  });
});

describe('the only GPU', () => {
  it('is used where none is named', () => {
    expect(onlyGpu(read('gpus: { a: { extends: t4 } }'), 'own.yaml').name).toBe('a');
  });

  it.each([
    ['{}', 'own.yaml describes no GPU'],
    ['gpus: { a: { extends: t4 }, b: { extends: t4 } }', 'own.yaml describes 2 GPUs'],
  ])('is missing in %s', (text, message) => {
    expect(() => onlyGpu(read(text), 'own.yaml')).toThrow(message);
  });
});
