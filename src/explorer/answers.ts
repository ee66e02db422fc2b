/** Answers of the commands about a model and a setting: the same results as their JSON. */
import { type Problem, problemsOf, UserError } from '../base/errors.js';
import { parseDtype } from '../base/tensor/dtype.js';
import { shortened } from '../base/text/words.js';
import type { FitResult } from '../estimate/fit/fits.js';
import { weightLayout } from '../estimate/fit/serving/quantized.js';
import { servingMemoryOf } from '../estimate/fit/serving/serving-memory.js';
import { parseWeightDtype } from '../estimate/fit/serving/weight-types.js';
import { USUAL_GPU } from '../estimate/hardware/gpu.js';
import { type AnswerNotes, withNotes } from '../library/answer.js';
import { fit as fitModel, fitOn, namedHardware } from '../library/fit.js';
import {
  type DescribedModel as Described,
  describeModel,
} from '../library/models/describe-model.js';
import { profile } from '../library/profile.js';
import { validationOf, withTrainingMistakes } from '../library/validate/validate.js';
import {
  type Dimensions,
  type Family,
  type FamilyDocument,
  jsonSchemaOf,
} from '../model/architecture/family.js';
import { tensorInventory } from '../model/budget/profile-model.js';
import type { ProfileResult, ValidationResult } from '../report/command-results.js';
import { fitReport } from '../report/fit/fit-report.js';
import { type ErrorJson, errorJson, MOST_MESSAGE } from '../report/kit/error-json.js';
import type { Report } from '../report/kit/report.js';
import { profileReport } from '../report/profile/profile-report.js';
import { fitLine } from './command-lines.js';
import { type ExploredModel, type ExplorerSetting, profileDtype } from './explorer-state.js';

/** The answer of a command, with the warnings that its JSON has; an error if it fails. */
export type Answered<Result> = (Result & AnswerNotes) | ErrorJson;

/** Parts of a described model that the controls show. */
export interface DescribedModel {
  readonly family: string;
  /** JSON Schema of the family's documents. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly dimensions: Dimensions | undefined;
  /** The checked document, with defaults. */
  readonly document: FamilyDocument;
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

/** Answers about hardware that a page shows, which take longer. */
export interface FitAnswers {
  /** `minimind fit` without the proposals that only its details show: looking for them takes most of the time. */
  readonly fit: FitResult | ErrorJson;
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
  let loaded: Described;
  try {
    loaded = await describe(model);
  } catch (error) {
    const validation = errorAnswer(error);
    const problems = error instanceof UserError ? problemsOf(error, model.name) : [];
    return { validation, problems, described: undefined, profile: undefined, report: undefined };
  }
  const checked = await withTrainingMistakes(loaded);
  const answer = answered(() => profile(loaded, profileOptions(setting)));
  const { family, document } = loaded;
  return {
    validation: withNotes(validationOf([checked]), checked),
    problems: checked.warnings,
    described: {
      family: family.name,
      schema: schemaOf(family),
      dimensions: family.dimensions,
      document,
      positions: loaded.model.positions,
    },
    profile: answer,
    report:
      'checks' in answer
        ? profileReport(answer, {
            ...PLAIN_REPORT,
            allTensors: () => tensorInventory(loaded.model),
          })
        : undefined,
  };
}

const schemas = new Map<string, DescribedModel['schema']>();

/** The schema of a family, made once: each edit asks for it. */
function schemaOf(family: Family): DescribedModel['schema'] {
  const schema = schemas.get(family.name) ?? jsonSchemaOf(family);
  schemas.set(family.name, schema);
  return schema;
}

const PLAIN_REPORT = { explain: false, flat: false, modelWords: [] };

/** Result of `minimind fit --json`; undefined for an invalid text. @throws only for a bug. */
export async function fitAnswer(
  model: ExploredModel,
  setting: ExplorerSetting,
): Promise<Answered<FitResult> | undefined> {
  const loaded = await describeValid(model);
  return loaded && answered(() => fitModel(loaded, fitOptions(setting)));
}

/** The parts of this result that a page shows; undefined for an invalid text. @throws only for a bug. */
export async function fitAnswers(
  model: ExploredModel,
  setting: ExplorerSetting,
): Promise<FitAnswers | undefined> {
  const loaded = await describeValid(model);
  if (loaded === undefined) return undefined;
  const options = fitOptions(setting);
  const answer = answered(
    () => fitOn(loaded, namedHardware(options), options, { isBrief: true }).result,
  );
  if (!('serving' in answer)) return { fit: answer, report: undefined, memory: [] };
  const argv = fitLine(model, setting).split(' ').slice(2);
  return {
    fit: answer,
    report: fitReport(answer, { explain: false, argv }),
    memory: memoryByContext(loaded, answer),
  };
}

const describe = ({ name, text }: ExploredModel): Promise<Described> =>
  describeModel(text, { file: name });

/** Undefined for an invalid text. */
const describeValid = (model: ExploredModel): Promise<Described | undefined> =>
  describe(model).catch((error) => {
    if (error instanceof UserError) return undefined;
    throw error;
  });

/** The answer, or the error that the user can fix. */
function answered<Result extends object>(compute: () => Result): Result | ErrorJson {
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

/** Error of minimind itself, which a page shows in place of an answer. */
export const bugAnswer = (error: unknown): ErrorJson => ({
  schema: 'minimind/error@1',
  code: 'bug',
  message: `This is a bug in minimind: ${shortened(String(error), MOST_MESSAGE)}`,
  problems: [],
});

const profileOptions = (setting: ExplorerSetting) => ({
  batch: setting.batch,
  context: setting.context,
  dtype: profileDtype(setting),
  cacheDtype: cacheDtypeOf(setting),
});

const fitOptions = ({ gpu = USUAL_GPU, dtype, ...setting }: ExplorerSetting) => ({
  ...setting,
  gpu,
  dtype: dtype === undefined ? undefined : parseWeightDtype(dtype),
  cacheDtype: cacheDtypeOf(setting),
});

const cacheDtypeOf = ({ cacheDtype }: ExplorerSetting) =>
  cacheDtype === undefined ? undefined : parseDtype(cacheDtype);

/** Shortest context of the curve. */
const SHORTEST = 256;

function memoryByContext({ model }: Described, { serving, cluster }: FitResult) {
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
