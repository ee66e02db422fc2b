/**
 * The forward pass in plain loops over float64, slow but readable. Tests compare the engines with it, and plant faults
 * in it that the checks must find. Shapes: B batch, T tokens of a call, H hidden, D inner, N state.
 */

import { decodingKeys, fullForwardKeys } from '../../src/engine/calls.js';
import type {
  Engine,
  EngineInfo,
  Program,
  ProgramOptions,
  RunInput,
  RunOutput,
  StateHandle,
  Values,
} from '../../src/engine/engine.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import type {
  Alibi,
  Alignment,
  AltUpBlock,
  Attention,
  CausalConv,
  DifferentialAttention,
  DynamicMask,
  ExpertAttention,
  FusedProjection,
  Gate,
  GatedDelta,
  GatedMlp,
  GatedRmsNorm,
  GriffinRecurrence,
  HeadedMamba,
  HybridBlock,
  Indexer,
  KimiDelta,
  LanguageModel,
  LatentAttention,
  Layer,
  LayerNorm,
  LearnedPositions,
  LightningAttention,
  Linear,
  Mamba,
  MixtureOfExperts,
  PerLayerInputs,
  ProjectionLayer,
  Projections,
  RmsNorm,
  Rotary,
  Router,
  RwkvChannelMix,
  RwkvTimeMix,
  SinusoidalPositions,
  Srte,
  StateSpaceDual,
  Window,
} from '../../src/model/architecture/layer.js';
import type { Param } from '../../src/model/architecture/param.js';
import {
  isGatedPack,
  normWidth,
  packedInner,
  projectionLayers,
  tensorsOf,
} from '../../src/model/architecture/walk.js';
import { activated } from './reference-activations.js';
import {
  type Attended,
  attend,
  joinedHeads,
  repeated,
  rotate,
  splitHeads,
} from './reference-attention.js';
import { type Choice, chosenKeys } from './reference-indexer.js';
import { route } from './reference-router.js';
import { each, plus, sigmoid, split, sumOf, type Tensor, times } from './reference-values.js';

/** Planted faults. */
export interface Faults {
  /** Every position sees every other. */
  readonly noMask?: boolean;
  /** Every block except the first has a copy of a shared table, kept across loads. */
  readonly copyShared?: boolean;
  /** A tied head has a copy of the embedding. */
  readonly copyTied?: boolean;
  /** State that is lost between two calls of decoding. */
  readonly forget?: 'scan' | 'convolution' | 'keys' | 'rows';
  /** Called with every layer's output, which it may change. */
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
      deviceKind: 'cpu',
      isSoftware: false,
      memoryBytes: null,
      threads: 1,
      compute: 'f32',
      ...info,
    },
    load: async (layer, source, options = {}) =>
      new ReferenceProgram(layer, source, { options, faults, copies }),
    close: async () => {},
  };
}

/** Copies by name. */
type Copies = Map<string, Float64Array>;

interface Setting {
  readonly options: ProgramOptions;
  readonly faults: Faults;
  readonly copies: Copies;
}

interface ReferenceState extends StateHandle {
  readonly kept: ReadonlyMap<string, Float64Array>;
}

class ReferenceProgram implements Program {
  readonly elements: number;
  readonly weightBytes: number;
  readonly #layer: Layer;
  readonly #weights: ReadonlyMap<Param, Float64Array>;
  readonly #setting: Setting;

  constructor(layer: Layer, source: WeightSource, setting: Setting) {
    this.#layer = layer;
    this.#setting = setting;
    // The tables of RoPE are computed, not read.
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
    this.weightBytes = 4 * elements;
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

const rounded = ({ shape, data }: Tensor): Values => ({ shape, data: new Float32Array(data) });
const mapped = (tensors: ReadonlyMap<string, Tensor>) =>
  new Map([...tensors].map(([path, tensor]) => [path, rounded(tensor)]));

interface RunParts extends Setting {
  readonly input: RunInput;
  readonly weights: ReadonlyMap<Param, Float64Array>;
}

/** One call of a program. */
class Run {
  readonly blocks = new Map<string, Tensor>();
  readonly taps = new Map<string, Tensor>();
  readonly given: readonly Tensor[];
  readonly #parts: RunParts;
  readonly #batch: number;
  readonly #tokens: number;
  /** Number of earlier tokens. */
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

  /** Output of a layer for its inputs. */
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
      case 'cycles': {
        const start = this.#weight(layer.initial);
        let [low, high] = [each(x, (_, at) => start[at % start.length] ?? 0), x];
        let used = 0;
        for (const stack of layer.stacks) {
          const sum = this.of(stack, plus(low, high));
          used = (used + 1) % (layer.lowPerHigh + 1);
          if (used === 0) high = sum;
          else low = sum;
        }
        return high;
      }
      case 'sequence':
        return this.#inTurn(layer.layers, x);
      case 'embedding':
        return this.#rows(this.#weight(layer.weight), layer.weight.shape[1] ?? 0);
      case 'linear':
        return this.#linear(layer, x);
      case 'transposedLinear':
        return product(x, transposed(layer, this.#weight(layer.weight)), this.#bias(layer));
      case 'fusedProjection':
        return this.#fusedParts(layer, x).reduce((a, b) => concatenated(a, b));
      case 'rmsNorm':
        return rmsNorm(x, layer.weight && this.#weight(layer.weight), layer);
      case 'gatedRmsNorm':
        return gatedRmsNorm(x, y, this.#weight(layer.weight), layer);
      case 'scale':
        return each(x, (value) => value * layer.factor);
      case 'altUpSplit':
        return scaledLike(
          layer.projections.map((one) => this.of(one, x)),
          x,
        ).reduce(concatenated, x);
      case 'altUpMerge': {
        const count = layer.projections.length + 1;
        const size = (x.shape.at(-1) ?? 0) / count;
        const [own = EMPTY, ...others] = split(x, new Array<number>(count).fill(size));
        const products = layer.projections.map((one, index) =>
          this.of(one, others[index] ?? EMPTY),
        );
        const sum = scaledLike(products, own).reduce(plus, own);
        return each(sum, (value) => value / count);
      }
      case 'altUpBlock':
        return this.#altUpBlock(layer, x);
      case 'shift': {
        const bias = this.#weight(layer.bias);
        return each(x, (value, at) => value + (bias[at % bias.length] ?? 0));
      }
      case 'weightedScale': {
        const weight = this.#weight(layer.weight);
        return each(x, (value, at) => value * (weight[at % weight.length] ?? 0));
      }
      case 'perLayerInputs':
        return this.#perLayerInputs(layer);
      case 'perLayerBranch': {
        const { inputs, index } = layer;
        const all = split(this.of(inputs), new Array<number>(inputs.layers).fill(inputs.width));
        const opened = activated(this.of(layer.gate, x), layer.activation);
        return this.of(layer.projection, times(opened, all[index] ?? EMPTY));
      }
      case 'softcap':
        return each(x, (value) => layer.cap * Math.tanh(value / layer.cap));
      case 'embeddingJoin':
        return concatenated(x, this.of(layer.embedding));
      case 'learnedPositions':
        return this.#learnedPositions(layer, x);
      case 'residual':
        return layer.branches.reduce((sum, branch) => plus(sum, this.of(branch, x)), x);
      case 'gatedMlp': {
        const [gate = EMPTY, up = EMPTY] = this.#projected(layer.inputs, x);
        const scaled = cutOff(
          each(gate, (value) => value * (layer.gateScale ?? 1)),
          layer.cutoffDeviations,
        );
        return this.of(layer.down, limitedGate(scaled, up, layer));
      }
      case 'router': {
        const given = (layer.steps ?? []).reduce((value, step) => this.of(step, value), x);
        const weights = route(
          product(given, this.#weight(layer.weight), layer.bias && this.#weight(layer.bias)),
          layer,
          this.#correction(layer),
        );
        const factors = layer.expertScales && this.#weight(layer.expertScales);
        return factors
          ? each(weights, (weight, at) => weight * (factors[at % factors.length] ?? 0))
          : weights;
      }
      case 'mixtureOfExperts':
        return this.#mixture(layer, x);
      case 'latentAttention':
        return this.#latentAttention(layer, x);
      case 'expertAttention':
        return this.#expertAttention(layer, x);
      case 'differentialAttention':
        return this.#differentialAttention(layer, x);
      case 'dynamicMask':
        return this.#attention(layer.attention, x, layer);
      case 'tokenIndexer':
      case 'blockIndexer':
        return fail('an indexer alone');
      case 'layerNorm':
        return this.#layerNorm(layer, x);
      case 'headNorms':
        return split(x, layer.norms.map(normWidth))
          .map((part, index) => this.of(layer.norms[index] ?? fail('a norm'), part))
          .reduce(concatenated);
      case 'sinusoidalPositions':
        return this.#sinusoidalPositions(layer, x);
      case 'described':
        throw new Error(`${layer.name} is described, not run`);
      case 'skippedBlock':
        return x;
      case 'sum':
        return layer.branches.map((branch) => this.of(branch, x)).reduce(plus);
      case 'activation':
        return activated(x, layer.fn);
      case 'xielu': {
        const [positive = 0, negative = 0, beta = 0, eps = 0] = [
          layer.positive,
          layer.negative,
          layer.beta,
          layer.eps,
        ].map((tensor) => this.#weight(tensor)[0] ?? 0);
        const above = Math.log1p(Math.exp(positive));
        const below = beta + Math.log1p(Math.exp(negative));
        return each(x, (value) =>
          value > 0
            ? above * value ** 2 + beta * value
            : below * (Math.expm1(Math.min(value, eps)) - value) + beta * value,
        );
      }
      case 'causalConv':
        return this.#causalConv(layer, x);
      case 'headedMamba':
        return this.#headedMamba(layer, x);
      case 'mamba':
        return this.#mamba(layer, x);
      case 'stateSpaceDual':
        return this.#stateSpaceDual(layer, x);
      case 'gatedDelta':
        return this.#gatedDelta(layer, x);
      case 'kimiDelta':
        return this.#kimiDelta(layer, x);
      case 'blockDiagonal': {
        const [heads = 0, size = 0] = layer.weight.shape;
        const [weight, bias] = [this.#weight(layer.weight), this.#weight(layer.bias)];
        return each(x, (_, at) => {
          const column = at % (heads * size);
          const [head, to] = [Math.floor(column / size), column % size];
          const from = at - to;
          const products = Array.from(
            { length: size },
            (__, i) => (x.data[from + i] ?? 0) * (weight[(head * size + i) * size + to] ?? 0),
          );
          return sumOf(products) + (bias[column] ?? 0);
        });
      }
      case 'griffinRecurrence':
        return this.#griffin(layer, x);
      case 'rwkvTimeMix':
        return this.#rwkvTimeMix(layer, x);
      case 'rwkvChannelMix': {
        const [keys = EMPTY, receptances = EMPTY] = this.#tokenMixes(layer, x);
        const squared = each(this.of(layer.key, keys), (value) => Math.max(value, 0) ** 2);
        const gate = each(this.of(layer.receptance, receptances), sigmoid);
        return times(gate, this.of(layer.value, squared));
      }
      case 'lightningAttention':
        return this.#lightning(layer, x);
      case 'gatedConv': {
        const size = layer.conv.weight.shape[0] ?? 0;
        const [b, c, input] = split(this.of(layer.inProj, x), [size, size, size]);
        return this.of(layer.outProj, times(c, this.of(layer.conv, times(b, input))));
      }
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
      case 'packedExperts':
      case 'clampedExperts':
      case 'alibi':
      case 'productKeyExperts':
        throw new Error(`a ${layer.kind} computes nothing by itself`);
    }
  }

  /** A weight, or the faulty copy for the current block or the head. */
  #weight(tensor: Param, isHead = false): Float64Array {
    const prefix = isHead ? 'lm_head.' : `layers.${this.#block}.`;
    const alias = tensor.aliases.find((name) => name.startsWith(prefix));
    const copy = alias === undefined ? undefined : this.#parts.copies.get(alias);
    return copy ?? this.#parts.weights.get(tensor) ?? fail(tensor.name);
  }

  #model({ embedding, embeddingSteps, blocks, norm, head, logitSteps }: LanguageModel): Tensor {
    let x = this.#inTurn(embeddingSteps, this.of(embedding));
    for (const block of blocks) {
      x = this.of(block, x);
      this.blocks.set(block.name, x);
    }
    return this.#inTurn([norm, head, ...logitSteps], x);
  }

  #inTurn(layers: readonly Layer[], x: Tensor): Tensor {
    return layers.reduce((value, each) => this.of(each, value), x);
  }

  /** Rows of a table for the ids → [B, T, H]. */
  #rows(table: Float64Array, size: number): Tensor {
    const ids = this.#parts.input.ids?.data ?? new Int32Array(this.#batch * this.#tokens);
    const data = new Float64Array(ids.length * size);
    for (const [row, id] of ids.entries()) {
      data.set(table.subarray(id * size, (id + 1) * size), row * size);
    }
    return { shape: [this.#batch, this.#tokens, size], data };
  }

  #altUpBlock(layer: AltUpBlock, x: Tensor): Tensor {
    const { router, routerNorm, prediction, correction, active } = layer;
    const [count, size] = [correction.weight.shape[1] ?? 0, router.weight.shape[1] ?? 0];
    const streams = split(x, new Array<number>(count).fill(size));
    const routed = (value: Tensor) =>
      each(
        this.of(
          router,
          each(this.of(routerNorm, value), (one) => one / size),
        ),
        Math.tanh,
      );
    const byRow = (value: Tensor, factors: Tensor, column: number) => {
      const columns = factors.shape.at(-1) ?? 1;
      return each(
        value,
        (one, at) => one * (factors.data[Math.floor(at / size) * columns + column] ?? 0),
      );
    };
    const mixing = this.of(prediction, routed(streams[active] ?? EMPTY));
    const predicted = streams.map((stream, to) =>
      streams.reduce((sum, from, j) => plus(sum, byRow(from, mixing, to * count + j)), stream),
    );
    const own = predicted[active] ?? EMPTY;
    const computed = this.of(layer.inner, own);
    const change = each(computed, (value, at) => value - (own.data[at] ?? 0));
    const shares = each(this.of(correction, routed(computed)), (value) => 1 + value);
    const corrected = predicted.map((stream, i) => plus(stream, byRow(change, shares, i)));
    const factor = this.#weight(layer.outputScale);
    const given = each(corrected[active] ?? EMPTY, (value, at) =>
      layer.isScaled ? value * (factor[at % size] ?? 0) : value,
    );
    const added = this.of(layer.perLayer, given);
    return corrected
      .map((stream, i) => (i === 0 ? stream : plus(stream, added)))
      .reduce(concatenated);
  }

  #perLayerInputs(layer: PerLayerInputs): Tensor {
    const e = each(this.of(layer.embedding), (value) => value * layer.embeddingScale);
    const product = each(this.of(layer.projection, e), (value) => value * layer.projectionScale);
    const rows = each(this.of(layer.table), (value) => value * layer.tableScale);
    return each(plus(this.of(layer.norm, product), rows), (value) => value * layer.scale);
  }

  #linear({ name, weight, bias }: Linear, x: Tensor): Tensor {
    const values = this.#weight(weight, name === 'lm_head');
    return product(x, values, bias && this.#weight(bias));
  }

  #bias({ bias }: ProjectionLayer): Float64Array | undefined {
    return bias && this.#weight(bias);
  }

  #correction({ correction }: Router): Float64Array | undefined {
    return correction && this.#weight(correction);
  }

  /** Values of a product whose columns are in groups, each with a part of every value. */
  #fusedParts({ projection, widths, groups, places }: FusedProjection, x: Tensor): Tensor[] {
    const rows = this.of(projection, x);
    const shares = widths.map((width) => width / groups);
    const cut = { ...rows, shape: [rows.data.length / sumOf(shares), sumOf(shares)] };
    const columns = split(cut, shares).map((part, index) => ({
      shape: rows.shape.with(-1, widths[index] ?? 0),
      data: part.data,
    }));
    return (places ?? widths.map((_, index) => index)).map((place) => columns[place] ?? EMPTY);
  }

  #projected(inputs: Projections, x: Tensor): Tensor[] {
    return projectionLayers(inputs).flatMap((layer) =>
      layer.kind === 'fusedProjection' ? this.#fusedParts(layer, x) : [this.of(layer, x)],
    );
  }

  #layerNorm({ weight, bias, eps, offset, size }: LayerNorm, x: Tensor): Tensor {
    const factors = weight ? this.#weight(weight) : undefined;
    const shifts = bias ? this.#weight(bias) : undefined;
    return each(normalized(x, size, eps), (value, at) => {
      const factor = factors ? offset + (factors[at % factors.length] ?? 0) : 1;
      return value * factor + (shifts?.[at % size] ?? 0);
    });
  }

  #learnedPositions({ weight, offset }: LearnedPositions, x: Tensor): Tensor {
    const [table, size] = [this.#weight(weight), weight.shape[1] ?? 0];
    const start = this.#parts.faults.forget === 'rows' ? 0 : this.#start;
    return each(x, (value, at) => {
      const position = offset + start + (Math.floor(at / size) % this.#tokens);
      return value + (table[position * size + (at % size)] ?? 0);
    });
  }

  #sinusoidalPositions(
    { frequencies, size, offset, zeroAt }: SinusoidalPositions,
    x: Tensor,
  ): Tensor {
    const start = this.#parts.faults.forget === 'rows' ? 0 : this.#start;
    return each(x, (value, at) => {
      const position = offset + start + (Math.floor(at / size) % this.#tokens);
      const column = at % size;
      const sine = frequencies[column];
      const cosine = frequencies[column - frequencies.length];
      if (position === zeroAt) return value;
      if (sine !== undefined) return value + Math.sin(position * sine);
      return value + (cosine === undefined ? 0 : Math.cos(position * cosine));
    });
  }

  /** Sends each token to its experts, one after the other. */
  #mixture(layer: MixtureOfExperts, x: Tensor): Tensor {
    const [into, outOf] = layer.latent;
    const read = layer.expertNorm ? this.of(layer.expertNorm, x) : x;
    const given = into ? this.of(into, read) : read;
    const size = given.shape.at(-1) ?? 0;
    const weights = this.of(layer.router, x); // (B, T, experts)
    const experts = weights.shape.at(-1) ?? 0;
    const routed = each(given, () => 0);
    for (const [at, weight] of weights.data.entries()) {
      if (weight === 0) continue;
      const from = Math.floor(at / experts) * size;
      const own = given.data.slice(from, from + size);
      const sent = layer.weighsInputs ? own.map((value) => weight * value) : own;
      const token = { shape: [1, 1, size], data: sent };
      const factor = layer.weighsInputs ? 1 : weight;
      const isZero = at % experts >= experts - (layer.zeroExperts ?? 0);
      const output = isZero ? token : this.#expert(layer.experts, at % experts, token);
      for (let i = 0; i < size; i++) {
        routed.data[from + i] = (routed.data[from + i] ?? 0) + factor * (output.data[i] ?? 0);
      }
    }
    const result = outOf ? this.of(outOf, routed) : routed;
    const hidden = x.shape.at(-1) ?? 0;
    const shared = layer.shared.map((expert) => this.of(expert, x));
    if (shared.length === 0) return result;
    const gate = layer.sharedGate && this.of(layer.sharedGate, x);
    const sum = each(shared.reduce(plus), (value, at) =>
      gate ? value * sigmoid(gate.data[Math.floor(at / hidden)] ?? 0) : value,
    );
    return plus(result, sum);
  }

  #expert(experts: MixtureOfExperts['experts'], index: number, token: Tensor): Tensor {
    if (!('kind' in experts)) return this.of(experts[index] ?? fail('an expert'), token);
    const count = (experts.kind === 'packedExperts' && experts.stacked) || undefined;
    const part = (tensor: Param) => {
      const size = tensor.elements / (count ?? tensor.shape[0] ?? 1);
      return this.#weight(tensor).subarray(index * size, (index + 1) * size);
    };
    const transposed = (tensor: Param) => {
      const values = part(tensor);
      const to = tensor.shape.at(-1) ?? 0;
      const from = values.length / to;
      return values.map((_, at) => values[(at % from) * to + Math.floor(at / from)] ?? 0);
    };
    if (experts.kind === 'clampedExperts') {
      const { gateUpBias, downBias, activation: fn, limit } = experts;
      const both = product(token, transposed(experts.gateUp), part(gateUpBias));
      const every = (first: number) => ({
        shape: [1, 1, both.data.length / 2],
        data: both.data.filter((_, at) => at % 2 === first),
      });
      const gate = each(every(0), (value) => Math.min(value, limit));
      const up = each(every(1), (value) => 1 + Math.max(-limit, Math.min(limit, value)));
      return product(times(activated(gate, fn), up), transposed(experts.down), part(downBias));
    }
    const matrix = experts.isTransposed ? transposed : part;
    const inner = packedInner(experts);
    const both = product(token, matrix(experts.gateUp));
    if (experts.up) {
      const up = product(token, part(experts.up));
      return product(limitedGate(both, up, experts), transposed(experts.down));
    }
    if (!isGatedPack(experts)) {
      return product(activated(both, experts.activation), matrix(experts.down));
    }
    const [gate, up] = split(both, [inner, inner]);
    return product(limitedGate(gate, up, experts), matrix(experts.down));
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

  /** Rows of the encoding from the current position → [1, T, H]. */
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
    const { innerSize: inner, stateSize: state, stepRank, activation: fn } = layer;
    const [x0, residual] = split(this.of(layer.inProj, u), [inner, inner]);
    const x = activated(this.of(layer.conv, x0), fn);
    const parts = split(this.of(layer.xProj, x), [stepRank, state, state]);
    const [low, b, c] = parts.map((part, index) => {
      const norm = layer.innerNorms[index];
      if (norm) return this.of(norm, part);
      const eps = layer.innerNormEps;
      return eps === undefined ? part : scaledParts(part, part.shape.at(-1) ?? 0, eps, () => 1);
    }) as [Tensor, Tensor, Tensor];
    const { bias } = layer.dtProj;
    const again = layer.doubledStepBias && bias ? this.#weight(bias) : new Float64Array(inner);
    const step = each(this.of(layer.dtProj, low), (value, at) =>
      softplus(value + (again[at % inner] ?? 0)),
    );
    const y = this.#scan(layer, { x, step, b, c });
    return this.of(layer.outProj, times(y, activated(residual, 'silu')));
  }

  #headedMamba(layer: HeadedMamba, u: Tensor): Tensor {
    const { heads, headDim, stateSize: state, stepRank: rank, activation: fn } = layer;
    const [inner, wide] = [heads * headDim, rank + 2 * state];
    const pairs = this.of(layer.inProj, u);
    const part = (place: number): Tensor => ({
      shape: [...pairs.shape.slice(0, -1), inner],
      data: pairs.data.filter((_, at) => at % 2 === place),
    });
    const residual = part(1);
    const x = activated(this.of(layer.conv, part(0)), fn);
    const weights = [layer.xProj, layer.stepProj, layer.stepBias, layer.stateLog, layer.skip];
    const [xProj, stepProj, bias, log, skip] = weights.map((tensor) => this.#weight(tensor)) as [
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
    ];
    const h = this.#state(`${layer.name}.scan`, this.#batch * inner * state, 'scan');
    const y = each(x, (value, at) => value * (skip[at % inner] ?? 0));
    for (let at = 0; at < this.#batch * this.#tokens; at++) {
      const row = Math.floor(at / this.#tokens);
      for (let head = 0; head < heads; head++) {
        const low = new Float64Array(wide);
        for (let index = 0; index < wide; index++) {
          for (let d = 0; d < headDim; d++) {
            const weight = xProj[(head * wide + index) * headDim + d] ?? 0;
            low[index] =
              (low[index] ?? 0) + weight * (x.data[at * inner + head * headDim + d] ?? 0);
          }
        }
        for (let d = 0; d < headDim; d++) {
          const channel = head * headDim + d;
          let raw = bias[channel] ?? 0;
          for (let index = 0; index < rank; index++) {
            raw += (low[index] ?? 0) * (stepProj[channel * rank + index] ?? 0);
          }
          const dt = softplus(raw);
          for (let n = 0; n < state; n++) {
            const place = (row * inner + channel) * state + n;
            const kept = (h[place] ?? 0) * Math.exp(-dt * Math.exp(log[channel * state + n] ?? 0));
            h[place] = kept + dt * (low[rank + n] ?? 0) * (x.data[at * inner + channel] ?? 0);
            y.data[at * inner + channel] =
              (y.data[at * inner + channel] ?? 0) + (h[place] ?? 0) * (low[rank + state + n] ?? 0);
          }
        }
      }
    }
    return this.of(layer.outProj, times(y, activated(residual, 'silu')));
  }

  #stateSpaceDual(layer: StateSpaceDual, u: Tensor): Tensor {
    const { heads, headDim, stateSize: state, groups, activation: fn, norm } = layer;
    const [inner, shared] = [heads * headDim, groups * state];
    const widths = [inner, inner, shared, shared, heads];
    const starts = widths.map((_, part) => sumOf(widths.slice(0, part)));
    const width = sumOf(widths);
    const projected = each(this.of(layer.inProj, u), (value, at) => {
      const part = starts.findLastIndex((start) => start <= at % width);
      return value * (layer.inputScales?.[part] ?? 1);
    });
    const [gate, input, low] = split(projected, [inner, inner + 2 * shared, heads]);
    const [x, b, c] = split(activated(this.of(layer.conv, input), fn), [inner, shared, shared]);
    const [bias, log, skip] = [layer.stepBias, layer.stateLog, layer.skip].map((tensor) =>
      this.#weight(tensor),
    ) as [Float64Array, Float64Array, Float64Array];
    const [least, most] = layer.stepLimits;
    const step = each(low, (value, at) =>
      Math.min(most, Math.max(least, softplus(value + (bias[at % heads] ?? 0)))),
    );
    const h = this.#state(`${layer.name}.scan`, this.#batch * inner * state, 'scan');
    const y = each(x, () => 0);
    for (let row = 0; row < this.#batch; row++) {
      for (let t = 0; t < this.#tokens; t++) {
        const at = row * this.#tokens + t;
        for (let head = 0; head < heads; head++) {
          const dt = step.data[at * heads + head] ?? 0;
          const decay = Math.exp(-Math.exp(log[head] ?? 0) * dt);
          const group = Math.floor((head * groups) / heads);
          for (let p = 0; p < headDim; p++) {
            const channel = head * headDim + p;
            const value = x.data[at * inner + channel] ?? 0;
            let sum = (skip[head] ?? 0) * value;
            for (let n = 0; n < state; n++) {
              const place = (row * inner + channel) * state + n;
              const column = at * shared + group * state + n;
              const next = (h[place] ?? 0) * decay + dt * (b.data[column] ?? 0) * value;
              h[place] = next;
              sum += next * (c.data[column] ?? 0);
            }
            y.data[at * inner + channel] = sum;
          }
        }
      }
    }
    return this.of(
      layer.outProj,
      norm ? this.of(norm, y, gate) : times(y, activated(gate, 'silu')),
    );
  }

  #gatedDelta(layer: GatedDelta, u: Tensor): Tensor {
    const { keyHeads, keyDim, valueHeads, valueDim, activation: fn } = layer;
    const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
    const [q0 = EMPTY, k0 = EMPTY, v0 = EMPTY, gate = EMPTY, low = EMPTY, steps = EMPTY] =
      this.#projected(layer.inputs, u);
    const given = layer.convs.length === 1 ? [[q0, k0, v0].reduce(concatenated)] : [q0, k0, v0];
    const mixed = layer.convs
      .map((conv, index) => this.of(conv, given[index] ?? EMPTY))
      .reduce(concatenated);
    const [q, k, v] = split(activated(mixed, fn), [keys, keys, inner]);
    const bias = this.#weight(layer.stepBias);
    const log = this.#weight(layer.stateLog);
    const state = this.#state(`${layer.name}.scan`, this.#batch * inner * keyDim, 'scan');
    const y = each(v, () => 0);
    const unit = (x: Tensor, from: number) => {
      const part = x.data.subarray(from, from + keyDim);
      const length = Math.sqrt(sumOf(part.map((value) => value * value)) + 1e-6);
      return part.map((value) => value / length);
    };
    for (let at = 0; at < this.#batch * this.#tokens; at++) {
      const row = Math.floor(at / this.#tokens);
      for (let head = 0; head < valueHeads; head++) {
        const shared = Math.floor((head * keyHeads) / valueHeads);
        const key = unit(k, (at * keyHeads + shared) * keyDim);
        const query = unit(q, (at * keyHeads + shared) * keyDim);
        const column = at * valueHeads + head;
        const step = softplus((steps.data[column] ?? 0) + (bias[head] ?? 0));
        const decay = Math.exp(-Math.exp(log[head] ?? 0) * step);
        const beta = layer.betaScale * sigmoid(low.data[column] ?? 0);
        for (let j = 0; j < valueDim; j++) {
          const place = (i: number) => ((row * valueHeads + head) * keyDim + i) * valueDim + j;
          const kept = key.map((_, i) => decay * (state[place(i)] ?? 0));
          const known = sumOf(kept.map((value, i) => value * (key[i] ?? 0)));
          const change = beta * ((v.data[column * valueDim + j] ?? 0) - known);
          const next = kept.map((value, i) => value + (key[i] ?? 0) * change);
          for (const [i, value] of next.entries()) state[place(i)] = value;
          const seen = sumOf(next.map((value, i) => value * (query[i] ?? 0)));
          y.data[column * valueDim + j] = seen / Math.sqrt(keyDim);
        }
      }
    }
    return this.of(layer.outProj, this.of(layer.norm, y, gate));
  }

  #kimiDelta(layer: KimiDelta, u: Tensor): Tensor {
    const { heads, headDim: size } = layer;
    const inner = heads * size;
    const inputs = layer.inputs.map((input) => this.of(input, u));
    const given = layer.convs.length === 1 ? [inputs.reduce(concatenated)] : inputs;
    const mixed = layer.convs
      .map((conv, index) => this.of(conv, given[index] ?? EMPTY))
      .reduce(concatenated);
    const [q, k, v] = split(activated(mixed, layer.activation), [inner, inner, inner]);
    const forget = this.of(layer.forget, u);
    const beta = each(this.of(layer.beta, u), sigmoid);
    const [bias, log] = [this.#weight(layer.stepBias), this.#weight(layer.stateLog)];
    const state = this.#state(`${layer.name}.scan`, this.#batch * inner * size, 'scan');
    const y = each(v, () => 0);
    const unit = (x: Tensor, from: number) => {
      const part = x.data.subarray(from, from + size);
      const length = Math.sqrt(sumOf(part.map((value) => value * value)) + 1e-6);
      return part.map((value) => value / length);
    };
    for (let at = 0; at < this.#batch * this.#tokens; at++) {
      const row = Math.floor(at / this.#tokens);
      for (let head = 0; head < heads; head++) {
        const column = (at * heads + head) * size;
        const [key, query] = [unit(k, column), unit(q, column)];
        const decay = key.map((_, i) => {
          const step = softplus((forget.data[column + i] ?? 0) + (bias[head * size + i] ?? 0));
          return Math.exp(-Math.exp(log[head] ?? 0) * step);
        });
        for (let j = 0; j < size; j++) {
          const place = (i: number) => ((row * heads + head) * size + i) * size + j;
          const kept = key.map((_, i) => (decay[i] ?? 0) * (state[place(i)] ?? 0));
          const known = sumOf(kept.map((value, i) => value * (key[i] ?? 0)));
          const change = (beta.data[at * heads + head] ?? 0) * ((v.data[column + j] ?? 0) - known);
          const next = kept.map((value, i) => value + (key[i] ?? 0) * change);
          for (const [i, value] of next.entries()) state[place(i)] = value;
          const seen = sumOf(next.map((value, i) => value * (query[i] ?? 0)));
          y.data[column + j] = seen / Math.sqrt(size);
        }
      }
    }
    return this.of(layer.outProj, this.of(layer.norm, y, this.of(layer.gate, u)));
  }

  #griffin(layer: GriffinRecurrence, u: Tensor): Tensor {
    const width = layer.decay.elements;
    const y = activated(this.of(layer.y, u), layer.activation);
    const x = this.of(layer.conv, this.of(layer.x, u));
    const inputGate = this.of(layer.inputGate, x);
    const recurrentGate = this.of(layer.recurrentGate, x);
    const decay = this.#weight(layer.decay);
    const state = this.#state(`${layer.name}.scan`, this.#batch * width, 'scan');
    const h = each(x, (value, at) => {
      const [row, channel] = [Math.floor(at / width), at % width];
      const gate = sigmoid(recurrentGate.data[at] ?? 0);
      const a = Math.exp(-8 * gate * softplus(decay[channel] ?? 0));
      const isFirst = this.#start + (row % this.#tokens) === 0;
      const given = sigmoid(inputGate.data[at] ?? 0) * value;
      const place = Math.floor(row / this.#tokens) * width + channel;
      state[place] = a * (state[place] ?? 0) + (isFirst ? 1 : Math.sqrt(1 - a * a)) * given;
      return state[place] ?? 0;
    });
    return this.of(layer.out, times(y, h));
  }

  #tokenMixes(layer: RwkvTimeMix | RwkvChannelMix, x: Tensor): Tensor[] {
    const { hidden, name } = layer;
    const last = this.#state(`${name}.shift`, this.#batch * hidden, 'convolution');
    const before = each(x, () => 0);
    for (let at = 0; at < this.#batch * this.#tokens; at++) {
      const row = Math.floor(at / this.#tokens);
      for (let channel = 0; channel < hidden; channel++) {
        before.data[at * hidden + channel] = last[row * hidden + channel] ?? 0;
        last[row * hidden + channel] = x.data[at * hidden + channel] ?? 0;
      }
    }
    return layer.mixes.map((mix) => {
      const weight = this.#weight(mix);
      return each(x, (value, at) => {
        const share = weight[at % hidden] ?? 0;
        return value * share + (before.data[at] ?? 0) * (1 - share);
      });
    });
  }

  #rwkvTimeMix(layer: RwkvTimeMix, x: Tensor): Tensor {
    const [keys = EMPTY, values = EMPTY, receptances = EMPTY] = this.#tokenMixes(layer, x);
    const [k, v] = [this.of(layer.key, keys), this.of(layer.value, values)];
    const [decay, first] = [this.#weight(layer.timeDecay), this.#weight(layer.timeFirst)];
    const width = decay.length;
    // Without a largest exponent: float64 has room for that of tests.
    const state = this.#state(`${layer.name}.scan`, 2 * this.#batch * width, 'scan');
    const means = each(k, (key, at) => {
      const channel = at % width;
      const place = 2 * (Math.floor(at / width / this.#tokens) * width + channel);
      const [sum, weights, value] = [state[place] ?? 0, state[place + 1] ?? 0, v.data[at] ?? 0];
      const own = Math.exp(key + (first[channel] ?? 0));
      const kept = Math.exp(-Math.exp(decay[channel] ?? 0));
      state[place] = kept * sum + Math.exp(key) * value;
      state[place + 1] = kept * weights + Math.exp(key);
      return (sum + own * value) / (weights + own);
    });
    const gate = each(this.of(layer.receptance, receptances), sigmoid);
    return this.of(layer.output, times(gate, means));
  }

  #lightning(layer: LightningAttention, u: Tensor): Tensor {
    const { slopes, headDim: size } = layer;
    const heads = slopes.length;
    const [q0 = EMPTY, k0 = EMPTY, v0 = EMPTY, gate = EMPTY] = this.#projected(
      projectionLayers(layer.inputs),
      u,
    );
    const [q, k, v] = [q0, k0, v0].map((part) => activated(part, layer.activation)) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const state = this.#state(`${layer.name}.scan`, this.#batch * heads * size * size, 'scan');
    const y = each(v, () => 0);
    for (let at = 0; at < this.#batch * this.#tokens; at++) {
      const row = Math.floor(at / this.#tokens);
      for (const [head, slope] of slopes.entries()) {
        const column = (at * heads + head) * size;
        for (let i = 0; i < size; i++) {
          for (let j = 0; j < size; j++) {
            const place = ((row * heads + head) * size + i) * size + j;
            const added = (k.data[column + i] ?? 0) * (v.data[column + j] ?? 0);
            state[place] = (state[place] ?? 0) * Math.exp(-slope) + added;
            y.data[column + j] =
              (y.data[column + j] ?? 0) + (q.data[column + i] ?? 0) * (state[place] ?? 0);
          }
        }
      }
    }
    return this.of(layer.outProj, this.of(layer.norm, y, gate));
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

  /** A copy of the state with this name, kept for the next call; zeros at the beginning. */
  #state(name: string, size: number, what: Faults['forget']): Float64Array {
    const before = this.#parts.faults.forget === what ? undefined : this.#before.get(name);
    const now = before ? before.slice() : new Float64Array(size);
    this.#kept.set(name, now);
    return now;
  }

  /** x [B, T, D]; weight [D, 1, kernel]. */
  #causalConv({ name, ...layer }: CausalConv, x: Tensor): Tensor {
    const weight = this.#weight(layer.weight);
    const bias = layer.bias && this.#weight(layer.bias);
    const inner = layer.weight.shape[0] ?? 0;
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
          let sum = bias?.[d] ?? 0;
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

  #attention(layer: Attention, u: Tensor, masked?: DynamicMask): Tensor {
    const { name, heads, keyValueHeads, headDim, scale, softcap, queryNorm, keyNorm, clip } = layer;
    const { valueDim = headDim } = layer;
    const projected = this.#projected(layer.inputs, u);
    const [gate] = layer.gate ? projected.splice(1, 1) : [];
    const [q = EMPTY, k = EMPTY, v = k] = projected;
    const sinks = layer.sinks && this.#weight(layer.sinks);
    const normed = (norm: typeof queryNorm, x: Tensor) => (norm ? this.of(norm, x) : x);
    const cut = (x: Tensor) =>
      clip === undefined ? x : each(x, (value) => Math.max(-clip, Math.min(clip, value)));
    const prepared = (norm: typeof queryNorm, x: Tensor) =>
      layer.normsAfterRotation
        ? normed(norm, this.#rotated(layer.rotary, cut(x)))
        : this.#rotated(layer.rotary, cut(normed(norm, x)));
    const queries = this.#tempered(layer, prepared(queryNorm, q));
    const [keys, values] = this.#shared(layer, () => [
      this.#withPast(`${name}.keys`, prepared(keyNorm, k)),
      this.#withPast(`${name}.values`, cut(layer.valueNorm ? this.of(layer.valueNorm, v) : v)),
    ]);
    const gains = masked && this.#gains(masked, values);
    const given = { q: queries, k: keys, v: values, scale, softcap };
    const choice = layer.selection && this.#choice(layer.selection, u, u);
    const result = new Float64Array(this.#batch * this.#tokens * heads * valueDim);
    let head = 0;
    for (const span of layer.spans) {
      for (let end = head + span.heads; head < end; head++) {
        const shared = Math.floor((head * keyValueHeads) / heads);
        const columns = {
          key: headDim,
          value: valueDim,
          heads,
          head,
          keyHeads: keyValueHeads,
          shared,
        };
        const own = { bonus: bonusOf(layer.alibi, head), sink: sinks?.[head] };
        const group = Math.floor((head * (layer.selection?.heads ?? 1)) / heads);
        const seen = choice && { seen: (row: number, t: number) => choice[row]?.[group]?.[t] };
        this.#attendHead(
          { ...given, ...columns, ...own, ...seen },
          span.window,
          result,
          gains && { kept: masked.kept, of: (row, s) => gains(row, s, shared) },
        );
      }
    }
    const output = { shape: [this.#batch, this.#tokens, heads * valueDim], data: result };
    const { gateDim = valueDim } = layer;
    const opened = layer.gate && gate ? activated(gate, layer.gate).data : undefined;
    const gated = opened
      ? each(output, (value, at) => value * (opened[Math.floor((at * gateDim) / valueDim)] ?? 0))
      : output;
    return this.of(layer.out, gated);
  }

  /** Each expert of a token asks with its own queries, one expert after the other. */
  #expertAttention(layer: ExpertAttention, u: Tensor): Tensor {
    const { name, router, experts, keyValueHeads, headDim, rotary, scale } = layer;
    const [k = EMPTY, v = EMPTY] = this.#projected(layer.keyValues, u);
    const keys = this.#withPast(`${name}.keys`, this.#rotated(rotary, k));
    const values = this.#withPast(`${name}.values`, v);
    const weights = this.of(router, u);
    const [count, width, hidden] = [
      router.weight.shape[0] ?? 0,
      keyValueHeads * headDim,
      u.shape.at(-1) ?? 0,
    ];
    const part = (tensor: Param, expert: number) => {
      const size = tensor.elements / count;
      return this.#weight(tensor).subarray(expert * size, (expert + 1) * size);
    };
    const bias = this.#weight(layer.bias);
    let sum = each(u, (_, at) => bias[at % hidden] ?? 0);
    for (let expert = 0; expert < count; expert++) {
      const q = this.#rotated(rotary, product(u, part(experts.gateUp, expert)));
      const result = new Float64Array(q.data.length);
      for (let head = 0; head < keyValueHeads; head++) {
        const columns = { key: headDim, value: headDim, heads: keyValueHeads, head };
        const given = { q, k: keys, v: values, scale, softcap: undefined };
        const none = { bonus: () => 0, sink: undefined };
        this.#attendHead(
          { ...given, ...columns, ...none, keyHeads: keyValueHeads, shared: head },
          undefined,
          result,
        );
      }
      const output = product(
        { shape: u.shape.with(-1, width), data: result },
        part(experts.down, expert),
      );
      sum = each(sum, (value, at) => {
        const weight = weights.data[Math.floor(at / hidden) * count + expert] ?? 0;
        return value + weight * (output.data[at] ?? 0);
      });
    }
    return sum;
  }

  #differentialAttention(layer: DifferentialAttention, u: Tensor): Tensor {
    const { name, heads, keyValueHeads, headDim, rotary, scale, initial } = layer;
    const [q0 = EMPTY, k0 = EMPTY, v0 = EMPTY] = this.#projected(layer.inputs, u);
    const q = this.#rotated(rotary, q0);
    const k = this.#withPast(`${name}.keys`, this.#rotated(rotary, k0));
    const v = this.#withPast(`${name}.values`, v0);
    const half = keyValueHeads / 2;
    /** Values of the first or the second half, as every head sees them. */
    const seen = [0, half].map((from) => {
      const result = new Float64Array(this.#batch * this.#tokens * heads * headDim);
      for (let head = 0; head < heads; head++) {
        const group = Math.floor((head * keyValueHeads) / heads);
        const own = split(v, new Array<number>(keyValueHeads).fill(headDim))[from + (group % half)];
        const moved = split(k, new Array<number>(keyValueHeads).fill(headDim))[group];
        const columns = { key: headDim, value: headDim, heads, head, keyHeads: 1, shared: 0 };
        const given = { q, k: moved ?? EMPTY, v: own ?? EMPTY, scale, softcap: undefined };
        const none = { bonus: () => 0, sink: undefined };
        this.#attendHead({ ...given, ...columns, ...none }, undefined, result);
      }
      const shape = [this.#batch, this.#tokens, heads * headDim];
      return split({ shape, data: result }, new Array<number>(heads).fill(headDim));
    });
    const [q1, k1, q2, k2] = layer.lambdas.map((each) => this.#weight(each));
    const dot = (a?: Float64Array, b?: Float64Array) =>
      sumOf((a ?? EMPTY.data).map((value, at) => value * (b?.[at] ?? 0)));
    const lambda = Math.exp(dot(q1, k1)) - Math.exp(dot(q2, k2)) + initial;
    const pairs = Array.from({ length: heads / 2 }, (_, head) => {
      const [first, second] = [head, head + heads / 2].map((each) =>
        seen.map((side) => side[each] ?? EMPTY).reduce(concatenated),
      ) as [Tensor, Tensor];
      const difference = each(first, (value, at) => value - lambda * (second.data[at] ?? 0));
      return each(this.of(layer.norm, difference), (value) => value * (1 - initial));
    });
    return this.of(layer.out, pairs.reduce(concatenated));
  }

  readonly #lent = new Map<string, [Tensor, Tensor]>();

  #shared(
    { name, sharing, keyValueHeads, headDim }: Attention,
    make: () => [Tensor, Tensor],
  ): [Tensor, Tensor] {
    if (typeof sharing === 'object') {
      const shape = [this.#batch, this.#tokens, keyValueHeads * headDim];
      const none = { shape, data: new Float64Array(shape.reduce((a, b) => a * b)) };
      return this.#lent.get(sharing.from) ?? [none, none];
    }
    const made = make();
    this.#lent.set(name, made);
    return made;
  }

  #tempered({ temperature }: Pick<Attention, 'temperature'>, x: Tensor): Tensor {
    if (!temperature) return x;
    const { tokens, strength, offset } = temperature;
    const width = x.shape.at(-1) ?? 1;
    return each(x, (value, at) => {
      const position = this.#start + (Math.floor(at / width) % this.#tokens);
      return value * (1 + strength * Math.log(1 + Math.floor((position + offset) / tokens)));
    });
  }

  #rotated(layer: Rotary | undefined, x: Tensor): Tensor {
    const { decoding } = this.#parts.options;
    const length = decoding?.totalTokens ?? this.#start + this.#tokens;
    return layer ? rotate(x, layer, this.#start, length) : x;
  }

  /** Computes keys and values from the kept latents. */
  #latentAttention(layer: LatentAttention, u: Tensor): Tensor {
    const { name, heads, latentRank, nopeDim, valueDim, rotary, sharedDim, scale } = layer;
    const moving = sharedDim;
    const width = nopeDim + moving;
    const { made, choice } = this.#latentQueries(layer, u);
    const [still, turning] = splitHeads(made, [nopeDim, moving]);
    const rotatedQueries = joinedHeads(still, this.#rotated(rotary, turning), [nopeDim, moving]);
    const q = this.#tempered(layer, rotatedQueries);
    const [down, sharedKey] = split(this.of(layer.keyValueDown, u), [latentRank, moving]);
    const { latentScale = 1 } = layer;
    const scaled = each(this.of(layer.latentNorm, down), (value) => latentScale * value);
    const latents = this.#withPast(`${name}.latents`, scaled);
    const rotatedKey = this.#withPast(`${name}.keys`, this.#rotated(rotary, sharedKey));
    const [keys, values] = splitHeads(this.of(layer.keyValueUp, latents), [nopeDim, valueDim]);
    const k = joinedHeads(keys, repeated(rotatedKey, heads), [nopeDim, moving]);
    const result = new Float64Array(this.#batch * this.#tokens * heads * valueDim);
    for (let head = 0; head < heads; head++) {
      const columns = { key: width, value: valueDim, heads, head, keyHeads: heads, shared: head };
      const given = { q, k, v: values, scale, softcap: undefined, bonus: () => 0, sink: undefined };
      const seen = choice && { seen: (row: number, t: number) => choice[row]?.[0]?.[t] };
      this.#attendHead({ ...given, ...columns, ...seen }, undefined, result);
    }
    const shape = [this.#batch, this.#tokens, heads * valueDim];
    return this.of(layer.out, { shape, data: result });
  }

  /** Addend of the score of a key, by its row, its place and a key-value head. */
  #gains({ rates, steps, attention }: DynamicMask, values: Tensor) {
    const count = attention.keyValueHeads;
    const keys = values.shape[1] ?? 0;
    const factors = this.#weight(rates);
    const { data } = each(this.of(steps, values), (value, at) =>
      Math.exp((factors[at % count] ?? 0) * softplus(value)),
    );
    return (row: number, s: number, head: number) => data[(row * keys + s) * count + head] ?? 0;
  }

  readonly #choices = new Map<string, Choice>();

  #latentQueries(
    { name, query, selection }: LatentAttention,
    u: Tensor,
  ): { made: Tensor; choice?: Choice | undefined } {
    if (!selection || query.kind === 'linear') return { made: this.of(query, u) };
    const [down, norm, up] = query.layers;
    const latent = this.of(norm, this.of(down, u));
    const made = this.of(up, latent);
    if (!('kind' in selection)) return { made, choice: this.#choices.get(selection.from) };
    const choice = this.#choice(selection, u, latent);
    this.#choices.set(name, choice);
    return { made, choice };
  }

  #choice(layer: Indexer, u: Tensor, latent: Tensor): Choice {
    const isWeighted = layer.kind === 'tokenIndexer';
    const made = this.of(layer.query, isWeighted ? latent : u);
    const queries = isWeighted ? made : this.of(layer.queryNorm, made);
    const keys = this.#rotated(layer.rotary, this.of(layer.keyNorm, this.of(layer.key, u)));
    return chosenKeys(layer, {
      queries: this.#rotated(layer.rotary, queries),
      keys: this.#withPast(`${layer.name}.keys`, keys),
      weights: isWeighted ? this.of(layer.weights, u) : undefined,
    });
  }

  #attendHead(
    attended: Attended,
    window: Window | undefined,
    into: Float64Array,
    gains?: { readonly kept: number; readonly of: (row: number, s: number) => number },
  ): void {
    const { noMask } = this.#parts.faults;
    const past = attended.k.shape[1] ?? 0;
    const offset = past - this.#tokens;
    const first = this.#firstKeys(window);
    for (let row = 0; row < this.#batch; row++) {
      for (let t = 0; t < this.#tokens; t++) {
        const from = noMask ? 0 : Math.max(0, (first[t] ?? 0) - this.#start + offset);
        const to = noMask ? past - 1 : t + offset;
        const query = { ...attended, row, t, from, to, offset };
        if (!gains) {
          attend(query, into);
          continue;
        }
        const visible = Array.from({ length: to - from + 1 }, (_, at) => from + at);
        const byGain = visible.toSorted((a, b) => gains.of(row, b) - gains.of(row, a));
        const kept = new Set(byGain.slice(0, gains.kept));
        // Far below all others, so that its share is 0.
        const bonus = (s: number) => (kept.has(s) ? gains.of(row, s) : -1e4);
        attend({ ...query, bonus }, into);
      }
    }
  }

  #firstKeys(window: Window | undefined): Int32Array {
    const { decoding } = this.#parts.options;
    return decoding
      ? decodingKeys(this.#start, this.#tokens, window, decoding.totalTokens)
      : fullForwardKeys(this.#tokens, window);
  }

  /** Earlier values followed by `tensor`, along the tokens. Keeps both. */
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

function bonusOf(alibi: Alibi | undefined, head: number): (position: number) => number {
  const slope = alibi?.slopes[head] ?? 0;
  const factor = alibi?.bfloat16Factor;
  if (factor === undefined) return (position) => slope * position;
  return (position) => bfloat16(bfloat16(slope) * bfloat16(position)) * factor;
}

/** Eight significant bits, ties to even. */
function bfloat16(value: number): number {
  if (value === 0) return 0;
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - 7);
  const below = Math.floor(value / unit);
  const rest = value / unit - below;
  const up = rest > 0.5 || (rest === 0.5 && below % 2 !== 0);
  return (up ? below + 1 : below) * unit;
}

/** f(gate) · up, within limits if there are any. */
function limitedGate(
  gate: Tensor,
  up: Tensor,
  { activation, limits }: Pick<GatedMlp, 'activation' | 'limits'>,
): Tensor {
  if (!limits) return times(activated(gate, activation), up);
  const { limit, sharpness, raise } = limits;
  const low = each(gate, (value) => sharpness * Math.min(value, limit));
  const near = each(up, (value) => raise + Math.max(-limit, Math.min(limit, value)));
  return times(
    each(activated(low, activation), (value) => value / sharpness),
    near,
  );
}

/** max(x − mean − deviations · deviation, 0) over the last dimension. */
function cutOff(x: Tensor, deviations: number | undefined): Tensor {
  if (deviations === undefined) return x;
  const size = x.shape.at(-1) ?? 1;
  return each(x, (value, at) => {
    const from = at - (at % size);
    const row = x.data.subarray(from, from + size);
    const mean = sumOf(row) / size;
    const variance = sumOf(row.map((one) => (one - mean) ** 2)) / size;
    return Math.max(0, value - mean - deviations * Math.sqrt(variance));
  });
}

/** Products scaled to the root mean square of `like`. */
function scaledLike(products: readonly Tensor[], like: Tensor): Tensor[] {
  const size = like.shape.at(-1) ?? 1;
  const squareAt = ({ data }: Tensor, at: number) => {
    const from = at - (at % size);
    return sumOf(data.subarray(from, from + size).map((value) => value * value)) / size;
  };
  return products.map((x) =>
    each(x, (value, at) => value * Math.sqrt(squareAt(like, at) / Math.max(squareAt(x, at), 1e-5))),
  );
}

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

/** RMS norm of each part of the last dimension with the width of the weight: a head, or all. */
function rmsNorm(x: Tensor, weight: Float64Array | undefined, { eps, offset, size }: RmsNorm) {
  return scaledParts(x, size, eps, (at) => (weight ? offset + (weight[at % size] ?? 0) : 1));
}

function gatedRmsNorm(
  x: Tensor,
  gate: Tensor,
  weight: Float64Array,
  { eps, width, groups, activation, gated }: GatedRmsNorm,
): Tensor {
  const open = activated(gate, activation);
  const input = gated === 'before' ? times(x, open) : x;
  const factor = (at: number) => weight[at % weight.length] ?? 0;
  const normed = scaledParts(input, width / groups, eps, factor);
  return gated === 'after' ? times(normed, open) : normed;
}

/** Each part of `size` values divided by its root mean square, each value times its factor. */
function scaledParts(x: Tensor, size: number, eps: number, factor: (at: number) => number): Tensor {
  let root = 0;
  return each(x, (value, at) => {
    if (at % size === 0) {
      const squares = x.data.subarray(at, at + size).map((each) => each * each);
      root = Math.sqrt(sumOf(squares) / size + eps);
    }
    return (value / root) * factor(at);
  });
}

/** [in, out] as [out, in]. */
function transposed({ weight }: ProjectionLayer, values: Float64Array): Float64Array {
  const [from = 0, to = 0] = weight.shape;
  return values.map((_, at) => values[(at % from) * to + Math.floor(at / from)] ?? 0);
}

/** Normalises every `size` values to mean 0 and variance 1. */
function normalized(x: Tensor, size: number, eps: number): Tensor {
  const result = new Float64Array(x.data.length);
  for (let from = 0; from < result.length; from += size) {
    const row = x.data.subarray(from, from + size);
    const mean = row.reduce((sum, value) => sum + value, 0) / size;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / size;
    for (let i = 0; i < size; i++) {
      result[from + i] = ((row[i] ?? 0) - mean) / Math.sqrt(variance + eps);
    }
  }
  return { shape: x.shape, data: result };
}

const concatenated = (a: Tensor, b: Tensor): Tensor =>
  joinedHeads(a, b, [a.shape.at(-1) ?? 0, b.shape.at(-1) ?? 0]);
