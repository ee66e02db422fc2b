/** Where the first value appears that is not finite: the model is run layer by layer until one shows it. */
import type { Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { stagesOf, tensorsOf } from '../architecture/walk.js';
import type { RunInput, Values } from '../runtime/engine.js';
import type { WeightSource } from '../runtime/weights/random-weights.js';
import { isAllFinite, notFinite, statisticsOf } from './compare.js';
import type { Origin } from './finding.js';
import type { Subject } from './subject.js';

/** Undefined when the layers, run one by one, are all finite. */
export async function originOf(subject: Subject): Promise<Origin | undefined> {
  const { model, ids } = subject;
  let input: RunInput = { ids };
  for (const layer of stagesOf(model)) {
    const { output } = await subject.once(layer, input);
    if (!isAllFinite(output)) return originIn(subject, layer, input);
    input = { inputs: [output] };
  }
  return undefined;
}

/** Where in a layer that gives something not finite that begins. Runs it with a look at everything inside. */
export async function originIn(
  subject: Pick<Subject, 'once' | 'weights'>,
  layer: Layer,
  input: RunInput,
): Promise<Origin | undefined> {
  // A bad weight is the better answer: it is where the mistake lies, and not only where it shows.
  const weight = badWeight(layer, subject.weights);
  if (weight) return weight;
  const { output, taps } = await subject.once(layer, input, { taps: true });
  return firstBad(new Map([...taps, [layer.name, output]]));
}

/** The taps come in the order in which they were computed. */
function firstBad(taps: ReadonlyMap<string, Values>): Origin | undefined {
  let after: string | undefined;
  for (const [tensor, { shape, data }] of taps) {
    const statistics = statisticsOf(data);
    if (notFinite(statistics) > 0) {
      return { tensor, kind: 'value', shape, statistics, ...(after !== undefined && { after }) };
    }
    after = tensor;
  }
  return undefined;
}

function badWeight(layer: Layer, weights: WeightSource): Origin | undefined {
  for (const tensor of tensorsOf(layer)) {
    const statistics = tensor.role === 'parameter' ? weightStatistics(tensor, weights) : undefined;
    if (statistics) return { tensor: tensor.name, kind: 'weight', shape: tensor.shape, statistics };
  }
  return undefined;
}

/** Of a weight in which something is not finite; undefined for all others. */
function weightStatistics(tensor: Param, weights: WeightSource) {
  const values = new Float32Array(tensor.elements);
  weights.read(tensor, 0, values);
  const statistics = statisticsOf(values);
  return notFinite(statistics) > 0 ? statistics : undefined;
}
