/** Buffers of the exchanges of large models: tokens for experts, and keys of other parts of a sequence. */

import { type Expression, inputs, mul } from '../../../model/budget/expression.js';
import { trainingBytes } from '../../../model/budget/training-budget.js';
import type { StepInputs } from '../training/training-fit.js';
import { tokensOfGpu } from '../training/training-setting.js';
import { exchangedKeys, mixturesBetween, placesOfToken } from './model-axes.js';
import type { Stage } from './parallelism.js';

/** Values in buffers of both exchanges, for the memory of a GPU. */
export function exchangeBuffers({
  model,
  setting,
  parallelism,
  stage,
}: Pick<StepInputs, 'model' | 'setting' | 'parallelism'> & {
  readonly stage: Stage;
}): { readonly tokens: Expression; readonly keys: Expression; readonly allKeys: Expression } {
  const { expert, tensor, context: ring } = parallelism;
  const { from, to } = stage;
  const bytes = trainingBytes(setting.precision);
  const tokens = setting.microBatch * tokensOfGpu(setting);
  const widest = Math.max(
    0,
    ...mixturesBetween(model, { from, to }).map(
      (group) => group.width * (placesOfToken(group, expert) + 1),
    ),
  );
  const { values, times } = exchangedKeys(model, { from, to });
  const ofLayer = times === 0 ? 0 : Math.ceil(values / times);
  const of = inputs({
    tokens,
    bytes,
    sent_values: expert > 1 ? Math.ceil(widest / tensor) : 0,
    key_values: ring > 1 ? Math.ceil(ofLayer / tensor) : 0,
    ring,
  });
  return {
    tokens: mul(of.tokens, of.bytes, of.sent_values),
    keys: mul(of.tokens, of.bytes, of.key_values),
    allKeys: mul(of.tokens, of.ring, of.bytes, of.key_values),
  };
}
