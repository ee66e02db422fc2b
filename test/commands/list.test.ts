import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const list = (...args: string[]) => runHere(['list', ...args]);
const json = async (...args: string[]) =>
  JSON.parse((await list(...args, '--json')).stdout).families as {
    name: string;
    presets: { name: string }[];
  }[];

describe('list', () => {
  it('shows one row per family, with an example and the next command', async () => {
    const { stdout } = await list();
    expect(stdout).toMatch(
      /^\d+ presets and \d+ published models; config\.json of \d+ model types$/m,
    );
    expect(stdout).toMatch(/^minimind +6 +minimind\/minimind2-small +25\.8M/m);
    expect(stdout).toContain('Next: minimind profile minimind/minimind2-small');
    expect(stdout).toMatch(
      /^Published models, such as qwen3:8b: Qwen, Gemma, Llama, .* more: --details$/m,
    );
    expect(stdout).not.toContain('qwen3-8b');
    expect(stdout).not.toContain('hybrid/rank-64');
    expect((await list('--details')).stdout).toContain('hybrid/rank-64');
  });

  it('accepts a family', async () => {
    expect((await list('hybrid')).stdout).toMatch(/^hybrid\/rank-64 +13\.6B/m);
    expect((await json('hybrid')).map(({ name }) => name)).toEqual(['hybrid']);
    expect((await list('persimmon')).stdout).toContain('No presets; reads config.json.');
    expect((await list('qwen3')).stdout).toMatch(/^qwen3\/qwen3-8b +8\.19B +Qwen3-8B: 8\.19B/m);
  });

  it('accepts a pattern', async () => {
    const names = (await json('rank-*')).flatMap(({ presets }) => presets.map(({ name }) => name));
    expect(names).toEqual(['rank-128', 'rank-64']);
  });

  it('has the presets in CSV', async () => {
    const lines = (await list('--format', 'csv')).stdout.trim().split('\n');
    expect(lines[0]).toBe('preset,parameters,title');
    expect(lines).toContain('minimind/minimind2-small,25829888,MiniMind2-Small: 25.8M');
  });

  it.each([
    ['hybird', 'did you mean hybrid?'],
    ['orignal', 'did you mean original?'],
    ['zzz', 'minimind list shows the families'],
  ])('refuses %s', async (pattern, suggestion) => {
    const { code, stderr } = await list(pattern);
    expect(code).toBe(2);
    expect(stderr).toContain(suggestion);
  });
});
