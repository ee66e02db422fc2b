/** Answers of the commands about a model and a setting: the same results as their JSON. */
import { type Problem, problemsOf, UserError } from '../base/errors.js';
import { parseDtype } from '../base/tensor/dtype.js';
import { isRecord } from '../base/text/words.js';
import { type FitFlags, fitRequestOf } from '../cli/flags/fit-flags.js';
import { parseDocument } from '../config/document.js';
import type { FitResult } from '../estimate/fit/fits.js';
import { fitsOf } from '../estimate/fit/fits.js';
import {
  inferenceIn,
  memoryOnGpu,
  servedFormat,
  storedWeightFormat,
} from '../estimate/fit/model-memory.js';
import { parallelismOf } from '../estimate/fit/parallelism/parallelism.js';
import { unmetRequirementsOf } from '../estimate/fit/remedies/remedies.js';
import { servedParameters, weightLayout } from '../estimate/fit/serving/quantized.js';
import { servingMemoryOf } from '../estimate/fit/serving/serving-memory.js';
import { parseWeightDtype, usualFormat } from '../estimate/fit/serving/weight-types.js';
import { memoryOf } from '../estimate/hardware/gpu.js';
import { clusterNamed } from '../estimate/hardware/gpus.js';
import { mistakeProblems } from '../estimate/training/plan-training.js';
import { type LocatedModelFile, modelOf } from '../input/model-input/model-file.js';
import { type Dimensions, jsonSchemaOf } from '../model/architecture/family.js';
import { lastTokensFlopsOf } from '../model/budget/flops.js';
import { countParameters } from '../model/budget/parameters.js';
import { profileModel, resolveSetting } from '../model/budget/profile-model.js';
import { storedWeights } from '../model/quantization/stored-weights.js';
import type { ProfileResult, ValidationResult } from '../report/command-results.js';
import { fitReport } from '../report/fit/fit-report.js';
import { type ErrorJson, errorJson } from '../report/kit/error-json.js';
import type { Report } from '../report/kit/report.js';
import { profileReport } from '../report/profile/profile-report.js';
import { fitLine } from './command-lines.js';
import {
  type ExploredModel,
  type ExplorerSetting,
  profileDtype,
  USUAL_GPU,
} from './explorer-state.js';

/** The answer of a command, with the warnings that its JSON has; an error if it fails. */
export type Answered<Result> = (Result & { readonly warnings?: readonly Problem[] }) | ErrorJson;

/** Parts of a described model that the controls show. */
export interface DescribedModel {
  readonly family: string;
  /** JSON Schema of the family's documents. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly dimensions: Dimensions | undefined;
  /** The checked document, with defaults. */
  readonly document: Readonly<Record<string, unknown>>;
  /** Longest input of the model. */
  readonly positions: number;
}

/** The answers that follow at once from a text. */
export interface ModelAnswers {
  /** `minimind validate` */
  readonly validation: Answered<ValidationResult>;
  /** Errors and warnings, with their lines. */
  readonly problems: readonly Problem[];
  /** Undefined for an invalid text. */
  readonly described: DescribedModel | undefined;
  /** `minimind profile`; undefined for an invalid text. */
  readonly profile: Answered<ProfileResult> | undefined;
  /** The same for people. */
  readonly report: Report | undefined;
}

/** Serving memory of one GPU at a context. */
export interface MemoryPoint {
  readonly context: number;
  readonly lower: number;
  readonly expected: number;
  readonly upper: number;
}

/** Answers about hardware, which take longer. */
export interface FitAnswers {
  /** `minimind fit` */
  readonly fit: Answered<FitResult>;
  /** The same for people; undefined for an error. */
  readonly report: Report | undefined;
  /** Memory at growing contexts; empty where nothing is served. */
  readonly memory: readonly MemoryPoint[];
}

/** @throws only for a bug. */
export async function modelAnswers(
  model: ExploredModel,
  setting: ExplorerSetting,
): Promise<ModelAnswers> {
  let loaded: LocatedModelFile;
  try {
    loaded = await loadedModel(model);
  } catch (error) {
    const validation = errorAnswer(error);
    return {
      validation,
      problems: error instanceof UserError ? problemsOf(error, model.name) : [],
      described: undefined,
      profile: undefined,
      report: undefined,
    };
  }
  const validation = validationOf(loaded);
  const { family, document } = loaded;
  const profile = answered(() => profileOf(loaded, setting));
  return {
    validation,
    problems: validation.warnings ?? [],
    described: {
      family: family.name,
      schema: jsonSchemaOf(family),
      dimensions: family.dimensions,
      document: document as unknown as DescribedModel['document'],
      positions: loaded.model.positions,
    },
    profile,
    report: 'checks' in profile ? profileReport(profile, PLAIN_REPORT) : undefined,
  };
}

/** @throws only for a bug. */
export async function fitAnswers(
  model: ExploredModel,
  setting: ExplorerSetting,
): Promise<FitAnswers | undefined> {
  let loaded: LocatedModelFile;
  try {
    loaded = await loadedModel(model);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
  const fit = answered(() => fitOf(loaded, setting));
  if (!('serving' in fit)) return { fit, report: undefined, memory: [] };
  const argv = fitLine(model, setting).split(' ').slice(2);
  return {
    fit,
    report: fitReport(fit, { explain: false, argv }),
    memory: memoryByContext(loaded, fit),
  };
}

const PLAIN_REPORT = { explain: false, flat: false, modelWords: [] };

const loadedModel = ({ name, text }: ExploredModel): Promise<LocatedModelFile> =>
  modelOf(parseDocument(text, name));

function answered<Result extends object>(compute: () => Answered<Result>): Answered<Result> {
  try {
    return compute();
  } catch (error) {
    return errorAnswer(error);
  }
}

function errorAnswer(error: unknown): ErrorJson {
  if (!(error instanceof UserError)) throw error;
  return errorJson(error);
}

const withWarnings = <Result extends object>(result: Result, warnings: readonly Problem[]) =>
  warnings.length === 0 ? result : { ...result, warnings };

function validationOf(loaded: LocatedModelFile) {
  const { document } = loaded;
  const hasTraining = isRecord(document) && isRecord(document.training);
  const warnings = [...loaded.warnings, ...(hasTraining ? mistakeProblems(loaded) : [])];
  const file = {
    file: loaded.file,
    valid: true as const,
    family: loaded.family.name,
    parameters: countParameters(loaded.model).parameters,
    warnings,
  };
  const result: ValidationResult = { schema: 'minimind/validate@1', files: [file] };
  return withWarnings(result, warnings) as Exclude<Answered<ValidationResult>, ErrorJson>;
}

function profileOf(loaded: LocatedModelFile, asked: ExplorerSetting): Answered<ProfileResult> {
  const { file, family, document, model, quantization } = loaded;
  const dtype = profileDtype(asked);
  const setting = resolveSetting(
    {
      batch: asked.batch,
      context: asked.context,
      dtype: dtype ?? 'bf16',
      cacheDtype: asked.cacheDtype === undefined ? undefined : parseDtype(asked.cacheDtype),
      causal: false,
      optimizer: 'adamw',
    },
    family.trainingHints?.(document) ?? {},
    model.positions,
  );
  const format = servedFormat(dtype, storedWeightFormat(loaded));
  const counted = profileModel(model, setting);
  const generation = lastTokensFlopsOf(model, setting.inference.context);
  const result: ProfileResult = {
    schema: 'minimind/profile@1',
    file,
    family: family.name,
    setting,
    layerCount: model.blocks.length,
    ...counted,
    inference: inferenceIn(model, format, counted.inference),
    ...(format && { weights: format, onGpu: memoryOnGpu(model, setting, format) }),
    ...(generation && { generation }),
    served: (['int8', 'int4'] as const).map((each) => ({
      dtype: each,
      bytes: servedParameters(model, usualFormat(each)),
    })),
    ...(quantization && { stored: storedWeights(model, quantization) }),
    checks: [],
  };
  return withWarnings(result, loaded.warnings);
}

function fitOf(loaded: LocatedModelFile, asked: ExplorerSetting): Answered<FitResult> {
  const { model, file, family } = loaded;
  const cluster = clusterNamed(asked.gpu ?? USUAL_GPU, asked.gpus, { gpus: [], machines: [] });
  const flags = fitFlagsOf(asked);
  const fits = fitsOf(model, fitRequestOf(loaded, cluster, flags));
  const result: FitResult = {
    schema: 'minimind/fit@1',
    file,
    family: family.name,
    parameters: countParameters(model).parameters,
    cluster,
    memory: memoryOf(cluster.gpu),
    profile: null,
    ...fits,
    doubts: unmetRequirementsOf({ cluster, ...fits }),
    forward: null,
  };
  if (fits.training) parallelismOf(model, fits.training.setting);
  return withWarnings(result, loaded.warnings);
}

function fitFlagsOf(asked: ExplorerSetting): FitFlags {
  return {
    optimizer: 'adamw',
    attention: 'fused',
    loss: 'full',
    convention: 'zero',
    batch: asked.batch,
    context: asked.context,
    users: asked.users,
    dtype: asked.dtype === undefined ? undefined : parseWeightDtype(asked.dtype),
    'cache-dtype': asked.cacheDtype === undefined ? undefined : parseDtype(asked.cacheDtype),
    'micro-batch': asked.microBatch,
    'train-tokens': asked.trainTokens,
  } as unknown as FitFlags;
}

/** Shortest context of the curve. */
const SHORTEST = 256;

function memoryByContext({ model }: LocatedModelFile, { serving, cluster }: FitResult) {
  if (serving === null) return [];
  const { setting } = serving;
  const served = { model, form: setting, layout: weightLayout(model) };
  const memoryAt = servingMemoryOf(served, cluster.gpu);
  return contextsTo(model.positions, setting.context).map((context): MemoryPoint => {
    const { lower, expected, upper } = memoryAt(setting.batch, context).total;
    return {
      context,
      lower: Number(lower.value),
      expected: Number(expected.value),
      upper: Number(upper.value),
    };
  });
}

/** Powers of two, the longest context and the one that is asked for. */
function contextsTo(longest: number, asked: number): number[] {
  const contexts = new Set([asked]);
  const most = Math.min(longest, LONGEST);
  for (let context = Math.min(SHORTEST, most); context < most; context *= 2) contexts.add(context);
  contexts.add(most);
  return [...contexts].sort((a, b) => a - b);
}

/** Longest context of the curve: some models have no limit. */
const LONGEST = 2 ** 20;
