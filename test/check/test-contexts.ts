/** Small models to test, on an engine with planted faults. */

import type { CheckName } from '../../src/check/checks.js';
import { runCheck } from '../../src/check/run-quick-test.js';
import { TestContext } from '../../src/check/test-context.js';
import type { Engine } from '../../src/engine/engine.js';
import { idLimitsOf, randomIds } from '../../src/engine/token-ids.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { randomWeights } from '../../src/engine/weights/weights.js';
import type { LanguageModel } from '../../src/model/architecture/layer.js';
import type { Param } from '../../src/model/architecture/param.js';
import { modelOfConfig } from '../engine/fixture-models.js';
import type { Faults } from '../engine/reference-engine.js';
import { referenceEngine } from '../engine/reference-engine.js';

/** Two blocks, a window shorter than the input, and a tied head. */
export const TINY = {
  vocab_size: 12,
  hidden_size: 8,
  num_layers: 2,
  num_heads: 2,
  window_size: 6,
  global_heads: 1,
  gate_rank: 2,
  max_position_embeddings: 32,
  srte_factorized_rank: 3,
  tie_word_embeddings: true,
};

interface ContextSettings {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly model?: LanguageModel;
  readonly faults?: Faults;
  /** Faults of the second engine. */
  readonly otherFaults?: Faults;
  readonly engine?: Engine;
  readonly openOther?: () => Promise<Engine>;
  readonly openFloat32?: () => Promise<Engine>;
  readonly batch?: number;
  readonly tokens?: number;
  readonly repeats?: number;
  readonly outputTokens?: number;
  readonly weights?: (model: LanguageModel) => WeightSource;
}

export function contextOf({
  config = {},
  model = modelOfConfig({ ...TINY, ...config }),
  faults = {},
  otherFaults = {},
  batch = 1,
  tokens = 16,
  repeats = 2,
  outputTokens,
  weights = (each) => randomWeights(each, 3),
  engine = referenceEngine(faults),
  openOther = async () => referenceEngine(otherFaults, { name: 'tfjs' }),
  openFloat32 = async () => referenceEngine(otherFaults),
}: ContextSettings = {}): TestContext {
  return new TestContext({
    model,
    weights: weights(model),
    engine,
    ids: randomIds(3, 'ids', { batch, tokens }, idLimitsOf(model)),
    seed: 3,
    repeats,
    outputTokens,
    openOther,
    openFloat32,
  });
}

export const checked = (name: CheckName, settings?: ContextSettings) =>
  runCheck(name, contextOf(settings));

/** Random weights with a change. */
const changed =
  (change: (tensor: Param, first: number, target: Float32Array) => void) =>
  (model: LanguageModel): WeightSource => {
    const source = randomWeights(model, 3);
    return {
      rangeOf: (tensor) => source.rangeOf(tensor),
      read(tensor, first, target) {
        source.read(tensor, first, target);
        change(tensor, first, target);
      },
    };
  };

/** Random weights with one changed value. */
export const withValue = (name: string, index: number, value: number) =>
  changed((tensor, first, target) => {
    const at = index - first;
    if (tensor.name === name && at >= 0 && at < target.length) target[at] = value;
  });

/** Random weights times a factor, except those that the scan takes exponentials of. */
export const scaled = (factor: number) =>
  changed(({ name, role }, _, target) => {
    if (role !== 'parameter' || name.endsWith('A_log')) return;
    for (const [at, value] of target.entries()) target[at] = value * factor;
  });
