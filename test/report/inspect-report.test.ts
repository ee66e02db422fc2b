import { describe, expect, it } from 'vitest';
import { shortened } from '../../src/base/text/words.js';
import type { Checkpoint } from '../../src/checkpoint/checkpoint.js';
import type { Measurement, Statistics } from '../../src/checkpoint/statistics.js';
import { describedTensors, summarise } from '../../src/checkpoint/summary.js';
import { inspectReport } from '../../src/report/inspect/inspect-report.js';
import { plainText } from '../../src/report/inspect/inspect-tensors.js';
import { render } from '../../src/report/render/render.js';
import { fileOf } from '../checkpoint/byte-files.js';
import { checkpointOf, storageOf, tensorIn } from '../checkpoint/stored-tensors.js';

const file = fileOf(new Uint8Array(2000));
const place = (position: number, bytes = 400) => ({
  ...storageOf(new Uint8Array(bytes), file),
  position,
});
const embed = tensorIn(place(0), [10, 10]);
const weight = (position: number) => tensorIn(place(position, 24), [2, 3]);
const bias = (position: number) => tensorIn(place(position, 4), [2], { dtype: 'F16' });

const layer = (n: number) => [
  [`layers.${n}.weight`, weight(400 + 30 * n)] as const,
  [`layers.${n}.bias`, bias(425 + 30 * n)] as const,
];
const MODEL = new Map([['embed', embed], ...layer(0), ...layer(1), ['head', embed]]);

interface Shown {
  readonly measured?: ReadonlyMap<string, Measurement>;
  readonly filter?: string;
  readonly listed?: boolean;
  readonly details?: boolean;
  readonly width?: number;
}

function resultOf(checkpoint: Checkpoint, { measured = new Map(), filter }: Shown) {
  const chosen = filter
    ? new Map([...checkpoint.tensors].filter(([name]) => name.startsWith(filter)))
    : checkpoint.tensors;
  return {
    schema: 'minimind/inspect@1' as const,
    model: null,
    ...summarise(checkpoint),
    tensors: describedTensors(chosen, measured),
    ...(filter !== undefined && { filter }),
  };
}

/** Output on a terminal of 80 columns without colours. */
const shown = (checkpoint: Checkpoint, how: Shown = {}) =>
  render(inspectReport(resultOf(checkpoint, how), { listed: how.listed ?? false }), 'table', {
    width: how.width ?? 80,
    colourLevel: 0,
    details: how.details ?? false,
  });

const csv = (checkpoint: Checkpoint, how: Shown = {}) =>
  render(inspectReport(resultOf(checkpoint, how), { listed: how.listed ?? false }), 'csv', {
    width: 80,
    colourLevel: 0,
  });

describe('the index of a checkpoint', () => {
  it('is shown by layer, with shared tensors and other content', async () => {
    const text = await shown(
      checkpointOf(MODEL, {
        stateDict: ['ema', 'model'],
        content: new Map<string, number | string>([
          ['step', 30],
          ['optimizer', 'adamw'],
        ]),
      }),
    );
    expect(text).toBe(`\
PyTorch (zip) · 2.0 kB · 5 tensors · 116 values · f32, f16
  file        model.pt
  state dict  ema.model
  shared      embed, head are one tensor
  also holds  step and optimizer

component   tensors  values   size   share
──────────  ───────  ──────  ─────  ──────  ────────────
embed             1     100  400 B   46.7%  ████████████
layers.0–1        4      16   56 B   6.54%  █▋
head              1     100  400 B   46.7%  ████████████
total             6     216  856 B  100.0%
distinct          5     116  456 B   53.3%

Details: --details, --tensors
`);
  });

  it('has shared tensors and other content in its details', async () => {
    const content = new Map<string, number | string>([
      ['step', 30],
      ['optimizer', 'adamw'],
    ]);
    expect(await shown(checkpointOf(MODEL, { content }), { details: true })).toContain(`
Totals
          tensors  values   size
────────  ───────  ──────  ─────
total           6     216  856 B
distinct        5     116  456 B
  F32           3     112  448 B
  F16           2       4    8 B

Components
component            layers  tensors each  values each  size each  types
───────────────────  ──────  ────────────  ───────────  ─────────  ────────
embed                                   1          100      400 B  F32
layers.0 … layers.1       2             2            8       28 B  F32, F16
head                                    1          100      400 B  F32

Shared tensors
kind        names   size  tensors
──────────  ─────  ─────  ───────────
one tensor      2  400 B  embed, head

Other content
key        type  value
─────────  ────  ─────
step       int   30
optimizer  str   adamw
`);
  });

  it('is shown for safetensors in several files', async () => {
    const text = await shown(
      checkpointOf(new Map([['embed', embed]]), {
        format: 'safetensors',
        path: 'folder',
        files: [file, file],
        metadata: new Map([['format', 'pt']]),
        aliases: new Map([['head', 'embed']]),
      }),
    );
    expect(text).toBe(`\
safetensors · 4.0 kB · 1 tensor · 100 values · f32
  file    folder (2 files)
  shared  embed, head are one tensor

component  tensors  values   size   share
─────────  ───────  ──────  ─────  ──────  ────────────
embed            1     100  400 B  100.0%  ████████████
total            1     100  400 B  100.0%

Details: --details, --tensors
`);
  });

  it('shows the stored bytes that are in no tensor', async () => {
    const part = tensorIn(place(0), [2, 2]);
    expect(await shown(checkpointOf({ part }))).toContain(
      '  unused  384 B of the stored data is in no tensor\n',
    );
    expect(await shown(checkpointOf({ part }), { details: true })).toMatch(/^stored {3,}400 B$/m);
    expect(await shown(checkpointOf({ embed }))).not.toContain('stored');
  });

  it('is short for a file without tensors', async () => {
    expect(await shown(checkpointOf({}, { files: [file] }))).toBe(`\
PyTorch (zip) · 2.0 kB · 0 tensors · 0 values
  file  model.pt

Details: --details, --tensors
`);
  });

  it('shows the ten largest components, in the order of the file', async () => {
    const big = (n: number) => [`part${n}.w`, tensorIn(place(0), [n, 2])] as const;
    const tensors = new Map(Array.from({ length: 14 }, (_, n) => big(n + 1)));
    const text = await shown(checkpointOf(tensors));
    expect(text.match(/^part\d+/gm)).toEqual(Array.from({ length: 10 }, (_, n) => `part${n + 5}`));
    expect(text).toContain('… 4 more: --details');
    expect(text.split('\n').length).toBeLessThanOrEqual(24);
  });

  it('has the model, its parameters and its SRTE in the first line', async () => {
    const result = {
      ...resultOf(checkpointOf({ embed }), {}),
      model: {
        family: 'hybrid',
        config: 'config.yaml',
        srte: { sharing: 'shared', form: 'low-rank' },
      },
      parameters: 22_143_967_232,
    } as const;
    const report = inspectReport(result, { listed: false });
    expect(report.verdict?.text).toBe(
      'PyTorch (zip) · 2.0 kB · 1 tensor · 22.1B parameters · f32 · hybrid model, shared low-rank SRTE',
    );
    expect(report.next).toBe('minimind verify model.pt');
  });

  it.each([
    [[0, 1, 2], 'h.0 … h.2'],
    [[0, 2, 4], 'h.0, 2, 4'],
    [[0, 1, 2, 5, 7, 8], 'h.0–2, 5, 7–8'],
    [[3], 'h.3'],
  ])('shows the layers %j as %j', async (layers, label) => {
    const tensors = new Map(layers.map((n) => [`h.${n}.w`, embed]));
    expect(await csv(checkpointOf(tensors))).toContain(`\n${quoted(label)},`);
  });

  it('shows layers without a name by number', async () => {
    const tensors = new Map([
      ['0.w', embed],
      ['1.w', embed],
    ]);
    expect(await csv(checkpointOf(tensors))).toContain('\n0 … 1,2,1,');
  });
});

const quoted = (text: string) => (text.includes(',') ? `"${text}"` : text);

const HASH = '0123456789abcdef'.repeat(4);
const STATS: Statistics = {
  min: -1.23456,
  max: 1e30,
  mean: 0.00001234,
  standardDeviation: 0.25,
  norm: 1234,
  zeros: 4321,
  nan: 0,
  positiveInfinity: 0,
  negativeInfinity: 0,
};

describe('the list of tensors', () => {
  it('shows shared tensors and hashes', async () => {
    const measured = new Map([['embed', { sha256: HASH }]]);
    const text = await shown(checkpointOf({ embed, head: embed }), { listed: true, measured });
    expect(text).toContain(`
Tensors
tensor  type     shape   size  shared with  sha256
──────  ────  ────────  ─────  ───────────  ─────────────
embed   F32   [10, 10]  400 B  head         0123456789ab…
head    F32   [10, 10]  400 B  embed        …

The first 12 of the 64 characters of each sha256; --json and --format csv have
all.
`);
  });

  it('shows the number of shared names', async () => {
    const tensors = new Map(Array.from({ length: 5 }, (_, n) => [`h.${n}`, embed]));
    const text = await shown(checkpointOf(tensors), { listed: true });
    expect(text).toMatch(/^h\.0 {5}F32.* h\.1 … \(5 names\)$/m);
    expect(text).toMatch(/^h\.4 {5}F32.* h\.0 … \(5 names\)$/m);
    expect(text).toContain('  shared  h.0, h.1 … h.4 are one tensor\n');
  });

  it('has only tensors that match the filter', async () => {
    const text = await shown(checkpointOf(MODEL), { listed: true, filter: 'layers.1' });
    expect(text).toContain('Tensors that match layers.1: 2 of 6\n');
    expect(text).not.toContain('layers.0');
  });

  it('shows statistics', async () => {
    const empty = { ...STATS, min: null, max: null, mean: null, standardDeviation: null, norm: 0 };
    const measured = new Map([
      ['embed', { stats: STATS }],
      ['head', { stats: empty }],
    ]);
    const text = await shown(checkpointOf({ embed, head: embed }), { listed: true, measured });
    expect(text).toContain(
      `
Values
tensor    min      max     mean  deviation  norm  zeros
──────  ─────  ───────  ───────  ─────────  ────  ─────
embed   −1.23  1.00e30  1.23e-5      0.250  1234  4,321
head        –        –        –          –     0  4,321

All values are finite.
`,
    );
  });

  it('shows values that are not finite', async () => {
    const stats = { ...STATS, nan: 3, negativeInfinity: 1 };
    const measured = new Map([['z', { stats }]]);
    const complex = tensorIn(place(0), [2], { dtype: 'C64' });
    const text = await shown(checkpointOf({ z: complex }), { listed: true, measured });
    expect(text).toMatch(/zeros {2}NaN {2}\+Inf {2}−Inf$/m);
    expect(text).toMatch(/4,321 {4}3 {5}0 {5}1$/m);
    expect(text).toContain('cover the finite values');
    expect(text).toContain('moduli');
  });

  it('is ordered by layers and experts', async () => {
    const names = ['h.10.e.10.w', 'h.10.e.2.w', 'h.2.w', 'h.1.b', 'h.1.a', 'x', 'h.', 'y.0'];
    const text = await csv(checkpointOf(new Map(names.map((name) => [name, embed]))), {
      listed: true,
    });
    const shownNames = text.trim().split('\n').slice(1);
    expect(shownNames.map((line) => line.split(',')[0])).toEqual([
      ...['h.', 'h.1.b', 'h.1.a', 'h.2.w', 'h.10.e.2.w', 'h.10.e.10.w', 'x', 'y.0'],
    ]);
  });

  it('cuts long names in the middle, to fit the terminal', async () => {
    const name = `layers.0.${'block.'.repeat(12)}down_proj.weight`;
    const checkpoint = checkpointOf(new Map([[name, embed]]));
    const text = await shown(checkpoint, { listed: true, width: 60 });
    expect(text).toMatch(/^layers\.0\.[a-z.]+….*down_proj\.weight {2}F32 /m);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
    expect(await shown(checkpoint, { listed: true, width: 200 })).toContain(name);
  });

  it('has all fields in CSV', async () => {
    const measured = new Map([['embed', { sha256: HASH, stats: STATS }]]);
    const text = await csv(checkpointOf({ embed, head: embed }), { listed: true, measured });
    expect(text).toBe(`\
tensor,dtype,shape,elements,bytes,shared_with,sha256,min,max,mean,standard_deviation,norm,zeros,nan,positive_infinity,negative_infinity
embed,F32,"[10, 10]",100,400,head,${HASH},-1.23456,1e+30,0.00001234,0.25,1234,4321,0,0,0
head,F32,"[10, 10]",100,400,embed,,,,,,,,,,
`);
  });
});

describe('untrusted text', () => {
  const long = 'x'.repeat(100_000);

  it('is cut in tables, and whole in CSV', async () => {
    const checkpoint = checkpointOf(new Map([[long, embed]]), {
      content: new Map([[long, long]]),
      aliases: new Map([[long, long]]),
      metadata: new Map([[long, long]]),
      stateDict: [long],
    });
    expect((await shown(checkpoint, { listed: true })).length).toBeLessThan(5000);
    expect((await shown(checkpoint)).length).toBeLessThan(5000);
    expect(await csv(checkpoint, { listed: true })).toContain(long);
  });

  it('is limited in number', async () => {
    const content = new Map(Array.from({ length: 250 }, (_, n) => [`key${n}.`, n]));
    const aliases = new Map(Array.from({ length: 130 }, (_, n) => [`alias${n}.`, 'embed']));
    const text = await shown(checkpointOf({ embed }, { content, aliases }), { details: true });
    expect(text).toContain('key99.');
    expect(text).not.toContain('key100.');
    expect(text).toContain('… 150 more: --json');
    expect(text).not.toContain('alias100.');
    expect(text).toContain('… 30 more: --json');
  });

  it('has no effect on the terminal', async () => {
    const name = 'a\x1b[2J\u202eb\n';
    const checkpoint = checkpointOf(new Map([[name, embed]]), {
      content: new Map([[name, name]]),
      aliases: new Map([[name, name]]),
      metadata: new Map([[name, name]]),
      stateDict: [name],
    });
    for (const listed of [true, false]) {
      const text = await shown(checkpoint, { listed });
      expect(text).toContain('a\\x1b[2J\\u{202e}b\\n');
      expect(text).not.toContain('\x1b');
    }
  });

  it('is quoted when a name is empty', async () => {
    expect(await shown(checkpointOf(new Map([['', embed]])))).toMatch(/^"" +1 +100/m);
  });
});

describe('plainText', () => {
  it.each([
    [null, 'null'],
    ['text', 'text'],
    [[1, 'a', true], '1, "a", true'],
    [{ lr: 0.1, betas: [0.9, 0.95] }, 'lr: 0.1, betas: [0.9, 0.95]'],
    [{ a: { b: 'c' } }, 'a: {b: "c"}'],
  ])('of %j is %j', (value, text) => expect(plainText(value)).toBe(text));

  it('has every digit of a large integer', () => {
    expect(plainText([2n ** 70n])).toBe('1180591620717411303424');
  });

  it('is limited in length', () => {
    const text = plainText(Array.from({ length: 1000 }, (_, n) => n));
    expect(text).toMatch(/^0, 1, 2, .*…$/);
    expect(text).toHaveLength(160);
  });

  it('does not cut text that fits', () => {
    expect(shortened('x'.repeat(120))).toBe('x'.repeat(120));
    expect(shortened('x'.repeat(121))).toBe(`${'x'.repeat(119)}…`);
  });
});
