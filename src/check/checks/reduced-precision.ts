import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { percentText, weightFormText } from '../../base/text/units.js';
import type { LogitDifference } from '../../engine/compare/differences.js';
import {
  differenceText,
  logitDifference,
  relativeLimit,
} from '../../engine/compare/differences.js';
import type { Program, Values } from '../../engine/engine.js';
import type { CheckFinding, ForwardCost } from '../finding.js';
import { skipped } from '../finding.js';
import { hasMixture } from '../rounding.js';
import { endsAll, type TestContext } from '../test-context.js';
import { timed } from './timing.js';

/** A forward pass of the model under test. */
export const measuredHere = (context: TestContext): Promise<ForwardPass> =>
  context.with(context.model, (program) => measuredPrecision(context, program), APART);

/** Compares the model with itself in float32, on the same engine and device: error and savings of float16. */
export async function checkFloat16(context: TestContext): Promise<CheckFinding> {
  const { info } = context.engine;
  if (info.compute === 'f32') return skipped(`no float16: it needs ${setting('compute', 'f16')}`);
  await context.unload();
  const half = await measuredHere(context);
  try {
    return judgePrecision(context, half, await inFloat32(context));
  } catch (error) {
    if (!(error instanceof UserError) || endsAll(error)) throw error;
    return {
      ...skipped(`no float32 run to compare with: ${error.message}`),
      remarks: error.suggestion === undefined ? [] : [error.suggestion],
    };
  }
}

/** A run without block outputs: copying them from the card would count in the reported time. */
const APART = { blocks: false } as const;

/** A forward pass. */
export interface ForwardPass {
  readonly logits: Values;
  readonly spent: ForwardCost;
}

async function measuredPrecision(
  { ids, repeats }: Pick<TestContext, 'ids' | 'repeats'>,
  program: Program,
): Promise<ForwardPass> {
  const { output: logits } = await program.run({ ids });
  const { mean: meanSeconds } = await timed(program, { ids }, repeats);
  return { logits, spent: { weightBytes: program.weightBytes, meanSeconds } };
}

/** A forward pass of the same model in float32, on the same engine and device. */
export async function inFloat32(context: TestContext): Promise<ForwardPass> {
  const engine = await context.openFloat32();
  try {
    const program = await engine.load(context.model, context.weights, APART);
    try {
      return await measuredPrecision(context, program);
    } finally {
      await program.release();
    }
  } finally {
    await engine.close();
  }
}

function judgePrecision(
  { model, engine }: TestContext,
  half: ForwardPass,
  full: ForwardPass,
): CheckFinding {
  const { info } = engine;
  const limit = relativeLimit(info);
  const logits = logitDifference(full.logits, half.logits);
  const { relativeDifference } = logits;
  return {
    verdict: relativeDifference <= limit ? 'passed' : 'failed',
    finding: costText(logits),
    measure: { what: 'relative difference', value: relativeDifference, limit },
    remarks: [
      ...(relativeDifference > limit && hasMixture(model) ? [OTHER_EXPERTS] : []),
      ...(info.deviceKind === 'cpu' ? [ON_CPU] : []),
    ],
    details: { float16: { logits, f16: half.spent, f32: full.spent } },
  };
}

const OTHER_EXPERTS = 'rounding can choose another expert when two have nearly equal scores';

const ON_CPU =
  'the CPU rounds to float16 and computes in float32: a graphics card needs less memory and time';

const costText = ({ relativeDifference, largestDifference, topAgreement }: LogitDifference) =>
  `logits differ from float32 by up to ${differenceText(largestDifference)} ` +
  `(${differenceText(relativeDifference)} of their norm), same top token at ` +
  `${percentText(topAgreement)} of the positions`;

/**
 * Compares the model with itself in float32: error and savings of quantized weights. The error does not fail the check;
 * `--max-kl`, `--min-top-match` and `--max-logit-error` limit it.
 */
export async function checkWeightForm(context: TestContext): Promise<CheckFinding> {
  const { weightForm, name } = context.engine.info;
  if (weightForm === undefined)
    return skipped(`weights are float32: it needs ${setting('weights')}`);
  await context.unload();
  const quantized = await measuredHere(context);
  const full = await inFloat32(context);
  const logits = logitDifference(full.logits, quantized.logits);
  return {
    verdict: 'passed',
    finding: `${weightFormText(weightForm)}: ${lossText(logits)}`,
    measure: { what: 'relative difference', value: logits.relativeDifference },
    remarks: [
      ...(hasMixture(context.model) ? [OTHER_EXPERTS] : []),
      name === 'onnx' ? ROUNDED_INPUTS : IN_FLOATS,
    ],
    details: { quantized: { logits, quantized: quantized.spent, f32: full.spent } },
  };
}

const ROUNDED_INPUTS =
  'inputs of quantized products are rounded to 8 bits; CPUs differ in the last bits of such products';
const IN_FLOATS =
  'TensorFlow.js computes with the quantized values in float32, without their savings';

const lossText = ({ relativeDifference, klDivergence, topAgreement }: LogitDifference) =>
  `logits differ from float32 by ${percentText(relativeDifference)} of their norm, ` +
  `KL ${differenceText(klDivergence)} nats, same top token at ${percentText(topAgreement)} of the positions`;
