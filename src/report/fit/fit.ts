/** What `minimind fit` prints: a verdict for training and for serving, and what it rests on. */
import type { Fits, MachineForward } from '../../fit/fits.js';
import type { Doubt } from '../../fit/remedies/remedies.js';
import type { Cluster } from '../../hardware/gpu.js';
import type { MachineProfile } from '../../hardware/machine-profile.js';
import { formatCount, formatInteger, formatSeconds, loadText } from '../../text/units.js';
import { heading, left, note, strong } from '../kit/cells.js';
import type { Block, Report } from '../kit/report.js';
import { explanationBlocks } from '../profile/explanation.js';
import { boundsCells, boundsColumns, bytesText } from './fit-bounds.js';
import { csvTable } from './fit-csv.js';
import { type Serving, servingBlocks } from './fit-serving.js';
import { trainingBlocks } from './fit-training.js';

export interface FitResult extends Fits {
  readonly file: string;
  readonly family: string;
  readonly parameters: number;
  readonly cluster: Cluster;
  /** Why it is not certain that all that was asked can be had. */
  readonly doubts: readonly Doubt[];
  /** What was measured, when the hardware is this machine. */
  readonly profile: MachineProfile | null;
  /** A forward pass on it. */
  readonly forward: MachineForward | null;
}

/** @param flat Whether the reader is a program, which gets one table. */
export function fitReport(
  result: FitResult,
  { explain, flat }: { readonly explain: boolean; readonly flat: boolean },
): Report {
  const { file, family, parameters, cluster, training, serving, doubts } = result;
  if (flat) return { blocks: [csvTable(result)] };
  return {
    blocks: [
      heading(`${family} model of ${file} on ${hardwareText(cluster)}`),
      note(
        `${formatCount(parameters)} parameters. Of every figure there is what must be (lower), what is expected, and ` +
          'what poor software makes of it (upper); --explain has the formulas.',
      ),
      ...(training ? trainingBlocks(training) : []),
      ...(serving ? servingBlocks(serving, doubts) : []),
      ...(result.forward && result.profile ? forwardBlocks(result.forward, result.profile) : []),
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
    ],
  };
}

const hardwareText = ({ gpu, gpus }: Cluster) =>
  `${gpus === 1 ? '' : `${formatInteger(gpus)} × `}${gpu.title}`;

const sectionsOf = ({ training, serving, forward }: FitResult) => ({
  ...(training && { training: training.fit }),
  ...(serving && { serving: explained(serving.fit) }),
  ...(forward && { 'a forward pass here': forward }),
});

/** There is no speed of what does not fit. */
function explained(fit: Serving['fit']): Partial<Serving['fit']> {
  if (fit.withoutRoom === null) return fit;
  const { prefill: _, decode: __, ...memory } = fit;
  return memory;
}

/** As `quick-test` measures it. */
const forwardBlocks = (
  { batch, tokens, seconds, bytes }: MachineForward,
  { engine, measured, load, history }: MachineProfile,
): Block[] => [
  heading(
    `A forward pass of ${formatInteger(batch)} × ${formatInteger(tokens)} tokens on this machine, ${engine.title}, in ${engine.compute}`,
  ),
  {
    kind: 'table',
    columns: [left('quick-test will tell', 'what'), ...boundsColumns('value')],
    rows: [
      [strong('time'), ...boundsCells(seconds, formatSeconds)],
      [strong('memory, beside what it begins with'), ...boundsCells(bytes, bytesText)],
    ],
  },
  note(
    `Measured on ${measured.slice(0, 10)} at ${loadText(load)}. ${historyText(history)} A lower bound of time is the ` +
      'best that was seen with a margin for what was not; an upper one holds at loads like those that were seen.',
  ),
];

const historyText = ({ measurements, since, leastLoad }: MachineProfile['history']): string =>
  measurements === 1
    ? 'Best and worst are of this one measurement.'
    : `Best and worst are of ${formatInteger(measurements)} measurements since ${since.slice(0, 10)}, the quietest at ` +
      `${loadText(leastLoad)}.`;
