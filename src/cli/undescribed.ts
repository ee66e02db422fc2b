/** Models that no family describes: their weights in place of a description. */
import { UserError, usageError } from '../base/errors.js';
import { configIn } from '../base/files/config-names.js';
import { joined } from '../base/text/words.js';
import { quote } from '../config/quote.js';
import type { Cluster } from '../estimate/hardware/gpu.js';
import type {
  ComparedWeights,
  WeightsComparison,
  WeightsFitResult,
  WeightsResult,
} from '../estimate/undescribed/undescribed-results.js';
import type { CheckpointFlags, LoadedModel } from '../input/model-input/checkpoint-model.js';
import { isAdapterPlace, locateModel } from '../input/model-input/locate.js';
import { loadModelFile } from '../input/model-input/model-file.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { UndescribedModel } from '../input/model-input/undescribed-model.js';
import type { RepositoryWeights } from '../input/repository/repository.js';
import { countParameters } from '../model/budget/parameters.js';
import { storedWeights } from '../model/quantization/stored-weights.js';
import { type HardwareFlags, reservedBytes } from './flags/hardware-flags.js';

/** Rules of folders without one checkpoint in them, such as a pipeline. */
const OF_FOLDERS: readonly unknown[] = ['folder-holds-weights', 'folder-is-one'];

/** Flags that do not depend on a description. */
const FREE = [
  ...['format', 'json', 'output', 'force', 'quiet', 'color', 'details', 'offline'],
] as const;

/**
 * The weights of a model whose description failed, where that is because no family describes it.
 * @param options.given Names of the flags that the user gave.
 * @param options.used Those that the answer uses.
 * @throws `error` for another reason, and where there are no weights; UserError for a flag that requires a description.
 */
export async function weightsInstead(
  error: unknown,
  file: string,
  { given, used = [] }: { readonly given: readonly string[]; readonly used?: readonly string[] },
): Promise<WeightsResult> {
  const isFolder =
    error instanceof UserError && error.problems.some(({ rule }) => OF_FOLDERS.includes(rule));
  if (!(error instanceof UndescribedModel) && !isFolder) throw error;
  if (file === '-') throw error;
  const { NoWeights, readRepository } = await import('../input/repository/repository.js');
  const { weightsResult } = await import('../estimate/undescribed/undescribed-results.js');
  let result: WeightsResult;
  try {
    const weights = readRepository(file);
    if (isFolder && !(await isRepository(weights))) throw error;
    result = weightsResult(weights, reasonFor(error, weights));
  } catch (own) {
    throw own instanceof NoWeights ? error : own;
  }
  const idle = [...new Set(given)].filter((name) => ![...FREE, ...used].includes(name as never));
  if (idle.length === 0) return result;
  const names = joined(idle.map((name) => `--${name}`));
  throw usageError(
    `${names} ${idle.length > 1 ? 'do' : 'does'} not apply to weights without a description: ${result.reason}`,
    `leave ${idle.length > 1 ? 'them' : 'it'} out`,
  );
}

/**
 * Whether a folder without one checkpoint is a repository of another kind: not several checkpoints of a described model,
 * of which the user names one.
 */
async function isRepository({ file, layout, components }: RepositoryWeights): Promise<boolean> {
  if (layout === 'listed') return true;
  if (!components.every(({ format }) => format === 'safetensors')) return false;
  const config = configIn(file);
  if (config === undefined) return true;
  try {
    await loadModelFile(config);
    return false;
  } catch (error) {
    if (error instanceof UserError) return error instanceof UndescribedModel;
    throw error;
  }
}

/** Verdicts for the GPUs of the question, or for common ones. */
export async function fitOfWeights(
  weights: WeightsResult,
  clusters: readonly Cluster[],
  flags: HardwareFlags,
): Promise<WeightsFitResult> {
  const several = clusters.find(({ gpus }) => gpus > 1);
  if (several) {
    throw usageError(
      `expected one GPU, found ${several.gpus}: how weights without a description are divided is unknown`,
      `write --gpu ${several.gpu.name}`,
    );
  }
  const { weightsFit } = await import('../estimate/undescribed/undescribed-results.js');
  return weightsFit(weights, {
    gpus: clusters.map(({ gpu }) => gpu),
    reservedBytes: reservedBytes(flags),
  });
}

/** The model that an adapter runs with; any other model as it is. @throws UserError without the model of an adapter. */
export async function withoutAdapter(model: string, note: (text: string) => void): Promise<string> {
  if (!isAdapterPlace(locateModel(model))) return model;
  const { basePathOf, readAdapter } = await import('../input/model-input/adapter-model.js');
  const base = basePathOf(await readAdapter(model), (each) => `fit ${each}`);
  note(`${model} is a LoRA adapter: the answer is about its model, ${base}`);
  return base;
}

/**
 * Sizes of the models of a comparison of which a family does not describe at least one.
 * @throws `error` where that is not its reason, or as `weightsInstead`.
 */
export async function comparedWeights(
  error: unknown,
  files: readonly string[],
  flags: CheckpointFlags,
  given: readonly string[],
): Promise<WeightsComparison> {
  const rows: ComparedWeights[] = [];
  for (const file of files) {
    try {
      rows.push(describedWeights(await (await openModelSource(file, flags)).model([])));
    } catch (own) {
      // An error of another reason is one of those that `error` has all of.
      const { class: kind, ...weights } = await weightsInstead(own, file, { given }).catch(
        (further) => {
          throw further === own ? error : further;
        },
      );
      const { parameters, bytes, dtypes } = weights;
      const types = dtypes.map(({ dtype }) => dtype);
      const sizes = { parameters, bytes, dtypes: types };
      rows.push({ file, kind: kind ?? weights.modelType, isDescribed: false, ...sizes });
    }
  }
  if (rows.every(({ isDescribed }) => isDescribed)) throw error;
  return { schema: 'minimind/weights-comparison@1', rows };
}

function describedWeights({ file, family, model, checkpoint, quantization }: LoadedModel) {
  const { parameters } = countParameters(model);
  const stored = checkpoint?.totals;
  const packed = quantization && storedWeights(model, quantization);
  const bytes = stored?.distinctBytes ?? Number(packed?.total.value ?? 2 * parameters);
  const dtypes = stored?.dtypes.map(({ dtype }) => dtype) ?? [packed?.label ?? 'BF16'];
  return { file, kind: family.name, isDescribed: true, parameters, bytes, dtypes };
}

function reasonFor(
  error: UserError,
  { class: kind, modelType }: Pick<RepositoryWeights, 'class' | 'modelType'>,
): string {
  if (modelType !== null) return `no family describes ${quote(modelType)}`;
  if (error instanceof UndescribedModel) return error.problems[0]?.message ?? error.message;
  return kind === null ? 'there is no config' : `no family describes ${kind}`;
}
