/** Report of `minimind quick-test`: a verdict, one line per check, and the time. */

import { nextCommand, setting } from '../../base/text/setting.js';
import {
  formatBytes,
  formatInteger,
  formatSequences,
  shortCount,
  weightFormText,
} from '../../base/text/units.js';
import { counted, modelName } from '../../base/text/words.js';
import { sumOf } from '../../base/values.js';
import type { CheckName } from '../../check/checks.js';
import type {
  CheckVerdict,
  Float16Cost,
  ForwardCost,
  PartTiming,
  QuantizedCost,
  Timing,
} from '../../check/finding.js';
import type { QuickTestResult, TraceResult } from '../../check/quick-test-result.js';
import type { QuantizedWeights } from '../../check/run-quick-test.js';
import type { TraceStep } from '../../model/budget/trace/step-builder.js';
import { engineText, fasterFacts, isFastEngine, skippedEngineText } from '../doctor-report.js';
import type { Block, Cell, Fact, Report, TableBlock, Tone, Verdict } from '../kit/report.js';
import {
  barCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  percentCell,
  right,
  shapeText,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { logitsTable } from './against.js';

/** @param flat Whether to output plain numbers, for programs. */
export function quickTestReport(
  result: QuickTestResult,
  { flat }: { readonly flat: boolean },
): Report {
  const { checks, quantized } = result;
  const timing = checks.find(({ details }) => details?.timing)?.details?.timing;
  const float16 = checks.find(({ details }) => details?.float16)?.details?.float16;
  const loss = checks.find(({ details }) => details?.quantized)?.details?.quantized;
  const table = checksTable(checks, flat);
  const times = timing ? timingBlocks(timing, result) : [];
  // The times are the answer if nothing else was checked.
  const isTimed = table.rows.length === 0;
  return {
    verdict: quickTestVerdict(result, timing),
    blocks: [
      { kind: 'facts', facts: quickTestFacts(result, timing) },
      ...(isTimed ? times : [table]),
    ],
    details: [
      ...proxyBlocks(proxyOf(result), 'Times of the proxy say nothing about the model.'),
      ...remarkBlocks(checks),
      ...(isTimed ? [] : times),
      ...(float16 ? costBlocks('float16', float16.f16, float16) : []),
      ...(loss && quantized ? costBlocks(`int${quantized.bits}`, loss.quantized, loss) : []),
    ],
  };
}

const WHY_PROXY = {
  memory: ({ memory }) =>
    `the model needs ${formatBytes(memory.need.totalBytes)} in float32, ${formatBytes(memory.usableBytes)} are available`,
  tensors: () => 'the model has too many tensors to run as a whole',
} as const satisfies Record<
  NonNullable<QuickTestResult['twin']>['reason'],
  (result: Pick<QuickTestResult, 'memory'>) => string
>;

const proxyOf = ({ mode, twin }: QuickTestResult) => (mode === 'twin' ? twin : null);

function proxyFacts(result: QuickTestResult): Fact[] {
  const proxy = proxyOf(result);
  if (!proxy) return [];
  const { checkpoint, weights } = result;
  const lost = checkpoint && weights === 'random' ? ', with random weights' : '';
  return [
    {
      name: 'proxy',
      tone: 'warning',
      text:
        `${counted(proxy.parameters, 'parameter')}${lost}: ${WHY_PROXY[proxy.reason](result)}; ` +
        `${setting('full')} runs it layer by layer`,
    },
  ];
}

/** Changes from the model to its proxy, if there is one. */
export function proxyBlocks(
  proxy: { readonly changes: NonNullable<QuickTestResult['twin']>['changes'] } | null,
  note: string,
): Block[] {
  if (!proxy) return [];
  return [
    headingBlock('Scaled-down proxy'),
    tableOf(proxy.changes, [
      leftColumn('setting', 'setting', ({ path }) => path),
      right('model', 'model', ({ from }) => integerCell(from)),
      right('proxy', 'proxy', ({ to }) => integerCell(to)),
    ]),
    noteOf(note),
  ];
}

/** Checks first, then the speed. */
function quickTestVerdict(result: QuickTestResult, timing: Timing | undefined): Verdict {
  const { file, checks } = result;
  const judged = checks.filter(({ check, verdict }) => !isTime(check, verdict));
  const of = (wanted: CheckVerdict) => judged.filter(({ verdict }) => verdict === wanted);
  const [passed, failed, skipped] = [of('passed'), of('failed'), of('skipped')];
  const parts = [
    ...(failed.length > 0 ? [`FAILED ${failed.map(({ check }) => check).join(', ')}`] : []),
    ...(passed.length > 0 ? [`${counted(passed.length, 'check')} passed`] : []),
    ...(skipped.length > 0 ? [`${skipped.length} skipped`] : []),
    ...(timing ? [`${formatInteger(Math.round(timing.tokensPerSecond))} tokens/s`] : []),
  ];
  const where = proxyOf(result) ? ' (scaled-down proxy)' : '';
  return {
    text: `${modelName(file)}${where}: ${parts.join(', ')}`,
    tone: failed.length > 0 ? 'bad' : 'good',
  };
}

function quickTestFacts(result: QuickTestResult, timing: Timing | undefined): Fact[] {
  const { family, parameters, batch, context, seed, ids, weights, checkpoint, mode } = result;
  const { engine, selfCheck, memory, passedOver, quantized } = result;
  const seeded = `seed ${seed}`;
  return [
    {
      name: 'model',
      text: [
        family,
        counted(parameters, 'parameter'),
        weights === 'checkpoint' ? `weights of ${checkpoint}` : `random weights (${seeded})`,
        ...(mode === 'streamed' ? ['one layer in memory at a time'] : []),
      ].join(', '),
    },
    ...(quantized ? [{ name: 'weights', text: quantizedText(quantized) }] : []),
    ...proxyFacts(result),
    {
      name: 'input',
      text:
        `${formatInteger(batch)} × ${formatInteger(context)} ${ids} tokens` +
        (ids === 'random' ? ` (${seeded})` : ''),
    },
    { name: 'engine', text: engineText(engine, selfCheck) },
    // Skipped graphics cards are reported on stderr, or as an error.
    ...fasterFacts(passedOver),
    ...passedOver
      .filter((each) => each.device === 'cpu' && !isFastEngine(each))
      .map((each): Fact => ({ name: 'skipped', text: skippedEngineText(each) })),
    ...(timing
      ? [{ name: 'time', text: `${meanText(timing)} per forward pass (${runsText(timing)})` }]
      : []),
    { name: 'memory', text: memoryText(memory) },
    ...causeFacts(result),
  ];
}

/** Facts about the origin of the first value that is not finite. */
const causeFacts = ({ checks }: QuickTestResult): Fact[] =>
  checks
    .filter(({ details }) => details?.origin)
    .flatMap(({ remarks = [] }) => ({ name: 'cause', text: remarks.join('. '), tone: 'bad' }));

const quantizedText = ({ elements, otherElements, ...form }: QuantizedWeights) =>
  `${weightFormText(form)}, for ${shortCount(elements)} values of products, head and embedding; ` +
  `${shortCount(otherElements)} others are float32 (norms, convolutions, routers, tables, biases)`;

const meanText = ({ meanSeconds, deviationSeconds }: Timing) =>
  `${secondsText(meanSeconds)}${deviationSeconds === null ? '' : ` ± ${secondsText(deviationSeconds)}`}`;

const runsText = ({ repeats, loadSeconds }: Timing) =>
  `${counted(repeats, 'run')}, ${secondsText(loadSeconds)} to load`;

function memoryText({ predictedBytes, peakBytes, startBytes, need }: QuickTestResult['memory']) {
  const used = formatBytes(Math.max(0, peakBytes - startBytes));
  const expected =
    predictedBytes === null
      ? `${formatBytes(need.totalBytes)} predicted for the whole model at once`
      : `${formatBytes(predictedBytes)} predicted`;
  return `peak ${formatBytes(peakBytes)}, forward pass ${used} (${expected})`;
}

const VERDICTS = {
  passed: { text: 'ok', tone: 'good' },
  failed: { text: 'FAILED', tone: 'bad' },
  skipped: { text: 'skipped', tone: 'dim' },
} as const satisfies Record<CheckVerdict, { text: string; tone: Tone }>;

/** Whether a check is a timing: its result is neither right nor wrong. */
const isTime = (check: CheckName, verdict: CheckVerdict) =>
  check === 'timing' && verdict === 'passed';

const checkVerdictCell = (check: CheckName, verdict: CheckVerdict): Cell =>
  isTime(check, verdict) ? { text: '–', value: verdict } : { ...VERDICTS[verdict], value: verdict };

function checksTable(checks: QuickTestResult['checks'], flat: boolean): TableBlock {
  return tableOf(
    checks.filter(({ check, details }) => flat || check !== 'timing' || !details?.timing),
    [
      leftColumn('check', 'check', ({ check }) => ({ text: check, tone: 'strong' })),
      leftColumn('result', 'verdict', ({ check, verdict }) => checkVerdictCell(check, verdict)),
      wrapColumn('finding', 'finding', ({ finding }) => finding),
      flat && leftColumn('measured', 'measured', ({ measure }) => measure?.what ?? ''),
      flat && right('value', 'value', ({ measure }) => ({ text: '', value: measure?.value ?? '' })),
      flat && right('limit', 'limit', ({ measure }) => ({ text: '', value: measure?.limit ?? '' })),
      flat && right('seconds', 'seconds', ({ seconds }) => ({ text: '', value: seconds })),
    ],
  );
}

/** Remarks of the checks on how a figure was measured. */
function remarkBlocks(checks: QuickTestResult['checks']): Block[] {
  // Remarks about an origin are in the answer.
  const facts = checks.flatMap(({ check, details, remarks = [] }) =>
    (details?.origin ? [] : remarks).map((text): Fact => ({ name: check, text })),
  );
  return facts.length === 0 ? [] : [headingBlock('Measurements'), { kind: 'facts', facts }];
}

/** Columns of the bar of the total. */
const BAR_WIDTH = 16;

/** A card computes asynchronously, so the end of a timed run needs an explanation. */
const COPIED =
  ' A run ends when the logits are copied to memory; outputs of blocks are not copied.';

function timingBlocks(timing: Timing, { batch, context, engine }: QuickTestResult): Block[] {
  const { parts, minSeconds, medianSeconds } = timing;
  const sum = sumOf(parts, inModel);
  return [
    headingBlock(`Forward pass: ${meanText(timing)}`),
    noteOf(
      `${formatSequences(batch, context)}; ${runsText(timing)}; ` +
        `median ${secondsText(medianSeconds)}, fastest ${secondsText(minSeconds)}.` +
        (engine.deviceKind === 'cpu' ? '' : COPIED),
    ),
    tableOf(parts, [
      leftColumn('part', 'part', ({ layer, times }) => ({
        text: times > 1 ? layer.replace(/\.\d+\./, '.*.') : layer,
        value: layer,
      })),
      right('each', 'seconds', ({ seconds }) => secondsCell(seconds)),
      right('count', 'times', ({ times }) => integerCell(times)),
      right('total', 'seconds_in_all', (part) => secondsCell(inModel(part))),
      right('share', 'share', (part) => percentCell(inModel(part) / sum)),
      leftColumn('', 'bar', (part) => barCell(inModel(part) / sum, BAR_WIDTH)),
    ]),
    noteOf(
      `Each part runs alone, and the first block is measured for all: ${secondsText(sum)} together. ` +
        'Shares are of this sum.',
    ),
  ];
}

const inModel = ({ seconds, times }: PartTiming) => seconds * times;

const secondsCell = (seconds: number): Cell => valueCell(seconds, secondsText);

/** `0.06 ms`, `12.3 ms`, `1.25 s`. */
function secondsText(seconds: number): string {
  if (seconds >= 0.9995) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const milliseconds = seconds * 1000;
  return `${milliseconds < 1 ? milliseconds.toFixed(2) : milliseconds.toPrecision(3)} ms`;
}

/** Speed, memory and error of another number type against float32. */
function costBlocks(
  title: string,
  own: ForwardCost,
  { f32, logits }: Pick<Float16Cost | QuantizedCost, 'f32' | 'logits'>,
): Block[] {
  const speed = (f32.meanSeconds / own.meanSeconds).toPrecision(2);
  const row = (what: string, key: keyof ForwardCost, text: (value: number) => string): Cell[] => [
    { text: what },
    ...[own, f32].map((spent) => valueCell(spent[key], text)),
  ];
  return [
    headingBlock(`${title} is ${speed} times as fast as float32`),
    {
      kind: 'table',
      columns: [leftColumn('', 'what'), right(title, title), right('float32', 'float32')],
      rows: [
        row('weights', 'weightBytes', formatBytes),
        row('forward pass', 'meanSeconds', secondsText),
      ],
    },
    logitsTable({ logits }),
  ];
}

// Report of `minimind quick-test --trace`: one line for each step of a forward pass.

/**
 * @param asked.flat Whether to output for programs, with the depth of a step as a number.
 * @param asked.modelWords Flags of the model, for the next command.
 */
export function traceReport(
  { file, batch, context, trace, loss }: TraceResult,
  { flat, modelWords }: { readonly flat: boolean; readonly modelWords: readonly string[] },
): Report {
  const total = sumOf(trace, ({ parameters }) => parameters);
  const table = (steps: readonly TraceStep[]) =>
    tableOf(steps, [
      leftColumn('step', 'step', ({ name, depth }) => ({
        text: `${'  '.repeat(depth)}${lastParts(name, depth)}`,
        value: name,
      })),
      wrapColumn('operation', 'operation', ({ operation }) => operation),
      leftColumn('shape', 'shape', ({ shape }) => shapeText(shape)),
      right('parameters', 'parameters', ({ parameters }) =>
        parameters === 0 ? { text: '', value: 0 } : integerCell(parameters),
      ),
      flat && right('depth', 'depth', ({ depth }) => valueCell(depth)),
    ]);
  return {
    verdict: {
      text:
        `${modelName(file)}: ${counted(trace.length, 'step')} from ids to logits for ${formatInteger(batch)} × ` +
        `${formatInteger(context)} tokens, ${shortCount(total)} parameters`,
    },
    blocks: [
      table(trace),
      headingBlock('Loss of a training'),
      tableOf(loss, [
        leftColumn('step', 'step', ({ name }) => name),
        wrapColumn('operation', 'operation', ({ operation }) => operation),
        leftColumn('shape', 'shape', ({ shape }) => shapeText(shape)),
      ]),
    ],
    next: nextCommand('draw', [file, ...modelWords]),
    data: table([...trace, ...loss]),
  };
}

/** A name without the prefix of its parent block. */
const lastParts = (name: string, depth: number): string =>
  depth === 0 ? name : name.split('.').slice(2).join('.') || name;
