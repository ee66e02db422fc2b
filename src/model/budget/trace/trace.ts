/**
 * Flow of shapes through a model, from its description alone: each step's operation, output and parameters.
 * Shapes: B batch, T tokens, H hidden, D inner.
 */

import { formatInteger } from '../../../base/text/units.js';
import { blocksText, counted } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import type {
  FusedProjection,
  LanguageModel,
  Layer,
  Residual,
  Sum,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import { widthAfter } from '../../operations/lower.js';
import {
  differentialAttentionSteps,
  dynamicMaskSteps,
  expertAttentionSteps,
  productKeySteps,
} from './attention-kind-steps.js';
import {
  attentionSteps,
  indexerSteps,
  latentAttentionSteps,
  rotaryText,
} from './attention-steps.js';
import {
  alignmentSteps,
  altUpBlockSteps,
  altUpEndSteps,
  cycleSteps,
  gatedConvSteps,
  gatedDeltaSteps,
  gatedMlpSteps,
  gateSteps,
  headedMambaSteps,
  hybridBlockSteps,
  mambaSteps,
  mixtureSteps,
  perLayerBranchSteps,
  routerSteps,
  srteStep,
  stateSpaceDualSteps,
} from './layer-steps.js';
import {
  griffinSteps,
  kimiDeltaSteps,
  lightningSteps,
  rwkvChannelSteps,
  rwkvTimeSteps,
} from './linear-attention-steps.js';
import type { TokenGrid, TraceStep, UnplacedStep } from './step-builder.js';
import {
  gatedNormText,
  headNormsText,
  layerNormText,
  rmsText,
  StepBuilder,
} from './step-builder.js';

/** Every step of a forward pass. Equal blocks are listed once. */
export const traceOf = (model: LanguageModel, setting: TokenGrid): TraceStep[] =>
  modelSteps(model, new StepBuilder(setting, layerSteps));

/** A block equal to a listed one. */
interface Repeated {
  readonly name: string;
  readonly like: string;
  readonly parameters: number;
}

function modelSteps(model: LanguageModel, build: StepBuilder): TraceStep[] {
  const hidden = model.hidden;
  const top = (layers: readonly Layer[]) => layers.flatMap((layer) => build.steps(layer, hidden));
  return [
    at(0, { name: 'ids', operation: 'token ids', shape: build.lead, parameters: 0 }),
    ...atDepth(0, top([model.embedding, ...model.embeddingSteps, ...model.shared])),
    ...blockSteps(model, hidden, build),
    ...atDepth(0, build.inTurn([model.norm, model.head, ...model.logitSteps], hidden)),
  ];
}

/** Lists in full only the first of blocks that differ in nothing but names. */
function blockSteps(model: LanguageModel, hidden: number, build: StepBuilder): TraceStep[] {
  const shape = [...build.lead, hidden];
  const known = new Map<string, string>();
  const allSteps: TraceStep[] = [];
  let more: Repeated[] = [];
  const addRepeated = () => {
    if (more.length > 0) allSteps.push(at(0, { ...likeOthers(more), shape }));
    more = [];
  };
  for (const block of model.blocks) {
    const { name } = block;
    const steps = build.steps(block, hidden);
    const form = JSON.stringify(steps).replaceAll(`"${name}.`, '".').replaceAll(`"${name}"`, '""');
    const like = known.get(form);
    if (like !== undefined) {
      more.push({ name, like, parameters: stepParameters(steps) });
      continue;
    }
    known.set(form, name);
    addRepeated();
    allSteps.push(at(0, { name, operation: 'block', shape, parameters: 0 }), ...atDepth(1, steps));
  }
  addRepeated();
  return allSteps;
}

function likeOthers(blocks: readonly Repeated[]) {
  const models = [...new Set(blocks.map(({ like }) => like))];
  const like =
    models.length > 1 ? `, each like one of ${blocksText(models)}` : ` like ${models[0]}`;
  return {
    name: blocksText(blocks.map(({ name }) => name)),
    operation: `${counted(blocks.length, 'more block')}${like}`,
    parameters: stepParameters(blocks),
  };
}

const stepParameters = (steps: readonly Pick<UnplacedStep, 'parameters'>[]) =>
  sumOf(steps, ({ parameters }) => parameters);

const at = (depth: number, step: UnplacedStep): TraceStep => ({ ...step, depth });
const atDepth = (depth: number, steps: readonly UnplacedStep[]) =>
  steps.map((each) => at(depth, each));

const ALIBI = 'a penalty on every score: slope · distance, a slope for each head';

/** Steps of a layer whose input has `size` values per token. */
function layerSteps(layer: Layer, size: number, build: StepBuilder): UnplacedStep[] {
  switch (layer.kind) {
    case 'languageModel':
      return modelSteps(layer, build);
    case 'cycles':
      return cycleSteps(layer, size, build);
    case 'hybridBlock':
      return hybridBlockSteps(layer, size, build);
    case 'sequence':
      return build.inTurn(layer.layers, size);
    case 'embedding':
      return [
        build.step(layer, `row of each id, of ${formatInteger(layer.weight.shape[0] ?? 0)}`, size),
      ];
    case 'linear':
    case 'transposedLinear':
      return [build.linear(layer)];
    case 'fusedProjection':
      return fusedSteps(layer, build);
    case 'layerNorm':
      return [build.step(layer, layerNormText(layer), size)];
    case 'headNorms':
      return [build.step(layer, headNormsText(layer), size)];
    case 'sum':
      return branchSteps(layer, size, '', build);
    case 'activation':
      return [build.step(layer, ACTIVATIONS[layer.fn], size)];
    case 'xielu':
      return [build.step(layer, 'xIELU', size)];
    case 'rmsNorm':
      return [build.step(layer, rmsText(layer), size)];
    case 'gatedRmsNorm':
      return [build.step(layer, gatedNormText(layer), size)];
    case 'scale':
      return [build.step(layer, `· ${layer.factor}`, size)];
    case 'altUpSplit':
    case 'altUpMerge':
      return altUpEndSteps(layer, size, build);
    case 'altUpBlock':
      return altUpBlockSteps(layer, build);
    case 'shift':
      return [build.step(layer, '+ bias', size)];
    case 'weightedScale':
      return [build.step(layer, '· weight', size)];
    case 'perLayerInputs': {
      const { layers, width } = layer;
      const operation = `${formatInteger(width)} values for each of ${formatInteger(layers)} layers: a row of each id + norm(product of the embedding)`;
      return [build.step(layer, operation, layers, width)];
    }
    case 'perLayerBranch':
      return perLayerBranchSteps(layer, build);
    case 'sinusoidalPositions':
      return [build.step(layer, '+ sines and cosines of each position', size)];
    case 'described':
      return [
        ...layer.parts.flatMap((part) => build.steps(part, size)),
        build.step(layer, `${layer.title}: described, not run`, layer.output),
      ];
    case 'skippedBlock':
      return [build.step(layer, 'the input, without an image', size)];
    case 'softcap':
      return [build.step(layer, `${layer.cap} · tanh(x / ${layer.cap})`, size)];
    case 'embeddingJoin':
      return [
        build.between(
          layer.name,
          'the input and the embedding, side by side',
          widthAfter(layer, size),
        ),
      ];
    case 'learnedPositions': {
      const rows = formatInteger(layer.weight.shape[0] ?? 0);
      return [build.step(layer, `+ row of each position, of ${rows}`, size)];
    }
    case 'residual':
      return branchSteps(layer, size, 'input + ', build);
    case 'gatedMlp':
      return gatedMlpSteps(layer, build);
    case 'router':
      return routerSteps(layer, build);
    case 'packedExperts':
    case 'clampedExperts':
      return [build.step(layer, 'experts', size)];
    case 'mixtureOfExperts':
      return mixtureSteps(layer, size, build);
    case 'alibi':
      return [build.step(layer, ALIBI, size)];
    case 'latentAttention':
      return latentAttentionSteps(layer, size, build);
    case 'expertAttention':
      return expertAttentionSteps(layer, size, build);
    case 'differentialAttention':
      return differentialAttentionSteps(layer, build);
    case 'dynamicMask':
      return dynamicMaskSteps(layer, build);
    case 'productKeyExperts':
      return productKeySteps(layer, size, build);
    case 'tokenIndexer':
    case 'blockIndexer':
      return indexerSteps(layer, build);
    case 'causalConv':
      return [build.step(layer, `causal convolution, ${layer.weight.shape[2]} wide; SiLU`, size)];
    case 'mamba':
      return mambaSteps(layer, build);
    case 'headedMamba':
      return headedMambaSteps(layer, build);
    case 'stateSpaceDual':
      return stateSpaceDualSteps(layer, build);
    case 'gatedDelta':
      return gatedDeltaSteps(layer, build);
    case 'kimiDelta':
      return kimiDeltaSteps(layer, build);
    case 'blockDiagonal':
      return [build.step(layer, 'product of each head with its matrix', size)];
    case 'griffinRecurrence':
      return griffinSteps(layer, build);
    case 'rwkvTimeMix':
      return rwkvTimeSteps(layer, build);
    case 'rwkvChannelMix':
      return rwkvChannelSteps(layer, build);
    case 'lightningAttention':
      return lightningSteps(layer, build);
    case 'gatedConv':
      return gatedConvSteps(layer, size, build);
    case 'rotary':
      return [build.step(layer, rotaryText(layer), size)];
    case 'attention':
      return attentionSteps(layer, build);
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return [srteStep(layer, size, build)];
    case 'alignment':
      return alignmentSteps(layer, size, build);
    case 'gate':
      return gateSteps(layer, build);
  }
}

function fusedSteps(
  { name, projection, widths, groups }: FusedProjection,
  build: StepBuilder,
): UnplacedStep[] {
  const parts = widths.map(formatInteger).join(', ');
  const interleaved = groups > 1 ? `, of each of ${formatInteger(groups)} groups its part` : '';
  return [
    ...build.steps(projection, 0),
    build.between(name, `cut into ${parts}${interleaved}`, ...new Set(widths)),
  ];
}

function branchSteps(
  layer: Residual | Sum,
  size: number,
  input: string,
  build: StepBuilder,
): UnplacedStep[] {
  const { branches } = layer;
  const leaves = branches.map((branch) => branch.name.slice(branch.name.lastIndexOf('.') + 1));
  const width = branches[0] ? widthAfter(branches[0], size) : size;
  return [
    ...branches.flatMap((branch) => build.steps(branch, size)),
    // What is stored and not read counts here.
    build.step(layer, `${input}${leaves.join(' + ')}`, width),
  ];
}
