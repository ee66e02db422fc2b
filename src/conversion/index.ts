/** Converts a checkpoint: request, plan, execution, check, result. */
import { checkProvable, prove } from './execute/check.js';
import { execute, preview } from './execute/execute.js';
import type { CheckpointPlace, ConversionJob } from './job.js';
import { checkJob, NOTHING_WRITTEN, orStopped, outputPlace, refuseOverlap } from './job.js';
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
  const { input, plan, resources } = await orStopped(
    job,
    () => NOTHING_WRITTEN,
    () => planned(job, place),
  );
  try {
    if (job['dry-run']) {
      const output = await orStopped(
        job,
        () => NOTHING_WRITTEN,
        () => preview(input, plan, resources),
      );
      return resultOf(input, resources, output, null);
    }
    const output = await execute(input, plan, resources);
    const seconds = (performance.now() - start) / 1000;
    const result = resultOf(input, resources, output, seconds);
    const { source } = input;
    if (!job.prove || source === undefined) return result;
    job.progress.end();
    const keepsSrte = result.srte === null || result.srte.relativeError === 0;
    const left = () => `${job.out} is complete, but was not compared with the input`;
    return { ...result, proof: await orStopped(job, left, () => prove(job, source, keepsSrte)) };
  } finally {
    await resources.backend.close();
  }
}

async function planned(job: ConversionJob, place: CheckpointPlace) {
  const input = await readInput(job, place);
  await job.warn(input.warnings);
  if (job.prove) await checkProvable(job, input.source);
  const plan = await planConversion(input);
  return { input, plan, resources: await resourcesFor(plan.srte, job) };
}
