/** `fit --gpu GPU` without a model: the published models that run there. */
import { UserError, usageError } from '../../base/errors.js';
import type { FitOptions } from '../../estimate/fit/fit-options.js';
import { fitRequestOf, tableRequestOf } from '../../estimate/fit/fit-request.js';
import type { LargestModelsResult } from '../../estimate/fit/largest-models.js';
import { largestModels } from '../../estimate/fit/largest-models.js';
import type { ListedModel, ListedSettings } from '../../estimate/fit/listed-models.js';
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
  const families = await listFamilies();
  const stored = new Set(
    publishedModels().flatMap(({ preset, of, row }) =>
      (row.quantization ?? of.quantization) ? [preset] : [],
    ),
  );
  const published = families.flatMap(({ name: family, presets }) =>
    presets
      .filter(({ series }) => series !== undefined)
      .map(({ name, parameters }) => {
        const preset = `${family}/${name}`;
        return { preset, parameters, isStoredQuantized: stored.has(preset) };
      }),
  );
  const isShort = formatOf(flags) === 'table' && !flags.details;
  const isServing = (flags.for ?? 'serving') === 'serving';
  const isListed = isShort && isServing;
  const steps = progressDisplay(flags).steps();
  let refusal: UserError | undefined;
  let isAnswered = false;
  const models = isServing ? await listOf(families, cluster, { flags, options, steps }) : [];
  const hasPlaces = cluster.cards !== undefined || cluster.gpu.kind === 'processor';
  const isAlone = isListed || hasPlaces;
  const most = flags.for !== undefined ? MOST.list : isShort ? MOST.short : MOST.long;
  const uses = await largestModels(isAlone ? [] : published, cluster, {
    most,
    async asked({ preset }) {
      steps.doing(`trying ${preset}`);
      try {
        const loaded = await (await openModelSource(preset, {})).model([]);
        const { ramBytes: _, ramSpeed: __, cpu: ___, ...onGpus } = options;
        const request = tableRequestOf(loaded, onGpus);
        isAnswered = true;
        const stored = flags.dtype === undefined ? storedWeightFormat(loaded)?.dtype : undefined;
        return { model: loaded.model, request, stored };
      } catch (error) {
        // A context beyond the positions of one model is none of another.
        if (!(error instanceof UserError)) throw error;
        refusal = error;
        return undefined;
      }
    },
  }).finally(() => steps.end());
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
}

interface ListQuestion {
  readonly flags: FitFlags & OutputFlags;
  readonly options: FitOptions;
  readonly steps: ReturnType<ReturnType<typeof progressDisplay>['steps']>;
}

/** The models that generate text on the hardware, the largest of each series. */
async function listOf(
  families: Awaited<ReturnType<typeof listFamilies>>,
  cluster: Cluster,
  { flags, options, steps }: ListQuestion,
): Promise<ListedModel[]> {
  const candidates = families.flatMap(({ name: family, presets }) =>
    presets
      .filter(({ series }) => series !== undefined)
      .map(({ name, parameters, series = null }) => ({
        name: `${family}/${name}`,
        parameters,
        series,
      })),
  );
  const room = options.ramBytes ?? (cluster.gpu.kind === 'processor' ? LARGEST_DESKTOP : 0);
  return listedModels(candidates, cluster, {
    most: MOST.list,
    room,
    async asked({ name }) {
      steps.doing(`trying ${name}`);
      try {
        const loaded = await (await openModelSource(name, {})).model([]);
        return listSettings(loaded, cluster, options, flags);
      } catch (error) {
        // A context beyond the positions of one model is none of another.
        if (error instanceof UserError) return undefined;
        throw error;
      }
    },
  }).finally(() => steps.end());
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
