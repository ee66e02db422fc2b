import { describe, expect, it } from 'vitest';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const TRAINED = 'fixtures/old-checkpoint/trained-same-start';
const STEP = `${TRAINED}/checkpoint_step_30.pt`;
const ORIGINAL = 'configs/hybrid/original.yaml';
const compare = (...args: string[]) => runHere(['compare-srte', ...args]);

describe('compare-srte', () => {
  it('prints the published table digit for digit', async () => {
    const { code, stdout, stderr } = await compare(ORIGINAL);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // Columns of the published report: total, SRTE (share), saved (share).
    const published = [
      ['not shared', '22.144B', '8.590B', '38.8%', '–', '–'],
      ['shared', '13.822B', '0.268B', '1.9%', '8.321B', '37.6%'],
      ['shared, rank 128', '13.563B', '0.009B', '0.1%', '8.581B', '38.8%'],
      ['shared, rank 64', '13.558B', '0.004B', '0.0%', '8.585B', '38.8%'],
      ['shared, sincos', '13.554B', '0.000B', '0.0%', '8.590B', '38.8%'],
      ['recommended', '13.352B', '0.005B', '0.0%', '8.792B', '39.7%'],
    ];
    const rows = stdout
      .split('\n')
      .map((line) => line.replace(/^[● ] /, '').split(/ {2,}/))
      .filter((cells) => cells[1]?.endsWith('B'));
    expect(rows.map((cells) => cells.slice(0, 6))).toEqual(published);
  });

  it('has the savings of the SRTE and the ratios, with tables of equal length', async () => {
    const { stdout } = await compare(ORIGINAL);
    expect(stdout).toMatch(
      /^ +SRTE saved +96\.9% shared · 99\.9% rank 128 · 99\.9% rank 64 · 99\.9% recommended$/m,
    );
    expect(stdout).toMatch(
      /^ +ratio +0\.624 × shared · 0\.612 × rank 128 · 0\.612 × rank 64 · 0\.603 ×\s+recommended$/m,
    );
    expect(stdout).toMatch(
      /full table +30\.1 × at 65,536 rows, rank 128 · 60\.2 × at 65,536 rows, rank 64 ·\s+28\.4 × at 32,768 rows, recommended/,
    );
    const { rows } = JSON.parse((await compare(ORIGINAL, '--json')).stdout);
    const shared = rows.find(({ id }: { id: string }) => id === 'shared');
    expect(shared).toMatchObject({ savedSrteShare: 31 / 32, tableRatio: null });
    const table = (positions: number) => (positions * 4096) / (128 * (positions + 4096));
    expect(rows.map(({ tableRatio }: { tableRatio: number }) => tableRatio)).toContain(
      table(65_536),
    );
    expect(rows.at(-1)).toMatchObject({
      ratio: 13_352_181_760 / 22_143_967_232,
      tableRatio: table(32_768),
    });
  });

  it.each([
    ['a training checkpoint with its config inside', [STEP]],
    ['a checkpoint and its config', [STEP, '--config', `${TRAINED}/config.yaml`]],
  ])('takes %s', async (_, words) => {
    const { code, stdout, stderr } = await compare(...words, '--json');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { file, rows } = JSON.parse(stdout);
    expect(file).toBe(words[0]);
    const current = rows.find((row: { current: boolean }) => row.current);
    const { stdout: profiled } = await runHere(['profile', ...words, '--json']);
    expect(current.parameters).toBe(JSON.parse(profiled).parameters.total.value);
  });

  it('says which model has no SRTE, and what shows it', async () => {
    const { code, stderr } = await compare('qwen3-0.6b');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'error: qwen3/qwen3-0.6b describes a qwen3 model; this command is for hybrid\n' +
        '  → only hybrid models have an SRTE; write minimind profile qwen3/qwen3-0.6b\n',
    });
  });

  it.each([
    // 22,143,967,232 − 13,562,945,536, in the order of the table and in the reverse.
    ['256,128', 128, '8.58B parameters (38.8%): 22.1B → 13.6B'],
    ['128,256', 128, '8.58B parameters (38.8%): 22.1B → 13.6B'],
    ['64,512,128', 64, '8.59B parameters (38.8%): 22.1B → 13.6B'],
  ])('proposes the rank of %s that saves most', async (ranks, rank, saved) => {
    const { stdout } = await compare(ORIGINAL, '--ranks', ranks);
    expect(stdout.split('\n')[0]).toBe(`One shared table of rank ${rank} saves ${saved}`);
    expect(stdout).toContain(`srte_factorized_rank: ${rank}}`);
    expect(stdout).toMatch(
      /saves most +recommended, 8\.79B \(39\.7%\), with 32,768 positions, with a tied head$/m,
    );
  });

  it('has exact integers in JSON', async () => {
    const { rows } = JSON.parse((await compare(ORIGINAL, '--json')).stdout);
    expect(
      rows.map((row: Record<string, unknown>) => [
        row.id,
        row.parameters,
        row.srteParameters,
        row.current,
      ]),
    ).toEqual([
      ['not-shared', 22_143_967_232, 8_589_934_592, true],
      ['shared', 13_822_468_096, 268_435_456, false],
      ['shared-rank-128', 13_562_945_536, 8_912_896, false],
      ['shared-rank-64', 13_558_489_088, 4_456_448, false],
      ['shared-sincos', 13_554_032_640, 0, false],
      ['recommended', 13_352_181_760, 4_718_592, false],
    ]);
  });

  it('prints every digit of a small model', async () => {
    expect((await compare('configs/hybrid/tiny.yaml')).stdout).toMatch(
      /^ {2}shared +289,024 +16,384 /m,
    );
  });

  it('has exact integers in CSV and a table in Markdown', async () => {
    const csv = (await compare(ORIGINAL, '--format', 'csv')).stdout.split('\n');
    expect(csv[0]).toBe(
      'strategy,parameters,srte_parameters,srte_share,saved_parameters,saved_share,bytes_bf16',
    );
    expect(csv[2]).toMatch(
      /^shared,13822468096,268435456,0\.0194\d+,8321499136,0\.3757\d+,27644936192$/,
    );
    expect((await compare(ORIGINAL, '--format', 'markdown')).stdout).toMatch(
      /^\| *shared *\| *13\.822B \|/m,
    );
  });

  it('counts bytes in the requested dtype', async () => {
    const { rows, dtype } = JSON.parse(
      (await compare(ORIGINAL, '--json', '--dtype', 'float32')).stdout,
    );
    expect([dtype, rows[0].bytes]).toEqual(['f32', 4 * 22_143_967_232]);
  });

  it('reads JSON from standard input', () => {
    const input = JSON.stringify({ model: { srte_factorized_rank: 64 } });
    const run = runCli(['compare-srte', '-', '--json'], { input });
    const { file, rows } = JSON.parse(run.stdout);
    expect(file).toBe('<stdin>');
    expect(rows.filter((row: { current: boolean }) => row.current)).toMatchObject([
      { id: 'shared-rank-64' },
    ]);
  });

  it.each([
    [['--ranks', '0'], '--ranks: expected a positive whole number, found "0"'],
    [['--ranks', '12,x'], '--ranks: expected a positive whole number, found "x"'],
    [['--dtype', 'f7'], '--dtype: expected an element type, found "f7"'],
    [
      ['--format', 'xml'],
      '--format: expected one of table, json, csv, markdown, html, svg, found "xml"',
    ],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await compare(ORIGINAL, ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});
