import type { Layer } from '../architecture/layer.js';

const INPUTS = {
  languageModel: 'ids',
  embedding: 'ids',
  srteTable: 'nothing',
  srteLowRank: 'nothing',
  srteSincos: 'nothing',
  alignment: 'two values',
  hybridBlock: 'a value',
  sequence: 'a value',
  linear: 'a value',
  layerNorm: 'a value',
  activation: 'a value',
  transposedLinear: 'a value',
  fusedProjection: 'a value',
  rmsNorm: 'a value',
  scale: 'a value',
  softcap: 'a value',
  learnedPositions: 'a value',
  residual: 'a value',
  gatedMlp: 'a value',
  router: 'a value',
  packedExperts: 'a value',
  mixtureOfExperts: 'a value',
  alibi: 'a value',
  latentAttention: 'a value',
  causalConv: 'a value',
  mamba: 'a value',
  rotary: 'a value',
  attention: 'a value',
  gate: 'a value',
} as const satisfies Record<Layer['kind'], string>;

/** What a layer takes: token ids [B, T], values [B, T, C], or nothing. */
export const inputsOf = ({ kind }: Layer): (typeof INPUTS)[keyof typeof INPUTS] => INPUTS[kind];
