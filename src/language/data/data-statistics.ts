/** Statistics of training data, folded over its samples in one pass. */
import { sumOf } from '../../base/values.js';
import type { Blank } from './blank-text.js';
import type { CharacterCounts, Script } from './characters.js';
import type { Duplicate } from './duplicates.js';
import type { Place } from './lines.js';
import type { Sample } from './recipes.js';
import type { LineFault } from './records.js';

/** A list with only its first items. */
export interface Listed<Item> {
  /** Number of all. @integer */
  readonly count: number;
  /** The first of them. */
  readonly first: readonly Item[];
}

/** Items of a list that are kept. */
const MOST_LISTED = 20;

class Listing<Item> {
  count = 0;
  readonly first: Item[] = [];

  add(item: Item): void {
    this.count++;
    if (this.first.length < MOST_LISTED) this.first.push(item);
  }

  get listed(): Listed<Item> {
    return { count: this.count, first: this.first };
  }
}

/** Tokens of the texts of a script. */
export interface ScriptFigures {
  readonly script: Script;
  /** Samples with text of this script. @integer */
  readonly samples: number;
  /** Characters. @integer */
  readonly characters: number;
  /** Bytes in UTF-8. @integer */
  readonly bytes: number;
  /** Tokens; null without a tokenizer. @integer */
  readonly tokens: number | null;
}

/** Sequences by length before the cut, from `from` to `to`. */
export interface LengthBin {
  /** Fewest tokens. @integer */
  readonly from: number;
  /** Most tokens. @integer */
  readonly to: number;
  /** Number of sequences. @integer */
  readonly sequences: number;
}

export interface InvalidPlace extends Place {
  /** Kind of the fault. */
  readonly fault: LineFault;
  /** Description for people. */
  readonly message: string;
}

/** Token figures of all sequences. */
export interface TokenFigures {
  /** Tokens of the samples: what is left after the cut, without padding. @integer */
  readonly tokens: number;
  /** Tokens before the cut. @integer */
  readonly uncut: number;
  /** Targets that count in the loss. @integer */
  readonly counted: number;
  /** Positions of the samples, with padding. @integer */
  readonly positions: number;
  /** Tokens of padding. @integer */
  readonly padding: number;
  /** Padding in all positions of the samples. */
  readonly paddingShare: number | null;
  /** Tokens that do not fit into the context. @integer */
  readonly cut: number;
  /** Share of the sequences that are cut; null without sequences. */
  readonly cutShare: number | null;
  /** Sequences that are cut. */
  readonly cutSequences: Listed<Place>;
  /** Samples without text, or without a token of their own: `empty` of the figures. */
  readonly empty: Listed<Place>;
  /** Samples without a target that counts. */
  readonly allMasked: Listed<Place>;
  /** Padding that counts as a target, of samples without the end of an answer. */
  readonly countedPadding: Listed<Place>;
  /** Highest token id; null without tokens. @integer */
  readonly highestId: number | null;
  /** Tokens with an id beyond the vocabulary, and the samples with them. */
  readonly beyondVocabulary: {
    /** Tokens of all samples. @integer */
    readonly tokens: number;
  } & Listed<Place>;
  /** Tokens of pre-training texts that are special tokens, and the texts with them. */
  readonly specialInText: {
    /** Tokens of all samples. @integer */
    readonly tokens: number;
  } & Listed<Place>;
  /** Tokens of a sequence. */
  readonly lengths: {
    /** Mean. */
    readonly mean: number;
    /** Median. @integer */
    readonly median: number;
    /** 95th percentile. @integer */
    readonly p95: number;
    /** Longest. @integer */
    readonly longest: number;
    /** Sequences by length. */
    readonly bins: readonly LengthBin[];
  } | null;
}

/** Lines that are not used, by their first fault; absent where there is none. */
export interface LineFaultCounts extends Readonly<Partial<Record<LineFault, number>>> {
  /** Lines longer than 8 MB. @integer */
  readonly 'too-long'?: number;
  /** Lines that are not UTF-8. @integer */
  readonly 'invalid-utf8'?: number;
  /** Lines that are not JSON. @integer */
  readonly 'invalid-json'?: number;
  /** Lines that are nested too deeply. @integer */
  readonly 'too-deep'?: number;
  /** Lines without the expected key. @integer */
  readonly 'missing-key'?: number;
  /** Lines with values of another type. @integer */
  readonly 'wrong-shape'?: number;
  /** Chats that the chat template refused. @integer */
  readonly 'not-rendered'?: number;
}

export interface DataFigures {
  /** Lines of the files. @integer */
  readonly lines: number;
  /** Lines of white space. @integer */
  readonly blankLines: number;
  /** Samples that are used. @integer */
  readonly samples: number;
  /** Sequences of the samples: two for a pair of answers. @integer */
  readonly sequences: number;
  /** Characters of the texts. @integer */
  readonly characters: number;
  /** Their bytes in UTF-8. @integer */
  readonly bytes: number;
  /** Lines that are not used. */
  readonly invalid: Listed<InvalidPlace> & {
    readonly faults: LineFaultCounts;
  };
  /** Figures of the tokens; null without a tokenizer. */
  readonly tokens: TokenFigures | null;
  /** Samples without text, or without a token of their own. */
  readonly empty: Listed<Place>;
  /** Samples with only white space or other invisible characters as text. */
  readonly whiteSpace: Listed<Place>;
  /** Chats with text whose answers are all empty or invisible. */
  readonly blankAnswers: Listed<Place>;
  /** Samples with control characters. */
  readonly control: {
    /** Number of characters. @integer */
    readonly characters: number;
  } & Listed<Place>;
  /** Samples with replacement characters. */
  readonly replacement: {
    /** Number of characters. @integer */
    readonly characters: number;
  } & Listed<Place>;
  /** Samples with half surrogate pairs. */
  readonly surrogates: {
    /** Number of characters. @integer */
    readonly characters: number;
  } & Listed<Place>;
  /** Repeated samples; null if they were not searched. */
  readonly duplicates: {
    /** Samples equal to an earlier one. */
    readonly exact: Listed<Duplicate<Place>>;
    /** Samples similar to an earlier one. */
    readonly near: Listed<Duplicate<Place>>;
    /** Later samples that were compared with the first ones only. @integer */
    readonly notKept: number;
  } | null;
  /** Text by script. */
  readonly scripts: readonly ScriptFigures[];
}

/** One sequence of a sample, as tokens. */
export interface TokenSequence {
  readonly sample: Sample;
  /** Tokens of the text itself. */
  readonly content: readonly number[];
}

/** One sample. */
export interface MeasuredSample {
  readonly place: Place;
  readonly text: string | undefined;
  readonly characters: CharacterCounts | undefined;
  readonly sequences: readonly TokenSequence[];
  readonly blank: Blank | undefined;
  readonly duplicate: Duplicate<Place> | undefined;
}

interface FoldOptions {
  /** Positions of a sequence. */
  readonly length: number;
  readonly hasTokens: boolean;
  /** Number of tokens in the vocabulary; undefined when unknown. */
  readonly vocabulary: number | undefined;
  /** Whether to report special tokens in a text; rendered chats contain them by design. */
  readonly isPlainText: boolean;
  readonly isSpecial: (id: number) => boolean;
  /** Whether sequences are windows of a stream, without padding. */
  readonly isStream: boolean;
}

interface ScriptSums {
  samples: number;
  characters: number;
  bytes: number;
  tokens: number;
}

export class DataFold {
  readonly #options: FoldOptions;
  readonly #scripts = new Map<Script, ScriptSums>();
  readonly #lengths = new Map<number, number>();
  readonly #faults: Partial<Record<LineFault, number>> = {};
  readonly #invalid = new Listing<InvalidPlace>();
  readonly #cut = new Listing<Place>();
  readonly #empty = new Listing<Place>();
  readonly #whiteSpace = new Listing<Place>();
  readonly #blankAnswers = new Listing<Place>();
  readonly #masked = new Listing<Place>();
  readonly #countedPadding = new Listing<Place>();
  readonly #beyond = new Listing<Place>();
  readonly #special = new Listing<Place>();
  readonly #control = new Listing<Place>();
  readonly #replacement = new Listing<Place>();
  readonly #surrogates = new Listing<Place>();
  readonly #exact = new Listing<Duplicate<Place>>();
  readonly #near = new Listing<Duplicate<Place>>();
  #lines = 0;
  #blank = 0;
  #samples = 0;
  #sequences = 0;
  #characters = 0;
  #bytes = 0;
  #tokens = 0;
  #positions = 0;
  #uncut = 0;
  #counted = 0;
  #highest = -1;
  #beyondTokens = 0;
  #specialTokens = 0;
  #controls = 0;
  #replacements = 0;
  #halves = 0;

  constructor(options: FoldOptions) {
    this.#options = options;
  }

  get samples(): number {
    return this.#samples;
  }

  addLine(isBlank: boolean): void {
    this.#lines++;
    if (isBlank) this.#blank++;
  }

  addInvalid(place: InvalidPlace): void {
    this.#invalid.add(place);
    this.#faults[place.fault] = (this.#faults[place.fault] ?? 0) + 1;
  }

  add({ place, text, characters, sequences, blank, duplicate }: MeasuredSample): void {
    this.#samples++;
    this.#addBlank(place, blank, sequences);
    if (text !== undefined && characters) this.#addText(place, text, characters, sequences);
    if (duplicate) (duplicate.similarity === 1 ? this.#exact : this.#near).add(duplicate);
    if (!this.#options.hasTokens) return;
    let counted = 0;
    let isCut = false;
    for (const { sample, content } of sequences) {
      counted += this.#addSequence(place, sample);
      isCut ||= sample.fullLength > sample.ids.length;
      this.#addIds(place, content);
    }
    if (isCut) this.#cut.add(place);
    if (counted === 0) this.#masked.add(place);
  }

  #addBlank(place: Place, blank: Blank | undefined, sequences: readonly TokenSequence[]): void {
    const hasNoTokens =
      this.#options.hasTokens && sequences.every(({ content }) => content.length === 0);
    if (blank === 'white-space') this.#whiteSpace.add(place);
    else if (blank === 'empty' || hasNoTokens) this.#empty.add(place);
    else if (blank === 'answers') this.#blankAnswers.add(place);
  }

  #addText(
    place: Place,
    text: string,
    found: CharacterCounts,
    sequences: readonly TokenSequence[],
  ): void {
    const bytes = Buffer.byteLength(text);
    this.#characters += found.characters;
    this.#bytes += bytes;
    if (found.control > 0) this.#control.add(place);
    if (found.replacement > 0) this.#replacement.add(place);
    if (found.surrogates > 0) this.#surrogates.add(place);
    this.#controls += found.control;
    this.#replacements += found.replacement;
    this.#halves += found.surrogates;
    let sums = this.#scripts.get(found.script);
    if (!sums) {
      sums = { samples: 0, characters: 0, bytes: 0, tokens: 0 };
      this.#scripts.set(found.script, sums);
    }
    sums.samples++;
    sums.characters += found.characters;
    sums.bytes += bytes;
    for (const { content } of sequences) sums.tokens += content.length;
  }

  /** Returns the number of targets that count. */
  #addSequence(place: Place, { ids, fullLength, counted: spans, repeated = 0 }: Sample): number {
    const { length, isStream } = this.#options;
    this.#sequences++;
    this.#tokens += ids.length - repeated;
    this.#uncut += fullLength - repeated;
    this.#positions += isStream ? ids.length - repeated : length;
    const own = fullLength - repeated;
    this.#lengths.set(own, (this.#lengths.get(own) ?? 0) + 1);
    let counted = 0;
    for (const [from, end] of spans) counted += Math.max(0, end - Math.max(1, from));
    this.#counted += counted;
    if (spans.some(([, end]) => end > ids.length)) this.#countedPadding.add(place);
    return counted;
  }

  #addIds(place: Place, content: readonly number[]): void {
    const { vocabulary = Number.POSITIVE_INFINITY, isPlainText, isSpecial } = this.#options;
    let [beyond, special] = [0, 0];
    for (const id of content) {
      if (id > this.#highest) this.#highest = id;
      if (id >= vocabulary) beyond++;
      if (isPlainText && isSpecial(id)) special++;
    }
    if (beyond > 0) this.#beyond.add(place);
    if (special > 0) this.#special.add(place);
    this.#beyondTokens += beyond;
    this.#specialTokens += special;
  }

  /**
   * Figures of all samples.
   * @param notKept Samples among which no duplicates are found; undefined when none were searched.
   */
  result(notKept: number | undefined): DataFigures {
    const { hasTokens } = this.#options;
    return {
      lines: this.#lines,
      blankLines: this.#blank,
      samples: this.#samples,
      sequences: this.#sequences,
      characters: this.#characters,
      bytes: this.#bytes,
      invalid: { ...this.#invalid.listed, faults: this.#faults },
      tokens: hasTokens ? this.#tokenFigures() : null,
      empty: this.#empty.listed,
      whiteSpace: this.#whiteSpace.listed,
      blankAnswers: this.#blankAnswers.listed,
      control: { characters: this.#controls, ...this.#control.listed },
      replacement: { characters: this.#replacements, ...this.#replacement.listed },
      surrogates: { characters: this.#halves, ...this.#surrogates.listed },
      duplicates:
        notKept === undefined
          ? null
          : { exact: this.#exact.listed, near: this.#near.listed, notKept },
      scripts: [...this.#scripts]
        .map(([script, sums]) => ({ script, ...sums, tokens: hasTokens ? sums.tokens : null }))
        .sort((a, b) => b.characters - a.characters),
    };
  }

  #tokenFigures(): TokenFigures {
    const positions = this.#positions;
    const padding = positions - this.#tokens;
    const cut = this.#uncut - this.#tokens;
    return {
      tokens: this.#tokens,
      uncut: this.#uncut,
      counted: this.#counted,
      positions,
      padding,
      paddingShare: positions === 0 ? null : padding / positions,
      cut,
      cutShare: this.#uncut === 0 ? null : cut / this.#uncut,
      cutSequences: this.#cut.listed,
      empty: this.#empty.listed,
      allMasked: this.#masked.listed,
      countedPadding: this.#countedPadding.listed,
      highestId: this.#highest < 0 ? null : this.#highest,
      beyondVocabulary: { tokens: this.#beyondTokens, ...this.#beyond.listed },
      specialInText: { tokens: this.#specialTokens, ...this.#special.listed },
      lengths: lengthFigures(this.#lengths, this.#sequences),
    };
  }
}

function lengthFigures(
  lengths: ReadonlyMap<number, number>,
  sequences: number,
): TokenFigures['lengths'] {
  if (sequences === 0) return null;
  const sorted = [...lengths].sort((a, b) => a[0] - b[0]);
  const quantile = (share: number) => {
    let before = 0;
    for (const [length, count] of sorted) {
      before += count;
      if (before >= share * sequences) return length;
    }
    return 0;
  };
  const sum = sumOf(sorted, ([length, count]) => length * count);
  return {
    mean: sum / sequences,
    median: quantile(0.5),
    p95: quantile(0.95),
    longest: sorted.at(-1)?.[0] ?? 0,
    bins: binsOf(sorted),
  };
}

/** Bins whose ends are powers of two. */
function binsOf(sorted: readonly (readonly [length: number, count: number])[]): LengthBin[] {
  const bins: { from: number; to: number; sequences: number }[] = [];
  for (const [length, count] of sorted) {
    const to = length <= 1 ? 1 : 2 ** Math.ceil(Math.log2(length));
    const from = to <= 1 ? 0 : to / 2 + 1;
    const last = bins.at(-1);
    if (last?.to === to) last.sequences += count;
    else bins.push({ from, to, sequences: count });
  }
  return bins;
}
