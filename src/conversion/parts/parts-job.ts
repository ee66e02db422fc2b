/** The job of a conversion in parts: what its tasks do and need. */
import { CPUS, type PartsJob } from '../../parts/launch.js';
import { hubModelsOf, type PartsPlan } from './parts-plan.js';

/** Bytes read and written per second that a part is sure to reach; half of a slow shared disk. */
const LEAST_RATE = 50e6;
/** Memory of the finish for each tensor of the input: it also reads the index of the output. */
const FINISH_INDEX_BYTES = 2e3;

/** The job of a plan. */
export function jobOf(plan: PartsPlan, planFile: string): PartsJob {
  const { input, output, parts, hash } = plan;
  const largest = Math.max(...parts.map(({ memoryBytes }) => memoryBytes));
  return {
    command: 'convert-checkpoint',
    planFile,
    planHash: hash,
    partSeconds: parts.map(({ readBytes, writeBytes }) => (readBytes + writeBytes) / LEAST_RATE),
    comments: [
      `Converts ${input.path} into ${output.path} in ${parts.length} parts.`,
      `for at least ${LEAST_RATE / 1e6} MB/s read and written.`,
    ],
    hubModels: [...new Set(hubModelsOf(plan))],
    hasRows: parts.some(({ slices }) => slices.length > 0),
    memoryBytes: largest + FINISH_INDEX_BYTES * input.tensors,
    cpus: CPUS,
    places: [input.path, output.path],
  };
}
