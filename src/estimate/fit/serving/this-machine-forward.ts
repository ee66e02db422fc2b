/**
 * Time and memory of a forward pass on a measured machine. Three parts of the engine's work are counted: products, at
 * the measured rate of the nearest size; values written by one layer and read by the next; and the overhead per layer:
 *
 *     FLOPs / rate + passes · bytes of values / bandwidth + layers · seconds per layer + seconds per call
 *
 * The lower bound has only products at the best rate, or reading the weights if slower, and a margin for unmeasured
 * cases. The load of other programs is not modelled: it shows in the spread of rounds and measurements.
 */

import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { walk } from '../../../model/architecture/walk.js';
import { add, div, inputs, max, mul, v } from '../../../model/budget/expression.js';
import { type Bounds, type Quantity, quantity } from '../../../model/budget/figure.js';
import { type ComponentFlops, forwardFlopsOf } from '../../../model/budget/flops.js';
import { countParameters } from '../../../model/budget/parameters.js';
import { activationsOf } from '../../../model/budget/saved-activations.js';
import { bestProduct } from '../../hardware/machine-gpu.js';
import type { MachineProfile, MachineSpeed, ProductRate } from '../../hardware/machine-profile.js';

export interface ForwardSize {
  /** Sequences. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens per sequence. @integer @minimum 1 */
  readonly tokens: number;
}

const FLOAT_BYTES = 4;

/**
 * Memory passes per byte of the values that a backward pass would keep: at least one write and one read. The upper
 * value is for operations of several steps. For example, a softmax over masked scores reads and writes them in the
 * product, the scaling, the mask, the softmax and the second product.
 */
const PASSES = { expected: 2, upper: 10 } as const;

/**
 * Margin by which a machine may be faster than its best measurement. Products of other shapes can reach other rates
 * than the few measured squares. If other programs ran in every measurement, even the best runs shared caches, memory
 * and clocks. At a load of 1 per core, a core shared by two programs could be twice as fast. At higher loads, a single
 * run still has a core to itself.
 */
const MARGIN = { ofShapes: 0.1, mostOfLoad: 1 } as const;

/** Margin for an unknown load: the largest. */
const marginOf = ({ leastLoad }: MachineProfile['history']): number =>
  MARGIN.ofShapes + Math.min(leastLoad ?? MARGIN.mostOfLoad, MARGIN.mostOfLoad);

/** Seconds of a forward pass in float32 over batch × tokens, with the full score matrix. */
export function forwardSecondsOf(
  model: LanguageModel,
  { batch, tokens }: ForwardSize,
  { speed, measured, engine, history }: MachineProfile,
): Bounds {
  const flops = productFlops(model, { batch, tokens });
  const weights = FLOAT_BYTES * countParameters(model).parameters;
  const values = Number(
    activationsOf(model, {
      batch,
      context: tokens,
      bytesPerValue: FLOAT_BYTES,
      recompute: 'none',
    }).total.value,
  );
  const layers = walk(model).length;
  const label = `forward pass of ${batch} × ${tokens} tokens`;
  const source = `measured on ${measured.slice(0, 10)} with ${engine.title}`;
  const lower = quantity({
    label,
    unit: 'seconds',
    formula: div(
      slowerOf({
        flops,
        rate: bestProduct(speed),
        weights: readWeights(model, weights),
        bandwidth: speed.weightBandwidth.most,
      }),
      add(1, v({ margin: marginOf(history) })),
    ),
    source:
      `${source}: the best of all measurements, rounds and sizes; margin: ${MARGIN.ofShapes} for other sizes, and the ` +
      'least load of a core at which it was measured, up to 1 (assumed)',
  });
  const bound = (which: 'expected' | 'upper'): Quantity => {
    const isExpected = which === 'expected';
    // Matrices in blocks are about as wide as the residual stream.
    const rate = nearestRate(speed, batch * tokens, model.hidden);
    return quantity({
      label,
      unit: 'seconds',
      formula: add(
        slowerOf({
          flops,
          rate: isExpected ? rate.flops.median : rate.flops.least,
          weights,
          bandwidth: isExpected ? speed.weightBandwidth.median : speed.weightBandwidth.least,
        }),
        div(
          mul(v({ passes: PASSES[which] }), v({ values })),
          v({
            valueBandwidth: isExpected ? speed.valueBandwidth.median : speed.valueBandwidth.least,
          }),
        ),
        mul(
          v({ layers }),
          v({ layer: isExpected ? speed.layerSeconds.median : speed.layerSeconds.most }),
        ),
        v({ call: isExpected ? speed.callSeconds.median : speed.callSeconds.most }),
      ),
      source:
        `${source}: ${isExpected ? 'the median of the newest rounds' : 'the worst round ever seen'}, products as those of ` +
        `${rate.rows} × ${rate.width} by ${rate.width} × ${rate.width}; values: what a backward pass would need`,
    });
  };
  return { lower, expected: bound('expected'), upper: bound('upper') };
}

/** Seconds of the products or of reading the weights, the larger of the two. */
function slowerOf(work: Readonly<Record<'flops' | 'rate' | 'weights' | 'bandwidth', number>>) {
  const { flops, rate, weights, bandwidth } = inputs(work);
  return max(div(flops, rate), div(weights, bandwidth));
}

/** FLOPs of products with weights and of attention, the kinds that were measured. */
const productFlops = (model: LanguageModel, { batch, tokens }: ForwardSize): number =>
  sumOf(
    forwardFlopsOf(model, { batch, context: tokens, causal: false }).parts.filter(isProduct),
    ({ flops }) => Number(flops.value),
  );

const isProduct = ({ kind }: ComponentFlops): boolean => kind === 'projection' || kind === 'scores';

/** Bytes of weights read, at least: only the looked-up rows of an embedding are read, so it is left out. */
function readWeights(model: LanguageModel, bytes: number): number {
  const { embedding, head } = model;
  const isTied = embedding.weight === head.weight;
  return isTied ? bytes : bytes - FLOAT_BYTES * embedding.weight.elements;
}

/** Rate of the nearest measured product, by the ratios of rows and of widths. */
function nearestRate({ products }: MachineSpeed, rows: number, width: number): ProductRate {
  const distance = (each: ProductRate) =>
    Math.abs(Math.log(each.rows / rows)) + Math.abs(Math.log(each.width / width));
  return products.reduce((best, each) => (distance(each) < distance(best) ? each : best));
}

/** Memory of a forward pass by parts, in bytes. */
export interface ForwardNeed {
  /** Weights in float32. */
  readonly weightBytes: number;
  /** Total, including values inside blocks and all copies of the weights in the engine. */
  readonly totalBytes: number;
}

/**
 * Memory growth of a process by the end of a forward pass. For ONNX Runtime on a processor, 0.99 to 1.98 times the
 * estimate was measured, at most 71 MB more (three models in bench/results/2026-11-22-fit-this-machine-node20.json).
 * On a busy machine, where garbage is collected late, it was once 143 MB more. The upper bound is assumed, with room
 * above that: a fifth more, and 80 MB, which dominate for small models.
 */
export function forwardBytesOf({ weightBytes, totalBytes }: ForwardNeed): Bounds {
  const shared = { label: 'memory of a forward pass', unit: 'bytes' } as const;
  return {
    lower: quantity({
      ...shared,
      formula: v({ weights: Math.min(weightBytes, totalBytes) }),
      source: 'the weights once, in float32',
    }),
    expected: quantity({
      ...shared,
      formula: v({ total: totalBytes }),
      source:
        'weights as the engine holds them, what one block computes, outputs of all blocks and the logits',
    }),
    upper: quantity({
      ...shared,
      formula: add(mul(1.2, v({ total: totalBytes })), v({ arenas: 80e6 })),
      source:
        'assumed: a fifth more, and 80 MB that allocators and threads of the engine keep; measured were ' +
        'up to 1.98 times what is expected, and 71 MB more (bench, fit-this-machine)',
    }),
  };
}
