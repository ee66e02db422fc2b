/** What must be kept between two tokens of cached decoding, and the memory of inference. */
import type { Layer } from '../architecture/layer.js';
import { walk } from '../architecture/walk.js';
import { DTYPES, type Dtype } from '../tensor/dtype.js';
import { type Figure, figure, sumFigure } from './figure.js';

export interface StateSetting {
  readonly batch: number;
  /** Tokens so far in each sequence. */
  readonly context: number;
  /** Element type of weights, caches and states. */
  readonly dtype: Dtype;
}

export interface StateBudget {
  readonly keyValueCache: Figure;
  /** What one more token of one sequence adds while all windows still have room. */
  readonly keyValuePerToken: Figure;
  /** What it adds when every window is full. */
  readonly keyValuePerTokenPastWindows: Figure;
  readonly mambaState: Figure;
  readonly convolutionState: Figure;
  readonly total: Figure;
}

interface Kept {
  /** Key heads × head_dim over all layers, by window; undefined for heads that see everything. */
  readonly widths: ReadonlyMap<number | undefined, number>;
  readonly mambaValues: number;
  readonly convolutionValues: number;
}

/** State of decoding with sliding windows: a local head keeps window // 2 keys and the newest. */
export function stateOf(model: Layer, { batch, context, dtype }: StateSetting): StateBudget {
  const { widths, mambaValues, convolutionValues } = keptBy(model);
  const { bits } = DTYPES[dtype];
  const heads = [...widths].map(([window, width]) => ({
    width,
    name: window === undefined ? 'width_global' : `width_window_${window}`,
    keys: window === undefined ? 'context' : `min(context, ${Math.floor(window / 2) + 1})`,
    windowed: window !== undefined,
  }));
  type Heads = (typeof heads)[number];
  /** A key and a value: `factor` times the sum of what `term` says of each kind of heads. */
  const keyValues = (
    label: string,
    factor: string,
    which: readonly Heads[],
    term: (each: Heads) => string,
    setting: Readonly<Record<string, number>>,
  ) =>
    figure({
      label,
      unit: 'bytes',
      formula: `ceildiv(${factor} * (${which.map(term).join(' + ') || '0'}) * bits, 8)`,
      inputs: {
        ...setting,
        bits,
        ...Object.fromEntries(which.map(({ name, width }) => [name, width])),
      },
      source: 'a key and a value of head_dim for each key head and kept position',
    });
  const keyValueCache = keyValues(
    'key-value cache',
    '2 * batch',
    heads,
    ({ name, keys }) => `${name} * ${keys}`,
    { batch, context },
  );
  const perToken = (label: string, which: readonly Heads[]) =>
    keyValues(label, '2', which, ({ name }) => name, {});
  const mambaState = figure({
    label: 'Mamba state',
    unit: 'bytes',
    formula: 'ceildiv(batch * state_values * bits, 8)',
    inputs: { batch, state_values: mambaValues, bits },
    source: 'one state [inner, state] for each Mamba layer and sequence',
  });
  const convolutionState = figure({
    label: 'convolution state',
    unit: 'bytes',
    formula: 'ceildiv(batch * convolution_values * bits, 8)',
    inputs: { batch, convolution_values: convolutionValues, bits },
    source: 'the last kernel − 1 inputs of each channel of each convolution',
  });
  return {
    keyValueCache,
    keyValuePerToken: perToken('key-value cache per token', heads),
    keyValuePerTokenPastWindows: perToken(
      'key-value cache per token, windows full',
      heads.filter(({ windowed }) => !windowed),
    ),
    mambaState,
    convolutionState,
    total: sumFigure(
      'state in all',
      'bytes',
      {
        key_value_cache: keyValueCache,
        mamba_state: mambaState,
        convolution_state: convolutionState,
      },
      'sum of the parts',
    ),
  };
}

function keptBy(model: Layer): Kept {
  const widths = new Map<number | undefined, number>();
  let mambaValues = 0;
  let convolutionValues = 0;
  for (const { layer } of walk(model)) {
    switch (layer.kind) {
      case 'attention':
        for (const { heads, window } of layer.spans) {
          const keyHeads = (heads * layer.keyValueHeads) / layer.heads;
          widths.set(window, (widths.get(window) ?? 0) + keyHeads * layer.headDim);
        }
        break;
      case 'mamba':
        mambaValues += layer.innerSize * layer.stateSize;
        break;
      case 'causalConv': {
        const [channels = 0, , kernel = 1] = layer.weight.shape;
        convolutionValues += channels * (kernel - 1);
        break;
      }
      case 'languageModel':
      case 'hybridBlock':
      case 'sequence':
      case 'embedding':
      case 'linear':
      case 'layerNorm':
      case 'gelu':
      case 'rotary':
      case 'srteTable':
      case 'srteLowRank':
      case 'srteSincos':
      case 'alignment':
      case 'gate':
        break;
    }
  }
  return { widths, mambaValues, convolutionValues };
}
