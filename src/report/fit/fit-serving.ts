/** Serving part of the report of `minimind fit`. */
import type { Quantity } from '../../budget/quantity.js';
import type { Fits } from '../../fit/fits.js';
import type { UnmetRequirement } from '../../fit/remedies/remedies.js';
import type { LoadAnswer } from '../../fit/serving/queueing.js';
import type { ServingLoad } from '../../fit/serving/serving.js';
import { formatInteger, formatSeconds, percentText, significant } from '../../text/units.js';
import { sentence } from '../../text/words.js';
import { contextText, integerCell, left, note, right, strong } from '../kit/cells.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  boundsCells,
  boundsColumns,
  labelled,
  memoryTable,
  sameBounds,
  verdictHeading,
} from './fit-bounds.js';

export type Serving = NonNullable<Fits['serving']>;

export function servingBlocks(
  { setting, contextOrigin, fit }: Serving,
  doubts: readonly UnmetRequirement[],
): Block[] {
  const { weightParts, cachePerSequence, state, workspaceParts, total, capacity, verdict } = fit;
  const { batch, context } = setting;
  const times = (bytes: number | bigint) => sameBounds(batch * Number(bytes));
  return [
    verdictHeading('Serving', verdict),
    note(
      `${formatInteger(batch)} × ${formatInteger(context)} tokens${contextText(contextOrigin)}, weights in ` +
        `${formatText(setting)}, cache in ${setting.cacheDtype}, ` +
        `${setting.tensorParallel === 1 ? 'each GPU by itself' : `${setting.tensorParallel} GPUs share the layers`}.`,
    ),
    memoryTable(
      setting.cluster.gpu.kind,
      [
        ...weightParts.map(({ bytes }) => ({ part: bytes.label, bytes: sameBounds(bytes.value) })),
        { part: 'keys and values', bytes: times(cachePerSequence.value) },
        ...(state.value > 0 ? [{ part: 'states', bytes: times(state.value) }] : []),
      ],
      labelled(workspaceParts),
      total,
      capacity,
    ),
    ...(fit.withoutRoom === null
      ? [speedTable(fit, setting), note(`${limitsText(fit)} ${roomText(fit, setting)}`)]
      : [note(`${sentence(fit.withoutRoom)} ${roomText(fit, setting)}`)]),
    ...(fit.withoutLink === null
      ? []
      : [note(`Sums over GPUs are not counted: ${fit.withoutLink}.`)]),
    ...(fit.load ? loadBlocks(fit.load, setting, doubts) : []),
  ];
}

const formatText = ({
  weights: { dtype, groupSize, scaleDtype, zeroPoints },
}: Serving['setting']) =>
  groupSize === 'block' || ['f32', 'bf16', 'f16'].includes(dtype)
    ? dtype
    : `${dtype} (a scale in ${scaleDtype} for ${groupSize === 'row' ? 'each row' : `each ${formatInteger(groupSize)} values`}` +
      `${zeroPoints ? ', with zero points' : ''})`;

const limitsText = ({ decode, prefill, withoutPeak }: Serving['fit']) =>
  prefill
    ? `At best ${decode.limitedBy} limits decoding, and ${prefill.limitedBy} the prefill.`
    : `${sentence(withoutPeak ?? '')} But for computing, ${decode.limitedBy} limits it.`;

function speedTable(
  { prefill, decode }: Serving['fit'],
  { prompt, batch }: Serving['setting'],
): TableBlock {
  const sequences = batch === 1 ? '1 sequence' : `${formatInteger(batch)} sequences`;
  return {
    kind: 'table',
    columns: [left('speed', 'what'), ...boundsColumns('value')],
    rows: [
      [
        strong(`prefill of ${formatInteger(prompt)} tokens`),
        ...(prefill ? boundsCells(prefill.seconds, formatSeconds) : NOTHING_BOUNDED),
      ],
      [strong(`a token of ${sequences}`), ...boundsCells(decode.seconds, formatSeconds)],
      [{ text: 'tokens/s' }, ...boundsCells(decode.tokensPerSecond, significant)],
    ],
  };
}

function roomText(
  { largestBatch, largestContext }: Serving['fit'],
  { batch, context }: Serving['setting'],
): string {
  const sequences =
    largestBatch === null
      ? `Not one sequence of ${formatInteger(context)} tokens fits`
      : `At ${formatInteger(context)} tokens ${formatInteger(largestBatch.value)} sequences fit`;
  const tokens =
    largestContext === null
      ? `and ${batch === 1 ? 'none' : `no ${formatInteger(batch)} at a time`} of any length`
      : `and ${formatInteger(largestContext.value)} tokens at a batch of ${formatInteger(batch)}`;
  return `${sequences}, ${tokens}.`;
}

function loadBlocks(
  answers: ServingLoad,
  setting: Serving['setting'],
  doubts: readonly UnmetRequirement[],
): Block[] {
  const { load, prompt, output } = setting;
  if (!load) return [];
  const { lower, expected, upper, assumption } = answers;
  const doubt = doubts.find(({ about }) => about === 'load');
  return [
    {
      kind: 'heading',
      text:
        `${significant(load.requestsPerSecond)} requests/s of ${formatInteger(prompt)} and ${formatInteger(output)} tokens, ` +
        `95 % within ${formatSeconds(load.p95Seconds)}`,
      tone: doubt ? 'bad' : 'good',
    },
    ...(doubt ? [note(sentence(doubt.text))] : []),
    {
      kind: 'table',
      columns: [
        left('if speed is', 'speed'),
        right('GPUs', 'gpus'),
        right('replicas', 'replicas'),
        right('batch', 'batch'),
        right('p95', 'p95_seconds'),
        right('served', 'service_seconds'),
        right('waits', 'waiting_seconds'),
        right('in use', 'utilisation'),
        left('', 'remark', true),
      ],
      // The lower bound of a time is the best speed.
      rows: [loadRow('the best', lower), loadRow('as expected', expected), loadRow('poor', upper)],
    },
    note(`Assumed: ${assumption}.`),
  ];
}

const NOTHING: Cell = { text: '–', value: '' };
const NOTHING_BOUNDED = [NOTHING, NOTHING, NOTHING];

function loadRow(title: string, answer: LoadAnswer): Cell[] {
  if (!answer.met) {
    const why =
      answer.reason === 'no room'
        ? 'there is no room for one request'
        : `impossible: a request alone takes ${formatSeconds(answer.best.value)}`;
    return [strong(title), ...Array.from({ length: 7 }, () => NOTHING), { text: why, tone: 'bad' }];
  }
  const { gpus, replicas, batch, p95Seconds, service, waiting, utilisation } = answer;
  const seconds = ({ value }: Quantity): Cell => ({ text: formatSeconds(value), value });
  return [
    strong(title),
    integerCell(gpus.value),
    integerCell(replicas.value),
    integerCell(batch.value),
    seconds(p95Seconds),
    seconds(service),
    seconds(waiting),
    { text: percentText(utilisation.value), value: utilisation.value },
    { text: batch.value === 1 ? 'one at a time: far on the safe side' : '' },
  ];
}
