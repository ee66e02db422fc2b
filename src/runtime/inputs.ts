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
  gelu: 'a value',
  causalConv: 'a value',
  mamba: 'a value',
  rotary: 'a value',
  attention: 'a value',
  gate: 'a value',
} as const satisfies Record<Layer['kind'], string>;

/** What a layer takes: token ids [B, T], values [B, T, C], or nothing. */
export const inputsOf = ({ kind }: Layer): (typeof INPUTS)[keyof typeof INPUTS] => INPUTS[kind];
