import { UserError, usageError } from '../base/errors.js';
import { refuseOtherEnding } from '../base/files/file-endings.js';
import { refuseUnwritable, writeWhole } from '../base/files/write-whole.js';
import type { WeightForm } from '../base/tensor/group-quantization.js';
import { setting } from '../base/text/setting.js';
import { formatInteger } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import type { TensorToWrite } from '../checkpoint/safetensors/write-safetensors.js';
import { writeSafetensors } from '../checkpoint/safetensors/write-safetensors.js';
import type {
  Engine,
  EngineInfo,
  EngineName,
  RunOutput,
  TokenIds,
  Values,
} from '../engine/engine.js';
import type { MemoryNeed } from '../engine/memory.js';
import {
  activationsTooLarge,
  fitsInMemory,
  gigabytes,
  memoryNeed,
  neededTensors,
  parameterElements,
  peakBytes,
  streamedNeed,
  usableBytes,
} from '../engine/memory.js';
import type { ChosenEngine, EngineRequest, SkippedEngine } from '../engine/select/devices.js';
import { chooseEngine, chooseEngineFor, crossCheckTarget } from '../engine/select/devices.js';
import type { SelfCheck } from '../engine/select/self-check.js';
import type { InputSize } from '../engine/token-ids.js';
import { idLimitsOf, inputSize, randomIds } from '../engine/token-ids.js';
import { withWeightForm } from '../engine/weights/quantized-weights.js';
import { randomWeights } from '../engine/weights/weights.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { ownedTensors } from '../model/architecture/walk.js';
import { quantizedMatrices } from '../model/architecture/weight-matrices.js';
import { countParameters } from '../model/budget/parameters.js';
import { notComparable } from './checks/forward.js';
import type { CheckName, CheckResult } from './checks.js';
import { QUICK_TEST_CHECKS } from './checks.js';
import type { CheckFinding } from './finding.js';
import { streamedTest } from './streamed.js';
import type { ProxyChange, TestedModel } from './test-context.js';
import { endsAll, scaledDownProxy, TestContext } from './test-context.js';

export interface QuickTestRequest extends EngineRequest, TestedModel {
  /** Number of timed forward passes; undefined to time for half a second. */
  readonly repeats: number | undefined;
  /** Tokens that the check of the cache generates one by one. */
  readonly outputTokens?: number | undefined;
  readonly checks: readonly CheckName[];
  /** Form of the matrices; undefined for float32. */
  readonly weightForm?: WeightForm | undefined;
  /** Whether to run layer by layer, at any model size. */
  readonly full: boolean;
  /** Whether to return logits and the output of every block. */
  readonly keepsOutput: boolean;
  /** Called with each step. */
  readonly watch: (doing: string) => void;
  /** Called with notices about the chosen engine. */
  readonly notice: (text: string) => void;
}

type TooLarge = 'memory' | 'tensors';

/**
 * Maximum tensors of a model that runs as a whole. Engines plan the whole graph, and the time of this grows faster than
 * the graph. Models without separate experts have at most about a thousand tensors.
 */
const MOST_TENSORS = 4_000;

/** The model as a whole, a smaller one of the same structure, or layer by layer. */
export type Mode = 'whole' | 'twin' | 'streamed';

export interface QuickTest {
  readonly mode: Mode;
  /** Parameters of the described model. @count */
  readonly parameters: number;
  /** The model that ran instead. */
  readonly twin: {
    /** Parameters of the model that ran. @count */
    readonly parameters: number;
    /** Settings that differ from the described model. */
    readonly changes: readonly ProxyChange[];
    /** The exceeded limit: bytes of this machine, or tensors of a graph. */
    readonly reason: TooLarge;
  } | null;
  /** Origin of the weights. */
  readonly weights: 'random' | 'checkpoint';
  /** Null when all weights are float32. */
  readonly quantized: QuantizedWeights | null;
  /** Origin of the tokens. */
  readonly ids: 'random' | 'given';
  /** Sequences. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Seed of all random values. @count */
  readonly seed: number;
  readonly engine: EngineInfo;
  /** A tiny model, run before anything else. */
  readonly selfCheck: SelfCheck;
  /** Engines that would have been chosen first. */
  readonly passedOver: readonly SkippedEngine[];
  /** Memory of the model. */
  readonly memory: {
    /** Memory need of the described model as a whole. */
    readonly need: MemoryNeed;
    /** Bytes available to the model. @count */
    readonly usableBytes: number;
    /** Predicted bytes of the model that ran; null when it ran layer by layer. @count */
    readonly predictedBytes: number | null;
    /** Peak memory of this process by the end of the forward pass, and its memory before. @count */
    readonly peakBytes: number;
    /** Memory of the process before the model was loaded. @count */
    readonly startBytes: number;
  };
  /** Checks in the order in which they ran. */
  readonly checks: readonly CheckResult[];
  /** Whether no check failed. */
  readonly passed: boolean;
}

/** Matrices that ran with fewer bits. */
export interface QuantizedWeights extends WeightForm {
  /** Quantized tensors. @count */
  readonly tensors: number;
  /** Their values. @count */
  readonly elements: number;
  /** Elements of the other tensors, in float32. @count */
  readonly otherElements: number;
}

export interface QuickTestRun {
  readonly test: QuickTest;
  /** Set on request. */
  readonly output: Pick<RunOutput, 'output' | 'blocks'> | undefined;
}

/**
 * Runs a model and checks it. A model that exceeds the memory or the number of tensors runs as a proxy, unless it runs
 * layer by layer.
 * @throws UserError when the options contradict each other, or no engine can run here.
 */
export async function quickTest(request: QuickTestRequest): Promise<QuickTestRun> {
  const size = inputSize(request, request.model);
  request.watch('choosing an engine');
  const chosen = await chooseEngineFor(
    { models: [request.model], ...size },
    request,
    request.notice,
  );
  try {
    return await testOn({ ...chosen, engine: inForm(chosen.engine, request) }, request, size);
  } finally {
    await chosen.engine.close();
  }
}

const inForm = (engine: Engine, { weightForm }: Pick<QuickTestRequest, 'weightForm'>): Engine =>
  weightForm ? withWeightForm(engine, weightForm) : engine;

/** Advice when more output tokens are requested than a sequence has. */
function moreTokens(positions: number, tokens: number, outputTokens: number): string {
  if (tokens + outputTokens <= positions)
    return `write ${setting('context', tokens + outputTokens)}`;
  return `write ${setting('context', positions)} ${setting('outputTokens', Math.floor(positions / 2))}`;
}

/** The model that runs, how it runs, and the memory that this takes. */
interface PlannedTest {
  readonly mode: Mode;
  /** The model that runs: the described one, or its proxy. */
  readonly model: LanguageModel;
  readonly proxy:
    | { readonly changes: readonly ProxyChange[]; readonly reason: TooLarge }
    | undefined;
  /** Memory of the described model as a whole. */
  readonly need: MemoryNeed;
  /** Memory of what runs. */
  readonly ranNeed: MemoryNeed;
  readonly usable: number;
}

/** @throws UserError when even the proxy, or a single layer, does not fit. */
function plannedTest(request: QuickTestRequest, size: InputSize, info: EngineInfo): PlannedTest {
  const { model, family, document } = request;
  const need = memoryNeed(model, size, info);
  const usable = usableBytes(info);
  const reason = request.full ? undefined : tooLarge(model, fitsInMemory(need, usable));
  const scaled = reason && scaledDownProxy(family, document, size.tokens);
  const ran = scaled?.model ?? model;
  const needs = request.full ? streamedNeed : memoryNeed;
  const ranNeed = needs(ran, size, info);
  if (!fitsInMemory(ranNeed, usable))
    throw activationsTooLarge(size, ranNeed, usable, fitsOther(needs, ran, size, info.name));
  if (reason && request.keepsOutput) throw savesProxy(reason, need, usable);
  return {
    mode: request.full ? 'streamed' : reason ? 'twin' : 'whole',
    model: ran,
    proxy: reason && scaled && { changes: scaled.changes, reason },
    need,
    ranNeed,
    usable,
  };
}

async function testOn(
  { engine, selfCheck, passedOver }: ChosenEngine,
  request: QuickTestRequest,
  size: InputSize,
): Promise<QuickTestRun> {
  const { seed, threads, repeats, outputTokens } = request;
  refuseLongOutput(request, size);
  const startBytes = process.memoryUsage.rss();
  const { info } = engine;
  const { mode, model, proxy, need, ranNeed, usable } = plannedTest(request, size, info);
  const weights = proxy ? undefined : request.weights;
  const ids = idsFor(request, size, model);
  const context = new TestContext({
    model,
    weights: weights ?? randomWeights(model, seed),
    engine,
    ids,
    seed,
    repeats,
    outputTokens,
    openOther: async () => inForm(await openInFloat32(crossCheckTarget(info), threads), request),
    openFloat32: () => openInFloat32({ engine: info.name, device: info.deviceKind }, threads),
  });
  const roomFor = (rows: number) =>
    fitsInMemory(streamedNeed(model, { ...size, batch: size.batch + rows }, info), usable);
  const { results, output } =
    mode === 'streamed'
      ? await streamed(context, request, roomFor)
      : await atOnce(context, request);
  const test: QuickTest = {
    mode,
    parameters: countParameters(request.model).parameters,
    twin: proxy ? { parameters: countParameters(model).parameters, ...proxy } : null,
    weights: weights ? 'checkpoint' : 'random',
    quantized: quantizedOf(model, request.weightForm),
    ids: request.ids ? 'given' : 'random',
    batch: ids.batch,
    context: ids.tokens,
    seed,
    engine: info,
    selfCheck,
    passedOver,
    memory: {
      need,
      usableBytes: usable,
      predictedBytes: mode === 'streamed' ? null : ranNeed.totalBytes,
      peakBytes: context.peakBytes ?? peakBytes(),
      startBytes,
    },
    checks: results,
    passed: results.every(({ verdict }) => verdict !== 'failed'),
  };
  return { test, output };
}

/** The cache is checked on the last tokens of a sequence, after a prompt. */
function refuseLongOutput({ model, outputTokens }: QuickTestRequest, { tokens }: InputSize): void {
  if (outputTokens === undefined || outputTokens < tokens) return;
  throw usageError(
    `${setting('outputTokens')}: expected fewer than the ${counted(tokens, 'token')} of a sequence, found ${outputTokens}`,
    moreTokens(model.positions, tokens, outputTokens),
  );
}

function quantizedOf(model: LanguageModel, form: WeightForm | undefined): QuantizedWeights | null {
  if (form === undefined) return null;
  const tensors = [...quantizedMatrices(model).keys()];
  const elements = parameterElements(tensors);
  const otherElements = parameterElements(neededTensors(model)) - elements;
  return { ...form, tensors: tensors.length, elements, otherElements };
}

const openInFloat32 = async (
  way: Pick<EngineRequest, 'engine' | 'device'>,
  threads: number,
): Promise<Engine> => (await chooseEngine({ ...way, compute: 'f32', threads })).engine;

/** Whether TensorFlow.js, which holds the scores of one head at a time, has enough memory. */
const fitsOther = (
  needs: typeof memoryNeed,
  model: LanguageModel,
  size: InputSize,
  name: EngineName,
): boolean =>
  name !== 'tfjs' &&
  fitsInMemory(needs(model, size, { name: 'tfjs' }), usableBytes({ provider: 'wasm' }));

function tooLarge(model: LanguageModel, isFitting: boolean): TooLarge | undefined {
  if (!isFitting) return 'memory';
  return ownedTensors(model).length > MOST_TENSORS ? 'tensors' : undefined;
}

/** Error for a request to save the output of a proxy: it is not the output of the model. */
const savesProxy = (reason: TooLarge, { totalBytes }: MemoryNeed, usable: number) =>
  usageError(
    reason === 'tensors'
      ? `${setting('save')} requires the model itself, and a model runs as a whole up to ${formatInteger(MOST_TENSORS)} tensors`
      : `${setting('save')} requires the model itself, which needs more than ${gigabytes(totalBytes)}; ${gigabytes(usable)} is available`,
    `add ${setting('full')}, which runs the model itself layer by layer`,
  );

/** The given ids, or random ones: the smaller vocabulary of a proxy may not contain the given ids. */
function idsFor({ ids, seed }: QuickTestRequest, size: InputSize, model: LanguageModel): TokenIds {
  const limits = idLimitsOf(model);
  if (!ids) return randomIds(seed, 'ids', size, limits);
  return { ...ids, data: ids.data.map((id) => id % limits.vocabulary) };
}

type Tested = Pick<QuickTestRun, 'output'> & { readonly results: readonly CheckResult[] };

async function atOnce(
  context: TestContext,
  { checks, keepsOutput, watch }: QuickTestRequest,
): Promise<Tested> {
  const results: CheckResult[] = [];
  try {
    for (const [index, check] of checks.entries()) {
      watch(`[${index + 1}/${checks.length}] ${check}`);
      results.push(await runCheck(check, context));
    }
    return { results, output: keepsOutput ? await context.base() : undefined };
  } finally {
    await context.unload();
  }
}

async function streamed(
  context: TestContext,
  { checks, keepsOutput, watch }: QuickTestRequest,
  roomFor: (rows: number) => boolean,
): Promise<Tested> {
  return streamedTest(context, {
    checks,
    roomFor,
    keepsBlocks: keepsOutput,
    watch: (layer) => watch(`running ${layer}`),
  });
}

/**
 * Writes `logits` [B, T, V], and every block's output `hidden.{i}` [B, T, H], atomically.
 * @param force Whether to replace an existing file.
 * @throws UserError when the file cannot be written.
 */
export async function saveOutput(
  file: string,
  force: boolean,
  { output, blocks }: Pick<RunOutput, 'output' | 'blocks'>,
): Promise<void> {
  const hidden = [...blocks.values()].map((value, index) => toWrite(`hidden.${index}`, value));
  await refuseUnwritable(file, force);
  refuseOtherEnding(setting('save'), file, ['.safetensors']);
  await writeWhole(file, force, (sink) =>
    writeSafetensors(sink, [toWrite('logits', output), ...hidden]),
  );
}

const toWrite = (name: string, { shape, data }: Values): TensorToWrite => ({
  name,
  dtype: 'F32',
  shape,
  chunks: () => [new Uint8Array(data.buffer, data.byteOffset, data.byteLength)],
});

/** Runs one check on a model that fits into memory. An error that affects only this check becomes its finding. */
export async function runCheck(name: CheckName, context: TestContext): Promise<CheckResult> {
  const start = performance.now();
  const finding = await findingOf(name, context);
  return { check: name, ...finding, seconds: (performance.now() - start) / 1000 };
}

async function findingOf(name: CheckName, context: TestContext): Promise<CheckFinding> {
  const { needs, load } = QUICK_TEST_CHECKS[name];
  try {
    const wrong =
      needs === 'finite logits' ? notComparable((await context.base()).output) : undefined;
    return wrong ?? (await (await load())(context));
  } catch (error) {
    if (!(error instanceof UserError) || endsAll(error)) throw error;
    return cannotRun(error);
  }
}

const cannotRun = ({ message, suggestion }: UserError): CheckFinding => ({
  verdict: 'failed',
  finding: `it could not run: ${message}`,
  remarks: suggestion === undefined ? [] : [suggestion],
});
