/** What attention and scan keep of their inside: scores and states of plain ones, sums of fused ones. */
import type { Layer } from '../architecture/layer.js';
import { scoreValues, windowKey } from '../architecture/masks.js';
import { remembered } from '../architecture/memoize.js';
import { primitivesOf } from '../operations/lower.js';
import type { Scores } from '../operations/primitive.js';
import {
  type ActivationSetting,
  OTHER_PARTS,
  sequencesIn,
  tensorOf,
} from './activation-setting.js';
import { type Exact, exact, type Figure, figure } from './figure.js';
import { ranksOf, spansOfRank } from './state.js';

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
  return ranksOf(
    attentions.map(({ spans }) => spans),
    tensorOf(setting),
  )
    .map((rank) => scoresOfRank(attentions, setting, rank, squares))
    .reduce((a, b) => (b.value > a.value ? b : a));
}

function scoresOfRank(
  attentions: readonly Scores[],
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
    for (const span of spansOfRank(layer.spans, tensorOf(setting), rank)) {
      const name = windowKey(span.window);
      add(squares, name, span.heads * squaresOf(layer));
      if (unfused && bytes < 4 && layer.inFloat32) add(copies, name, span.heads);
      inputs[`scores_${name}`] = exact(scoreValues(context, span.window));
    }
  }
  const sumOf = (counts: Map<string, number>) =>
    [...counts].map(([name, count]) => `${count} * scores_${name}`).join(' + ') || '0';
  const each = dropout ? '(2 * bytes + 1)' : 'bytes';
  const inType = `${each} * (${sumOf(squares)})`;
  const local = [...squares.keys()].some((name) => name.startsWith('window_'));
  const capped = attentions.some((layer) => layer.capped);
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

/** What of a block has scores or scan states. */
export const kernelsOf = remembered((block: Layer) => {
  const primitives = primitivesOf(block);
  return {
    attentions: primitives.flatMap((each) => (each.kind === 'scores' ? [each] : [])),
    scans: primitives.flatMap((each) => (each.kind === 'scan' ? [each] : [])),
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

const squaresPerHead = ({ capped }: Scores): number => (capped ? 2 : 1);

/** Two gradients of each score: of the softmax, and of what it is given. */
export function scoreGradientsFigure(block: Layer, setting: ActivationSetting): Figure {
  const inFloat32 = 8 / setting.bytesPerValue;
  return scoresFigure([block], { ...setting, dropout: false }, (layer) =>
    layer.inFloat32 ? inFloat32 : 2,
  );
}

/** The scan as a loop keeps decay, B·Δ and state of every step. */
export function scanFigure(blocks: readonly Layer[], setting: ActivationSetting): Figure {
  const { context, bytesPerValue: bytes } = setting;
  const state_values = blocks
    .flatMap((block) => kernelsOf(block).scans)
    .reduce((total, { inner, state }) => total + inner * state, 0);
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
export const scoresOf = (layer: Scores) => [
  layer.heads,
  layer.spans,
  squaresPerHead(layer),
  layer.inFloat32,
];
