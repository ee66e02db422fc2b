/** Common GPUs and machines on which a model can be served, fine-tuned with LoRA, and trained. */
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Bounds } from '../../model/budget/figure.js';
import type { SettingOrigin } from '../../model/budget/profile-model.js';
import type { Gpu, GpuMachine } from '../hardware/gpu.js';
import { areLinked, capacityOf } from '../hardware/gpu.js';
import { GPUS, MACHINES } from '../hardware/gpus.js';
import { servedWeights, weightLayout } from './serving/quantized.js';
import { servingMemoryOf } from './serving/serving-memory.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import type { WeightDtype } from './serving/weight-types.js';
import { fitLora, LORA_RANK, MOST_TRIED_GPUS } from './training/lora.js';
import type { FitVerdict } from './training/training-fit.js';
import { fitTrainingMemory, memoryVerdict } from './training/training-memory.js';
import type { TrainingFitSetting } from './training/training-setting.js';

/** Names of the rows, by growing memory. */
const COMMON = [
  'rtx-3060-12gb',
  't4',
  'l4',
  'rtx-4090',
  'rtx-5090',
  'l40s',
  'a100-80gb',
  'h100-80gb',
  'm4-max-128gb',
  'h200',
  'mi300x',
  'dgx-h100',
] as const;

/** Hardware of a row: one GPU, or a machine with several. */
export interface TableHardware {
  /** Name for `--gpu`. */
  readonly name: string;
  readonly title: string;
  readonly gpu: Gpu;
  /** GPUs in one unit. */
  readonly gpus: number;
}

export const COMMON_HARDWARE: readonly TableHardware[] = COMMON.flatMap((name): TableHardware[] => {
  const isNamed = (each: Gpu | GpuMachine) => each.name === name;
  const machine = MACHINES.find(isNamed);
  if (machine) return [machine];
  return GPUS.filter(isNamed).map((gpu) => ({ name, title: gpu.title, gpu, gpus: 1 }));
});

/** A use of the model: a column. */
export interface TableUse {
  /** Use of the model. */
  readonly use: 'serve' | 'lora' | 'train';
  /** Type of the served weights. */
  readonly dtype?: WeightDtype;
}

export interface TableCell extends TableUse {
  /** By the bounds, on one GPU or machine. */
  readonly verdict: FitVerdict;
  /**
   * Fewest GPUs that fit by the upper bound; null: more than `MOST_TRIED_GPUS`, or more cannot be connected.
   * @integer @minimum 1
   */
  readonly gpus: number | null;
}

export interface TableRow {
  /** Name for `--gpu`. */
  readonly name: string;
  /** Name for people. */
  readonly title: string;
  /** GPUs in one unit. @integer @minimum 1 */
  readonly unit: number;
  /** Usable memory of one GPU in bytes. */
  readonly memoryBytes: number;
  /** A cell for each use. */
  readonly cells: readonly TableCell[];
}

/**
 * Common hardware on which a model fits.
 * @answer minimind fit --json, without hardware
 */
export interface FitTableResult {
  readonly schema: 'minimind/fit-table@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Parameters of the model, shared tensors once. @count */
  readonly parameters: number;
  /** Sizes that the memory is counted for. */
  readonly setting: TableSetting;
  /** A row for each GPU or machine, by growing memory. */
  readonly rows: readonly TableRow[];
}

/** Settings of the columns; their clusters are ignored. */
export interface TableRequest {
  readonly serving: readonly ServingFitSetting[];
  /** Users at the same time; undefined: the batch of the setting. */
  readonly users: number | undefined;
  readonly training: TrainingFitSetting | null;
  readonly contextOrigin: SettingOrigin;
}

/** Settings that all cells of a column share. */
export interface TableSetting {
  readonly contextOrigin: SettingOrigin;
  /** Setting of serving. */
  readonly serving:
    | (Pick<ServingFitSetting, 'context' | 'batch' | 'cacheDtype'> & {
        /** Users of `--users`, on all GPUs; null: the batch. @integer @minimum 1 */
        readonly users: number | null;
      })
    | null;
  /** Setting of training. */
  readonly training:
    | (Pick<
        TrainingFitSetting,
        | 'context'
        | 'microBatch'
        | 'precision'
        | 'optimizer'
        | 'recompute'
        | 'attention'
        | 'loss'
        | 'convention'
      > & {
        /** Whether the masks of dropout are counted. */
        readonly dropout: boolean;
        /** ZeRO stage, with several GPUs. */
        readonly zero: 3;
        /** Rank of the LoRA adapters. @integer @minimum 1 */
        readonly loraRank: number;
      })
    | null;
}

export function tableSettingOf({
  serving: [served],
  users,
  training,
  contextOrigin,
}: TableRequest): TableSetting {
  return {
    contextOrigin,
    serving: served
      ? {
          context: served.context,
          batch: served.batch,
          cacheDtype: served.cacheDtype,
          users: users ?? null,
        }
      : null,
    training: training && {
      context: training.context,
      microBatch: training.microBatch,
      precision: training.precision,
      optimizer: training.optimizer,
      recompute: training.recompute,
      attention: training.attention,
      loss: training.loss,
      convention: training.convention,
      dropout: training.dropout ?? false,
      zero: 3,
      loraRank: LORA_RANK,
    },
  };
}

/** Memory of a GPU as a function of the number of GPUs, for one use; undefined: more than it has. */
type TotalOn = (gpu: Gpu, gpus: number) => Bounds | undefined;

/** @throws UserError when the model cannot be trained as requested. */
export function fitTable(
  model: LanguageModel,
  { serving, users, training }: Omit<TableRequest, 'contextOrigin'>,
): TableRow[] {
  const uses = [
    ...serving.map((setting) => ({
      use: { use: 'serve', dtype: setting.weights.dtype } as const,
      total: servingTotal(model, setting, users),
    })),
    ...(training
      ? [
          { use: { use: 'lora' } as const, total: trainingTotal(training, fitLora, model) },
          {
            use: { use: 'train' } as const,
            total: trainingTotal(training, fitTrainingMemory, model),
          },
        ]
      : []),
  ];
  return COMMON_HARDWARE.map(({ name, title, gpu, gpus }) => ({
    name,
    title,
    unit: gpus,
    memoryBytes: capacityOf(gpu).value,
    cells: uses.map(({ use, total }) => ({ ...use, ...cellOf({ gpu, gpus }, total) })),
  }));
}

function cellOf(
  { gpu, gpus: unit }: Pick<TableHardware, 'gpu' | 'gpus'>,
  total: TotalOn,
): Pick<TableCell, 'verdict' | 'gpus'> {
  const capacity = capacityOf(gpu);
  let verdict: FitVerdict = 'does not fit';
  for (let gpus = 1; gpus <= MOST_TRIED_GPUS; gpus *= 2) {
    const bounds = total(gpu, gpus);
    const on = bounds ? memoryVerdict(bounds, capacity) : 'does not fit';
    if (gpus <= unit && on !== 'does not fit') verdict = on;
    if (on === 'fits') return { verdict, gpus };
  }
  return { verdict, gpus: null };
}

/** Values by what they depend on: chips of one generation need the same workspace. */
function byChip<T>(of: (gpu: Gpu, gpus: number) => T): (gpu: Gpu, gpus: number) => T {
  const known = new Map<string, T>();
  return (gpu, gpus) => {
    const key = `${gpu.kind} ${gpu.architecture} ${gpus}`;
    const found = known.get(key) ?? of(gpu, gpus);
    known.set(key, found);
    return found;
  };
}

/** GPUs share the layers, and with several users they can be replicas. */
function servingTotal(
  model: LanguageModel,
  setting: ServingFitSetting,
  users: number | undefined,
): TotalOn {
  const layout = weightLayout(model);
  const { context } = setting;
  const weights = Number(servedWeights(layout, setting.weights, 1).total.value);
  const memoryOn = byChip((gpu, tensorParallel) =>
    servingMemoryOf({ model, form: { ...setting, tensorParallel }, layout }, gpu),
  );
  return (gpu, gpus) => {
    const capacity = capacityOf(gpu);
    const most = areLinked(gpu) ? gpus : 1;
    let best: Bounds | undefined;
    for (let sharing = users === undefined ? most : 1; sharing <= most; sharing *= 2) {
      // Most GPUs that are too small are so by far.
      if (weights / sharing > capacity.value) continue;
      const batch = users === undefined ? setting.batch : Math.ceil((users * sharing) / gpus);
      best = memoryOn(gpu, sharing)(batch, context).total;
      if (best.upper.value <= capacity.value) break;
    }
    return best;
  };
}

/** GPUs are replicas that divide all state (ZeRO-3). */
function trainingTotal(
  setting: TrainingFitSetting,
  memoryOf: (model: LanguageModel, setting: TrainingFitSetting) => { readonly total: Bounds },
  model: LanguageModel,
): TotalOn {
  const total = byChip(
    (gpu, gpus) =>
      memoryOf(model, {
        ...setting,
        cluster: { gpu, gpus, network: null },
        zero: 3,
        globalBatchTokens: undefined,
      }).total,
  );
  return (gpu, gpus) => total(gpu, areLinked(gpu) ? gpus : 1);
}
