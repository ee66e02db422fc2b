import type { Layer } from '../../architecture/layer.js';
import { Calls, type CheckedCall } from '../calls.js';
import type { LoadOptions, Program, RunInput, RunOutput } from '../engine.js';
import type { Values } from '../values.js';
import type { CompiledGraph } from './compile.js';
import { explained } from './failures.js';
import { tensorFor } from './feeds.js';
import type { Value } from './graph.js';
import { heldBytes } from './held-weights.js';
import { checkFits } from './largest-tensor.js';
import type { Library, Session, Tensor } from './library.js';
import type { PlacedWeights } from './placed-weights.js';
import type { Target } from './target.js';

/** What a call leaves for the next, by the name of the input that gets it. */
type States = ReadonlyMap<string, Tensor>;

interface Parts {
  readonly library: Library;
  readonly layer: Layer;
  readonly compiled: CompiledGraph;
  readonly session: Session;
  readonly weights: PlacedWeights;
  readonly options: LoadOptions;
  readonly target: Target;
}

/** One session, for any batch and any number of tokens. */
export class OnnxProgram implements Program {
  readonly elements: number;
  readonly weightBytes: number;
  readonly #parts: Parts;
  readonly #calls: Calls<States>;
  #session: Session | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#calls = new Calls(this, parts.layer, parts.options);
    this.#session = parts.session;
    const { graph, weights, weightElements } = parts.compiled;
    this.elements = weightElements;
    this.weightBytes = heldBytes(graph, weights, parts.target.provider !== 'cpu');
  }

  async run(input: RunInput): Promise<RunOutput> {
    const { library, layer, compiled, target } = this.#parts;
    if (!this.#session) throw new Error('the program has been released');
    const checked = this.#calls.check(input);
    checkFits(layer, checked, target, compiled.output.length > 1);
    const call = {
      ...checked,
      ids: input.ids,
      inputs: input.inputs ?? [],
      states: checked.kept ?? new Map(),
    };
    const feeds = [...compiled.feeds].map(
      ([name, feed]) => [name, tensorFor(library, name, feed, call)] as const,
    );
    try {
      const results = await this.#session.run(Object.fromEntries(feeds));
      return this.#outputOf(call, new Map(Object.entries(results)));
    } catch (error) {
      throw explained(error, 'run the model');
    }
  }

  async release(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    // Of a device that went away there is nothing to free, and why it did is told already.
    await session?.release().catch(() => {});
    this.#parts.weights.release();
  }

  #outputOf(call: CheckedCall<States>, results: ReadonlyMap<string, Tensor>): RunOutput {
    const { output, blocks, taps, states } = this.#parts.compiled;
    const tensor = (value: Value) => present(results.get(value), value);
    const all = (values: ReadonlyMap<string, Value> = new Map()) =>
      new Map([...values].map(([path, value]) => [path, valuesOf(tensor(value))]));
    return {
      output: besideEachOther(output.map((part) => valuesOf(tensor(part)))),
      blocks: all(blocks),
      // Without those of experts that no token went to.
      taps: new Map([...all(taps)].filter(([, { data }]) => data.length > 0)),
      ...(states && {
        state: this.#calls.stateAfter(
          call,
          new Map([...states].map(([input, value]) => [input, tensor(value)])),
        ),
      }),
    };
  }
}

function present(tensor: Tensor | undefined, name: string): Tensor {
  if (tensor === undefined) throw new Error(`there is no output ${name}`);
  return tensor;
}

function valuesOf({ data, dims }: Tensor): Values {
  if (!(data instanceof Float32Array)) throw new Error('an output is not float32');
  return { shape: dims, data };
}

/** Columns of a value, as one. */
function besideEachOther(parts: readonly Values[]): Values {
  const [first, ...others] = parts;
  if (first && others.length === 0) return first;
  const widths = parts.map(({ shape }) => shape.at(-1) ?? 0);
  const width = widths.reduce((sum, each) => sum + each, 0);
  const shape = first?.shape.with(-1, width) ?? [];
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
  let column = 0;
  for (const [index, part] of parts.entries()) {
    const own = widths[index] ?? 0;
    for (let from = 0, to = column; from < part.data.length; from += own, to += width) {
      data.set(part.data.subarray(from, from + own), to);
    }
    column += own;
  }
  return { shape, data };
}
