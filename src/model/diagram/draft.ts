/** Nodes of a diagram while it is made: with their layers, and without places and FLOPs. */
import type { Component, Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { countedTensors, type OwnedTensor } from '../architecture/walk.js';
import type { DiagramFacts, DiagramTensor } from './diagram.js';

/** Facts that the maker of a diagram fills in. */
type Late = 'blocks' | 'count' | 'flops' | 'width' | 'parameters' | 'buffers' | 'tensors';

export interface Draft extends Omit<DiagramFacts, Late> {
  count: number;
  blocks: readonly number[];
  width: number;
  flops: bigint;
  readonly tensors: DiagramTensor[];
  readonly children: Draft[];
  /** Layers of a box or an operation; empty for others. */
  readonly layers: readonly Layer[];
  /** Tensors of other boxes. */
  readonly uses: Set<Param>;
}

export const draft = (
  facts: Pick<Draft, 'kind' | 'label' | 'component'> & Partial<Draft>,
): Draft => ({
  notes: [],
  count: 1,
  blocks: [],
  width: 0,
  flops: 0n,
  tensors: [],
  children: [],
  layers: [],
  uses: new Set(),
  ...facts,
});

export const series = (component: Component, children: readonly Draft[]): Draft =>
  draft({
    kind: 'series',
    label: '',
    component,
    // A series in a series is the same as its children.
    children: children.flatMap((child) => (child.kind === 'series' ? child.children : [child])),
    width: children.at(-1)?.width ?? 0,
  });

/** A node and all below it, parents first. */
export function* draftsFrom(node: Draft): Generator<Draft> {
  yield node;
  for (const child of node.children) yield* draftsFrom(child);
}

/** A tensor, and the number of equal ones that it stands for. */
type Counted = Pick<OwnedTensor, 'tensor' | 'count'>;

/** The box that has each tensor, so that a tensor is in one box only. */
export class Ownership {
  readonly owners = new Map<Param, Draft>();

  /** Boxes that several blocks use. */
  readonly shared: Draft[] = [];

  /**
   * @param inSeveral Tensors that several blocks use.
   * @param typeOf Element type of a tensor.
   */
  constructor(
    private readonly inSeveral: ReadonlySet<Param>,
    private readonly typeOf: (tensor: Param) => string | null,
  ) {}

  /** Whether every tensor of a layer is in a box already, or is used by several blocks. */
  isElsewhere(layer: Layer): boolean {
    const all = countedTensors(layer);
    return all.length > 0 && all.every(({ tensor }) => this.#isShared(tensor));
  }

  isDefined(layer: Layer): boolean {
    return countedTensors(layer).every(({ tensor }) => this.owners.has(tensor));
  }

  #isShared(tensor: Param): boolean {
    return this.inSeveral.has(tensor) || this.owners.has(tensor);
  }

  /**
   * Gives a box those of its tensors that no other box has. Those of several blocks go to a box of their own.
   * @param isShared Whether the box is itself one of those.
   */
  claim(box: Draft, tensors: readonly Counted[], isShared: boolean): void {
    const common: Counted[] = [];
    for (const each of tensors) {
      const { tensor } = each;
      const owner = this.owners.get(tensor);
      if (owner === box) continue;
      if (owner !== undefined) box.uses.add(tensor);
      else if (this.inSeveral.has(tensor) && !isShared) {
        box.uses.add(tensor);
        common.push(each);
      } else this.#give(box, each);
    }
    if (common.length === 0) return;
    const weights = draft({
      kind: 'box',
      label: `${box.label}, common weights`,
      component: box.component,
      width: box.width,
    });
    for (const each of common) this.#give(weights, each);
    this.shared.push(weights);
  }

  #give(box: Draft, { tensor, count }: Counted): void {
    this.owners.set(tensor, box);
    const { name, shape, role } = tensor;
    box.tensors.push({ name, shape, role, count, dtype: this.typeOf(tensor) });
  }
}
