/**
 * What a forward pass keeps for the backward pass, counted from the model's own operations as the
 * original writes them: every value that a gradient needs, once. Statistics of norms and token ids are not
 * counted, what dropout adds only when it is asked for, and keys that several query heads read are kept once.
 * Attention scores and scan states are those of the plain implementations; fused kernels, and selective
 * recomputation, do without them. Of GPUs that share layers, and of pipeline stages, each keeps its part.
 */

import {
  type Attention,
  COMPONENTS,
  type Component,
  type LanguageModel,
  type LatentAttention,
  type Layer,
  type MixtureOfExperts,
} from '../architecture/layer.js';
import { scoreValues, windowKey } from '../architecture/masks.js';
import { expertLayers, isProduct, stagesOf, walk } from '../architecture/walk.js';
import {
  expertInner,
  inputWidth,
  outputWidth,
  sharedInputWidth,
  widthAfter,
} from '../architecture/widths.js';
import { type Exact, exact, type Figure, figure, sumFigure } from './figure.js';
import type { Recompute } from './flops.js';
import { ranksOf, spansOf, spansOfRank } from './head-spans.js';
import { remembered } from './remember.js';

/** Whether scores and scan states are kept, or computed again by kernels that never hold them whole. */
export type AttentionKernel = 'plain' | 'fused';

/** Whether the logits of all tokens are there at a time, or those of a few, whose gradients are made at once. */
export type LossKernel = 'full' | 'chunked';

export interface ActivationSetting {
  readonly batch: number;
  readonly context: number;
  /** Bytes of an activation. */
  readonly bytesPerValue: number;
  readonly recompute: Recompute;
  /** `plain` unless said otherwise. */
  readonly attention?: AttentionKernel | undefined;
  /** `full` unless said otherwise. */
  readonly loss?: LossKernel | undefined;
  /**
   * Count a mask of 1 byte for each value that dropout meets: embeddings, softmax, and what each branch adds to
   * the residual stream; and the softmax after it.
   */
  readonly dropout?: boolean | undefined;
  /** Among how many GPUs each layer is split; 1 unless said otherwise. */
  readonly tensor?: number | undefined;
  /** Whether they split, by tokens, what is not split by width (arXiv 2205.05198). */
  readonly sequence?: boolean | undefined;
  /** The whole model, and a single micro-batch, unless said otherwise. */
  readonly stage?: StageRange | undefined;
}

/** What one pipeline stage computes. The first has the embedding, the last the norm, head and loss. */
export interface StageRange {
  /** Its first block. */
  readonly from: number;
  /** The one after its last. */
  readonly to: number;
  /** Of which it keeps the activations at a time. */
  readonly microBatches: number;
}

/** Parts that are not simply those of a component. */
const OTHER_PARTS = {
  scores: 'attention scores',
  scanStates: 'scan states',
  softmaxSums: 'log-sums of the softmax',
  dropout: 'masks of dropout',
  logits: 'logits, for the loss',
  blockInputs: 'inputs of the blocks',
  oneBlock: 'the block being recomputed',
} as const satisfies Record<string, string>;

/** A part of the activations: a component's, or one of `OTHER_PARTS`. */
export type ActivationPart = Component | keyof typeof OTHER_PARTS;

interface PartBytes {
  readonly part: ActivationPart;
  readonly bytes: Figure;
}

export interface ActivationBudget {
  readonly parts: readonly PartBytes[];
  readonly total: Figure;
}

/** Activations of a training step on one device, at their fullest. */
export function activationsOf(model: LanguageModel, setting: ActivationSetting): ActivationBudget {
  const { embeddingSteps, norm, head, logitSteps } = model;
  const { from, to } = stageOf(model, setting);
  const blocks = model.blocks.slice(from, to);
  const [isFirst, isLast] = [from === 0, to === model.blocks.length];
  const hidden = norm.weight.elements;
  const hasLogits = isLast && setting.loss !== 'chunked';
  const aroundBlocks = [
    ...(isFirst ? keptInTurn(embeddingSteps, hidden, 'embedding') : []),
    ...(isFirst ? droppedIn(hidden) : []),
    ...(isLast ? keptInTurn([norm, head], hidden) : []),
    ...(hasLogits ? keptInTurn(logitSteps, outputWidth(head), 'head', 'width') : []),
  ];
  const parts =
    setting.recompute === 'full'
      ? [
          { part: 'blockInputs' as const, bytes: blockInputs(model, setting) },
          { part: 'oneBlock' as const, bytes: largestBlock(model, setting) },
          ...partsOf(aroundBlocks, [], setting),
        ]
      : partsOf([...keptInBlocks(model, blocks), ...aroundBlocks], blocks, setting);
  const loss = hasLogits ? [{ part: 'logits' as const, bytes: logits(model, setting) }] : [];
  const all = [...parts, ...loss];
  return { parts: all, total: sumOf('activations', all) };
}

const stageOf = (model: LanguageModel, { stage }: ActivationSetting): StageRange =>
  stage ?? { from: 0, to: model.blocks.length, microBatches: 1 };

const tensorOf = ({ tensor }: ActivationSetting): number => tensor ?? 1;

/** Factors that stand before a formula: of the sequences that are kept. */
function sequencesIn({ batch, stage }: ActivationSetting): {
  readonly factor: string;
  readonly inputs: Readonly<Record<string, Exact>>;
} {
  const microBatches = stage?.microBatches ?? 1;
  return microBatches === 1
    ? { factor: 'batch', inputs: { batch } }
    : { factor: 'micro_batches * batch', inputs: { micro_batches: microBatches, batch } };
}

const sumOf = (label: string, parts: readonly PartBytes[]) =>
  sumFigure(
    label,
    'bytes',
    Object.fromEntries(parts.map(({ part, bytes }) => [part, bytes])),
    'sum of the parts',
  );

/**
 * What GPUs that share a layer have each of a value: their part of its `width` (heads, channels, the inside of
 * a feed-forward network, the vocabulary); all of it, or some of its `tokens` with sequence parallelism; or
 * the `whole` in any case.
 */
type Share = 'width' | 'tokens' | 'whole';

/** `count` vectors of `size` values for each token. */
interface Vectors {
  readonly count: number;
  /** What the size is called in formulas: `hidden`. */
  readonly name: string;
  readonly size: number;
  readonly share: Share;
  /** Of a value; undefined: those of any activation. */
  readonly bytes?: number;
}

/** What a layer keeps for each token. */
interface Kept {
  readonly part: Component | 'dropout';
  /** The first is what the layer is given, where it keeps that. */
  readonly vectors: readonly Vectors[];
  readonly source: string;
}

const vectors = (count: number, name: string, size: number, share: Share = 'tokens'): Vectors => ({
  count,
  name,
  size,
  share,
});

/** The mask of what dropout meets on the residual stream. */
const droppedIn = (hidden: number): Kept[] => [
  {
    part: 'dropout',
    vectors: [{ ...vectors(1, 'hidden', hidden), bytes: 1 }],
    source: 'a mask of 1 byte a value, of the embeddings and of each branch (arXiv 2205.05198)',
  },
];

/**
 * What a layer keeps besides scores and scan states. An input that several layers read is told by the
 * layer that stands first: the attention tells of the normed input, the gate of its own and the MLP's.
 * @param width Of what it is given.
 * @param share What each GPU has of that.
 */
function keptBy(
  layer: Layer,
  width: number,
  part: Component = 'other',
  share: Share = 'tokens',
): Kept[] {
  const own = layer.component ?? part;
  const all = (layers: readonly Layer[]) => layers.flatMap((child) => keptBy(child, width, own));
  const kept = (source: string, ...values: Vectors[]): Kept[] => [
    { part: own, vectors: values, source },
  ];
  switch (layer.kind) {
    case 'languageModel':
      return keptInTurn(stagesOf(layer), layer.norm.weight.elements);
    case 'hybridBlock': {
      const { inputNorm, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = layer;
      const optional = alignment ? [alignment] : [];
      return [
        ...all([inputNorm, mamba, attention, ...optional, gate, fusion]),
        ...withoutInput(keptBy(mlp, width, own)),
        ...all([outputNorm]),
        // Of what the fusion adds, and the MLP.
        ...droppedIn(outputNorm.weight.elements),
        ...droppedIn(outputNorm.weight.elements),
      ];
    }
    case 'mamba':
      return kept(
        'its input; x and residual before and after SiLU and convolution (5 inner), step before and after ' +
          'softplus (2), output of the scan and its gated product (2); low-rank step, B and C',
        vectors(1, 'hidden', inputWidth(layer.inProj)),
        vectors(9, 'inner', layer.innerSize, 'width'),
        vectors(1, 'step_rank', layer.stepRank, 'whole'),
        vectors(2, 'state', layer.stateSize, 'whole'),
      );
    case 'attention': {
      const [queries, keys] = [layer.heads * layer.headDim, layer.keyValueHeads * layer.headDim];
      return [
        ...kept(
          'its input; q and the output of the heads; k and v',
          vectors(1, 'hidden', sharedInputWidth(layer.inputs)),
          vectors(2, 'query_width', queries, 'width'),
          vectors(2, 'key_width', keys, 'width'),
        ),
        ...(layer.queryNorm
          ? kept('q before its norm', vectors(1, 'query_width', queries, 'width'))
          : []),
        ...(layer.keyNorm ? kept('k before its norm', vectors(1, 'key_width', keys, 'width')) : []),
      ];
    }
    case 'latentAttention':
      return [...latentAttentionKept(layer, own), ...latentQueryKept(layer, own)];
    case 'gatedMlp': {
      const inner = inputWidth(layer.down);
      return kept(
        'its input; gate before and after the activation, what it multiplies, and the product (4 inner)',
        vectors(1, 'hidden', sharedInputWidth(layer.inputs)),
        vectors(4, 'inner', inner, 'width'),
      );
    }
    case 'mixtureOfExperts':
      return mixtureKept(layer, own);
    case 'router':
      return kept(
        'its input; the scores of all experts; those of the chosen',
        vectors(1, 'hidden', layer.weight.shape[1] ?? 0),
        vectors(1, 'experts', layer.weight.shape[0] ?? 0),
        vectors(1, 'chosen', layer.expertsPerToken),
      );
    case 'alignment':
      return [
        ...kept('both branches, concatenated', vectors(1, 'both', inputWidth(layer.residual))),
        ...withoutInput(keptBy(layer.net, inputWidth(layer.residual), own)),
      ];
    case 'gate':
      return kept(
        'its input; gate and 1 − gate, and both branches that they multiply; tanh',
        vectors(5, 'hidden', inputWidth(layer.up)),
        vectors(1, 'rank', inputWidth(layer.down)),
      );
    case 'residual': {
      // Every branch is given the same.
      const [first, ...others] = layer.branches.map((branch) => keptBy(branch, width, own));
      const masks = layer.branches.flatMap(() => droppedIn(width));
      return [...(first ?? []), ...others.flatMap(withoutInput), ...masks];
    }
    case 'sequence':
      return keptInTurn(layer.layers, width, own);
    case 'activation':
      return kept('what an activation is given', vectors(1, 'inner', width, share));
    case 'softcap':
      return kept('tanh', vectors(1, 'width', width, share));
    case 'fusedProjection':
      return all([layer.projection]);
    case 'linear':
    case 'transposedLinear':
      return kept('its input', vectors(1, 'input', inputWidth(layer), share));
    case 'layerNorm':
    case 'rmsNorm':
      return kept('its input', vectors(1, 'hidden', layer.weight.elements));
    case 'embedding':
    case 'scale':
    case 'learnedPositions':
    case 'packedExperts':
    case 'alibi':
    case 'causalConv':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return [];
  }
}

/** Of layers that follow each other. Between a product before an activation and the next, the width is split. */
function keptInTurn(
  layers: readonly Layer[],
  width: number,
  part?: Component,
  share: Share = 'tokens',
): Kept[] {
  let [before, has] = [width, share];
  return layers.flatMap((layer, index) => {
    const kept = keptBy(layer, before, part, has);
    before = widthAfter(layer, before);
    if (isProduct(layer)) has = layers[index + 1]?.kind === 'activation' ? 'width' : 'tokens';
    return kept;
  });
}

/** What is kept besides an input that is kept already. */
function withoutInput([first, ...others]: readonly Kept[]): Kept[] {
  const vectors = first?.vectors.slice(1) ?? [];
  return first && vectors.length > 0 ? [{ ...first, vectors }, ...others] : others;
}

function latentAttentionKept(layer: LatentAttention, part: Component): Kept[] {
  const { heads, latentRank, nopeDim, valueDim, rotary } = layer;
  const values = [
    vectors(1, 'hidden', inputWidth(layer.keyValueDown)),
    vectors(2, 'latent_rank', latentRank),
    vectors(2, 'query_width', heads * (nopeDim + rotary.headDim), 'width'),
    vectors(2, 'value_width', heads * valueDim, 'width'),
  ];
  const source =
    'its input; the latent before and after its norm; q, and k with the shared part for every head; v and ' +
    'the output of the heads';
  return [{ part, vectors: values, source }];
}

/** Its first layer reads what the keys and values are made of too. */
function latentQueryKept({ query, keyValueDown }: LatentAttention, part: Component): Kept[] {
  return withoutInput(keptBy(query, inputWidth(keyValueDown), part));
}

/** A chosen expert is given a copy of its tokens, and its output is kept to be weighted. */
function mixtureKept(layer: MixtureOfExperts, part: Component): Kept[] {
  const { router, experts, shared, sharedGate } = layer;
  const hidden = router.weight.shape[1] ?? 0;
  const inside = shared.flatMap((each) => withoutInput(keptBy(each, hidden, part)));
  const gate: Kept = {
    part: sharedGate?.component ?? part,
    vectors: [vectors(1, 'hidden', hidden), vectors(1, 'gates', 1)],
    source: 'the shared output before its gate, and the gate',
  };
  const chosen = router.expertsPerToken;
  const routed: Kept = {
    part: expertPart(experts, part),
    vectors: [
      vectors(2 * chosen, 'hidden', hidden, 'whole'),
      vectors(4 * chosen, 'expert_inner', expertInner(layer), 'width'),
    ],
    source:
      'of each expert that a token goes to: its copy of the input and its output; gate before and after the ' +
      'activation, what it multiplies, and the product',
  };
  return [...keptBy(router, hidden, part), routed, ...inside, ...(sharedGate ? [gate] : [])];
}

const expertPart = (experts: MixtureOfExperts['experts'], part: Component) =>
  expertLayers(experts)[0]?.component ?? part;

/** The parts of `kept`, and the scores and scan states of `blocks` unless these are recomputed. */
function partsOf(
  kept: readonly Kept[],
  blocks: readonly Layer[],
  setting: ActivationSetting,
): PartBytes[] {
  const byPart = new Map<Kept['part'], Kept[]>();
  for (const each of kept) {
    if (each.part === 'dropout' && !setting.dropout) continue;
    const members = byPart.get(each.part);
    if (members) members.push(each);
    else byPart.set(each.part, [each]);
  }
  const parts: PartBytes[] = [...byPart].map(([part, members]) => ({
    part,
    bytes: vectorsFigure(`activations: ${labelOf(part)}`, members, setting),
  }));
  if (setting.recompute === 'selective') return parts;
  return [...parts, ...insideKernels(blocks, setting).filter(({ bytes }) => bytes.value > 0)];
}

const labelOf = (part: Kept['part']) =>
  part === 'dropout' ? OTHER_PARTS.dropout : COMPONENTS[part];

/** What the attention and the scan of `blocks` keep of their inside. */
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

/** Vectors of the same name and size are one input, times how many there are in all layers. */
function vectorsFigure(
  label: string,
  members: readonly Kept[],
  setting: ActivationSetting,
): Figure {
  const { context, bytesPerValue: bytes } = setting;
  const [tensor, sequences] = [tensorOf(setting), sequencesIn(setting)];
  const inputs: Record<string, Exact> = { ...sequences.inputs, context, bytes };
  const counts = new Map<string, Map<string, number>>();
  let isDivided = false;
  for (const { name, size, count, share, bytes: own } of vectorsOf(members)) {
    let input = name;
    for (let number = 2; (inputs[input] ?? size) !== size; number++) input = `${name}_${number}`;
    inputs[input] = size;
    const [byTokens, byWidth] = [share === 'tokens' && setting.sequence, share === 'width'];
    isDivided ||= tensor > 1 && (byTokens || byWidth);
    const tokens = byTokens && tensor > 1 ? 'ceildiv(context, tensor)' : 'context';
    // Terms in brackets are values that each GPU has; `count * input` of them, or their part.
    const factor = `${tokens} * ${own ?? 'bytes'}`;
    const group = counts.get(factor) ?? new Map<string, number>();
    const key = byWidth && tensor > 1 ? `${input} / tensor` : input;
    counts.set(factor, group.set(key, (group.get(key) ?? 0) + count));
  }
  if (isDivided) inputs.tensor = tensor;
  const groups = [...counts].map(([factor, terms]) => {
    const sum = [...terms].map(([term, count]) => shareTerm(term, count)).join(' + ');
    return `${factor} * (${sum})`;
  });
  const [only = '0'] = groups;
  const formula = `${sequences.factor} * ${groups.length > 1 ? `(${groups.join(' + ')})` : only}`;
  const sources = [...new Set(members.map(({ source }) => source))];
  const source = `per token, over all layers: ${sources.join('; ')}`;
  return figure({ label, unit: 'bytes', formula, inputs, source });
}

/** Those of all members; what like blocks keep is the same object, and is looked at once. */
function vectorsOf(members: readonly Kept[]): Vectors[] {
  const times = new Map<Kept, number>();
  for (const each of members) times.set(each, (times.get(each) ?? 0) + 1);
  return [...times].flatMap(([each, many]) =>
    each.vectors.map((vector) => ({ ...vector, count: many * vector.count })),
  );
}

/** `count` times an input, or each GPU's part of them. */
const shareTerm = (term: string, count: number) =>
  term.endsWith(' / tensor')
    ? `ceildiv(${count} * ${term.slice(0, -' / tensor'.length)}, tensor)`
    : `${count} * ${term}`;

/**
 * The softmax of every head, over as many keys as the original multiplies; and a softcap's tanh before it. Of
 * GPUs that share the heads, that of the one whose heads see furthest.
 */
function scoresFigure(
  blocks: readonly Layer[],
  setting: ActivationSetting,
  squares = squaresPerHead,
): Figure {
  const attentions = attentionsIn(blocks);
  return ranksOf(attentions.map(spansOf), tensorOf(setting))
    .map((rank) => scoresOfRank(attentions, setting, rank, squares))
    .reduce((a, b) => (b.value > a.value ? b : a));
}

function scoresOfRank(
  attentions: readonly (Attention | LatentAttention)[],
  setting: ActivationSetting,
  rank: number,
  squaresOf: typeof squaresPerHead,
): Figure {
  const { context, bytesPerValue: bytes, dropout } = setting;
  const { factor, inputs: sequences } = sequencesIn(setting);
  const inputs: Record<string, Exact> = { ...sequences, bytes };
  const squares = new Map<string, number>();
  for (const layer of attentions) {
    for (const span of spansOfRank(spansOf(layer), tensorOf(setting), rank)) {
      const name = windowKey(span.window);
      squares.set(name, (squares.get(name) ?? 0) + span.heads * squaresOf(layer));
      inputs[`scores_${name}`] = exact(scoreValues(context, span.window));
    }
  }
  const terms = [...squares].map(([name, count]) => `${count} * scores_${name}`);
  const local = [...squares.keys()].some((name) => name.startsWith('window_'));
  const capped = attentions.some(
    (layer) => layer.kind === 'attention' && layer.softcap !== undefined,
  );
  return figure({
    label: `activations: ${OTHER_PARTS.scores}`,
    unit: 'bytes',
    formula: `${factor} * ${dropout ? '(2 * bytes + 1)' : 'bytes'} * (${terms.join(' + ') || '0'})`,
    inputs,
    source: [
      'the softmax of each head',
      dropout ? ', before and after dropout, and a mask of 1 byte (arXiv 2205.05198)' : '',
      capped ? ', and the tanh of its softcap' : '',
      local
        ? ': the whole square up to 2048 tokens, block by block beyond it for local heads'
        : ': the whole square, masked or not',
    ].join(''),
  });
}

/** The layers of a block that have scores or scan states. */
const kernelsOf = remembered((block: Layer) => {
  const layers = walk(block).map(({ layer }) => layer);
  return {
    attentions: layers.flatMap((layer) =>
      layer.kind === 'attention' || layer.kind === 'latentAttention' ? [layer] : [],
    ),
    scans: layers.flatMap((layer) => (layer.kind === 'mamba' ? [layer] : [])),
  };
});

const attentionsIn = (blocks: readonly Layer[]) =>
  blocks.flatMap((block) => kernelsOf(block).attentions);

/** A fused kernel needs the log-sum of each row of scores for its backward pass. */
function softmaxSums(blocks: readonly Layer[], setting: ActivationSetting): Figure {
  const heads = attentionsIn(blocks).reduce((sum, layer) => sum + layer.heads, 0);
  const { factor, inputs } = sequencesIn(setting);
  return figure({
    label: `activations: ${OTHER_PARTS.softmaxSums}`,
    unit: 'bytes',
    formula: `4 * ${factor} * context * heads / tensor`,
    inputs: { ...inputs, context: setting.context, heads, tensor: tensorOf(setting) },
    source:
      'a float32 for each head and token; scores and scan states are computed again (FlashAttention, arXiv ' +
      '2205.14135; Mamba, arXiv 2312.00752)',
  });
}

function squaresPerHead(layer: Attention | LatentAttention): number {
  return layer.kind === 'attention' && layer.softcap !== undefined ? 2 : 1;
}

/** The scan as a loop keeps decay, B·Δ and state of every step. */
function scanFigure(blocks: readonly Layer[], setting: ActivationSetting): Figure {
  const { context, bytesPerValue: bytes } = setting;
  const state_values = blocks
    .flatMap((block) => kernelsOf(block).scans)
    .reduce((total, { innerSize, stateSize }) => total + innerSize * stateSize, 0);
  const [tensor, { factor, inputs }] = [tensorOf(setting), sequencesIn(setting)];
  return figure({
    label: `activations: ${OTHER_PARTS.scanStates}`,
    unit: 'bytes',
    formula: `3 * ${factor} * context * bytes * state_values${tensor > 1 ? ' / tensor' : ''}`,
    inputs: { ...inputs, context, bytes, state_values, ...(tensor > 1 && { tensor }) },
    source: 'decay, B·Δ and state of every step, as a loop over time keeps them',
  });
}

/** Full recomputation keeps what goes into each block, and nothing of its inside. */
function blockInputs(model: LanguageModel, setting: ActivationSetting): Figure {
  const { context, bytesPerValue: bytes, sequence } = setting;
  const { factor, inputs } = sequencesIn(setting);
  const { from, to } = stageOf(model, setting);
  const tensor = sequence ? tensorOf(setting) : 1;
  return figure({
    label: `activations: ${OTHER_PARTS.blockInputs}`,
    unit: 'bytes',
    formula: `${factor} * ${tensor > 1 ? 'ceildiv(context, tensor)' : 'context'} * bytes * blocks * hidden`,
    inputs: {
      ...inputs,
      context,
      bytes,
      blocks: to - from,
      hidden: model.norm.weight.elements,
      ...(tensor > 1 && { tensor }),
    },
    source: 'full recomputation keeps the input of every block (arXiv 2205.05198)',
  });
}

/**
 * What is live of one block in its backward pass besides what is kept, in bytes. Values of its layers get gradients.
 * Plain attention needs the softmax of its scores until two more squares are there, the gradient of the softmax and that
 * of what it is given; fused attention has none of the three. Without recomputation the softmax is kept, with full
 * recomputation it is of the block that runs again, and counted with that; with selective recomputation it comes on
 * top, as scan states do.
 */
export interface BlockInHand {
  /** Of what its layers keep, but for scores and scan states. */
  readonly layers: Exact;
  /** Of plain attention. */
  readonly scoreGradients: Exact;
  /** Of a plain scan, each of which gets a gradient. */
  readonly scanStates: Exact;
  /** Scores and scan states, where they are not counted among what is kept. */
  readonly recomputed: Exact;
}

/** Each kind of block that a stage has. */
export function blocksInHand(model: LanguageModel, whole: ActivationSetting): BlockInHand[] {
  const setting = { ...whole, stage: undefined };
  const isPlain = (setting.attention ?? 'plain') === 'plain';
  return kindsIn(model, whole).map(({ inside, block }) => {
    const layers = sumOf('layers of a block', partsOf(inside, [], setting)).value;
    if (!isPlain) return { layers, scoreGradients: 0, scanStates: 0, recomputed: 0 };
    const scanStates = scanFigure([block], setting).value;
    const scores = scoresFigure([block], setting).value;
    const isRecomputed = setting.recompute === 'selective';
    return {
      layers,
      scoreGradients: scoresFigure([block], { ...setting, dropout: false }, () => 2).value,
      scanStates,
      recomputed: isRecomputed ? exact(BigInt(scores) + BigInt(scanStates)) : 0,
    };
  });
}

const kindsIn = (model: LanguageModel, setting: ActivationSetting): BlockKind[] => {
  const { from, to } = stageOf(model, setting);
  const kinds = kindsOfBlocks(model);
  const distinct = new Set(model.blocks.slice(from, to).map((block) => kinds.get(block)));
  return [...distinct].filter((kind) => kind !== undefined);
};

/** … and, while one block runs again, all of that one but its input, which is kept already. */
function largestBlock(model: LanguageModel, whole: ActivationSetting): Figure {
  const setting = { ...whole, stage: undefined };
  const figures = kindsIn(model, whole).map(({ inside, block }) =>
    sumOf(`activations: ${OTHER_PARTS.oneBlock}`, partsOf(inside, [block], setting)),
  );
  return figures.reduce((a, b) => (b.value > a.value ? b : a));
}

/** Blocks that keep the same. */
interface BlockKind {
  readonly kept: readonly Kept[];
  /** … without what they are given. */
  readonly inside: readonly Kept[];
  /** One of them. */
  readonly block: Layer;
}

/** Blocks are mostly alike, and each kind needs to be counted once only. */
const kindsOfBlocks = remembered((model: LanguageModel): ReadonlyMap<Layer, BlockKind> => {
  const hidden = model.norm.weight.elements;
  const kinds = new Map<string, BlockKind>();
  return new Map(
    model.blocks.map((block) => {
      const kept = keptBy(block, hidden);
      const { attentions, scans } = kernelsOf(block);
      const states = scans.map(({ innerSize, stateSize }) => [innerSize, stateSize]);
      const key = JSON.stringify([kept, attentions.map(scoresOf), states]);
      const kind = kinds.get(key) ?? { kept, inside: withoutInput(kept), block };
      kinds.set(key, kind);
      return [block, kind];
    }),
  );
});

/** Whether blocks keep the same, kind by kind. */
export const areAlike = (
  model: LanguageModel,
  some: readonly Layer[],
  other: readonly Layer[],
): boolean => {
  const kinds = kindsOfBlocks(model);
  return (
    some.length === other.length &&
    some.every((block, at) => kinds.get(block) === kinds.get(other[at] ?? block))
  );
};

const keptInBlocks = (model: LanguageModel, blocks: readonly Layer[]): Kept[] => {
  const kinds = kindsOfBlocks(model);
  return blocks.flatMap((block) => kinds.get(block)?.kept ?? []);
};

/** What decides how many scores, and sums of them, are kept. */
const scoresOf = (layer: Attention | LatentAttention) => [
  layer.heads,
  spansOf(layer),
  squaresPerHead(layer),
];

/**
 * The loss is taken over logits in float32, whatever the model computes in. In chunks, nothing of them is kept: the
 * gradient of the head's input takes the place of that input (arXiv 2410.10989), or they are computed again (2411.09009).
 */
function logits(model: LanguageModel, setting: ActivationSetting): Figure {
  const [tensor, { factor, inputs }] = [tensorOf(setting), sequencesIn(setting)];
  const vocabulary = outputWidth(model.head);
  return figure({
    label: `activations: ${OTHER_PARTS.logits}`,
    unit: 'bytes',
    formula: `4 * ${factor} * context * ${tensor > 1 ? 'ceildiv(vocabulary, tensor)' : 'vocabulary'}`,
    inputs: { ...inputs, context: setting.context, vocabulary, ...(tensor > 1 && { tensor }) },
    source: 'log-softmax in float32',
  });
}
