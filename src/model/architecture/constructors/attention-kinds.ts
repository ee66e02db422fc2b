/** Constructors of other kinds of attention. */
import type { DifferentialAttention, DynamicMask, ExpertAttention } from '../layer.js';
import { param } from '../param.js';
import { plainRmsNorm } from './basic-layers.js';

/** Scores are divided by the root of the width of a head. */
export function expertAttention(
  name: string,
  parts: Omit<ExpertAttention, 'kind' | 'name' | 'component' | 'scale'>,
): ExpertAttention {
  const { router, experts, bias, keyValues, rotary, keyValueHeads, headDim } = parts;
  return {
    kind: 'expertAttention',
    name,
    component: 'attention',
    bias,
    experts,
    router,
    keyValues,
    rotary,
    keyValueHeads,
    headDim,
    scale: 1 / Math.sqrt(headDim),
  };
}

interface DifferentialParts
  extends Pick<
    DifferentialAttention,
    'inputs' | 'out' | 'initial' | 'rotary' | 'heads' | 'keyValueHeads' | 'headDim'
  > {
  readonly eps: number;
}

/** `lambda_q1`, `lambda_k1`, `lambda_q2` and `lambda_k2`, and a norm without weights. */
export function differentialAttention(
  name: string,
  { inputs, out, initial, rotary, heads, keyValueHeads, headDim, eps }: DifferentialParts,
): DifferentialAttention {
  const lambda = (leaf: string) => param(`${name}.lambda_${leaf}`, [headDim]);
  return {
    kind: 'differentialAttention',
    name,
    component: 'attention',
    lambdas: [lambda('q1'), lambda('k1'), lambda('q2'), lambda('k2')],
    inputs,
    out,
    initial,
    norm: plainRmsNorm(`${name}.groupnorm`, 2 * headDim, eps),
    rotary,
    heads,
    keyValueHeads,
    headDim,
    scale: 1 / Math.sqrt(headDim),
  };
}

export const dynamicMask = (
  name: string,
  { rates, attention, steps, kept }: Omit<DynamicMask, 'kind' | 'name' | 'component'>,
): DynamicMask => ({
  kind: 'dynamicMask',
  name,
  component: 'attention',
  rates,
  attention,
  steps,
  kept,
});
