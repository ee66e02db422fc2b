/** Runs of positions: RoPE and sinusoidal tables. */
import {
  type BlockCheck,
  type BlockRun,
  type BlockSizes,
  CLOSE,
  countOf,
  done,
  Inputs,
  mapped,
  onesLike,
  pythonFloat,
  type RotationStep,
  same,
} from './block-run.js';
import {
  applyInterleavedRotaryPosEmb,
  applyRotaryPosEmb,
  interleavedTables,
  NtkAwareRope,
  sinusoidalPositions,
} from './rope-modules.js';
import { cast, type Tensor, tensor, toFloat32 } from './tensor.js';

export function runNtkRope(sizes: BlockSizes): BlockRun {
  const { batch, heads, headDim, positions, base, scale, dynamic, calls, dtype } = sizes;
  // Tables reach from position 0 to the last one; the next even scale at most doubles that.
  countOf([positions * scale, headDim]);
  for (const call of calls) countOf([call.offset + call.positions, headDim]);
  const rope = new NtkAwareRope({ headDim, maxPositions: positions, base, scale, dynamic });
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const steps: RotationStep[] = [];
  const checks: BlockCheck[] = [];
  for (const [at, call] of calls.entries()) {
    const x = inputs.randn(`x${at}`, [batch, call.positions, heads, headDim]);
    const used = rope.scaleFor(call.offset + call.positions);
    const y = rope.apply(x, call.offset);
    inputs.output(`y${at}`, y);
    steps.push({
      ...call,
      scale: used,
      base: rope.baseFor(used),
      keptScale: rope.scale,
      keptRows: rope.tables.cos.shape[0] ?? 0,
    });
    checks.push(
      same(`call ${at + 1}: lengths of the pairs`, pairLengths(x), pairLengths(y), CLOSE[dtype]),
    );
    if (call.offset === 0) {
      const first = heads * headDim;
      const firstOf = (values: Tensor) => tensor([first], toFloat32(values).subarray(0, first));
      checks.push(same(`call ${at + 1}: position 0 is not rotated`, firstOf(x), firstOf(y), 0));
    }
  }
  return { ...done(inputs, checks), calls: steps };
}

/** Length of each pair (x_j, x_{j + hd/2}), which a rotation keeps. */
function pairLengths(x: Tensor): Tensor {
  const width = x.shape.at(-1) ?? 2;
  const values = toFloat32(x);
  const lengths = values.map((value, at) => {
    const column = at % width;
    return column < width / 2 ? Math.hypot(value, values[at + width / 2] ?? 0) : 0;
  });
  return tensor(x.shape, lengths);
}

export function runSinusoidal(sizes: BlockSizes): BlockRun {
  const { tokens, hidden, base, dtype } = sizes;
  countOf([tokens, hidden]);
  const inputs = new Inputs(sizes);
  const positions = Array.from({ length: tokens }, (_, position) => position);
  inputs.given('n', positions, `torch.arange(${pythonFloat(tokens)})`);
  const table = sinusoidalPositions({ positions: tokens, width: hidden, base });
  inputs.output('y', cast(table, dtype));
  const { cos, sin } = interleavedTables({ positions: 1, width: hidden, base, offset: 1 });
  const next = sinusoidalPositions({ positions: tokens, width: hidden, base, offset: 1 });
  const swapped = swappedPairs(table);
  // sin(a + θ) = sin a · cos θ + cos a · sin θ, and cos(a + θ) = cos a · cos θ − sin a · sin θ.
  const moved = mapped(table, (value, at) => {
    const column = at % hidden;
    const sign = column % 2 === 0 ? 1 : -1;
    return value * (cos.data[column] ?? 0) + sign * (swapped[at] ?? 0) * (sin.data[column] ?? 0);
  });
  const lengths = mapped(table, (value, at) => value ** 2 + (swapped[at] ?? 0) ** 2);
  return done(inputs, [
    same('sin² + cos² = 1 in each pair', lengths, onesLike(lengths), CLOSE.f32),
    same('position n + 1 is position n, turned by θ', moved, next, CLOSE.f32),
  ]);
}

/** Values with those of each pair of neighbours exchanged. */
const swappedPairs = (x: Tensor): Float32Array => {
  const values = toFloat32(x);
  return values.map((_, at) => values[at % 2 === 0 ? at + 1 : at - 1] ?? 0);
};

export function runInterleavedRope(sizes: BlockSizes): BlockRun {
  const { batch, tokens, heads, headDim, base, dtype } = sizes;
  countOf([tokens, headDim]);
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const x = inputs.randn('x', [batch, tokens, heads, headDim]);
  const { cos, sin } = interleavedTables({ positions: tokens, width: headDim, base });
  inputs.output('cos', cos);
  inputs.output('sin', sin);
  const y = applyInterleavedRotaryPosEmb(x, cos, sin);
  inputs.output('y', y);
  const halves = (values: Tensor) =>
    reorderedColumns(values, (column) => halfColumn(column, headDim));
  const lengths = ({ shape, data }: Tensor, swapped: Float32Array) =>
    tensor(
      shape,
      Float32Array.from(data, (_, at) => Math.hypot(data[at] ?? 0, swapped[at] ?? 0)),
    );
  const [before, after] = [cast(x, 'f32'), cast(y, 'f32')];
  return done(inputs, [
    same(
      'the pairs (x_j, x_{j + hd/2}) of reordered columns: the same',
      halves(y),
      applyRotaryPosEmb(halves(x), halves(cos), halves(sin)),
      0,
    ),
    same(
      'lengths of the pairs',
      lengths(before, swappedPairs(before)),
      lengths(after, swappedPairs(after)),
      CLOSE[dtype],
    ),
  ]);
}

/** Old column of the value at `column`, after all first members of pairs are moved before the second ones. */
const halfColumn = (column: number, width: number): number =>
  column < width / 2 ? 2 * column : 2 * (column - width / 2) + 1;

function reorderedColumns(x: Tensor, from: (column: number) => number): Tensor {
  const width = x.shape.at(-1) ?? 1;
  const values = toFloat32(x);
  return mapped(x, (_, at) => {
    const column = at % width;
    return values[at - column + from(column)] ?? 0;
  });
}
