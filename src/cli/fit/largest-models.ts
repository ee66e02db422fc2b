/** `fit --gpu GPU` without a model: the published models that run there. */
import { UserError, usageError } from '../../base/errors.js';
import type { FitOptions } from '../../estimate/fit/fit-options.js';
import { fitRequestOf, tableRequestOf } from '../../estimate/fit/fit-request.js';
import type { LargestModelsResult } from '../../estimate/fit/largest-models.js';
import { largestModels } from '../../estimate/fit/largest-models.js';
import type { ListedSettings } from '../../estimate/fit/listed-models.js';
import { listedModels } from '../../estimate/fit/listed-models.js';
import { storedWeightFormat } from '../../estimate/fit/model-memory.js';
import type { WeightDtype } from '../../estimate/fit/serving/weight-types.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import { capacityOf } from '../../estimate/hardware/gpu.js';
import { LARGEST_DESKTOP } from '../../estimate/hardware/system-memory.js';
import type { LoadedModel } from '../../input/model-input/checkpoint/checkpoint-model.js';
import { openModelSource } from '../../input/model-input/model-source.js';
import { publishedModels } from '../../input/published/published-file.js';
import { formatOf, type OutputFlags } from '../base-command.js';
import { listFamilies } from '../family-list.js';
import type { FitFlags } from '../flags/fit-flags.js';
import { progressDisplay } from '../progress.js';

/** Flags of a question about all models. */
const OF_ALL: ReadonlySet<string> = new Set([
  ...['gpu', 'gpus', 'hardware', 'reserve', 'gpu-memory-utilization', 'for', 'dtype'],
  ...['cache-dtype', 'context', 'batch', 'users', 'ram', 'ram-speed', 'cpu'],
  ...['format', 'json', 'output', 'force', 'quiet', 'color', 'details', 'offline'],
]);

/** Whether a line without a model asks about all of them: its flags do. */
export const asksAboutAll = (given: readonly string[]): boolean =>
  given.every((name) => OF_ALL.has(name));

/** Models of each use in an answer, and in its details. */
const MOST = { short: 1, long: 3, list: 12 } as const;

/** Types of a list, the widest first: those of GGUF files, which all cards and processors run. */
const LISTED = ['bf16', 'q8_0', 'q6_k', 'q4_k_m'] as const satisfies readonly WeightDtype[];

/** @throws UserError when no model can be asked, as the last of them. */
export async function largestOn(
  cluster: Cluster,
  options: FitOptions,
  flags: FitFlags & OutputFlags & { readonly details: boolean },
): Promise<LargestModelsResult> {
  const stored = new Set(
    publishedModels().flatMap(({ preset, of, row }) =>
      (row.quantization ?? of.quantization) ? [preset] : [],
    ),
  );
  const published = (await listFamilies()).flatMap(({ name: family, presets }) =>
    presets.flatMap(({ name, parameters, series }) =>
      series === undefined ? [] : [{ name: `${family}/${name}`, parameters, series }],
    ),
  );
  const isShort = formatOf(flags) === 'table' && !flags.details;
  const isServing = (flags.for ?? 'serving') === 'serving';
  const hasPlaces = cluster.cards !== undefined || cluster.gpu.kind === 'processor';
  const most = flags.for !== undefined ? MOST.list : isShort ? MOST.short : MOST.long;
  const steps = progressDisplay(flags).steps();
  let refusal: UserError | undefined;
  let isAnswered = false;
  async function answered<Answer>(name: string, answer: (loaded: LoadedModel) => Answer) {
    steps.doing(`trying ${name}`);
    try {
      const found = answer(await (await openModelSource(name, {})).model([]));
      isAnswered = true;
      return found;
    } catch (error) {
      // A context beyond the positions of one model is none of another.
      if (!(error instanceof UserError)) throw error;
      refusal = error;
      return undefined;
    }
  }
  try {
    const models = isServing
      ? await listedModels(published, cluster, {
          most: MOST.list,
          room: options.ramBytes ?? (cluster.gpu.kind === 'processor' ? LARGEST_DESKTOP : 0),
          asked: ({ name }) =>
            answered(name, (loaded) => listSettings(loaded, cluster, options, flags)),
        })
      : [];
    const { ramBytes: _, ramSpeed: __, cpu: ___, ...onGpus } = options;
    const isListed = (isShort && isServing) || hasPlaces;
    const candidates = published.map(({ name, parameters }) => ({
      preset: name,
      parameters,
      isStoredQuantized: stored.has(name),
    }));
    const uses = await largestModels(isListed ? [] : candidates, cluster, {
      most,
      asked: ({ preset }) =>
        answered(preset, (loaded) => ({
          model: loaded.model,
          request: tableRequestOf(loaded, onGpus),
          stored: flags.dtype === undefined ? storedWeightFormat(loaded)?.dtype : undefined,
        })),
    });
    if (refusal && !isAnswered) {
      throw usageError(`no published model can be asked so; the last one: ${refusal.message}`);
    }
    return {
      schema: 'minimind/fit-models@1',
      cluster,
      memoryBytes: capacityOf(cluster.gpu).value,
      context: flags.context ?? null,
      sequences: flags.users ?? flags.batch ?? null,
      considered: published.length,
      uses,
      models,
    };
  } finally {
    steps.end();
  }
}

/** The settings of a model in each type of a list, its own first. */
function listSettings(
  loaded: LoadedModel,
  cluster: Cluster,
  options: FitOptions,
  { dtype: asked }: FitFlags,
): ListedSettings {
  const stored = storedWeightFormat(loaded)?.dtype;
  const dtypes: readonly (WeightDtype | undefined)[] =
    asked !== undefined ? [asked] : stored !== undefined ? [undefined, 'q4_k_m'] : LISTED;
  return {
    model: loaded.model,
    settings: dtypes.flatMap((dtype) => {
      const wish = { ...options, dtype, for: 'serving' } as const;
      const { serving } = fitRequestOf(loaded, cluster, wish);
      if (serving === null) return [];
      const { setting, places } = serving;
      return [{ setting, wish: places, isAsPublished: dtype === undefined }];
    }),
  };
}
