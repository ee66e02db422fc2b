import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../src/base/errors.js';
import { ruleOf } from '../../../../src/checkpoint/checkpoint-rules.js';
import type { StoredTensor } from '../../../../src/checkpoint/stored-tensor.js';
import { readTensor } from '../../../../src/checkpoint/view.js';
import { SRTE_RULES } from '../../../../src/convert/conversion/conversion-rules.js';
import { findSrteTables } from '../../../../src/convert/conversion/srte/srte-tables.js';
import { checkpointOf, storageOf, tensorIn, tensorOf } from '../../../checkpoint/stored-tensors.js';

/** Table of zeros; by default [1, 3, 2]. */
const table = (shape = [1, 3, 2]) =>
  tensorOf(new Array<number>(shape.reduce((product, size) => product * size, 1)).fill(0), shape);

const pair = (layer: string, rank = 1, hidden = 2): Record<string, StoredTensor> => ({
  [`${layer}.lowrank`]: table([1, 3, rank]),
  [`${layer}.proj.weight`]: table([hidden, rank]),
});

const tablesOf = (...args: Parameters<typeof checkpointOf>) =>
  findSrteTables(checkpointOf(...args));

describe('the SRTE tables of a checkpoint', () => {
  it('are found for each layer, without their first axis', () => {
    const zeroth = tensorOf([0, 1, 2, 3, 4, 5], [1, 3, 2]);
    const first = table();
    const result = tablesOf({
      'layers.1.srte.freqs': first,
      'embed_tokens.weight': table([4, 2]),
      'layers.0.srte.freqs': zeroth,
    });
    expect(result).toMatchObject({ sharing: 'per-layer', positions: 3, hidden: 2, rank: null });
    expect(result.tables.map(({ name }) => name)).toEqual([
      'layers.0.srte.freqs',
      'layers.1.srte.freqs',
    ]);
    expect(result.tables[0].rows).toMatchObject({ shape: [3, 2], strides: [2, 1] });
    expect(readTensor(result.tables[0].rows)).toEqual(readTensor(zeroth));
  });

  it('are sorted by number, not by digits', () => {
    const names = Array.from({ length: 12 }, (_, layer) => `layers.${layer}.srte.freqs`);
    const result = tablesOf(new Map(names.toSorted().map((name) => [name, table()])));
    expect(result.tables.map(({ name }) => name)).toEqual(names);
  });

  it('may be low-rank pairs', () => {
    const result = tablesOf({ ...pair('layers.0.srte'), ...pair('layers.1.srte') });
    expect(result).toMatchObject({ sharing: 'per-layer', positions: 3, hidden: 2, rank: 1 });
    expect(result.tables[1]).toMatchObject({
      name: 'layers.1.srte.lowrank',
      rows: { shape: [3, 1] },
      projection: { shape: [2, 1] },
    });
  });

  it.each([
    ['module.', 'module.'],
    ['_orig_mod.module.', '_orig_mod.module.'],
    ['model.', 'model.decoder.'],
  ])('are found with the prefix %s', (before, prefix) => {
    const result = tablesOf({
      [`${before}embed_tokens.weight`]: table([4, 2]),
      [`${prefix}layers.0.srte.freqs`]: table(),
      [`${prefix}layers.1._orig_mod.srte.freqs`]: table(),
    });
    expect(result.tables.map(({ name }) => name)).toEqual([
      `${prefix}layers.0.srte.freqs`,
      `${prefix}layers.1._orig_mod.srte.freqs`,
    ]);
  });

  it('exclude tensors with similar names', () => {
    const result = tablesOf({
      'layers.0.srte.freqs': table(),
      'Layers.1.srte.freqs': table(),
      'layers.1.srte.freqs.old': table(),
      'layers.1.2.srte.freqs': table(),
      'xlayers.1.srte.freqs': table(),
      'unshared_srte.freqs': table(),
      'layers.0.srte.inv_freq': table(),
    });
    expect(result.tables).toHaveLength(1);
  });

  it.each([1, 3])('are one if the model shares it, with %d layers that name it', (layers) => {
    const shared = table();
    const result = tablesOf({
      ...Object.fromEntries(
        Array.from({ length: layers }, (_, layer) => [`layers.${layer}.srte.freqs`, shared]),
      ),
      'shared_srte.freqs': shared,
    });
    expect(result).toMatchObject({ sharing: 'shared', tables: [{ name: 'shared_srte.freqs' }] });
  });

  it('are one if the layers name it only in metadata', () => {
    const result = tablesOf(
      { 'shared_srte.lowrank': table([1, 3, 1]), 'shared_srte.proj.weight': table([2, 1]) },
      {
        aliases: new Map([
          ['layers.0.srte.lowrank', 'shared_srte.lowrank'],
          ['layers.0.srte.proj.weight', 'shared_srte.proj.weight'],
          ['lm_head.weight', 'embed_tokens.weight'],
        ]),
      },
    );
    expect(result).toMatchObject({ sharing: 'shared', rank: 1 });
  });

  it('are one if all layers have the same tensor, under any name', () => {
    const shared = table();
    const result = tablesOf({
      'layers.0.srte.freqs': shared,
      'layers.1.srte.freqs': { ...shared },
    });
    expect(result).toMatchObject({ sharing: 'shared', tables: [{ name: 'layers.0.srte.freqs' }] });
  });

  it('are several if only some layers share one', () => {
    const shared = table();
    const result = tablesOf({
      'layers.0.srte.freqs': shared,
      'layers.1.srte.freqs': shared,
      'layers.2.srte.freqs': table(),
    });
    expect(result).toMatchObject({ sharing: 'per-layer' });
    expect(result.tables).toHaveLength(3);
  });

  it('are one if the other layers name it only in metadata', () => {
    const result = tablesOf(
      { 'layers.0.srte.freqs': table() },
      {
        aliases: new Map([
          ['layers.1.srte.freqs', 'layers.0.srte.freqs'],
          ['layers.2.srte.freqs', 'layers.9.srte.freqs'],
        ]),
      },
    );
    expect(result).toMatchObject({ sharing: 'shared', tables: [{ name: 'layers.0.srte.freqs' }] });
  });

  it.each(['lowrank', 'proj.weight'])('are several if only %s is the same', (part) => {
    const layers = { ...pair('layers.0.srte'), ...pair('layers.1.srte') };
    const result = tablesOf(
      new Map(
        Object.entries(layers).map(([name, tensor]) => [
          name,
          name.endsWith(part) ? (layers[`layers.0.srte.${part}`] ?? tensor) : tensor,
        ]),
      ),
    );
    expect(result).toMatchObject({ sharing: 'per-layer' });
  });
});

const seen = new Set<string>();

/** Problems of the tables of a checkpoint. */
function problemsOf(...args: Parameters<typeof checkpointOf>) {
  try {
    tablesOf(...args);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    for (const { rule } of error.problems) seen.add(rule ?? '');
    return error.problems;
  }
  return [];
}

const only = (message: string) => [
  expect.objectContaining({ message: expect.stringContaining(message) }),
];

describe('a checkpoint', () => {
  const refused: [rule: string, what: string, ...Parameters<typeof checkpointOf>][] = [
    ['srte-present', 'without any table', { 'embed_tokens.weight': table([4, 2]) }],
    ['srte-present', 'with no tensor at all', {}],
    [
      'srte-one-model',
      'with the tables of two models',
      { 'layers.0.srte.freqs': table(), 'ema.layers.0.srte.freqs': table() },
    ],
    [
      'srte-layers-complete',
      'that begins at layer 1',
      { 'layers.1.srte.freqs': table(), 'layers.2.srte.freqs': table() },
    ],
    [
      'srte-layers-complete',
      'without a layer in the middle',
      {
        'layers.0.srte.freqs': table(),
        'layers.1.srte.freqs': table(),
        'layers.3.srte.freqs': table(),
      },
    ],
    ['srte-parts', 'with half a pair', { 'layers.0.srte.lowrank': table([1, 3, 1]) }],
    ['srte-parts', 'with the other half', { 'layers.0.srte.proj.weight': table([2, 1]) }],
    [
      'srte-parts',
      'with a table and a pair',
      { 'layers.0.srte.freqs': table(), ...pair('layers.0.srte') },
    ],
    ['srte-shape', 'with a matrix', { 'layers.0.srte.freqs': table([3, 2]) }],
    ['srte-shape', 'with four axes', { 'layers.0.srte.freqs': table([1, 1, 3, 2]) }],
    ['srte-shape', 'with a batch of two', { 'layers.0.srte.freqs': table([2, 3, 2]) }],
    ['srte-shape', 'without rows', { 'layers.0.srte.freqs': table([1, 0, 2]) }],
    ['srte-shape', 'without columns', { 'layers.0.srte.freqs': table([1, 3, 0]) }],
    [
      'srte-shape',
      'with factors that do not fit',
      { 'layers.0.srte.lowrank': table([1, 3, 2]), 'layers.0.srte.proj.weight': table([2, 1]) },
    ],
    [
      'srte-shape',
      'with a projection of three axes',
      { 'layers.0.srte.lowrank': table([1, 3, 1]), 'layers.0.srte.proj.weight': table([2, 1, 1]) },
    ],
    [
      'srte-shape',
      'with an empty projection',
      { 'layers.0.srte.lowrank': table([1, 3, 1]), 'layers.0.srte.proj.weight': table([0, 1]) },
    ],
    [
      'srte-alike',
      'with another width',
      { 'layers.0.srte.freqs': table(), 'layers.1.srte.freqs': table([1, 3, 4]) },
    ],
    [
      'srte-alike',
      'with another length',
      { 'layers.0.srte.freqs': table(), 'layers.1.srte.freqs': table([1, 4, 2]) },
    ],
    [
      'srte-alike',
      'with a table and a pair of the same shape in two layers',
      { 'layers.0.srte.freqs': table(), ...pair('layers.1.srte') },
    ],
    [
      'srte-alike',
      'with pairs of different ranks',
      { ...pair('layers.0.srte'), ...pair('layers.1.srte', 2) },
    ],
    [
      'srte-one-sharing',
      'with a shared table and one of a layer',
      { 'layers.0.srte.freqs': table(), 'shared_srte.freqs': table() },
    ],
  ];
  it.each(refused)('is refused by %s: %s', (rule, _what, ...checkpoint) => {
    expect(problemsOf(...checkpoint).map((problem) => problem.rule)).toEqual([rule]);
  });

  it.each(['00', '01', '0x1', '1e3', '', '-1', ' 1', '٣', 'x', '100000', '99999999999'])(
    'is refused by srte-layer-number: layer %j',
    (layer) => {
      const problems = problemsOf({
        'layers.0.srte.freqs': table(),
        [`layers.${layer}.srte.freqs`]: table(),
      });
      expect(problems).toMatchObject([
        { rule: 'srte-layer-number', path: `tensor "layers.${layer}.srte.freqs"` },
      ]);
    },
  );

  it.each(['I64', 'BOOL', 'C64'] as const)('is refused by srte-dtype: %s', (dtype) => {
    const tensor = tensorIn(storageOf(new Uint8Array(48)), [1, 3, 2], { dtype });
    expect(problemsOf({ 'layers.0.srte.freqs': tensor })).toMatchObject([
      { rule: 'srte-dtype', message: `holds ${dtype}, expected floating-point numbers` },
    ]);
  });

  it('is refused if two names become one', () => {
    const names = ['layers.0.srte.freqs', 'layers.0._orig_mod.srte.freqs'];
    let thrown: unknown;
    try {
      tablesOf(new Map(names.map((name) => [name, table()])));
    } catch (error) {
      thrown = error;
    }
    expect(ruleOf(thrown)).toBe('names-collide');
  });

  it('is refused with all its problems, and equal ones of many layers once', () => {
    const names = ['layers.0.srte.freqs', 'layers.1.srte.freqs', 'layers.2.srte.freqs'];
    const half = { 'layers.3.srte.lowrank': table([1, 3, 1]) };
    const flat = Object.fromEntries(names.map((name) => [name, table([3, 2])]));
    expect(problemsOf({ ...flat, ...half })).toMatchObject([
      {
        severity: 'error',
        file: 'model.pt',
        path: 'tensor "layers.0.srte.freqs" and 2 more',
        message: 'has shape [3, 2], expected [1, L, H], none of them 0',
      },
      { rule: 'srte-parts', path: 'tensor "layers.3.srte.lowrank"' },
    ]);
  });

  it('is refused with a suggestion if the table is computed', () => {
    const [problem] = problemsOf({ 'layers.0.srte.inv_freq': table([1]) });
    expect(problem?.suggestion).toContain('sincos');
  });

  it('is refused with the names of the fault', () => {
    expect(
      problemsOf({ 'layers.0.srte.freqs': table(), 'ema.layers.0.srte.freqs': table() }),
    ).toEqual(only('"", "ema."'));
    expect(problemsOf({ 'layers.1.srte.freqs': table(), 'layers.3.srte.freqs': table() })).toEqual(
      only('for 2 layers, the last of them number 3, but none for layer 0'),
    );
    expect(problemsOf({ 'layers.0.srte.freqs': table(), ...pair('layers.1.srte') })).toEqual(
      only('shape [3, 2] and rank 1, expected shape [3, 2] as in "layers.0.srte.freqs"'),
    );
  });

  it('is tested against every rule', () => {
    // The rule for values is tested in refusals.test.ts.
    const ofNames = Object.keys(SRTE_RULES).filter((rule) => rule !== 'srte-finite');
    expect([...seen].sort()).toEqual(ofNames.sort());
  });
});
