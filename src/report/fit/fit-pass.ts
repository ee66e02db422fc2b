/** Facts of `minimind fit` about an encoder, which has no cache and generates no tokens. */
import {
  formatInteger,
  formatSeconds,
  formatSequences,
  significant,
} from '../../base/text/units.js';
import { capital, counted } from '../../base/text/words.js';
import type { FitResult } from '../../estimate/fit/fits.js';
import type { EncoderPass } from '../../estimate/fit/serving/encoder-pass.js';
import type { Fact, Verdict } from '../kit/report.js';
import { type BoundsRow, sameBounds, TONES } from './fit-bounds.js';
import { hardwareText } from './fit-places.js';
import { formatText, prefillLimitText } from './fit-serving.js';
import { withoutSpeedText } from './fit-training.js';
import { memorySum } from './memory-sum.js';

export const passVerdict = (pass: EncoderPass, cluster: FitResult['cluster']): Verdict => {
  const { verdict, sequencesPerSecond: rate, context } = pass;
  const speed = rate
    ? `: ${significant(rate.expected.value)} sequences/s of ${counted(context, 'token')} (estimate)`
    : '';
  return { text: `${capital(verdict)} on ${hardwareText(cluster)}${speed}`, tone: TONES[verdict] };
};

/** `bf16 weights, 1 × 512 tokens; no cache: it generates no tokens`, the memory, and the time of a pass. */
export function passFacts(pass: EncoderPass): Fact[] {
  const { format, context, batch, weights, workspace, total, capacity, largestBatch } = pass;
  return [
    {
      name: 'pass',
      text: `${formatText({ weights: format })} weights, ${formatSequences(batch, context)}; no cache: it generates no tokens`,
    },
    {
      name: 'memory',
      text: memorySum(
        [
          ['weights', Number(weights.value)],
          ['workspace', workspace.expected.value],
        ],
        total,
        capacity.value,
      ),
    },
    {
      name: 'room for',
      text:
        largestBatch === null
          ? 'not even one sequence'
          : `${formatInteger(largestBatch.value)} sequences of ${counted(context, 'token')} at a time`,
    },
    ...timeFacts(pass),
  ];
}

function timeFacts({ time, sequencesPerSecond: rate, withoutTime, context }: EncoderPass): Fact[] {
  if (time === null || rate === null)
    return [{ name: 'speed', text: withoutSpeedText(withoutTime) }];
  const { lower, expected, upper } = time.seconds;
  const range = `${formatSeconds(lower.value)} to ${formatSeconds(upper.value)}`;
  return [
    {
      name: 'time',
      text: `${formatSeconds(expected.value)} (${range}) for ${formatSequences(1, context)}`,
    },
    {
      name: 'speed',
      text: `${significant(rate.expected.value)} sequences/s (${significant(rate.lower.value)} to ${significant(rate.upper.value)}), one at a time`,
    },
    { name: 'limits', text: prefillLimitText(time) },
  ];
}

/** Rows of CSV. */
export const passRows = (pass: EncoderPass): BoundsRow[] => [
  { what: 'weights', unit: 'bytes', bounds: sameBounds(pass.weights.value) },
  { what: 'workspace', unit: 'bytes', bounds: pass.workspace },
  { what: 'total', unit: 'bytes', bounds: pass.total },
  { what: 'capacity', unit: 'bytes', bounds: sameBounds(pass.capacity.value) },
  {
    what: 'largest batch',
    unit: 'sequences',
    bounds: sameBounds(pass.largestBatch?.value ?? 0),
  },
  ...(pass.time ? [{ what: 'pass', unit: 'seconds', bounds: pass.time.seconds }] : []),
  ...(pass.sequencesPerSecond
    ? [{ what: 'sequences', unit: 'sequences/s', bounds: pass.sequencesPerSecond }]
    : []),
];
