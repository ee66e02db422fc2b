/** Single changes with which a model fits on GPUs and in system memory, where the places that were asked for hold too little. */
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { LARGEST_DESKTOP, systemMemory } from '../../hardware/system-memory.js';
import { byBound, largestCount } from '../bounds.js';
import { onGpusAlone, type PlacesFit, type PlacesWish, placesFit } from '../places/places.js';
import type { ServingQuestion } from '../serving/placed-serving.js';
import type { ServingFitSetting } from '../serving/serving-work.js';
import type { WeightDtype } from '../serving/weight-types.js';
import { usualFormat, WEIGHT_DTYPES } from '../serving/weight-types.js';
import { SHORTEST_CONTEXT } from './options.js';
import { roundedTokens, type ServingRemedy } from './remedies.js';

/** Narrower types of GGUF files, mildest first. */
const NARROWER: readonly WeightDtype[] = ['q8_0', 'q4_k_m'];

/** A change of the places and of the serving. */
type Change = Partial<PlacesWish> &
  Partial<Pick<ServingFitSetting, 'weights' | 'context' | 'batch'>>;

/**
 * Changes that each are enough by the upper bound: fewer layers or experts on the GPUs, a narrower type, more system memory,
 * then less to serve.
 * @param asked The places that were asked for.
 */
export function placesRemedies(
  model: LanguageModel,
  { setting, users }: Pick<ServingQuestion, 'setting' | 'users'>,
  asked: PlacesWish,
): ServingRemedy[] {
  const wish = onGpusAlone(asked);
  const sequences = users ?? setting.batch;
  const at = ({ weights = setting.weights, context = setting.context, batch, ...places }: Change) =>
    placesFit(
      model,
      { ...setting, weights, context, batch: batch ?? sequences },
      { ...wish, ...places },
      true,
    );
  const fits = (change: Change): boolean => at(change).verdict === 'fits';
  const remedy = (flags: ServingRemedy['flags'], placed: PlacesFit | undefined): ServingRemedy[] =>
    placed?.verdict === 'fits' ? [remedyOf(flags, placed, setting)] : [];
  const blocks = model.blocks.length;
  const { gpuLayers: layers, cpuExperts: experts } = asked;
  const fewerLayers = layers
    ? largestCount(Math.min(layers - 1, blocks), (gpuLayers) => fits({ gpuLayers }))
    : 0;
  // The more experts are in system memory, the more room the GPUs have.
  const onGpus =
    experts === undefined
      ? 0
      : largestCount(blocks - experts - 1, (count) => fits({ cpuExperts: blocks - count }));
  const { bits } = WEIGHT_DTYPES[setting.weights.dtype];
  const narrower = NARROWER.filter((dtype) => WEIGHT_DTYPES[dtype].bits < bits)
    .map((dtype) => ({ dtype, placed: at({ weights: usualFormat(dtype) }) }))
    .find(({ placed }) => placed.verdict === 'fits');
  const context = roundedTokens(
    largestCount(setting.context - 1, (tokens) => fits({ context: tokens })),
  );
  const fewer = largestCount(sequences - 1, (batch) => fits({ batch }));
  return [
    ...(fewerLayers > 0 ? remedy({ gpuLayers: fewerLayers }, at({ gpuLayers: fewerLayers })) : []),
    ...(onGpus > 0
      ? remedy({ cpuExperts: blocks - onGpus }, at({ cpuExperts: blocks - onGpus }))
      : []),
    ...(narrower ? remedy({ dtype: narrower.dtype }, narrower.placed) : []),
    ...moreMemory(asked, at, remedy),
    ...(context >= SHORTEST_CONTEXT ? remedy({ context }, at({ context })) : []),
    ...(fewer > 0
      ? remedy(users === undefined ? { batch: fewer } : { users: fewer }, at({ batch: fewer }))
      : []),
  ];
}

/** A desktop's system memory that is enough, where the stated one is not or none was named. */
function moreMemory(
  asked: PlacesWish,
  at: (change: Change) => PlacesFit,
  remedy: (flags: ServingRemedy['flags'], placed: PlacesFit) => ServingRemedy[],
): ServingRemedy[] {
  const { gpuLayers, cpuExperts, memory, maySpill } = asked;
  if (maySpill && memory.bytes === null) return [];
  const unlimited = maySpill ? { ...memory, bytes: null } : systemMemory(null, undefined);
  const change = { gpuLayers, cpuExperts, maySpill: true, memory: unlimited };
  const placed = at(change);
  const ramBytes = placed.usualBytes;
  return placed.system.value <= LARGEST_DESKTOP ? remedy({ ramBytes }, placed) : [];
}

/** A remedy with the memory of a GPU, or without one that of the system, and the speed. */
function remedyOf(
  flags: ServingRemedy['flags'],
  { gpu, system, decode }: PlacesFit,
  { cluster }: ServingFitSetting,
): ServingRemedy {
  return {
    flags,
    total: cluster.gpu.kind === 'processor' ? byBound(() => system) : gpu,
    tokensPerSecond: decode.tokensPerSecond.expected.value,
  };
}
