/** Errors of the tensors of one written file, for the report of the whole conversion. */
import { openCheckpoint } from '../../checkpoint/open.js';
import { groupBy } from '../../text/words.js';
import { measureBlocks, measureQuantized, measureTie } from '../execute/check-output.js';
import type { StepProgress } from '../job.js';
import type { ConversionInput, ConversionPlan, PlannedTensor } from '../plan/conversion-plan.js';
import type { UnitMeasurements } from './receipts.js';

/**
 * Measures what is whole in a file: a tied tensor, tensors in blocks, and quantized weights whose parts are all there.
 * @param names Tensors of the file.
 */
export async function measureFile(
  file: string,
  names: readonly string[],
  { job: { checkpoint } }: Pick<ConversionInput, 'job'>,
  plan: ConversionPlan,
  step: StepProgress,
): Promise<UnitMeasurements> {
  if (plan.tie === null && plan.quantization === undefined && plan.gguf === undefined) return {};
  const own = new Set(names);
  const tensors = plan.tensors.filter(({ name }) => own.has(name));
  const { tie } = plan;
  const whole = plan.quantization ? wholeWeights(plan.tensors, own) : [];
  const hasTie = tie !== null && own.has(tie.name);
  const hasBlocks = tensors.some(({ blocks }) => blocks !== undefined);
  if (!hasTie && !hasBlocks && whole.length === 0) return {};
  const output = openCheckpoint(file, { keepPacked: true });
  try {
    return {
      ...(hasTie && { tie: await measureTie(tie, checkpoint, output, step) }),
      ...(hasBlocks && { blocks: await measureBlocks(tensors, checkpoint, output, step) }),
      ...(whole.length > 0 && {
        quantized: await measureQuantized({ ...plan, tensors: whole }, checkpoint, output, step),
      }),
    };
  } finally {
    output.close();
  }
}

/** The tensors of the quantized weights of a plan whose parts are all among these names. */
function wholeWeights(
  tensors: readonly PlannedTensor[],
  own: ReadonlySet<string>,
): PlannedTensor[] {
  return weightGroups(tensors)
    .filter((parts) => parts.every(({ name }) => own.has(name)))
    .flat();
}

/** The tensors of each quantized weight. */
export const weightGroups = (tensors: readonly PlannedTensor[]): PlannedTensor[][] => [
  ...groupBy(
    tensors.filter(({ action }) => action.do === 'quantize'),
    ({ action }) => (action.do === 'quantize' ? action.weight.name : ''),
  ).values(),
];
