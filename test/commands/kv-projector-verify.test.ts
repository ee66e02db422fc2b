import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { livePlot } from '../../src/cli/progress.js';
import { DATA } from '../../src/convert/kv-projector/verify-adapters.js';
import type { VerifyProjectorsResult } from '../../src/convert/kv-projector/verify-projectors.js';
import {
  lossPlot,
  verifyProjectorsReport,
} from '../../src/report/kv-projector/kv-projector-verify.js';
import { render } from '../../src/report/render/render.js';
import { runHere } from '../run-here.js';

const SMALL = ['--teacher-width', '64', '--student', '24'];
const verify = (...args: string[]) => runHere(['kv-projector', 'verify', ...args]);

describe('kv-projector verify', () => {
  it('has a row of CSV for every step, with the losses of the linear layer of PyTorch', async () => {
    const { code, stdout } = await verify(...SMALL, '--steps', '15', '--format', 'csv');
    expect(code).toBe(0);
    const [head, ...rows] = stdout.trim().split('\n');
    expect(head).toBe('step,linear_loss,elastic_loss');
    expect(rows).toHaveLength(15);
    // Losses of the published program in PyTorch, with torch.manual_seed(0) and nn.Linear(64, 24).
    const losses = [1, 5, 15].map((step) => Number(rows[step - 1]?.split(',')[1]).toFixed(4));
    expect(losses).toEqual(['3.7341', '3.3063', '2.6248']);
  });

  it('trains each adapter with its own learning rate, as AdamW of PyTorch does', async () => {
    const lossesOf = async (...flags: string[]) => {
      const { stdout } = await verify(...SMALL, '--steps', '15', '--json', ...flags);
      const { steps, learningRates } = JSON.parse(stdout);
      const at = (kind: string) =>
        [0, 4, 14].map((step: number) => Number(steps[step][kind].toFixed(4)));
      return { learningRates, linear: at('linear'), elastic: at('elastic') };
    };
    const own = await lossesOf('--linear-lr', '5e-5', '--elastic-lr', '1e-2');
    // nn.Linear(64, 24) with lr=5e-5, and below with lr=1e-2.
    expect(own.linear).toEqual([3.7341, 3.709, 3.6483]);
    expect(own.learningRates).toEqual({ linear: 5e-5, elastic: 1e-2 });
    const both = await lossesOf('--lr', '1e-2');
    expect(both.linear).toEqual([3.7341, 1.7103, 0.5107]);
    expect(both.elastic).toEqual(own.elastic);
  });

  it.each([
    ['--linear-lr', '1e-3', '--elastic-lr', '1e-2'],
    ['--no-norm', '--elastic-lr', '1e-2'],
  ])('refuses --lr beside %j, which replace it', async (...flags) => {
    const { code, stderr } = await verify(...SMALL, '--lr', '1e-3', ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain('--lr has no effect');
  });

  it('counts the steps to a loss, and times them', async () => {
    const { stdout } = await verify(...SMALL, '--target-loss', '1', '--json');
    const { steps, targets, secondsPerStep } = JSON.parse(stdout);
    type Losses = Readonly<Record<'linear' | 'elastic', number>>;
    const first = (kind: keyof Losses, loss: number) =>
      1 + steps.findIndex((step: Losses) => step[kind] <= loss) || null;
    const last: Losses = steps.at(-1);
    expect(targets.map(({ from, loss }: { from: string; loss: number }) => [from, loss])).toEqual([
      ['given', 1],
      ['linear', last.linear],
      ['elastic', last.elastic],
    ]);
    for (const { loss, steps: counted, seconds, fewerSteps } of targets) {
      const [linear, elastic] = [first('linear', loss), first('elastic', loss)];
      expect(counted).toEqual({ linear, elastic });
      expect(fewerSteps).toBe(linear && elastic ? linear / elastic : null);
      expect(seconds.elastic).toBe(elastic && elastic * secondsPerStep.elastic);
    }
    expect(secondsPerStep.linear).toBeGreaterThan(0);
    // Elastic starts near 1, linear near 3.7.
    expect(targets[1].steps.elastic).toBeLessThan(targets[1].steps.linear);
  });

  it('has other losses with another seed', async () => {
    const lossesOf = (...seed: string[]) =>
      verify(...SMALL, '--steps', '2', '--format', 'csv', ...seed);
    const [first, second] = [await lossesOf(), await lossesOf('--seed', '8')];
    expect(first.stdout).not.toBe(second.stdout);
  });

  it('names the data for which linear wins', async () => {
    const { stdout } = await verify(...SMALL, '--steps', '20', '--details');
    expect(stdout).toMatch(/^elastic wins after \d+ steps: loss [\d.]+, linear [\d.]+\n/);
    expect(stdout).toContain('--data linear');
    expect(stdout).toContain('x linear   o elastic');
  });

  it.each([
    [['--data', 'nonsense'], /--data/],
    [['--full', '--student', '8'], /--student/],
    [['--student', '1.5', 'extra'], /--student/],
    [['--elastic-learning-rate', 'fast'], /unknown flag "--elastic-learning-rate"/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr, stdout } = await verify(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(stdout).toBe('');
  });

  const TOO_LARGE = [
    '--teacher-width',
    '16000',
    '--student',
    '8',
    '--batch',
    '1',
    '--context',
    '1',
  ];

  it('refuses widths beyond the memory of the backend', async () => {
    const { code, stderr } = await verify(...TOO_LARGE);
    expect(code).toBe(2);
    expect(stderr).toMatch(/at most 4 GiB[\s\S]*smaller widths/);
  });

  it.each([
    ['--teacher-width', '320', '--student', '96', '--batch', '100000', '--context', '100000'],
    ['--teacher-width', '64', '--student', '4', '--batch', '40000', '--context', '100'],
    ['--batch', '100000', '--context', '100000'],
  ])('refuses data beyond the memory of the backend: %j', async (...args) => {
    const { code, stderr } = await verify(...args, '--steps', '1');
    expect(code).toBe(2);
    expect(stderr).toMatch(/at most 4 GiB[\s\S]*fewer\s+rows/);
  });

  it('refuses an existing file before it begins', async () => {
    const { code, stderr } = await verify(...TOO_LARGE, '-o', 'package.json');
    expect(code).toBe(2);
    expect(stderr).toContain('package.json exists already');
  });
});

const RESULT: VerifyProjectorsResult = {
  schema: 'minimind/kv-projector-verify@1',
  data: 'published',
  size: { teacherWidth: 5120, studentWidth: 1536, hidden: 5120, batch: 4, context: 64 },
  engine: {
    ...{ name: 'tfjs', version: '4.22.0', provider: 'wasm', device: 'cpu', deviceKind: 'cpu' },
    ...{ isSoftware: false, memoryBytes: null, threads: 1, compute: 'f32' },
  },
  optimizer: { learningRate: 1e-3, betas: [0.9, 0.999], epsilon: 1e-8, weightDecay: 0.01 },
  learningRates: { linear: 1e-3, elastic: 1e-3 },
  dropout: 0.1,
  secondsPerStep: { linear: 0.5, elastic: 2 },
  targets: [
    {
      ...{ loss: 30, from: 'linear', steps: { linear: 5, elastic: 1 } },
      ...{ seconds: { linear: 2.5, elastic: 2 }, fewerSteps: 5, lessTime: 1.25 },
    },
    {
      ...{ loss: 0.1449, from: 'elastic', steps: { linear: null, elastic: 5 } },
      ...{ seconds: { linear: null, elastic: 10 }, fewerSteps: null, lessTime: null },
    },
  ],
  parameters: { linear: 7_865_856, elastic: 34_095_616 },
  steps: [
    { step: 1, linear: 4.14, elastic: 1 },
    { step: 5, linear: 30, elastic: 0.1449 },
  ],
  winner: 'elastic',
  published: [
    { step: 5, adapter: 'linear', lowest: 22, highest: 22.5, loss: 30, within: false },
    { step: 5, adapter: 'elastic', lowest: 0.144, highest: 0.145, loss: 0.1449, within: true },
  ],
  seconds: 9,
  seed: 0,
  reduced: null,
};

describe('the report of kv-projector verify', () => {
  const text = (result: VerifyProjectorsResult) =>
    render(verifyProjectorsReport(result, DATA[result.data]), 'table', {
      details: true,
      width: 100,
      colourLevel: 0,
    });

  it('compares losses with the published ones, and marks those outside', async () => {
    const report = await text(RESULT);
    expect(report).toMatch(/5 +30 +22–22\.5 ✗ +0\.1449 +0\.144–0\.145 ✓/);
    expect(report).toContain('1 of 2 losses are outside');
  });

  it('says how many steps and how much time lie between the adapters', async () => {
    const report = (await text(RESULT)).replaceAll(/\s+/g, ' ');
    expect(report).toContain(
      'to loss 30 (last of linear): linear 5, elastic 1. Elastic needs 5.00 times fewer steps, 1.25 times less time',
    );
    expect(report).toContain('500 ms a step of linear, 2.00 s of elastic: 4.00 times as long');
    expect(report).toContain('0.1449 elastic, last step – – 5 10.0 s');
  });

  it('names no winner if a loss is NaN, and plots the others', async () => {
    const steps = [...RESULT.steps, { step: 6, linear: Number.NaN, elastic: 0.1 }];
    expect(await text({ ...RESULT, steps, winner: null })).toContain(
      'No winner: a loss is not a number',
    );
    expect(lossPlot(steps)?.series.map(({ values }) => values.length)).toEqual([2, 3]);
    expect(lossPlot([{ step: 1, linear: Number.NaN, elastic: 0 }])).toBeNull();
  });

  it('reports reduced widths, and the time of the full ones', async () => {
    const reduced = { fromTeacherWidth: 5120, fromStudentWidth: 1536, estimatedSeconds: 200 };
    expect(await text({ ...RESULT, reduced })).toMatch(
      /--full runs 5,120 → 1,536\s+\(about\s+3 min 20 s\)/,
    );
  });
});

describe('a live plot', () => {
  const terminal = (rows: number, isTTY = true, columns = 80) => {
    const written: string[] = [];
    const write = (chunk: string) => written.push(chunk) > 0;
    const stream = { isTTY, rows, columns, write, getColorDepth: () => 1 };
    return { written, stream: stream as unknown as NodeJS.WriteStream };
  };
  const options = { quiet: false, noColor: true };

  it('is drawn on a terminal and cleared at the end', async () => {
    const { written, stream } = terminal(40);
    const shown = livePlot(options, stream);
    await shown.show(lossPlot(RESULT.steps), 'step 2 of 3');
    expect(written[0]).toContain('x linear');
    expect(written[0]?.endsWith('step 2 of 3\x1b[K\n\x1b[J')).toBe(true);
    const lines = (written[0] ?? '').split('\n').length - 1;
    shown.end();
    shown.end();
    expect(written.slice(1)).toEqual([`\r\x1b[${lines}A\x1b[J`]);
  });

  it.each([16, 24])('leaves room on a terminal of %d rows', async (rows) => {
    const { written, stream } = terminal(rows);
    const shown = livePlot(options, stream);
    await shown.show(lossPlot(RESULT.steps), 'step 2 of 3');
    shown.end();
    expect(written[0]).toContain('x linear');
    expect((written[0] ?? '').split('\n').length).toBeLessThan(rows);
  });

  /** Rows of a terminal for a text, in which wide lines wrap. */
  const rowsTaken = (text: string, columns: number) =>
    stripVTControlCharacters(text)
      .split('\n')
      .slice(0, -1)
      .reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / columns)), 0);

  it.each([
    [40, 16],
    [20, 16],
    [12, 16],
    [20, 40],
    [200, 17],
  ])('fits a terminal of %d × %d', async (columns, rows) => {
    const { written, stream } = terminal(rows, true, columns);
    const shown = livePlot(options, stream);
    const status =
      'step 2 of 40, 59 s left: linear 30.1, elastic 0.145 (reduced: --full takes about 3 min 20 s)';
    await shown.show(lossPlot(RESULT.steps), status);
    shown.end();
    const taken = rowsTaken(written[0] ?? '', columns);
    expect(taken).toBeLessThan(rows);
    expect(written[1]).toBe(`\r\x1b[${taken}A\x1b[J`);
  });

  it('keeps a line that is not part of the plot', async () => {
    const { written, stream } = terminal(40);
    const shown = livePlot(options, stream);
    await shown.show(null, 'estimating');
    shown.say('this takes about 5 min');
    shown.end();
    expect(written.slice(1)).toEqual(['\r\x1b[1A\x1b[J', 'this takes about 5 min\n']);
  });

  it.each([
    ['a low terminal', terminal(12), options],
    ['no terminal', terminal(40, false), options],
    ['quiet', terminal(40), { ...options, quiet: true }],
  ])('is not drawn: %s', async (_, { written, stream }, flags) => {
    const shown = livePlot(flags, stream);
    await shown.show(lossPlot(RESULT.steps), 'step 2 of 3');
    shown.end();
    expect(written).toEqual([]);
  });
});
