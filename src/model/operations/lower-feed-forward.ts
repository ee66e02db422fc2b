/** Gated feed-forward networks and mixtures of experts as primitives. */
import type {
  ClampedExperts,
  Component,
  Expert,
  GatedMlp,
  Linear,
  MixtureOfExperts,
  PackedExperts,
  Router,
} from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import {
  closingProduct,
  computingExperts,
  expertInner,
  expertLayers,
  expertWidth,
  inputWidth,
  isGatedPack,
  packedInner,
  packedMatrices,
  sharedInputWidth,
} from '../architecture/walk.js';
import {
  byLength,
  byRows,
  closing,
  elementwise,
  type LoweringContext,
  type LowerLayer,
  matmul,
  ONE_KERNEL,
  openingMatmuls,
} from './lowering-blocks.js';
import type { Matmul, Primitive, Saved } from './primitive.js';
import { afterSavedInput, allReduce, runOf, vectors } from './primitive.js';

export function lowerGatedMlp(layer: GatedMlp, component: Component): Primitive[] {
  const { name, inputs, down } = layer;
  const inner = inputWidth(closingProduct(down));
  const run = runOf('inner values', inner);
  const saved: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', sharedInputWidth(inputs)), vectors(4, 'inner', inner, 'width')],
    source:
      'the input; gate before and after the activation, the gated values, and the product (4 inner)',
  };
  return [
    ...openingMatmuls(inputs, component, { of: name, runs: [run, run], saved: [saved] }),
    elementwise(layer, component, inner),
    ...closing(down, component, name, run, 'inner'),
  ];
}

export function lowerRouter(
  layer: Router,
  around: LoweringContext,
  lower: LowerLayer,
): Primitive[] {
  const { name, weight, bias, correction, table, expertsPerToken, expertScales } = layer;
  const [experts = 0, hidden = 0] = weight.shape;
  const component = layer.component ?? around.component;
  const product: Primitive = {
    kind: 'router',
    layer: name,
    component,
    input: hidden,
    output: experts,
    params: [weight, bias, correction, table, expertScales].filter((each) => each !== undefined),
    saved: [
      {
        part: component,
        vectors: [
          vectors(1, 'hidden', hidden),
          vectors(1, 'experts', experts),
          vectors(1, 'chosen', expertsPerToken),
        ],
        source: 'the input; the scores of all experts; those of the chosen',
      },
    ],
    cuts: [],
    launches: 1,
    tensor: weight,
    weights: weight.elements,
    rows: 'tokens',
  };
  const inside = { ...around, width: hidden };
  return [...(layer.steps ?? []).flatMap((each) => lower(each, inside)), product];
}

/** Kernels of a mixture's chosen experts: into the inner width, activation, and back. */
const EXPERT_LAUNCHES = 3;

/**
 * Each chosen expert gets a copy of its tokens; one all-reduce sums the outputs of all experts.
 */
export function lowerMixture(
  layer: MixtureOfExperts,
  around: LoweringContext,
  lower: LowerLayer,
): Primitive[] {
  const { component } = around;
  const { name, router, experts, shared, sharedGate, latent, expertNorm } = layer;
  const lowerExpert = (expert: Expert) => lower(expert, { ...around, width: 0 });
  const width = expertWidth(layer);
  const chosen = router.expertsPerToken;
  const hidden = router.weight.shape[1] ?? 0;
  const inside = { ...around, width: hidden };
  const routed: Saved = {
    part: expertLayers(experts)[0]?.component ?? component,
    vectors: [
      vectors(2 * chosen, 'hidden', width, 'whole'),
      vectors((isGated(experts) ? 4 : 2) * chosen, 'expert_inner', expertInner(layer), 'width'),
    ],
    source:
      'of each expert that a token goes to: its copy of the input and its output; ' +
      (isGated(experts)
        ? 'gate before and after the activation, the gated values, and the product'
        : 'the inner values before and after the activation'),
  };
  const gate: Saved = {
    part: sharedGate?.component ?? component,
    vectors: [vectors(1, 'hidden', hidden), vectors(1, 'gates', 1)],
    source: 'the shared output before its gate, and the gate',
  };
  // Experts are equal, so the first ones represent the chosen ones.
  const computed =
    'kind' in experts
      ? lowerPackedExperts(experts, Math.min(chosen, computingExperts(layer)), component)
      : experts.slice(0, chosen).flatMap(lowerExpert);
  const whole = (product: Linear | undefined) =>
    product
      ? [
          matmul(product, component, {
            saved: [
              {
                part: component,
                vectors: [vectors(1, 'input', inputWidth(product))],
                source: 'its input',
              },
            ],
          }),
        ]
      : [];
  return [
    ...lower(router, inside).map((each) =>
      each.kind === 'router' ? { ...each, backward: allReduce(hidden) } : each,
    ),
    ...(expertNorm ? lower(expertNorm, inside) : []),
    ...whole(latent[0]),
    {
      kind: 'dispatch',
      layer: name,
      component,
      input: width,
      output: width,
      ...ONE_KERNEL,
      saved: [routed],
      launches: 0,
      copies: chosen,
    },
    ...computed.map((each) => ({ ...unsummed(each), saved: [], launches: 0 })),
    ...whole(latent[1]),
    ...shared.flatMap((each) => afterSavedInput(lowerExpert(each)).map(unsummed)),
    ...(sharedGate ? [matmul(sharedGate, component, { saved: [gate] })] : []),
    elementwise(layer, component, hidden, {
      forward: allReduce(hidden),
      launches: 1 + EXPERT_LAUNCHES,
    }),
  ];
}

const isGated = (experts: MixtureOfExperts['experts']): boolean =>
  'kind' in experts ? isGatedPack(experts) : experts[0]?.kind === 'gatedMlp';

/** The primitive without its own collectives. */
function unsummed({ forward: _, backward: __, ...primitive }: Primitive): Primitive {
  return primitive;
}

function lowerPackedExperts(
  experts: PackedExperts | ClampedExperts,
  chosen: number,
  around: Component,
): Primitive[] {
  const { name, component, gateUp, down } = experts;
  const matrices = packedMatrices(experts);
  const [opened = { rows: 0, length: 0 }] = matrices;
  const { rows: outer, length: hidden } = opened;
  const copiesOf = (of: Param) => matrices.find(({ tensor }) => tensor === of)?.copies ?? 1;
  const up = experts.kind === 'packedExperts' ? experts.up : undefined;
  const inner = packedInner(experts);
  const run = runOf('inner values', inner);
  const biases = 'downBias' in experts ? [experts.gateUpBias, experts.downBias] : [];
  const product = (
    tensor: Matmul['tensor'],
    input: number,
    output: number,
    cuts: Primitive['cuts'],
    bias: readonly Param[],
  ): Matmul => ({
    kind: 'matmul',
    layer: name,
    component: component ?? around,
    input,
    output,
    ...ONE_KERNEL,
    params: [tensor, ...bias],
    cuts,
    tensor,
    weights: (tensor.elements / copiesOf(tensor)) * chosen,
    rows: 'tokens',
  });
  return [
    product(
      gateUp,
      hidden,
      outer,
      byRows([gateUp, ...biases.slice(0, 1)], name, ...(outer === inner ? [run] : [run, run])),
      biases.slice(0, 1),
    ),
    ...(up ? [product(up, hidden, inner, byRows([up], name, run), [])] : []),
    product(down, inner, hidden, byLength(down, name, run), biases.slice(1)),
  ];
}
