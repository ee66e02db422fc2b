import { describe, expect, it } from 'vitest';
import { manualSeed } from '../../../src/base/random/index.js';
import type { Ablations } from '../../../src/convert/kv-projector/ablations.js';
import {
  ablate,
  PUBLISHED_CHANGES,
  variantsOf,
} from '../../../src/convert/kv-projector/ablations.js';
import { verify, verifySize } from '../../../src/convert/kv-projector/verify-adapters.js';
import type { AblationsResult } from '../../../src/convert/kv-projector/verify-projectors.js';
import { openTrainer } from '../../../src/engine/tfjs/training/tfjs-trainer.js';
import { ablationsReport } from '../../../src/report/kv-projector/kv-projector-verify.js';
import { render } from '../../../src/report/render/render.js';
import { runHere } from '../../run-here.js';

const KEYS = 'fixtures/kv-projector/linear-one-teacher/expected.safetensors';
const NOTHING = { ratios: [], dropouts: [], activations: [], withoutNorm: false };
const size = verifySize({ teacherWidth: 96, studentWidth: 32, batch: 1, context: 32 });

const ablations = (...args: string[]) => runHere(['kv-projector', 'verify', ...args]);
const SMALL = ['--teacher-width', '24', '--student', '8', '--steps', '3', '--context', '8'];

describe('variants', () => {
  it('each change one part of the base', () => {
    expect(variantsOf(NOTHING).map(({ name }) => name)).toEqual(['base']);
    expect(variantsOf(PUBLISHED_CHANGES).map(({ name }) => name)).toEqual([
      ...['base', 'no norm', 'relu', 'gelu', 'ratio 0.5', 'ratio 2', 'dropout 0'],
    ]);
    const [base, ...others] = variantsOf(PUBLISHED_CHANGES);
    for (const other of others) {
      const changed = (['ratio', 'norm', 'activation', 'dropout'] as const).filter(
        (part) => other[part] !== base?.[part],
      );
      expect(changed).toHaveLength(1);
    }
  });

  it('appear once, and not where they equal the base', () => {
    const changes = { ...NOTHING, ratios: [1, 2, 2], activations: ['silu', 'relu'] as const };
    expect(variantsOf(changes).map(({ name }) => name)).toEqual(['base', 'relu', 'ratio 2']);
  });
});

describe('training of variants', () => {
  const request = { data: 'published', size, steps: 40, seeds: [0, 1] } as const;

  it('gives the base the loss of the comparison, and the others a ratio to it', async () => {
    const trainer = await openTrainer(1, 'wasm');
    const changes = { ...PUBLISHED_CHANGES, ratios: [0.5] };
    const { variants, withoutNorm } = await ablate(trainer, { ...request, changes });
    const [base, noNorm, , , half] = variants;
    for (const [at, seed] of request.seeds.entries()) {
      const { steps } = await verify(trainer, { ...request, random: manualSeed(seed) });
      expect(base?.losses[at]).toBe(steps.at(-1)?.elastic);
    }
    expect(base?.timesBase).toEqual({ mean: 1, lowest: 1, highest: 1 });
    // Each seed has its own data and values.
    expect(base?.loss.lowest).toBeLessThan(base?.loss.highest ?? 0);
    expect(noNorm?.timesBase).toEqual(withoutNorm);
    expect(withoutNorm?.lowest).toBeGreaterThan(1.5);
    expect(base?.parameters).toBe(2 * 96 + 96 * 96 + 96 + 96 * 32 + 32);
    expect(noNorm?.parameters).toBe(96 * 96 + 96 + 96 * 32 + 32);
    expect(half).toMatchObject({ name: 'ratio 0.5', hidden: 48 });
  });
});

describe('steps of variants', () => {
  it('are those to the higher last loss of a variant and the base', async () => {
    const trainer = await openTrainer(1, 'wasm');
    const request = { data: 'published', size, steps: 20, seeds: [0] } as const;
    const changes = { ...NOTHING, activations: ['relu'] } as const;
    const { variants } = await ablate(trainer, { ...request, changes });
    const [base, relu] = variants;
    const { steps } = await verify(trainer, { ...request, random: manualSeed(0) });
    const target = Math.max(base?.losses[0] ?? 0, relu?.losses[0] ?? 0);
    const reached = 1 + steps.findIndex(({ elastic }) => elastic <= target);
    expect(relu?.baseStepsToLoss).toEqual([reached]);
    const own = relu?.stepsToLoss[0] ?? 0;
    expect(relu?.timesSteps?.mean).toBe(own / reached);
    expect(base?.timesSteps?.mean).toBe(1);
    const given = await ablate(trainer, { ...request, changes, targetLoss: 1e-9 });
    expect(given.variants[1]).toMatchObject({ stepsToLoss: [null], timesSteps: null });
  });

  it('can have another learning rate', async () => {
    const of = async (...flags: string[]) => {
      const { stdout } = await ablations(...SMALL, '--no-norm', '--seeds', '1', '--json', ...flags);
      return JSON.parse(stdout) as AblationsResult;
    };
    const [usual, higher] = [await of(), await of('--lr', '1e-2')];
    expect(higher.optimizer.learningRate).toBe(1e-2);
    expect(higher.variants[0]?.losses[0]).toBeLessThan(usual.variants[0]?.losses[0] ?? 0);
    const { code, stderr } = await ablations(...SMALL, '--no-norm', '--linear-lr', '1e-2');
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('--lr 0.01') });
  });
});

describe('kv-projector verify with ablations', () => {
  it('answers first with the ratio of losses without the norm', async () => {
    const { code, stdout, stderr } = await ablations(...SMALL, '--no-norm', '--seeds', '2');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^Without the norm, the loss after 3 steps is [\d.]+ times \([\d.]+–[\d.]+ over 2 seeds\) that of the base\n/,
    );
    expect(stdout).toMatch(/^no norm +800 /m);
  });

  it('trains all published changes unless some are named', async () => {
    const rows = async (...args: string[]) => {
      const { stdout } = await ablations(...SMALL, ...args, '--format', 'csv');
      return stdout.trim().split('\n').slice(1);
    };
    expect(await rows('--seeds', '2')).toHaveLength(14);
    expect(await rows('--activation', 'relu', '--seeds', '1')).toHaveLength(2);
    expect(await rows('--ratio', '0.5,2', '--dropout', '0', '--seeds', '1')).toHaveLength(4);
  });

  it('takes the width of a teacher, or its keys', async () => {
    const answer = async (...args: string[]) => {
      const flags = ['--student', '8', '--steps', '2', '--context', '8', '--no-norm'];
      const { stdout } = await ablations(...flags, '--seeds', '1', '--json', ...args);
      return JSON.parse(stdout) as Ablations & AblationsResult;
    };
    expect((await answer('--teacher', 'A:40')).size.teacherWidth).toBe(40);
    const named = await answer('--teacher', 'A:24');
    const keys = await answer('--teacher', KEYS);
    expect(keys.size.teacherWidth).toBe(24);
    expect(keys.teacher).toEqual({ text: KEYS, tensor: 'input.Qwen2-7B.K' });
    expect(keys.variants[0]?.losses).not.toEqual(named.variants[0]?.losses);
  });

  it.each([
    ['more rows than the file has', ['--teacher', KEYS], /expected 64 rows of keys, found 30/],
    [
      'shifted keys',
      ['--teacher', KEYS, '--context', '8', '--data', 'shifted'],
      /--data shifted does not apply/,
    ],
    ['no keys', ['--teacher', 'fixtures/kv-projector/init.safetensors'], /found no keys in/],
    ['the full size', ['--no-norm', '--full'], /--full does not apply to ablations/],
    ['another activation', ['--activation', 'tanh'], /silu, relu, gelu/],
    [
      'no width',
      ['--ratio', '0.01', '--teacher-width', '24'],
      /expected a ratio with a hidden width of at least 1, found 0\.01/,
    ],
    ['an invalid probability', ['--dropout', '1'], /--dropout: expected a probability/],
    ['a word as ratio', ['--ratio', 'recommended'], /--ratio: expected a number, found/],
    ['two widths', ['--teacher', 'A:8', '--teacher-width', '8'], /--teacher/],
  ])('refuses %s', async (_, args, message) => {
    const { code, stderr } = await ablations(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  it('reports a loss that is not a number', async () => {
    const { stdout } = await ablations(...SMALL, '--no-norm', '--seeds', '1', '--json');
    const result = JSON.parse(stdout) as AblationsResult;
    const spread = { mean: Number.NaN, lowest: Number.NaN, highest: Number.NaN };
    const report = ablationsReport({ ...result, withoutNorm: spread }, 'data');
    const text = await render(report, 'table', { width: 80, colourLevel: 0 });
    expect(text).toMatch(/^Without the norm, .* is not a number/);
  });
});
