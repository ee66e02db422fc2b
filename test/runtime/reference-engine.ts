/**
 * The forward pass in plain loops over float64: slow, and so short that it can be read. It is what the engines
 * are held against, and it can be told to go wrong, which the checks have to notice.
 * Shapes: B batch, T tokens of a call, H hidden, D inner, N state.
 */
import type {
  Alignment,
  Attention,
  Gate,
  HybridBlock,
  LanguageModel,
  Layer,
  Linear,
  Mamba,
  Srte,
  Window,
} from '../../src/architecture/layer.js';
import type { Param } from '../../src/architecture/param.js';
import { productsOf, tensorsOf } from '../../src/architecture/walk.js';
import { decodingKeys, fullForwardKeys } from '../../src/runtime/attention-rules.js';
import type {
  Engine,
  EngineInfo,
  LoadOptions,
  Program,
  RunInput,
  RunOutput,
  State,
} from '../../src/runtime/engine.js';
import type { Values } from '../../src/runtime/values.js';
import type { WeightSource } from '../../src/runtime/weights.js';

export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float64Array;
}

/** Ways of going wrong. */
export interface Faults {
  /** Every position sees every other. */
  readonly noMask?: boolean;
  /** Every block but the first has a copy of a shared table, which it keeps from one load to the next. */
  readonly copyShared?: boolean;
  /** A tied head has a copy of the embedding. */
  readonly copyTied?: boolean;
  /** What is lost between two calls of decoding. */
  readonly forget?: 'scan' | 'convolution' | 'keys' | 'rows';
  /** Told of every layer's output, which it may change. */
  readonly alter?: (path: string, value: Tensor) => void;
}

export function referenceEngine(faults: Faults = {}, info: Partial<EngineInfo> = {}): Engine {
  const copies: Copies = new Map();
  return {
    info: {
      name: 'onnx',
      version: '0.0.0',
      provider: 'reference',
      device: 'cpu',
      threads: 1,
      ...info,
    },
    load: async (layer, source, options = {}) =>
      new ReferenceProgram(layer, source, { options, faults, copies }),
    close: async () => {},
  };
}

/** By the name of the place. */
type Copies = Map<string, Float64Array>;

interface Setting {
  readonly options: LoadOptions;
  readonly faults: Faults;
  readonly copies: Copies;
}

interface ReferenceState extends State {
  readonly kept: ReadonlyMap<string, Float64Array>;
}

class ReferenceProgram implements Program {
  readonly elements: number;
  readonly #layer: Layer;
  readonly #weights: ReadonlyMap<Param, Float64Array>;
  readonly #setting: Setting;

  constructor(layer: Layer, source: WeightSource, setting: Setting) {
    this.#layer = layer;
    this.#setting = setting;
    // The tables of RoPE are computed.
    const used = tensorsOf(layer).filter(({ name }) => !name.includes('.rope.'));
    this.#weights = new Map(used.map((tensor) => [tensor, valuesOf(source, tensor)]));
    let elements = used.reduce((sum, tensor) => sum + tensor.elements, 0);
    for (const tensor of used) {
      for (const place of copiedPlaces(tensor, setting.faults)) {
        if (!setting.copies.has(place)) setting.copies.set(place, valuesOf(source, tensor));
        elements += tensor.elements;
      }
    }
    this.elements = elements;
  }

  async run(input: RunInput): Promise<RunOutput> {
    const { options } = this.#setting;
    const run = new Run({ ...this.#setting, input, weights: this.#weights });
    const output = run.of(this.#layer, ...run.given);
    return {
      output: rounded(output),
      blocks: mapped(run.blocks),
      taps: options.taps ? mapped(run.taps) : new Map(),
      ...(options.decoding && { state: run.state() }),
    };
  }

  async release(): Promise<void> {}
}

function copiedPlaces({ aliases }: Param, { copyShared, copyTied }: Faults): readonly string[] {
  const [first = ''] = aliases;
  if (first.startsWith('lm_head')) return copyTied ? aliases : [];
  return copyShared ? aliases.slice(1) : [];
}

function valuesOf(source: WeightSource, tensor: Param): Float64Array {
  const values = new Float32Array(tensor.elements);
  source.read(tensor, 0, values);
  return Float64Array.from(values);
}

const rounded = ({ shape, data }: Tensor): Values => ({ shape, data: Float32Array.from(data) });
const mapped = (tensors: ReadonlyMap<string, Tensor>) =>
  new Map([...tensors].map(([path, tensor]) => [path, rounded(tensor)]));

interface RunParts extends Setting {
  readonly input: RunInput;
  readonly weights: ReadonlyMap<Param, Float64Array>;
}

/** One call. */
class Run {
  readonly blocks = new Map<string, Tensor>();
  readonly taps = new Map<string, Tensor>();
  readonly given: readonly Tensor[];
  readonly #parts: RunParts;
  readonly #batch: number;
  readonly #tokens: number;
  /** Tokens before. */
  readonly #start: number;
  readonly #before: ReadonlyMap<string, Float64Array>;
  readonly #kept = new Map<string, Float64Array>();
  #block = 0;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { ids, inputs = [], tokens, state } = parts.input;
    this.given = inputs.map(({ shape, data }) => ({ shape, data: Float64Array.from(data) }));
    this.#batch = ids?.batch ?? inputs[0]?.shape[0] ?? 1;
    this.#tokens = ids?.tokens ?? tokens ?? inputs[0]?.shape[1] ?? 1;
    this.#start = state?.position ?? 0;
    this.#before = (state as ReferenceState | undefined)?.kept ?? new Map();
  }

  state(): ReferenceState {
    return { position: this.#start + this.#tokens, kept: this.#kept };
  }

  /** What a layer makes of its inputs. */
  of(layer: Layer, ...inputs: readonly Tensor[]): Tensor {
    const value = this.#compute(layer, inputs);
    this.#parts.faults.alter?.(layer.name, value);
    this.taps.set(layer.name, value);
    return value;
  }

  #compute(layer: Layer, [x = EMPTY, y = EMPTY]: readonly Tensor[]): Tensor {
    switch (layer.kind) {
      case 'languageModel':
        return this.#model(layer);
      case 'hybridBlock':
        return this.#hybridBlock(layer, x);
      case 'sequence':
        return layer.layers.reduce((value, each) => this.of(each, value), x);
      case 'embedding':
        return this.#rows(this.#weight(layer.weight), layer.weight.shape[1] ?? 0);
      case 'linear':
        return this.#linear(layer, x);
      case 'layerNorm':
        return layerNorm(x, this.#weight(layer.weight), this.#weight(layer.bias), layer.eps);
      case 'activation':
        return each(x, (value) => (value / 2) * (1 + erf(value / Math.SQRT2)));
      case 'causalConv':
        return this.#causalConv(
          layer.name,
          this.#weight(layer.weight),
          this.#weight(layer.bias),
          x,
        );
      case 'mamba':
        return this.#mamba(layer, x);
      case 'rotary':
        return x;
      case 'attention':
        return this.#attention(layer, x);
      case 'srteTable':
      case 'srteLowRank':
      case 'srteSincos':
        return this.#srte(layer);
      case 'alignment':
        return this.#alignment(layer, x, y);
      case 'gate':
        return this.#gate(layer, x);
      default:
        throw new Error(`plain loops for ${layer.kind} are not written`);
    }
  }

  /** A weight, or the copy of it that a fault gives the block in hand or the head. */
  #weight(tensor: Param, isHead = false): Float64Array {
    const prefix = isHead ? 'lm_head.' : `layers.${this.#block}.`;
    const alias = tensor.aliases.find((name) => name.startsWith(prefix));
    const copy = alias === undefined ? undefined : this.#parts.copies.get(alias);
    return copy ?? this.#parts.weights.get(tensor) ?? fail(tensor.name);
  }

  #model({ embedding, blocks, norm, head }: LanguageModel): Tensor {
    let x = this.of(embedding);
    for (const block of blocks) {
      x = this.of(block, x);
      this.blocks.set(block.name, x);
    }
    return this.of(head, this.of(norm, x));
  }

  /** Rows of a table for the ids → [B, T, H]. */
  #rows(table: Float64Array, size: number): Tensor {
    const ids = this.#parts.input.ids?.data ?? fail('ids');
    const data = new Float64Array(ids.length * size);
    for (const [row, id] of ids.entries()) {
      data.set(table.subarray(id * size, (id + 1) * size), row * size);
    }
    return { shape: [this.#batch, this.#tokens, size], data };
  }

  #linear({ name, weight, bias }: Linear, x: Tensor): Tensor {
    const values = this.#weight(weight, name === 'lm_head');
    return product(x, values, bias && this.#weight(bias));
  }

  #hybridBlock(block: HybridBlock, x: Tensor): Tensor {
    this.#block = Number(block.name.split('.').at(-1));
    const n = this.of(block.inputNorm, x);
    const rows = this.of(block.srte); // (1, T, H)
    const m = this.of(
      block.mamba,
      each(n, (value, at) => value + (rows.data[at % rows.data.length] ?? 0)),
    );
    const a = this.of(block.attention, n);
    const z = block.alignment
      ? this.of(block.alignment, m, a)
      : each(m, (value, at) => (value + (a.data[at] ?? 0)) / 2);
    const g = this.of(block.gate, z);
    const fused = each(g, (gate, at) => gate * (m.data[at] ?? 0) + (1 - gate) * (a.data[at] ?? 0));
    const sum = plus(x, plus(this.of(block.fusion, fused), this.of(block.mlp, z)));
    return this.of(block.outputNorm, sum);
  }

  #alignment({ net, residual }: Alignment, m: Tensor, a: Tensor): Tensor {
    const both = concatenated(m, a);
    return plus(this.of(net, both), this.of(residual, both));
  }

  #gate({ up, down }: Gate, z: Tensor): Tensor {
    return each(this.of(down, each(this.of(up, z), Math.tanh)), sigmoid);
  }

  /** Rows of the encoding from the position on → [1, T, H]. */
  #srte(layer: Srte): Tensor {
    const start = this.#parts.faults.forget === 'rows' ? 0 : this.#start;
    const cut = (table: Float64Array, size: number): Tensor => ({
      shape: [1, this.#tokens, size],
      data: table.slice(start * size, (start + this.#tokens) * size),
    });
    switch (layer.kind) {
      case 'srteTable':
        return cut(this.#weight(layer.table), layer.table.shape[2] ?? 0);
      case 'srteLowRank': {
        const rows = cut(this.#weight(layer.lowRank), layer.lowRank.shape[2] ?? 0);
        return this.of(layer.projection, rows);
      }
      case 'srteSincos': {
        const frequencies = this.#weight(layer.inverseFrequencies);
        const size = 2 * frequencies.length;
        const data = Float64Array.from({ length: this.#tokens * size }, (_, at) => {
          const angle = (start + Math.floor(at / size)) * (frequencies[(at % size) >> 1] ?? 0);
          return at % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
        });
        return { shape: [1, this.#tokens, size], data };
      }
    }
  }

  #mamba(layer: Mamba, u: Tensor): Tensor {
    const { innerSize: inner, stateSize: state, stepRank } = layer;
    const [x0, residual] = split(this.of(layer.inProj, u), [inner, inner]);
    const x = each(this.of(layer.conv, x0), silu);
    const [low, b, c] = split(this.of(layer.xProj, x), [stepRank, state, state]);
    // The bias a second time: so does the original.
    const bias = layer.dtProj.bias ? this.#weight(layer.dtProj.bias) : new Float64Array(inner);
    const step = each(this.of(layer.dtProj, low), (value, at) =>
      softplus(value + (bias[at % inner] ?? 0)),
    );
    const y = this.#scan(layer, { x, step, b, c });
    return this.of(
      layer.outProj,
      each(y, (value, at) => value * silu(residual.data[at] ?? 0)),
    );
  }

  /** x, step [B, T, D]; b, c [B, T, N] → [B, T, D]. */
  #scan(
    layer: Mamba,
    { x, step, b, c }: Readonly<Record<'x' | 'step' | 'b' | 'c', Tensor>>,
  ): Tensor {
    const { innerSize: inner, stateSize: state } = layer;
    const decay = this.#weight(layer.stateLog).map((value) => -Math.exp(value)); // (D, N)
    const skip = this.#weight(layer.skip);
    const h = this.#state(`${layer.name}.scan`, this.#batch * inner * state, 'scan'); // (B, D, N)
    const y = new Float64Array(x.data.length);
    for (let row = 0; row < this.#batch; row++) {
      for (let t = 0; t < this.#tokens; t++) {
        const at = row * this.#tokens + t;
        for (let d = 0; d < inner; d++) {
          const [dt, xt] = [step.data[at * inner + d] ?? 0, x.data[at * inner + d] ?? 0];
          let sum = (skip[d] ?? 0) * xt;
          for (let n = 0; n < state; n++) {
            const place = (row * inner + d) * state + n;
            const kept = (h[place] ?? 0) * Math.exp(dt * (decay[d * state + n] ?? 0));
            const value = kept + dt * (b.data[at * state + n] ?? 0) * xt;
            h[place] = value;
            sum += value * (c.data[at * state + n] ?? 0);
          }
          y[at * inner + d] = sum;
        }
      }
    }
    return { shape: x.shape, data: y };
  }

  /** What was kept under a name, as a copy that is kept from now on; zeros at the beginning. */
  #state(name: string, size: number, what: Faults['forget']): Float64Array {
    const before = this.#parts.faults.forget === what ? undefined : this.#before.get(name);
    const now = before ? before.slice() : new Float64Array(size);
    this.#kept.set(name, now);
    return now;
  }

  /** x [B, T, D]; weight [D, 1, kernel]. */
  #causalConv(name: string, weight: Float64Array, bias: Float64Array, x: Tensor): Tensor {
    const inner = bias.length;
    const kernel = weight.length / inner;
    const reach = kernel - 1;
    const last = this.#state(`${name}.inputs`, this.#batch * reach * inner, 'convolution');
    const past = last.slice(); // (B, kernel − 1, D)
    const at = (row: number, t: number, d: number) =>
      (t < 0
        ? past[(row * reach + reach + t) * inner + d]
        : x.data[(row * this.#tokens + t) * inner + d]) ?? 0;
    const data = new Float64Array(x.data.length);
    for (let row = 0; row < this.#batch; row++) {
      for (let d = 0; d < inner; d++) {
        for (let t = 0; t < this.#tokens; t++) {
          let sum = bias[d] ?? 0;
          for (let k = 0; k < kernel; k++) {
            sum += (weight[d * kernel + k] ?? 0) * at(row, t - reach + k, d);
          }
          data[(row * this.#tokens + t) * inner + d] = sum;
        }
        for (let back = 1; back <= reach; back++) {
          last[(row * reach + reach - back) * inner + d] = at(row, this.#tokens - back, d);
        }
      }
    }
    return { shape: x.shape, data };
  }

  #attention(layer: Attention, u: Tensor): Tensor {
    const { heads, headDim, rotary } = layer;
    const [query, key, value] = productsOf(layer.inputs) as [Linear, Linear, Linear];
    const turned = (tensor: Tensor) =>
      rotary ? rotate(tensor, headDim, rotary.base, this.#start) : tensor;
    const q = turned(this.of(query, u));
    const k = this.#withPast(`${layer.name}.keys`, turned(this.of(key, u)));
    const v = this.#withPast(`${layer.name}.values`, this.of(value, u));
    const width = heads * headDim;
    const past = k.shape[1] ?? 0;
    const offset = past - this.#tokens;
    const data = new Float64Array(q.data.length);
    let head = 0;
    for (const span of layer.spans) {
      const first = this.#firstKeys(span.window);
      for (let end = head + span.heads; head < end; head++) {
        for (let row = 0; row < this.#batch; row++) {
          for (let t = 0; t < this.#tokens; t++) {
            const from = this.#parts.faults.noMask
              ? 0
              : Math.max(0, (first[t] ?? 0) - this.#start + offset);
            const to = this.#parts.faults.noMask ? past - 1 : t + offset;
            attend({ q, k, v, width, headDim, head, row, t, from, to }, data);
          }
        }
      }
    }
    return this.of(layer.out, { shape: q.shape, data });
  }

  #firstKeys(window: Window | undefined): Int32Array {
    const { decoding } = this.#parts.options;
    return decoding
      ? decodingKeys(this.#start, this.#tokens, window, decoding.totalTokens)
      : fullForwardKeys(this.#tokens, window);
  }

  /** What came before along the tokens, and `tensor` after it. Keeps both. */
  #withPast(name: string, tensor: Tensor): Tensor {
    const [batch = 0, tokens = 0, width = 0] = tensor.shape;
    const before = this.#parts.faults.forget === 'keys' ? undefined : this.#before.get(name);
    const old = before ? before.length / (batch * width) : 0;
    const data = new Float64Array(batch * (old + tokens) * width);
    for (let row = 0; row < batch; row++) {
      const place = row * (old + tokens) * width;
      if (before) data.set(before.subarray(row * old * width, (row + 1) * old * width), place);
      const now = tensor.data.subarray(row * tokens * width, (row + 1) * tokens * width);
      data.set(now, place + old * width);
    }
    this.#kept.set(name, data);
    return { shape: [batch, old + tokens, width], data };
  }
}

const EMPTY: Tensor = { shape: [], data: new Float64Array(0) };

function fail(what: string): never {
  throw new Error(`the reference engine lacks ${what}`);
}

const each = ({ shape, data }: Tensor, of: (value: number, at: number) => number): Tensor => ({
  shape,
  data: data.map(of),
});
const plus = (a: Tensor, b: Tensor) => each(a, (value, at) => value + (b.data[at] ?? 0));
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
const silu = (x: number) => x * sigmoid(x);
const softplus = (x: number) => (x > 30 ? x : Math.log1p(Math.exp(x)));

/** x [.., in] · weightᵀ + bias, weight [out, in]. */
function product({ shape, data }: Tensor, weight: Float64Array, bias?: Float64Array): Tensor {
  const from = shape.at(-1) ?? 0;
  const to = weight.length / from;
  const rows = data.length / from;
  const result = new Float64Array(rows * to);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < to; column++) {
      let sum = bias?.[column] ?? 0;
      for (let i = 0; i < from; i++)
        sum += (data[row * from + i] ?? 0) * (weight[column * from + i] ?? 0);
      result[row * to + column] = sum;
    }
  }
  return { shape: shape.with(-1, to), data: result };
}

function layerNorm(x: Tensor, weight: Float64Array, bias: Float64Array, eps: number): Tensor {
  const size = weight.length;
  const result = new Float64Array(x.data.length);
  for (let from = 0; from < result.length; from += size) {
    const row = x.data.subarray(from, from + size);
    const mean = row.reduce((sum, value) => sum + value, 0) / size;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / size;
    for (let i = 0; i < size; i++) {
      const normed = ((row[i] ?? 0) - mean) / Math.sqrt(variance + eps);
      result[from + i] = normed * (weight[i] ?? 0) + (bias[i] ?? 0);
    }
  }
  return { shape: x.shape, data: result };
}

/** Columns of the last dimension, in parts. */
function split<const Sizes extends readonly number[]>(x: Tensor, sizes: Sizes) {
  const width = sizes.reduce((sum, size) => sum + size, 0);
  let from = 0;
  const parts = sizes.map((size): Tensor => {
    const start = from;
    from += size;
    const data = Float64Array.from(
      { length: (x.data.length / width) * size },
      (_, at) => x.data[Math.floor(at / size) * width + start + (at % size)] ?? 0,
    );
    return { shape: x.shape.with(-1, size), data };
  });
  return parts as unknown as { readonly [Index in keyof Sizes]: Tensor };
}

function concatenated(a: Tensor, b: Tensor): Tensor {
  const size = a.shape.at(-1) ?? 0;
  const data = Float64Array.from({ length: 2 * a.data.length }, (_, at) => {
    const place = Math.floor(at / (2 * size)) * size + (at % size);
    return (at % (2 * size) < size ? a : b).data[place] ?? 0;
  });
  return { shape: a.shape.with(-1, 2 * size), data };
}

/** RoPE on each head of x [B, T, heads · d]: halves are rotated by the position's angles. */
function rotate(x: Tensor, headDim: number, base: number, start: number): Tensor {
  const [, tokens = 0, width = 0] = x.shape;
  const half = headDim / 2;
  return each(x, (value, at) => {
    const column = at % width;
    const j = column % headDim;
    const position = start + (Math.floor(at / width) % tokens);
    const angle = position / base ** ((2 * (j % half)) / headDim);
    const other = j < half ? -(x.data[at + half] ?? 0) : (x.data[at - half] ?? 0);
    return value * Math.cos(angle) + other * Math.sin(angle);
  });
}

interface Query {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly width: number;
  readonly headDim: number;
  readonly head: number;
  readonly row: number;
  readonly t: number;
  /** First and last key, as rows of `k`. */
  readonly from: number;
  readonly to: number;
}

/** One query of one head. */
function attend(
  { q, k, v, width, headDim, head, row, t, from, to }: Query,
  into: Float64Array,
): void {
  const at = (tensor: Tensor, position: number) =>
    (row * (tensor.shape[1] ?? 0) + position) * width + head * headDim;
  const query = at(q, t);
  const scores = new Float64Array(to - from + 1);
  for (let s = from; s <= to; s++) {
    const key = at(k, s);
    let sum = 0;
    for (let i = 0; i < headDim; i++) sum += (q.data[query + i] ?? 0) * (k.data[key + i] ?? 0);
    scores[s - from] = sum / Math.sqrt(headDim);
  }
  const largest = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const weights = scores.map((score) => Math.exp(score - largest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  for (const [s, weight] of weights.entries()) {
    const value = at(v, from + s);
    for (let i = 0; i < headDim; i++) {
      into[query + i] = (into[query + i] ?? 0) + (weight / total) * (v.data[value + i] ?? 0);
    }
  }
}

/**
 * The error function: its Taylor series up to 3, and beyond it Lentz's continued fraction of the complement
 * (Numerical Recipes, 3rd edition, 6.2).
 */
function erf(x: number): number {
  const size = Math.abs(x);
  const value = size < 3 ? series(size) : 1 - complement(size);
  return x < 0 ? -value : value;
}

function series(x: number): number {
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-18 * sum; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function complement(x: number): number {
  if (x > 27) return 0;
  let fraction = x;
  for (let n = 60; n > 0; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
}
