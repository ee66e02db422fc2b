/** Fields of every layer, and the components that budgets are broken down by. */

/** Purpose of a layer; budgets are broken down by it. Reports use this order. */
export const COMPONENTS = {
  embedding: 'embedding',
  perLayerInputs: 'per-layer inputs',
  srte: 'SRTE',
  mamba: 'Mamba',
  deltaNet: 'gated DeltaNet',
  shortConvolution: 'short convolution',
  attention: 'attention',
  altUp: 'AltUp',
  alignment: 'alignment',
  gate: 'gate',
  fusion: 'fusion',
  mlp: 'small MLP',
  norm: 'norms',
  positions: 'learned positions',
  feedForward: 'feed-forward',
  router: 'router',
  experts: 'experts',
  sharedExperts: 'shared experts',
  head: 'head',
  /** Fallback without a component on any layer above. */
  other: 'other',
} as const satisfies Record<string, string>;

export type Component = keyof typeof COMPONENTS;

export interface Node<Kind extends string> {
  readonly kind: Kind;
  /** PyTorch path in the model: `layers.0.mamba`. */
  readonly name: string;
  /** Purpose of the layer; defaults to that of its parent. */
  readonly component?: Component;
}
