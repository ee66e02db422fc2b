/** The models that run on some hardware, each in the widest type that is fast enough there. */
import type { LanguageModel } from '../../model/architecture/layer.js';
import { generationOf } from '../../model/budget/generation.js';
import type { Cluster } from '../hardware/gpu.js';
import { capacityOf } from '../hardware/gpu.js';
import type { PlacesWish } from './places/places.js';
import { placesFit } from './places/places.js';
import { placedServing } from './serving/placed-serving.js';
import { fitServing } from './serving/serving.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import { USUAL_SPEED } from './serving/throughput/throughput.js';
import type { WeightDtype } from './serving/weight-types.js';
import { WEIGHT_DTYPES } from './serving/weight-types.js';

/** A model that may be listed. */
export interface ListCandidate {
  /** Name for `fit`: `qwen3/qwen3-8b`, or a path. */
  readonly name: string;
  /** Parameters, shared tensors once. @count */
  readonly parameters: number;
  /** Series of the model, of which the largest that runs is listed; null: listed by itself. */
  readonly series: string | null;
}

/** A model that runs on the hardware of the question. */
export interface ListedModel {
  /** Name for `fit`: `qwen3/qwen3-8b`, or a path. */
  readonly name: string;
  /** Parameters, shared tensors once. @count */
  readonly parameters: number;
  /** Type of the weights: the widest that is fast enough. */
  readonly dtype: WeightDtype;
  /** Whether the type is that of the published weights, as without `--dtype`. */
  readonly isAsPublished: boolean;
  /** Longest context of one sequence that fits by the estimate, in tokens; null with weights in system memory. @integer */
  readonly longestContext: number | null;
  /** Tokens of the sequence of the other figures. @integer */
  readonly context: number;
  /** Estimated memory of the fullest GPU in bytes, or on a processor of the system. */
  readonly memoryBytes: number;
  /** Estimated weights and caches in system memory in bytes; 0 where the GPUs hold all. */
  readonly systemBytes: number;
  /** Estimated tokens per second of all sequences; null without a known speed. */
  readonly tokensPerSecond: number | null;
}

/** A model with its settings in each type, the widest first. */
export interface ListedSettings {
  readonly model: LanguageModel;
  readonly settings: readonly {
    readonly setting: ServingFitSetting;
    readonly isAsPublished: boolean;
    /** Places for weights in system memory; undefined without any. */
    readonly wish: PlacesWish | undefined;
  }[];
}

/** Bytes of a parameter in the narrowest type of a list, with its scales. */
const LEAST_BYTES = 0.5;

/**
 * Models in the order of their parameters, those with the usual speed of a user first.
 * @param most Models of the list.
 * @param room Bytes for weights in system memory.
 */
export async function listedModels(
  candidates: readonly ListCandidate[],
  cluster: Cluster,
  {
    asked,
    most,
    room = 0,
  }: {
    readonly asked: (candidate: ListCandidate) => Promise<ListedSettings | undefined>;
    readonly most: number;
    readonly room?: number;
  },
): Promise<ListedModel[]> {
  const memory = capacityOf(cluster.gpu).value * cluster.gpus + room;
  const found: ListedModel[] = [];
  const series = new Set<string>();
  let fast = 0;
  for (const candidate of candidates.toSorted((a, b) => b.parameters - a.parameters)) {
    if (fast >= most) break;
    if (candidate.series !== null && series.has(candidate.series)) continue;
    if (candidate.parameters * LEAST_BYTES > memory) continue;
    const described = await asked(candidate);
    if (described === undefined || generationOf(described.model) !== 'tokens') continue;
    const row = bestOf(described, { cluster, memory }, candidate);
    if (row === undefined) continue;
    found.push(row);
    if (!isFast(row)) continue;
    fast++;
    if (candidate.series !== null) series.add(candidate.series);
  }
  const slow = found.filter((row) => !isFast(row));
  return [...found.filter(isFast), ...slow].slice(0, most);
}

const isFast = ({ tokensPerSecond }: Pick<ListedModel, 'tokensPerSecond'>): boolean =>
  tokensPerSecond === null || tokensPerSecond >= USUAL_SPEED;

/** The model in the first type that is fast enough, else in the fastest. */
function bestOf(
  { model, settings }: ListedSettings,
  { cluster, memory }: { readonly cluster: Cluster; readonly memory: number },
  { name, parameters }: ListCandidate,
): ListedModel | undefined {
  let best: ListedModel | undefined;
  for (const { setting, isAsPublished, wish } of settings) {
    const { dtype } = setting.weights;
    if ((parameters * WEIGHT_DTYPES[dtype].bits) / 8 > memory) continue;
    const figures = figuresOf(model, { ...setting, cluster }, wish);
    if (figures === undefined) continue;
    const row = { name, parameters, dtype, isAsPublished, context: setting.context, ...figures };
    if (isFast(row)) return row;
    if (best === undefined || (row.tokensPerSecond ?? 0) > (best.tokensPerSecond ?? 0)) best = row;
  }
  return best;
}

/** Memory and speed where the model fits by the upper bound: on GPUs of one kind alone, else in the places. */
function figuresOf(
  model: LanguageModel,
  setting: ServingFitSetting,
  wish: PlacesWish | undefined,
):
  | Pick<ListedModel, 'longestContext' | 'memoryBytes' | 'systemBytes' | 'tokensPerSecond'>
  | undefined {
  const { cluster } = setting;
  const isProcessor = cluster.gpu.kind === 'processor';
  if (!isProcessor && cluster.cards === undefined) {
    const placed = placedServing(model, { setting, users: undefined, isSharingChosen: false });
    if (placed.verdict === 'fits') {
      const { decode, largestContext } = fitServing(model, placed.setting);
      return {
        longestContext: largestContext?.value ?? null,
        memoryBytes: placed.total.expected.value,
        systemBytes: 0,
        tokensPerSecond: decode?.tokensPerSecond.expected.value ?? null,
      };
    }
  }
  if (wish === undefined) return undefined;
  const { verdict, gpu, system, decode } = placesFit(model, setting, wish, true);
  if (verdict !== 'fits') return undefined;
  return {
    longestContext: null,
    memoryBytes: isProcessor ? system.value : gpu.expected.value,
    systemBytes: system.value,
    tokensPerSecond: decode.tokensPerSecond.expected.value,
  };
}
