import { describe, expect, it } from 'vitest';
import { nextCommand } from '../../src/base/text/setting.js';
import type {
  ConversionResult,
  ConvertedSrte,
  ConvertedTable,
} from '../../src/convert/conversion/conversion-result.js';
import type { TableError } from '../../src/convert/conversion/execute/table-rows.js';
import { convertReport } from '../../src/report/convert/convert-report.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { renderMarkdown } from '../../src/report/render/markdown.js';
import { renderTable } from '../../src/report/render/table.js';

const PLAIN = { width: Number.POSITIVE_INFINITY, colourLevel: 0 } as const;

/** Sizes of the original model. */
const LAYOUT = { positions: 32768, hidden: 4096, layers: 32 } as const;
const PER_LAYER = { ...LAYOUT, sharing: 'per-layer', form: 'table', rank: null } as const;
const SHARED = { ...PER_LAYER, sharing: 'shared' } as const;
const PAIR = { ...SHARED, form: 'low-rank', rank: 128 } as const;

const ALL = Array.from({ length: 32 }, (_, layer) => layer);

const error = (layer: number, given: Partial<TableError> = {}): TableError => ({
  layers: [layer],
  name: `layers.${layer}.srte.freqs`,
  norm: 10,
  distance: 0.5,
  relativeError: 0.0312 + layer / 1000,
  largestError: 0.25,
  cosine: 0.99,
  ...given,
});

const table = (given: Partial<ConvertedTable> = {}): ConvertedTable => ({
  name: 'shared_srte',
  form: 'table',
  rank: null,
  dtype: 'F32',
  replaces: ALL,
  sources: ALL,
  energy: null,
  singularValues: null,
  errors: ALL.map((layer) => error(layer)),
  ...given,
});

const srte = (given: Partial<ConvertedSrte> = {}): ConvertedSrte => ({
  source: { ...PER_LAYER, parameters: 4294967296 },
  target: { ...SHARED, parameters: 134217728 },
  merge: 'mean',
  maxError: null,
  extension: null,
  relativeError: 0.0471,
  tables: [table()],
  ...given,
});

const result = (given: Partial<ConversionResult> = {}): ConversionResult => ({
  schema: 'minimind/convert-checkpoint@1',
  dryRun: false,
  input: {
    path: 'old.pt',
    format: 'torch-zip',
    config: { file: 'old.pt', origin: 'inside' },
    parameters: 22143967232,
    tensors: 9,
    tensorBytes: 88600000000,
    bytes: 265800000000,
  },
  output: {
    path: 'new',
    container: 'safetensors',
    parameters: 17983217664,
    tensors: 9,
    tensorBytes: 71900000000,
    bytes: 71900001234,
    files: [
      { name: 'model.safetensors', bytes: 71900000999, resumed: false, copied: false },
      { name: 'config.yaml', bytes: 235, resumed: false, copied: false },
    ],
  },
  adapter: null,
  srte: srte(),
  tie: null,
  gguf: null,
  quantization: null,
  proof: null,
  configChanges: [{ path: 'model.srte_share_across_layers', from: false, to: true }],
  leftOut: [
    { pattern: 'layers.{0–31}.srte.freqs', names: ALL.map(String), why: 'replaced by shared_srte' },
  ],
  notes: ['Something deserves a word'],
  groups: [
    {
      action: 'merged',
      pattern: 'shared_srte.freqs',
      tensors: 1,
      bytes: 512,
      fromDtypes: ['F16', 'F32'],
      dtype: 'F32',
    },
    {
      action: 'cast',
      pattern: 'layers.{0–31}.…',
      tensors: 1088,
      bytes: 4096,
      fromDtypes: ['F32'],
      dtype: 'BF16',
    },
  ],
  tensors: [
    {
      name: '=HYPERLINK("x")',
      aliases: ['a', 'b'],
      role: 'parameter',
      dtype: 'F32',
      shape: [1, 16, 8],
      bytes: 512,
      action: 'merged',
      from: ['c', 'd'],
      fromDtypes: ['F16', 'F32'],
      file: 'model.safetensors',
    },
  ],
  memory: { limitBytes: 512e6, predictedPeakBytes: 400e6, peakBytes: 390e6 },
  run: {
    seconds: 125,
    readBytes: 90e9,
    writtenBytes: 71900001234,
    bytesPerSecond: 1295200010,
    resumed: false,
    checked: false,
    products: 'JavaScript',
  },
  ...given,
});

const plan = (given: Partial<ConversionResult> = {}) =>
  result({
    dryRun: true,
    run: null,
    memory: { limitBytes: 512e6, predictedPeakBytes: 400e6, peakBytes: null },
    srte: srte({ relativeError: null, tables: [table({ errors: [] })] }),
    ...given,
  });

const printed = (conversion: ConversionResult, width = Number.POSITIVE_INFINITY) =>
  renderTable(convertReport(conversion), { ...PLAIN, width });
const long = (conversion: ConversionResult, width = Number.POSITIVE_INFINITY) =>
  renderTable(convertReport(conversion), { ...PLAIN, width, details: true });
const csv = (conversion: ConversionResult) => renderCsv(convertReport(conversion));
const lineOf = (text: string, start: string) =>
  text.split('\n').find((line) => line.trimStart().startsWith(start));

describe('the report of a conversion', () => {
  it('begins with sizes and errors', () => {
    const lines = printed(result()).split('\n');
    expect(lines.slice(0, 2)).toEqual([
      'Converted to new: 88.6 GB → 71.9 GB, largest SRTE error 6.22% (layer 31)',
      '  parameters  22.1B → 18.0B (−18.8%)',
    ]);
    expect(lines.at(-1)).toBe('Next: minimind quick-test new    Details: --details');
  });

  it('compares weights with weights, and warns of an error that changes the model', () => {
    const text = printed(result());
    expect(text).toContain('other data  177.2 GB → ');
    expect(text).not.toContain('Warning');
    const large = printed(result({ tie: tied(0.697) }));
    expect(large).toContain('Warning: an error of 69.7% changes the model;');
  });

  const tied = (relativeError: number): ConversionResult['tie'] => ({
    name: 'embed.weight',
    from: ['embed.weight', 'head.weight'],
    values: 'embed',
    errors: [
      { ...error(0, { name: 'embed.weight', relativeError: 0 }) },
      { ...error(0, { name: 'head.weight', relativeError }) },
    ],
  });
  const copies = result().groups.map((group) => ({ ...group, action: 'copied' as const }));
  it.each<[Partial<ConversionResult>, string]>([
    [{ srte: null }, ''],
    [{ srte: null, groups: copies }, ', all values unchanged'],
    [
      { srte: null, groups: copies.map((group) => ({ ...group, action: 'cast' as const })) },
      ', weights cast to F32, BF16',
    ],
    [{ srte: null, tie: tied(0.953) }, ', error 95.3% in head.weight (tied)'],
    [
      { tie: tied(0.953) },
      ', error 95.3% in head.weight (tied), largest SRTE error 6.22% (layer 31)',
    ],
    [
      { tie: tied(0.001) },
      ', largest SRTE error 6.22% (layer 31), error 0.10% in head.weight (tied)',
    ],
    [
      { srte: srte({ maxError: 0.05 }) },
      ', SRTE error 4.71% (limit 5.00%), largest 6.22% (layer 31)',
    ],
    [
      { srte: srte({ tables: [table({ errors: [error(0, { layers: ALL })] })] }) },
      ', SRTE error 4.71%',
    ],
  ])('has the worst change in the verdict (%#)', (given, text) => {
    expect(printed(result(given)).split('\n')[0]).toBe(
      `Converted to new: 88.6 GB → 71.9 GB${text}`,
    );
  });

  it('fits a screen, with the worst layers first', () => {
    const text = printed(result(), 80);
    expect(text.split('\n').length).toBeLessThanOrEqual(24);
    expect(text).toMatch(/^ {3}31 {2}6\.22%.*\n {3}30 {2}6\.12%/m);
    expect(text).toContain('… 26 more: --details');
  });

  it.each([
    [
      { input: { ...result().input, config: null } },
      '(PyTorch (zip)); converted by tensor names, without a config.',
    ],
    [{ run: { ...run(), checked: true } }, 'output read back and compared'],
    [{ run: { ...run(), seconds: 0.149 } }, ' in 0.15 s ('],
    [{}, 'Read 90.0 GB, wrote 71.9 GB in 2 min 5 s (1.3 GB/s).\n'],
    [{}, 'Peak memory: 390.0 MB (estimate 400.0 MB, limit 512.0 MB).'],
    [{ srte: srte({ target: { ...PAIR, parameters: 1 } }) }, ' Matrix products: JavaScript.\n'],
    [{}, 'Something deserves a word.\n'],
    [{}, 'layers.{0–31}.srte.freqs     32  replaced by shared_srte'],
    [{}, 'model.srte_share_across_layers  false  true'],
  ])('has more facts in the details (%#)', (given: Partial<ConversionResult>, text) => {
    expect(long(result(given))).toContain(text);
  });

  it('lists copied files', () => {
    const files = [
      ...result().output.files,
      { name: 'tokenizer.json', bytes: 1, resumed: false, copied: true },
    ];
    const text = printed(result({ output: { ...result().output, files } }));
    expect(lineOf(text, 'copied')).toBe('  copied      tokenizer.json');
    expect(printed(result())).not.toContain('copied');
  });

  it('marks files of an earlier run', () => {
    const [first, ...others] = result().output.files;
    const files = first ? [{ ...first, resumed: true }, ...others] : [];
    const text = long(result({ output: { ...result().output, files } }));
    expect(lineOf(text, 'model.safetensors  ')).toMatch(/ earlier run$/);
    expect(lineOf(text, 'config.yaml ')).toMatch(/ 235 B$/);
    expect(long(result())).not.toContain('earlier run');
  });

  it('shows exact counts, and growth as a factor', () => {
    const text = long(result());
    expect(text).toMatch(/^parameters +22,143,967,232 +17,983,217,664 +4,160,749,568 +18\.8%$/m);
    expect(text).toMatch(/^ {2}SRTE +4,294,967,296 +134,217,728 +4,160,749,568 +96\.9%$/m);
    const { input, output } = result();
    const grown = long(result({ input: { ...input, tensorBytes: 100 }, output }));
    expect(grown).toMatch(/^tensors +.* −71\.9 GB +× 7\.19e\+8$/m);
    const same = long(result({ input: { ...input, bytes: output.bytes } }));
    expect(same).toMatch(/^files +71\.9 GB +71\.9 GB +– +–$/m);
  });
});

function run(): NonNullable<ConversionResult['run']> {
  const { run: done } = result();
  if (!done) throw new Error('no run');
  return done;
}

describe('the change of the SRTE is described:', () => {
  const shared = { ...SHARED, parameters: 1 };
  it.each<[string, Partial<ConvertedSrte>]>([
    [
      'a table (32,768 × 4,096) in each of 32 layers → one table (32,768 × 4,096) for 32 layers, mean of all layers',
      {},
    ],
    [
      '→ one rank-128 pair (32,768 × 4,096) for 32 layers, mean of all layers, smallest rank with an error of at most 5.00%',
      { target: { ...PAIR, parameters: 1 }, maxError: 0.05 },
    ],
    ['for 32 layers, values of layer 0', { merge: 'first' }],
    ['for 32 layers, values of layer 7', { merge: 'layer:7' }],
    [
      '→ sines and cosines for 32 layers',
      { merge: null, target: { ...SHARED, form: 'sincos', parameters: 0 } },
    ],
    [
      'one table (32,768 × 4,096) for 32 layers → one table (1,024 × 4,096) for 32 layers, rows from 1,024 on are cut',
      { merge: null, source: shared, target: { ...shared, positions: 1024 } },
    ],
    [
      ', rows from 32,768 on repeat the table from row 0',
      { extension: 'repeat', target: { ...shared, positions: 40000 } },
    ],
    [
      'one table (32,768 × 4,096) for 32 layers, same layout',
      { source: shared, target: shared, merge: null },
    ],
    [
      'a table (32,768 × 4,096) in each of 1 layer →',
      { source: { ...PER_LAYER, layers: 1, parameters: 1 } },
    ],
  ])('%s', (text, given) => {
    expect(lineOf(printed(result({ srte: srte(given) })), 'SRTE  ')).toContain(text);
  });
});

describe('the errors', () => {
  it('have a line and a bar for each layer, and a total', () => {
    const text = long(result()).split('SRTE error by layer')[1] ?? '';
    expect(lineOf(text, '0  3.12%')).toBe('    0  3.12%  ▍  0.25000  0.9900');
    expect(lineOf(text, '31  6.22%')).toBe('   31  6.22%  ▊  0.25000  0.9900');
    expect(lineOf(text, 'total ')).toBe('total  4.71%');
  });

  it('are shown once for consecutive equal layers', () => {
    const errors = ALL.map((layer) => error(layer, { relativeError: layer === 5 ? 1 : 0 }));
    const text = long(result({ srte: srte({ tables: [table({ errors })] }) }));
    expect(text).toMatch(/^ {2}0–4 +0%.*\n +5 +100\.0% +█{12} .*\n +6–31 +0% /m);
  });

  it('are marked for values that were or became zero', () => {
    const errors = [
      error(0, { relativeError: Number.POSITIVE_INFINITY, cosine: null }),
      error(1, { relativeError: null, cosine: null }),
    ];
    const conversion = result({ srte: srte({ tables: [table({ errors })] }) });
    expect(printed(conversion)).toMatch(/^ +0 +∞ +█{12} .*–\n +1 +– .*–$/m);
    expect(csv(conversion)).toContain('0,layers.0.srte.freqs,shared_srte,10,Infinity,0.25,,\n');
  });

  it('show the number of rows unless it is all', () => {
    const target = { ...SHARED, positions: 1024, parameters: 1 };
    expect(long(result({ srte: srte({ target }) }))).toContain(', over the first 1,024 rows.');
    expect(long(result())).not.toContain('over the first');
  });

  it('are shown with the energy: of one pair in a sentence, of several in a column', () => {
    const one = srte({ tables: [table({ rank: 128, energy: 0.8034 })] });
    expect(long(result({ srte: one }))).toContain('Rank 128 keeps 80.3% of the energy');
    const tables = [0, 1].map((layer) =>
      table({ energy: 0.5 + layer / 4, errors: [error(layer)] }),
    );
    const several = long(result({ srte: srte({ tables }) }));
    expect(lineOf(several, '1  3.22%')).toMatch(/ 75\.0%$/);
    expect(several).not.toContain('keeps');
  });

  it('have the singular values of a new pair as a picture, apart by its rank', () => {
    const pair = table({ form: 'low-rank', rank: 2, singularValues: [8, 4, 1, 0.5] });
    const [plot] = convertReport(result({ srte: srte({ tables: [pair] }) })).pictures?.() ?? [];
    expect(plot).toMatchObject({
      kind: 'line plot',
      title: 'Singular values of shared_srte',
      curves: [
        {
          label: 'kept by rank 2',
          points: [
            [1, 8],
            [2, 4],
          ],
        },
        {
          label: 'left out',
          points: [
            [3, 1],
            [4, 0.5],
          ],
        },
      ],
    });
  });

  it('are left out without measurements', () => {
    const computed = srte({ tables: [table({ errors: [] })], relativeError: null });
    expect(long(result({ srte: computed }))).not.toContain('SRTE error');
  });
});

describe('the report of a plan', () => {
  it('shows the planned changes, and that nothing was written', () => {
    const text = printed(plan());
    expect(text).toMatch(/^Plan for new: 88\.6 GB → 71\.9 GB, nothing was written\n/);
    expect(lineOf(text, 'merged')).toMatch(
      /^merged +shared_srte\.freqs +1 +F16, F32 → F32 +512 B$/,
    );
    expect(lineOf(text, 'cast')).toMatch(/^cast +layers\.\{0–31\}\.… +1,088 +F32 → BF16 +4\.1 kB$/);
    expect(long(plan())).toContain('Planned files\n');
    expect(long(plan())).toContain('Peak memory: about 400.0 MB (limit 512.0 MB).');
    expect(long(plan())).not.toMatch(/SRTE error|GB\/s/);
  });

  it('has six groups in the answer and all in the details', () => {
    const [group] = plan().groups;
    const groups = group ? Array(103).fill(group) : [];
    const merged = (text: string) => text.split('\n').filter((line) => line.startsWith('merged'));
    const text = printed(plan({ groups }));
    expect(merged(text)).toHaveLength(6);
    expect(text).toContain('… 97 more: --details');
    expect(text.split('\n').length).toBeLessThanOrEqual(24);
    expect(merged(long(plan({ groups })))).toHaveLength(6 + 103);
  });

  it('ends with the command that executes the plan', () => {
    const again = nextCommand('convertCheckpoint', ['old.pt', 'new', '--to', 'shared']);
    expect(renderTable(convertReport(plan(), { again }), PLAIN)).toContain(`Next: ${again} `);
  });
});

describe('CSV', () => {
  it('has the errors of a conversion, with a row for each layer', () => {
    const errors = [error(0, { layers: [0, 1] })];
    expect(csv(result({ srte: srte({ tables: [table({ errors, energy: 0.5 })] }) }))).toBe(
      'layer,had,gets,norm,relative_error,largest_error,cosine,energy\n' +
        '0,layers.0.srte.freqs,shared_srte,10,0.0312,0.25,0.99,0.5\n' +
        '1,layers.0.srte.freqs,shared_srte,10,0.0312,0.25,0.99,0.5',
    );
  });

  it('has no rows when no SRTE was changed', () => {
    expect(csv(result({ srte: null })).split('\n')).toHaveLength(1);
  });

  it('has the tensors of a plan, without formulas', () => {
    expect(csv(plan())).toBe(
      'tensor,action,from,from_dtypes,dtype,shape,bytes,role,aliases,file\n' +
        '"\'=HYPERLINK(""x"")",merged,c d,F16 F32,F32,1 16 8,512,parameter,a b,model.safetensors',
    );
  });
});

describe('any report', () => {
  const cases = [result(), plan()];
  it.each([80, 200])('fits %d columns', (width) => {
    for (const each of cases) {
      const longest = Math.max(
        ...long(each, width)
          .split('\n')
          .map((line) => line.length),
      );
      expect(longest).toBeLessThanOrEqual(width);
      // No table is split into records.
      expect(long(each, width)).not.toMatch(/^layer: |^tensors: /m);
    }
  });

  it('has the same content in Markdown', () => {
    const text = renderMarkdown(convertReport(result()), { details: true });
    expect(text).toMatch(
      /^## Converted to new: 88\.6 GB → 71\.9 GB, largest SRTE error 6\.22% \(layer 31\)$/m,
    );
    expect(text).toMatch(/^\| +31 \| +6\.22% \| ▊ /m);
  });
});
