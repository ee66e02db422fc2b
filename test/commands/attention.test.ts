import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const SMALL = 'configs/minimind/minimind2-small.yaml';
const attention = (...args: string[]) => runHere(['attention', ...args]);
const json = async (...args: string[]) => JSON.parse((await attention(...args, '--json')).stdout);

describe('minimind attention', () => {
  it('shows a row for each method and marks the model', async () => {
    const { code, stdout } = await attention(SMALL, '--context', '512,2k,8k');
    expect(code).toBe(0);
    expect(stdout).toContain('flash moves 5.5 GB');
    expect(stdout).toMatch(/^● grouped \(2 key heads\) .* 33\.6 MB ÷ 4\.00 /m);
    expect(stdout).toMatch(/^ {2}window 1024 .* 8,185$/m);
    expect(stdout).toMatch(
      /^ +flash +HBM traffic ÷ 4\.43 at 512 · 5\.63 at 2,048 · 6\.32 at 8,192$/m,
    );
    expect(stdout).toContain('42.8% fewer than LayerNorm (3,586)');
  });

  it('shows the time of flash attention at a single context', async () => {
    const { stdout } = await runHere(['attention', SMALL, '--context', '2048']);
    expect(stdout).toMatch(/^ +flash +time ÷ 2\.82–10\.3 at 2,048 \(estimate\)$/m);
  });

  it('keeps to the positions of the model, and says when it is asked for more', async () => {
    const contextsOf = async (...args: string[]) =>
      (await json(...args)).contexts.map(({ context }: { context: number }) => context);
    expect(await contextsOf('gpt2')).toEqual([512, 1024]);
    expect(await contextsOf('gpt2', '--set', 'model.n_positions=300')).toEqual([300]);
    expect(await contextsOf(SMALL)).toEqual([512, 2048, 8192]);
    const { code, stderr } = await attention('gpt2', '--context', '512,2048');
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        '2,048 tokens are more than the 1,024 positions of the model: counted as with more positions\n',
    });
  });

  it('compares ways to read a text longer than the training', async () => {
    const { longTexts } = await json(SMALL, '--context', '8192', '--chunk', '512');
    expect(longTexts).toMatchObject({ stride: 256, window: 256, globalTokens: 16 });
    type Row = (typeof longTexts.rows)[number];
    const rowOf = (strategy: string): Row =>
      longTexts.rows.find((row: Row) => row.strategy === strategy);
    const flops = (strategy: string): number => rowOf(strategy).flops.value;
    // By hand: windows at 0, 256, …, 7,680, and 512 of 8,192 tokens.
    expect(rowOf('windows')).toMatchObject({ passes: 31, tokens: 15_872, share: 1, reach: 512 });
    expect(rowOf('truncation')).toMatchObject({ passes: 1, tokens: 512, share: 1 / 16 });
    expect(rowOf('hierarchical')).toMatchObject({ passes: 17, tokens: 8_208, reach: 8_192 });
    // 8 layers and 8 heads of 64; a multiply-accumulate for q·k and one for the sum over v.
    const scores = (pairs: number) => 8 * 8 * 2 * 2 * 64 * pairs;
    expect(flops('full') - flops('chunks')).toBe(scores(8192 ** 2 - 16 * 512 ** 2));
    expect(flops('full') - flops('sparse')).toBe(scores(8192 * (8192 - 256 - 2 * 16)));
    expect(flops('windows')).toBe((31 / 16) * flops('chunks'));
    expect(16 * flops('truncation')).toBe(flops('chunks'));
    // 8 heads of 512² scores in two bytes, and keys and values of 2 heads.
    expect(rowOf('chunks').scores.value).toBe(8 * 512 ** 2 * 2);
    expect(rowOf('chunks').cache.value).toBe(8 * 2 * 2 * 64 * 512 * 2);
    const { stdout } = await attention(SMALL, '--context', '8192', '--chunk', '512');
    expect(stdout).toContain('31 windows compute 1.94 × the tokens and 62.6% of the FLOPs');
  });

  it('has a shorter last window where the text ends', async () => {
    const { longTexts } = await json(
      SMALL,
      '--context',
      '1000',
      '--chunk',
      '400',
      '--overlap',
      '25%',
    );
    const [, , chunks, windows] = longTexts.rows;
    // 0–400, 400–800, 800–1,000; and 0–400, 300–700, 600–1,000.
    expect(chunks).toMatchObject({ passes: 3, tokens: 1000 });
    expect(windows).toMatchObject({ passes: 3, tokens: 1200 });
  });

  it.each([
    [['--context', '512', '--chunk', '512'], '--context 8192'],
    [['--overlap', '50%'], '--chunk 512 --overlap 50%'],
    [['--chunk', '512', '--overlap', '100%'], '--overlap 50%'],
  ])('refuses %j with what to write', async (flags, suggestion) => {
    const { code, stderr } = await attention(SMALL, ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain(suggestion);
  });

  it('uses the singular for one token', async () => {
    const { stdout } = await runHere(['attention', 'minimind2-small', '--context', '1,64']);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('. 1 token: --details.');
  });

  it('has every context with --details, and the formulas with --explain', async () => {
    const { stdout } = await attention(SMALL, '--context', '512,2k', '--details', '--explain');
    expect(stdout).toMatch(/^512 tokens$/m);
    expect(stdout).toMatch(/^2,048 tokens$/m);
    expect(stdout).toContain('arXiv 2205.14135, algorithm 1');
    expect(stdout).toContain('min(context, ');
  });

  it('uses the tile of the GPU, or a given one', async () => {
    const tileOf = (answer: Awaited<ReturnType<typeof json>>) => answer.contexts[0].rows[1].tile;
    // 227 KiB / 2 bytes / (4 · 64), and 64 KiB / 4 bytes / (4 · 64).
    expect(tileOf(await json(SMALL, '--gpu', 'h100-80gb'))).toEqual({ rows: 64, columns: 454 });
    expect(tileOf(await json(SMALL, '--on-chip', '64KiB', '--dtype', 'f32'))).toEqual({
      rows: 64,
      columns: 64,
    });
  });

  it('shows a window of one token, which keeps no keys, at a billion tokens', async () => {
    const { code, stdout } = await attention(
      SMALL,
      '--context',
      '1e9',
      '--window',
      '1',
      '--block',
      '1',
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}window 1 .*÷ ∞ +1$/m);
  });

  it('names the row of a published ratio, or the nearest one', async () => {
    const args = ['configs/hybrid/original.yaml', '--key-heads', '16,4,1'];
    const { stdout } = await attention(...args, '--published', '2,8,32,3.8×');
    expect(stdout).toMatch(/^ *2 × +KV cache of grouped \(16 key heads\);/m);
    expect(stdout).toMatch(/^ *32 × +KV cache of grouped \(1 key head\)/m);
    expect(stdout).toMatch(/^ *3\.8 × +no such ratio; nearest 4\.12 ×: HBM traffic/m);
  });

  it('has a line for each context and method in CSV', async () => {
    const { stdout } = await attention(SMALL, '--format', 'csv');
    const lines = stdout.trim().split('\n');
    expect(lines).toHaveLength(1 + 3 * 6);
    // FLOPs: 8 layers of 8 heads, 2 · 2 · 64 for each of 512² scores. Cache: 2 · 8 · 512 · 512 values of 2 bytes.
    expect(lines[1]).toBe('512,plain,plain,false,4194304,150994944,4294967296,8388608,1,1,1,1,512');
  });

  it.each([
    [['--key-heads', '3'], 'expected a divisor of 8 heads'],
    [['--gpu', 'm4-max-36gb'], '--on-chip'],
    [['--gpu', '8xA100'], '--gpu: expected one GPU, found "8xA100"'],
    [['--published', 'many'], 'expected a ratio above 0'],
    [['--context', '0'], 'expected a positive whole number'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await attention(SMALL, ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('refuses a model without softmax attention', async () => {
    const { code, stderr } = await attention('fixtures/hf/mamba');
    expect(code).toBe(2);
    expect(stderr).toContain('found no softmax attention');
  });
});
