/** Where a figure of a token and a total are shown together, windows explain why their product differs. */
import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const run = async (...args: string[]) => (await runHere([...args, '-q'])).stdout;

/** Key heads × head_dim × 2 × 2 bytes over all layers, and the tokens that a window keeps: from their configs. */
const WINDOWED = [
  ['gemma3_text/gemma-3-270m', 2048, '18.4 kB', 'windows full'],
  ['gpt_oss/gpt-oss-20b', 2048, '49.2 kB', 'windows full'],
  ['fixtures/hf-configs/mistral-7b-v0.1/config.json', 8192, '131.1 kB', 'windows full'],
] as const;

describe('the key-value cache', () => {
  it.each(WINDOWED)('of %s is explained by profile', async (model, context, perToken, reason) => {
    const line = (await run('profile', model, '--context', String(context)))
      .split('\n')
      .find((each) => each.includes('KV cache'));
    expect(line).toContain(`${perToken} per token`);
    expect(line).toContain(`(${reason})`);
  });

  it('needs no words within the windows, or where layers keep no keys', async () => {
    for (const [model, context] of [
      ['gemma3_text/gemma-3-270m', 256],
      ['fixtures/hf-configs/mistral-7b-v0.1/config.json', 2048],
      ['lfm2/lfm2-350m', 4096],
      ['gpt2/gpt2', 1024],
    ] as const) {
      expect(await run('profile', model, '--context', String(context))).not.toContain(
        'windows full',
      );
    }
  });

  it('is explained by compare where both figures are columns', async () => {
    const models = ['gemma3_text/gemma-3-270m', 'gpt_oss/gpt-oss-20b', 'gpt2/gpt2'];
    const both = ['--columns', 'kv-per-token,kv-cache'];
    const reason =
      'KV cache is smaller than KV per token × 1 × 1,024 tokens: windows full (gemma-3-270m and gpt-oss-20b).';
    const joined = (text: string) => text.replaceAll(/\s+/g, ' ');
    expect(joined(await run('compare', ...models, ...both))).toContain(reason);
    expect(joined(await run('compare', ...models, '--details'))).toContain(reason);
    expect(await run('compare', ...models)).not.toContain('windows full');
    expect(await run('compare', ...models, ...both, '--context', '100')).not.toContain(
      'windows full',
    );
    expect(await run('compare', 'gpt2/gpt2', 'lfm2/lfm2-350m', ...both)).not.toContain(
      'windows full',
    );
  });
});
