import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const SMALL = 'minimind/minimind2-small';

const plan = (...args: string[]) => runHere(['train-plan', ...args]);

interface Plan {
  readonly size: Readonly<Record<'tokensPerStep' | 'tokens' | 'steps', number>>;
  readonly learningRate: Readonly<Record<'peak' | 'warmup', number>>;
  readonly optimizer: { readonly rule: string; readonly weightDecay: number };
  readonly mistakes: readonly unknown[];
}

async function json(...args: string[]) {
  const { stdout, code } = await plan(...args, '--json', '-q');
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

describe('train-plan', () => {
  it('counts steps, micro-steps and epochs', async () => {
    const { size } = await json(
      ...[SMALL, '--tokens', '10B', '--batch', '32', '--accumulation', '8'],
      ...['--context', '512', '--data-tokens', '5B'],
    );
    // 32 × 8 × 512 = 131,072 tokens per step.
    expect(size).toMatchObject({ tokensPerStep: 131_072, steps: 76_294, microSteps: 610_352 });
    expect(size.epochs).toBe(2);
  });

  it.each([
    ['--lr 5e-4', ['peak']],
    ['--tokens 1B', ['length']],
    ['--steps 1908', ['length']],
    ['--batch 32', []],
    ['--context 512', []],
    ['--gpus 4', []],
    ['--schedule cosine', []],
    ['--schedule linear', []],
    ['--warmup 2%', ['warmup']],
    ['--weight-decay 0.05', ['decay']],
    ['--groups huggingface --weight-decay 0.1', ['rule']],
    ['--lr 5e-4 --schedule wsd --batch 8 --tokens 1B', ['peak', 'length']],
  ])('keeps the defaults of what %s does not set, without a mistake', async (flags, changed) => {
    const defaultsOf = ({ size, learningRate: { peak, warmup }, optimizer, mistakes }: Plan) => ({
      tokensPerStep: size.tokensPerStep,
      length: size.tokens,
      peak,
      warmup: Math.round((1e3 * warmup) / size.steps) / 1e3,
      rule: optimizer.rule,
      decay: optimizer.weightDecay,
      mistakes,
    });
    const usual = defaultsOf(await json(SMALL));
    const found = defaultsOf(await json(SMALL, ...flags.split(' ')));
    const different = Object.keys(usual).filter(
      (key) => JSON.stringify(usual[key as 'peak']) !== JSON.stringify(found[key as 'peak']),
    );
    expect(different.toSorted()).toEqual(changed.toSorted());
    expect(found.mistakes).toEqual([]);
  });

  it('lists the learning rate of every step as CSV', async () => {
    const { stdout } = await plan(
      ...[SMALL, '--steps', '1000', '--schedule', 'minimind', '--lr', '5e-4', '--format', 'csv'],
    );
    const [head, ...rows] = stdout.trimEnd().split('\n');
    expect(head).toBe('step,tokens,learning_rate');
    expect(rows).toHaveLength(1000);
    // minimind, get_lr(500, 1000, 5e-4) = 5e-4 · (0.1 + 0.45).
    expect(Number(rows[499]?.split(',')[2])).toBeCloseTo(2.75e-4, 15);
    expect(Number(rows[999]?.split(',')[2])).toBeCloseTo(5e-5, 15);
  });

  it('plots the learning rate in ASCII if the locale requires it', async () => {
    const { LC_ALL } = process.env;
    process.env.LC_ALL = 'C';
    try {
      const { stdout } = await plan(SMALL, '--tokens', '1B');
      expect(stdout).toMatch(/\|\*/);
      expect(stdout).not.toMatch(/[\u2800-\u28ff]/);
    } finally {
      if (LC_ALL === undefined) delete process.env.LC_ALL;
      else process.env.LC_ALL = LC_ALL;
    }
  });

  it('counts the groups of the optimizer', async () => {
    const { optimizer, parameters } = await json('configs/hybrid/tiny.yaml', '--groups', 'nanogpt');
    const [decayed, others] = optimizer.groups;
    expect(decayed.parameters + others.parameters).toBe(parameters);
    expect(decayed.kinds.map(({ kind }: { kind: string }) => kind)).toContain('srte');
    expect(decayed.tensors.map(({ name }: { name: string }) => name)).not.toContain(
      'lm_head.weight',
    );
  });

  it('has memory, time and cost on a GPU', async () => {
    const { hardware, accumulation } = await json(
      ...[SMALL, '--tokens', '1B', '--batch', '8', '--accumulation', '4', '--gpu', 'h100-80gb'],
      ...['--gpus', '2', '--price', '2'],
    );
    expect(hardware).toMatchObject({ gpus: 2, verdict: 'fits' });
    const hours = hardware.totalSeconds.expected / 3600;
    expect(hardware.cost.expected).toBeCloseTo(hours * 2 * 2, 9);
    for (const row of accumulation) {
      expect(row.microBatch * row.accumulation * row.gpus).toBe(64);
      expect(row.verdict).not.toBeNull();
    }
  });

  it('agrees with fit about memory and time', async () => {
    const { hardware } = await json(
      ...[SMALL, '--tokens', '1B', '--batch', '8', '--accumulation', '4', '--context', '512'],
      ...['--gpu', 'h100-80gb'],
    );
    const { stdout } = await runHere([
      ...['fit', SMALL, '--gpu', 'h100-80gb', '--for', 'training', '--micro-batch', '8'],
      ...['--global-batch', '16384', '--train-tokens', String(61_036 * 16_384)],
      ...['--context', '512', '--json'],
    ]);
    const { fit } = JSON.parse(stdout).training;
    expect(hardware.memory.expected).toBe(fit.total.expected.value);
    expect(hardware.totalSeconds.expected).toBe(fit.time.totalSeconds.expected.value);
  });

  it('lists checkpoints and their disk', async () => {
    const { checkpoints, parameters } = await json(
      ...[SMALL, '--steps', '1000', '--set', 'training.save_steps=300'],
      ...['--set', 'training.save_total_limit=3'],
    );
    expect(checkpoints).toEqual({
      weights16: 2 * parameters,
      weights32: 4 * parameters,
      resumable: 12 * parameters,
      every: 300,
      written: 4,
      kept: 3,
      diskBytes: 36 * parameters,
    });
  });

  it('counts gradients that fp16 loses', async () => {
    const values = [0, 1e-8, 2e-8, -5e-8, 1e-7, 1e-3, 2, Infinity];
    const file = gradientFile({ 'module.model.norm.weight': [8] }, values);
    const { gradients, underflow, mistakes } = await json(
      ...[SMALL, '--tokens', '1B', '--set', 'training.fp16=true', '--gradients', file],
      ...['--set', 'model.hidden_size=8', '--set', 'model.num_attention_heads=2'],
    );
    expect(gradients).toMatchObject({ values: 6, zeros: 1, notFinite: 1, largest: 2 });
    // 8 blocks of 9 tensors, and the tied embedding. The last norm has gradients.
    expect(gradients.missing).toBe(8 * 9 + 1);
    // numpy rounds them to 0, 0, -6e-8, 1.2e-7 and 1e-3 in float16. 1e-7 is also subnormal.
    const unscaled = { scale: 1, below: 3 / 6, zeroed: 2 / 6, imprecise: 4 / 6, above: 0 };
    // Scaled by 65,536, all small values are normal, and 2 is above 65,504.
    const scaled = { scale: 65_536, below: 0, zeroed: 0, imprecise: 0, above: 1 / 6 };
    expect(gradients.scales).toEqual([unscaled, scaled]);
    expect(underflow).toEqual({ ...unscaled, isMeasured: true });
    expect(mistakes.map(({ check }: { check: string }) => check)).toContain('fp16-without-scaler');
  });

  const gradientFile = (shapes: Record<string, number[]>, values: readonly number[]) => {
    let at = 0;
    const entries = Object.entries(shapes).map(([name, shape]) => {
      const end = at + 4 * shape.reduce((product, size) => product * size, 1);
      const entry = [name, { dtype: 'F32', shape, data_offsets: [at, end] }] as const;
      at = end;
      return entry;
    });
    const header = JSON.stringify(Object.fromEntries(entries));
    const length = Buffer.alloc(8);
    length.writeUInt32LE(header.length);
    const file = path.join(folder, 'gradients.safetensors');
    const content = [length, Buffer.from(header), Buffer.from(Float32Array.from(values).buffer)];
    fs.writeFileSync(file, Buffer.concat(content));
    return file;
  };

  it.each<[Record<string, number[]>, string]>([
    [
      { 'model.norm.weight': [512], other: [8] },
      'tensor other: expected a parameter of the model, which has none of this name',
    ],
    [
      { 'model.norm.weight': [520] },
      'tensor model.norm.weight: expected [512], as the parameter of the model, found [520]',
    ],
  ])('refuses the gradients %j of another model', async (shapes, message) => {
    const file = gradientFile(
      shapes,
      Array.from({ length: 520 }, () => 1),
    );
    const { code, stderr, stdout } = await plan(SMALL, '--gradients', file);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`error: --gradients: ${file}: ${message}`);
  });

  it('has a title of the plot without an empty warm-up', async () => {
    const titleOf = async (...flags: string[]) =>
      (await json(SMALL, '--steps', '100', '--lr', '1e-4', ...flags)).learningRate.title;
    expect(await titleOf('--warmup', '0')).toBe('half a cosine to 0');
    expect(await titleOf('--warmup', '5')).toBe('warm-up, then half a cosine to 0');
    expect(await titleOf('--schedule', 'wsd', '--warmup', '0')).toBe('stable, decay');
    expect(await titleOf('--schedule', 'minimind')).toBe('cosine to 10% without warm-up');
  });

  it('accepts a loss scale that is not a whole number', async () => {
    const flags = ['--loss-scale', '1e-9', '--set', 'training.fp16=true', '--details'];
    const { code, stdout } = await plan(SMALL, ...flags);
    expect(code).toBe(0);
    expect(stdout).toContain('at a scale of 1e-9');
  });

  it('labels the axis for a run of one step', async () => {
    const { stdout } = await plan(SMALL, '--steps', '1', '--batch', '300');
    expect(stdout).toMatch(/^ +0 +1$/m);
    expect(stdout).toContain('1 micro-step of a GPU');
  });

  it('compares the tokenizer with the vocabulary', async () => {
    const { mistakes } = await json(
      ...[SMALL, '--tokens', '1B', '--tokenizer', 'fixtures/tokenizers/bpe-512.json'],
    );
    expect(mistakes).toMatchObject([{ check: 'tokenizer-apart', severity: 'error' }]);
    expect(mistakes[0].reason).toContain('512 tokens');
  });

  describe('with --data', () => {
    const ids = (name: string, ...samples: number[][]) => {
      const file = path.join(folder, name);
      fs.writeFileSync(file, samples.map((each) => `${JSON.stringify(each)}\n`).join(''));
      return file;
    };
    const SETTING = ['--context', '8', '--batch', '1', '--accumulation', '2'];

    it('counts samples with their padding', async () => {
      // Three sequences of 8 with 4 + 8 + 6 tokens; the second one loses two tokens.
      const file = ids('padded.jsonl', [1, 2, 3, 4], [...Array(10).keys()], [1, 2, 3, 4, 5, 6]);
      const { size, data, mistakes } = await json(
        SMALL,
        '--epochs',
        '10',
        '--data',
        file,
        ...SETTING,
      );
      expect(data).toMatchObject({
        ...{ samples: 3, tokens: 18, positions: 24, longest: 10, highestId: 9, isPacked: false },
      });
      expect(size).toMatchObject({ dataTokens: 18, epochs: 10, filled: 0.75, steps: 15 });
      expect(size.tokens).toBe(180);
      const checks = mistakes.map(({ check }: { check: string }) => check);
      expect(checks).toEqual(expect.arrayContaining(['data-repeated', 'partial-accumulation']));
      expect(checks).not.toContain('context-beyond-data');
    });

    it('counts all tokens of packed samples', async () => {
      const file = ids('packed.jsonl', [1, 2, 3, 4], [...Array(12).keys()]);
      const { size, data } = await json(
        ...[SMALL, '--epochs', '2', '--data', file, ...SETTING],
        ...['--set', 'training.packing=true'],
      );
      expect(data).toMatchObject({ tokens: 16, positions: 16, isPacked: true });
      expect(size).toMatchObject({ filled: 1, steps: 2, epochs: 2 });
    });

    it('finds ids beyond the embedding, and a context beyond the samples', async () => {
      const file = ids('beyond.jsonl', [1, 6400, 2]);
      const { mistakes } = await json(SMALL, '--tokens', '1B', '--data', file);
      expect(mistakes).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ check: 'tokenizer-apart', place: '--data' }),
          expect.objectContaining({ check: 'context-beyond-data', place: '--data' }),
        ]),
      );
      expect(mistakes[0].reason).toContain('ids up to 6,400');
    });

    it('counts texts like the data command', async () => {
      const data = ['fixtures/data/pretrain.jsonl', '--tokenizer', 'fixtures/data/tokenizer'];
      const { size } = await json(SMALL, '--tokens', '1M', '--context', '64', '--data', ...data);
      const { stdout } = await runHere([
        ...['data', ...data, '--context', '64', '--tokens', '1M', '--json'],
      ]);
      const { figures, epochs } = JSON.parse(stdout);
      expect(size.dataTokens).toBe(figures.tokens.tokens);
      expect(size.epochs).toBeCloseTo(epochs.epochs, 12);
    });

    it('requires a tokenizer for texts, and no --data-tokens', async () => {
      const without = path.join(folder, 'text.jsonl');
      fs.writeFileSync(without, '{"text": "a"}\n');
      const { code, stderr } = await plan(SMALL, '--data', without);
      expect(code).toBe(2);
      expect(stderr).toContain('--tokenizer FILE');
      expect(await plan(SMALL, '--data', without, '--data-tokens', '5')).toMatchObject({ code: 2 });
    });
  });

  it('exits with 1 for a mistake only with --check', async () => {
    const bad = [SMALL, '--tokens', '1B', '--lr', '0.05', '--warmup', '1%', '-q'];
    expect(await plan(...bad)).toMatchObject({ code: 0 });
    const { code, stdout } = await plan(...bad, '--check');
    expect(code).toBe(1);
    expect(stdout).toContain('error: --lr: learning rate out of range');
    const good = [SMALL, '--tokens', '1B', '--schedule', 'cosine', '--lr', '5e-4'];
    expect((await plan(...good, '--warmup', '1%', '--check')).code).toBe(0);
  });

  it('accepts a floor and a weight decay of 0', async () => {
    const flags = ['--min-lr', '0', '--weight-decay', '0'];
    expect(await json(SMALL, ...flags)).toMatchObject({
      mistakes: [],
      optimizer: { weightDecay: 0 },
    });
  });

  it('uses the number of GPUs in the file', async () => {
    const { size } = await json('fixtures/training/good/wsd.yaml', '--gpu', 'h100-80gb');
    expect(size.gpus).toBe(8);
  });

  it.each([
    [['--schedule', 'cosin'], 'unknown schedule "cosin"', 'did you mean cosine?'],
    [['--tokens', '1B', '--steps', '5'], '--tokens and --steps both set the length', 'only one'],
    [['--warmup', 'x'], 'expected steps or a share', '--warmup 500'],
    [['--groups', 'x'], 'unknown rule "x"', 'nanogpt, huggingface, all'],
    [['--context', '1000000'], 'more than the 32,768 positions', '--context 32768'],
    [['--gradients', 'no-such-file'], 'no-such-file', ''],
    [['--epochs', '2'], '--epochs requires the number of tokens', '--data-tokens 1B'],
    [['--tokens', '1e30'], 'expected at most 9,010,000B tokens, found 1e30', '--tokens 10B'],
    [['--weight-decay', '-1'], 'expected a number of at least 0', '--weight-decay 0.1'],
    [['--batch', '1e15'], 'expected at most 9,010,000B tokens in a step', 'a smaller batch'],
    [['--accumulation', '1e15'], 'tokens in a step, found 2.05e18', 'a smaller batch'],
    [['--steps', '1e15'], 'expected at most 9,010,000B tokens, found 5.24e20', 'fewer tokens'],
    [['--epochs', '1e12', '--data-tokens', '1e12'], 'tokens, found 1e24', 'fewer tokens'],
    [['--gpu', 'h100', '--gpus', '1e15'], 'at most 1,000,000 GPUs', '--gpus 8'],
    [['--gpu', 'h100', '--price', '1e300'], 'expected a number up to 1T', '--price 0.5'],
    [['--gpu', 'h100', '--mfu', '1e-320'], 'expected a share above 0', '--mfu 0.4'],
    [['--epochs', '1e-9', '--data-tokens', '1M'], 'expected at least 1 token', 'more tokens'],
    [['--lr', '1e999'], 'expected a number up to 1e100', '--lr 3e-4'],
    [['--as', 'plain'], '--data', ''],
  ])('refuses %j', async (flags, message, suggestion) => {
    const { code, stderr } = await plan(SMALL, ...flags);
    expect(code).toBeGreaterThan(1);
    expect(stderr).toContain(message);
    expect(stderr).toContain(suggestion);
  });
});

describe('validate of a training', () => {
  const file = 'fixtures/training/mistakes/learning-rate-absurd.yaml';

  it('warns of mistakes with their line', async () => {
    const { code, stderr } = await runHere(['validate', file]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/warning: .*absurd\.yaml:12:18: training\.learning_rate/);
    expect(stderr).toContain('write learning_rate: ');
  });

  it('reports mistakes as errors with --strict', async () => {
    const { code, stderr } = await runHere(['validate', file, '--strict']);
    expect(code).toBe(1);
    expect(stderr).toContain('error: ');
  });

  it('has no warnings for good trainings', async () => {
    const good = fs
      .readdirSync('fixtures/training/good')
      .map((name) => `fixtures/training/good/${name}`);
    expect(await runHere(['validate', ...good, '--strict'])).toMatchObject({ code: 0, stderr: '' });
  });
});
