/** Lowers layers that carry a state or the last tokens: Mamba, Mamba-2, the gated delta rule, short convolutions. */
import {
  type Component,
  type GatedConv,
  type GatedDelta,
  jointChannels,
  type Mamba,
  type StateSpaceDual,
} from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { inputWidth, outputWidth, sharedInputWidth } from '../architecture/walk.js';
import {
  byRows,
  closingMatmul,
  convolution,
  elementwise,
  gatedNorm,
  type LowerLayer,
  matmul,
  ONE_KERNEL,
  openingMatmuls,
  paramsOf,
} from './lowering-blocks.js';
import {
  allReduce,
  type Primitive,
  runOf,
  type Saved,
  type Scan,
  type UnitRun,
  vectors,
} from './primitive.js';

/** A scan that saves nothing, with its tensors cut by a run. */
export const scan = (
  layer: string,
  component: Component,
  params: readonly Param[],
  run: UnitRun,
  sizes: Pick<Scan, 'inner' | 'state' | 'decays' | 'inFloat32'>,
): Scan => ({
  kind: 'scan',
  layer,
  component,
  input: sizes.inner,
  output: sizes.inner,
  ...ONE_KERNEL,
  params,
  cuts: byRows(params, layer, run),
  ...sizes,
});

/** Saved input of a last product. */
export const savedInput = (component: Component, inner: number): Pick<Primitive, 'saved'> => ({
  saved: [{ part: component, vectors: [vectors(1, 'inner', inner, 'width')], source: 'its input' }],
});

export function lowerMamba(layer: Mamba, component: Component, lower: LowerLayer): Primitive[] {
  const { name, stateLog, skip, inProj, conv, xProj, dtProj, outProj, stepRank } = layer;
  const { innerSize: inner, stateSize: state } = layer;
  const channels = runOf('channels', inner);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', inputWidth(inProj)),
      vectors(9, 'inner', inner, 'width'),
      vectors(1, 'step_rank', stepRank, 'whole'),
      vectors(2, 'state', state, 'whole'),
    ],
    source:
      'the input; x and residual before and after SiLU and convolution (5 inner), step before and after ' +
      'softplus (2), output of the scan and its gated product (2); low-rank step, B and C',
  };
  return [
    matmul(inProj, component, {
      cuts: byRows(paramsOf(inProj), name, channels, channels),
      backward: allReduce(inputWidth(inProj)),
      saved: [saved],
    }),
    convolution(conv, component, inner, name),
    // Every GPU needs the whole step, B and C.
    closingMatmul(xProj, component, name, channels, { backward: allReduce(outputWidth(xProj)) }),
    ...layer.innerNorms.flatMap((each) =>
      lower(each, { width: each.size, share: 'whole', component }),
    ),
    matmul(dtProj, component, { cuts: byRows(paramsOf(dtProj), name, channels) }),
    scan(name, component, [stateLog, skip], channels, {
      inner,
      state,
      decays: 'values',
      inFloat32: layer.float32State,
    }),
    closingMatmul(outProj, component, name, channels),
  ];
}

/** Heads are whole on a GPU; with fewer groups than GPUs, several have the same B and C. */
export function lowerStateSpaceDual(layer: StateSpaceDual, component: Component): Primitive[] {
  const { name, stepBias, stateLog, skip, inProj, conv, norm, outProj } = layer;
  const { heads, headDim, stateSize: state, groups } = layer;
  const inner = heads * headDim;
  const values = runOf('heads', heads, headDim);
  const shared = runOf('groups', groups, state);
  const steps = runOf('heads', heads);
  const mixed = convolution(conv, component, inner + 2 * groups * state, name);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', inputWidth(inProj)),
      vectors(norm ? 4 : 7, 'inner', inner, 'width'),
      vectors(6, 'shared', groups * state, 'width'),
      vectors(2, 'heads', heads, 'width'),
    ],
    source:
      'its input; x, B and C before and after convolution and activation, the step before and after softplus, ' +
      `x times its step${norm ? '' : '; the gate before and after its activation, and the output of the scan'}`,
  };
  return [
    matmul(inProj, component, {
      cuts: byRows(paramsOf(inProj), name, values, values, shared, shared, steps),
      backward: allReduce(inputWidth(inProj)),
      saved: [saved],
    }),
    { ...mixed, cuts: byRows(mixed.params, name, values, shared, shared) },
    scan(name, component, [stepBias, stateLog, skip], steps, {
      inner,
      state,
      decays: 'heads',
      inFloat32: true,
    }),
    norm
      ? gatedNorm(norm, component, { of: name, run: values })
      : elementwise(layer, component, inner),
    closingMatmul(outProj, component, name, values, savedInput(component, inner)),
  ];
}

/** Heads are whole on a GPU; with fewer key heads than GPUs, several have the same queries and keys. */
export function lowerGatedDelta(layer: GatedDelta, component: Component): Primitive[] {
  const { name, stepBias, stateLog, inputs, convs, norm, outProj } = layer;
  const { keyHeads, keyDim, valueHeads, valueDim } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const keyRun = runOf('key heads', keyHeads, keyDim);
  const valueRun = runOf('heads', valueHeads, valueDim);
  const steps = runOf('heads', valueHeads);
  const runs = [keyRun, keyRun, valueRun];
  const isJoint = jointChannels(layer) !== undefined;
  const ownRuns = (index: number, channels: number) => {
    if (convs.length === 1) return runs;
    return isJoint ? [runOf('channels', channels)] : runs.slice(index, index + 1);
  };
  const mixed = convs.map((conv, index) => {
    const channels = conv.weight.shape[0] ?? 0;
    const lowered = convolution(conv, component, channels, name);
    const own = ownRuns(index, channels);
    return { ...lowered, cuts: byRows(lowered.params, name, ...own) };
  });
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', sharedInputWidth(inputs)),
      vectors(8, 'keys', keys, 'width'),
      vectors(3, 'inner', inner, 'width'),
      vectors(4, 'heads', valueHeads, 'width'),
    ],
    source:
      'its input; q and k before and after convolution, activation and division by their length; v before and after ' +
      'convolution and activation; β and the step before and after their functions',
  };
  return [
    ...openingMatmuls(inputs, component, {
      of: name,
      runs: [keyRun, keyRun, valueRun, valueRun, steps, steps],
      saved: [saved],
    }),
    ...mixed,
    scan(name, component, [stepBias, stateLog], steps, {
      inner,
      state: keyDim,
      decays: 'delta',
      inFloat32: true,
    }),
    gatedNorm(norm, component, { of: name, run: valueRun }),
    closingMatmul(outProj, component, name, valueRun, savedInput(component, inner)),
  ];
}

export function lowerGatedConv(layer: GatedConv, component: Component): Primitive[] {
  const { name, conv, inProj, outProj } = layer;
  const hidden = inputWidth(inProj);
  const channels = runOf('channels', hidden);
  const saved: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', hidden), vectors(6, 'channels', hidden, 'width')],
    source: 'its input; B, C, x, B · x, the output of the convolution and C times it',
  };
  return [
    matmul(inProj, component, {
      cuts: byRows(paramsOf(inProj), name, channels, channels, channels),
      backward: allReduce(hidden),
      saved: [saved],
    }),
    elementwise(layer, component, hidden),
    convolution(conv, component, hidden, name),
    elementwise(layer, component, hidden),
    closingMatmul(outProj, component, name, channels),
  ];
}
