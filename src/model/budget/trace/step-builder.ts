/** Builds the steps of a trace: names, operations, output shapes, and parameters counted once. */

import type { Shape } from '../../../base/tensor/dtype.js';
import { formatInteger } from '../../../base/text/units.js';
import { sumOf } from '../../../base/values.js';
import type {
  GatedRmsNorm,
  HeadNorms,
  Layer,
  LayerNorm,
  NormLayer,
  ProjectionLayer,
  RmsNorm,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { inputWidth, outputWidth, tensorsOf } from '../../architecture/walk.js';
import { widthAfter } from '../../operations/lower.js';

/** Sequences, and tokens per sequence. */
export interface TokenGrid {
  readonly batch: number;
  readonly tokens: number;
}

export interface TraceStep {
  /** Path of the layer, or a description for a step without its own layer. */
  readonly name: string;
  /** Nesting depth in the model. @count */
  readonly depth: number;
  /** Operation of the step. */
  readonly operation: string;
  /** Output shape. @count */
  readonly shape: Shape;
  /** Parameters of the step; each tensor is counted where it is first used. @count */
  readonly parameters: number;
}

/** A step without its depth. */
export type UnplacedStep = Omit<TraceStep, 'depth'>;

export class StepBuilder {
  readonly batch: number;
  readonly tokens: number;
  /** First dimensions of most outputs: batch and tokens. */
  readonly lead: Shape;
  /** Tensors already counted. */
  readonly #listed = new Set<Param>();
  readonly #stepsOf: (layer: Layer, size: number, build: StepBuilder) => UnplacedStep[];

  constructor(
    { batch, tokens }: TokenGrid,
    stepsOf: (layer: Layer, size: number, build: StepBuilder) => UnplacedStep[],
  ) {
    this.batch = batch;
    this.tokens = tokens;
    this.lead = [batch, tokens];
    this.#stepsOf = stepsOf;
  }

  /** Steps of any layer whose input has `size` values per token. */
  steps(layer: Layer, size: number): UnplacedStep[] {
    return this.#stepsOf(layer, size, this);
  }

  /** Steps of layers applied in order. */
  inTurn(layers: readonly Layer[], size: number): UnplacedStep[] {
    let width = size;
    return layers.flatMap((layer) => {
      const steps = this.steps(layer, width);
      width = widthAfter(layer, width);
      return steps;
    });
  }

  step(layer: Layer, operation: string, ...sizes: readonly number[]): UnplacedStep {
    return {
      name: layer.name,
      operation,
      shape: [...this.lead, ...sizes],
      parameters: this.countNew(tensorsOf(layer)),
    };
  }

  /** A step without its own layer. */
  between(name: string, operation: string, ...sizes: readonly number[]): UnplacedStep {
    return { name, operation, shape: [...this.lead, ...sizes], parameters: 0 };
  }

  linear(layer: ProjectionLayer): UnplacedStep {
    const [from, to] = [inputWidth(layer), outputWidth(layer)];
    const again = this.isListed([layer.weight]) ? `, with ${layer.weight.name}` : '';
    const bias = layer.bias ? ' + bias' : '';
    const stored = layer.kind === 'transposedLinear' ? ', stored [in, out]' : '';
    return this.step(
      layer,
      `linear ${formatInteger(from)} → ${formatInteger(to)}${bias}${stored}${again}`,
      to,
    );
  }

  /** Whether earlier steps counted all of these tensors. */
  isListed(tensors: readonly Param[]): boolean {
    return tensors.every((tensor) => this.#listed.has(tensor));
  }

  /** Parameters of the tensors that no earlier step counted. */
  countNew(tensors: readonly Param[]): number {
    const fresh = tensors.filter((tensor) => !this.#listed.has(tensor));
    for (const tensor of fresh) this.#listed.add(tensor);
    return sumOf(fresh, ({ role, elements }) => (role === 'parameter' ? elements : 0));
  }
}

// Operations as the trace shows them: norms, rotation by position, scores

export const rmsText = ({ eps, offset, weight }: RmsNorm) =>
  `RMSNorm, eps ${eps}${offset === 0 ? '' : `, weight + ${offset}`}${weight ? '' : ', no weight'}`;

export const gatedNormText = ({ eps, groups, gated, activation }: GatedRmsNorm) => {
  const norm = `RMSNorm, eps ${eps}${groups === 1 ? '' : `, of each of ${groups} groups`}`;
  const gate = `f(gate), f = ${ACTIVATIONS[activation]}`;
  return gated === 'before' ? `x · ${gate}; ${norm}` : `${norm}; · ${gate}`;
};

export const layerNormText = ({ eps, offset, weight, bias }: LayerNorm) =>
  `LayerNorm, eps ${eps}${offset === 0 ? '' : `, weight + ${offset}`}` +
  (bias ? '' : weight ? ', no bias' : ', no weight or bias');

export const normText = (norm: NormLayer) =>
  norm.kind === 'rmsNorm' ? rmsText(norm) : layerNormText(norm);

/** One step for all: the norms differ in nothing but their weights. */
export const headNormsText = ({ norms: [first] }: HeadNorms) =>
  `${first ? normText(first) : ''}, another for each head`;
