/**
 * Interpreter of the description. It uses the library's differentiable operations, except for the scan of Mamba and the
 * choice of experts: scan.ts, router.ts and mixture.ts describe what a gradient needs there.
 */
import type {
  Alignment,
  Gate,
  HybridBlock,
  LanguageModel,
  Layer,
} from '../../architecture/layer.js';
import { attention, latentAttention } from './attention.js';
import {
  embedding,
  fusedProjection,
  gatedMlp,
  layerNorm,
  learnedPositions,
  linear,
  rmsNorm,
  rotate,
  softcap,
  srte,
  transposedLinear,
} from './basic.js';
import { activate } from './differentiable.js';
import type { Tensor3D } from './library.js';
import { causalConv, mamba } from './mamba.js';
import { mixtureOfExperts, router } from './mixture.js';
import type { Run } from './run.js';

/**
 * The value of a layer, [B, T, …].
 * @param inputs Mamba's and attention's for an alignment, none for layers that start from ids or positions, one for all
 * others.
 */
export function interpret(run: Run, layer: Layer, inputs: readonly Tensor3D[]): Tensor3D {
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
    case 'sequence':
      return inTurn(run, layer.layers, x());
    case 'embedding':
      return embedding(run, layer);
    case 'linear':
      return linear(run, layer, x());
    case 'layerNorm':
      return layerNorm(run, layer, x());
    case 'activation':
      return activate(run.tf, layer.fn, x());
    case 'transposedLinear':
      return transposedLinear(run, layer, x());
    case 'fusedProjection':
      return run.tf.concat(fusedProjection(run, layer, x()), 2);
    case 'rmsNorm':
      return rmsNorm(run, layer, x());
    case 'scale':
      return run.tf.mul(x(), layer.factor);
    case 'softcap':
      return softcap(run.tf, x(), layer.cap);
    case 'learnedPositions':
      return learnedPositions(run, layer, x());
    case 'residual':
      return layer.branches.reduce((sum, branch) => run.tf.add(sum, run.apply(branch, x())), x());
    case 'gatedMlp':
      return gatedMlp(run, layer, x());
    case 'router':
      return router(run, layer, x());
    case 'mixtureOfExperts':
      return mixtureOfExperts(run, layer, x());
    case 'latentAttention':
      return latentAttention(run, layer, x());
    case 'packedExperts':
    case 'alibi':
      throw new TypeError(`${layer.name} (${layer.kind}) computes nothing by itself`);
    case 'causalConv':
      return causalConv(run, layer, x());
    case 'mamba':
      return mamba(run, layer, x());
    case 'rotary':
      return rotate(run, layer, x());
    case 'attention':
      return attention(run, layer, x());
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return srte(run, layer);
    case 'alignment':
      return alignment(run, layer, x(0), x(1));
    case 'gate':
      return gate(run, layer, x());
  }
}

function languageModel(run: Run, model: LanguageModel): Tensor3D {
  const embedded = run.apply(model.embedding); // (B, T, H)
  const hidden = inTurn(run, [...model.embeddingSteps, ...model.blocks, model.norm], embedded);
  return inTurn(run, [model.head, ...model.logitSteps], hidden); // (B, T, V)
}

/** Applies layers in sequence. */
const inTurn = (run: Run, layers: readonly Layer[], x: Tensor3D): Tensor3D =>
  layers.reduce((value, layer) => run.apply(layer, value), x);

function hybridBlock(run: Run, block: HybridBlock, x: Tensor3D): Tensor3D {
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

function alignment(run: Run, layer: Alignment, m: Tensor3D, a: Tensor3D): Tensor3D {
  const both: Tensor3D = run.tf.concat([m, a], 2); // (B, T, 2H)
  return run.tf.add(run.apply(layer.net, both), run.apply(layer.residual, both));
}

function gate(run: Run, layer: Gate, z: Tensor3D): Tensor3D {
  const { tf } = run;
  return tf.sigmoid(run.apply(layer.down, tf.tanh(run.apply(layer.up, z))));
}
