/** The request of `minimind evaluate`: files in, an evaluation out. */
import { createHash } from 'node:crypto';
import { UserError, usageError } from '../../base/errors.js';
import { readText } from '../../base/files/read-file.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import type { Sweep } from '../../base/sweep.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { parseJson } from '../../base/text/json.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { sumOf } from '../../base/values.js';
import { type Engine, type EngineInfo, isEngineInfo } from '../../engine/engine.js';
import { chooseEngineFor, type EngineRequest } from '../../engine/select/devices.js';
import { firstInvalidId, listedIds } from '../../engine/token-ids.js';
import { refuseWeightForm } from '../../engine/weights/quantized-weights.js';
import { checkpointWeights, randomWeights } from '../../engine/weights/weights.js';
import {
  foldersOf,
  type WeightedModelFile,
} from '../../input/model-input/checkpoint/weighted-model.js';
import { countParameters } from '../../model/budget/parameters.js';
import { readWholeText } from '../data/whole-text.js';
import { openModelText, requireTokenizer } from '../tokenizer/model-text.js';
import type { TextTokenizer } from '../tokenizer/tokenizer.js';
import {
  type Evaluation,
  evaluationOf,
  type WeightedModel,
  type WindowScores,
} from './evaluate-models.js';
import { LineTracker } from './token-scores.js';
import { checkWindows, type WindowSettings, Windows } from './windows.js';

export interface EvaluationInput extends EngineRequest {
  readonly own: WeightedModelFile;
  readonly reference: WeightedModelFile | undefined;
  /** File of the text, or of the ids; one of them. */
  readonly text?: string | undefined;
  readonly ids?: string | undefined;
  /** tokenizer.json in place of the model's own. */
  readonly tokenizer?: string | undefined;
  readonly context?: number | undefined;
  readonly stride?: number | undefined;
  /** `auto`, `none` or a token id. */
  readonly bos: string;
  /** Seed of random weights. */
  readonly seed: number;
  /** Quantization of the model's matrices; the reference runs in float32. */
  readonly weights?: WeightForm | undefined;
  /** Refuses models that do not fit into memory, before they are loaded. */
  readonly checkMemory: (
    models: readonly Pick<WeightedModel, 'model' | 'form'>[],
    context: number,
    info: EngineInfo,
  ) => void;
  /** Predicted memory of models. */
  readonly memoryOf: (
    models: readonly Pick<WeightedModel, 'model' | 'form'>[],
    context: number,
    info: EngineInfo,
  ) => number;
}

/** One of the two models. */
export interface EvaluatedModel {
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Checkpoint of the weights; null when they are random. */
  readonly checkpoint: string | null;
  /** Parameters of the model. @count */
  readonly parameters: number;
}

/**
 * Loss and perplexity of a model on files, and compared with another model.
 * @answer minimind evaluate --json
 */
export interface EvaluationResult {
  readonly schema: 'minimind/evaluate@1';
  readonly model: EvaluatedModel;
  /** The reference; null without `--against`. */
  readonly against: EvaluatedModel | null;
  readonly engine: EngineInfo;
  /** Quantization of the model's matrices; null for float32. */
  readonly weights: WeightForm | null;
  /** The evaluated texts or ids. */
  readonly input: {
    /** Path as the user wrote it. */
    readonly file: string;
    /** tokenizer.json; null for ids. */
    readonly tokenizer: string | null;
    /** Number of texts. @integer @minimum 1 */
    readonly texts: number;
    /** Evaluated tokens. @integer @minimum 1 */
    readonly tokens: number;
    /** Bytes of the text in UTF-8, and its words between white space; null for ids. @integer */
    readonly bytes: number | null;
    /** Words between white space; null for --ids. @integer */
    readonly words: number | null;
  };
  /** Tokens of a window, BOS included. @integer @minimum 2 */
  readonly context: number;
  /** Tokens from window to window. @integer @minimum 1 */
  readonly stride: number;
  /** Token before each window; null for none. @integer */
  readonly bos: number | null;
  /** Number of windows. @integer @minimum 1 */
  readonly windows: number;
  /** Tokens whose loss counts. @integer @minimum 1 */
  readonly scored: number;
  /** Mean loss of a token in nats, and its standard error. @real */
  readonly loss: number;
  /** Standard error of the loss. @real */
  readonly lossError: number | null;
  /** exp(loss). @real */
  readonly perplexity: number;
  /** Standard error of the perplexity; null without one. @real */
  readonly perplexityError: number | null;
  /** exp(loss · tokens / words); null for ids. @real */
  readonly perplexityByWord: number | null;
  /** loss / ln 2 · tokens / bytes; null for ids. @real */
  readonly bitsPerByte: number | null;
  /** Standard error of the bits per byte; null without one. @real */
  readonly bitsPerByteError: number | null;
  /** The second model's own loss; null without one. */
  readonly reference: Evaluation['reference'];
  /** Distance from the predictions of the reference; null without one. */
  readonly divergence: Evaluation['divergence'];
  /** Mean of KL(reference ‖ model) and share of equal top tokens, for thresholds; null without a reference. @real */
  readonly kl: number | null;
  /** Share of the tokens where both models have the same likeliest token. @real */
  readonly sameTop: number | null;
  /** Lines with the highest mean KL, or loss without a reference; null for --ids. */
  readonly worstLines: Evaluation['worstLines'];
  /** Means of KL, or of loss without a reference, along the texts: at most 256. */
  readonly alongText: Evaluation['alongText'];
  /** Tokens of the model's experts, by router; null without routers. */
  readonly experts: Evaluation['experts'];
  /** Duration. @minimum 0 */
  readonly seconds: number;
}

/** Tokens of a window by default. */
const DEFAULT_CONTEXT = 512;

/** Maximum bytes of a text. The tokenizer reads about 1 MB a second. */
const MOST_TEXT_BYTES = 64_000_000;
const MOST_IDS_BYTES = 512_000_000;

/** An evaluation of files: a sweep over windows. */
export interface FileEvaluation extends Sweep<WindowScores, EvaluationResult, EngineInfo> {
  close(): Promise<void>;
}

/** FLOPs per second of a slow machine. */
const LEAST_FLOPS = 2e9;
const LEAST_WINDOW_SECONDS = 0.01;

/** Memory of the process without models. */
const PROCESS_BYTES = 400e6;

/**
 * Prepares the evaluation of a model on a file.
 * @throws UserError when a file or an option is wrong.
 */
export async function evaluationOfFiles(
  input: EvaluationInput,
  display: ProgressDisplay,
): Promise<FileEvaluation> {
  const { own, reference } = input;
  const models = [own, ...(reference ? [reference] : [])].map(({ loaded }) => loaded.model);
  const read = await readTexts(input);
  if (reference) refuseOtherVocabulary(own, reference);
  const windows = windowsFor(input, read, Math.min(...models.map(({ positions }) => positions)));
  const total = sumOf(new Windows(read.texts, windows).sizes(), ({ scored }) => scored);
  if (total === 0) throw nothingScored(read.file);
  const loads = models.map((model, at) => ({ model, form: at === 0 ? input.weights : undefined }));
  const shown = display.steps();
  const engine = openedOnce(input, loads, windows.context, shown.say);
  let done = 0;
  const work = evaluationOf(engine.open, {
    own: { ...weighted(own, input.seed), form: input.weights },
    reference: reference && weighted(reference, input.seed),
    texts: read.texts,
    windows,
    lines: read.lines,
    progress(tokens) {
      done += tokens;
      shown.doing(`scored ${formatInteger(done)} of ${formatInteger(total)} tokens`);
    },
  });
  const parameters = sumOf(models, (model) => countParameters(model).parameters);
  return {
    units: {
      name: 'windows',
      count: work.count,
      *costs() {
        for (const { read: tokens } of work.windows.sizes()) {
          yield LEAST_WINDOW_SECONDS + (2 * parameters * tokens) / LEAST_FLOPS;
        }
      },
      identity: () => [windows, input.weights, input.seed, idsSha256(read.texts)],
    },
    backend: {
      /** Opens the engine. @throws UserError when none can run here, or the models do not fit. */
      here: async () => (await engine.open()).info,
      flags: ({ name, deviceKind: device, threads }) => ({ engine: name, device, threads }),
      isBackend: isEngineInfo,
    },
    memoryBytes: (info) => PROCESS_BYTES + input.memoryOf(loads, windows.context, info),
    compute: work.score,
    async fold(scores, info) {
      const found = await work.fold(scores);
      return evaluationResult({ input, read, windows, found, engine: info });
    },
    async close() {
      shown.end();
      await work.release();
      await engine.close();
    },
  };
}

/** Windows as the user wants them, or by the model. @throws UserError for windows that the models cannot read. */
function windowsFor(input: EvaluationInput, read: ReadTexts, positions: number): WindowSettings {
  const bos = bosOf(input.bos, read.bos, vocabularyOf(input.own));
  const context = input.context ?? Math.min(DEFAULT_CONTEXT, positions);
  const windows = { context, stride: input.stride ?? context - (bos === undefined ? 0 : 1), bos };
  checkWindows(windows, positions);
  return windows;
}

/** An engine that is opened when it is first needed: a plan of an evaluation needs none. */
function openedOnce(
  input: EvaluationInput,
  loads: readonly Pick<WeightedModel, 'model' | 'form'>[],
  tokens: number,
  notice: (text: string) => void,
) {
  let opened: Promise<Engine> | undefined;
  const opening = async () => {
    const models = loads.map(({ model }) => model);
    const { engine } = await chooseEngineFor({ models, batch: 1, tokens }, input, notice);
    try {
      if (input.weights) refuseWeightForm(engine.info);
      input.checkMemory(loads, tokens, engine.info);
    } catch (error) {
      await engine.close();
      throw error;
    }
    return engine;
  };
  return {
    open(): Promise<Engine> {
      opened ??= opening();
      return opened;
    },
    async close(): Promise<void> {
      // A failure to open the engine has already been reported.
      await opened?.then((engine) => engine.close()).catch(() => {});
    },
  };
}

const vocabularyOf = ({ loaded }: WeightedModelFile): number =>
  loaded.model.embedding.weight.shape[0] ?? 0;

function idsSha256(texts: readonly ArrayLike<number>[]): string {
  const hash = createHash('sha256');
  for (const ids of texts) hash.update(`${ids.length}\n`).update(Int32Array.from(ids));
  return hash.digest('hex');
}

/** Texts as token ids, with the facts that scores need. */
interface ReadTexts {
  readonly file: string;
  readonly texts: readonly ArrayLike<number>[];
  readonly tokens: number;
  readonly tokenizer: TextTokenizer | undefined;
  /** BOS token that the tokenizer adds. */
  readonly bos: number | undefined;
  readonly bytes: number | null;
  readonly words: number | null;
  readonly lines: LineTracker | undefined;
}

const readTexts = (input: EvaluationInput): Promise<ReadTexts> =>
  input.text === undefined
    ? readIds(input.ids ?? '', vocabularyOf(input.own))
    : readWords(input, vocabularyOf(input.own));

async function readWords(
  { own, text: file = '', tokenizer: named }: EvaluationInput,
  vocabulary: number,
): Promise<ReadTexts> {
  const folders = foldersOf(own);
  const tokenizer = requireTokenizer(await openModelText(folders, named), folders);
  const text = await readWholeText(file, {
    most: MOST_TEXT_BYTES,
    suggestion: `evaluate a part of it, or give its tokens with ${setting('ids')}`,
  });
  if (text === '') throw nothingScored(file);
  const ids = tokenizer.encode(text, { special: false });
  const highest = ids.reduce((most, id) => Math.max(most, id), 0);
  if (highest >= vocabulary) {
    throw usageError(
      `${tokenizer.file} has tokens up to ${highest}, and the model has ${formatInteger(vocabulary)}`,
      `name the tokenizer that the model was trained with: ${setting('tokenizer', 'FILE')}`,
    );
  }
  return {
    file,
    texts: [ids],
    tokens: ids.length,
    tokenizer,
    bos: bosAddedBy(tokenizer),
    bytes: Buffer.byteLength(text),
    words: text.split(/\s+/).filter((word) => word !== '').length,
    lines: LineTracker.of(text, ids, newlinesById(tokenizer, ids)),
  };
}

/** The token that a tokenizer puts before a text. */
function bosAddedBy(tokenizer: TextTokenizer): number | undefined {
  const [first] = tokenizer.encode('a', { special: true });
  const [plain] = tokenizer.encode('a', { special: false });
  return first === plain ? undefined : first;
}

/** Line feeds in the text of each token, by its id. */
function newlinesById(tokenizer: TextTokenizer, ids: readonly number[]): Map<number, number> {
  const distinct = [...new Set(ids)];
  const texts = tokenizer.decodeEach(distinct, { special: true });
  return new Map(distinct.map((id, at) => [id, (texts[at] ?? '').split('\n').length - 1]));
}

async function readIds(source: string, vocabulary: number): Promise<ReadTexts> {
  const listed = listedIds(source, vocabulary);
  const texts = listed ? [listed] : await idsInFile(source, vocabulary);
  return {
    file: source,
    texts,
    tokens: sumOf(texts, ({ length }) => length),
    tokenizer: undefined,
    bos: undefined,
    bytes: null,
    words: null,
    lines: undefined,
  };
}

async function idsInFile(
  file: string,
  vocabulary: number,
): Promise<readonly (readonly number[])[]> {
  const json = await readText(file, { most: MOST_IDS_BYTES, suggestion: 'evaluate a part of it' });
  const refuse = (what: string) =>
    new UserError('refused-file', `${file}: ${what}`, {
      suggestion: 'write a list of texts, each a list of token ids, as in [[5, 17, 3], [9, 2]]',
    });
  let value: unknown;
  try {
    value = parseJson(json.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw refuse(`is not JSON: ${(error as Error).message}`);
  }
  if (!Array.isArray(value) || !value.every(Array.isArray))
    throw refuse('expected a list of lists');
  const rows: readonly (readonly unknown[])[] = value;
  for (const [row, ids] of rows.entries()) {
    const invalid = firstInvalidId(ids, vocabulary);
    if (invalid === undefined) continue;
    const { at, found } = invalid;
    throw refuse(`id ${at} of text ${row}: expected 0 to ${vocabulary - 1}, found ${found}`);
  }
  return rows as readonly (readonly number[])[];
}

function bosOf(wish: string, own: number | undefined, vocabulary: number): number | undefined {
  if (wish === 'auto') return own;
  if (wish === 'none') return undefined;
  const id = Number(wish);
  if (/^\d+$/.test(wish) && id < vocabulary) return id;
  throw usageError(
    `${setting('bos')}: expected auto, none, or a token id below ${formatInteger(vocabulary)}, found ${JSON.stringify(wish)}`,
    `write ${setting('bos', 'none')} for no token before a window`,
  );
}

function refuseOtherVocabulary(own: WeightedModelFile, reference: WeightedModelFile): void {
  const [here, there] = [own, reference].map(
    ({ loaded }) => loaded.model.head.weight.shape[0] ?? 0,
  );
  if (here === there) return;
  throw usageError(
    `the models have different vocabularies: ${formatInteger(here ?? 0)} and ${formatInteger(there ?? 0)} tokens`,
    'compare models with the same tokens; bits per byte compares others',
  );
}

const nothingScored = (file: string) =>
  new UserError('refused-file', `${file}: expected at least two tokens of a text, found fewer`, {
    suggestion: 'give a longer text: a token is predicted from those before it',
  });

const weighted = (
  { loaded: { model }, checkpoint }: WeightedModelFile,
  seed: number,
): WeightedModel => ({
  model,
  weights: checkpoint ? checkpointWeights(model, checkpoint) : randomWeights(model, seed),
});

const evaluatedNames = ({ loaded, checkpoint }: WeightedModelFile): EvaluatedModel => ({
  file: loaded.file,
  family: loaded.family.name,
  checkpoint: checkpoint?.path ?? null,
  parameters: countParameters(loaded.model).parameters,
});

interface EvaluationParts {
  readonly input: EvaluationInput;
  readonly read: ReadTexts;
  readonly windows: WindowSettings;
  readonly found: Evaluation;
  readonly engine: EngineInfo;
}

function evaluationResult({
  input,
  read,
  windows,
  found,
  engine,
}: EvaluationParts): EvaluationResult {
  const { own, reference } = input;
  const { file, texts, tokens, bytes, words } = read;
  const { loss, perplexity } = found.own;
  const bitsPerNat = bytes === null ? null : tokens / bytes / Math.LN2;
  return {
    schema: 'minimind/evaluate@1',
    model: evaluatedNames(own),
    against: reference ? evaluatedNames(reference) : null,
    engine,
    weights: input.weights ?? null,
    input: {
      file,
      tokenizer: read.tokenizer?.file ?? null,
      texts: texts.length,
      tokens,
      bytes,
      words,
    },
    context: windows.context,
    stride: windows.stride,
    bos: windows.bos ?? null,
    windows: found.windows,
    scored: found.scored,
    loss: loss.mean,
    lossError: loss.error,
    perplexity: perplexity.mean,
    perplexityError: perplexity.error,
    perplexityByWord: words ? Math.exp((loss.mean * tokens) / words) : null,
    bitsPerByte: bitsPerNat === null ? null : loss.mean * bitsPerNat,
    bitsPerByteError: bitsPerNat === null || loss.error === null ? null : loss.error * bitsPerNat,
    reference: found.reference,
    divergence: found.divergence,
    kl: found.divergence?.kl.mean ?? null,
    sameTop: found.divergence?.sameTop.mean ?? null,
    worstLines: found.worstLines,
    alongText: found.alongText,
    experts: found.experts,
    seconds: found.seconds,
  };
}
