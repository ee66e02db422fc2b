/** Checks whether the tensors of a call fit into the binding limit of a graphics card. */

import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import type { Layer } from '../../model/architecture/layer.js';
import { primitivesOf } from '../../model/operations/lower.js';
import type { Primitive } from '../../model/operations/primitive.js';
import { WEBGPU_COMMAND } from '../adapters/adapters.js';
import type { Target } from './context.js';
import { GUARANTEED_BYTES, headsAtATime, mostElements } from './context.js';

/** One run of a graph. */
interface GraphRun {
  readonly batch: number;
  readonly tokens: number;
  /** Tokens of former calls. */
  readonly start: number;
}

/** Rows for which each part of the logits should fit into one binding. */
const LOGIT_ROWS = 4096;

/** Columns of the logits that one operation computes: at least the width of the other layers. */
export const logitColumns = (target: Target, model: Layer): number =>
  Math.max(
    Math.floor(mostElements(target) / LOGIT_ROWS),
    largestValue(model, ONE_ROW, target).elements,
  );

const ONE_ROW: GraphRun = { batch: 1, tokens: 1, start: 0 };

/**
 * Checks that no tensor of a call exceeds the binding limit. ONNX Runtime 1.30 splits larger tensors into several
 * bindings, but not for every operation: the results of Softmax, LayerNormalization, Where and LinearAttention are
 * silently wrong beyond the limit.
 * @param areLogitsApart Whether the logits leave the graph in parts (see `logitColumns`).
 * @throws UserError with the part of the call that would fit.
 */
export function checkFits(
  layer: Layer,
  call: GraphRun,
  target: Target,
  areLogitsApart: boolean,
): void {
  const most = mostElements(target);
  if (most === Number.POSITIVE_INFINITY) return;
  const needed = largestValue(layer, call, target, areLogitsApart);
  if (needed.elements <= most) return;
  const { batch, tokens, start } = call;
  const fits = (smaller: Partial<GraphRun>) =>
    largestValue(layer, { ...call, ...smaller }, target, areLogitsApart).elements <= most;
  const sequences = largestThat(batch, (count) => fits({ batch: count }));
  const length = largestThat(tokens, (count) => fits({ batch: 1, tokens: count }));
  const smaller =
    sequences > 0
      ? `take a batch of at most ${sequences}`
      : `take a batch of 1 and a context of at most ${start + length} tokens`;
  const isGuaranteed = target.maxBindingBytes === GUARANTEED_BYTES[target.provider];
  const [sees, remedy] = isGuaranteed
    ? [' for certain', `, or ${WEBGPU_COMMAND} to find out how much`]
    : ['', ''];
  throw new UserError(
    'system',
    `${batch} × ${tokens} tokens need a tensor of ${megabytes(needed.elements)} MB in ${JSON.stringify(needed.name)}; an operation of the graphics card can use ${megabytes(most)} MB${sees}`,
    { suggestion: `${smaller}, or ${setting('device', 'cpu')}${remedy}` },
  );
}

const megabytes = (elements: number): number =>
  Math.floor((elements * Float32Array.BYTES_PER_ELEMENT) / 1e6);

/** The largest number below `end` for which a monotonic condition holds; 0 for none. */
function largestThat(end: number, holds: (count: number) => boolean): number {
  let [good, bad] = [0, end];
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (holds(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

interface Large {
  readonly elements: number;
  /** Name of the layer that computes it. */
  readonly name: string;
}

/** The largest value except weights. */
export function largestValue(
  layer: Layer,
  call: GraphRun,
  target: Target,
  areLogitsApart = true,
): Large {
  const head = layer.kind === 'languageModel' && areLogitsApart ? layer.head.name : undefined;
  return primitivesOf(layer)
    .filter((each) => each.kind !== 'matmul' || each.layer !== head)
    .map((each) => ({ elements: elementsOf(each, call, target), name: each.layer }))
    .reduce((before, each) => (isLarger(each, before) ? each : before), { elements: 0, name: '' });
}

/** Names the outer layer when sizes are equal. */
const isLarger = (one: Large, other: Large): boolean =>
  one.elements > other.elements ||
  (one.elements === other.elements && other.name.startsWith(`${one.name}.`));

/** Elements of the largest value inside a primitive, where it can be larger than its input and output. */
function elementsOf(
  primitive: Primitive,
  { batch, tokens, start }: GraphRun,
  target: Target,
): number {
  const rows = batch * tokens;
  const keys = start + tokens;
  const { input, output } = primitive;
  switch (primitive.kind) {
    case 'matmul':
      return rows * Math.max(input, output);
    case 'router':
      return rows * output;
    case 'norm':
      return rows * primitive.size;
    case 'dispatch':
      return rows * primitive.copies * output;
    case 'convolution':
      return batch * (primitive.kernel - 1 + tokens) * primitive.channels;
    case 'scan':
      return batch * primitive.inner * primitive.state;
    case 'scores': {
      const { heads, headDim, valueDim, latent } = primitive;
      return Math.max(
        batch * headsAtATime(target, heads) * keys * tokens,
        batch * heads * keys * Math.max(headDim, valueDim, latent?.expanded ?? 0),
      );
    }
    case 'indexScores':
      return batch * primitive.heads * tokens * keys;
    case 'lookup':
      return primitive.by === 'positions of a batch' ? 0 : rows * output;
    case 'elementwise':
      return 0;
  }
}
