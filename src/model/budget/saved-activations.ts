/**
 * Activations that a forward pass keeps for the backward pass, counted once per value from the original's
 * operations. Norm statistics and token ids are not counted; dropout masks only on request. Keys shared by query
 * heads are kept once.
 * Attention scores and scan states are those of the plain implementations; fused kernels and selective
 * recomputation avoid them. GPUs that share layers, and pipeline stages, each keep their part.
 */
import { exampleOf } from '../architecture/equal-blocks.js';
import type { Component, LanguageModel, Layer } from '../architecture/layer.js';
import { COMPONENTS } from '../architecture/layer.js';
import { memoized, memoizedBy, outputWidth } from '../architecture/walk.js';
import { lowerInTurn, primitivesOf } from '../operations/lower.js';
import type { OptionalPart, Primitive, Saved, Share, Vectors } from '../operations/primitive.js';
import { dropoutMask, withoutInput } from '../operations/primitive.js';
import type { Expression, Input, Operand } from './expression.js';
import { add, ceildiv, inputs, inputsOf, mul, sub, v } from './expression.js';
import type { Exact, Figure } from './figure.js';
import { exact, figure, sumFigure } from './figure.js';
import type { ActivationPart, ActivationSetting, StageRange } from './kernel-activations.js';
import {
  kernelsOf,
  OTHER_PARTS,
  scanFigure,
  scoreGradientsFigure,
  scoreProperties,
  scoresFigure,
  sequencesIn,
  softmaxSums,
  stageOf,
  tensorParallelism,
} from './kernel-activations.js';

interface PartBytes {
  readonly part: ActivationPart;
  readonly bytes: Figure;
}

export interface ActivationBudget {
  /** Saved values by component. */
  readonly parts: readonly PartBytes[];
  readonly total: Figure;
}

/** Peak activations of a training step on one device. */
export function activationsOf(model: LanguageModel, setting: ActivationSetting): ActivationBudget {
  const { from, to } = stageOf(model, setting);
  const hasLogits = to === model.blocks.length && setting.loss !== 'chunked';
  const hasBlocks = setting.recompute !== 'full' && setting.recompute !== 'operations';
  const kept = savedInStage(model, { from, to, hasBlocks, hasLogits });
  const parts = hasBlocks
    ? activationParts(kept, blocksBetween(model, { from, to }), setting)
    : [
        ...(setting.offloaded
          ? []
          : [{ part: 'blockInputs' as const, bytes: blockInputs(model, setting) }]),
        ...(setting.recompute === 'operations'
          ? [{ part: 'keptOutputs' as const, bytes: keptOutputs(model, setting) }]
          : []),
        { part: 'oneBlock' as const, bytes: largestBlock(model, setting) },
        ...activationParts(kept, [], setting),
      ];
  const loss = hasLogits ? [{ part: 'logits' as const, bytes: logits(model, setting) }] : [];
  const all = [...parts, ...loss];
  return { parts: all, total: sumOf('activations', all) };
}

const savedOf = (primitives: readonly Primitive[]): Saved[] =>
  primitives.flatMap(({ saved }) => saved);

/** Saved values of one part: equal vectors are one, with the number of layers that save it. */
interface SavedPart {
  readonly part: Saved['part'];
  readonly vectors: readonly Vectors[];
  readonly sources: ReadonlySet<string>;
  readonly layers: number;
}

/** Saved values of one part in all layers. */
interface SavedGroup {
  readonly part: Saved['part'];
  readonly members: readonly SavedPart[];
}

// Searches ask for the same blocks in many settings.
const savedParts = memoized(groupedByPart);
const savedGroups = memoized((all: readonly Saved[]) => activationGroups(savedParts(all)));

function groupedByPart(all: readonly Saved[]): readonly SavedPart[] {
  const parts = new Map<Saved['part'], { vectors: Map<string, Vectors>; sources: Set<string> }>();
  for (const { part, vectors, source } of all) {
    const known = parts.get(part) ?? { vectors: new Map(), sources: new Set() };
    parts.set(part, known);
    known.sources.add(source);
    for (const vector of vectors) {
      const key = `${vector.name} ${vector.size} ${vector.share} ${vector.bytes}`;
      const before = known.vectors.get(key)?.count ?? 0;
      known.vectors.set(key, { ...vector, count: before + vector.count });
    }
  }
  return [...parts].map(([part, { vectors, sources }]) => ({
    part,
    vectors: [...vectors.values()],
    sources,
    layers: 1,
  }));
}

/** Saved values of the layers around the blocks. */
const savedAtEnds = memoized((model: LanguageModel) => {
  const { embeddingSteps, norm, head, logitSteps, hidden } = model;
  return {
    beforeBlocks: [
      ...savedInTurn(embeddingSteps, hidden, 'embedding'),
      ...groupedByPart([dropoutMask(hidden)]),
    ],
    afterBlocks: savedInTurn([norm, head], hidden),
    logits: savedInTurn(logitSteps, outputWidth(head), 'head', 'width'),
  };
});

interface SavedRange extends Pick<StageRange, 'from' | 'to'> {
  /** Whether values inside the blocks are saved. */
  readonly hasBlocks: boolean;
  readonly hasLogits: boolean;
}

/** Saved values of a stage. */
const savedInStage = memoizedBy(
  ({ from, to, hasBlocks, hasLogits }: SavedRange) => `${from} ${to} ${hasBlocks} ${hasLogits}`,
  (model: LanguageModel, { from, to, hasBlocks, hasLogits }) => {
    const ends = savedAtEnds(model);
    return activationGroups([
      ...(hasBlocks ? keptInBlocks(model, { from, to }) : []),
      ...(from === 0 ? ends.beforeBlocks : []),
      ...(to === model.blocks.length ? ends.afterBlocks : []),
      ...(hasLogits ? ends.logits : []),
    ]);
  },
);

function activationGroups(saved: readonly SavedPart[]): readonly SavedGroup[] {
  const groups = new Map<Saved['part'], SavedPart[]>();
  for (const each of saved) {
    const members = groups.get(each.part);
    if (members) members.push(each);
    else groups.set(each.part, [each]);
  }
  return [...groups].map(([part, members]) => {
    const [first, ...others] = members;
    // The part of blocks that several models have in common is one group.
    return first && others.length === 0 ? aloneInGroup(first) : { part, members };
  });
}

const aloneInGroup = memoized(
  (only: SavedPart): SavedGroup => ({ part: only.part, members: [only] }),
);

const savedInTurn = (
  layers: readonly Layer[],
  width: number,
  component: Component = 'other',
  share: Share = 'tokens',
): readonly SavedPart[] =>
  groupedByPart(savedOf(lowerInTurn('', layers, { width, share, component })));

const sumOf = (label: string, parts: readonly PartBytes[]) =>
  sumFigure(
    label,
    'bytes',
    Object.fromEntries(parts.map(({ part, bytes }) => [part, bytes])),
    'sum of the parts',
  );

/** Parts of `kept`, plus the scores and scan states of `blocks` unless they are recomputed. */
function activationParts(
  kept: readonly SavedGroup[],
  blocks: readonly Layer[],
  setting: ActivationSetting,
): PartBytes[] {
  const parts: PartBytes[] = kept
    .filter(({ part }) => !isOptional(part) || setting[part])
    .map((group) => ({ part: group.part, bytes: groupBytes(group, setting) }));
  if (setting.recompute === 'selective') return parts;
  return [...parts, ...insideKernels(blocks, setting).filter(({ bytes }) => bytes.value > 0)];
}

const isOptional = (part: Saved['part']): part is OptionalPart =>
  part === 'dropout' || part === 'unfused' || part === 'repeated';

const partLabel = (part: Saved['part']) =>
  isOptional(part) ? OTHER_PARTS[part] : COMPONENTS[part];

/** Kept intermediates of the attention and scan of `blocks`. */
function insideKernels(blocks: readonly Layer[], setting: ActivationSetting): PartBytes[] {
  if (blocks.length === 0) return [];
  switch (setting.attention ?? 'plain') {
    case 'fused':
      return [{ part: 'softmaxSums', bytes: softmaxSums(blocks, setting) }];
    case 'plain':
      return [
        { part: 'scores', bytes: scoresFigure(blocks, setting) },
        { part: 'scanStates', bytes: scanFigure(blocks, setting) },
      ];
  }
}

/** The fields of a setting that `vectorsFigure` reads, and no others. */
const vectorsSetting = memoized(
  ({ batch, stage, context, bytesPerValue, tensor, sequence }: ActivationSetting) =>
    [batch, stage?.microBatches, context, bytesPerValue, tensor, sequence].join(),
);

const groupBytes = memoizedBy(vectorsSetting, vectorsFigure);

/** Groups vectors of the same name and size into one input, with their number in all layers. */
function vectorsFigure({ part, members }: SavedGroup, setting: ActivationSetting): Figure {
  const sequences = sequencesIn(setting);
  const tensor = v({ tensor: tensorParallelism(setting) });
  const { context, bytes } = inputs({ context: setting.context, bytes: setting.bytesPerValue });
  const named: Record<string, Input> = { ...inputsOf(sequences), context, bytes };
  const groups = new Map<string, { readonly each: Expression; readonly values: ValueCounts }>();
  const isShared = tensor.value > 1;
  const include = ({ name, size, count, share, bytes: own }: Vectors, layers: number) => {
    let unique = name;
    for (let number = 2; (named[unique]?.value ?? size) !== size; number++) {
      unique = `${name}_${number}`;
    }
    const input = v({ [unique]: size });
    named[unique] = input;
    const byTokens = isShared && share === 'tokens' && setting.sequence === true;
    const byWidth = isShared && share === 'width';
    const key = `${byTokens} ${own}`;
    const group = groups.get(key) ?? {
      each: mul(
        byTokens ? ceildiv(context, tensor) : context,
        own ? VALUE_BYTES[own](bytes) : bytes,
      ),
      values: new Map(),
    };
    groups.set(key, group);
    const values = `${byWidth} ${unique}`;
    const before = group.values.get(values)?.count ?? 0;
    group.values.set(values, { input, byWidth, count: before + layers * count });
  };
  for (const { vectors, layers } of members) {
    for (const each of vectors) include(each, layers);
  }
  /** `count` times an input, or each GPU's part of it. */
  const valuesOfGpu = ({ input, byWidth, count }: ValueCount) =>
    byWidth ? ceildiv(mul(count, input), tensor) : mul(count, input);
  const terms = [...groups.values()].map(({ each, values }) =>
    mul(each, add(...[...values.values()].map(valuesOfGpu))),
  );
  const sources = [...new Set(members.flatMap(({ sources }) => [...sources]))];
  const source = `saved per token, over all layers: ${sources.join('; ')}`;
  return figure({
    label: `activations: ${partLabel(part)}`,
    unit: 'bytes',
    formula: mul(sequences, add(...terms)),
    inputs: named,
    source,
  });
}

/** Number of values of one size per token: `count` times `input`, and whether GPUs share them. */
interface ValueCount {
  readonly input: Input;
  readonly byWidth: boolean;
  readonly count: number;
}

type ValueCounts = Map<string, ValueCount>;

/** Bytes of a value that differ from those of an activation. */
const VALUE_BYTES: Readonly<Record<NonNullable<Vectors['bytes']>, (bytes: Input) => Operand>> = {
  '1': () => 1,
  '4': () => 4,
  '4 - bytes': (bytes) => sub(4, bytes),
};

/** Full recomputation keeps the input of each block, and no values inside it. */
function blockInputs(model: LanguageModel, setting: ActivationSetting): Figure {
  const { from, to } = stageOf(model, setting);
  const sequences = sequencesIn(setting);
  const tensor = setting.sequence ? tensorParallelism(setting) : 1;
  const of = inputs({
    context: setting.context,
    bytes: setting.bytesPerValue,
    blocks: to - from,
    hidden: model.hidden,
  });
  const tokens = tensor > 1 ? ceildiv(of.context, v({ tensor })) : of.context;
  return figure({
    label: `activations: ${OTHER_PARTS.blockInputs}`,
    unit: 'bytes',
    formula: mul(sequences, tokens, of.bytes, of.blocks, of.hidden),
    inputs: { ...inputsOf(sequences), ...of },
    source: 'full recomputation keeps the input of every block (arXiv 2205.05198)',
  });
}

/** Outputs of attention and of every second product, which recomputation by operation keeps. */
function keptOutputs(model: LanguageModel, setting: ActivationSetting): Figure {
  const { from, to } = stageOf(model, setting);
  const blocks = model.blocks.slice(from, to);
  const sequences = sequencesIn(setting);
  const of = inputs({
    context: setting.context,
    bytes: setting.bytesPerValue,
    values: blocks.reduce((sum, block) => sum + outputValues(block), 0),
    tensor: tensorParallelism(setting),
  });
  return figure({
    label: `activations: ${OTHER_PARTS.keptOutputs}`,
    unit: 'bytes',
    formula: ceildiv(mul(sequences, of.context, of.bytes, of.values), of.tensor),
    inputs: { ...inputsOf(sequences), ...of },
    source:
      'outputs of attention and of every second product stay, all else of a block is computed again (torchtitan, ' +
      'activation_checkpoint.py, selective AC per op)',
  });
}

/** Values of a token that attention and every second product of a block give. */
const outputValues = memoized((block: Layer): number => {
  const primitives = primitivesOf(block);
  const products = primitives.flatMap((each) =>
    each.kind === 'matmul' && each.rows === 'tokens'
      ? [each.weights / (each.tensor.shape.at(-1) ?? 1)]
      : [],
  );
  const attention = primitives.flatMap((each) =>
    each.kind === 'scores' ? [each.heads * each.valueDim] : [],
  );
  const kept = products.filter((_, index) => index % 2 === 0);
  return Math.ceil([...kept, ...attention].reduce((sum, values) => sum + values, 0));
});

/**
 * Live bytes of one block in its backward pass, in addition to kept activations. Values of its layers get
 * gradients.
 * Plain attention holds the softmax of its scores and two more squares: the gradients of the softmax and of its
 * input. Fused attention holds none of the three. Without recomputation, the softmax is already kept. With full
 * recomputation, it counts with the block that runs again. With selective recomputation, it is extra, like scan
 * states.
 */
export interface BlockInBackward {
  /** Gradients of its layers' kept values, without scores and scan states. */
  readonly layers: Exact;
  /** Score gradients of plain attention. */
  readonly scoreGradients: Exact;
  /** Gradients of the states of a plain scan. */
  readonly scanStates: Exact;
  /** Scores and scan states, unless they count as kept. */
  readonly recomputed: Exact;
}

/** Each distinct kind of block in a stage. */
export function blocksInBackward(
  model: LanguageModel,
  whole: ActivationSetting,
): BlockInBackward[] {
  const setting = { ...whole, stage: undefined };
  const isPlain = (setting.attention ?? 'plain') === 'plain';
  return stageBlockKinds(model, whole).map(({ inside, block }) => {
    const layers = sumOf(
      'layers of a block',
      activationParts(savedGroups(inside), [], setting),
    ).value;
    if (!isPlain) return { layers, scoreGradients: 0, scanStates: 0, recomputed: 0 };
    const scanStates = scanFigure([block], setting).value;
    const scores = scoresFigure([block], setting).value;
    const isRecomputed = setting.recompute === 'selective';
    return {
      layers,
      scoreGradients: scoreGradientsFigure(block, setting).value,
      scanStates,
      recomputed: isRecomputed ? exact(BigInt(scores) + BigInt(scanStates)) : 0,
    };
  });
}

const stageBlockKinds = (model: LanguageModel, setting: ActivationSetting): BlockKind[] => {
  const { from, to } = stageOf(model, setting);
  const kinds = kindsOfBlocks(model.blocks, model.hidden);
  const distinct = new Set(model.blocks.slice(from, to).map((block) => kinds.get(block)));
  return [...distinct].filter((kind) => kind !== undefined);
};

/** All activations of the block that runs again, except its input, which is already kept. */
function largestBlock(model: LanguageModel, whole: ActivationSetting): Figure {
  const setting = { ...whole, stage: undefined };
  const figures = stageBlockKinds(model, whole).map(({ inside, block }) =>
    sumOf(
      `activations: ${OTHER_PARTS.oneBlock}`,
      activationParts(savedGroups(inside), [block], setting),
    ),
  );
  return figures.reduce((a, b) => (b.value > a.value ? b : a));
}

/** Blocks that keep the same values. */
interface BlockKind {
  readonly kept: readonly Saved[];
  /** Values kept by a block, without its input. */
  readonly inside: readonly Saved[];
  /** An example of the kind. */
  readonly block: Layer;
}

/** Most blocks are equal, so each kind is counted once. */
const kindsOfBlocks = memoizedBy(
  (hidden: number) => hidden,
  (blocks: readonly Layer[], hidden): ReadonlyMap<Layer, BlockKind> => {
    const kinds = new Map<string, BlockKind>();
    return new Map(
      blocks.map((block) => {
        const { key, kind: own } = kindOfBlock(exampleOf(block), hidden);
        const kind = kinds.get(key) ?? own;
        kinds.set(key, kind);
        return [block, kind];
      }),
    );
  },
);

/** A kind with this block as its example, and a key that all blocks of the kind share. */
const kindOfBlock = memoizedBy(
  (hidden: number) => hidden,
  (block: Layer, hidden): { readonly key: string; readonly kind: BlockKind } => {
    const kept = savedOf(primitivesOf(block, hidden));
    const { attentions, scans } = kernelsOf(block);
    const states = scans.map(({ inner, state }) => [inner, state]);
    const key = JSON.stringify([kept, attentions.map(scoreProperties), states]);
    return { key, kind: { kept, inside: withoutInput(kept), block } };
  },
);

/** One block of each kind. */
export const unlikeBlocks = (model: LanguageModel): Layer[] =>
  [...new Set(kindsOfBlocks(model.blocks, model.hidden).values())].map(({ block }) => block);

/** Whether blocks keep the same values, kind by kind. */
export const areAlike = (
  model: LanguageModel,
  some: readonly Layer[],
  other: readonly Layer[],
): boolean => {
  const kinds = kindsOfBlocks(model.blocks, model.hidden);
  return (
    some.length === other.length &&
    some.every((block, at) => kinds.get(block) === kinds.get(other[at] ?? block))
  );
};

/** Blocks of a stage; those of a whole model are the same list each time, whose sums are remembered. */
const blocksBetween = (
  { blocks }: LanguageModel,
  { from, to }: Pick<StageRange, 'from' | 'to'>,
): readonly Layer[] => (from === 0 && to === blocks.length ? blocks : blocks.slice(from, to));

const keptInBlocks = (
  { blocks, hidden }: LanguageModel,
  { from, to }: Pick<StageRange, 'from' | 'to'>,
): readonly SavedPart[] =>
  from === 0 && to === blocks.length
    ? keptInAll(blocks, hidden)
    : keptBy(blocks.slice(from, to), kindsOfBlocks(blocks, hidden));

const keptInAll = memoizedBy(
  (hidden: number) => hidden,
  (blocks: readonly Layer[], hidden) => keptBy(blocks, kindsOfBlocks(blocks, hidden)),
);

function keptBy(blocks: readonly Layer[], kinds: ReadonlyMap<Layer, BlockKind>): SavedPart[] {
  const times = new Map<BlockKind, number>();
  for (const block of blocks) {
    const kind = kinds.get(block);
    if (kind) times.set(kind, (times.get(kind) ?? 0) + 1);
  }
  return [...times].flatMap(([{ kept }, layers]) =>
    savedParts(kept).map((each) => ({ ...each, layers })),
  );
}

/**
 * The loss is computed on float32 logits, for any model dtype; a fused kernel widens them only on the chip. In chunks, no
 * logits are kept. Either the gradient of the head's input replaces that input (arXiv 2410.10989), or the logits are
 * recomputed (2411.09009).
 */
function logits(model: LanguageModel, setting: ActivationSetting): Figure {
  const tensor = tensorParallelism(setting);
  const vocabulary = v({ vocabulary: outputWidth(model.head) });
  const width = tensor > 1 ? ceildiv(vocabulary, v({ tensor })) : vocabulary;
  const isFused = setting.loss === 'fused';
  const bytes = isFused ? v({ bytes: setting.bytesPerValue }) : 4;
  return figure({
    label: `activations: ${OTHER_PARTS.logits}`,
    unit: 'bytes',
    formula: mul(bytes, sequencesIn(setting), v({ context: setting.context }), width),
    source: isFused
      ? 'logits, over which the kernel of the loss writes their gradient (Liger kernel, arXiv 2410.10989, cross entropy)'
      : 'log-softmax in float32',
  });
}
