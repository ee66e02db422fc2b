/** Buffers that follow from a model's configuration; checkpoints often leave them out. */
import type { Layer, Rotary, SrteSincos } from './layer.js';
import type { Param } from './param.js';
import { rotaryFrequencies } from './rotary-scaling.js';
import { walk } from './walk.js';

/** Value at a row-major index of a tensor. */
export type Formula = (index: number) => number;

/**
 * Formulas of every buffer below `layer`. They round to float32 at each step, as the original does, so values
 * match bit for bit.
 */
export function computedBuffers(layer: Layer): Map<Param, Formula> {
  const formulas = new Map<Param, Formula>();
  for (const visit of walk(layer)) {
    if (visit.layer.kind === 'rotary') rotaryFormulas(visit.layer, formulas);
    if (visit.layer.kind === 'srteSincos') sincosFormula(visit.layer, formulas);
  }
  return formulas;
}

const f32 = Math.fround;

/** Frequencies [d / 2], then cosine and sine [1, 1, positions, d] of position · frequency. */
function rotaryFormulas(rotary: Rotary, into: Map<Param, Formula>): void {
  const [frequencies, cosines, sines] = rotary.tables;
  const { headDim } = rotary;
  const half = headDim / 2;
  const frequency = rotaryFrequencies(rotary);
  const angle: Formula = (index) =>
    f32(Math.floor(index / headDim) * (frequency[(index % headDim) % half] ?? Number.NaN));
  if (frequencies) into.set(frequencies, (j) => frequency[j] ?? Number.NaN);
  if (cosines) into.set(cosines, (index) => Math.cos(angle(index)));
  if (sines) into.set(sines, (index) => Math.sin(angle(index)));
}

function sincosFormula({ inverseFrequencies }: SrteSincos, into: Map<Param, Formula>): void {
  const hidden = 2 * inverseFrequencies.elements;
  const exponent = f32(-Math.log(10_000) / hidden);
  into.set(inverseFrequencies, (j) => Math.exp(f32(2 * j * exponent)));
}
