/** What attention and scan keep of their inside: scores and states of plain ones, sums of fused ones. */
import type { Attention, LatentAttention, Layer } from '../architecture/layer.js';
import { scoreValues, windowKey } from '../architecture/masks.js';
import { remembered } from '../architecture/memoize.js';
import { walk } from '../architecture/walk.js';
import {
  type ActivationSetting,
  OTHER_PARTS,
  sequencesIn,
  tensorOf,
} from './activation-setting.js';
import { type Exact, exact, type Figure, figure } from './figure.js';
import { ranksOf, spansOf, spansOfRank } from './head-spans.js';

/**
 * The softmax of every head, over as many keys as the original multiplies; and a softcap's tanh before it. Of
 * GPUs that share the heads, that of the one whose heads see furthest.
 */
export function scoresFigure(
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
  const { context, bytesPerValue: bytes, dropout, unfused } = setting;
  const { factor, inputs: sequences } = sequencesIn(setting);
  const inputs: Record<string, Exact> = { ...sequences, bytes };
  const squares = new Map<string, number>();
  const copies = new Map<string, number>();
  const add = (counts: Map<string, number>, name: string, count: number) =>
    counts.set(name, (counts.get(name) ?? 0) + count);
  for (const layer of attentions) {
    for (const span of spansOfRank(spansOf(layer), tensorOf(setting), rank)) {
      const name = windowKey(span.window);
      add(squares, name, span.heads * squaresOf(layer));
      if (unfused && bytes < 4 && isInFloat32(layer)) add(copies, name, span.heads);
      inputs[`scores_${name}`] = exact(scoreValues(context, span.window));
    }
  }
  const sumOf = (counts: Map<string, number>) =>
    [...counts].map(([name, count]) => `${count} * scores_${name}`).join(' + ') || '0';
  const each = dropout ? '(2 * bytes + 1)' : 'bytes';
  const inType = `${each} * (${sumOf(squares)})`;
  const local = [...squares.keys()].some((name) => name.startsWith('window_'));
  const capped = attentions.some(
    (layer) => layer.kind === 'attention' && layer.softcap !== undefined,
  );
  return figure({
    label: `activations: ${OTHER_PARTS.scores}`,
    unit: 'bytes',
    formula: `${factor} * ${copies.size > 0 ? `(${inType} + 4 * (${sumOf(copies)}))` : inType}`,
    inputs,
    source: [
      'the softmax of each head',
      copies.size > 0 ? ', and in float32 before it is cast' : '',
      dropout ? ', before and after dropout, and a mask of 1 byte (arXiv 2205.05198)' : '',
      capped ? ', and the tanh of its softcap' : '',
      local
        ? ': the whole square up to 2048 tokens, block by block beyond it for local heads'
        : ': the whole square, masked or not',
    ].join(''),
  });
}

/** The layers of a block that have scores or scan states. */
export const kernelsOf = remembered((block: Layer) => {
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
export function softmaxSums(blocks: readonly Layer[], setting: ActivationSetting): Figure {
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

/** Whether the softmax is taken in float32, whatever the type of the scores. */
const isInFloat32 = (layer: Attention | LatentAttention): boolean =>
  layer.kind === 'latentAttention' || layer.ownTypeSoftmax !== true;

/** Two gradients of each score: of the softmax, and of what it is given. */
export function scoreGradientsFigure(block: Layer, setting: ActivationSetting): Figure {
  const inFloat32 = 8 / setting.bytesPerValue;
  return scoresFigure([block], { ...setting, dropout: false }, (layer) =>
    isInFloat32(layer) ? inFloat32 : 2,
  );
}

/** The scan as a loop keeps decay, B·Δ and state of every step. */
export function scanFigure(blocks: readonly Layer[], setting: ActivationSetting): Figure {
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

/** What decides how many scores, and sums of them, are kept. */
export const scoresOf = (layer: Attention | LatentAttention) => [
  layer.heads,
  spansOf(layer),
  squaresPerHead(layer),
  isInFloat32(layer),
];
