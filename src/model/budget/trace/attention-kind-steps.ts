/** Steps of other kinds of attention. */

import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import {
  type AttentionCore,
  type DifferentialAttention,
  type DynamicMask,
  differentialCore,
  type ExpertAttention,
  expertCore,
  type ProductKeyExperts,
} from '../../architecture/layer.js';
import { projectionLayers } from '../../architecture/walk.js';
import { attentionSteps, maskStep, productText, rotaryText } from './attention-steps.js';
import { routerSteps } from './layer-steps.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';

export function expertAttentionSteps(
  layer: ExpertAttention,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const { name, router, experts, bias, keyValues, rotary, keyValueHeads, headDim } = layer;
  const [count = 0] = router.weight.shape;
  const chosen = router.expertsPerToken;
  const each = `${chosen} of ${formatInteger(count)} experts`;
  return [
    ...routerSteps(router, build),
    ...build.steps(keyValues, size),
    {
      ...build.step(
        experts,
        `${each}: into the queries of ${counted(keyValueHeads, 'head')}; later out of them`,
        size,
      ),
      shape: [...build.lead, chosen, keyValueHeads * headDim],
    },
    ...seenSteps(expertCore(layer), rotaryText(rotary), rotary.name, build),
    {
      name: `${name}.sum`,
      operation: 'experts by their weights + bias',
      shape: [...build.lead, size],
      parameters: build.countNew([bias]),
    },
  ];
}

export function differentialAttentionSteps(
  layer: DifferentialAttention,
  build: StepBuilder,
): UnplacedStep[] {
  const { name, inputs, lambdas, initial, norm, rotary, heads, headDim } = layer;
  return [
    ...projectionLayers(inputs).flatMap((each) => build.steps(each, 0)),
    ...seenSteps(differentialCore(layer), rotaryText(rotary), rotary.name, build),
    {
      ...build.between(
        `${name}.difference`,
        `a head of the first half − λ · its pair of the second, λ = exp(q1 · k1) − exp(q2 · k2) + ${initial}`,
        heads / 2,
        2 * headDim,
      ),
      parameters: build.countNew([...lambdas]),
    },
    build.step(norm, `RMS of each pair to ${1 - initial}`, heads / 2, 2 * headDim),
    ...build.steps(layer.out, 0),
  ];
}

/** Rotation, mask, scores and sums of heads. */
function seenSteps(
  { name, heads, keyValueHeads, headDim, scale, spans }: AttentionCore,
  rotation: string,
  rotaryName: string,
  build: StepBuilder,
): UnplacedStep[] {
  const perHead = (operation: string, last: number): UnplacedStep => ({
    ...build.between(`${name}.heads`, operation),
    shape: [build.batch, heads, build.tokens, last],
  });
  return [
    { ...perHead(rotation, headDim), name: rotaryName },
    maskStep(name, spans, build),
    perHead(
      `softmax(${productText(scale, headDim)}): ${counted(heads, 'head')} global; k and v of ${counted(keyValueHeads, 'head')}`,
      build.tokens,
    ),
    perHead('· v', headDim),
  ];
}

export function dynamicMaskSteps(layer: DynamicMask, build: StepBuilder): UnplacedStep[] {
  const { name, attention, rates, steps, kept } = layer;
  const count = attention.keyValueHeads;
  return [
    build.linear(steps),
    {
      name: `${name}.gains`,
      operation: `scores gain exp(rate · softplus) of each key; a query sees the ${formatInteger(kept)} largest`,
      shape: [...build.lead, count],
      parameters: build.countNew([rates]),
    },
    ...attentionSteps(attention, build),
  ];
}

export function productKeySteps(
  layer: ProductKeyExperts,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const { name, shared, scores, down, up, expertsPerToken } = layer;
  const count = formatInteger(down.shape[0] ?? 0);
  return [
    build.linear(scores),
    {
      name: `${name}.experts`,
      operation: `${expertsPerToken} of ${count} experts of one inner value, by a score of a row and one of a column`,
      shape: [...build.lead, expertsPerToken],
      parameters: build.countNew([down, up]),
    },
    ...build.steps(shared, size),
  ];
}
