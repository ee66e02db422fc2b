/**
 * Weights from a seed. Each value depends on the seed, the tensor's name and its place alone, by integer
 * arithmetic: every part of every tensor can be read in any order, and is the same on every machine.
 */

import { computedBuffers, type Formula } from '../architecture/computed-buffers.js';
import { type Layer, walk } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import type { WeightSource } from './weights.js';

/** What the values of a tensor are like. */
type Initialisation =
  /** Evenly between −bound and bound. */
  | { readonly kind: 'uniform'; readonly bound: number }
  /** About normal, with this standard deviation. */
  | { readonly kind: 'normal'; readonly deviation: number }
  | { readonly kind: 'formula'; readonly formula: Formula };

/** Of embeddings and of the SRTE's tables: small, as language models begin. */
const TABLE: Initialisation = { kind: 'normal', deviation: 0.02 };
const ONES: Initialisation = { kind: 'formula', formula: () => 1 };
const ZEROS: Initialisation = { kind: 'formula', formula: () => 0 };

/**
 * A model's weights as a training begins with them: those of PyTorch's layers, and Mamba's state from
 * −1 to −N in every channel (S4D-real, arXiv 2206.11893). Activations stay of the order of one.
 */
export function randomWeights(layer: Layer, seed: number): WeightSource {
  const known = initialisations(layer);
  return {
    rangeOf: () => undefined,
    read(tensor, first, target) {
      const initialisation = known.get(tensor);
      if (!initialisation) throw new Error(`${tensor.name} is no tensor of the model`);
      fill(initialisation, keyOf(seed, tensor.name), first, target);
    },
  };
}

/** A tensor that several layers hold is for the first of them: a tied head's for the embedding. */
function initialisations(layer: Layer): Map<Param, Initialisation> {
  const known = new Map<Param, Initialisation>();
  const visits = walk(layer);
  for (const visit of visits) {
    for (const [tensor, initialisation] of ownInitialisations(visit.layer)) {
      if (!known.has(tensor)) known.set(tensor, initialisation);
    }
  }
  for (const [tensor, formula] of computedBuffers(layer)) {
    known.set(tensor, { kind: 'formula', formula });
  }
  return known;
}

/** Bound of PyTorch's own initialisation of linear layers and convolutions. */
const spread = (inputs: number): Initialisation => ({ kind: 'uniform', bound: inputs ** -0.5 });

function ownInitialisations(layer: Layer): (readonly [Param, Initialisation])[] {
  switch (layer.kind) {
    case 'embedding':
      return [[layer.weight, TABLE]];
    case 'linear': {
      const values = spread(layer.weight.shape[1] ?? 1);
      return [[layer.weight, values], ...(layer.bias ? [[layer.bias, values] as const] : [])];
    }
    case 'causalConv': {
      // One channel in, so a value is the sum of as many products as the kernel is long.
      const values = spread(layer.weight.shape[2] ?? 1);
      return [
        [layer.weight, values],
        [layer.bias, values],
      ];
    }
    case 'layerNorm':
      return [
        [layer.weight, ONES],
        [layer.bias, ZEROS],
      ];
    case 'mamba': {
      const { stateSize } = layer;
      const logarithm: Formula = (index) => Math.log(1 + (index % stateSize));
      return [
        [layer.stateLog, { kind: 'formula', formula: logarithm }],
        [layer.skip, ONES],
      ];
    }
    case 'srteTable':
      return [[layer.table, TABLE]];
    case 'srteLowRank':
      return [[layer.lowRank, TABLE]];
    case 'rotary':
    case 'srteSincos':
      // Their buffers are computed.
      return [];
    case 'languageModel':
    case 'hybridBlock':
    case 'sequence':
    case 'attention':
    case 'alignment':
    case 'gate':
    case 'gelu':
      return [];
  }
}

function fill(
  initialisation: Initialisation,
  key: number,
  first: number,
  target: Float32Array,
): void {
  switch (initialisation.kind) {
    case 'uniform':
      fillUniform(key, first, target, initialisation.bound);
      break;
    case 'normal':
      fillNormal(key, first, target, initialisation.deviation);
      break;
    case 'formula':
      for (let i = 0; i < target.length; i++) target[i] = initialisation.formula(first + i);
  }
}

function fillUniform(key: number, first: number, target: Float32Array, bound: number): void {
  const step = bound * 2 ** -23;
  hashed(key, first, target.length, (hashes, at) => {
    // The 24 bits that a float32 holds, so that the middle between −bound and bound is as far from both.
    for (let i = 0; i < hashes.length; i++) {
      target[at + i] = (((hashes[i] ?? 0) >>> 8) + 0.5) * step - bound;
    }
  });
}

/** Standard deviation of the sum of four bytes, each of 0 to 255. */
const DEVIATION_OF_BYTES = Math.sqrt((4 * (256 ** 2 - 1)) / 12);

/** The sum of a hash's four bytes is close enough to normal. */
function fillNormal(key: number, first: number, target: Float32Array, deviation: number): void {
  const scale = deviation / DEVIATION_OF_BYTES;
  hashed(key, first, target.length, (hashes, at) => {
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i] ?? 0;
      const sum = (hash & 255) + ((hash >>> 8) & 255) + ((hash >>> 16) & 255) + (hash >>> 24);
      target[at + i] = (sum - 510) * scale;
    }
  });
}

const BLOCK = 4096;
const block = new Uint32Array(BLOCK);

/** Hashes of `count` places from `first` on, in pieces whose memory is used again. */
function hashed(
  key: number,
  first: number,
  count: number,
  take: (hashes: Uint32Array, at: number) => void,
): void {
  for (let at = 0; at < count; at += BLOCK) {
    const hashes = block.subarray(0, Math.min(BLOCK, count - at));
    fillHashes(key, first + at, hashes);
    take(hashes, at);
  }
}

/** Odd, and near 2^32 divided by the golden ratio: neighbouring places become far apart. */
const STRIDE = 0x9e3779b1;

function fillHashes(key: number, first: number, target: Uint32Array): void {
  for (let i = 0; i < target.length; i++) {
    const index = first + i;
    // The place has 53 bits: its high part changes the key.
    const high = Math.floor(index / 2 ** 32);
    const own = high === 0 ? key : mixed(key ^ mixed(high));
    target[i] = mixed(own + Math.imul(index >>> 0, STRIDE));
  }
}

/** A hash of 32 bits (C. Wellons' lowbias32, https://github.com/skeeto/hash-prospector). */
function mixed(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return (x ^ (x >>> 15)) >>> 0;
}

/** FNV-1a over seed and name. */
function keyOf(seed: number, name: string): number {
  let key = 0x811c9dc5;
  for (const character of `${seed} ${name}`) {
    key = Math.imul(key ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  return mixed(key);
}

/** Whole numbers from 0 to below `limit` for `count` places, by a seed and a name. */
export function randomIntegers(
  seed: number,
  name: string,
  count: number,
  limit: number,
): Int32Array {
  const hashes = new Uint32Array(count);
  fillHashes(keyOf(seed, name), 0, hashes);
  return Int32Array.from(hashes, (hash) => Math.floor((hash / 2 ** 32) * limit));
}
