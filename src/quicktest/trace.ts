/**
 * The flow of shapes through a model: what each step does, what comes out of it and what it holds. From the
 * description alone. Shapes: B batch, T tokens, H hidden, D inner.
 */
import {
  ACTIVATIONS,
  type Alignment,
  type Attention,
  type Gate,
  type HeadSpan,
  type HybridBlock,
  type LanguageModel,
  type Layer,
  type Linear,
  type Mamba,
  type Srte,
} from '../architecture/layer.js';
import { projectionLayers, tensorsOf } from '../architecture/walk.js';
import type { Shape } from '../tensor/shape.js';
import type { InputSize } from './ids.js';
import { blocksText, counted, integer } from './wording.js';

export interface TraceStep {
  /** Path of the layer, or what the step is when no layer of its own does it. */
  readonly name: string;
  /** How deep it lies in the model. */
  readonly depth: number;
  readonly operation: string;
  /** Of what comes out. */
  readonly shape: Shape;
  /** That it holds; each tensor is told once, where it is first used. */
  readonly parameters: number;
}

/** Every step of a forward pass. Blocks that are alike are told once. */
export function traceOf(model: LanguageModel, setting: InputSize): TraceStep[] {
  return new Tracer(setting).model(model);
}

/** What a step says, apart from how deep it lies. */
type Said = Omit<TraceStep, 'depth'>;

/** A block, and those after it that are like it. */
interface Group {
  /** Its steps, without its name. */
  readonly form: string;
  readonly first: { readonly name: string; readonly steps: readonly Said[] };
  readonly others: Pick<Said, 'name' | 'parameters'>[];
}

class Tracer {
  readonly #lead: Shape;
  readonly #tokens: number;
  readonly #batch: number;
  /** Tensors that have been told of. */
  readonly #told = new Set<unknown>();

  constructor({ batch, tokens }: InputSize) {
    this.#batch = batch;
    this.#tokens = tokens;
    this.#lead = [batch, tokens];
  }

  model(model: LanguageModel): TraceStep[] {
    const hidden = model.norm.weight.elements;
    const top = (layers: readonly Layer[]) => layers.flatMap((layer) => this.#steps(layer, hidden));
    return [
      at(0, { name: 'ids', operation: 'token ids', shape: this.#lead, parameters: 0 }),
      ...atDepth(0, top([model.embedding, ...model.shared])),
      ...this.#blocks(model, hidden),
      ...atDepth(0, top([model.norm, model.head])),
    ];
  }

  /** The first of blocks that differ in nothing but their names is told in full. */
  #blocks(model: LanguageModel, hidden: number): TraceStep[] {
    const shape = [...this.#lead, hidden];
    const groups: Group[] = [];
    for (const block of model.blocks) {
      const steps = this.#steps(block, hidden);
      const form = JSON.stringify(steps).replaceAll(`"${block.name}.`, '".');
      const last = groups.at(-1);
      if (last?.form === form) last.others.push({ name: block.name, parameters: sumOf(steps) });
      else groups.push({ form, first: { name: block.name, steps }, others: [] });
    }
    return groups.flatMap(({ first, others }) => [
      at(0, { name: first.name, operation: 'block', shape, parameters: 0 }),
      ...atDepth(1, first.steps),
      ...(others.length > 0 ? [at(0, { ...likeFirst(first.name, others), shape })] : []),
    ]);
  }

  /** The steps of a layer that is given a value of `size` for each token. */
  #steps(layer: Layer, size: number): Said[] {
    switch (layer.kind) {
      case 'languageModel':
        return this.model(layer);
      case 'hybridBlock':
        return this.#hybridBlock(layer, size);
      case 'sequence':
        return layer.layers.flatMap((each) => this.#steps(each, innerOf(layer.layers, size)));
      case 'embedding':
        return [
          this.#step(layer, `row of each id, of ${integer(layer.weight.shape[0] ?? 0)}`, size),
        ];
      case 'linear':
        return [this.#linear(layer)];
      case 'layerNorm':
        return [this.#step(layer, `LayerNorm, eps ${layer.eps}`, size)];
      case 'activation':
        return [this.#step(layer, ACTIVATIONS[layer.fn], size)];
      case 'transposedLinear':
      case 'fusedProjection':
      case 'rmsNorm':
      case 'scale':
      case 'softcap':
      case 'learnedPositions':
      case 'residual':
      case 'gatedMlp':
      case 'router':
      case 'packedExperts':
      case 'mixtureOfExperts':
      case 'alibi':
      case 'latentAttention':
        throw new Error(`${layer.kind} is not supported yet`);
      case 'causalConv':
        return [this.#step(layer, `causal convolution, ${layer.weight.shape[2]} wide; SiLU`, size)];
      case 'mamba':
        return this.#mamba(layer);
      case 'rotary':
        return [
          this.#step(layer, `q and k rotated by position, base ${integer(layer.base)}`, size),
        ];
      case 'attention':
        return this.#attention(layer);
      case 'srteTable':
      case 'srteLowRank':
      case 'srteSincos':
        return [this.#srte(layer, size)];
      case 'alignment':
        return this.#alignment(layer, size);
      case 'gate':
        return this.#gate(layer);
    }
  }

  #step(layer: Layer, operation: string, ...sizes: readonly number[]): Said {
    return {
      name: layer.name,
      operation,
      shape: [...this.#lead, ...sizes],
      parameters: this.#parametersOf(layer),
    };
  }

  /** Something that no layer does by itself. */
  #between(name: string, operation: string, ...sizes: readonly number[]): Said {
    return { name, operation, shape: [...this.#lead, ...sizes], parameters: 0 };
  }

  /** Of tensors that no step before has told of. */
  #parametersOf(layer: Layer): number {
    const fresh = tensorsOf(layer).filter((tensor) => !this.#told.has(tensor));
    for (const tensor of fresh) this.#told.add(tensor);
    return fresh.reduce(
      (sum, { role, elements }) => sum + (role === 'parameter' ? elements : 0),
      0,
    );
  }

  #linear(layer: Linear): Said {
    const [to = 0, from = 0] = layer.weight.shape;
    const again = this.#told.has(layer.weight) ? `, with ${layer.weight.name}` : '';
    const bias = layer.bias ? ' + bias' : '';
    return this.#step(layer, `linear ${integer(from)} → ${integer(to)}${bias}${again}`, to);
  }

  #srte(layer: Srte, size: number): Said {
    const known = tensorsOf(layer).every((tensor) => this.#told.has(tensor));
    const rows = `rows 0 to ${this.#tokens - 1}`;
    const operation = known ? `${rows} again` : `${rows}: ${srteText(layer)}`;
    return { ...this.#step(layer, operation), shape: [1, this.#tokens, size] };
  }

  #hybridBlock(block: HybridBlock, size: number): Said[] {
    const { name } = block;
    return [
      ...this.#steps(block.inputNorm, size),
      ...this.#steps(block.srte, size),
      this.#between(`${name}.mamba`, 'ln_input + SRTE', size),
      ...this.#steps(block.mamba, size),
      ...this.#steps(block.attention, size),
      ...(block.alignment
        ? this.#steps(block.alignment, size)
        : [this.#between(`${name}.mean`, 'mean of Mamba and attention', size)]),
      ...this.#steps(block.gate, size),
      this.#between(`${name}.fused`, 'gate · Mamba + (1 − gate) · attention', size),
      ...this.#steps(block.fusion, size),
      ...this.#steps(block.mlp, size),
      this.#between(`${name}.sum`, 'block input + fusion_proj + small_mlp', size),
      ...this.#steps(block.outputNorm, size),
    ];
  }

  #mamba(layer: Mamba): Said[] {
    const { name, innerSize: inner, stateSize: state, stepRank } = layer;
    const own = [layer.stateLog, layer.skip].filter((tensor) => !this.#told.has(tensor));
    for (const tensor of own) this.#told.add(tensor);
    const scan = this.#between(
      `${name}.scan`,
      `h = h · exp(Δ · A) + Δ · B · x; y = C · h + D · x, state [${this.#batch}, ${inner}, ${state}]`,
      inner,
    );
    return [
      this.#linear(layer.inProj),
      this.#between(`${name}.split`, `x and residual, ${integer(inner)} each`, inner),
      ...this.#steps(layer.conv, inner),
      this.#linear(layer.xProj),
      this.#between(`${name}.split`, `step ${stepRank}, B ${state}, C ${state}`, stepRank),
      this.#linear(layer.dtProj),
      this.#between(`${name}.step`, 'Δ = softplus(dt_proj + its bias again)', inner),
      { ...scan, parameters: own.reduce((sum, { elements }) => sum + elements, 0) },
      this.#between(`${name}.gated`, 'y · SiLU(residual)', inner),
      this.#linear(layer.outProj),
    ];
  }

  #attention(layer: Attention): Said[] {
    const { name, heads, headDim, spans } = layer;
    const perHead = (operation: string, last: number): Said => ({
      ...this.#between(`${name}.heads`, operation),
      shape: [this.#batch, heads, this.#tokens, last],
    });
    return [
      ...projectionLayers(layer.inputs).flatMap((each) => this.#steps(each, 0)),
      { ...perHead(`q and k rotated by position`, headDim), name: layer.rotary?.name ?? name },
      perHead(
        `softmax(q · kᵀ / √${headDim}): ${spans.filter(hasHeads).map(spanText).join(', ')}`,
        this.#tokens,
      ),
      perHead('· v', headDim),
      ...this.#steps(layer.out, 0),
    ];
  }

  #alignment({ name, net, residual }: Alignment, size: number): Said[] {
    return [
      this.#between(`${name}.concat`, 'Mamba, attention', 2 * size),
      ...this.#steps(net, size),
      this.#linear(residual),
      this.#between(`${name}.sum`, 'net + residual_proj', size),
    ];
  }

  #gate({ name, up, down }: Gate): Said[] {
    const [rank = 0, size = 0] = up.weight.shape;
    return [
      this.#linear(up),
      this.#between(`${name}.tanh`, 'tanh', rank),
      this.#linear(down),
      this.#between(`${name}.sigmoid`, 'sigmoid', size),
    ];
  }
}

const sumOf = (steps: readonly Said[]) => steps.reduce((sum, each) => sum + each.parameters, 0);

function likeFirst(first: string, others: readonly Pick<Said, 'name' | 'parameters'>[]) {
  return {
    name: blocksText(others.map(({ name }) => name)),
    operation: `${counted(others.length, 'more block')} like ${first}`,
    parameters: others.reduce((sum, { parameters }) => sum + parameters, 0),
  };
}

function srteText(srte: Srte): string {
  switch (srte.kind) {
    case 'srteTable':
      return `a table of ${integer(srte.table.shape[1] ?? 0)}`;
    case 'srteLowRank':
      return `${integer(srte.lowRank.shape[1] ?? 0)} rows of rank ${srte.lowRank.shape[2]} · projection`;
    case 'srteSincos':
      return 'sines and cosines';
  }
}

const at = (depth: number, said: Said): TraceStep => ({ ...said, depth });
const atDepth = (depth: number, said: readonly Said[]) => said.map((each) => at(depth, each));

/** What GELU is given: the output of the linear layer before it. */
const innerOf = (layers: readonly Layer[], size: number): number => {
  const [first] = layers;
  return first?.kind === 'linear' ? (first.weight.shape[0] ?? size) : size;
};

const hasHeads = ({ heads }: HeadSpan) => heads > 0;
const spanText = ({ heads, window }: HeadSpan) =>
  `${counted(heads, 'head')} ${window === undefined ? 'global' : `${window.rule} (${integer(window.tokens)})`}`;
