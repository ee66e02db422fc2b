/** Lists as values of flags of `fit` that take one: the same question for each value. */
import { type Problem, usageError } from '../../base/errors.js';
import { readText } from '../../base/files/read-file.js';
import type { Benchmark } from '../../estimate/fit/calibration/benchmark-runs.js';
import {
  calibratedRequest,
  refuseIdleBenchmark,
} from '../../estimate/fit/calibration/calibrated-request.js';
import type { FitListResult, FitListRow } from '../../estimate/fit/fit-list.js';
import { fitListRow } from '../../estimate/fit/fit-list.js';
import { refuseOtherBlocks } from '../../estimate/fit/fit-request.js';
import { fitsOf } from '../../estimate/fit/fits.js';
import { USUAL_SPEED } from '../../estimate/fit/serving/throughput/throughput.js';
import { USUAL_GPU } from '../../estimate/hardware/gpu.js';
import type { ModelFile } from '../../input/model-input/model-file.js';
import { openModelSource } from '../../input/model-input/model-source.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { FitFlags, FurtherFiles } from '../flags/fit-flags.js';
import { fitOptions } from '../flags/fit-flags.js';
import type { HardwareFlags } from '../flags/hardware-flags.js';
import { servingHardware } from '../flags/hardware-flags.js';

/** Flags of `fit` that take lists, in the order in which their values vary, slowest first. */
const LISTED = ['gpu', 'context', 'batch', 'micro-batch'] as const;

/** A value with commas between parts, none of them empty. */
const LIST = /^[^,]+(?:,[^,]+)+$/;

/**
 * Command lines with one value for each flag, in the order of the lists; the line itself where there is no list.
 * @param argv Words after the command.
 */
export function listVariants(argv: readonly string[]): readonly (readonly string[])[] {
  let variants: readonly (readonly string[])[] = [argv];
  for (const name of LISTED) {
    variants = variants.flatMap((words) => variantsOf(words, name));
  }
  return variants;
}

function variantsOf(words: readonly string[], name: string): readonly (readonly string[])[] {
  const end = words.indexOf('--');
  const at = words.findIndex(
    (word, index) =>
      (end < 0 || index < end) && (word === `--${name}` || word.startsWith(`--${name}=`)),
  );
  const word = words[at];
  if (word === undefined) return [words];
  const isJoined = word !== `--${name}`;
  const value = isJoined ? word.slice(name.length + 3) : words[at + 1];
  if (value === undefined || !LIST.test(value)) return [words];
  return value.split(',').map((part) => {
    const one = [`--${name}`, part.trim()];
    return [...words.slice(0, at), ...one, ...words.slice(at + (isJoined ? 1 : 2))];
  });
}

/** Bytes of the longest results of a benchmark: vLLM saves each request on demand. */
const MOST_BYTES = 64e6;

/** Models and results in the files that the flags name. @throws UserError as the readers of them. */
export const furtherFiles = async (flags: FitFlags): Promise<FurtherFiles> => ({
  draft: await draftModel(flags),
  benchmark: await readBenchmark(flags),
});

/** Results in the file of `--calibrate`. @throws UserError as `readText` and `benchmarkIn`, and for measured times. */
async function readBenchmark(flags: FitFlags): Promise<Benchmark | undefined> {
  const { calibrate: file } = flags;
  if (file === undefined) return undefined;
  refuseIdleBenchmark(fitOptions(flags));
  const text = await readText(file, { most: MOST_BYTES, suggestion: 'name the results only' });
  const { benchmarkIn } = await import('../../estimate/fit/calibration/benchmark-runs.js');
  return benchmarkIn(text, file);
}

/** Description of the model of `--draft`. */
const draftModel = async ({
  draft,
}: Pick<FitFlags, 'draft'>): Promise<LanguageModel | undefined> =>
  draft === undefined ? undefined : (await (await openModelSource(draft, {})).model([])).model;

/**
 * A row for each set of flags.
 * @param say Called with the choice when a name could mean several GPUs.
 * @throws UserError without hardware, and as `fitRequestOf`.
 */
export async function listedFits(
  loaded: ModelFile,
  variants: readonly (FitFlags & HardwareFlags)[],
  say: (choice: string) => void,
): Promise<{ readonly result: FitListResult; readonly warnings: readonly Problem[] }> {
  refuseOneBenchmark(variants);
  const rows: FitListRow[] = [];
  const said = new Set<string>();
  const sayOnce = (choice: string) => {
    if (!said.has(choice)) say(choice);
    said.add(choice);
  };
  const [first] = variants as [FitFlags & HardwareFlags];
  const files = await furtherFiles(first);
  let warnings: readonly Problem[] = [];
  let { purpose }: Pick<FitListResult, 'purpose'> = { purpose: 'serving' };
  for (const flags of variants) {
    requireHardware(flags);
    const options = fitOptions(flags, files);
    refuseOtherBlocks(loaded.model, options);
    const { profile: _, ...cluster } = await servingHardware(flags, sayOnce);
    const { request, ...calibrated } = calibratedRequest(loaded, cluster, options);
    // The GPU is the same in all rows.
    warnings = calibrated.warnings;
    const fits = fitsOf(loaded.model, request);
    rows.push(fitListRow(fits, calibrated.cluster));
    purpose = fits.purpose;
  }
  const result: FitListResult = {
    schema: 'minimind/fit-list@1',
    file: loaded.file,
    family: loaded.family.name,
    parameters: countParameters(loaded.model).parameters,
    purpose,
    minSpeed: purpose === 'serving' ? (first['min-speed'] ?? USUAL_SPEED) : null,
    rows,
  };
  return { result, warnings };
}

/** @throws UserError for a benchmark of one GPU with several. */
function refuseOneBenchmark(variants: readonly (FitFlags & HardwareFlags)[]): void {
  const [first] = variants;
  if (first?.calibrate === undefined || variants.every(({ gpu }) => gpu === first.gpu)) return;
  throw usageError(
    `--calibrate ${first.calibrate} is about one GPU, and --gpu lists several`,
    `write --gpu ${first.gpu}`,
  );
}

/** Whether each setup fits by the upper bounds, and meets load and speed by the estimate: `--check`. */
export const isAllFitting = ({ rows }: FitListResult): boolean =>
  rows.every(({ doubts }) => doubts.length === 0);

function requireHardware(flags: HardwareFlags): void {
  if ((flags.gpu ?? flags.hardware) !== undefined || flags['this-machine']) return;
  throw usageError(
    'a list of batches or contexts requires hardware',
    `add --gpu ${USUAL_GPU}, or your own GPU`,
  );
}
