/** Converts a checkpoint: request, plan, execution, check, result. */

import { type Problem, usageError } from '../../base/errors.js';
import { pathKind } from '../../base/files/mounted.js';
import { ENCODABLE_DTYPES } from '../../base/tensor/encode.js';
import { setting } from '../../base/text/setting.js';
import { dtypeWord } from '../../base/text/units.js';
import { joined } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import { MIXTURE_NAMES, type MixtureName } from '../../checkpoint/gguf/mixtures.js';
import { type ConversionResult, conversionResult, merges } from './conversion-result.js';
import { checkProvable, prove } from './execute/check-output.js';
import { execute, preview } from './execute/execute.js';
import type { CheckpointTarget, ConversionJob, ConversionRequest } from './job.js';
import {
  checkJob,
  NOTHING_WRITTEN,
  outputTarget,
  refuseOverlap,
  withStoppedNotice,
} from './job.js';
import type { ConversionInput, ConversionPlan } from './plan/conversion-plan.js';
import { asGgufPlan } from './plan/gguf-plan.js';
import { planConversion, readInput } from './plan/plan-conversion.js';
import type { Resources } from './resources.js';
import { JAVASCRIPT, resourcesFor } from './resources.js';
import type { SrtePlan } from './srte/srte-plan.js';

/** A checked request. Its caller closes the backend of its resources. */
export interface PreparedConversion {
  readonly input: ConversionInput;
  readonly plan: ConversionPlan;
  readonly resources: Resources;
}

/**
 * Checks a request and plans its output.
 * @throws UserError for every fault of the input or the request.
 */
export async function prepare(request: ConversionRequest): Promise<PreparedConversion> {
  checkJob(request);
  if (request.imatrix !== undefined) refuseFolder(request.imatrix);
  const place = outputTarget(request.out, request.container);
  const job = jobOf(request, place);
  const read = [job.config, job.target, job.imatrix].filter((file) => file !== undefined);
  refuseOverlap(job.checkpoint, place, { read, report: job.output });
  return withStoppedNotice(
    job,
    () => NOTHING_WRITTEN,
    () => planned(job, request, place),
  );
}

/**
 * Converts, or with a dry run reports the plan.
 * @throws UserError for every fault of the input, the request or the destination.
 */
export async function convert(request: ConversionRequest): Promise<ConversionResult> {
  const start = performance.now();
  const { input, plan, resources } = await prepare(request);
  const { job } = input;
  try {
    if (job.dryRun) {
      const output = await withStoppedNotice(
        job,
        () => NOTHING_WRITTEN,
        () => preview(input, plan, resources),
      );
      return conversionResult(input, resources, output, null);
    }
    const output = await execute(input, plan, resources);
    const seconds = (performance.now() - start) / 1000;
    const result = conversionResult(input, resources, output, seconds);
    const { source } = input;
    if (!job.prove || source === undefined) return result;
    job.display.end();
    const keepsSrte = result.srte === null || result.srte.relativeError === 0;
    const left = () => `${job.out} is complete, but was not compared with the input`;
    return {
      ...result,
      proof: await withStoppedNotice(job, left, () => prove(job, source, keepsSrte)),
    };
  } finally {
    await resources.backend.close();
  }
}

async function planned(
  job: ConversionJob,
  request: ConversionRequest,
  place: CheckpointTarget,
): Promise<PreparedConversion> {
  const input = await readInput(job, place);
  await job.warn(input.warnings);
  if (job.prove) await checkProvable(job, input.source);
  const plan = await planConversion(input);
  refuseIdle(request, plan.srte);
  const resources = await resourcesFor(plan.srte, job);
  await job.warn(idleEngine(job, resources));
  return place.container === 'gguf'
    ? { ...asGgufPlan(input, plan), resources }
    : { input, plan, resources };
}

/**
 * Warning about flags of an engine when none runs. It is not an error, because scripts write them for all conversions.
 */
function idleEngine(
  { checkpoint, engine, threads, prove }: ConversionJob,
  { backend }: Resources,
): Problem[] {
  const flags = present([
    engine !== 'auto' && setting('engine'),
    threads !== undefined && setting('threads'),
  ]);
  if (prove || backend !== JAVASCRIPT || flags.length === 0) return [];
  return [
    {
      severity: 'warning',
      file: checkpoint.path,
      message: `${joined(flags)} ${flags.length === 1 ? 'is' : 'are'} not used: this conversion has no large matrix products`,
    },
  ];
}

/** A request as a job. @throws UserError for types of blocks in a file other than GGUF. */
function jobOf(request: ConversionRequest, { container }: CheckpointTarget): ConversionJob {
  const { dtype, merge = 'mean', seed = 0 } = request;
  const mixture = MIXTURE_NAMES.find((each) => each === dtype);
  if (mixture !== undefined && container !== 'gguf') {
    throw usageError(
      `${setting('dtype', mixture)}: expected OUT to end in .gguf, found a ${container} output`,
      `write OUT as model.gguf, or choose ${setting('dtype', 'f16')} or bf16`,
    );
  }
  checkImportance(request, mixture);
  return {
    ...request,
    ...{ merge, seed, mixture, dtype: ENCODABLE_DTYPES.find((each) => each === dtype) },
    // The ending of a GGUF file requests a container, like --container.
    container: container === 'gguf' ? container : request.container,
  };
}

function refuseFolder(imatrix: string): void {
  if (pathKind(imatrix) !== 'folder') return;
  throw usageError(
    `${setting('imatrix')}: expected a file, found the folder ${imatrix}`,
    'name the file that llama-imatrix wrote',
  );
}

/** @throws UserError for an importance matrix that the type does not use, or a type that needs one. */
function checkImportance(
  { imatrix, dtype }: ConversionRequest,
  mixture: MixtureName | undefined,
): void {
  if (imatrix === undefined) {
    if (mixture !== 'q2_k_s') return;
    throw usageError(
      `${setting('dtype', mixture)} requires an importance matrix, found none`,
      `name one with ${setting('imatrix', 'FILE')}, or choose ${setting('dtype', 'q2_k')}`,
    );
  }
  if (mixture !== undefined && mixture !== 'q8_0') return;
  throw usageError(
    `${setting('imatrix')} requires a type of GGUF files with a search for scales, found ${dtype === undefined ? 'none' : dtypeWord(dtype.toLowerCase())}`,
    `choose ${setting('dtype', 'q4_k_m')}, or remove ${setting('imatrix')}`,
  );
}

/** @throws UserError for `--merge` when nothing is merged, or `--seed` when nothing is random. */
function refuseIdle({ merge, seed, prove }: ConversionRequest, srte: SrtePlan | null): void {
  if (merge !== undefined && !(srte && merges(srte.target, srte.tables))) {
    throw usageError(
      `${setting('merge')}: expected tables of several layers to share, found none`,
      `remove ${setting('merge')}; it needs an input with a table for each layer, and ${setting('layout', 'shared')}`,
    );
  }
  const isSearched = srte?.tables.some(({ form, isMade }) => form === 'low-rank' && isMade);
  if (seed !== undefined && !prove && !isSearched) {
    throw usageError(
      `${setting('seed')}: expected ${setting('prove')} or a new low-rank pair, found neither`,
      `remove ${setting('seed')}; nothing here is random`,
    );
  }
}
