/** Steps of attention, and of attention with a latent. */

import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import type {
  Attention,
  HeadSpan,
  Indexer,
  LatentAttention,
  Rotary,
  Temperature,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { firstVisibleKey } from '../../architecture/masks.js';
import { projectionLayers, valueWidth } from '../../architecture/walk.js';

import {
  headNormsText,
  normText,
  rmsText,
  type StepBuilder,
  type UnplacedStep,
} from './step-builder.js';

export function attentionSteps(layer: Attention, build: StepBuilder): UnplacedStep[] {
  const { name, heads, keyValueHeads, headDim, spans, rotary, clip } = layer;
  const valueDim = valueWidth(layer);
  const perHead = (operation: string, last: number, of = heads): UnplacedStep => ({
    ...build.between(`${name}.heads`, operation),
    shape: [build.batch, of, build.tokens, last],
  });
  const norms = [
    ...headNormSteps(layer.queryNorm, heads, headDim, build),
    ...headNormSteps(layer.keyNorm, keyValueHeads, headDim, build),
    ...headNormSteps(layer.valueNorm, keyValueHeads, valueDim, build),
  ];
  const rotated = rotary ? [{ ...perHead(rotaryText(rotary), headDim), name: rotary.name }] : [];
  const isGrouped = keyValueHeads < heads;
  const grouped = isGrouped ? `; k and v of ${counted(keyValueHeads, 'head')}` : '';
  const repeats = heads / keyValueHeads;
  return [
    ...projectionLayers(layer.inputs).flatMap((each) => build.steps(each, 0)),
    ...(typeof layer.sharing === 'object'
      ? [
          build.between(
            `${name}.shared`,
            `keys and values of ${layer.sharing.from}`,
            keyValueHeads * headDim,
          ),
        ]
      : []),
    ...(layer.valuesAreKeys
      ? [build.between(`${name}.values`, 'v = k', keyValueHeads * headDim)]
      : []),
    ...(layer.normsAfterRotation ? rotated : norms),
    ...(clip === undefined
      ? []
      : [build.between(`${name}.clipped`, `q, k and v cut to ±${clip}`, heads * headDim)]),
    ...(layer.normsAfterRotation ? norms : rotated),
    ...(layer.temperature
      ? [build.between(`${name}.temperature`, temperatureText(layer.temperature), heads * headDim)]
      : []),
    ...(isGrouped
      ? [
          perHead(`k and v, ${counted(keyValueHeads, 'head')}`, headDim, keyValueHeads),
          perHead(
            `k and v repeated ${repeats} ×: query head j reads head ⌊j / ${repeats}⌋`,
            headDim,
          ),
        ]
      : []),
    ...(layer.selection ? build.steps(layer.selection, 0) : []),
    maskStep(name, spans, build),
    perHead(
      `${scoresText(layer)}: ${spans.filter(hasHeads).map(spanText).join(', ')}${grouped}`,
      build.tokens,
    ),
    perHead('· v', valueDim),
    ...(layer.gate
      ? [
          build.between(
            `${name}.gated`,
            `f(gate) · heads, f = ${ACTIVATIONS[layer.gate]}`,
            heads * valueDim,
          ),
        ]
      : []),
    ...build.steps(layer.out, 0),
  ];
}

/** Over each head, or over all of them, depending on the size of its weight. */
function headNormSteps(
  norm: Attention['queryNorm'],
  heads: number,
  headDim: number,
  build: StepBuilder,
): UnplacedStep[] {
  if (!norm) return [];
  if (norm.kind === 'headNorms') return [build.step(norm, headNormsText(norm), heads, headDim)];
  const { size } = norm;
  const shape = size === headDim ? [heads, headDim] : [heads * headDim];
  return [build.step(norm, normText(norm), ...shape)];
}

export function latentAttentionSteps(
  layer: LatentAttention,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const { name, heads, latentRank, nopeDim, valueDim, rotary, sharedDim, scale } = layer;
  const headDim = nopeDim + sharedDim;
  const perHead = (operation: string, last: number): UnplacedStep => ({
    ...build.between(`${name}.heads`, operation),
    shape: [build.batch, heads, build.tokens, last],
  });
  return [
    ...build.steps(layer.query, size),
    build.linear(layer.keyValueDown),
    build.between(
      `${name}.latent`,
      `latent ${formatInteger(latentRank)}, and a key of ${formatInteger(sharedDim)} for all heads`,
      latentRank,
    ),
    build.step(layer.latentNorm, rmsText(layer.latentNorm), latentRank),
    ...(layer.latentScale === undefined
      ? []
      : [build.between(`${name}.latentScale`, `latent · ${layer.latentScale}`, latentRank)]),
    build.linear(layer.keyValueUp),
    ...(rotary
      ? [
          {
            ...perHead(
              `the last ${formatInteger(sharedDim)} of q and k rotated by position`,
              headDim,
            ),
            name: rotary.name,
          },
        ]
      : []),
    ...(layer.temperature
      ? [build.between(`${name}.temperature`, temperatureText(layer.temperature), heads * headDim)]
      : []),
    ...selectionSteps(layer.selection, build),
    maskStep(name, [{ heads, window: undefined }], build),
    perHead(
      `softmax(${productText(scale, headDim)}): ${counted(heads, 'head')} global`,
      build.tokens,
    ),
    perHead('· v', valueDim),
    build.linear(layer.out),
  ];
}

/** Steps of an indexer, or the name of the layer whose choice is taken. */
function selectionSteps(
  selection: LatentAttention['selection'],
  build: StepBuilder,
): UnplacedStep[] {
  if (!selection) return [];
  return 'kind' in selection
    ? build.steps(selection, 0)
    : [
        {
          ...build.between(`${selection.from}.selection`, `the keys that ${selection.from} chose`),
          shape: [build.batch, build.tokens, build.tokens],
        },
      ];
}

/** Steps that choose keys. */
export function indexerSteps(layer: Indexer, build: StepBuilder): UnplacedStep[] {
  const { name, heads, rotary, kept } = layer;
  const { headDim } = rotary;
  const isWeighted = layer.kind === 'tokenIndexer';
  const scored = (of: number, operation: string): UnplacedStep => ({
    ...build.between(`${name}.scores`, operation),
    shape: [build.batch, of, build.tokens, build.tokens],
  });
  return [
    build.linear(layer.query),
    ...(isWeighted ? [] : [build.step(layer.queryNorm, normText(layer.queryNorm), heads, headDim)]),
    build.linear(layer.key),
    build.step(layer.keyNorm, normText(layer.keyNorm), headDim),
    ...(isWeighted ? [build.linear(layer.weights)] : []),
    { ...build.between(rotary.name, rotaryText(rotary), heads, headDim) },
    ...(isWeighted
      ? [
          scored(heads, `max(q · kᵀ · ${layer.scale}, 0) of ${counted(heads, 'head')}`),
          scored(1, `Σ weight · score; the best ${formatInteger(kept)} keys are kept`),
        ]
      : [
          scored(
            heads,
            `q · kᵀ of ${counted(heads, 'head')}; the best ${formatInteger(kept)} blocks of ${formatInteger(layer.size)} keys are kept`,
          ),
        ]),
  ];
}

/** Contexts beyond this are counted by their triangle alone. */
const MOST_COUNTED = 2 ** 20;

/** The mask that is added to the scores before the softmax: 0 for a visible key, −∞ for a later one. */
export function maskStep(
  name: string,
  spans: readonly HeadSpan[],
  build: StepBuilder,
): UnplacedStep {
  const { tokens } = build;
  const kept = new Set(spans.filter(hasHeads).map(({ window }) => visibleScores(tokens, window)));
  const isNarrowed = Math.min(...kept) < visibleScores(tokens, undefined);
  const rule = isNarrowed ? 'later keys and those outside the window' : 'later keys';
  return {
    ...build.between(
      `${name}.mask`,
      `causal mask: −∞ for ${rule}, which leaves ${[...kept].map(formatInteger).join(' or ')} of ${formatInteger(tokens * tokens)} scores of a head`,
    ),
    shape: [tokens, tokens],
  };
}

/** Pairs of a query and a key that it sees. */
function visibleScores(tokens: number, window: HeadSpan['window']): number {
  if (window === undefined || tokens > MOST_COUNTED) return (tokens * (tokens + 1)) / 2;
  return sumOf(
    Array.from({ length: tokens }, (_, position) => position),
    (position) => position + 1 - firstVisibleKey(position, tokens, window),
  );
}

const hasHeads = ({ heads }: HeadSpan) => heads > 0;

export const productText = (scale: number, headDim: number) =>
  scale === 1 / Math.sqrt(headDim) ? `q · kᵀ / √${headDim}` : `q · kᵀ · ${scale}`;

function scoresText({ scale, headDim, softcap, alibi, sinks }: Attention): string {
  const product = productText(scale, headDim);
  const capped = softcap === undefined ? product : `${softcap} · tanh(${product} / ${softcap})`;
  return `softmax(${capped}${alibi ? ' − slope · distance' : ''}${sinks ? ', sink' : ''})`;
}

const temperatureText = ({ tokens, strength, offset }: Temperature) =>
  `q · (1 + ${strength} · log(1 + floor(${offset === 0 ? 'position' : `(position + ${offset})`} / ${formatInteger(tokens)})))`;

const spanText = ({ heads, window }: HeadSpan) =>
  `${counted(heads, 'head')} ${window === undefined ? 'global' : `${window.rule} (${formatInteger(window.tokens)})`}`;

export const rotaryText = ({ base, headDim, rotatedDim, scaling }: Rotary) =>
  `q and k rotated by position, base ${base.toLocaleString('en-US')}` +
  `${rotatedDim < headDim ? `, ${rotatedDim} of ${headDim}` : ''}${scaling ? `, ${scaling.kind}` : ''}`;
