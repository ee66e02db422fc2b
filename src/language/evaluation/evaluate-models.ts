/** Scores texts with a model: loss, perplexity, and the distance from another model's predictions. */

import type { UserError } from '../../base/errors.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { divergence } from '../../base/tensor/logits.js';
import { attentionWindows, hasLengthRule, isFollowedByCache } from '../../engine/calls.js';
import { Decoder, rowValues } from '../../engine/decoder.js';
import type { Engine, Program, Values } from '../../engine/engine.js';
import { nonFiniteLogits } from '../../engine/weights/non-finite-weights.js';
import type { WeightSource } from '../../engine/weights/weights.js';
import type { Window as AttentionWindow, LanguageModel } from '../../model/architecture/layer.js';
import { countingProgram, LoadFold, type RouterLoad, type SentTokens } from './expert-load.js';
import type { Estimate, LineScore, LineTracker, RunMeans } from './token-scores.js';
import { MeanFold, quantile, RunFold, tokenScore, ValueList } from './token-scores.js';
import type { ScoringWindow, WindowSettings } from './windows.js';
import { Windows } from './windows.js';

/** A model with its weights. */
export interface WeightedModel {
  readonly model: LanguageModel;
  readonly weights: WeightSource;
  /** Quantization of the matrices; float32 when absent. */
  readonly form?: WeightForm | undefined;
}

export interface EvaluationRequest {
  readonly own: WeightedModel;
  /** The reference that the model is compared with, token by token. */
  readonly reference: WeightedModel | undefined;
  /** Token ids of each text, scored on their own. */
  readonly texts: readonly ArrayLike<number>[];
  readonly windows: WindowSettings;
  /** Lines of the texts; undefined where there is no text. */
  readonly lines: LineTracker | undefined;
  /** Called with the number of tokens scored since the last call. */
  readonly progress: (tokens: number) => void;
}

/** Loss of one model, in nats. */
export interface ModelLoss {
  readonly loss: Estimate;
  /** exp of the mean loss; its error is perplexity · error of the loss. */
  readonly perplexity: Estimate;
}

/** Distance of a model's predictions from those of the reference. */
export interface Divergence {
  /** KL(reference ‖ model) of each next token, in nats. */
  readonly kl: Estimate & {
    /** Median over the tokens. @real */
    readonly median: number;
    /** 99th percentile. @real */
    readonly percentile99: number;
    /** Maximum. @real */
    readonly max: number;
  };
  /** KL(model ‖ reference), in nats. */
  readonly reverseKl: Estimate;
  /** Share of positions where both have the same most likely token; its error is that of a proportion. */
  readonly sameTop: Estimate;
  /** Root of the mean squared change of the token's probability, model − reference. */
  readonly rmsProbabilityChange: Estimate;
  readonly meanProbabilityChange: Estimate;
  /** Loss of the model minus loss of the reference, paired by token. */
  readonly lossChange: Estimate;
}

export interface Evaluation {
  /** Tokens that were scored. */
  readonly scored: number;
  /** In all windows. */
  readonly seconds: number;
  /** Windows that were read. */
  readonly windows: number;
  readonly own: ModelLoss;
  readonly reference: ModelLoss | null;
  readonly divergence: Divergence | null;
  /** Lines with the highest mean of KL, or of loss without a reference; null without a text. */
  readonly worstLines: readonly LineScore[] | null;
  /** Means of KL, or of loss without a reference, along the texts: at most 256. */
  readonly alongText: RunMeans;
  /** Tokens of the model's experts, by router, those before the scored ones included; null without routers. */
  readonly experts: readonly RouterLoad[] | null;
}

/** Scores of the tokens of a window. */
export interface WindowScores {
  /** Position in the text of the first scored token. */
  readonly position: number;
  /** Loss of each token. */
  readonly loss: readonly number[];
  /** Null without a reference. */
  readonly reference: {
    readonly loss: readonly number[];
    readonly kl: readonly number[];
    readonly reverseKl: readonly number[];
    readonly sameTop: readonly (0 | 1)[];
  } | null;
  /** Tokens of the model's experts. */
  readonly sent: SentTokens;
  readonly seconds: number;
}

/** An evaluation as work on single windows, and a fold of their scores in order. */
export interface WindowEvaluation {
  readonly windows: Windows;
  readonly count: number;
  score(index: number): Promise<WindowScores>;
  fold(scores: (index: number) => Promise<WindowScores>): Promise<Evaluation>;
  release(): Promise<void>;
}

/**
 * Evaluates one model, or two models on the same windows. Memory does not grow with the texts, except by 4 bytes for
 * each token that two models score.
 * @param open Opens the engine, when the first window is scored.
 */
export function evaluationOf(
  open: () => Promise<Engine>,
  { own, reference, texts, windows: settings, lines, progress }: EvaluationRequest,
): WindowEvaluation {
  const windows = new Windows(texts, settings);
  let readers: readonly WindowReader[] | undefined;
  let count = 0;
  for (const _ of windows.sizes()) count++;
  return {
    windows,
    count,
    async score(index) {
      const engine = await open();
      readers ??= [own, ...(reference ? [reference] : [])].map(
        (each) => new WindowReader(engine, each, settings.context),
      );
      return scoreWindow(windows.at(index), readers, progress, (at) => {
        const model = at === 0 ? own : (reference ?? own);
        return nonFiniteLogits([model], engine.info.compute);
      });
    },
    async fold(scores) {
      const fold = new EvaluationFold(lines, own.model);
      for (let index = 0; index < count; index++) fold.add(await scores(index));
      return fold.result(count, reference !== undefined);
    },
    async release() {
      for (const reader of readers ?? []) await reader.release();
    },
  };
}

async function scoreWindow(
  { tokens, firstScored, position }: ScoringWindow,
  readers: readonly WindowReader[],
  progress: (tokens: number) => void,
  broken: (reader: number) => UserError,
): Promise<WindowScores> {
  const start = performance.now();
  const [ownReader] = readers;
  const [own, reference] = readers.map((reader) =>
    reader.logits(tokens.slice(0, -1), tokens.length - firstScored),
  );
  const loss: number[] = [];
  const other = { loss: [] as number[], kl: [] as number[], reverseKl: [] as number[] };
  const sameTop: (0 | 1)[] = [];
  let at = firstScored;
  for await (const part of own ?? []) {
    const referenceLogits = reference && (await reference.next()).value;
    const [count = 0] = part.shape;
    for (let row = 0; row < count; row++, at++) {
      const logits = rowValues(part, row);
      const token = tokens[at] as number;
      const score = tokenScore(logits, token);
      if (Number.isNaN(score.logSum)) throw broken(0);
      loss.push(score.loss);
      if (!referenceLogits) continue;
      const expected = rowValues(referenceLogits, row);
      const before = tokenScore(expected, token);
      if (Number.isNaN(before.logSum)) throw broken(1);
      other.loss.push(before.loss);
      other.kl.push(divergence(expected, before.logSum, logits, score.logSum));
      other.reverseKl.push(divergence(logits, score.logSum, expected, before.logSum));
      sameTop.push(score.top === before.top ? 1 : 0);
    }
    progress(count);
  }
  const seconds = (performance.now() - start) / 1000;
  return {
    position,
    loss,
    reference: reference ? { ...other, sameTop } : null,
    sent: ownReader?.takenSent() ?? {},
    seconds,
  };
}

/** Maximum values of the logits of one call: 64 MB. */
const LOGITS_PER_CALL = 2 ** 24;
const MOST_TOKENS_PER_CALL = 256;

/** Runs one model on windows. */
class WindowReader {
  readonly #engine: Engine;
  readonly #model: WeightedModel;
  readonly #context: number;
  readonly #windows: readonly AttentionWindow[];
  readonly #tokensPerCall: number;
  readonly #loads: LoadFold;
  #program: Program | undefined;
  /** Tokens for which the program was loaded; undefined when it reads whole windows. */
  #length: number | undefined;

  constructor(engine: Engine, model: WeightedModel, context: number) {
    this.#engine = engine;
    this.#model = model;
    this.#context = context;
    this.#windows = attentionWindows(model.model);
    this.#loads = new LoadFold(model.model);
    const vocabulary = model.model.head.weight.shape[0] ?? 1;
    this.#tokensPerCall = Math.min(
      MOST_TOKENS_PER_CALL,
      Math.max(1, Math.floor(LOGITS_PER_CALL / vocabulary)),
    );
  }

  /** Logits after each of the last tokens of a window, [n, V] at a time. */
  async *logits(tokens: readonly number[], lastTokens: number): AsyncGenerator<Values> {
    const isInParts = this.#windows.every((window) => isFollowedByCache(tokens.length, window));
    const loaded = await this.#programFor(isInParts ? tokens.length : undefined);
    const program = countingProgram(loaded, this.#loads);
    if (isInParts) {
      yield* new Decoder(program, this.#tokensPerCall).appendInParts(tokens, lastTokens);
      return;
    }
    const ids = { batch: 1, tokens: tokens.length, data: Int32Array.from(tokens) };
    const { output } = await program.run({ ids, lastTokens });
    await new Promise(setImmediate);
    yield { shape: output.shape.slice(1), data: output.data };
  }

  /** Tokens of experts since the last call. */
  takenSent(): SentTokens {
    return this.#loads.taken();
  }

  async release(): Promise<void> {
    await this.#program?.release();
    this.#program = undefined;
  }

  /** A shorter window needs its own program where masks depend on the length. */
  async #programFor(length: number | undefined): Promise<Program> {
    const { model, weights, form } = this.#model;
    const wanted =
      length === undefined || hasLengthRule(model) ? length : Math.max(length, this.#context);
    if (this.#program && this.#length === wanted) return this.#program;
    await this.release();
    this.#length = wanted;
    this.#program = await this.#engine.load(model, weights, {
      blocks: false,
      sent: this.#loads.hasRouters,
      weightForm: form,
      ...(wanted !== undefined && { decoding: { totalTokens: wanted } }),
    });
    return this.#program;
  }
}

/** Scores of all tokens so far. */
class EvaluationFold {
  readonly #lines: LineTracker | undefined;
  readonly #own = new MeanFold();
  readonly #reference = new MeanFold();
  readonly #kl = new MeanFold();
  readonly #reverseKl = new MeanFold();
  readonly #klValues = new ValueList();
  readonly #sameTop = new MeanFold();
  readonly #change = new MeanFold();
  readonly #squaredChange = new MeanFold();
  readonly #lossChange = new MeanFold();
  readonly #runs = new RunFold();
  readonly #loads: LoadFold;
  #seconds = 0;

  constructor(lines: LineTracker | undefined, model: LanguageModel) {
    this.#lines = lines;
    this.#loads = new LoadFold(model);
  }

  add({ position, loss: losses, reference, sent, seconds }: WindowScores): void {
    this.#seconds += seconds;
    this.#loads.add((router) => sent[router]);
    for (const [at, loss] of losses.entries()) {
      this.#own.add(loss);
      let badness = loss;
      if (reference) {
        badness = reference.kl[at] ?? Number.NaN;
        const before = reference.loss[at] ?? Number.NaN;
        this.#reference.add(before);
        this.#kl.add(badness);
        this.#klValues.add(badness);
        this.#reverseKl.add(reference.reverseKl[at] ?? Number.NaN);
        this.#sameTop.add(reference.sameTop[at] ?? Number.NaN);
        const change = Math.exp(-loss) - Math.exp(-before);
        this.#change.add(change);
        this.#squaredChange.add(change ** 2);
        this.#lossChange.add(loss - before);
      }
      this.#runs.add(badness);
      this.#lines?.add(position + at, badness);
    }
  }

  result(windows: number, areTwo: boolean): Evaluation {
    return {
      scored: this.#own.count,
      seconds: this.#seconds,
      windows,
      own: lossOf(this.#own),
      reference: areTwo ? lossOf(this.#reference) : null,
      divergence: areTwo ? this.#divergence() : null,
      worstLines: this.#lines?.worst() ?? null,
      alongText: this.#runs.result(),
      experts: this.#loads.result(),
    };
  }

  #divergence(): Divergence {
    const sorted = this.#klValues.sorted();
    const square = this.#squaredChange.result();
    const rms = Math.sqrt(square.mean);
    return {
      kl: {
        ...this.#kl.result(),
        median: quantile(sorted, 0.5),
        percentile99: quantile(sorted, 0.99),
        max: sorted.at(-1) ?? Number.NaN,
      },
      reverseKl: this.#reverseKl.result(),
      sameTop: this.#sameTop.result(),
      // Error of a square root: the error of the square divided by the derivative 2 · root.
      rmsProbabilityChange: {
        mean: rms,
        error: square.error === null || rms === 0 ? square.error : square.error / (2 * rms),
      },
      meanProbabilityChange: this.#change.result(),
      lossChange: this.#lossChange.result(),
    };
  }
}

function lossOf(fold: MeanFold): ModelLoss {
  const loss = fold.result();
  const mean = Math.exp(loss.mean);
  return { loss, perplexity: { mean, error: loss.error === null ? null : mean * loss.error } };
}
