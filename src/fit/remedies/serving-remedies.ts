/** Changes that make a model fit on GPUs that serve it. */
import type { LanguageModel } from '../../architecture/layer.js';
import type { Bounds } from '../../budget/figure.js';
import { areLinked, capacityOf } from '../../hardware/gpu.js';
import { largest } from '../bounds.js';
import { COMMON_HARDWARE } from '../fit-table.js';
import { weightLayout } from '../serving/quantized.js';
import { servingMemoryOf } from '../serving/serving-memory.js';
import type { ServingFitSetting } from '../serving/serving-work.js';
import { gpusForUsers } from '../serving/users.js';
import { usualFormat, WEIGHT_DTYPES, type WeightDtype } from '../serving/weight-types.js';
import { SHORTEST_CONTEXT } from './options.js';

/** Flags of `fit` that make a serving fit. */
export interface ServingRemedy {
  readonly flags: {
    readonly gpu?: string;
    readonly gpus?: number;
    readonly tensorParallel?: number;
    readonly dtype?: WeightDtype;
    readonly context?: number;
    readonly batch?: number;
    readonly users?: number;
  };
  /** Memory of one GPU with these flags. */
  readonly total: Bounds;
}

/** Settings that the user fixed. */
export interface ServingRequest {
  readonly users: number | undefined;
  /** Whether the number of GPUs that share the layers is fixed. */
  readonly isSharingChosen: boolean;
}

/** Narrower types, mildest first. */
const NARROWER: readonly WeightDtype[] = ['int8', 'int4'];

/** Single changes, each enough by the upper bound: type, more GPUs, another GPU, then less to serve. */
export function servingRemedies(
  model: LanguageModel,
  setting: ServingFitSetting,
  wish: ServingRequest,
): ServingRemedy[] {
  const { users } = wish;
  const at = (change: Partial<ServingFitSetting>, asked = users) =>
    placed(model, { ...setting, ...change }, { ...wish, users: asked });
  const remedy = (flags: ServingRemedy['flags'], total: Bounds | undefined): ServingRemedy[] =>
    total ? [{ flags, total }] : [];

  const { bits } = WEIGHT_DTYPES[setting.weights.dtype];
  const narrower = NARROWER.filter((dtype) => WEIGHT_DTYPES[dtype].bits < bits)
    .map((dtype) => ({ dtype, total: at({ weights: usualFormat(dtype) }) }))
    .find(({ total }) => total);

  const asked = users ?? setting.batch;
  const fewer = (count: number) => (users === undefined ? at({ batch: count }) : at({}, count));
  const fitting = largest(asked - 1, (count) => fewer(count) !== undefined);
  const context = rounded(
    largest(setting.context - 1, (tokens) => at({ context: tokens }) !== undefined),
  );
  const more = gpusForUsers(model, setting, asked);
  const { gpu, gpus } = setting.cluster;
  const capacity = capacityOf(gpu).value;
  const larger = COMMON_HARDWARE.filter(
    (each) =>
      each.gpus === 1 &&
      capacityOf(each.gpu).value > capacity &&
      (gpus === 1 || areLinked(each.gpu)),
  )
    .map((each) => ({ ...each, total: at({ cluster: { ...setting.cluster, gpu: each.gpu } }) }))
    .find(({ total }) => total);
  return [
    ...(narrower ? remedy({ dtype: narrower.dtype }, narrower.total) : []),
    ...(more && more.gpus > gpus
      ? remedy(
          {
            gpus: more.gpus,
            ...(wish.isSharingChosen && { tensorParallel: more.tensorParallel }),
          },
          placed(
            model,
            {
              ...setting,
              tensorParallel: more.tensorParallel,
              cluster: { ...setting.cluster, gpus: more.gpus },
            },
            wish,
          ),
        )
      : []),
    ...(larger ? remedy({ gpu: larger.name, ...(gpus > 1 && { gpus }) }, larger.total) : []),
    ...(context >= SHORTEST_CONTEXT ? remedy({ context }, at({ context })) : []),
    ...(fitting > 0
      ? remedy(users === undefined ? { batch: fitting } : { users: fitting }, fewer(fitting))
      : []),
  ];
}

/** Number of tokens that is easy to read, at most `tokens`. */
const rounded = (tokens: number): number => {
  const step = 2 ** Math.max(0, Math.floor(Math.log2(tokens || 1)) - 3);
  return Math.floor(tokens / step) * step;
};

/** Memory of one GPU, with the layers shared by as few GPUs as fit; undefined if it does not fit. */
function placed(
  model: LanguageModel,
  setting: ServingFitSetting,
  { users, isSharingChosen }: ServingRequest,
): Bounds | undefined {
  const { gpu, gpus } = setting.cluster;
  const { value: capacity } = capacityOf(gpu);
  const layout = weightLayout(model);
  const most = isSharingChosen ? setting.tensorParallel : gpus;
  const least = isSharingChosen ? setting.tensorParallel : 1;
  for (let tensorParallel = least; tensorParallel <= most; tensorParallel *= 2) {
    const batch =
      users === undefined ? setting.batch : Math.ceil(users / Math.floor(gpus / tensorParallel));
    const served = { model, form: { ...setting, tensorParallel }, layout };
    const { total } = servingMemoryOf(served, gpu)(batch, setting.context);
    if (total.upper.value <= capacity) return total;
  }
  return undefined;
}
