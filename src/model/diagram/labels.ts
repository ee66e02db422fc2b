/** Names and short facts of layers in a diagram, in the words of papers. */
import { formatInteger, shortNumber } from '../../base/text/units.js';
import { capital, counted } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import {
  ACTIVATIONS,
  type ActivationName,
  type Attention,
  COMPONENTS,
  type GatedMlp,
  type HeadSpan,
  type LatentAttention,
  type Layer,
  type Rotary,
} from '../architecture/layer.js';
import {
  closingProduct,
  inputWidth,
  isGatedPack,
  isProduct,
  outputWidth,
  packedInner,
  queryHeads,
  sharedInputWidth,
} from '../architecture/walk.js';

export interface Label {
  readonly label: string;
  readonly notes: readonly string[];
}

const labelOf = (label: string, ...notes: (string | false | undefined)[]): Label => ({
  label,
  notes: present(notes),
});

const size = formatInteger;

/** `512 → 1,408 → 512` */
const widthsText = (...widths: number[]): string => widths.map(size).join(' → ');

/** Label of a layer that is drawn as one box, or as an operation. */
export function layerLabel(layer: Layer): Label {
  switch (layer.kind) {
    case 'languageModel':
      return labelOf('Model');
    case 'embedding':
      return labelOf('Embedding', rowsText(layer.weight.shape));
    case 'learnedPositions':
      return labelOf('+ Learned positions', rowsText(layer.weight.shape));
    case 'sinusoidalPositions':
      return labelOf('+ Sinusoidal positions');
    case 'embeddingJoin':
      return labelOf('Concat with embedding');
    case 'linear':
    case 'transposedLinear':
      return labelOf('Linear', widthsText(inputWidth(layer), outputWidth(layer)));
    case 'fusedProjection':
      return layerLabel(layer.projection);
    case 'layerNorm':
      return labelOf('LayerNorm');
    case 'rmsNorm':
      return labelOf('RMSNorm');
    case 'gatedRmsNorm':
      return labelOf('Gated RMSNorm');
    case 'headNorms':
      return labelOf('Norms of the heads');
    case 'activation':
      return labelOf(activationText(layer.fn));
    case 'xielu':
      return labelOf('xIELU');
    case 'scale':
      return labelOf(`× ${shortNumber(layer.factor)}`);
    case 'shift':
      return labelOf('+ bias');
    case 'weightedScale':
      return labelOf('× weight');
    case 'softcap':
      return labelOf('Softcap', `±${shortNumber(layer.cap)}`);
    case 'rotary':
      return labelOf('RoPE');
    case 'alibi':
      return labelOf('ALiBi');
    case 'perLayerInputs':
      return labelOf('Per-layer inputs', `${size(layer.width)} for each of ${layer.layers} blocks`);
    case 'perLayerBranch':
      return labelOf('Per-layer input', `${size(layer.inputs.width)} values`);
    case 'altUpSplit':
      return labelOf('AltUp split', counted(layer.projections.length + 1, 'stream'));
    case 'altUpMerge':
      return labelOf('AltUp merge', counted(layer.projections.length + 1, 'stream'));
    case 'altUpBlock':
      return labelOf('AltUp');
    case 'sequence':
      return sequenceLabel(layer.layers);
    case 'sum':
    case 'residual':
      return labelOf('+');
    case 'described':
      return labelOf(capital(layer.title), 'described, not run');
    case 'skippedBlock':
      return layer.component === undefined
        ? labelOf('Cross-attention block', 'skipped without an image')
        : labelOf(capital(COMPONENTS[layer.component]), 'described, not run');
    case 'gatedMlp':
      return labelOf(gatedName(layer), gatedWidths(layer));
    case 'router':
      return labelOf('Router', `top ${layer.expertsPerToken} of ${layer.weight.shape[0] ?? 0}`);
    case 'packedExperts':
    case 'clampedExperts':
      return labelOf(
        isGatedPack(layer) ? gateName(layer.activation) : 'MLP',
        `inner ${size(packedInner(layer))}`,
      );
    case 'mixtureOfExperts':
      return labelOf('Mixture of experts');
    case 'productKeyExperts':
      return labelOf(
        'Product-key experts',
        `top ${layer.expertsPerToken} of ${size(layer.down.shape[0] ?? 0)}`,
      );
    case 'causalConv':
      return labelOf('Causal convolution', `kernel ${layer.weight.shape.at(-1)}`);
    case 'mamba':
      return labelOf('Mamba', `inner ${size(layer.innerSize)}`, `state ${layer.stateSize}`);
    case 'headedMamba':
      return labelOf('Mamba', headsText(layer.heads, layer.headDim), `state ${layer.stateSize}`);
    case 'stateSpaceDual':
      return labelOf('Mamba-2', headsText(layer.heads, layer.headDim), `state ${layer.stateSize}`);
    case 'gatedDelta':
      return labelOf(
        'Gated DeltaNet',
        headsText(layer.valueHeads, layer.valueDim),
        layer.keyHeads !== layer.valueHeads && counted(layer.keyHeads, 'key head'),
      );
    case 'gatedConv':
      return labelOf('Gated short convolution', `kernel ${layer.conv.weight.shape.at(-1)}`);
    case 'lightningAttention':
      return labelOf('Lightning attention', headsText(layer.slopes.length, layer.headDim));
    case 'kimiDelta':
      return labelOf('Kimi delta attention', headsText(layer.heads, layer.headDim));
    case 'blockDiagonal':
      return labelOf('Block-diagonal product', counted(layer.weight.shape[0] ?? 0, 'head'));
    case 'griffinRecurrence':
      return labelOf('RG-LRU', `width ${size(outputWidth(layer.x))}`);
    case 'rwkvTimeMix':
      return labelOf('RWKV time mix');
    case 'rwkvChannelMix':
      return labelOf('RWKV channel mix', widthsText(layer.hidden, outputWidth(layer.key)));
    case 'attention':
      return attentionLabel(layer);
    case 'latentAttention':
      return latentLabel(layer);
    case 'expertAttention':
      return labelOf(
        'Mixture of attention heads',
        headsText(queryHeads(layer), layer.headDim),
        `top ${layer.router.expertsPerToken} of ${layer.router.weight.shape[0] ?? 0} experts`,
      );
    case 'differentialAttention':
      return labelOf(
        'Differential attention',
        headsText(layer.heads, layer.headDim),
        keyValueText(layer),
        'RoPE',
      );
    case 'dynamicMask': {
      const { notes } = attentionLabel(layer.attention);
      return labelOf('Dynamic-mask attention', ...notes, `top ${size(layer.kept)} keys`);
    }
    case 'tokenIndexer':
    case 'blockIndexer':
      return labelOf('Indexer', `top ${size(layer.kept)}`);
    case 'cycles':
      return labelOf('Cycles', `${layer.lowPerHigh} low per high`);
    case 'srteTable':
      return labelOf('SRTE', `table ${rowsText(layer.table.shape)}`);
    case 'srteLowRank':
      return labelOf(
        'SRTE',
        `rank ${layer.lowRank.shape[2]}`,
        `${size(layer.lowRank.shape[1] ?? 0)} rows`,
      );
    case 'srteSincos':
      return labelOf('SRTE', 'sines and cosines');
    case 'alignment':
      return labelOf(
        'Alignment',
        `concat ${widthsText(inputWidth(layer.residual), outputWidth(layer.residual))}`,
      );
    case 'gate':
      return labelOf('Gate g', `rank ${inputWidth(layer.down)}`);
    case 'hybridBlock':
      return labelOf('Hybrid block');
  }
}

/** `6,400 × 512`, without dimensions of size 1. */
const rowsText = (shape: readonly number[]) =>
  shape
    .filter((each, at) => each !== 1 || at === shape.length - 1)
    .map(size)
    .join(' × ');

const headsText = (heads: number, headDim: number): string =>
  `${counted(heads, 'head')} of ${headDim}`;

const keyValueText = ({
  heads,
  keyValueHeads,
}: Pick<Attention, 'heads' | 'keyValueHeads'>): string | false =>
  keyValueHeads !== heads && counted(keyValueHeads, 'KV head');

function attentionLabel(layer: Attention): Label {
  const { heads, headDim, sharing, spans } = layer;
  return labelOf(
    'Attention',
    headsText(heads, headDim),
    keyValueText(layer),
    windowText(spans),
    rotaryText(layer.rotary),
    layer.alibi !== undefined && 'ALiBi',
    layer.queryNorm !== undefined && 'QK norm',
    layer.gate !== undefined && 'output gate',
    layer.sinks !== undefined && 'sinks',
    layer.softcap !== undefined && `softcap ${shortNumber(layer.softcap)}`,
    layer.selection !== undefined &&
      `top ${layer.selection.kept} blocks of ${layer.selection.size} keys`,
    typeof sharing === 'object' && 'KV of an earlier block',
  );
}

const rotaryText = (rotary: Rotary | undefined): string | false =>
  rotary !== undefined &&
  (rotary.rotatedDim === rotary.headDim ? 'RoPE' : `RoPE on ${rotary.rotatedDim}`);

/** `window 512`; with heads of several kinds, `6 heads with window 512`. */
function windowText(spans: readonly HeadSpan[]): string | false {
  const windowed = spans.filter(({ window }) => window !== undefined);
  if (windowed.length === 0) return false;
  return windowed
    .map(({ heads, window }) => {
      const text = `${window?.rule === 'chunked' ? 'chunks of' : 'window'} ${size(window?.tokens ?? 0)}`;
      return spans.length === 1 ? text : `${counted(heads, 'head')} with ${text}`;
    })
    .join(', ');
}

function latentLabel(layer: LatentAttention): Label {
  const { heads, nopeDim, sharedDim, latentRank, query, selection } = layer;
  return labelOf(
    'Latent attention (MLA)',
    headsText(heads, nopeDim + sharedDim),
    `KV latent ${latentRank}`,
    query.kind === 'sequence' && `query rank ${outputWidth(query.layers[0])}`,
    layer.rotary !== undefined && `RoPE on ${sharedDim}`,
    selection !== undefined &&
      ('kind' in selection
        ? `indexer: top ${size(selection.kept)} keys`
        : 'keys of an earlier block'),
  );
}

const GATED: Readonly<Partial<Record<ActivationName, string>>> = {
  silu: 'SwiGLU',
  gelu: 'GeGLU',
  geluTanh: 'GeGLU',
  quickGelu: 'GeGLU',
  geluClipped: 'GeGLU',
  relu: 'ReGLU',
  reluSquared: 'squared-ReGLU',
};

const gateName = (activation: ActivationName) => `${GATED[activation] ?? 'Gated'} MLP`;

const gatedName = (layer: GatedMlp) => gateName(layer.activation);

const gatedWidths = (layer: GatedMlp) => {
  const down = closingProduct(layer.down);
  return widthsText(sharedInputWidth(layer.inputs), inputWidth(down), outputWidth(down));
};

/** Names of activations; the others are shown by their formula. */
const ACTIVATION_NAMES: Readonly<Partial<Record<ActivationName, string>>> = {
  silu: 'SiLU',
  gelu: 'GELU',
  geluTanh: 'GELU',
  quickGelu: 'GELU',
  geluClipped: 'GELU',
  relu: 'ReLU',
  reluSquared: 'ReLU²',
  relu6: 'ReLU6',
  tanh: 'tanh',
  sigmoid: 'σ',
};

const activationText = (name: ActivationName) => ACTIVATION_NAMES[name] ?? ACTIVATIONS[name];

/** A network of products and activations: `MLP`, `768 → 3,072 → 768`, `GELU`. */
function sequenceLabel(layers: readonly Layer[]): Label {
  const products = layers.filter(isProduct);
  const [first] = products;
  if (first === undefined) return labelOf('Sequence');
  const activations = layers.filter(({ kind }) => kind === 'activation' || kind === 'xielu');
  return labelOf(
    activations.length > 0 ? 'MLP' : 'Linear',
    widthsText(inputWidth(first), ...products.map(outputWidth)),
    ...activations.map((each) => layerLabel(each).label),
  );
}
