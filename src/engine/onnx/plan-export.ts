/** Exports a model as standalone files for ONNX Runtime: the graph, and its weights inside or in a separate file. */

import type { WeightForm } from '../../base/tensor/group-quantization.js';
import { sumOf } from '../../base/values.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import type { WeightMatrix } from '../../model/architecture/weight-matrices.js';
import { quantizedMatrices } from '../../model/architecture/weight-matrices.js';
import type { ExportFile, OnnxExport, OnnxOperator, OnnxValue } from '../onnx-export.js';
import type { WeightSource } from '../weights/weights.js';
import { compileAlone } from './compile.js';
import type { QuantizedLookup, QuantizedWeight, Rows } from './context.js';
import { columnsOf } from './context.js';
import { aligned, initializerRows, weightBytes } from './placed-weights.js';
import type { About, GraphProto, Initializer, LazyBytes, ValueInfo } from './proto.js';
import { encodeInParts, IR_VERSION, OPERATOR_SETS, totalLength } from './proto.js';
import type { QuantizedPart } from './quantized-products.js';
import {
  lookupName,
  partLayout,
  partPieces,
  QUANTIZED_PARTS,
  quantizedWeight,
} from './quantized-products.js';

/** Maximum bytes of weights inside the graph: a message of Protocol Buffers ends at 2 GiB. */
const MOST_INSIDE_BYTES = 1e9;

interface ExportOptions extends About {
  /** File name of the graph, from which the name of the weights' file is derived. */
  readonly name: string;
  /** Whether to store weights of any size in a separate file. */
  readonly external: boolean;
  /** Form of the matrices; float32 when absent. */
  readonly weightForm?: WeightForm | undefined;
}

/** Weights are read only when the pieces of the files are. */
export function planExport(
  model: LanguageModel,
  source: WeightSource,
  { name, external, weightForm: form, ...about }: ExportOptions,
): OnnxExport {
  const weights = new ExternalWeights(source, `${name}.data`);
  const matrices = form && quantizedMatrices(model);
  const quantized: QuantizedLookup = (tensor, rows) => {
    const matrix = matrices?.get(tensor);
    return form && matrix && weights.placeQuantized(matrix, form, rows);
  };
  const graph = compileAlone(model, (...which) => weights.place(...which), quantized);
  const isExternal = external || weights.file.length > MOST_INSIDE_BYTES;
  const metadata = new Map([...about.metadata, ...weights.shapes()]);
  const parts = encodeInParts(graph, { ...about, metadata }, (each) =>
    isExternal ? undefined : weights.contentOf(each),
  );
  const length = totalLength(parts);
  const main = { name, length, pieces: () => bytePieces(parts) };
  return {
    files: [main, ...(isExternal ? [weights.file] : [])],
    irVersion: IR_VERSION,
    operatorSets: OPERATOR_SETS.map((set) => ({ ...set, domain: shownDomain(set.domain) })),
    inputs: graph.inputs.map(shownValue),
    outputs: graph.outputs.filter((each) => typeof each !== 'string').map(shownValue),
    operators: operatorsOf(graph),
    weights: weights.totals,
  };
}

function* bytePieces(parts: readonly (Uint8Array | LazyBytes)[]): Generator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Uint8Array) yield part;
    else yield* part.pieces();
  }
}

/** Shape of a tensor in the model, and whether the graph has its rows as columns. */
interface ShapeInModel {
  readonly shape: readonly number[];
  readonly transposed?: boolean;
}

/** Weights in one file next to the graph, each under its name in the model. */
class ExternalWeights {
  readonly #source: WeightSource;
  readonly #name: string;
  readonly #placed = new Map<Param, Initializer>();
  readonly #quantized = new Map<Param, Readonly<Record<QuantizedPart, Initializer>>>();
  readonly #contents = new Map<string, LazyBytes>();
  /** Contents of the file, in order. */
  readonly #parts: { readonly offset: number; readonly content: LazyBytes }[] = [];
  readonly #shapes = new Map<string, ShapeInModel>();
  #form: WeightForm | undefined;
  #end = 0;

  /** @param name Name of the file. */
  constructor(source: WeightSource, name: string) {
    this.#source = source;
    this.#name = name;
  }

  /** Location of a tensor, or of some rows of it. */
  place(tensor: Param, rows?: Rows): Initializer {
    const placed = this.#whole(tensor);
    const initializer = rows === undefined ? placed : initializerRows(placed, rows);
    const count = initializer.shape.reduce((product, size) => product * size, 1);
    const first = (rows?.first ?? 0) * columnsOf(tensor);
    this.#contents.set(initializer.name, this.#lazy(tensor, first, count));
    if (rows !== undefined) this.#shapes.set(tensor.name, { shape: tensor.shape });
    return initializer;
  }

  /** Location of a quantized matrix, or of some rows of it. */
  placeQuantized(matrix: WeightMatrix, form: WeightForm, rows?: Rows): QuantizedWeight {
    this.#form = form;
    this.#describe(matrix, form, rows);
    const known = this.#quantized.get(matrix.tensor) ?? this.#quantize(matrix, form);
    const weight = quantizedWeight(matrix, form, rows, (part) => known[part]);
    for (const part of QUANTIZED_PARTS) {
      const initializer = weight[part];
      const content = this.#lazyPart(part, matrix, form, rows);
      this.#contents.set(initializer.name, content);
      if (part === 'codes') this.#contents.set(lookupName(initializer), content);
    }
    return weight;
  }

  /** Records the shape of a weight whose initializers do not show it. */
  #describe({ tensor, columns, isTransposed }: WeightMatrix, form: WeightForm, rows?: Rows): void {
    const { name, shape } = tensor;
    const isShown = rows === undefined && shape.length === 2 && columns % form.group === 0;
    if (isShown && !isTransposed) return;
    this.#shapes.set(name, { shape, ...(isTransposed && { transposed: true }) });
  }

  /** Metadata with the shapes that the initializers do not show. */
  shapes(): [string, string][] {
    if (this.#shapes.size === 0) return [];
    return [['shapes', JSON.stringify(Object.fromEntries(this.#shapes))]];
  }

  #quantize(matrix: WeightMatrix, form: WeightForm) {
    const initializer = (part: QuantizedPart): Initializer => {
      const { type, shape } = partLayout(part, matrix, form, matrix.rows);
      const content = this.#lazyPart(part, matrix, form);
      const name = `${matrix.tensor.name}:${part}`;
      return { name, type, shape, bytes: this.#append(content) };
    };
    const parts = {
      codes: initializer('codes'),
      scales: initializer('scales'),
      zeroPoints: initializer('zeroPoints'),
    };
    this.#quantized.set(matrix.tensor, parts);
    return parts;
  }

  #lazyPart(part: QuantizedPart, matrix: WeightMatrix, form: WeightForm, rows?: Rows): LazyBytes {
    const { first, count } = rows ?? { first: 0, count: matrix.rows };
    const { rowBytes } = partLayout(part, matrix, form, count);
    return {
      length: rowBytes * count,
      pieces: () => partPieces(part, this.#source, matrix, form, { first, count }),
    };
  }

  #append(content: LazyBytes) {
    const offset = aligned(this.#end);
    this.#end = offset + content.length;
    this.#parts.push({ offset, content });
    return { location: this.#name, offset, length: content.length };
  }

  /** Bytes of a placed weight; undefined for another initializer. */
  contentOf({ name }: Initializer): LazyBytes | undefined {
    return this.#contents.get(name);
  }

  get file(): ExportFile {
    return { name: this.#name, length: this.#end, pieces: () => this.#pieces() };
  }

  get totals(): OnnxExport['weights'] {
    const tensors = [...this.#placed.keys(), ...this.#quantized.keys()];
    return {
      tensors: tensors.length,
      elements: sumOf(tensors, ({ elements }) => elements),
      bytes: sumOf(this.#parts, ({ content }) => content.length),
      dtype: 'F32',
      quantized: this.#form
        ? {
            ...this.#form,
            tensors: this.#quantized.size,
            elements: sumOf([...this.#quantized.keys()], ({ elements }) => elements),
          }
        : null,
    };
  }

  #whole(tensor: Param): Initializer {
    const known = this.#placed.get(tensor);
    if (known !== undefined) return known;
    const { name, shape, elements } = tensor;
    const bytes = this.#append(this.#lazy(tensor, 0, elements));
    const initializer = { name, type: 'f32', shape, bytes } as const;
    this.#placed.set(tensor, initializer);
    return initializer;
  }

  #lazy(tensor: Param, first: number, count: number): LazyBytes {
    const length = count * Float32Array.BYTES_PER_ELEMENT;
    return { length, pieces: () => weightBytes(this.#source, tensor, first, count) };
  }

  *#pieces(): Generator<Uint8Array> {
    let end = 0;
    for (const { offset, content } of this.#parts) {
      yield new Uint8Array(offset - end);
      yield* content.pieces();
      end = offset + content.length;
    }
  }
}

/** ONNX's own operator set has an empty name in files, and this one in its documentation. */
const shownDomain = (domain: string) => domain || 'ai.onnx';

/** Names of element types in ONNX's documentation. */
const TYPE_NAMES = {
  u8: 'uint8',
  f32: 'float32',
  f64: 'float64',
  i32: 'int32',
  i64: 'int64',
  bool: 'bool',
  f16: 'float16',
  bf16: 'bfloat16',
} as const satisfies Record<ValueInfo['type'], string>;

const shownValue = ({ name, type, shape }: ValueInfo): OnnxValue => ({
  name,
  type: TYPE_NAMES[type],
  shape,
});

function operatorsOf(graph: GraphProto): OnnxOperator[] {
  const counts = new Map<string, number>();
  const visit = ({ nodes }: GraphProto): void => {
    for (const { domain, op, attributes } of nodes) {
      const key = `${shownDomain(domain)} ${op}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      for (const value of Object.values(attributes)) {
        if (typeof value === 'object' && 'nodes' in value) visit(value);
      }
    }
  };
  visit(graph);
  return [...counts].sort().map(([key, count]) => {
    const [domain = '', operator = ''] = key.split(' ');
    return { domain, operator, count };
  });
}
