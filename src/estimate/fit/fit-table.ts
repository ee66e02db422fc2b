/** Common GPUs and machines on which a model can be served, fine-tuned with LoRA, and trained. */
import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { SettingOrigin } from '../../model/budget/profile-model.js';
import type { Cluster } from '../hardware/gpu.js';
import { capacityOf, withReserved } from '../hardware/gpu.js';
import { COMMON_HARDWARE } from './common-hardware.js';
import { linkedCluster } from './parallelism/linked-cluster.js';
import { fewestForTraining, fewestSettings } from './remedies/remedies.js';
import type { ServingQuestion } from './serving/placed-serving.js';
import { fewestForServing, placedServing } from './serving/placed-serving.js';
import type { ServingFitSetting } from './serving/serving-work.js';
import type { WeightDtype, WeightFormat } from './serving/weight-types.js';
import { LORA_RANK, loraMemoryOn, QLORA_BASE } from './training/lora.js';
import type { FitVerdict, Remedy } from './training/training-fit.js';
import { fitTrainingMemory } from './training/training-memory.js';
import type { TrainingFitSetting, ZeroStage } from './training/training-setting.js';

/** A use of the model: a column. */
export interface TableUse {
  /** Use of the model. */
  readonly use: 'serve' | 'lora' | 'qlora' | 'train';
  /** Type of the served weights. */
  readonly dtype?: WeightDtype;
}

export interface TableCell extends TableUse {
  /** By the bounds, on one GPU or machine. */
  readonly verdict: FitVerdict;
  /**
   * Fewest GPUs that fit by the upper bound, a training with changes that keep it the same; null if no number does
   * whose links are known.
   * @integer @minimum 1
   */
  readonly gpus: number | null;
  /** Name for `--gpu` with so many GPUs, where it is not that of the row: a machine with a network. */
  readonly machine?: string;
}

/** Best hardware of the table for a use: the smallest GPU that is enough, else that of which the fewest are enough. */
export interface BestHardware {
  /** Value of `--gpu`. */
  readonly gpu: string;
  /** Value of `--gpus`; null: as many as the name has. @integer @minimum 1 */
  readonly gpus: number | null;
  /** Whether the name is that of a machine. */
  readonly isMachine: boolean;
  /** Settings with which a training fits there, if it is the question. */
  readonly flags?: Remedy['flags'];
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
  /** Best hardware for each use, in the order of the cells; null where nothing is enough. */
  readonly best: readonly (BestHardware | null)[];
  /** Values read from a training config; absent without one. */
  readonly trainingConfig?: TrainingConfigAnswer;
}

/** Settings of the columns; their clusters are ignored. */
export interface TableRequest {
  readonly serving: readonly ServingFitSetting[];
  /** Users at the same time; undefined: the batch of the setting. */
  readonly users: number | undefined;
  /** Whether the number of GPUs that share the layers is fixed. */
  readonly isSharingChosen?: boolean;
  readonly training: TrainingFitSetting | null;
  /** Setting of training adapters; undefined: that of a training. */
  readonly lora?: TrainingFitSetting | null;
  /** Columns of adapters; default: LoRA. */
  readonly adapters?: readonly ('lora' | 'qlora')[];
  /** Memory of each GPU for other programs, in bytes. */
  readonly reservedBytes?: number | undefined;
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
        /** ZeRO stage. */
        readonly zero: ZeroStage;
      })
    | null;
  /** Setting of adapters, whose GPUs divide all state. */
  readonly lora:
    | (Pick<TrainingFitSetting, 'recompute'> & {
        /** Rank of the adapters. @integer @minimum 1 */
        readonly rank: number;
      })
    | null;
}

export function tableSettingOf({
  serving: [served],
  users,
  training,
  lora = training,
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
      zero: training.zero,
    },
    lora: lora && { rank: LORA_RANK, recompute: lora.recompute },
  };
}

/** Answer of a use on one unit, and the fewest GPUs that are enough. */
type UseOn = (cluster: Cluster) => Omit<TableCell, keyof TableUse>;

/**
 * Each cell has the answer that the detail of its GPU or machine has.
 * @throws UserError when the model cannot be trained as requested.
 */
export function fitTable(
  model: LanguageModel,
  {
    serving,
    users,
    isSharingChosen = false,
    training,
    lora = training,
    adapters = ['lora'],
    reservedBytes,
  }: Omit<TableRequest, 'contextOrigin'>,
): TableRow[] {
  const uses: readonly { readonly use: TableUse; readonly on: UseOn }[] = [
    ...serving.map((setting) => ({
      use: { use: 'serve', dtype: setting.weights.dtype } as const,
      on: servingOn(model, { setting, users, isSharingChosen }),
    })),
    ...(['lora', 'qlora'] as const)
      .filter((use) => lora && adapters.includes(use))
      .map((use) => ({
        use: { use },
        on: adaptersOn(model, lora as TrainingFitSetting, use === 'qlora' ? QLORA_BASE : undefined),
      })),
    ...(training ? [{ use: { use: 'train' } as const, on: trainingOn(model, training) }] : []),
  ];
  return COMMON_HARDWARE.map(({ name, title, gpu: whole, gpus, cluster }) => {
    const gpu = withReserved(whole, reservedBytes);
    return {
      name,
      title,
      unit: gpus,
      memoryBytes: capacityOf(gpu).value,
      cells: uses.map(({ use, on }) => ({ ...use, ...on({ ...cluster, gpu }) })),
    };
  });
}

/** Best hardware for each use, in the order of the cells. */
export function bestHardware(
  model: LanguageModel,
  { training, reservedBytes }: Pick<TableRequest, 'training' | 'reservedBytes'>,
  rows: readonly TableRow[],
): (BestHardware | null)[] {
  const uses = rows[0]?.cells ?? [];
  return uses.map((_, column) => {
    const row = bestRow(rows, column);
    const cell = row?.cells[column];
    if (row === undefined || cell === undefined) return null;
    const { gpus, machine } = cell;
    const isMore = gpus !== null && gpus > row.unit;
    const isQuestion = uses.length === 1 && training !== null;
    const flags = isQuestion
      ? trainingOnFewest(model, training, row.name, reservedBytes)
      : undefined;
    return {
      gpu: (isMore ? machine : undefined) ?? row.name,
      gpus: isMore ? gpus : null,
      isMachine: row.unit > 1 || (isMore && machine !== undefined),
      ...(flags && { flags }),
    };
  });
}

function bestRow(rows: readonly TableRow[], column: number): TableRow | undefined {
  const gpusOf = ({ cells }: TableRow) => cells[column]?.gpus ?? Number.POSITIVE_INFINITY;
  const used = (row: TableRow) => Math.max(row.unit, gpusOf(row));
  const [best] = rows
    .filter((row) => gpusOf(row) < Number.POSITIVE_INFINITY)
    .sort((a, b) => used(a) - used(b) || a.memoryBytes - b.memoryBytes);
  return best;
}

/** Settings of a training on the fewest GPUs of a row. */
function trainingOnFewest(
  model: LanguageModel,
  training: TrainingFitSetting,
  name: string,
  reservedBytes: number | undefined,
): Remedy['flags'] | undefined {
  const hardware = COMMON_HARDWARE.find((each) => each.name === name);
  if (hardware === undefined) return undefined;
  const { cluster } = hardware;
  const gpu = withReserved(cluster.gpu, reservedBytes);
  return fewestSettings(model, { ...training, cluster: { ...cluster, gpu } });
}

const servingOn =
  (model: LanguageModel, question: ServingQuestion): UseOn =>
  (cluster) => {
    const asked = { ...question, setting: { ...question.setting, cluster } };
    const { verdict } = placedServing(model, asked);
    const one = { ...cluster, gpus: 1 };
    const fewest = fewestForServing(model, {
      ...asked,
      setting: { ...asked.setting, cluster: one },
    });
    return {
      verdict,
      ...fewestOf(fewest?.cluster, cluster),
    };
  };

/** The fewest GPUs of a cell, and the machine where it is not that of the row. */
const fewestOf = (fewest: Cluster | undefined, { machine }: Cluster) => ({
  gpus: fewest?.gpus ?? null,
  ...(fewest?.machine !== undefined && fewest.machine !== machine && { machine: fewest.machine }),
});

const adaptersOn =
  (model: LanguageModel, setting: TrainingFitSetting, base: WeightFormat | undefined): UseOn =>
  (cluster) => {
    const { verdict, gpus } = loraMemoryOn(model, { ...setting, cluster }, base);
    const fewest = gpus === null ? undefined : linkedCluster(cluster, gpus);
    return { verdict, ...fewestOf(fewest, cluster) };
  };

const trainingOn =
  (model: LanguageModel, setting: TrainingFitSetting): UseOn =>
  (cluster) => {
    const asked = { ...setting, cluster };
    const { verdict } = fitTrainingMemory(model, asked);
    const fewest = verdict === 'fits' ? cluster : fewestForTraining(model, asked);
    return { verdict, ...fewestOf(fewest, cluster) };
  };
