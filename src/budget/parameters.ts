import { COMPONENTS, type Component, type Layer, ownedTensors } from '../architecture/layer.js';

/** Exact counts of stored values, each storage once. */
export interface ParameterBudget {
  readonly parameters: number;
  /** By what they are for; their sum is `parameters`. */
  readonly byComponent: Readonly<Record<Component, number>>;
  /** Values in buffers, which are stored but are no parameters. */
  readonly buffers: number;
}

/** Counts everything below and with `layer`. Exact for whatever `languageModel` accepts. */
export function countParameters(layer: Layer): ParameterBudget {
  const byComponent = Object.fromEntries(
    Object.keys(COMPONENTS).map((component) => [component, 0]),
  ) as Record<Component, number>;
  let parameters = 0;
  let buffers = 0;
  for (const { tensor, component } of ownedTensors(layer)) {
    if (tensor.role === 'buffer') {
      buffers += tensor.elements;
      continue;
    }
    parameters += tensor.elements;
    if (component) byComponent[component] += tensor.elements;
  }
  return { parameters, byComponent, buffers };
}
