/** Report of `minimind convert-checkpoint`. */

import { formatJson } from '../../base/text/json.js';
import { commandText, type NextLine, nextCommand } from '../../base/text/setting.js';
import {
  formatBytes,
  formatChange,
  formatDuration,
  formatInteger,
  formatShare,
  percentText,
  shortCount,
  weightFormText,
} from '../../base/text/units.js';
import { counted, namesText, shortened } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import { FORMAT_TITLES } from '../../checkpoint/formats.js';
import type { Tie } from '../../convert/conversion/conversion-choices.js';
import type {
  ConversionResult,
  ConvertedSrte,
  ConvertedWeights,
} from '../../convert/conversion/conversion-result.js';
import type { Proof, TensorError } from '../../convert/conversion/execute/check-output.js';
import type { TwoModelComparison } from '../../engine/compare/compare-outputs.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  bytesCell,
  cosineCell,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  MAX_ROWS,
  noteOf,
  paragraph,
  percentCell,
  realCell,
  right,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { configText } from '../profile/setting-notes.js';
import { againstBlocks, measurementText } from '../quick-test/against.js';
import { conversionPictures } from './convert-pictures.js';
import {
  errorsBlocks,
  errorsTable,
  LARGE_ERROR,
  layerErrors,
  moreRows,
  planBlocks,
  relativeErrorText,
  srteText,
  stepsTable,
  worstErrorsBlocks,
} from './convert-plan.js';

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 6;
/** Minimum rows of the plan's table: each note after the first takes the place of two. */
const LEAST_ROWS = 2;
const planRows = (notes: number) => Math.max(LEAST_ROWS, ANSWER_ROWS - 2 * Math.max(0, notes - 1));

/** @param again Command line that carries out a plan, if this is one. */
export function convertReport(
  result: ConversionResult,
  { again }: { readonly again?: NextLine | undefined } = {},
): Report {
  const { dryRun, srte, groups, tensors } = result;
  return {
    verdict: conversionVerdict(result),
    blocks: [
      { kind: 'facts', facts: conversionFacts(result) },
      ...(dryRun ? [] : largeErrorBlocks(result)),
      ...result.notes.map((text): Block => paragraph(`${text}.`)),
      ...(dryRun
        ? planBlocks(groups, planRows(result.notes.length))
        : [...worstErrorsBlocks(srte, ANSWER_ROWS), ...weightErrors(result, ANSWER_ROWS)]),
    ],
    details: [
      headingBlock('Sizes'),
      totalsTable(result),
      noteOf(sourceText(result)),
      ...(dryRun ? [] : errorsBlocks(srte)),
      ...tieBlocks(result),
      ...ggufBlocks(result),
      ...weightErrors(result, MAX_ROWS),
      ...proofBlocks(result.proof),
      ...planBlocks(groups, MAX_ROWS),
      ...filesBlocks(result),
      ...changesBlocks(result),
      ...leftOutBlocks(result),
      ...costBlocks(result),
    ],
    pictures: () => conversionPictures(result),
    next: nextStep(result, again),
    data: dryRun ? stepsTable(tensors) : errorsOf(result),
  };
}

function conversionVerdict(result: ConversionResult): Verdict {
  const { dryRun, input, output, proof } = result;
  // Compares only weights, because the file of a training contains much more.
  const sizes = `${formatBytes(input.tensorBytes)} → ${formatBytes(output.tensorBytes)}`;
  if (dryRun) return { text: `Plan for ${output.path}: ${sizes}, nothing was written` };
  const changes = changeTexts(result);
  const isBad = exceedsBound(result) || proof?.verdict === 'failed';
  return {
    text: [`Converted to ${output.path}: ${sizes}`, ...changes].join(', '),
    tone: isBad ? 'bad' : largestChange(result) > LARGE_ERROR ? 'warning' : 'good',
  };
}

/** Largest relative error of the tensors that the conversion changed. */
const largestChange = ({ srte, tie, quantization, gguf }: ConversionResult): number =>
  Math.max(
    gguf?.relativeError ?? 0,
    worstOf(srte ? layerErrors(srte) : [])?.relativeError ?? 0,
    worstOf(tie?.errors ?? [])?.relativeError ?? 0,
    worstOf(quantization?.errors ?? [])?.relativeError ?? 0,
  );

/** Warning about an error that changes the model, with the command that compares the choices. */
function largeErrorBlocks(result: ConversionResult): Block[] {
  const error = largestChange(result);
  if (error <= LARGE_ERROR) return [];
  const { srte, input } = result;
  const advice =
    srte?.source.sharing === 'per-layer'
      ? `compare layouts: ${commandText('inspect', [input.path], { srte: true })}`
      : 'choose a change with a smaller error.';
  return [
    paragraph(
      `Warning: an error of ${relativeErrorText(error)} changes the model; ${advice}`,
      'warning',
    ),
  ];
}

/** Errors of the tensors in blocks, by layer. */
function ggufBlocks({ gguf }: ConversionResult): Block[] {
  return listBlocks('Error per layer', gguf?.errors ?? [], [
    wrapColumn('part', 'part', ({ part }) => part),
    right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
    right('relative error', 'relative_error', ({ relativeError }) =>
      valueCell(relativeError, relativeErrorText),
    ),
    right('largest error', 'largest_error', ({ largestError }) => realCell(largestError)),
  ]);
}

/** The changes of values, the worst first: of the logits if both models were run, otherwise of the tensors. */
function changeTexts(result: ConversionResult): string[] {
  const { proof, srte, tie, groups, quantization } = result;
  if (proof?.against) return [proofText(proof.verdict, proof.against)];
  const worstTie = worstOf(tie?.errors ?? []);
  const worstTable = worstOf(srte ? layerErrors(srte) : []);
  const { relativeError: blocks = null } = result.gguf ?? {};
  const worstWeight = worstOf(quantization?.errors ?? []);
  const changes = present([
    worstWeight && {
      error: worstWeight.relativeError,
      text: `largest quantization ${worstText(worstWeight)}`,
    },
    worstTie && { error: worstTie.relativeError, text: `${worstText(worstTie)} (tied)` },
    srte &&
      worstTable && { error: worstTable.relativeError, text: srteErrorText(srte, worstTable) },
    blocks !== null && {
      error: blocks,
      text: `weights in blocks, error ${relativeErrorText(blocks)}`,
    },
  ]).filter(({ error }) => error > 0);
  if (changes.length > 0) {
    return changes.toSorted((a, b) => b.error - a.error).map(({ text }) => text);
  }
  if (result.adapter !== null) return ['adapter merged'];
  if (groups.every(({ action }) => action === 'copied')) return ['all values unchanged'];
  const types = [...new Set(groups.filter(isCast).map(({ dtype }) => dtype))];
  const isOnlyCast = groups.every((group) => group.action === 'copied' || isCast(group));
  return isOnlyCast ? [`weights cast to ${types.join(', ')}`] : [];
}

const isCast = ({ action }: { readonly action: string }) => action === 'cast';

const worstText = ({ name, relativeError }: Worst): string =>
  `error ${relativeErrorText(relativeError)} in ${shortened(name)}`;

/** Text of the error. A bound applies to the error of all layers, so this error is printed next to it. */
function srteErrorText(
  srte: ConvertedSrte,
  { layer, relativeError }: Worst & { readonly layer: number },
): string {
  const errors = layerErrors(srte);
  const isSame = errors.every((each) => each.relativeError === relativeError);
  const overall = `SRTE error ${relativeErrorText(srte.relativeError)}`;
  const bound = srte.maxError === null ? '' : ` (limit ${percentText(srte.maxError)})`;
  const largest = `${relativeErrorText(relativeError)} (layer ${layer})`;
  if (isSame) return overall + bound;
  return bound === '' ? `largest SRTE error ${largest}` : `${overall}${bound}, largest ${largest}`;
}

interface Worst {
  readonly name: string;
  readonly relativeError: number;
}

/** The largest relative error; undefined when none is known. */
function worstOf<Error extends Pick<TensorError, 'relativeError'>>(
  errors: readonly Error[],
): (Error & { readonly relativeError: number }) | undefined {
  return errors
    .flatMap((error) => {
      const { relativeError } = error;
      return relativeError === null ? [] : [{ ...error, relativeError }];
    })
    .reduce<(Error & { readonly relativeError: number }) | undefined>(
      (worst, each) => (worst && worst.relativeError >= each.relativeError ? worst : each),
      undefined,
    );
}

export function proofText(verdict: Proof['verdict'], { logits }: TwoModelComparison): string {
  if (verdict === 'same') return 'logits equal within rounding';
  const { relativeDifference, klDivergence, topAgreement } = logits;
  const found = Number.isFinite(relativeDifference)
    ? `logits differ by ${percentText(relativeDifference)} (KL divergence ${measurementText(klDivergence)} nats, same top token ${percentText(topAgreement)})`
    : 'logits are not finite and cannot be compared';
  return verdict === 'failed' ? `FAILED: no value should change, but ${found}` : found;
}

function conversionFacts(result: ConversionResult): Fact[] {
  const { input, output, srte, tie, quantization, proof, memory, run, leftOut } = result;
  const files = outputFileNames(output, false);
  const lost = leftOut.filter(({ why }) => !why.startsWith('replaced by '));
  return present([
    { name: 'parameters', text: parametersText(input.parameters, output.parameters) },
    result.adapter !== null && { name: 'adapter', text: result.adapter },
    srte && { name: 'SRTE', text: srteText(srte) },
    tie && { name: 'tied', text: tieText(tie) },
    quantization && { name: 'quantized', text: quantizationText(quantization) },
    proof && proofFact(proof),
    // For an output of one file, the headline names it.
    files.length > 1 && { name: 'files', text: namesText(files) },
    ...otherData(result),
    outputFileNames(output, true).length > 0 && {
      name: 'copied',
      text: outputFileNames(output, true).join(', '),
    },
    result.configChanges.length > 0 && { name: 'config', text: changesText(result) },
    lost.length > 0 && {
      name: 'left out',
      text: andMore(lost.map(({ pattern }) => shortened(pattern))),
    },
    ...(run
      ? runFacts(run)
      : [{ name: 'memory', text: `about ${formatBytes(memory.predictedPeakBytes)}` }]),
  ]);
}

const outputFileNames = ({ files }: ConversionResult['output'], isCopied: boolean): string[] =>
  files.filter(({ copied }) => copied === isCopied).map(({ name }) => name);

/** Share of the weights from which the other data of the input has its own line. */
const MUCH = 0.1;

/** Bytes of the files that are not weights, such as the optimizer of a training and headers. */
function otherData({ input, output }: ConversionResult): Fact[] {
  const [before, after] = [input, output].map(({ bytes, tensorBytes }) => bytes - tensorBytes);
  if (before === undefined || after === undefined || before <= MUCH * input.tensorBytes) return [];
  return [
    {
      name: 'other data',
      text: `${formatBytes(before)} → ${formatBytes(Math.max(0, after))}, not weights`,
    },
  ];
}

/** `22.1B → 18.0B (−18.8%)`, `22.1B, unchanged`. */
function parametersText(before: number, after: number): string {
  if (before === after) return `${shortCount(before)}, unchanged`;
  const change = formatChange(after, before);
  return `${shortCount(before)} → ${shortCount(after)}${change === '' ? '' : ` (${change})`}`;
}

function tieText({ values, errors }: NonNullable<ConversionResult['tie']>): string {
  const each = errors.map(
    ({ name, relativeError }) => `${relativeErrorText(relativeError)} in ${shortened(name)}`,
  );
  const cost = each.length > 0 ? `, error ${each.join(', ')}` : '';
  return `embedding and head, values of ${TIE_VALUES[values]}${cost}`;
}

function proofFact({ verdict, against, why }: Proof): Fact {
  if (against === null) {
    return { name: 'proof', text: `none: ${why ?? 'the models did not run'}`, tone: 'warning' };
  }
  const { batch, context, seed, logits, partsAt } = against;
  const where = partsAt === null ? '' : `, differs from ${partsAt} on`;
  return {
    name: 'proof',
    text:
      `${formatInteger(batch)} × ${formatInteger(context)} random tokens (seed ${seed}), ` +
      `largest difference of a logit ${measurementText(logits.largestDifference)}${where}`,
    ...(verdict === 'failed' && { tone: 'bad' as const }),
  };
}

/** Values and entries that an answer lists before it only counts them. */
const SHOWN = 2;

const andMore = (texts: readonly string[]): string =>
  texts.length > SHOWN + 1
    ? [...texts.slice(0, SHOWN), `${texts.length - SHOWN} more`].join(', ')
    : texts.join(', ');

const changesText = ({ configChanges }: ConversionResult): string =>
  andMore(
    configChanges.map(
      ({ path, from, to }) => `${path} ${settingCell(from).text} → ${settingCell(to).text}`,
    ),
  );

function runFacts({ resumed, checked }: NonNullable<ConversionResult['run']>): Fact[] {
  const texts = [
    ...(resumed ? ['resumed an earlier run'] : []),
    ...(checked ? ['output read back and compared'] : []),
  ];
  return texts.length > 0 ? [{ name: 'run', text: texts.join(', ') }] : [];
}

function nextStep({ dryRun, input, output }: ConversionResult, again: NextLine | undefined) {
  if (dryRun) return again;
  const hasConfig = input.config !== null || output.files.some(({ name }) => isConfigName(name));
  return nextCommand(hasConfig ? 'quickTest' : 'inspect', [output.path]);
}

const isConfigName = (name: string) => /(?:^|\.)config\.(?:ya?ml|json)$/.test(name);

/** Whether the stored tables exceed the allowed error. */
export const exceedsBound = ({ srte }: Pick<ConversionResult, 'srte'>): boolean =>
  srte?.maxError != null && srte.relativeError !== null && srte.relativeError > srte.maxError;

/** `14 weights, int4, groups of 32, error 8.12%; compressed-tensors pack-quantized`. */
function quantizationText({ weights, relativeError, layout, ...form }: ConvertedWeights): string {
  const error = relativeError === null ? '' : `, error ${relativeErrorText(relativeError)}`;
  return `${counted(weights.length, 'weight')}, ${weightFormText(form)}${error}; ${layout}`;
}

/** The quantized weights with the largest errors. @param most Maximum rows. */
function weightErrors({ quantization }: ConversionResult, most: number): Block[] {
  const errors = (quantization?.errors ?? []).toSorted(
    (a, b) => (b.relativeError ?? 0) - (a.relativeError ?? 0),
  );
  if (errors.length === 0) return [];
  return [
    headingBlock('Quantization error by weight, largest first'),
    weightErrorTable(errors.slice(0, most)),
    ...moreRows(errors.length - most, most),
    noteOf('Largest: the largest error of a value. Bound: half the largest scale, and rounding.'),
  ];
}

const weightErrorTable = (errors: ConvertedWeights['errors']): TableBlock =>
  tableOf(errors, [
    wrapColumn('weight', 'weight', ({ name }) => valueCell(name, shortened)),
    right('error', 'relative_error', ({ relativeError }) => percentCell(relativeError)),
    right('largest', 'largest_error', ({ largestError }) => realCell(largestError)),
    right('bound', 'bound', ({ bound }) => realCell(bound)),
    right('cosine', 'cosine', ({ cosine }) => cosineCell(cosine)),
  ]);

/** Errors for programs: those of the SRTE, or of the quantized weights. */
const errorsOf = ({ srte, quantization }: ConversionResult): TableBlock =>
  quantization && srte === null ? weightErrorTable(quantization.errors) : errorsTable(srte);

/** Error of tying the embedding and the head. */
function tieBlocks({ tie }: ConversionResult): Block[] {
  if (tie === null) return [];
  return listBlocks(`Error of the tied tensor (values of ${TIE_VALUES[tie.values]})`, tie.errors, [
    wrapColumn('tensor', 'tensor', ({ name }) => shortened(name)),
    right('error', 'relative_error', ({ relativeError }) => percentCell(relativeError)),
    right('largest', 'largest_error', ({ largestError }) => realCell(largestError)),
    right('cosine', 'cosine', ({ cosine }) => cosineCell(cosine)),
  ]);
}

const TIE_VALUES = {
  embed: 'the embedding',
  head: 'the head',
  mean: 'their mean',
} as const satisfies Record<Tie, string>;

function sourceText({ input: { path, format, config } }: ConversionResult): string {
  const by = config === null ? 'converted by tensor names, without a config' : configText(config);
  return `Input: ${path} (${FORMAT_TITLES[format]}); ${by}.`;
}

function totalsTable({ input, output, srte }: ConversionResult): TableBlock {
  const row = (label: Cell, before: number, after: number, cell: (value: number) => Cell) => [
    label,
    cell(before),
    cell(after),
    ...savedCells(before, after, cell),
  ];
  return {
    kind: 'table',
    columns: [
      leftColumn('', 'what'),
      right('before', 'before'),
      right('after', 'after'),
      right('saved', 'saved'),
      right('share', 'share'),
    ],
    rows: present([
      row(strongCell('parameters'), input.parameters, output.parameters, integerCell),
      srte && row({ text: '  SRTE' }, srte.source.parameters, srte.target.parameters, integerCell),
      row(strongCell('number of tensors'), input.tensors, output.tensors, integerCell),
      row(strongCell('tensors'), input.tensorBytes, output.tensorBytes, bytesCell),
      row(strongCell('files'), input.bytes, output.bytes, bytesCell),
    ]),
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
  return listBlocks(dryRun ? 'Planned files' : 'Files', files, [
    wrapColumn('file', 'file', ({ name }) => shortened(name)),
    right('bytes', 'bytes', ({ bytes }) => bytesCell(bytes)),
    isResumed && leftColumn('origin', 'resumed', ({ resumed }) => (resumed ? 'earlier run' : '')),
  ]);
}

const changesBlocks = ({ configChanges }: ConversionResult): Block[] =>
  listBlocks('Config changes', configChanges, [
    wrapColumn('key', 'key', ({ path }) => path),
    wrapColumn('from', 'from', ({ from }) => settingCell(from)),
    wrapColumn('to', 'to', ({ to }) => settingCell(to)),
  ]);

const settingCell = (value: unknown): Cell => ({
  text: value === null ? '–' : shortened(formatJson(value)),
});

const leftOutBlocks = ({ leftOut }: ConversionResult): Block[] =>
  listBlocks('Left out', leftOut, [
    wrapColumn('entry', 'what', ({ pattern }) => shortened(pattern)),
    right('count', 'count', ({ names }) => integerCell(names.length)),
    wrapColumn('reason', 'why', ({ why }) => why),
  ]);

function costBlocks({ memory, run, srte }: ConversionResult): Block[] {
  const { limitBytes, predictedPeakBytes, peakBytes } = memory;
  const limit = `limit ${formatBytes(limitBytes)}`;
  const predicted = formatBytes(predictedPeakBytes);
  if (run === null || peakBytes === null) {
    return [noteOf(`Peak memory: about ${predicted} (${limit}).`)];
  }
  const { readBytes, writtenBytes, bytesPerSecond, seconds, products } = run;
  const isFactorised = [srte?.source, srte?.target].some((each) => each?.form === 'low-rank');
  return [
    noteOf(
      `Read ${formatBytes(readBytes)}, wrote ${formatBytes(writtenBytes)} in ${secondsText(seconds)} ` +
        `(${formatBytes(bytesPerSecond)}/s).${isFactorised ? ` Matrix products: ${products}.` : ''}`,
    ),
    paragraph(
      `Peak memory: ${formatBytes(peakBytes)} (estimate ${predicted}, ${limit}).`,
      peakBytes > limitBytes ? 'warning' : 'dim',
    ),
  ];
}

/** `0.15 s`, `12 s`, `2 min 5 s`. */
const secondsText = (seconds: number) =>
  seconds < 10 ? `${seconds.toFixed(2)} s` : formatDuration(seconds);

/** Effect of the conversion on the logits. */
const proofBlocks = (proof: Proof | null): Block[] =>
  proof?.against ? [headingBlock('Proof'), ...againstBlocks(proof.against)] : [];
