/** Reads training data and measures it: files in, figures and samples out, in one pass and bounded memory. */
import fs from 'node:fs';
import path from 'node:path';
import { ahead } from '../../base/ahead.js';
import { UserError, usageError } from '../../base/errors.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import { type SettingName, setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { BatchEncoder } from '../tokenizer/encoder.js';
import { type ModelText, openModelText } from '../tokenizer/model-text.js';
import { blankOf } from './blank-text.js';
import { type CharacterCounts, countCharacters } from './characters.js';
import { type DataFigures, DataFold, type TokenSequence } from './data-statistics.js';
import { DuplicateFinder } from './duplicates.js';
import { nameOfSource, type Packing } from './files/packing.js';
import { type DataSource, fileBytes, openSource, peeked } from './files/source.js';
import { firstLines, type Line, type Place, readLines } from './lines.js';
import {
  type GivenMarks,
  RECIPES,
  type RecipeName,
  requireChat,
  type Sample,
  SampleMaker,
  type ShownSample,
  type SpecialIds,
  shownSample,
  streamWindows,
} from './recipes.js';
import { chatsOf, RecordReader, type RecordTexts } from './record-texts.js';
import {
  type DataMessage,
  type DataRecord,
  detectBinaryKind,
  detectKind,
  isInvalid,
  isStream,
  type LineKind,
  RECORD_KINDS,
  type RecordKind,
} from './records.js';

export interface DataInput {
  /** Paths, `-` for standard input. */
  readonly files: readonly string[];
  /** Kind of the files; by default found from their content. */
  readonly as?: RecordKind | undefined;
  /** Key of the text. */
  readonly key?: string | undefined;
  readonly recipe: RecipeName;
  /** Tokens of a sample. */
  readonly context?: number | undefined;
  /** A tokenizer.json or its folder; by default that in the folder of the first file. */
  readonly tokenizer?: string | undefined;
  /** Tokens of the model's vocabulary; by default that of the tokenizer. */
  readonly vocabulary?: number | undefined;
  readonly answers?: GivenMarks | undefined;
  /** Samples to show; reading ends after them. */
  readonly show?: number | undefined;
  /** First line to read. */
  readonly from?: number | undefined;
  /** Threads that tokenize; by default one for each processor, once there is much text. */
  readonly threads?: number | undefined;
  /** Smallest similarity of near duplicates; undefined searches no duplicates. */
  readonly similarity?: number | undefined;
  /** Given settings that concern tokens. */
  readonly tokenSettings?: readonly SettingName[];
}

/** A file as it was read. */
export interface DataFile {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Kind of its records. */
  readonly kind: RecordKind;
  /** Whether the kind was found from the content. */
  readonly isDetected: boolean;
  /** Samples that are used. @integer */
  readonly samples: number;
  /** Unpacked bytes that were read. @integer */
  readonly bytes: number;
  /** Bytes of the file itself; null for a pipe. @integer */
  readonly fileBytes: number | null;
  /** Whether it is compressed with gzip. */
  readonly isGzip: boolean;
  /** How its records are packed; null for plain bytes. */
  readonly packing: Packing | null;
  /** Whether it begins with a byte order mark. */
  readonly hasByteOrderMark: boolean;
  /** Lines that end with CR and LF. @integer */
  readonly crlfLines: number;
}

export interface DataReading {
  /** The files as they were read. */
  readonly files: readonly DataFile[];
  /** Kind of the records. */
  readonly kind: RecordKind;
  /** Recipe that makes samples of records; null without a tokenizer. */
  readonly recipe: {
    /** Name of the recipe. */
    readonly name: RecipeName;
    /** Source of the recipe. */
    readonly source: string;
  };
  /** Tokens of a sample. @integer */
  readonly context: number;
  /** Whether no flag and no file states the tokens of a sample. */
  readonly isDefaultContext: boolean;
  /** The tokenizer; null without one. */
  readonly tokenizer: {
    /** Path of the tokenizer. */
    readonly file: string;
    /** Size of its vocabulary. @integer */
    readonly vocabulary: number;
  } | null;
  /** Size of the model's vocabulary; null without a tokenizer. @integer */
  readonly vocabulary: number | null;
  /** Ids of special tokens; null without a tokenizer. */
  readonly special: { readonly [Name in keyof SpecialIds]: number | null };
  /** Whether all lines were read. */
  readonly isWhole: boolean;
  /** Figures of the data. */
  readonly figures: DataFigures;
  /** Samples of `--show`, as the model gets them. */
  readonly shown: readonly ShownSample[];
  /** Duration of the reading. */
  readonly seconds: number;
}

/** Lengths of MiniMind's dataset classes, and the block size of nanoGPT. */
const DEFAULT_LENGTH = {
  text: 512,
  plain: 512,
  chat: 1024,
  preference: 4096,
  ids: 1024,
  uint16: 1024,
  uint32: 1024,
} as const satisfies Record<RecordKind, number>;

/**
 * Reads all files and measures their samples.
 * @throws UserError when a file cannot be read or is not training data, or something for its samples is missing.
 */
export async function readData(input: DataInput, display: ProgressDisplay): Promise<DataReading> {
  const started = performance.now();
  refuseRepeatedStdin(input.files);
  const text = await openDataText(input);
  const totals = input.files.map(fileBytes);
  const total = totals.reduce<number | null>(
    (sum, size) => (sum === null || size === null ? null : sum + size),
    0,
  );
  const progress = byteProgress(display, total);
  const run = new Run(input, text);
  try {
    for (const file of input.files) {
      if (run.isDone) break;
      await run.read(file, progress.add);
    }
  } finally {
    progress.end();
    run.close();
  }
  return run.result((performance.now() - started) / 1000);
}

/** Tokens of training data, for a plan of its training. */
export interface TokenCount {
  readonly samples: number;
  /** Tokens of the samples, without padding. */
  readonly tokens: number;
  /** Tokens before samples were cut. */
  readonly uncut: number;
  /** Targets that count in the loss. */
  readonly counted: number;
  /** Positions of the samples, with padding. */
  readonly positions: number;
  readonly context: number;
  readonly longest: number;
  readonly invalidLines: number;
  readonly highestId: number | null;
  /** Tokens of the tokenizer; null for token ids without one. */
  readonly vocabulary: number | null;
}

/**
 * Counts the tokens of files as samples.
 * @throws UserError as `readData`, and without a tokenizer for files that need one.
 */
export async function countTokens(
  input: Omit<DataInput, 'show' | 'from' | 'similarity'>,
  display: ProgressDisplay,
): Promise<TokenCount> {
  const { figures, context, tokenizer } = await readData(input, display);
  const { tokens, samples, invalid } = figures;
  if (tokens === null) {
    throw usageError(
      'expected a tokenizer to count tokens, found none',
      `name a tokenizer.json: ${setting('tokenizer', 'FILE')}`,
    );
  }
  return {
    samples,
    tokens: tokens.tokens,
    uncut: tokens.uncut,
    counted: tokens.counted,
    positions: tokens.positions,
    context,
    longest: tokens.lengths?.longest ?? 0,
    invalidLines: invalid.count,
    highestId: tokens.highestId,
    vocabulary: tokenizer?.vocabulary ?? null,
  };
}

function refuseRepeatedStdin(files: readonly string[]): void {
  if (files.filter((file) => file === '-').length < 2) return;
  throw usageError(
    'expected - once, found it several times',
    'standard input can be read only once',
  );
}

/** Progress over bytes where the total is known, else the bytes so far. */
function byteProgress(display: ProgressDisplay, total: number | null) {
  if (total !== null) return display.bytes('reading', total);
  const steps = display.steps();
  let done = 0;
  return {
    add(more: number) {
      done += more;
      steps.doing(`read ${formatInteger(Math.floor(done / 1e6))} MB`);
    },
    end: steps.end,
  };
}

const NO_TEXT: ModelText = {
  tokenizer: undefined,
  template: undefined,
  specialTokens: {},
  endIds: [],
  generation: undefined,
};

/** The named tokenizer, or the one next to the first file. */
async function openDataText({ tokenizer, files }: DataInput): Promise<ModelText> {
  if (tokenizer !== undefined) {
    return openModelText([], tokenizer);
  }
  const [first = '-'] = files;
  const folder = path.dirname(first);
  const isBeside = first !== '-' && fs.existsSync(path.join(folder, 'tokenizer.json'));
  return isBeside ? openModelText([folder]) : NO_TEXT;
}

interface EncodedRecords {
  readonly prepared: readonly RecordTexts[];
  /** Token ids of all texts; undefined without a tokenizer. */
  readonly encoded: Promise<readonly (readonly number[])[]> | undefined;
}

/** One pass over the files. */
class Run {
  readonly #input: DataInput;
  readonly #text: ModelText;
  readonly #records: RecordReader;
  readonly #encoder: BatchEncoder | undefined;
  readonly #files: DataFile[] = [];
  readonly #finder: DuplicateFinder<Place> | undefined;
  readonly #shown: ShownSample[] = [];
  #state:
    | { readonly kind: RecordKind; readonly maker: SampleMaker; readonly fold: DataFold }
    | undefined;
  #isWhole = true;

  constructor(input: DataInput, text: ModelText) {
    this.#input = input;
    this.#text = text;
    this.#records = new RecordReader(text, input.recipe, input.key);
    const { threads } = input;
    this.#encoder =
      text.tokenizer &&
      new BatchEncoder(text.tokenizer, threads === undefined ? {} : { threads, alone: 0 });
    if (input.similarity !== undefined) {
      const places = input.files.map(nameOfSource);
      this.#finder = new DuplicateFinder<Place>(
        input.similarity,
        ({ file, line }) => Math.max(0, places.indexOf(file)) * 2 ** 40 + line,
        (value) => ({
          file: places[Math.floor(value / 2 ** 40)] ?? '',
          line: value % 2 ** 40,
        }),
      );
    }
  }

  get isDone(): boolean {
    const { show } = this.#input;
    return show !== undefined && (this.#state?.fold.samples ?? 0) >= show;
  }

  close(): void {
    this.#records.close();
    this.#encoder?.close();
  }

  async read(file: string, onBytes: (more: number) => void): Promise<void> {
    const source = openSource(file, onBytes, this.#input.key);
    const before = this.#state?.fold.samples ?? 0;
    const kind = await this.#readSource(source).finally(() => source.chunks.return(undefined));
    this.#files.push({
      file: source.name,
      kind,
      isDetected: this.#input.as === undefined,
      samples: (this.#state?.fold.samples ?? 0) - before,
      fileBytes: fileBytes(file),
      isGzip: source.stored.packing === 'gzip',
      ...source.stored,
    });
  }

  async #readSource(source: DataSource): Promise<RecordKind> {
    const { as, key } = this.#input;
    const { head, chunks } = await peeked(source.chunks);
    if (head.length === 0) throw emptyFile(source.name);
    const early = as ?? detectBinaryKind(source.name, head);
    if (early !== undefined && early !== 'text' && key !== undefined) throw keyOfText();
    if (early !== undefined && isStream(early)) {
      await this.#readStream(source.name, early, chunks);
      return early;
    }
    const first = await firstLines(readLines({ ...source, chunks }));
    const kind = early ?? detectKind(source.name, first.lines, key);
    if (kind !== 'text' && key !== undefined) throw keyOfText();
    const { fold } = this.#begin(kind, source.name);
    const { from = 1 } = this.#input;
    for (let line = from; line <= first.blank; line++) fold.addLine(true);
    await this.#readBatches(source.name, kind, first.all);
    return kind;
  }

  #begin(kind: RecordKind, name: string): { maker: SampleMaker; fold: DataFold } {
    if (this.#state) {
      if (this.#state.kind !== kind) throw severalKinds(name, kind, this.#state.kind);
      return this.#state;
    }
    const { recipe, context, vocabulary, answers } = this.#input;
    const { tokenizer } = this.#text;
    const length = context ?? DEFAULT_LENGTH[kind];
    const isChat = kind === 'chat' || kind === 'preference';
    if (!isChat && (answers?.start ?? answers?.end) !== undefined) throw answersOfChats(kind);
    if (tokenizer && isChat) requireChat(this.#text, tokenizer.file, answers ?? {});
    const maker = new SampleMaker(recipe, length, tokenizer, this.#text, answers);
    if (length <= maker.added) throw tooShort(length, maker.added);
    const special = new Set(
      Object.values(this.#text.specialTokens).map((token) => tokenizer?.idOf(token)),
    );
    const hasTokens = tokenizer !== undefined || kind === 'ids' || isStream(kind);
    const [idle] = hasTokens ? [] : (this.#input.tokenSettings ?? []);
    if (idle !== undefined) throw withoutTokens(idle);
    const fold = new DataFold({
      length,
      hasTokens,
      vocabulary: vocabulary ?? tokenizer?.vocabulary,
      isPlainText: kind === 'text' || kind === 'plain',
      isSpecial: (id) => special.has(id),
      isStream: isStream(kind),
    });
    this.#state = { kind, maker, fold };
    return this.#state;
  }

  async #readStream(
    file: string,
    kind: 'uint16' | 'uint32',
    chunks: AsyncIterable<Buffer>,
  ): Promise<void> {
    const { maker, fold } = this.#begin(kind, file);
    for await (const { ids, line, fullLength } of streamWindows(
      file,
      chunks,
      kind,
      maker.length + 1,
    )) {
      if (line < (this.#input.from ?? 1)) continue;
      fold.addLine(false);
      const sample: Sample = {
        ids,
        fullLength,
        counted: ids.length > 1 ? [[1, ids.length]] : [],
        repeated: line === 1 ? 0 : 1,
      };
      const place = { file, line };
      this.#show(place, [{ sample, content: ids }], maker);
      fold.add({
        place,
        text: undefined,
        characters: undefined,
        sequences: [{ sample, content: ids }],
        blank: undefined,
        duplicate: undefined,
      });
      if (this.isDone) {
        this.#isWhole = false;
        return;
      }
    }
  }

  async #readBatches(
    file: string,
    kind: LineKind,
    batches: AsyncIterable<readonly Line[]>,
  ): Promise<void> {
    const from = this.#input.from ?? 1;
    const wanted = (async function* () {
      for await (const lines of batches) yield lines.filter(({ number }) => number >= from);
    })();
    const encodings = this.#encodings(this.#records.of(wanted, kind));
    for await (const { prepared, encoded } of ahead(
      encodings,
      () => this.#encoder?.batchesAhead ?? 1,
    )) {
      this.#addAll(file, prepared, await encoded);
      if (!this.isDone) continue;
      this.#isWhole = false;
      return;
    }
  }

  /** Records with the tokens of their texts: one by one while samples are shown, else a batch at once. */
  async *#encodings(
    batches: AsyncGenerator<readonly RecordTexts[]>,
  ): AsyncGenerator<EncodedRecords> {
    const isShown = this.#input.show !== undefined;
    for await (const batch of batches) {
      for (const prepared of isShown ? batch.map((each) => [each]) : [batch]) {
        const encoded = this.#encoder?.encode(prepared.flatMap(({ texts }) => texts));
        // Reported when it is awaited.
        encoded?.catch(() => {});
        yield { prepared, encoded };
      }
    }
  }

  #addAll(
    file: string,
    prepared: readonly RecordTexts[],
    encoded: readonly (readonly number[])[] = [],
  ): void {
    const { maker, fold } = this.#begin(this.#state?.kind ?? 'text', file);
    let next = 0;
    for (const { line, record, texts } of prepared) {
      fold.addLine(record === undefined);
      const place = { file, line: line.number };
      if (record === undefined) continue;
      if (isInvalid(record)) {
        fold.addInvalid({ ...place, ...record });
        continue;
      }
      const own = encoded.slice(next, next + texts.length);
      next += texts.length;
      const sequences = sequencesOf(record, own, maker);
      const text = record.kind === 'ids' ? undefined : texts.join('\n');
      // The marks of a template are not part of the content.
      const chats = chatsOf(record);
      const written =
        chats.length === 0
          ? ''
          : chats.flatMap(({ messages }) => messages.map(messageContent)).join('\n');
      const content = written === '' ? text : written;
      this.#show(place, sequences, maker);
      fold.add({
        place,
        text,
        characters: text === undefined ? undefined : countedText(text, content),
        sequences,
        blank: blankOf(record),
        duplicate: this.#duplicate(record, content, place),
      });
    }
  }

  #duplicate(record: DataRecord, text: string | undefined, place: Place) {
    const compared = record.kind === 'ids' ? record.ids.join(' ') : (text ?? '');
    return compared === '' ? undefined : this.#finder?.add(compared, place);
  }

  #show(place: Place, sequences: readonly TokenSequence[], maker: SampleMaker): void {
    const { show } = this.#input;
    if (show === undefined || this.#state === undefined || this.#state.fold.samples >= show) return;
    const sides = sequences.length === 2 ? (['chosen', 'rejected'] as const) : [null];
    for (const [index, { sample }] of sequences.entries()) {
      const side = sides[index] ?? null;
      this.#shown.push(shownSample(place, side, sample, maker, this.#text.tokenizer));
    }
  }

  result(seconds: number): DataReading {
    const { recipe, context, vocabulary } = this.#input;
    const { tokenizer } = this.#text;
    const { kind, maker, fold } = this.#state ?? {
      kind: 'plain' as const,
      ...this.#begin('plain', ''),
    };
    const { bos, eos, pad } = maker.special;
    return {
      files: this.#files,
      kind,
      recipe: { name: recipe, source: RECIPES[recipe].source },
      context: maker.length,
      isDefaultContext: context === undefined,
      tokenizer: tokenizer ? { file: tokenizer.file, vocabulary: tokenizer.vocabulary } : null,
      vocabulary: vocabulary ?? tokenizer?.vocabulary ?? null,
      special: { bos: bos ?? null, eos: eos ?? null, pad: pad ?? null },
      isWhole: this.#isWhole && (this.#input.from ?? 1) === 1,
      figures: fold.result(this.#finder?.unkept),
      shown: this.#shown,
      seconds,
    };
  }
}

const messageContent = ({ content }: DataMessage) => content;

/** Characters of a text, and the script of its content. */
function countedText(text: string, content = text): CharacterCounts {
  const counted = countCharacters(text);
  return content === text ? counted : { ...counted, script: countCharacters(content).script };
}

function sequencesOf(
  record: DataRecord,
  encoded: readonly (readonly number[])[],
  maker: SampleMaker,
): TokenSequence[] {
  if (record.kind === 'ids') return [{ content: record.ids, sample: maker.ids(record.ids) }];
  const isText = record.kind === 'text';
  return encoded.map((content) => ({
    content,
    sample: isText ? maker.text(content) : maker.chat(content),
  }));
}

const severalKinds = (file: string, kind: RecordKind, before: RecordKind) =>
  usageError(
    `expected files of one kind, found ${RECORD_KINDS[before]}; ${file} has ${RECORD_KINDS[kind]}`,
    `give files of one kind, or name their kind with ${setting('recordKind')}`,
  );

const answersOfChats = (kind: RecordKind) =>
  usageError(
    `${setting('answerStart')} and ${setting('answerEnd')} require chats, found ${RECORD_KINDS[kind]}`,
    'leave them out',
  );

const keyOfText = () =>
  usageError(
    `${setting('key')} requires JSON lines with a text`,
    `leave ${setting('key')} out, or write ${setting('recordKind', 'text')}`,
  );

const emptyFile = (file: string) =>
  new UserError('refused-file', `${file} is empty`, {
    suggestion: 'check that it was written, or leave it out',
  });

const tooShort = (length: number, added: number) =>
  usageError(
    `${setting('context')}: expected more than ${added} tokens, found ${length}`,
    'each sample also has the tokens of its beginning and end',
  );

const withoutTokens = (name: SettingName) =>
  usageError(
    `${setting(name)} requires a tokenizer, found none`,
    `name a tokenizer.json with ${setting('tokenizer', 'FILE')}, or leave ${setting(name)} out`,
  );
