import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openTrainer } from '../../../src/engine/tfjs/training/tfjs-trainer.js';
import { randomIds } from '../../../src/engine/token-ids.js';
import type { ModelTraining, TrainingStep } from '../../../src/engine/trainer.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import type { Param } from '../../../src/model/architecture/param.js';
import { TINY } from '../../check/test-contexts.js';
import { inPackage } from '../../fixtures.js';
import { sampled } from '../../sampled.js';
import { familyCase } from '../family-cases.js';
import { modelOfConfig } from '../fixture-models.js';

interface Losses {
  readonly settings: {
    readonly steps: number;
    readonly optimizer: {
      readonly lr: number;
      readonly betas: [number, number];
      readonly eps: number;
      readonly weight_decay: number;
    };
    readonly maxGradientNorm: number;
  };
  readonly cases: Readonly<Record<string, Case>>;
}

interface Case {
  readonly losses: readonly number[];
  readonly norms: readonly number[];
  /** Norm of each gradient, and its sum times sin(1), sin(2), … */
  readonly gradients: Readonly<Record<string, readonly [number, number]>>;
}

const { settings, cases } = JSON.parse(
  fs.readFileSync(inPackage('fixtures', 'training-losses', 'losses.json'), 'utf8'),
) as Losses;

async function trainingOf(place: string): Promise<ModelTraining> {
  const { model, weights, ids } = await familyCase(place);
  const trainer = await openTrainer(1, 'wasm');
  const { lr, betas, eps, weight_decay } = settings.optimizer;
  return trainer.trainModel({
    model,
    weights,
    ids,
    optimizer: { learningRate: lr, betas, epsilon: eps, weightDecay: weight_decay },
    maxGradientNorm: settings.maxGradientNorm,
  });
}

/** Cases of each kind that are also trained for all steps. */
const ALL_STEPS = [
  'hf/llama',
  'hf/gpt2',
  'hf/gemma2',
  'hf/qwen3-moe',
  'hf/deepseek-v3',
  'hf/mamba2',
  'hf/jamba',
  'hf/bamba',
  'hf/qwen3-next-7-12',
  'hf/lfm2-7-15',
  'minimind/v3-dense',
];
const EVERY = process.env.MINIMIND_TRAINING_CASES === 'all';

/** Cases whose router has only gradients from rounding: one expert per token, with weight 1. */
const WITHOUT_LOSSES = ['minimind/v3-moe'];

const trainedCases = Object.keys(cases).filter(
  (each) => !WITHOUT_LOSSES.includes(each) && (EVERY || ALL_STEPS.includes(each)),
);

describe('training', () => {
  it.each(sampled(Object.keys(cases), 3))('gives the gradients of PyTorch: %s', async (place) => {
    const training = await trainingOf(place);
    const gradients = await training.gradients();
    await training.release();
    // A published checkpoint has separate experts, where transformers packs them.
    const isPacked = place.endsWith('-saved') || place.includes('ernie4-5-moe');
    const byName = new Map(
      [...gradients].flatMap(([{ name, aliases }, values]) =>
        [name, ...aliases].map((each) => [each, values] as const),
      ),
    );
    const wrong: string[] = [];
    for (const [name, [norm, along]] of Object.entries(cases[place]?.gradients ?? {})) {
      const values = byName.get(name);
      if (!values) {
        if (norm > 0 && !isPacked) wrong.push(`${name} is missing`);
        continue;
      }
      const own = Math.sqrt(values.reduce((sum, each) => sum + each * each, 0));
      const ownAlong = values.reduce((sum, each, at) => sum + each * Math.sin(at + 1), 0);
      const limit = 1e-4 * norm + 1e-7;
      if (!(Math.abs(own - norm) <= limit && Math.abs(ownAlong - along) <= limit)) {
        wrong.push(`${name}: ${own} and ${ownAlong}, not ${norm} and ${along}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it.each(sampled(trainedCases, 2))('gives the losses of PyTorch: %s', async (place) => {
    const training = await trainingOf(place);
    const expected = cases[place] as Case;
    const steps: TrainingStep[] = [];
    for (let step = 0; step < settings.steps; step++) steps.push(await training.step());
    await training.release();
    const differences = steps.map(({ loss }, at) => Math.abs(loss - (expected.losses[at] ?? 0)));
    expect(Math.max(...differences)).toBeLessThan(1e-4);
    const norms = steps.map(({ gradientNorm }, at) =>
      Math.abs(gradientNorm / (expected.norms[at] ?? 0) - 1),
    );
    expect(Math.max(...norms)).toBeLessThan(1e-3);
  });
});

/** Slope of the loss along the gradient of all matching tensors, by its norm and by finite difference. */
async function slopes(config: Readonly<Record<string, unknown>>, name: RegExp) {
  const model = modelOfConfig({ ...TINY, ...config });
  const ids = randomIds(1, 'ids', { batch: 2, tokens: 16 }, { vocabulary: 12, positions: 32 });
  const trainer = await openTrainer(1, 'wasm');
  const optimizer = {
    learningRate: 0,
    betas: [0.9, 0.999],
    epsilon: 1e-8,
    weightDecay: 0,
  } as const;
  const weights = randomWeights(model, 3);
  const at = async (step: number, direction?: ReadonlyMap<Param, Float32Array>) => {
    const source: WeightSource = {
      rangeOf: () => undefined,
      read(tensor, first, target) {
        weights.read(tensor, first, target);
        // Larger than at the start of training, so that all effects exceed rounding.
        if (tensor.shape.length > 1)
          for (const at of target.keys()) target[at] = 2 * (target[at] ?? 0);
        const own = direction?.get(tensor);
        for (let index = 0; own && index < target.length; index++) {
          target[index] = (target[index] as number) + step * (own[first + index] as number);
        }
      },
    };
    return trainer.trainModel({
      model,
      weights: source,
      ids,
      optimizer,
      maxGradientNorm: undefined,
    });
  };
  const training = await at(0);
  const gradients = [...(await training.gradients())].filter(([tensor]) => name.test(tensor.name));
  await training.release();
  const norm = Math.hypot(...gradients.map(([, values]) => Math.hypot(...values)));
  const direction = new Map(
    gradients.map(([tensor, values]) => [tensor, values.map((each) => each / norm)]),
  );
  const lossAt = async (step: number) => {
    const moved = await at(step, direction);
    const loss = await moved.loss();
    await moved.release();
    return loss;
  };
  // A steeper loss needs a smaller step.
  const step = 1 / (512 * Math.max(1, norm));
  const finite = ((await lossAt(step)) - (await lossAt(-step))) / (2 * step);
  return { slope: norm, finite, changed: gradients.map(([tensor]) => tensor.name) };
}

describe('the gradients of a hybrid match finite differences for', () => {
  it.each([
    ['the shared low-rank table', {}, /srte/],
    ['a shared learnable table', { srte_encoding: 'learnable' }, /srte/],
    [
      'a table for each layer',
      { srte_encoding: 'learnable', srte_share_across_layers: false },
      /srte/,
    ],
    ['its Mamba layers', {}, /mamba/],
    ['its attention', {}, /attention/],
    ['alignment, gate and fusion', {}, /alignment|gate|fusion/],
    ['all tensors', {}, /./],
  ])('%s', async (_, config, name) => {
    const { slope, finite, changed } = await slopes(config, name);
    expect(changed.length).toBeGreaterThan(0);
    expect(slope).toBeGreaterThan(1e-3);
    expect(Math.abs(slope - finite)).toBeLessThan(0.01 * slope);
  });
});
