/** The largest models that fit on some hardware, for each use. */
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Bounds } from '../../model/budget/figure.js';
import { generationOf } from '../../model/budget/generation.js';
import type { Cluster } from '../hardware/gpu.js';
import { capacityOf } from '../hardware/gpu.js';
import type { TableRequest, TableUse } from './fit-table.js';
import type { ListedModel } from './listed-models.js';
import { placedServing } from './serving/placed-serving.js';
import { fitServing } from './serving/serving.js';
import type { WeightDtype } from './serving/weight-types.js';
import { loraMemoryOn, QLORA_BASE } from './training/lora.js';
import { fitTrainingMemory } from './training/training-memory.js';

/** A model that may be asked about. */
export interface CandidateModel {
  /** Name of its preset: `qwen3/qwen3-8b`. */
  readonly preset: string;
  /** Parameters, shared tensors once. @count */
  readonly parameters: number;
  /** Whether its weights are published in a type of their own. */
  readonly isStoredQuantized: boolean;
}

/** A model on the hardware of the question. */
export interface FittingModel extends Omit<CandidateModel, 'isStoredQuantized'> {
  /** Estimated memory of the fullest GPU in bytes. */
  readonly memoryBytes: number;
  /** Whether it is served in the types of its published weights, as without `--dtype`. */
  readonly isAsPublished: boolean;
  /** Estimated tokens per second of a sequence; null for a training, and without a known speed. */
  readonly tokensPerSecond: number | null;
}

/** Models for one use, the largest first. */
export interface LargestModels extends TableUse {
  /** Models that fit by the upper bound; some of the largest. */
  readonly models: readonly FittingModel[];
}

/**
 * The largest published models that fit on some hardware.
 * @answer minimind fit --gpu GPU --json, without a model
 */
export interface LargestModelsResult {
  readonly schema: 'minimind/fit-models@1';
  /** The hardware of the question. */
  readonly cluster: Cluster;
  /** Usable memory of one GPU in bytes. */
  readonly memoryBytes: number;
  /** Tokens of each sequence; null: the default of each model. */
  readonly context: number | null;
  /** Value of `--users` or `--batch`; null: one sequence. @integer @minimum 1 */
  readonly sequences: number | null;
  /** Number of models that were considered. @count */
  readonly considered: number;
  /** Uses for which at least one model fits; on the screen only those of `--for`. */
  readonly uses: readonly LargestModels[];
  /** Models that generate text there, best first; empty with `--for` a training. */
  readonly models: readonly ListedModel[];
}

/** Loads the description of a model, and the settings of the question for it; undefined where it cannot be asked. */
export type AskedModel = (candidate: CandidateModel) => Promise<
  | {
      readonly model: LanguageModel;
      readonly request: TableRequest;
      /** Type of the published weights, where that is not one of 16 or 32 bits. */
      readonly stored: WeightDtype | undefined;
    }
  | undefined
>;

/** Bytes per parameter that a use takes at least: weights; in a training with AdamW in mixed precision also its state. */
const LEAST_BYTES: Readonly<Record<string, number>> = {
  ...{ f32: 4, f16: 2, bf16: 2, f8: 1, int8: 1, mxfp4: 0.5, int4: 0.5 },
  ...{ lora: 2, qlora: 0.5, train: 16 },
};

/** Types in which every model can be served, and trainings. The others are those of published weights. */
const OF_ALL_MODELS = ['bf16', 'int8', 'int4', 'lora', 'qlora', 'train'];

const useKey = ({ use, dtype }: TableUse): string => dtype ?? use;

/**
 * Tries the models from the largest one down, until each use has some.
 * @param most Models of each use.
 */
export async function largestModels(
  candidates: readonly CandidateModel[],
  cluster: Cluster,
  { asked, most }: { readonly asked: AskedModel; readonly most: number },
): Promise<LargestModels[]> {
  const room = capacityOf(cluster.gpu).value * cluster.gpus;
  const found = new Map<string, LargestModels & { models: FittingModel[] }>();
  const isOpen = (key: string, parameters: number) =>
    (found.get(key)?.models.length ?? 0) < most && parameters * (LEAST_BYTES[key] ?? 0.5) <= room;
  for (const candidate of candidates.toSorted((a, b) => b.parameters - a.parameters)) {
    const { isStoredQuantized, ...known } = candidate;
    const keys = isStoredQuantized ? Object.keys(LEAST_BYTES) : OF_ALL_MODELS;
    if (!keys.some((key) => isOpen(key, known.parameters))) continue;
    const described = await asked(candidate);
    for (const { use, on } of described ? usesOf(described.model, described.request) : []) {
      const key = useKey(use);
      const fit = isOpen(key, known.parameters) ? on(cluster) : undefined;
      if (fit === undefined) continue;
      const row = found.get(key) ?? { ...use, models: [] };
      const isAsPublished = use.dtype !== undefined && use.dtype === described?.stored;
      row.models.push({ ...known, ...fit, isAsPublished });
      found.set(key, row);
    }
  }
  const order = Object.keys(LEAST_BYTES);
  return [...found.values()].sort((a, b) => order.indexOf(useKey(a)) - order.indexOf(useKey(b)));
}

type Fit = Pick<FittingModel, 'memoryBytes' | 'tokensPerSecond'>;

/** A use, and its figures on hardware where it fits. */
interface UseOfModel {
  readonly use: TableUse;
  readonly on: (cluster: Cluster) => Fit | undefined;
}

function usesOf(
  model: LanguageModel,
  {
    serving,
    users,
    isSharingChosen = false,
    training,
    lora = training,
    adapters = [],
  }: TableRequest,
): UseOfModel[] {
  const trained = ({ verdict, total }: { verdict: string; total: Bounds }): Fit | undefined =>
    verdict === 'fits' ? { memoryBytes: total.expected.value, tokensPerSecond: null } : undefined;
  return [
    // Encoders are not served as language models are.
    ...(generationOf(model) === 'tokens' ? serving : []).map(
      (setting): UseOfModel => ({
        use: { use: 'serve', dtype: setting.weights.dtype },
        on(cluster) {
          const question = { setting: { ...setting, cluster }, users, isSharingChosen };
          const placed = placedServing(model, question);
          if (placed.verdict !== 'fits') return undefined;
          const { decode } = fitServing(model, placed.setting);
          const speed = decode && decode.tokensPerSecond.expected.value / placed.setting.batch;
          return { memoryBytes: placed.total.expected.value, tokensPerSecond: speed };
        },
      }),
    ),
    ...adapters.flatMap((use): UseOfModel[] => {
      const base = use === 'qlora' ? QLORA_BASE : undefined;
      return lora
        ? [
            {
              use: { use },
              on: (cluster) =>
                trained(loraMemoryOn(model, { ...lora, cluster }, base, { isSearched: false })),
            },
          ]
        : [];
    }),
    ...(training
      ? [
          {
            use: { use: 'train' } as const,
            // Several GPUs divide all state, as they do for adapters.
            on: (cluster: Cluster) =>
              trained(
                fitTrainingMemory(model, {
                  ...training,
                  cluster,
                  ...(cluster.gpus > 1 && { zero: 3 }),
                }),
              ),
          },
        ]
      : []),
  ];
}
