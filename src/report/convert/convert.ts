/** Report of `minimind convert-checkpoint`. */

import { FILE_FORMATS } from '../../checkpoint/formats.js';
import type { Tie } from '../../conversion/choices.js';
import type { ConversionResult } from '../../conversion/conversion.js';
import type { Proof } from '../../conversion/execute/check-output.js';
import { formatBytes, formatDuration, formatShare, percentText } from '../../text/units.js';
import { shortened } from '../../text/words.js';
import { configText } from '../inspect/inspect-text.js';
import { cosineCell } from '../inspect/srte-survey.js';
import {
  bytesCell,
  heading,
  integerCell,
  left,
  note,
  percentCell,
  realCell,
  right,
  strong,
} from '../kit/cells.js';
import type { Block, Cell, Report, TableBlock, Tone } from '../kit/report.js';
import { againstBlocks } from '../quick-test/against.js';
import { errorsTable, planBlocks, srteBlocks, srteText, stepsTable } from './convert-plan.js';

/** @param flat Whether to output one table for programs: the tensors of a plan, or the errors per layer. */
export function convertReport(
  result: ConversionResult,
  { flat }: { readonly flat: boolean },
): Report {
  const { dryRun, srte, groups } = result;
  if (flat) return { blocks: [dryRun ? stepsTable(result.tensors) : errorsTable(srte)] };
  return {
    blocks: [
      verdict(result),
      note(sourceText(result)),
      totalsTable(result),
      ...(srte ? [note(srteText(srte))] : []),
      ...(dryRun ? planBlocks(groups) : srte ? srteBlocks(srte) : []),
      ...tieBlocks(result),
      ...filesBlocks(result),
      ...changesBlocks(result),
      ...leftOutBlocks(result),
      ...result.notes.map((text) => note(`${text}.`)),
      ...costBlocks(result),
      ...proofBlocks(result.proof),
    ],
  };
}

function verdict(result: ConversionResult): Block {
  const { dryRun, output, run } = result;
  if (dryRun) return heading(`only a plan: nothing was written to ${output.path}`);
  const worst = worstError(result);
  const cost = worst === undefined ? '' : `, with ${worst.what} of ${percentText(worst.error)}`;
  const done = run?.checked ? 'done, and read again' : 'done';
  const tone = exceedsBound(result) ? 'bad' : 'good';
  return { kind: 'heading', text: `${done}: ${output.path}${cost}`, tone };
}

/** The largest relative change of recomputed tensors: SRTE, embedding or head. */
function worstError({ srte, tie }: ConversionResult) {
  const errors = [
    { what: 'an SRTE error', error: srte?.relativeError ?? null },
    ...(tie?.errors ?? []).map(({ name, relativeError }) => ({
      what: `an error in ${shortened(name)}`,
      error: relativeError,
    })),
  ].flatMap(({ what, error }) => (error === null ? [] : [{ what, error }]));
  return errors.toSorted((a, b) => b.error - a.error)[0];
}

/** Whether the stored tables exceed the allowed error. */
export const exceedsBound = ({ srte }: Pick<ConversionResult, 'srte'>): boolean =>
  srte?.maxError != null && srte.relativeError !== null && srte.relativeError > srte.maxError;

/** Error of tying the embedding and the head. */
function tieBlocks({ tie }: ConversionResult): Block[] {
  if (tie === null || tie.errors.length === 0) return [];
  return [
    heading(`Embedding and head, tied with the values of ${TIE_VALUES[tie.values]}`),
    {
      kind: 'table',
      columns: [
        left('tensor', 'tensor', true),
        right('error', 'relative_error'),
        right('largest', 'largest_error'),
        right('cosine', 'cosine'),
      ],
      rows: tie.errors.map(({ name, relativeError, largestError, cosine }) => [
        { text: shortened(name) },
        percentCell(relativeError),
        realCell(largestError),
        cosineCell(cosine),
      ]),
    },
  ];
}

const TIE_VALUES = {
  embed: 'the embedding',
  head: 'the head',
  mean: 'their mean',
} as const satisfies Record<Tie, string>;

function sourceText({ input: { path, format, config } }: ConversionResult): string {
  const by = config === null ? 'by its names alone' : configText(config);
  return `From ${path} (${FILE_FORMATS[format].title}); ${by}.`;
}

function totalsTable({ input, output, srte }: ConversionResult): TableBlock {
  const row = (label: Cell, before: number, after: number, cell: (value: number) => Cell) => [
    label,
    cell(before),
    cell(after),
    ...savedCells(before, after, cell),
  ];
  const bytes = (value: number) => bytesCell({ value });
  return {
    kind: 'table',
    columns: [
      left('', 'what'),
      right('before', 'before'),
      right('after', 'after'),
      right('saved', 'saved'),
      right('share', 'share'),
    ],
    rows: [
      row(strong('parameters'), input.parameters, output.parameters, integerCell),
      ...(srte
        ? [row({ text: '  SRTE' }, srte.source.parameters, srte.target.parameters, integerCell)]
        : []),
      row(strong('tensors'), input.tensorBytes, output.tensorBytes, bytes),
      row(strong('files'), input.bytes, output.bytes, bytes),
    ],
  };
}

/** Savings and their share; for growth, the factor. */
function savedCells(before: number, after: number, cell: (value: number) => Cell): Cell[] {
  const saved = before - after;
  if (saved === 0) return [{ text: '–' }, { text: '–' }];
  const tone = saved > 0 ? 'good' : 'bad';
  const times = before === 0 ? '–' : `× ${(after / before).toPrecision(3)}`;
  return [
    { ...cell(saved), tone },
    { text: saved > 0 ? formatShare(saved, before) : times, tone },
  ];
}

function filesBlocks({ dryRun, output: { files } }: ConversionResult): Block[] {
  const isResumed = files.some(({ resumed }) => resumed);
  return [
    heading(dryRun ? 'Files to be written' : 'Files'),
    {
      kind: 'table',
      columns: [
        left('file', 'file', true),
        right('bytes', 'bytes'),
        ...(isResumed ? [left('', 'resumed')] : []),
      ],
      rows: files.map(({ name, bytes, resumed }) => [
        { text: shortened(name) },
        bytesCell({ value: bytes }),
        ...(isResumed ? [{ text: resumed ? 'from the earlier run' : '' }] : []),
      ]),
    },
  ];
}

function changesBlocks({ configChanges }: ConversionResult): Block[] {
  if (configChanges.length === 0) return [];
  return [
    heading('Config'),
    {
      kind: 'table',
      columns: [left('key', 'key', true), left('from', 'from', true), left('to', 'to', true)],
      rows: configChanges.map(({ path, from, to }) => [
        { text: path },
        settingCell(from),
        settingCell(to),
      ]),
    },
  ];
}

const settingCell = (value: unknown): Cell => ({
  text: value === null ? '–' : shortened(JSON.stringify(value)),
});

function leftOutBlocks({ leftOut }: ConversionResult): Block[] {
  if (leftOut.length === 0) return [];
  return [
    heading('Left out'),
    {
      kind: 'table',
      columns: [left('what', 'what', true), right('count', 'count'), left('why', 'why', true)],
      rows: leftOut.map(({ pattern, names, why }) => [
        { text: shortened(pattern) },
        integerCell(names.length),
        { text: why },
      ]),
    },
  ];
}

function costBlocks({ memory, run, srte }: ConversionResult): Block[] {
  const { limitBytes, predictedPeakBytes, peakBytes } = memory;
  const allowed = `${formatBytes(limitBytes)} are allowed`;
  const predicted = formatBytes(predictedPeakBytes);
  if (run === null || peakBytes === null) {
    return [note(`Memory at its peak: about ${predicted}; ${allowed}.`)];
  }
  const { readBytes, writtenBytes, bytesPerSecond, seconds, products } = run;
  const isFactorised = [srte?.source, srte?.target].some((each) => each?.form === 'low-rank');
  return [
    note(
      `Read ${formatBytes(readBytes)} and wrote ${formatBytes(writtenBytes)} in ${secondsText(seconds)}: ` +
        `${formatBytes(bytesPerSecond)} a second.${isFactorised ? ` Matrix products: ${products}.` : ''}`,
    ),
    {
      kind: 'note',
      text: `Memory at its peak: ${formatBytes(peakBytes)}; predicted were ${predicted}, and ${allowed}.`,
      tone: peakBytes > limitBytes ? 'warning' : 'dim',
    },
  ];
}

/** `0.15 s`, `12 s`, `2 min 5 s`. */
const secondsText = (seconds: number) =>
  seconds < 10 ? `${seconds.toFixed(2)} s` : formatDuration(seconds);

// Measured effect of a conversion on the model's output.

export function proofBlocks(proof: Proof | null): Block[] {
  if (proof === null) return [];
  const { against, why } = proof;
  return [
    { kind: 'heading', text: proofText(proof), tone: PROOF_TONES[proof.verdict] },
    ...(against ? againstBlocks(against) : [note(`The output stands, and was not run: ${why}.`)]),
  ];
}

const PROOF_TONES = {
  same: 'good',
  differs: 'strong',
  failed: 'bad',
  skipped: 'warning',
} as const satisfies Record<Proof['verdict'], Tone>;

function proofText({ verdict, against }: Proof): string {
  const share = against?.logits.relativeDifference ?? 0;
  const found = Number.isFinite(share)
    ? `the logits of the output differ from those of the input by ${percentText(share)}`
    : 'the logits are not all finite, and cannot be compared';
  switch (verdict) {
    case 'same':
      return 'Proof: the output computes the same as the input, within rounding';
    case 'differs':
      return `Proof: ${found}`;
    case 'failed':
      return `Proof FAILED: no value was to change, and ${found}`;
    case 'skipped':
      return 'No proof could be made';
  }
}
