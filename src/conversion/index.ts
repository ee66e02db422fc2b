/** Converts a checkpoint: request, plan, execution, check, result. */
import { checkProvable, prove } from './execute/check.js';
import { execute, preview } from './execute/execute.js';
import { type ConversionJob, checkJob, outputPlace, refuseOverlap } from './job.js';
import { planConversion, readInput } from './plan/plan-conversion.js';
import { resourcesFor } from './resources.js';
import { type ConversionResult, resultOf } from './result.js';

/**
 * Converts, or with a dry run reports the plan.
 * @throws UserError for every fault of the input, the request or the destination.
 */
export async function convert(job: ConversionJob): Promise<ConversionResult> {
  const start = performance.now();
  checkJob(job);
  const place = outputPlace(job.out, job.container);
  const read = [job.config, job.target].filter((file) => file !== undefined);
  refuseOverlap(job.checkpoint, place, { read, report: job.output });
  const input = await readInput(job, place);
  await job.warn(input.warnings);
  if (job.prove) await checkProvable(job, input.source);

  const plan = await planConversion(input);
  const resources = await resourcesFor(plan.srte, job);
  try {
    if (job['dry-run']) {
      return resultOf(input, resources, await preview(input, plan, resources), null);
    }
    const output = await execute(input, plan, resources);
    const seconds = (performance.now() - start) / 1000;
    const result = resultOf(input, resources, output, seconds);
    if (!job.prove || input.source === undefined) return result;
    job.progress.end();
    const keepsSrte = result.srte === null || result.srte.relativeError === 0;
    return { ...result, proof: await prove(job, input.source, keepsSrte) };
  } finally {
    await resources.backend.close();
  }
}
