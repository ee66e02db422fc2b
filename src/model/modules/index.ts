/**
 * Building blocks of transformers on plain typed arrays, one function each, for learning and for checking other
 * implementations. Float16 and bfloat16 values are given as their bit patterns, computed in float32 and rounded
 * once.
 *
 * @example
 * const x = tensor([1, 1, 4], [1, 2, 3, 4]);
 * groupRmsNorm(x, tensor([4], [1, 1, 1, 1]), 2).data;
 */
export {
  type ActivationName,
  activation,
  activationGradient,
} from './activation-modules.js';
export {
  type AttentionOptions,
  groupedQueryAttention,
  onlineSoftmaxAttention,
  onlineSoftmaxSteps,
  type QueryPlace,
  type SoftmaxStep,
  type TiledAttentionOptions,
} from './attention-modules.js';
export {
  initialParallelTable,
  initialTable,
  parallelVocabEmbedding,
  type Rank,
  type TableInitialisation,
  vocabEmbedding,
} from './embedding-modules.js';
export { groupRmsNorm, initialGamma, layerNorm, rmsNorm, swiglu } from './norms-and-activations.js';
export {
  type AngleTableOptions,
  applyInterleavedRotaryPosEmb,
  applyRotaryPosEmb,
  interleavedTables,
  NtkAwareRope,
  type NtkAwareRopeOptions,
  type RotaryTables,
  sinusoidalPositions,
} from './rope-modules.js';
export {
  cast,
  type Float32Tensor,
  type HalfTensor,
  type Ids,
  type ModuleDtype,
  type Tensor,
  tensor,
  toFloat32,
} from './tensor.js';
