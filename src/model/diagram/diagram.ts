/**
 * Block diagram of a model as plain data: a tree of nodes, in the order of computation, and links between those that
 * use the same tensors. Shapes: B batch, T tokens.
 */
import type { Component } from '../architecture/layer.js';
import type { Exact } from '../budget/figure.js';

/**
 * Kinds of nodes. `box`: layers drawn as one. `operation`: a layer without tensors, such as an activation. `series`:
 * its children in turn. `parallel`: its children side by side for one input, joined by what its label says.
 * `residual`: as `parallel`, and the input is added. `group`: its children in turn, `count` times, with a frame.
 */
export const DIAGRAM_KINDS = [
  'box',
  'operation',
  'series',
  'parallel',
  'residual',
  'group',
] as const;

export type DiagramKind = (typeof DIAGRAM_KINDS)[number];

/** Equal tensors of a box. */
export interface DiagramTensor {
  /** Name in a checkpoint; of several, the first. */
  readonly name: string;
  /** Sizes of the dimensions. @count */
  readonly shape: readonly number[];
  /** Number of equal tensors in the box, such as those of all experts. @count */
  readonly count: number;
  /** Whether it is trained. */
  readonly role: 'parameter' | 'buffer';
  /**
   * Element type in the checkpoint, or else the one that the config names: `bf16`. Where equal blocks that are drawn once
   * differ, all of them: `q4_k, q6_k`. Null where neither says.
   */
  readonly dtype: string | null;
}

/** Kind of a difference from another model. */
export type DiagramChange = 'same' | 'added' | 'removed' | 'changed';

/** A node without its place in the tree. */
export interface DiagramFacts {
  /** Kind of the node. */
  readonly kind: DiagramKind;
  /** `Attention`, `RMSNorm`, `block`; empty for a series. */
  readonly label: string;
  /** Short facts: `8 heads of 64`. */
  readonly notes: readonly string[];
  /** Component of the model that the parameters belong to. */
  readonly component: Component;
  /** Repetitions of a group; 1 elsewhere. @count */
  readonly count: number;
  /** Numbers of the blocks that a group stands for; empty elsewhere. @integer */
  readonly blocks: readonly number[];
  /** Values of each token after the node: its output is [B, T, width]. @count */
  readonly width: number;
  /** Parameters of one repetition, each tensor in one box only. @count */
  readonly parameters: number;
  /** Buffers of one repetition, in values. @count */
  readonly buffers: number;
  /** FLOPs of a forward pass through one repetition. @exact */
  readonly flops: Exact;
  /** Tensors of a box; those that it shares with an earlier box are there. */
  readonly tensors: readonly DiagramTensor[];
}

/** A node of the tree. */
export interface DiagramNode extends DiagramFacts {
  /** Unique in the diagram: `n12`. */
  readonly id: string;
  readonly children: readonly DiagramNode[];
  /** With another model: how the node differs. */
  readonly change: DiagramChange;
  /** Facts of the other model's node where it differs: `8 heads of 64`, `3.28M`. */
  readonly before: readonly string[];
}

/** Boxes that use tensors of another box. */
export interface DiagramLink {
  /** Box that has the tensors. */
  readonly from: string;
  /** Box that uses them. */
  readonly to: string;
  /** Whether the head uses the embedding, or blocks use a common layer. */
  readonly kind: 'tied' | 'shared';
  /** Name of the first tensor in a checkpoint. */
  readonly tensor: string;
}

/** A drawn model. */
export interface Diagram {
  /** Nodes from the token ids to the logits, in a series. */
  readonly root: DiagramNode;
  /** Boxes and groups that several blocks use. Each use has the FLOPs. */
  readonly shared: readonly DiagramNode[];
  readonly links: readonly DiagramLink[];
}

/** A node and all below it, parents first. */
export function* nodesFrom(node: DiagramNode): Generator<DiagramNode> {
  yield node;
  for (const child of node.children) yield* nodesFrom(child);
}

/** All nodes of a diagram, with how often each is in the model. */
export function* countedNodes({
  root,
  shared,
}: Pick<Diagram, 'root' | 'shared'>): Generator<{ node: DiagramNode; times: number }> {
  yield* countedFrom(root, 1);
  for (const each of shared) yield* countedFrom(each, 1);
}

function* countedFrom(
  node: DiagramNode,
  times: number,
): Generator<{ node: DiagramNode; times: number }> {
  yield { node, times };
  for (const child of node.children) yield* countedFrom(child, times * node.count);
}
