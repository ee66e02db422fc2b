/** Report of `minimind data`: figures and faults of training data, or its first samples. */

import { type NextLine, nextCommand, setting } from '../../base/text/setting.js';
import {
  formatBytes,
  formatInteger,
  formatShare,
  percentText,
  shortCount,
  significant,
} from '../../base/text/units.js';
import { counted, joined, shortened } from '../../base/text/words.js';
import { present, sumOf } from '../../base/values.js';
import type { LengthBin } from '../../language/data/data-statistics.js';
import type { DataResult, FaultName } from '../../language/data/judge-data.js';
import type { DataFile, DataReading } from '../../language/data/read-data.js';
import type { BarsPicture } from '../kit/pictures.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  bar,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  NOTHING,
  noteOf,
  percentCell,
  realCell,
  right,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { positionsTable, shownSampleBlocks } from './shown-samples.js';

/** @param words The words of this command line without --show. */
export function dataReport(result: DataResult, words: readonly string[]): Report {
  if (result.shown.length > 0) {
    return {
      verdict: shownVerdict(result),
      blocks: [{ kind: 'facts', facts: sampleFacts(result) }, ...shownSampleBlocks(result)],
      data: positionsTable(result),
    };
  }
  const facts = [...readFacts(result), ...tokenFacts(result), ...faultFacts(result)];
  const bins = Math.min(MOST_BINS, SCREEN_ROOM - facts.length);
  return {
    verdict: dataVerdict(result),
    blocks: [{ kind: 'facts', facts }, ...(bins < 2 ? [] : lengthBlocks(result, bins))],
    details: detailBlocks(result),
    pictures: () => lengthBars(result),
    next: nextOf(result, words),
    data: figuresTable(result),
  };
}

const fileNames = ({ files }: DataResult) =>
  files.length === 1 ? fileName(files[0]?.file ?? '') : counted(files.length, 'file');

/** `chat.jsonl`: the last part of a path. */
const fileName = (file: string) => file.split(/[\\/]/).at(-1) || file;

const shownVerdict = (result: DataResult): Verdict => ({
  text: `${fileNames(result)}: ${result.isWhole ? 'all' : 'first'} ${counted(result.figures.samples, 'sample')}`,
});

function dataVerdict(result: DataResult): Verdict {
  const { figures, faults } = result;
  const { tokens } = figures;
  const parts = [
    counted(figures.samples, 'sample'),
    tokens === null
      ? counted(figures.characters, 'character')
      : `${shortCount(tokens.tokens)} tokens, ${shortCount(tokens.counted)} counted`,
    faults.length === 0 ? 'no faults' : counted(faults.length, 'fault'),
  ];
  return {
    text: `${fileNames(result)}: ${parts.join(', ')}`,
    tone: faults.length === 0 ? 'strong' : 'bad',
  };
}

const KIND_WORDS = {
  text: 'texts as JSON lines',
  chat: 'chats as JSON lines',
  preference: 'pairs of answers as JSON lines',
  plain: 'plain text, a sample per line',
  ids: 'token ids, a sample per line',
  uint16: 'token ids of 16 bits',
  uint32: 'token ids of 32 bits',
} as const satisfies Record<DataReading['kind'], string>;

function readFacts(result: DataResult): Fact[] {
  const { files, kind, figures, isWhole } = result;
  const bytes = sumOf(files, (file) => file.bytes);
  const how = files.every(({ isDetected }) => isDetected) ? ' (by content)' : '';
  const packed = packedText(files);
  const blank = figures.blankLines === 0 ? '' : `, ${formatInteger(figures.blankLines)} blank`;
  return [
    {
      name: 'data',
      text: `${packed === null ? KIND_WORDS[kind] : KIND_WORDS[kind].replace(/ as JSON lines$/, '')}${packed ?? ''}${how}: ${packed === null ? '' : 'unpacked '}${formatBytes(bytes)}, ${counted(figures.lines, 'line')}${blank}${isWhole ? '' : ' (a part)'}`,
    },
    ...sampleFacts(result),
  ];
}

const PACKING_WORDS = {
  gzip: 'gzip',
  zstd: 'Zstandard',
  parquet: 'Parquet',
} as const satisfies Record<NonNullable<DataFile['packing']>, string>;

/** ` in Parquet of 11.7 kB`: how files are packed, and their own size; null for plain ones. */
function packedText(files: readonly DataFile[]): string | null {
  const packings = new Set(files.map(({ packing }) => packing));
  const names = present([...packings]).map((packing) => PACKING_WORDS[packing]);
  if (names.length === 0) return null;
  const sizes = present(files.map((each) => each.fileBytes));
  const size =
    sizes.length < files.length ? '' : ` of ${formatBytes(sumOf(sizes, (each) => each))}`;
  return ` in ${joined([...names, ...(packings.has(null) ? ['plain files'] : [])])}${size}`;
}

/** Name of the folder of a tokenizer.json; only its end if it is long. */
function folderName(file: string): string {
  const name = file.replace(/[\\/]tokenizer\.json$/, '');
  return name.length <= LONGEST_NAME ? name : `…${name.slice(1 - LONGEST_NAME)}`;
}

const LONGEST_NAME = 30;

/** Kinds whose samples are made by a recipe. */
const HAS_RECIPE: ReadonlySet<DataReading['kind']> = new Set([
  'text',
  'plain',
  'chat',
  'preference',
]);

function sampleFacts({
  kind,
  recipe,
  context,
  isDefaultContext,
  tokenizer,
  special,
}: DataResult): Fact[] {
  const id = (name: string, value: number | null) =>
    value === null ? `no ${name}` : `${name} ${value}`;
  return [
    {
      name: 'samples',
      text: `${formatInteger(context)} tokens${isDefaultContext ? ' (default)' : ''}, ${HAS_RECIPE.has(kind) ? `recipe ${recipe.name}` : 'ids as they are'}`,
    },
    {
      name: 'tokenizer',
      text:
        tokenizer === null
          ? `none; name one with ${setting('tokenizer')} to count tokens`
          : `${folderName(tokenizer.file)}: ${shortCount(tokenizer.vocabulary)} tokens, ${id('BOS', special.bos)}, ${id('EOS', special.eos)}, ${id('padding', special.pad)}`,
    },
  ];
}

function tokenFacts(result: DataResult): Fact[] {
  const { figures, packing, epochs } = result;
  const { tokens, duplicates } = figures;
  const near = duplicates && duplicates.near.count + duplicates.exact.count > 0;
  const facts: Fact[] = [];
  if (tokens && tokens.positions > 0) {
    const own = sumOf(figures.scripts, (script) => script.tokens ?? 0);
    const perToken =
      own === 0 ? '' : `; ${significant(figures.characters / own)} characters per token`;
    const cut =
      tokens.cut === 0
        ? 'nothing cut off'
        : `cut off ${percentText(tokens.cutShare)} of the tokens, in ${counted(tokens.cutSequences.count, 'sample')}`;
    facts.push({
      name: 'tokens',
      text: `${formatInteger(tokens.tokens)}, ${formatInteger(tokens.counted)} counted (${formatShare(tokens.counted, tokens.tokens)})${perToken}`,
    });
    facts.push({
      name: 'padding',
      text: `${percentText(tokens.paddingShare)} of the positions; ${cut}`,
    });
  }
  if (packing && tokens) {
    facts.push({
      name: 'packing',
      text:
        packing.saved > 0
          ? `${counted(packing.sequences, 'sequence')} instead of ${formatInteger(figures.sequences)}, nothing cut off; saves ${percentText(packing.saved)}`
          : `${counted(packing.sequences, 'sequence')} instead of ${formatInteger(figures.sequences)}, nothing cut off`,
    });
  }
  if (duplicates && near) {
    facts.push({
      name: 'duplicates',
      text: `${formatInteger(duplicates.exact.count)} exact, ${formatInteger(duplicates.near.count)} near${duplicates.notKept === 0 ? '' : ' (of the first 500,000 samples)'}`,
    });
  }
  if (epochs) {
    facts.push({
      name: 'budget',
      text: `${shortCount(epochs.budget)} tokens: ${significant(epochs.epochs)} epochs${epochs.epochs > MOST_EPOCHS ? `; above ${MOST_EPOCHS}, repeated tokens teach less` : ''}`,
    });
  }
  return facts;
}

/** Epochs up to which repeated tokens are nearly as good as new ones: Muennighoff et al. 2023, arXiv 2305.16264. */
const MOST_EPOCHS = 4;

/** Maximum faults of the answer; the rest is in the details. */
const MOST_FAULTS = 4;

function faultFacts({ faults, figures }: DataResult): Fact[] {
  const rest = faults.length - MOST_FAULTS;
  const isCut = rest > 1;
  const shown = isCut ? faults.slice(0, MOST_FAULTS) : faults;
  return [
    ...shown.map(({ name, message, places }): Fact => {
      const [first] = places;
      return {
        name: 'fault',
        text:
          name === 'invalid-lines' && first
            ? `${counted(figures.invalid.count, 'invalid line')}; ${shortened(first, 90)}`
            : message,
        tone: 'bad',
      };
    }),
    ...(isCut ? [{ name: '', text: `… ${formatInteger(rest)} more: ${setting('details')}` }] : []),
    ...warningsOf(figures).map((text): Fact => ({ name: 'note', text, tone: 'warning' })),
  ].slice(0, MOST_FAULTS + 1);
}

/** Findings that are often intended. */
function warningsOf({ tokens, replacement }: DataResult['figures']): string[] {
  return present([
    tokens &&
      tokens.specialInText.count > 0 &&
      `${counted(tokens.specialInText.tokens, 'special token')} written in the text of ${counted(tokens.specialInText.count, 'sample')}`,
    replacement.count > 0 &&
      `${counted(replacement.characters, 'replacement character')} U+FFFD in ${counted(replacement.count, 'sample')}: decoded wrongly before`,
  ]);
}

/** Faults with a reason that `--show` shows. */
const SHOWN_FAULTS: ReadonlySet<FaultName> = new Set([
  'all-masked',
  'counted-padding',
  'empty-samples',
  'white-space-samples',
  'blank-answers',
]);

function nextOf(
  { faults, figures, files, tokenizer }: DataResult,
  words: readonly string[],
): NextLine | undefined {
  if (tokenizer === null || figures.samples === 0 || files.some(({ file }) => file === '<stdin>'))
    return undefined;
  const [first] = faults.flatMap(({ name, places }) => (SHOWN_FAULTS.has(name) ? places : []));
  const line = files.length === 1 ? /^line ([\d,]+)$/.exec(first ?? '')?.[1] : undefined;
  return nextCommand('data', words, { line: line?.replaceAll(',', ''), show: 1 });
}

/** Rows of the histogram in the answer, and lines of a screen for the histogram and the facts. */
const MOST_BINS = 5;
const SCREEN_ROOM = 14;
const BAR_WIDTH = 32;

/** Bins of the picture. */
const PICTURE_BINS = 20;

function lengthBars({ figures }: DataResult): BarsPicture[] {
  const lengths = figures.tokens?.lengths;
  if (!lengths) return [];
  return [
    {
      kind: 'bars',
      title: 'Sequences by their number of tokens',
      unit: 'count',
      bars: mergedBins(lengths.bins, PICTURE_BINS).map(({ from, to, sequences }) => ({
        label: from === to ? String(to) : `${formatInteger(from)}–${formatInteger(to)}`,
        value: sequences,
      })),
      levels: [],
    },
  ];
}

function lengthBlocks({ figures, context }: DataResult, most: number): Block[] {
  const lengths = figures.tokens?.lengths;
  if (!lengths) return [];
  const bins = mergedBins(lengths.bins, most);
  const highest = Math.max(...bins.map(({ sequences }) => sequences));
  return [
    tableOf(bins, [
      right('tokens', 'length', ({ from, to }) => ({
        text: from === to ? String(to) : `${formatInteger(from)}–${formatInteger(to)}`,
        value: to,
      })),
      right('sequences', 'sequences', ({ sequences }) => integerCell(sequences)),
      right('share', 'share', ({ sequences }) => percentCell(sequences / figures.sequences)),
      leftColumn(
        `mean ${significant(lengths.mean)}, median ${formatInteger(lengths.median)}, 95% ${formatInteger(lengths.p95)}, longest ${shortCount(lengths.longest)}`,
        'bar',
        ({ from, sequences }) => ({
          text: bar(sequences / highest, BAR_WIDTH) + (from > context ? ' cut' : ''),
          value: '',
          tone: from > context ? 'warning' : 'hue1',
          share: sequences / highest,
        }),
      ),
    ]),
  ];
}

/** At most `most` bins; the first ones are merged. */
function mergedBins(bins: readonly LengthBin[], most: number): LengthBin[] {
  const extra = Math.max(0, bins.length - most);
  if (extra === 0) return [...bins];
  const joined = bins.slice(0, extra + 1);
  return [
    {
      from: joined[0]?.from ?? 0,
      to: joined.at(-1)?.to ?? 0,
      sequences: sumOf(joined, ({ sequences }) => sequences),
    },
    ...bins.slice(extra + 1),
  ];
}

function detailBlocks(result: DataResult): Block[] {
  const { figures, faults } = result;
  return [
    ...listBlocks('Faults', faults, [
      wrapColumn('fault', 'fault', ({ message }) => message),
      wrapColumn('first places', 'places', ({ places }) => places.slice(0, 5).join('; ')),
    ]),
    headingBlock('Scripts'),
    scriptTable(result),
    noteOf(
      'A text belongs to the script of most of its letters; chats are counted with the marks of their template.',
    ),
    noteOf(
      `Recipe ${result.recipe.name}: ${result.recipe.source}. More than ${MOST_EPOCHS} epochs: Muennighoff et al. 2023, arXiv 2305.16264.`,
    ),
    ...(figures.tokens?.lengths
      ? [headingBlock('Lengths before the cut'), ...lengthBlocks(result, Number.POSITIVE_INFINITY)]
      : []),
    ...nearBlocks(result),
    ...(result.files.length > 1 ? [headingBlock('Files'), filesTable(result)] : []),
    headingBlock('All figures'),
    figuresTable(result),
  ];
}

function scriptTable({ figures }: DataResult): TableBlock {
  const ratio = (part: number, whole: number | null): Cell =>
    realCell(whole === null || whole === 0 ? null : part / whole);
  return tableOf(figures.scripts, [
    leftColumn('script', 'script', ({ script }) => script),
    right('samples', 'samples', ({ samples }) => integerCell(samples)),
    right('characters', 'characters', ({ characters }) => integerCell(characters)),
    right('tokens', 'tokens', ({ tokens }) => integerCell(tokens)),
    right('tokens/character', 'tokens_per_character', ({ characters, tokens }) =>
      tokens === null ? realCell(null) : ratio(tokens, characters),
    ),
    right('bytes/token', 'bytes_per_token', ({ bytes, tokens }) => ratio(bytes, tokens)),
  ]);
}

function nearBlocks({ figures: { duplicates } }: DataResult): Block[] {
  if (!duplicates || duplicates.near.count === 0) return [];
  return [
    headingBlock('Near duplicates'),
    tableOf(duplicates.near.first, [
      leftColumn('file', 'file', ({ place }) => place.file),
      right('line', 'line', ({ place }) => integerCell(place.line)),
      right('similar to line', 'first_line', ({ first }) => integerCell(first.line)),
      leftColumn('of file', 'first_file', ({ place, first }) => ({
        text: first.file === place.file ? '' : first.file,
        value: first.file,
      })),
      right('similarity', 'similarity', ({ similarity }) => percentCell(similarity)),
    ]),
    noteOf(
      'Similarity: shared runs of 5 characters, estimated by MinHash with 60 hash values (±5%).',
    ),
  ];
}

const filesTable = ({ files }: DataResult): TableBlock =>
  tableOf(files, [
    wrapColumn('file', 'file', ({ file }) => file),
    right('samples', 'samples', ({ samples }) => integerCell(samples)),
    right('bytes', 'bytes', ({ bytes }) => integerCell(bytes)),
    leftColumn('stored as', 'stored', ({ packing, hasByteOrderMark, crlfLines }) =>
      [
        ...(packing === null ? [] : [packing === 'parquet' ? 'Parquet' : packing]),
        ...(hasByteOrderMark ? ['byte order mark'] : []),
        ...(crlfLines > 0 ? [`${formatInteger(crlfLines)} CRLF`] : []),
      ].join(', '),
    ),
  ]);

/** One figure per row. */
function figuresTable({ figures, packing, epochs, faults, special }: DataResult): TableBlock {
  const { tokens, duplicates, invalid } = figures;
  const row = (name: string, value: number | bigint | null): Cell[] => [
    { text: name },
    value === null ? NOTHING : numberCell(value),
  ];
  return {
    kind: 'table',
    columns: [leftColumn('figure', 'figure'), right('value', 'value')],
    rows: [
      row('lines', figures.lines),
      row('blank lines', figures.blankLines),
      row('invalid lines', invalid.count),
      row('samples', figures.samples),
      row('sequences', figures.sequences),
      row('characters', figures.characters),
      row('bytes of text', figures.bytes),
      ...(tokens
        ? [
            row('tokens', tokens.tokens),
            row('tokens before the cut', tokens.uncut),
            row('counted targets', tokens.counted),
            row('positions', tokens.positions),
            row('padding', tokens.padding),
            row('tokens cut off', tokens.cut),
            row('samples cut', tokens.cutSequences.count),
            row('samples without a counted target', tokens.allMasked.count),
            row('samples with counted padding', tokens.countedPadding.count),
            row('highest id', tokens.highestId),
            row('tokens beyond the vocabulary', tokens.beyondVocabulary.tokens),
            row('special tokens in texts', tokens.specialInText.tokens),
            row('id of padding', special.pad),
          ]
        : []),
      row('samples without text', figures.empty.count),
      row('samples of white space', figures.whiteSpace.count),
      row('samples with blank answers', figures.blankAnswers.count),
      row('control characters', figures.control.characters),
      row('replacement characters', figures.replacement.characters),
      row('half surrogate pairs', figures.surrogates.characters),
      row('exact duplicates', duplicates?.exact.count ?? null),
      row('near duplicates', duplicates?.near.count ?? null),
      row('sequences when packed', packing?.sequences ?? null),
      ...(epochs ? [row('token budget', epochs.budget), row('epochs', epochs.epochs)] : []),
      row('kinds of faults', faults.length),
    ],
  };
}

const numberCell = (value: number | bigint): Cell =>
  typeof value === 'number' && !Number.isInteger(value)
    ? valueCell(value, significant)
    : integerCell(value);
