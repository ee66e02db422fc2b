import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { safetensorsFile } from '../checkpoint/reconcile/files.js';
import { describeModel, SMALL, Workshop } from '../checkpoint/reconcile/support.js';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const ORIGINAL = 'configs/hybrid/original.yaml';
const RECOMMENDED = 'configs/hybrid/recommended.yaml';
const TINY = 'configs/hybrid/tiny.yaml';
const ALL = fs
  .readdirSync(inPackage('configs/hybrid'))
  .map((name) => `configs/hybrid/${name}`)
  .sort();

const compare = (...args: string[]) => runHere(['compare', ...args]);
const json = async (...args: string[]) => JSON.parse((await compare(...args, '--json')).stdout);
const figures = async (name: string, ...args: string[]) =>
  (await json(...args)).rows.map(
    (row: { figures: Record<string, unknown> | null }) => row.figures?.[name],
  );

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const config = (name: string, document: object) => {
  const target = path.join(folder, name);
  fs.writeFileSync(target, JSON.stringify(document));
  return target;
};

describe('compared models', () => {
  it('have the figures of profile', async () => {
    const flags = ['--batch=2', '--context=512', '--precision=mixed', '--recompute=selective'];
    const { setting, rows } = await json(ORIGINAL, RECOMMENDED, ...flags);
    expect(rows).toHaveLength(2);
    for (const { file, figures: compared } of rows) {
      const one = JSON.parse((await runHere(['profile', file, ...flags, '--json'])).stdout);
      expect(setting).toMatchObject(one.setting);
      expect(compared).toMatchObject({
        parameters: one.parameters.total.value,
        embedding: one.parameters.embedding.value,
        'non-embedding': one.parameters.nonEmbedding.value,
        weights: one.inference.weights.value,
        'kv-per-token': one.inference.state.keyValuePerToken.value,
        'kv-cache': one.inference.state.keyValueCache.value,
        'mamba-state': one.inference.state.mambaState.value,
        'inference-memory': one.inference.total.value,
        'forward-flops': one.forwardFlops.total.value,
        'training-flops': one.trainingFlops.total.value,
        'training-memory': one.training.total.value,
      });
    }
  });

  it('may be in any folder', async () => {
    const { code, stdout } = await compare(inPackage(TINY), RECOMMENDED);
    expect(code).toBe(0);
    expect(stdout).toContain('recommended has 48,518 × the parameters of tiny (13.4B vs 275K)');
  });

  it('are shown with their differences, the smallest values and the change', async () => {
    const { code, stdout, stderr } = await compare(ORIGINAL, RECOMMENDED);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^recommended has 39\.7% fewer parameters than original/);
    expect(stdout).toMatch(/^setting or figure +original +recommended +change$/m);
    expect(stdout).toMatch(/^srte_factorized_rank +0 +128$/m);
    // 22,143,967,232 and 13,352,042,496 parameters: 8,791,924,736 / 22,143,967,232 = 39.70%.
    expect(stdout).toMatch(/^parameters +22\.144B +\*13\.352B +−39\.7%$/m);
    // Equal figures have neither a mark nor a change.
    expect((await compare(ORIGINAL, RECOMMENDED, '--details')).stdout).toMatch(
      /^KV cache +319\.3 MB +319\.3 MB$/m,
    );
    expect(stdout).not.toMatch(/^hidden_size/m);
    expect((await json(ORIGINAL, RECOMMENDED)).differing).toEqual([
      'model.max_position_embeddings',
      'model.srte_share_across_layers',
      'model.srte_factorized_rank',
      'model.tie_word_embeddings',
    ]);
  });

  it('have exact figures beyond 2^53', async () => {
    const flops = await figures('forward-flops', ORIGINAL, '--batch', '1000000000');
    expect(typeof flops[0]).toBe('string');
    const { stdout } = await compare(ORIGINAL, '--batch', '1000000000', '--format', 'csv');
    expect(stdout).toContain(flops[0]);
  });

  it('may come from standard input and from a checkpoint', async () => {
    const workshop = new Workshop();
    const checkpoint = path.join(folder, 'small.safetensors');
    await safetensorsFile(checkpoint, workshop.stateDict(describeModel().model, false));
    workshop.close();
    const small = config('small.json', { model: SMALL });
    const input = fs.readFileSync(inPackage(TINY));
    const args = ['compare', checkpoint, '-', '--config', small, '--json'];
    expect(runCli(args, { input }).stderr).toContain('--config and --state-dict require one');
    fs.writeFileSync(path.join(folder, 'config.json'), JSON.stringify({ model: SMALL }));
    const { code, stdout, stderr } = runCli(['compare', checkpoint, '-', '--json'], { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout).rows.map(({ file }: { file: string }) => file)).toEqual([
      checkpoint,
      '<stdin>',
    ]);
    // In a sweep, the tensors of the checkpoint are not compared with each model.
    const swept = await compare(checkpoint, '--set', 'model.num_layers=2,3');
    expect({ code: swept.code, stderr: swept.stderr }).toEqual({ code: 0, stderr: '' });
    expect((await compare(checkpoint, '--set', 'model.num_layers=7')).stderr).toContain(
      'does not match',
    );
  });

  it('are refused with the mistakes of all files', async () => {
    const broken = config('broken.json', { model: { num_layers: 0 } });
    const { code, stdout, stderr } = await compare(TINY, broken, 'no-such-file.yaml');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('2 of 3 files are not valid');
    expect(stderr).toContain('model.num_layers');
    expect(stderr).toContain('no-such-file.yaml');
  });

  it('have a note about different contexts in their files', async () => {
    const file = (name: string, length: number) =>
      config(name, { model: { num_layers: 1 }, training: { max_seq_length: length } });
    const [long, short] = [file('long.json', 300), file('short.json', 200)];
    const { setting } = await json(long, short);
    expect(setting.inference.context).toBe(200);
    expect(setting.disagreements).toEqual([{ of: 'context', said: [300, 200] }]);
    expect((await compare(long, short, '--details')).stdout).toContain(
      'The files ask for sequences of 300 and 200; all models use the same setting.',
    );
    expect((await json(long, short, '--context', '100')).setting).toMatchObject({
      inference: { context: 100 },
      disagreements: [],
    });
    // tiny has only 256 positions.
    expect((await json(long, TINY)).setting).toMatchObject({
      inference: { context: 256 },
      disagreements: [{ of: 'context', said: [300] }],
    });
  });

  it('are invalid only beyond their own positions', async () => {
    const { rows } = await json(TINY, ORIGINAL, '--context', '257');
    expect(rows.map(({ valid }: { valid: boolean }) => valid)).toEqual([false, true]);
    expect(rows[0].problems[0].message).toContain('more than the 256 positions');
    expect((await compare(TINY, '--context', '257')).code).toBe(2);
  });
});

describe('a sweep', () => {
  it('has a row for each combination, with the first key as the outer loop', async () => {
    const { rows, swept, differing } = await json(
      TINY,
      '--set',
      'model.num_layers=1,2',
      '--set',
      'model.vocab_size=256,512,1024',
    );
    expect(swept).toEqual(['model.num_layers', 'model.vocab_size']);
    expect(differing).toEqual([]);
    expect(rows.map(({ chosen }: { chosen: string[] }) => chosen.join(' '))).toEqual([
      '1 256',
      '1 512',
      '1 1024',
      '2 256',
      '2 512',
      '2 1024',
    ]);
    // A tied table of width 64 has 64 parameters per row.
    const [first, second] = rows;
    expect(second.figures.parameters - first.figures.parameters).toBe(64 * 256);
    expect(second.values).toEqual({ 'model.num_layers': 1, 'model.vocab_size': 512 });
  });

  it('of several files has a row for each file and value', async () => {
    const { rows } = await json(TINY, ORIGINAL, '--set', 'model.num_layers=1,2');
    expect(
      rows.map(({ file, chosen }: { file: string; chosen: string[] }) => [file, ...chosen]),
    ).toEqual([TINY, ORIGINAL].flatMap((file) => ['1', '2'].map((value) => [file, value])));
    const { stdout } = await compare(TINY, ORIGINAL, '--set', 'model.num_layers=1,2');
    expect(stdout).toMatch(/^model +num_layers +parameters/m);
    expect(stdout).toMatch(/^original +2 /m);
    const args = [TINY, ORIGINAL, '--set', 'model.num_layers=1,2', '--details'];
    expect((await compare(...args)).stdout).toContain('Differing settings');
  });

  it('of standard input reads the input once', () => {
    const input = fs.readFileSync(inPackage(TINY));
    const args = ['compare', '-', '--set', 'model.num_layers=1,2,3', '--json'];
    expect(JSON.parse(runCli(args, { input }).stdout).rows).toHaveLength(3);
  });

  it('shows invalid models with the reason', async () => {
    const args = [TINY, '--set', 'model.num_heads=4,3,2'];
    const { code, stdout, stderr } = await compare(...args);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: .*3 heads do not divide hidden_size 64/);
    expect(stdout).toMatch(/^ +3 +not valid$/m);
    expect((await compare(...args, '--details')).stdout).toMatch(
      /^num_heads=3 +model\.num_heads: 3 heads do not divide/m,
    );
    const { rows } = await json(...args);
    expect(rows.map(({ valid }: { valid: boolean }) => valid)).toEqual([true, false, true]);
    expect(rows[1]).toMatchObject({ figures: null, values: null });
    expect(rows[1].problems[0]).toMatchObject({ severity: 'error', path: 'model.num_heads' });
  });

  it('without a valid model is an error', async () => {
    const { code, stdout, stderr } = await compare(TINY, '--set', 'model.num_heads=3,7');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('none of the 2 models is valid');
    expect(stderr).toContain('3 heads do not divide');
    expect(stderr).toContain('7 heads do not divide');
  });

  it('of an unknown key is refused with a suggestion', async () => {
    const { code, stderr } = await compare(TINY, '--set', 'model.num_layer=1,2');
    expect(code).toBe(2);
    expect(stderr.match(/num_layers/g)?.length).toBeGreaterThan(0);
  });

  it('of too many models is refused before the first model', async () => {
    const values = Array.from({ length: 100 }, (_, index) => index + 1).join();
    const sets = ['num_layers', 'vocab_size', 'gate_rank'].flatMap((key) => [
      '--set',
      `model.${key}=${values}`,
    ]);
    const { code, stderr } = await compare(TINY, ...sets);
    expect(code).toBe(2);
    expect(stderr).toContain('--set: expected at most 100,000 models, found 1,000,000');
    expect((await compare('no-such-file', ...sets)).stderr).toContain('found 1,000,000');
  });
});

describe('--sort', () => {
  it('sorts by a figure, with invalid models last, and keeps the baseline', async () => {
    const sizes = await figures('parameters', ...ALL, '--sort', 'parameters');
    expect(sizes).toHaveLength(11);
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    const down = await figures('parameters', ...ALL, '--sort', '-parameters');
    expect(down).toEqual([...sizes].reverse());
    const { rows, baseline } = await json(
      TINY,
      '--set',
      'model.num_heads=4,3,2',
      '--sort=-kv-heads',
    );
    expect(rows.map(({ chosen }: { chosen: string[] }) => chosen[0])).toEqual(['4', '2', '3']);
    expect(baseline).toBe(0);
    expect((await json(...ALL, '--sort', 'parameters')).baseline).toBe(2); // aggressive.yaml, the first given
  });

  it('sorts by a key of the configs, and keeps the order of equal values', async () => {
    const { rows } = await json(...ALL, '--sort', 'model.num_layers');
    const names = rows.map(({ file }: { file: string }) => path.parse(file).name);
    expect(names.slice(0, 3)).toEqual(['tiny', 'bench-60m', 'aggressive']);
    expect(names.slice(3)).toEqual([...names.slice(3)].sort());
  });
});

describe('--baseline', () => {
  it.each([
    ['recommended', 1],
    [RECOMMENDED, 1],
    ['2', 1],
    ['original', 0],
  ])('accepts %s', async (name, index) => {
    const { baseline } = await json(ORIGINAL, RECOMMENDED, '--baseline', name);
    expect(baseline).toBe(index);
  });

  it('changes the reference of the answer', async () => {
    const { stdout } = await compare(ORIGINAL, RECOMMENDED, '--baseline', 'recommended');
    expect(stdout).toMatch(/^original has 65\.8% more parameters than recommended/);
    expect(stdout).toMatch(/^parameters +22\.144B +\+65\.8% +\*13\.352B$/m);
  });

  it('selects a model of a sweep', async () => {
    const sweep = [TINY, '--set', 'model.num_layers=1,2,4', '--baseline'];
    expect((await json(...sweep, '3')).baseline).toBe(2);
    expect((await compare(...sweep, 'tiny')).stderr).toContain('is the name of 3 models');
  });

  it.each([
    ['recommende', 'did you mean recommended?'],
    ['3', 'write a number from 1 to 2'],
    ['0', 'write a number from 1 to 2'],
  ])('refuses %s', async (name, suggestion) => {
    const { code, stderr } = await compare(ORIGINAL, RECOMMENDED, '--baseline', name);
    expect(code).toBe(2);
    expect(stderr).toContain(suggestion);
  });
});

describe('the verdict', () => {
  it.each([
    [
      ['configs/minimind/minimind2-small.yaml', 'configs/minimind/minimind2.yaml'],
      'minimind2 has 4.0 × the parameters of minimind2-small (104M vs 25.8M)',
    ],
    [
      [ORIGINAL, RECOMMENDED, TINY],
      'Smallest: tiny, 275K parameters. Largest: original, 22.1B (×80,465)',
    ],
    [
      [TINY, '--set', 'model.num_heads=2,4'],
      'num_heads=2 and num_heads=4 have the same parameters (275K). ' +
        'Training memory of num_heads=4: 24.6 MB, 40.6% less than num_heads=2 (41.3 MB)',
    ],
    [[TINY], 'tiny: 275K parameters'],
    [
      [ORIGINAL, RECOMMENDED, '--columns', 'training-memory'],
      'Training memory of recommended: 239.9 GB, 37.0% less than original (380.6 GB)',
    ],
  ])('is correct for %j', async (args, verdict) => {
    expect((await compare(...args)).stdout.split('\n')[0]).toBe(verdict);
  });
});

describe('--columns', () => {
  it('selects figures and keys, in their order', async () => {
    const { stdout } = await compare(
      ...ALL,
      '--columns',
      'model.num_layers,kv-cache,parameters,tied',
    );
    expect(stdout).toMatch(/^model +num_layers +KV cache +parameters .*tied$/m);
    const [row] = (await json(TINY, '--columns', 'model.gate_rank')).rows;
    expect(row.values).toEqual({ 'model.gate_rank': 16 });
  });

  it.each([
    ['parameter', 'did you mean parameters?'],
    ['kv_cache', 'did you mean kv-cache?'],
    ['num_layers', 'did you mean model.num_layers?'],
    ['model.num_layer', 'did you mean model.num_layers?'],
    ['zzz', 'use parameters, '],
    ['__proto__', 'use parameters, '],
  ])('refuses %s, as --sort does', async (name, suggestion) => {
    for (const flag of ['--columns', '--sort']) {
      const { code, stderr } = await compare(TINY, flag, name);
      expect(code).toBe(2);
      expect(stderr).toContain(`unknown column "${name}"`);
      expect(stderr).toContain(suggestion);
    }
  });
});

describe('the setting', () => {
  it('of the training is shown if a column depends on it', async () => {
    expect((await compare(TINY)).stdout).toContain(' Training: ');
    expect((await compare(TINY, '--columns', 'parameters,kv-cache')).stdout).not.toContain(
      'Training: ',
    );
  });

  it('follows the flags', async () => {
    const set = ['--set', 'training.bf16=true'];
    const flags = ['--context=100', '--batch=3', '--dtype=fp32'];
    const { stdout } = await compare(TINY, ORIGINAL, ...flags, ...set);
    expect(stdout).toContain('Inference: 3 × 100 tokens, f32. Training: 3 × 100 tokens, mixed');
    const { stdout: long } = await compare(TINY, ORIGINAL, ...flags, ...set, '--details');
    expect(long).toMatch(/^Training: 3 × 100 tokens, mixed precision \(from the files\)/m);
  });
});

describe('CSV', () => {
  it('is one table of exact values, with the differing keys', async () => {
    const { stdout } = await compare(
      ORIGINAL,
      TINY,
      '--set',
      'model.num_layers=1,2',
      '--format',
      'csv',
    );
    const [head = '', ...lines] = stdout.trim().split('\n');
    expect(head).toMatch(
      /^model,model\.num_layers,valid,parameters,weights_bytes,kv_per_token_bytes,forward_flops,training_memory_bytes,model\.vocab_size,/,
    );
    expect(lines).toHaveLength(4);
    expect(lines[2]).toMatch(/^configs\/hybrid\/tiny\.yaml,1,true,147136,294272,/);
    expect(stdout).not.toContain('\n\n');
  });
});

describe('--text and --tokenizer', () => {
  const TOKENIZERS = ['512', '1024'].flatMap((size) => [
    '--tokenizer',
    `fixtures/tokenizers/bpe-${size}.json`,
  ]);
  const TEXT = ['--text', 'fixtures/tokenizers/text.txt'];

  it('add figures per character', async () => {
    const args = [TINY, '--set', 'model.vocab_size=512,1000,1024', ...TOKENIZERS, ...TEXT];
    const { rows } = await json(...args);
    // In counts.json, 2118 characters are 1256 and 993 tokens. A token of tiny has 512 bytes of keys and values.
    expect(rows.map(({ figures: { tokens } }: { figures: { tokens: number } }) => tokens)).toEqual([
      1256, 1256, 993,
    ]);
    expect(rows[2].figures['chars-per-token']).toBeCloseTo(2118 / 993, 10);
    expect(rows[2].figures['kv-per-char']).toBeCloseTo((512 * 993) / 2118, 10);
    const { figures: last } = rows[2];
    expect(last['flops-per-char']).toBeCloseTo(((last['forward-flops'] / 256) * 993) / 2118, 3);
    expect(rows[1].tokenizer).toBe('fixtures/tokenizers/bpe-512.json');
    expect((await compare(...args)).stdout).toMatch(/chars per token .*KV per char/);
  });

  it('warn if no tokenizer fits', async () => {
    const { code, stderr, stdout } = await compare(TINY, ...TOKENIZERS, ...TEXT);
    expect(code).toBe(0);
    expect(stderr).toContain('no tokenizer that is given fits a vocabulary of 256');
    expect(stdout).not.toContain('chars per token');
  });

  it('require each other, and distinct tokenizers', async () => {
    expect((await compare(TINY, ...TEXT)).code).toBe(2);
    expect((await compare(TINY, ...TOKENIZERS)).code).toBe(2);
    const { code, stderr } = await compare(TINY, ...TOKENIZERS, ...TOKENIZERS, ...TEXT);
    expect(code).toBe(2);
    expect(stderr).toContain('both have 512 tokens');
  });
});
