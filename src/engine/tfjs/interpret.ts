/**
 * Interpreter of the description. It uses the library's operations, whose gradients are in gradients.ts. Two steps
 * differ: scans have their own gradients in training, and the choice of experts is a step function.
 */
import type {
  Alignment,
  Cycles,
  Gate,
  GatedConv,
  HybridBlock,
  LanguageModel,
  Layer,
  PerLayerBranch,
  Xielu,
} from '../../model/architecture/layer.js';
import { describedOnly, mixesTokens } from '../calls.js';
import { activate } from './differentiable.js';
import {
  applySoftcap,
  runAltUpBlock,
  runAltUpMerge,
  runAltUpSplit,
  runEmbedding,
  runFusedProjection,
  runGatedMlp,
  runGatedRmsNorm,
  runHeadNorms,
  runLayerNorm,
  runLearnedPositions,
  runLinear,
  runPerLayerInputs,
  runRmsNorm,
  runRotary,
  runSinusoidalPositions,
  runSrte,
  runTransposedLinear,
} from './layers/basic.js';
import { runMixtureOfExperts, runRouter } from './layers/mixture.js';
import { runAttention } from './layers/run-attention.js';
import {
  runDifferentialAttention,
  runDynamicMask,
  runExpertAttention,
} from './layers/run-attention-kinds.js';
import { runBlockDiagonal, runGriffin } from './layers/run-griffin.js';
import { runLatentAttention } from './layers/run-latent-attention.js';
import { runKimiDelta, runLightningAttention } from './layers/run-linear-attention.js';
import {
  runCausalConv,
  runGatedDelta,
  runHeadedMamba,
  runMamba,
  runStateSpaceDual,
} from './layers/run-recurrent.js';
import { runRwkvChannelMix, runRwkvTimeMix } from './layers/run-rwkv.js';
import type { Tensor, Tensor3D } from './packages.js';
import type { ForwardRun } from './run.js';

/**
 * A run with its shared values, which `release` disposes.
 * @param note Called with the value of each layer, inner layers first.
 */
export function startRun(
  options: Omit<ForwardRun, 'apply' | 'once'>,
  note?: (layer: Layer, value: Tensor) => void,
): { readonly run: ForwardRun; readonly release: () => void } {
  const { tf } = options;
  const kept = new Map<unknown, Tensor>();
  const run: ForwardRun = {
    ...options,
    apply(layer, ...inputs) {
      const value = tf.tidy(() => interpret(run, layer, inputs));
      note?.(layer, value);
      return value;
    },
    once<T extends Tensor>(key: unknown, compute: () => T): T {
      const value = kept.get(key) ?? tf.keep(compute());
      kept.set(key, value);
      return value as T;
    },
  };
  const release = () => {
    for (const tensor of kept.values()) tensor.dispose();
  };
  return { run, release };
}

/**
 * The value of a layer, [B, T, …].
 * @param inputs Mamba's and attention's for an alignment, none for layers that start from ids or positions, one for all
 * others.
 */
export function interpret(run: ForwardRun, layer: Layer, inputs: readonly Tensor3D[]): Tensor3D {
  const x = (index = 0): Tensor3D => {
    const input = inputs[index];
    if (!input) throw new TypeError(`${layer.name} (${layer.kind}) needs input ${index + 1}`);
    return input;
  };
  switch (layer.kind) {
    case 'languageModel':
      return languageModel(run, layer);
    case 'hybridBlock':
      return hybridBlock(run, layer, x());
    case 'cycles':
      return cycles(run, layer, x());
    case 'sequence':
      return inTurn(run, layer.layers, x());
    case 'embedding':
      return runEmbedding(run, layer);
    case 'linear':
      return runLinear(run, layer, x());
    case 'layerNorm':
      return runLayerNorm(run, layer, x());
    case 'activation':
      return activate(run.tf, layer.fn, x());
    case 'xielu':
      return xielu(run, layer, x());
    case 'transposedLinear':
      return runTransposedLinear(run, layer, x());
    case 'fusedProjection':
      return run.tf.concat(runFusedProjection(run, layer, x()), 2);
    case 'rmsNorm':
      return runRmsNorm(run, layer, x());
    case 'gatedRmsNorm':
      return runGatedRmsNorm(run, layer, x(0), x(1));
    case 'scale':
      return run.tf.mul(x(), layer.factor);
    case 'altUpSplit':
      return runAltUpSplit(run, layer, x());
    case 'altUpMerge':
      return runAltUpMerge(run, layer, x());
    case 'altUpBlock':
      return runAltUpBlock(run, layer, x());
    case 'shift':
      return run.tf.add(x(), run.weights.tensor(layer.bias));
    case 'weightedScale':
      return run.tf.mul(x(), run.weights.tensor(layer.weight));
    case 'perLayerInputs':
      return runPerLayerInputs(run, layer);
    case 'perLayerBranch':
      return perLayerBranch(run, layer, x());
    case 'softcap':
      return applySoftcap(run.tf, x(), layer.cap);
    case 'embeddingJoin': {
      const rows = run.once(layer.embedding, () => run.apply(layer.embedding));
      return run.tf.concat([x(), rows], 2);
    }
    case 'learnedPositions':
      return runLearnedPositions(run, layer, x());
    case 'headNorms':
      return runHeadNorms(run, layer, x());
    case 'sinusoidalPositions':
      return runSinusoidalPositions(run, layer, x());
    case 'described':
      throw describedOnly(layer);
    case 'skippedBlock':
      return run.tf.clone(x());
    case 'sum':
      return layer.branches
        .map((branch) => run.apply(branch, x()))
        .reduce((sum, value) => run.tf.add(sum, value));
    case 'residual':
      return layer.branches.reduce((sum, branch) => run.tf.add(sum, run.apply(branch, x())), x());
    case 'gatedMlp':
      return runGatedMlp(run, layer, x());
    case 'router':
      return runRouter(run, layer, x());
    case 'mixtureOfExperts':
      return runMixtureOfExperts(run, layer, x());
    case 'latentAttention':
      return runLatentAttention(run, layer, x());
    case 'expertAttention':
      return runExpertAttention(run, layer, x());
    case 'differentialAttention':
      return runDifferentialAttention(run, layer, x());
    case 'dynamicMask':
      return runDynamicMask(run, layer, x());
    case 'productKeyExperts':
      throw mixesTokens(layer.name);
    case 'packedExperts':
    case 'clampedExperts':
    case 'alibi':
    case 'tokenIndexer':
    case 'blockIndexer':
      throw new TypeError(`${layer.name} (${layer.kind}) computes nothing by itself`);
    case 'causalConv':
      return runCausalConv(run, layer, x());
    case 'headedMamba':
      return runHeadedMamba(run, layer, x());
    case 'mamba':
      return runMamba(run, layer, x());
    case 'stateSpaceDual':
      return runStateSpaceDual(run, layer, x());
    case 'gatedDelta':
      return runGatedDelta(run, layer, x());
    case 'kimiDelta':
      return runKimiDelta(run, layer, x());
    case 'blockDiagonal':
      return runBlockDiagonal(run, layer, x());
    case 'griffinRecurrence':
      return runGriffin(run, layer, x());
    case 'rwkvTimeMix':
      return runRwkvTimeMix(run, layer, x());
    case 'rwkvChannelMix':
      return runRwkvChannelMix(run, layer, x());
    case 'lightningAttention':
      return runLightningAttention(run, layer, x());
    case 'gatedConv':
      return gatedConv(run, layer, x());
    case 'rotary':
      return runRotary(run, layer, x());
    case 'attention':
      return runAttention(run, layer, x());
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return runSrte(run, layer);
    case 'alignment':
      return alignment(run, layer, x(0), x(1));
    case 'gate':
      return gate(run, layer, x());
  }
}

function languageModel(run: ForwardRun, model: LanguageModel): Tensor3D {
  const embedded = run.apply(model.embedding); // (B, T, H)
  const hidden = inTurn(run, [...model.embeddingSteps, ...model.blocks], embedded);
  const first = Math.max(0, run.tokens - (run.lastTokens ?? run.tokens));
  const needed = first > 0 ? run.tf.slice(hidden, [0, first, 0], [-1, -1, -1]) : hidden;
  return inTurn(run, [model.norm, model.head, ...model.logitSteps], needed); // (B, n, V)
}

/** Applies layers in sequence. */
const inTurn = (run: ForwardRun, layers: readonly Layer[], x: Tensor3D): Tensor3D =>
  layers.reduce((value, layer) => run.apply(layer, value), x);

function hybridBlock(run: ForwardRun, block: HybridBlock, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const n = run.apply(block.inputNorm, x);
  const m = run.apply(block.mamba, tf.add(n, run.apply(block.srte)));
  const a = run.apply(block.attention, n);
  const z: Tensor3D = block.alignment
    ? run.apply(block.alignment, m, a)
    : tf.mul(tf.add(m, a), 0.5);
  const g = run.apply(block.gate, z);
  // g·m + (1 − g)·a
  const fused: Tensor3D = tf.add(a, tf.mul(g, tf.sub(m, a)));
  const sum = tf.add(x, run.apply(block.fusion, fused));
  return run.apply(block.outputNorm, tf.add(sum, run.apply(block.mlp, z)));
}

function cycles(run: ForwardRun, { initial, stacks, lowPerHigh }: Cycles, x: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  let [low, high] = [weights.tensor(initial), x];
  for (const [index, stack] of stacks.entries()) {
    const value = run.apply(stack, tf.add(high, low));
    if (index % (lowPerHigh + 1) === lowPerHigh) high = value;
    else low = value;
  }
  return high;
}

function alignment(run: ForwardRun, layer: Alignment, m: Tensor3D, a: Tensor3D): Tensor3D {
  const both: Tensor3D = run.tf.concat([m, a], 2); // (B, T, 2H)
  return run.tf.add(run.apply(layer.net, both), run.apply(layer.residual, both));
}

function gatedConv(run: ForwardRun, layer: GatedConv, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const parts = tf.split(run.apply(layer.inProj, x), 3, 2); // (B, T, H) each
  const [b, c, input] = parts as [Tensor3D, Tensor3D, Tensor3D];
  return run.apply(layer.outProj, tf.mul(c, run.apply(layer.conv, tf.mul(b, input))));
}

function perLayerBranch(run: ForwardRun, layer: PerLayerBranch, x: Tensor3D): Tensor3D {
  const { tf } = run;
  const { inputs, index, gate: opening, projection, activation } = layer;
  const all = run.once(inputs, () => run.apply(inputs)); // (B, T, layers · width)
  const own = tf.slice(all, [0, 0, index * inputs.width], [-1, -1, inputs.width]);
  return run.apply(projection, tf.mul(activate(tf, activation, run.apply(opening, x)), own));
}

/** With steps that have a gradient: exp(y) − 1 = 2t / (1 − t), t = tanh(y / 2), and 1 above 0 as a factor. */
function xielu({ tf, weights }: ForwardRun, layer: Xielu, x: Tensor3D): Tensor3D {
  const [beta, eps] = [weights.tensor(layer.beta), weights.tensor(layer.eps)];
  const t = tf.tanh(tf.mul(tf.minimum(x, eps), 0.5));
  const exponential = tf.div(tf.mul(t, 2), tf.sub(1, t));
  const above = tf.mul(tf.softplus(weights.tensor(layer.positive)), tf.square(x));
  const factor = tf.add(beta, tf.softplus(weights.tensor(layer.negative)));
  const below = tf.mul(factor, tf.sub(exponential, x));
  const isAbove = tf.step(x);
  const curve = tf.add(tf.mul(isAbove, above), tf.mul(tf.sub(1, isAbove), below));
  return tf.add(curve, tf.mul(beta, x));
}

function gate(run: ForwardRun, layer: Gate, z: Tensor3D): Tensor3D {
  const { tf } = run;
  return tf.sigmoid(run.apply(layer.down, tf.tanh(run.apply(layer.up, z))));
}
