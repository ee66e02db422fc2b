/** Cost of GPUs by the hour: of a load that is served, and of a training. */
import type { Expression } from '../budget/expression.js';
import { div, inputs, mul, v } from '../budget/expression.js';
import type { Bounds, Quantity } from '../budget/figure.js';
import { quantity } from '../budget/figure.js';
import { eachBound } from './bounds.js';
import type { ServingLoad } from './serving/serving.js';
import type { ServingFitSetting } from './serving/serving-work.js';

/** Cost of the GPUs that a load needs, busy or not. */
export interface ServingCost {
  readonly perHour: Quantity;
  readonly perThousandRequests: Quantity;
  readonly perMillionOutputTokens: Quantity;
}

/** @param price Of a GPU for an hour, in any currency. */
export function servingCost(
  { expected }: ServingLoad,
  { load, output }: Pick<ServingFitSetting, 'load' | 'output'>,
  price: number,
): ServingCost | undefined {
  if (!expected.met || load === undefined) return undefined;
  const one = inputs({ gpus: expected.gpus.value, price });
  const perHour = costQuantity(
    'cost per hour',
    mul(one.gpus, one.price),
    'GPUs that the load needs (estimate), rented whether busy or not',
  );
  const hour = v({ cost_per_hour: perHour.value });
  const requests = mul(v({ requests_per_second: load.requestsPerSecond }), SECONDS_PER_HOUR);
  return {
    perHour,
    perThousandRequests: costQuantity(
      'cost per 1,000 requests',
      div(mul(hour, 1000), requests),
      'at the stated requests per second',
    ),
    perMillionOutputTokens: costQuantity(
      'cost per million output tokens',
      div(mul(hour, 1e6), mul(requests, v({ output }))),
      'at the stated requests per second and output tokens',
    ),
  };
}

/** Cost of all GPUs for the time of a training. */
export const trainingCost = (seconds: Bounds, gpus: number, price: number): Bounds =>
  eachBound(seconds, ({ value }) => {
    const one = inputs({ gpus, price, seconds: value });
    return costQuantity(
      'cost of the training',
      div(mul(one.gpus, one.price, one.seconds), SECONDS_PER_HOUR),
      'all GPUs for the time of all steps',
    );
  });

const SECONDS_PER_HOUR = 3600;

const costQuantity = (label: string, formula: Expression, source: string): Quantity =>
  quantity({ label, unit: 'currency', formula, source });
