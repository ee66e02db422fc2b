/** Steps of the hybrid model's block and of its parts. */
import type { Alignment, Gate, HybridBlock, Srte } from '../../architecture/layer.js';
import { tensorsOf } from '../../architecture/walk.js';
import { formatInteger } from '../../text/units.js';
import type { StepBuilder, UnplacedStep } from './step-builder.js';

export function hybridBlockSteps(
  block: HybridBlock,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  const { name } = block;
  return [
    ...build.steps(block.inputNorm, size),
    ...build.steps(block.srte, size),
    build.between(`${name}.mamba`, 'ln_input + SRTE', size),
    ...build.steps(block.mamba, size),
    ...build.steps(block.attention, size),
    ...(block.alignment
      ? build.steps(block.alignment, size)
      : [build.between(`${name}.mean`, 'mean of Mamba and attention', size)]),
    ...build.steps(block.gate, size),
    build.between(`${name}.fused`, 'gate · Mamba + (1 − gate) · attention', size),
    ...build.steps(block.fusion, size),
    ...build.steps(block.mlp, size),
    build.between(`${name}.sum`, 'block input + fusion_proj + small_mlp', size),
    ...build.steps(block.outputNorm, size),
  ];
}

export function srteStep(layer: Srte, size: number, build: StepBuilder): UnplacedStep {
  const known = build.isListed(tensorsOf(layer));
  const rows = `rows 0 to ${build.tokens - 1}`;
  const operation = known ? `${rows} again` : `${rows}: ${srteText(layer)}`;
  return { ...build.step(layer, operation), shape: [1, build.tokens, size] };
}

function srteText(srte: Srte): string {
  switch (srte.kind) {
    case 'srteTable':
      return `a table of ${formatInteger(srte.table.shape[1] ?? 0)}`;
    case 'srteLowRank':
      return `${formatInteger(srte.lowRank.shape[1] ?? 0)} rows of rank ${srte.lowRank.shape[2]} · projection`;
    case 'srteSincos':
      return 'sines and cosines';
  }
}

export function alignmentSteps(
  { name, net, residual }: Alignment,
  size: number,
  build: StepBuilder,
): UnplacedStep[] {
  return [
    build.between(`${name}.concat`, 'Mamba, attention', 2 * size),
    ...build.steps(net, size),
    build.linear(residual),
    build.between(`${name}.sum`, 'net + residual_proj', size),
  ];
}

export function gateSteps({ name, up, down }: Gate, build: StepBuilder): UnplacedStep[] {
  const [rank = 0, size = 0] = up.weight.shape;
  return [
    build.linear(up),
    build.between(`${name}.tanh`, 'tanh', rank),
    build.linear(down),
    build.between(`${name}.sigmoid`, 'sigmoid', size),
  ];
}
