/**
 * How long a forward pass takes on a machine that was measured, and what it takes of its memory. Of what an
 * engine does three things are counted: products, each at the rate that products of about its size reached; values
 * that are written by one layer and read by the next; and what each layer costs however small it is:
 *
 *     FLOPs / rate + passes · bytes of values / bandwidth + layers · seconds a layer + seconds a call
 *
 * At best there is nothing but products at the best rate of all, or the weights' way through memory, whichever is
 * slower, and a margin for what was not seen. Nothing of it knows what else the machine does meanwhile: that is in how
 * far rounds and measurements were apart.
 */
import type { LanguageModel } from '../../architecture/layer.js';
import { walk } from '../../architecture/walk.js';
import { activationsOf } from '../../budget/activations.js';
import { add, div, inputs, max, mul, v } from '../../budget/expression.js';
import { type ComponentFlops, forwardFlopsOf } from '../../budget/flops.js';
import { countParameters } from '../../budget/parameters.js';
import { type Bounds, type Quantity, quantity } from '../../budget/quantity.js';
import {
  bestProduct,
  type MachineProfile,
  type MachineSpeed,
  type ProductRate,
} from '../../hardware/machine-profile.js';

export interface ForwardSize {
  readonly batch: number;
  /** Of a sequence. */
  readonly tokens: number;
}

const FLOAT_BYTES = 4;

/**
 * How often values pass through memory, for each time that the backward pass would want them: at the least they are
 * written and read. The upper is for what is made in several steps: a softmax over masked scores reads and writes them
 * in the product, the scaling, the mask, the softmax and the second product.
 */
const PASSES = { expected: 2, upper: 10 } as const;

/**
 * By how much a machine may be faster than the best that was ever seen of it. Products of other shapes reach other rates
 * than the few squares that are measured. And where other programs ran in every measurement, even its best runs shared
 * caches, memory and clocks with them: at a load of one for each core a core that was shared by two could be twice as
 * fast. Beyond that a single run still has a core to itself.
 */
const MARGIN = { ofShapes: 0.1, mostOfLoad: 1 } as const;

/** Where nobody tells the load, it may have been any. */
const marginOf = ({ leastLoad }: MachineProfile['history']): number =>
  MARGIN.ofShapes + Math.min(leastLoad ?? MARGIN.mostOfLoad, MARGIN.mostOfLoad);

/** Seconds of a forward pass in float32 over batch × tokens, with the whole square of scores. */
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
    const rate = nearestRate(speed, batch * tokens, meanWidth(model));
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

/** Seconds of the products, or of reading the weights, whichever takes longer. */
function slowerOf(work: Readonly<Record<'flops' | 'rate' | 'weights' | 'bandwidth', number>>) {
  const { flops, rate, weights, bandwidth } = inputs(work);
  return max(div(flops, rate), div(weights, bandwidth));
}

/** Of products with weights and of attention: what the measured products are like. */
const productFlops = (model: LanguageModel, { batch, tokens }: ForwardSize): number =>
  forwardFlopsOf(model, { batch, context: tokens, causal: false })
    .parts.filter(isProduct)
    .reduce((sum, { flops }) => sum + Number(flops.value), 0);

const isProduct = ({ kind }: ComponentFlops): boolean => kind === 'projection' || kind === 'scores';

/** Of an embedding only rows are read: those of its tokens, which at the least are none. */
function readWeights(model: LanguageModel, bytes: number): number {
  const { embedding, head } = model;
  const isTied = embedding.weight === head.weight;
  return isTied ? bytes : bytes - FLOAT_BYTES * embedding.weight.elements;
}

/** Of the matrices that most is computed with: those of blocks, about as wide as what they pass on. */
const meanWidth = ({ norm }: LanguageModel): number => norm.weight.elements;

/** The measured product that is nearest, by the factors between rows and between widths. */
function nearestRate({ products }: MachineSpeed, rows: number, width: number): ProductRate {
  const distance = (each: ProductRate) =>
    Math.abs(Math.log(each.rows / rows)) + Math.abs(Math.log(each.width / width));
  return products.reduce((best, each) => (distance(each) < distance(best) ? each : best));
}

/** What a forward pass needs of memory by its parts, in bytes. */
export interface ForwardNeed {
  /** In float32. */
  readonly weightBytes: number;
  /** Of the logits, and of the output of every block. */
  readonly resultBytes: number;
  /** With what blocks compute on their way, and the weights as often as an engine holds them. */
  readonly totalBytes: number;
}

/**
 * What a process has more in memory by the end of a forward pass than before it. Of ONNX Runtime on a processor, 0.99 to
 * 1.98 times what is expected were measured, at most 71 MB more (three models in
 * bench/results/2026-11-22-fit-this-machine-node20.json). The upper bound is assumed, with room above that: a quarter
 * more, the results once more, and 64 MB, which of a small model are most of it.
 */
export function forwardBytesOf({ weightBytes, resultBytes, totalBytes }: ForwardNeed): Bounds {
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
      formula: add(
        mul(1.25, v({ total: totalBytes })),
        v({ results: resultBytes }),
        v({ arenas: 64e6 }),
      ),
      source:
        'assumed: a quarter more, results twice, and 64 MB that allocators and threads of the engine keep; measured were ' +
        'up to 1.98 times what is expected, and 71 MB more (bench, fit-this-machine)',
    }),
  };
}
