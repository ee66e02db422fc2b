/** Tensors that a layer needs, each once, and how many values they hold. */
import type { Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { tensorsOf, walk } from '../architecture/walk.js';

/** Every tensor that running a layer takes. RoPE's tables are computed wherever they are needed. */
export function neededTensors(layer: Layer): Param[] {
  const computed = new Set(
    walk(layer).flatMap(({ layer: each }) => (each.kind === 'rotary' ? each.tables : [])),
  );
  return tensorsOf(layer).filter((tensor) => !computed.has(tensor));
}

export const elementsIn = (tensors: readonly Param[]) =>
  tensors.reduce((sum, tensor) => sum + tensor.elements, 0);
