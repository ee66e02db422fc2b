import { percentText, weightFormText } from '../../text/units.js';
import type { LogitDifference } from '../differences.js';
import { differenceText, logitDifference } from '../differences.js';
import type { CheckFinding } from '../finding.js';
import { skipped } from '../finding.js';
import { hasMixture } from '../rounding.js';
import type { TestContext } from '../test-context.js';
import { inFloat32, measuredHere } from './float16.js';

/**
 * Compares the model with itself in float32: error and savings of quantized weights. The loss is a figure and no fault;
 * `--max-kl`, `--min-top-match` and `--max-logit-error` limit it.
 */
export async function checkWeightForm(context: TestContext): Promise<CheckFinding> {
  const { weightForm, name } = context.engine.info;
  if (weightForm === undefined) return skipped('weights are float32: it needs --weights');
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

const OTHER_EXPERTS = 'rounding can choose another expert when two have nearly equal scores';
const ROUNDED_INPUTS =
  'inputs of quantized products are rounded to 8 bits; CPUs differ in the last bits of such products';
const IN_FLOATS =
  'TensorFlow.js computes with the quantized values in float32, without their savings';

const lossText = ({ relativeDifference, klDivergence, topAgreement }: LogitDifference) =>
  `logits differ from float32 by ${percentText(relativeDifference)} of their norm, ` +
  `KL ${differenceText(klDivergence)} nats, same top token at ${percentText(topAgreement)} of the positions`;
