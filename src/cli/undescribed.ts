/** Models that no family describes: their weights in place of a description. */
import { UserError, usageError } from '../base/errors.js';
import { configIn } from '../base/files/config-names.js';
import { joined } from '../base/text/words.js';
import { present } from '../base/values.js';
import { quote } from '../config/quote.js';
import type { Gpu } from '../estimate/hardware/gpu.js';
import type {
  ComparedWeights,
  WeightsComparison,
  WeightsFitResult,
  WeightsResult,
} from '../estimate/undescribed/undescribed-results.js';
import type {
  CheckpointFlags,
  LoadedModel,
} from '../input/model-input/checkpoint/checkpoint-model.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { loadModelFile } from '../input/model-input/read-model-file.js';
import { isFolderRefused, UndescribedModel } from '../input/model-input/undescribed-model.js';
import type { RepositoryWeights } from '../input/repository/repository.js';
import { isFamilyName } from '../model/architecture/families.js';
import { countParameters } from '../model/budget/parameters.js';
import { storedWeights } from '../model/quantization/stored-weights.js';
import { givenFlags } from './base-command.js';
import {
  type HardwareFlags,
  hardwareOf,
  isHardware,
  reservedBytes,
} from './flags/hardware-flags.js';

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
  if (!(error instanceof UserError) || file === '-') throw error;
  const isFolder = isFolderRefused(error);
  if (!(error instanceof UndescribedModel) && !isFolder) throw error;
  const { NoWeights, readRepository } = await import('../input/repository/repository.js');
  const { weightsResult } = await import('../estimate/undescribed/undescribed-results.js');
  let result: WeightsResult;
  try {
    const weights = readRepository(file);
    if (isFolder && !(await isRepository(weights))) throw error;
    result = weightsResult(weights, {
      reason: reasonFor(error, weights),
      like: error instanceof UndescribedModel ? error.like : undefined,
    });
  } catch (own) {
    throw own instanceof NoWeights ? error : own;
  }
  const idle = [...new Set(given)].filter((name) => ![...FREE, ...used].includes(name as never));
  if (idle.length === 0) return result;
  const names = joined(idle.map((name) => `--${name}`));
  // A model without problems of its config has none, and needs one.
  const isWithoutConfig = error instanceof UndescribedModel && error.problems.length === 0;
  const reason = isWithoutConfig ? error.message : result.reason;
  const describe = isWithoutConfig && error.suggestion ? `${error.suggestion}, or ` : '';
  throw usageError(
    `${names} ${idle.length > 1 ? 'do' : 'does'} not apply to weights without a description: ${reason}`,
    `${describe}leave ${idle.length > 1 ? 'them' : 'it'} out`,
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

/** Parsed flags of a line of `fit`. */
export interface FitLine {
  readonly flags: HardwareFlags;
  readonly metadata: Parameters<typeof givenFlags>[0]['metadata'];
}

/** Flags of `fit` that weights alone answer. */
const OF_FIT = ['gpu', 'hardware', 'reserve', 'check'];

/**
 * Verdicts on the weights of a model whose description failed, for the GPUs of the question or for common ones.
 * @param lines The flags, of a list those of each value.
 * @throws `error` as `weightsInstead`; UserError for several GPUs.
 */
export async function fitOfWeights(
  error: unknown,
  file: string,
  lines: readonly FitLine[],
  note: (text: string) => void,
): Promise<WeightsFitResult> {
  const given = lines.flatMap(givenFlags);
  const weights = await weightsInstead(error, file, { given, used: OF_FIT });
  const gpus: Gpu[] = [];
  for (const { flags } of lines.filter((line) => isHardware(line.flags))) {
    const cluster = await hardwareOf(flags, note);
    if (cluster.gpus > 1) {
      throw usageError(
        `expected one GPU, found ${cluster.gpus}: how weights without a description are divided is unknown`,
        `write --gpu ${cluster.gpu.name}`,
      );
    }
    gpus.push(cluster.gpu);
  }
  const { weightsFit } = await import('../estimate/undescribed/undescribed-results.js');
  const [first] = lines;
  return weightsFit(weights, { gpus, reservedBytes: first && reservedBytes(first.flags) });
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
  // A family gives the reason: its config lacks sizes, names another class, or has a value that is not described.
  const problem = error.problems.find(({ severity }) => severity === 'error');
  if (error instanceof UndescribedModel && problem && !problem.path?.endsWith('model_type')) {
    const key = problem.path?.replace(/^model\./, '') ?? '';
    const { message } = problem;
    if (isFamilyName(modelType) || key !== '') {
      return `config.json: ${key === '' || message.startsWith(key) ? message : `${key} ${message}`}`;
    }
  }
  // A family describes only the decoder of a larger model of its kind.
  if (isFamilyName(modelType) && kind !== null) return `no family describes ${kind}`;
  if (modelType !== null) return `no family describes ${quote(modelType)}`;
  if (error instanceof UndescribedModel) return error.problems[0]?.message ?? withAdvice(error);
  return kind === null ? 'there is no config' : `no family describes ${kind}`;
}

const withAdvice = ({ message, suggestion }: UserError): string =>
  present([message, suggestion]).join('; ');
