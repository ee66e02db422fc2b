/** Report of `minimind quick-test`: a verdict, one line per check, and the time. */

import type { TraceStep } from '../../budget/trace.js';
import type { CheckName } from '../../quicktest/checks.js';
import type {
  CheckVerdict,
  Float16Cost,
  PartTiming,
  Spent,
  Timing,
} from '../../quicktest/finding.js';
import type { QuickTest } from '../../quicktest/index.js';
import { formatBytes, formatInteger } from '../../text/units.js';
import { counted, sumOf } from '../../text/words.js';
import { engineText, passedOverText } from '../doctor.js';
import { bar, heading, integerCell, left, note, right } from '../kit/cells.js';
import type { Block, Cell, Report, TableBlock, Tone } from '../kit/report.js';
import { logitsTable } from './against.js';

interface QuickTestResult extends QuickTest {
  readonly file: string;
  readonly family: string;
  readonly checkpoint: string | null;
}

/** @param flat Whether to output plain numbers, for programs. */
export function quickTestReport(
  result: QuickTestResult,
  { flat }: { readonly flat: boolean },
): Report {
  const timing = result.checks.find(({ details }) => details?.timing)?.details?.timing;
  const float16 = result.checks.find(({ details }) => details?.float16)?.details?.float16;
  return {
    blocks: [
      ...twinBlocks(result),
      verdict(result),
      note(subjectText(result)),
      note(`Engine: ${engineText(result.engine, result.selfCheck)}.`),
      // Skipped graphics cards are reported on stderr, or as an error.
      ...result.passedOver
        .filter(({ device }) => device === 'cpu')
        .map((each) => note(passedOverText(each))),
      checksTable(result, flat),
      ...(timing ? timingBlocks(timing, result) : []),
      ...(float16 ? float16Blocks(float16) : []),
      ...memoryBlocks(result),
    ],
  };
}

const WHY_TWIN = {
  memory: ({ parameters, memory }) =>
    `${formatInteger(parameters)} parameters in float32 take ` +
    `${formatBytes(memory.need.weightBytes)}, all of the forward pass ` +
    `${formatBytes(memory.need.totalBytes)}, and here ${formatBytes(memory.usableBytes)} can be used`,
  tensors: () => 'the model has too many tensors to run as a whole',
} as const satisfies Record<
  NonNullable<QuickTestResult['twin']>['reason'],
  (result: Pick<QuickTestResult, 'parameters' | 'memory'>) => string
>;

function twinBlocks({
  mode,
  twin,
  parameters,
  memory,
  weights,
  checkpoint,
}: QuickTestResult): Block[] {
  if (mode !== 'twin' || !twin) return [];
  const changes = twin.changes.map(
    ({ path, from, to }) => `${path} ${formatInteger(from)} → ${formatInteger(to)}`,
  );
  const lost = checkpoint && weights === 'random' ? ' Its weights are random.' : '';
  return [
    {
      kind: 'note',
      tone: 'warning',
      text: `A smaller twin ran: ${WHY_TWIN[twin.reason]({ parameters, memory })}. --full runs the model itself, layer by layer.`,
    },
    note(
      `The twin has ${counted(twin.parameters, 'parameter')}: ${changes.join(', ')}.${lost} Its times are ` +
        'not those of the model.',
    ),
  ];
}

function verdict({ checks }: QuickTestResult): Block {
  const judged = checks.filter(({ check, verdict }) => !isTime(check, verdict));
  if (judged.length === 0) return heading('timed; no check was asked for');
  const of = (wanted: CheckVerdict) => judged.filter((each) => each.verdict === wanted);
  const failed = of('failed');
  const skipped = of('skipped').length > 0 ? `, ${of('skipped').length} skipped` : '';
  return failed.length === 0
    ? {
        kind: 'heading',
        text: `ok: ${counted(of('passed').length, 'check')} passed${skipped}`,
        tone: 'good',
      }
    : {
        kind: 'heading',
        text: `not ok: ${failed.map(({ check }) => check).join(', ')} failed${skipped}`,
        tone: 'bad',
      };
}

function subjectText(result: QuickTestResult): string {
  const { file, family, parameters, batch, context, seed, ids, weights, checkpoint, mode } = result;
  const from = weights === 'checkpoint' ? `weights of ${checkpoint}` : `random weights`;
  const random = weights === 'random' || ids === 'random' ? `, seed ${seed}` : '';
  const how = mode === 'streamed' ? ', one layer in memory at a time' : '';
  return (
    `${file} (${family}, ${counted(parameters, 'parameter')}), ${from}, ${formatInteger(batch)} × ` +
    `${formatInteger(context)} ${ids} tokens${random}${how}.`
  );
}

const VERDICTS = {
  passed: { text: 'ok', tone: 'good' },
  failed: { text: 'FAILED', tone: 'bad' },
  skipped: { text: 'skipped', tone: 'dim' },
} as const satisfies Record<CheckVerdict, { text: string; tone: Tone }>;

/** A time is neither right nor wrong. */
const isTime = (check: CheckName, verdict: CheckVerdict) =>
  check === 'timing' && verdict === 'passed';

const verdictCell = (check: CheckName, verdict: CheckVerdict): Cell =>
  isTime(check, verdict) ? { text: '–', value: verdict } : { ...VERDICTS[verdict], value: verdict };

function checksTable({ checks }: QuickTestResult, flat: boolean): TableBlock {
  return {
    kind: 'table',
    columns: [
      left('check', 'check'),
      left('verdict', 'verdict'),
      left('what was found', 'finding', true),
      ...(flat
        ? [
            left('measured', 'measured'),
            right('value', 'value'),
            right('limit', 'limit'),
            right('seconds', 'seconds'),
          ]
        : []),
    ],
    rows: checks.flatMap(
      ({ check, verdict, finding, measure, remarks = [], seconds }): Cell[][] => [
        [
          { text: check, tone: 'strong' },
          verdictCell(check, verdict),
          { text: finding },
          ...(flat
            ? [
                { text: measure?.what ?? '' },
                { text: '', value: measure?.value ?? '' },
                { text: '', value: measure?.limit ?? '' },
                { text: '', value: seconds },
              ]
            : []),
        ],
        ...(flat
          ? []
          : remarks.map((text): Cell[] => [{ text: '' }, { text: '' }, { text, tone: 'dim' }])),
      ],
    ),
  };
}

/** Columns of the bar of the total. */
const BAR_WIDTH = 16;

/** A card computes asynchronously, so the end of a timed run needs an explanation. */
const COPIED = ' A run ends when the logits, but no outputs of blocks, are copied to memory.';

function timingBlocks(timing: Timing, { batch, context, engine }: QuickTestResult): Block[] {
  const { parts, meanSeconds, deviationSeconds, minSeconds, medianSeconds, repeats } = timing;
  const inAll = sumOf(parts, (each) => inModel(each));
  return [
    heading(`Forward pass: ${secondsText(meanSeconds)} ± ${deviationText(deviationSeconds)}`),
    note(
      `${formatInteger(batch)} × ${formatInteger(context)} tokens, ` +
        `${formatInteger(Math.round(timing.tokensPerSecond))} tokens/s; ${counted(repeats, 'run')} after one ` +
        `that does not count, median ${secondsText(medianSeconds)}, fastest ${secondsText(minSeconds)}. ` +
        `Making the model ready took ${secondsText(timing.loadSeconds)}.` +
        (engine.deviceKind === 'cpu' ? '' : COPIED),
    ),
    {
      kind: 'table',
      columns: [
        left('part', 'part'),
        right('one takes', 'seconds'),
        right('times', 'times'),
        right('in all', 'seconds_in_all'),
        right('share', 'share'),
        left('', 'bar'),
      ],
      rows: parts.map((part) => partCells(part, inAll)),
    },
    note(
      `Each part is run by itself, and the first block stands for all: together ${secondsText(inAll)}, of which ` +
        `the shares are, where the whole takes ${secondsText(meanSeconds)}.`,
    ),
  ];
}

const inModel = ({ seconds, times }: PartTiming) => seconds * times;

function partCells(part: PartTiming, inAll: number): Cell[] {
  const { layer, times, seconds } = part;
  const share = inModel(part) / inAll;
  return [
    { text: times > 1 ? layer.replace(/\.\d+\./, '.*.') : layer, value: layer },
    { text: secondsText(seconds), value: seconds },
    { text: formatInteger(times), value: times },
    { text: secondsText(inModel(part)), value: inModel(part) },
    { text: `${(share * 100).toFixed(1)}%`, value: share },
    { text: bar(share, BAR_WIDTH), value: '' },
  ];
}

const deviationText = (seconds: number | null) => (seconds === null ? '–' : secondsText(seconds));

/** `0.06 ms`, `12.3 ms`, `1.25 s`. */
function secondsText(seconds: number): string {
  if (seconds >= 0.9995) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const milliseconds = seconds * 1000;
  return `${milliseconds < 1 ? milliseconds.toFixed(2) : milliseconds.toPrecision(3)} ms`;
}

function float16Blocks(cost: Float16Cost): Block[] {
  const { f16, f32 } = cost;
  const speed = (f32.meanSeconds / f16.meanSeconds).toPrecision(2);
  const row = (what: string, key: keyof Spent, text: (value: number) => string): Cell[] => [
    { text: what },
    ...[f16, f32].map((spent) => ({ text: text(spent[key]), value: spent[key] })),
  ];
  return [
    heading(`float16 is ${speed} times as fast as float32`),
    {
      kind: 'table',
      columns: [left('', 'what'), right('float16', 'float16'), right('float32', 'float32')],
      rows: [
        row('weights', 'weightBytes', formatBytes),
        row('forward pass', 'meanSeconds', secondsText),
      ],
    },
    logitsTable(cost),
  ];
}

function memoryBlocks({ memory }: QuickTestResult): Block[] {
  const { predictedBytes, peakBytes, startBytes, need } = memory;
  const grown = formatBytes(Math.max(0, peakBytes - startBytes));
  const predicted =
    predictedBytes === null
      ? `; all of it at once would take ${formatBytes(need.totalBytes)}`
      : `; predicted were ${formatBytes(predictedBytes)}`;
  return [
    note(
      `Memory at its peak: ${formatBytes(peakBytes)}, of which ${grown} for the forward pass${predicted}.`,
    ),
  ];
}

// Report of `minimind quick-test --trace`: one line for each step of a forward pass.

interface TraceResult {
  readonly file: string;
  readonly batch: number;
  readonly context: number;
  readonly trace: readonly TraceStep[];
}

/** @param flat Whether to output for programs, with the depth of a step as a number. */
export function traceReport(
  { file, batch, context, trace }: TraceResult,
  { flat }: { readonly flat: boolean },
): Report {
  const total = sumOf(trace, ({ parameters }) => parameters);
  return {
    blocks: [
      heading(`From ids to logits: ${file}`),
      note(
        `${formatInteger(batch)} × ${formatInteger(context)} tokens; ${formatInteger(total)} parameters, ` +
          'each told where it is first used.',
      ),
      {
        kind: 'table',
        columns: [
          left('step', 'step'),
          left('operation', 'operation', true),
          left('shape', 'shape'),
          right('parameters', 'parameters'),
          ...(flat ? [right('depth', 'depth')] : []),
        ],
        rows: trace.map(({ name, depth, operation, shape, parameters }) => [
          { text: `${'  '.repeat(depth)}${lastParts(name, depth)}`, value: name },
          { text: operation },
          { text: `[${shape.join(', ')}]` },
          parameters === 0 ? { text: '', value: 0 } : integerCell(parameters),
          ...(flat ? [{ text: String(depth), value: depth }] : []),
        ]),
      },
    ],
  };
}

/** A name without the prefix of its parent block. */
const lastParts = (name: string, depth: number): string =>
  depth === 0 ? name : name.split('.').slice(2).join('.') || name;
