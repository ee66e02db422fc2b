/** Plans models within a budget: the Pareto set of a family, best first. */

import { type UserError, usageError } from '../../base/errors.js';
import { commandText, setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { joined } from '../../base/text/words.js';
import { documentText } from '../../config/document.js';
import type { Family } from '../../model/architecture/family.js';
import type { Bounds, Exact, Figure, Quantity } from '../../model/budget/figure.js';
import { componentSums, countParameters } from '../../model/budget/parameters.js';
import { inferenceMemoryOf } from '../../model/budget/profile-model.js';
import type { StateSetting } from '../../model/budget/state.js';
import { inferenceIn, servedFormat } from '../fit/model-memory.js';
import type { Shares } from './allocation.js';
import { ALLOCATION_RULE, allocatedSizes, sharesOf } from './allocation.js';
import type { Criterion, CriterionName, Measures, ParetoAxis } from './criteria.js';
import {
  axesFor,
  balancedDepth,
  CRITERIA,
  inOrder,
  offBalance,
  paretoSet,
  widthPerLayer,
} from './criteria.js';
import { unfoldedModel } from './folding.js';
import type {
  DecodingTarget,
  MeasuredModel,
  NearestModel,
  Searching,
  SearchRequest,
  SearchResult,
} from './search.js';
import { isWithin, search, searchedHere } from './search.js';
import type { SizeRange, Sizes, SpaceRequest } from './space.js';
import { ModelSpace } from './space.js';

/** @throws UserError when the plan has no such row. */
export function rowDocument({ rows, family, limits, inference }: Plan, place: number): string {
  const row = rows[place - 1];
  if (row === undefined) {
    throw usageError(
      `${setting('row')}: expected 1 to ${rows.length}, found ${place}`,
      `write a row of the table, or show more rows with ${setting('top')}`,
    );
  }
  const { parameters, memory, document } = row;
  const comments = [
    `A ${family} model of ${digitGroups(parameters.value)} parameters, planned for at most ${digitGroups(limits.maxParameters)}.`,
    `Inference takes ${digitGroups(memory.value)} bytes at ${inference.batch} × ${inference.context} tokens in ${inference.dtype}.`,
    `Completion in an editor: ${commandText('schema', [family])} -o ${family}.schema.json`,
    `yaml-language-server: $schema=./${family}.schema.json`,
  ];
  return `${comments.map((line) => `# ${line}\n`).join('')}${documentText(document)}`;
}

export interface PlanRequest
  extends Omit<SpaceRequest, 'context'>,
    Pick<SearchRequest, 'decode' | 'onSearched'> {
  /** Multiple of the feed-forward width; default: 64. */
  readonly align?: 64 | 128 | undefined;
  readonly inference: StateSetting;
  /** Name of the GPU of `decode`. */
  readonly gpu?: string | undefined;
  /** Text about figures that `decode` leaves out. */
  readonly withoutPeak?: string | null | undefined;
  readonly maxParameters: Exact;
  /** Default: 95 % of the maximum, or of the largest model below it. */
  readonly minParameters?: Exact | undefined;
  /** Bytes of inference. */
  readonly maxMemory?: Exact | undefined;
  readonly depth?: SizeRange | undefined;
  readonly width?: SizeRange | undefined;
  readonly headDims?: readonly number[] | undefined;
  readonly sort: CriterionName;
  /** Number of rows. */
  readonly top: number;
}

export interface PlanRow {
  /** Rank in the Pareto set by the criterion, from 1. @count */
  readonly place: number;
  readonly sizes: Sizes;
  /** Config as a user would write it. */
  readonly document: Readonly<Record<string, unknown>>;
  readonly parameters: Figure;
  readonly body: Figure;
  readonly weights: Figure;
  readonly keyValueCache: Figure;
  /** State with those of Mamba and of convolutions. */
  readonly state: Figure;
  readonly memory: Figure;
  /** Tokens per second of all sequences together; null without a GPU, or if the model does not fit on it. */
  readonly decode: Bounds | null;
  /** Reason why the model does not fit; null if it fits, or without a GPU. */
  readonly misfit: string | null;
  readonly widthPerLayer: Quantity;
  readonly balancedDepth: Quantity;
  readonly offBalance: Quantity;
}

export interface Plan {
  /** Family of the models. */
  readonly family: string;
  /** Settings of memory and speed. */
  readonly inference: StateSetting;
  /** Name of the GPU; null if none is given. */
  readonly gpu: string | null;
  /** Usable GPU memory; null if no GPU is given. */
  readonly gpuMemory: Quantity | null;
  /** Text about figures left out without a published peak; null if there is one. */
  readonly withoutPeak: string | null;
  /** Limits of the search. */
  readonly limits: {
    readonly minParameters: Exact;
    readonly maxParameters: Exact;
    /** Limit of the memory; null without one. */
    readonly maxMemory: Exact | null;
  };
  /** Divisor of the widths of feed-forward layers. */
  readonly align: 64 | 128;
  /** Criterion by which models are sorted. */
  readonly criterion: Criterion & {
    /** Name of the criterion. */
    readonly name: CriterionName;
  };
  /** Axes of the Pareto set: no other model is at least as good on all of them. */
  readonly axes: readonly ParetoAxis[];
  /** Number of compared models within the budget, and of those in the Pareto set. @integer @minimum 1 */
  readonly compared: number;
  /** Number of Pareto-optimal models. @integer @minimum 1 */
  readonly pareto: number;
  /** Best models, in order. */
  readonly rows: readonly PlanRow[];
  /** Best model of each width by the criterion, from deep and thin to shallow and wide. */
  readonly spectrum: readonly PlanRow[];
  /** Model of a rule of shares beside the best; null where the rule has none. */
  readonly allocation: Allocation | null;
}

/** A model by a rule of shares, and the best model. @closed */
export interface Allocation {
  /** Shares that the rule asks for. */
  readonly rule: Shares;
  /** The nearest model within the budget, outside the ranking: its place is 0. */
  readonly row: PlanRow;
  readonly shares: Shares;
  /** Shares of the best model. */
  readonly best: Shares;
}

const DEFAULT_DEPTHS: SizeRange = { least: 2, most: 128 };
const DEFAULT_WIDTHS: SizeRange = { least: 64, most: 65_536 };
const DEFAULT_ALIGN = 64;

/**
 * Searches a family for the best models within a budget. Each returned model is a valid document.
 * @throws UserError when there is none, with the nearest ones, or when an override is wrong.
 */
export const planModels = (family: Family, request: PlanRequest): Plan =>
  searchedHere(planning(family, request));

/** The steps of `planModels`. */
export function* planning(family: Family, request: PlanRequest): Searching<Plan> {
  if (!family.dimensions) throw withoutDimensions(family);
  if (CRITERIA[request.sort].measure === 'decode' && !request.decode) throw withoutGpu();
  const space = spaceOf(family, request);
  // If folding gives wrong figures for a shown model, repeat without folding.
  return (
    (yield* planWith(space, request, true)) ?? ((yield* planWith(space, request, false)) as Plan)
  );
}

/** Plan, or undefined if the figures of a shown model differ from the measured ones. */
function* planWith(
  space: ModelSpace,
  request: PlanRequest,
  isFolded: boolean,
): Searching<Plan | undefined> {
  const { family } = space;
  const { inference } = request;
  const { limits, result } = yield* searchWithin(space, request, isFolded);
  if (result.found.length === 0) throw nothingFound(family, result, limits);
  const criterion: Criterion = CRITERIA[request.sort];
  const axes = axesFor(criterion).filter(({ measure }) => request.decode || measure !== 'decode');
  const best = paretoSet(inOrder(result.found, criterion), axes);
  const ranks = new Map(best.map((found, index) => [found, index + 1]));
  const rows = new Map<MeasuredModel, PlanRow>();
  const first = best.slice(0, request.top);
  const spectrum = bestOfEachWidth(best);
  for (const found of new Set([...first, ...spectrum])) {
    const row = describeRow(space, request, found, ranks.get(found) ?? 0);
    if (!row || (isFolded && !isAsMeasured(row, found.measures))) return undefined;
    rows.set(found, row);
  }
  const rowOf = (found: MeasuredModel) => rows.get(found) as PlanRow;
  return {
    family: family.name,
    inference,
    gpu: request.gpu ?? null,
    gpuMemory: request.decode?.capacity ?? null,
    withoutPeak: request.withoutPeak ?? null,
    limits,
    align: request.align ?? DEFAULT_ALIGN,
    criterion: { name: request.sort, ...criterion },
    axes,
    compared: result.found.length,
    pareto: best.length,
    rows: first.map(rowOf),
    spectrum: spectrum.map(rowOf),
    allocation: allocationOf(space, request, best[0]),
  };
}

function allocationOf(
  space: ModelSpace,
  request: PlanRequest,
  best: MeasuredModel | undefined,
): Allocation | null {
  const sizes = allocatedSizes(space, {
    ...request,
    align: request.align ?? DEFAULT_ALIGN,
    maxParameters: Number(request.maxParameters),
    depth: request.depth ?? DEFAULT_DEPTHS,
    width: request.width ?? DEFAULT_WIDTHS,
    headDims: request.headDims,
  });
  const row = sizes && describeRow(space, request, { sizes }, 0);
  const [model, bestModel] = [sizes && space.model(sizes), best && space.model(best.sizes)];
  if (!row || !model || !bestModel) return null;
  return { rule: ALLOCATION_RULE, row, shares: sharesOf(model), best: sharesOf(bestModel) };
}

const withoutGpu = () =>
  usageError(
    `${setting('sort', 'decode')} requires ${setting('gpu')}`,
    `write a GPU, as in ${setting('gpu', 'h100-80gb')}`,
  );

interface Searched {
  readonly limits: Plan['limits'];
  readonly result: SearchResult;
}

/** Search within the limits. Without a lower limit, and without models near the maximum, searches near the largest. */
function* searchWithin(
  space: ModelSpace,
  request: PlanRequest,
  isFolded: boolean,
): Searching<Searched> {
  const limits = planLimits(request);
  function* within(minParameters: Exact): Searching<Searched> {
    const searched = { ...searchRequest(request), isFolded, minParameters: Number(minParameters) };
    return { limits: { ...limits, minParameters }, result: yield* search(space, searched) };
  }
  const searched = yield* within(limits.minParameters);
  const { largest, leanest } = searched.result;
  const isFar = request.minParameters === undefined && leanest === undefined;
  return isFar && largest ? yield* within(defaultMinimum(largest.value)) : searched;
}

/** The first search of a plan. @throws UserError for limits that contradict each other. */
export function searchRequest(request: PlanRequest): SearchRequest {
  const { minParameters, maxParameters, maxMemory } = planLimits(request);
  return {
    ...request,
    align: request.align ?? DEFAULT_ALIGN,
    isFolded: true,
    depth: request.depth ?? DEFAULT_DEPTHS,
    width: request.width ?? DEFAULT_WIDTHS,
    headDims: request.headDims,
    minParameters: Number(minParameters),
    maxParameters: Number(maxParameters),
    maxMemory: Number(maxMemory ?? Number.POSITIVE_INFINITY),
  };
}

/** The models of a family. @throws UserError when its sizes are not known, or an override is wrong. */
export function spaceOf(family: Family, request: PlanRequest): ModelSpace {
  const { dimensions } = family;
  if (!dimensions) throw withoutDimensions(family);
  const space = new ModelSpace(family, dimensions, {
    ...request,
    context: request.inference.context,
  });
  refuseContradictions(space, request);
  return space;
}

/** @throws UserError when a size that --set fixes is not one of those to search: nothing would be left to do. */
function refuseContradictions(space: ModelSpace, request: PlanRequest): void {
  const { depth, width, headDims, vocabulary, align } = request;
  const { dimensions } = space;
  const range = (name: 'depth' | 'width', size: SizeRange | undefined) =>
    size && {
      allows: (value: number) => value >= size.least && value <= size.most,
      text: setting(name, `${size.least}..${size.most}`),
    };
  const contradictions = [
    { key: dimensions.depth, other: range('depth', depth) },
    { key: dimensions.width, other: range('width', width) },
    {
      key: dimensions.headDim?.[0] ?? 'head_dim',
      other: headDims && {
        allows: (value: number) => headDims.includes(value),
        text: setting('headDim', headDims.join(',')),
      },
    },
    {
      key: dimensions.feedForward?.key,
      other: align && {
        allows: (value: number) => value % align === 0,
        text: setting('align', align),
      },
    },
    {
      key: dimensions.vocabulary,
      other: vocabulary && {
        allows: (value: number) => value === vocabulary,
        text: `a vocabulary of ${vocabulary}`,
      },
    },
  ].flatMap(({ key, other }) => {
    const fixed = space.fixed(key);
    return fixed === undefined || !other || other.allows(fixed)
      ? []
      : [`${setting('set', `model.${key}=${fixed}`)} and ${other.text}`];
  });
  if (contradictions.length === 0) return;
  throw usageError(
    `contradicting sizes: ${joined(contradictions)}`,
    `write only one of them: a size of ${setting('set')} is fixed`,
  );
}

function withoutDimensions({ name }: Family): UserError {
  return usageError(
    `${setting('family')}: ${name} has no table of sizes to search`,
    `plan another family, or compare its models with ${commandText('compare')} ${setting('set')}`,
  );
}

function planLimits(request: PlanRequest): Plan['limits'] {
  const {
    maxParameters,
    minParameters = defaultMinimum(maxParameters),
    maxMemory = null,
  } = request;
  if (minParameters > maxParameters) {
    throw usageError(
      `${setting('minParameters')}: expected at most ${setting('maxParameters')} (${formatInteger(maxParameters)}), found ${formatInteger(minParameters)}`,
      'write fewer, or leave it out',
    );
  }
  return { minParameters, maxParameters, maxMemory };
}

/**
 * Lower limit for models of about equal size: 5 % more parameters lower the loss by 0.4 %, with the exponent 0.076 of
 * arXiv 2001.08361.
 */
const defaultMinimum = (value: Exact): Exact =>
  typeof value === 'bigint' ? (value * 19n) / 20n : Math.floor((value * 19) / 20);

/** Best model of each width, thinnest first. */
const bestOfEachWidth = (best: readonly MeasuredModel[]): MeasuredModel[] =>
  [...new Map(best.toReversed().map((each) => [each.sizes.width, each])).values()].toSorted(
    (a, b) => a.measures.widthPerLayer - b.measures.widthPerLayer,
  );

/** Row of a found model; undefined if the model is invalid. */
function describeRow(
  space: ModelSpace,
  { inference, decode }: PlanRequest,
  { sizes }: Pick<MeasuredModel, 'sizes'>,
  place: number,
): PlanRow | undefined {
  const model = space.model(sizes);
  if (!model) return undefined;
  const { byComponent, buffers } = countParameters(model);
  const parameters = componentSums(byComponent);
  const { weights, state, total } = inferenceIn(
    model,
    servedFormat(inference.dtype, undefined),
    inferenceMemoryOf(model, { ...parameters, buffers: { value: buffers } }, inference),
  );
  const misfit = decode && !isWithin(total.value, decode) ? misfitText(total, decode) : null;
  return {
    place,
    sizes,
    document: space.document(sizes),
    parameters: parameters.total,
    body: parameters.body,
    weights,
    keyValueCache: state.keyValueCache,
    state: state.total,
    memory: total,
    decode: decode && misfit === null ? decode.rates(unfoldedModel(model)) : null,
    misfit,
    widthPerLayer: widthPerLayer(sizes),
    balancedDepth: balancedDepth(sizes.width),
    offBalance: offBalance(sizes),
  };
}

const isAsMeasured = ({ parameters, body, memory, decode }: PlanRow, measures: Measures) =>
  Number(parameters.value) === measures.parameters &&
  Number(body.value) === measures.body &&
  // Beyond 2^53 bytes, sums of doubles are rounded.
  Math.abs(Number(memory.value) - measures.memory) <= 1e-12 * measures.memory &&
  Math.abs((decode?.expected.value ?? 0) - (measures.decode ?? 0)) <= 1e-9 * (measures.decode ?? 1);

const misfitText = ({ value }: Figure, { capacity }: DecodingTarget) =>
  `${digitGroups(value)} bytes do not fit in the ${digitGroups(capacity.value)} bytes of the GPU`;

// Errors of a search without results.

interface Nearest {
  readonly smallest: NearestModel | undefined;
  readonly largest: NearestModel | undefined;
  readonly leanest: NearestModel | undefined;
}

function nothingFound(
  { name }: Family,
  { smallest, largest, leanest }: Nearest,
  { minParameters, maxParameters, maxMemory }: Plan['limits'],
): UserError {
  if (!smallest) {
    return usageError(
      `no ${name} model in the range: its heads must divide its width`,
      `write a ${setting('width')} range that contains a multiple of 64, or another ${setting('headDim')}`,
    );
  }
  if (leanest && maxMemory !== null) {
    return usageError(
      `no ${name} model of ${digitGroups(minParameters)} to ${digitGroups(maxParameters)} parameters needs at most ` +
        `${digitGroups(maxMemory)} bytes: the leanest needs ${digitGroups(leanest.value)}, ${shapeText(leanest.sizes)}`,
      `raise ${setting('maxMemory')} to ${leanest.value}, or lower ${setting('minParameters')} or ${setting('context')}`,
    );
  }
  if (!largest) {
    return usageError(
      `no ${name} model has at most ${digitGroups(maxParameters)} parameters: the smallest candidate has ` +
        `${digitGroups(smallest.value)}, ${shapeText(smallest.sizes)}`,
      Number.isFinite(smallest.value)
        ? `raise ${setting('maxParameters')} to ${smallest.value}, or write a smaller ${setting('vocabulary')}`
        : `write a smaller ${setting('vocabulary')} or ${setting('context')}`,
    );
  }
  return usageError(
    `no ${name} model has ${digitGroups(minParameters)} to ${digitGroups(maxParameters)} parameters: the largest ` +
      `candidate below has ${digitGroups(largest.value)}, ${shapeText(largest.sizes)}`,
    `lower ${setting('minParameters')} to ${largest.value}, or widen ${setting('depth')} and ${setting('width')}`,
  );
}

const digitGroups = (value: Exact) =>
  value === Number.POSITIVE_INFINITY ? 'more than 2^53' : value.toLocaleString('en-US');

const shapeText = ({ depth, width }: Sizes) =>
  `with ${depth} ${depth === 1 ? 'layer' : 'layers'} of width ${width}`;
