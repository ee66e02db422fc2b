/** The proof of a conversion: the input and the output, run on the same tokens. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { UserError } from '../errors.js';
import type { ModelFile } from '../model-input/model-file.js';
import type { OpenedSide } from '../quicktest/sides.js';
import type { ConvertResult, Proof } from '../report/convert/convert-result.js';
import type { DeviceChoice, EngineChoice } from '../runtime/select/devices.js';
import type { EncodableDtype } from '../tensor/encode.js';
import { progressDisplay } from './progress.js';

/** Of the flags of a conversion. */
export interface ProofFlags {
  readonly tie: string | undefined;
  readonly dtype: EncodableDtype | undefined;
  readonly target: string | undefined;
  readonly set: readonly string[] | undefined;
  readonly context: number | undefined;
  readonly seed: number;
  readonly engine: EngineChoice;
  readonly device: DeviceChoice | undefined;
  readonly threads: number | undefined;
  readonly quiet: boolean;
}

/**
 * Runs both models of a conversion that is done, each by its own config.
 * @param source What describes the input.
 * @returns That it could not be made, and why, when there is no room for a model or no engine: the output stands
 * all the same.
 */
export async function proofOf(
  input: Checkpoint,
  source: ModelFile,
  result: Pick<ConvertResult, 'srte' | 'output'>,
  flags: ProofFlags,
): Promise<Proof> {
  const isExact = keepsValues(result, flags);
  const { checkpointSide, compareSides } = await import('../quicktest/sides.js');
  const display = progressDisplay(flags);
  let output: OpenedSide | undefined;
  try {
    output = await checkpointSide(result.output.path, source, display);
    const { context, seed, engine, device = 'auto', threads } = flags;
    const wishes = { context, seed, engine, device, compute: 'f32', threads } as const;
    const own = { loaded: source, checkpoint: input };
    const against = await compareSides(
      own,
      output,
      { ...wishes, ids: undefined, full: false, otherWay: undefined },
      display,
    );
    const isSame = against.partsAt === null;
    return {
      verdict: isSame ? 'same' : isExact ? 'failed' : 'differs',
      isExact,
      why: null,
      against,
    };
  } catch (error) {
    if (!(error instanceof UserError) || error.code === 'interrupted') throw error;
    return { verdict: 'skipped', isExact, why: error.message, against: null };
  } finally {
    output?.checkpoint?.close();
  }
}

/** Whether every value that the output's layers compute with is one of the input's. When in doubt it is not. */
const keepsValues = (
  { srte }: Pick<ConvertResult, 'srte'>,
  { tie, dtype, target, set }: ProofFlags,
): boolean =>
  [tie, dtype, target].every((each) => each === undefined) &&
  (set ?? []).length === 0 &&
  (srte === null || srte.relativeError === 0);
