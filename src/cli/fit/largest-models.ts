/** `fit --gpu GPU` without a model: the published models that run there. */
import { UserError, usageError } from '../../base/errors.js';
import { tableRequestOf } from '../../estimate/fit/fit-request.js';
import type { LargestModelsResult } from '../../estimate/fit/largest-models.js';
import { largestModels } from '../../estimate/fit/largest-models.js';
import { storedWeightFormat } from '../../estimate/fit/model-memory.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import { capacityOf } from '../../estimate/hardware/gpu.js';
import { openModelSource } from '../../input/model-input/model-source.js';
import { publishedModels } from '../../input/published/published-file.js';
import { formatOf, type OutputFlags } from '../base-command.js';
import { listFamilies } from '../family-list.js';
import { type FitFlags, fitOptions } from '../flags/fit-flags.js';
import { progressDisplay } from '../progress.js';

/** Flags of a question about all models. */
const OF_ALL: ReadonlySet<string> = new Set([
  ...['gpu', 'gpus', 'hardware', 'reserve', 'gpu-memory-utilization', 'for', 'dtype'],
  ...['cache-dtype', 'context', 'batch', 'users'],
  ...['format', 'json', 'output', 'force', 'quiet', 'color', 'details', 'offline'],
]);

/** Whether a line without a model asks about all of them: its flags do. */
export const asksAboutAll = (given: readonly string[]): boolean =>
  given.every((name) => OF_ALL.has(name));

/** Models of each use in an answer, and in its details. */
const MOST = { short: 1, long: 3 } as const;

/** @throws UserError when no model can be asked, as the last of them. */
export async function largestOn(
  cluster: Cluster,
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
  const steps = progressDisplay(flags).steps();
  let refusal: UserError | undefined;
  let isAnswered = false;
  const uses = await largestModels(published, cluster, {
    most: isShort ? MOST.short : MOST.long,
    async asked({ preset }) {
      steps.doing(`trying ${preset}`);
      try {
        const loaded = await (await openModelSource(preset, {})).model([]);
        const request = tableRequestOf(loaded, fitOptions(flags));
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
  };
}
