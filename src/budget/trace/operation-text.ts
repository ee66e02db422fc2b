/** Operations as the trace shows them: norms, rotation by position, scores. */
import type {
  Attention,
  GatedRmsNorm,
  HeadNorms,
  HeadSpan,
  LayerNorm,
  NormLayer,
  RmsNorm,
  Rotary,
  Temperature,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { formatInteger } from '../../text/units.js';
import { counted } from '../../text/words.js';

export const rmsText = ({ eps, offset, weight }: RmsNorm) =>
  `RMSNorm, eps ${eps}${offset === 0 ? '' : `, weight + ${offset}`}${weight ? '' : ', no weight'}`;

export const gatedNormText = ({ eps, groups, gated, activation }: GatedRmsNorm) => {
  const norm = `RMSNorm, eps ${eps}${groups === 1 ? '' : `, of each of ${groups} groups`}`;
  const gate = `f(gate), f = ${ACTIVATIONS[activation]}`;
  return gated === 'before' ? `x · ${gate}; ${norm}` : `${norm}; · ${gate}`;
};

export const layerNormText = ({ eps, offset, weight, bias }: LayerNorm) =>
  `LayerNorm, eps ${eps}${offset === 0 ? '' : `, weight + ${offset}`}` +
  (bias ? '' : weight ? ', no bias' : ', no weight or bias');

export const normText = (norm: NormLayer) =>
  norm.kind === 'rmsNorm' ? rmsText(norm) : layerNormText(norm);

/** One step for all: the norms differ in nothing but their weights. */
export const headNormsText = ({ norms: [first] }: HeadNorms) =>
  `${first ? normText(first) : ''}, another for each head`;

export const productText = (scale: number, headDim: number) =>
  scale === 1 / Math.sqrt(headDim) ? `q · kᵀ / √${headDim}` : `q · kᵀ · ${scale}`;

export function scoresText({ scale, headDim, softcap, alibi, sinks }: Attention): string {
  const product = productText(scale, headDim);
  const capped = softcap === undefined ? product : `${softcap} · tanh(${product} / ${softcap})`;
  return `softmax(${capped}${alibi ? ' − slope · distance' : ''}${sinks ? ', sink' : ''})`;
}

export const temperatureText = ({ tokens, strength, offset }: Temperature) =>
  `q · (1 + ${strength} · log(1 + floor(${offset === 0 ? 'position' : `(position + ${offset})`} / ${formatInteger(tokens)})))`;

export const spanText = ({ heads, window }: HeadSpan) =>
  `${counted(heads, 'head')} ${window === undefined ? 'global' : `${window.rule} (${formatInteger(window.tokens)})`}`;

export const rotaryText = ({ base, headDim, rotatedDim, scaling }: Rotary) =>
  `q and k rotated by position, base ${base.toLocaleString('en-US')}` +
  `${rotatedDim < headDim ? `, ${rotatedDim} of ${headDim}` : ''}${scaling ? `, ${scaling.kind}` : ''}`;
