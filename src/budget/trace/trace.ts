/**
 * Flow of shapes through a model, from its description alone: each step's operation, output and parameters.
 * Shapes: B batch, T tokens, H hidden, D inner.
 */

import type {
  Alignment,
  Attention,
  FusedProjection,
  Gate,
  GatedDelta,
  GatedMlp,
  GatedRmsNorm,
  HeadNorms,
  HeadSpan,
  HybridBlock,
  LanguageModel,
  LatentAttention,
  Layer,
  LayerNorm,
  Mamba,
  MixtureOfExperts,
  NormLayer,
  ProjectionLayer,
  Residual,
  RmsNorm,
  Rotary,
  Router,
  Srte,
  StateSpaceDual,
  Sum,
  Temperature,
} from '../../architecture/layer.js';
import { ACTIVATIONS } from '../../architecture/layer.js';
import {
  expertActivation,
  expertInner,
  expertLayers,
  expertWidth,
  inputWidth,
  outputWidth,
  projectionLayers,
  tensorsOf,
} from '../../architecture/walk.js';
import { widthAfter } from '../../operations/lower.js';
import type { Shape } from '../../tensor/dtype.js';
import { formatInteger } from '../../text/units.js';
import { blocksText, counted } from '../../text/words.js';

/** Sequences, and tokens per sequence. */
interface TokenGrid {
  readonly batch: number;
  readonly tokens: number;
}

export interface TraceStep {
  /** Path of the layer, or a description for a step without its own layer. */
  readonly name: string;
  /** Nesting depth in the model. */
  readonly depth: number;
  readonly operation: string;
  /** Output shape. */
  readonly shape: Shape;
  /** Parameters of the step; each tensor is counted where it is first used. */
  readonly parameters: number;
}

/** Every step of a forward pass. Equal blocks are listed once. */
export function traceOf(model: LanguageModel, setting: TokenGrid): TraceStep[] {
  return new Tracer(setting).model(model);
}

/** A step without its depth. */
type UnplacedStep = Omit<TraceStep, 'depth'>;

/** A block equal to a listed one. */
interface Repeated {
  readonly name: string;
  readonly like: string;
  readonly parameters: number;
}

class Tracer {
  readonly #lead: Shape;
  readonly #tokens: number;
  readonly #batch: number;
  /** Tensors already counted. */
  readonly #listed = new Set<unknown>();

  constructor({ batch, tokens }: TokenGrid) {
    this.#batch = batch;
    this.#tokens = tokens;
    this.#lead = [batch, tokens];
  }

  model(model: LanguageModel): TraceStep[] {
    const hidden = model.hidden;
    const top = (layers: readonly Layer[]) => layers.flatMap((layer) => this.#steps(layer, hidden));
    return [
      at(0, { name: 'ids', operation: 'token ids', shape: this.#lead, parameters: 0 }),
      ...atDepth(0, top([model.embedding, ...model.embeddingSteps, ...model.shared])),
      ...this.#blocks(model, hidden),
      ...atDepth(0, this.#inTurn([model.norm, model.head, ...model.logitSteps], hidden)),
    ];
  }

  /** Lists in full only the first of blocks that differ in nothing but names. */
  #blocks(model: LanguageModel, hidden: number): TraceStep[] {
    const shape = [...this.#lead, hidden];
    const known = new Map<string, string>();
    const allSteps: TraceStep[] = [];
    let more: Repeated[] = [];
    const addRepeated = () => {
      if (more.length > 0) allSteps.push(at(0, { ...likeOthers(more), shape }));
      more = [];
    };
    for (const block of model.blocks) {
      const { name } = block;
      const steps = this.#steps(block, hidden);
      const form = JSON.stringify(steps)
        .replaceAll(`"${name}.`, '".')
        .replaceAll(`"${name}"`, '""');
      const like = known.get(form);
      if (like !== undefined) {
        more.push({ name, like, parameters: sumOf(steps) });
        continue;
      }
      known.set(form, name);
      addRepeated();
      allSteps.push(
        at(0, { name, operation: 'block', shape, parameters: 0 }),
        ...atDepth(1, steps),
      );
    }
    addRepeated();
    return allSteps;
  }

  /** Steps of a layer whose input has `size` values per token. */
  #steps(layer: Layer, size: number): UnplacedStep[] {
    switch (layer.kind) {
      case 'languageModel':
        return this.model(layer);
      case 'hybridBlock':
        return this.#hybridBlock(layer, size);
      case 'sequence':
        return this.#inTurn(layer.layers, size);
      case 'embedding':
        return [
          this.#step(
            layer,
            `row of each id, of ${formatInteger(layer.weight.shape[0] ?? 0)}`,
            size,
          ),
        ];
      case 'linear':
      case 'transposedLinear':
        return [this.#linear(layer)];
      case 'fusedProjection':
        return this.#fused(layer);
      case 'layerNorm':
        return [this.#step(layer, layerNormText(layer), size)];
      case 'headNorms':
        return [this.#headNorms(layer, size)];
      case 'sum':
        return this.#branches(layer, size, '');
      case 'activation':
        return [this.#step(layer, ACTIVATIONS[layer.fn], size)];
      case 'rmsNorm':
        return [this.#step(layer, rmsText(layer), size)];
      case 'gatedRmsNorm':
        return [this.#step(layer, gatedNormText(layer), size)];
      case 'scale':
        return [this.#step(layer, `· ${layer.factor}`, size)];
      case 'altUpSplit':
      case 'altUpMerge': {
        const [first] = layer.projections;
        const hidden = first ? inputWidth(first) : size;
        const streams = layer.projections.length + 1;
        const isSplit = layer.kind === 'altUpSplit';
        return [
          ...layer.projections.map((each) => this.#linear(each)),
          this.#between(
            `${layer.name}.scaled`,
            isSplit
              ? `${streams} streams: the value and its products, all of the same size`
              : `mean of ${streams} streams of the same size`,
            isSplit ? streams * hidden : hidden,
          ),
        ];
      }
      case 'altUpBlock': {
        const { name, router, prediction, correction, active } = layer;
        const hidden = inputWidth(router);
        const all = inputWidth(correction) * hidden;
        return [
          ...this.#steps(layer.routerNorm, hidden),
          this.#linear(router),
          this.#linear(prediction),
          this.#between(`${name}.predicted`, 'each stream + a mix of all', all),
          ...this.#steps(layer.inner, hidden),
          this.#linear(correction),
          this.#between(
            `${name}.corrected`,
            `each stream + (1 + coefficient) · change of stream ${active}`,
            all,
          ),
          ...this.#steps(layer.perLayer, hidden),
          {
            ...this.#between(`${name}.sum`, 'added to all streams but the first', all),
            parameters: layer.outputScale.elements,
          },
        ];
      }
      case 'weightedScale':
        return [this.#step(layer, '· weight', size)];
      case 'perLayerInputs': {
        const { layers, width } = layer;
        const operation = `${formatInteger(width)} values for each of ${formatInteger(layers)} layers: a row of each id + norm(product of the embedding)`;
        return [this.#step(layer, operation, layers, width)];
      }
      case 'perLayerBranch':
        return [
          this.#linear(layer.gate),
          this.#between(
            `${layer.name}.gated`,
            `f(gate) · values of this layer, f = ${ACTIVATIONS[layer.activation]}`,
            layer.inputs.width,
          ),
          this.#linear(layer.projection),
        ];
      case 'softcap':
        return [this.#step(layer, `${layer.cap} · tanh(x / ${layer.cap})`, size)];
      case 'embeddingJoin':
        return [
          this.#between(
            layer.name,
            'the input and the embedding, side by side',
            widthAfter(layer, size),
          ),
        ];
      case 'learnedPositions': {
        const rows = formatInteger(layer.weight.shape[0] ?? 0);
        return [this.#step(layer, `+ row of each position, of ${rows}`, size)];
      }
      case 'residual':
        return this.#branches(layer, size, 'input + ');
      case 'gatedMlp':
        return this.#gatedMlp(layer);
      case 'router':
        return this.#router(layer);
      case 'packedExperts':
      case 'clampedExperts':
        return [this.#step(layer, 'experts', size)];
      case 'mixtureOfExperts':
        return this.#mixture(layer, size);
      case 'alibi':
        return [this.#step(layer, ALIBI, size)];
      case 'latentAttention':
        return this.#latentAttention(layer, size);
      case 'causalConv':
        return [this.#step(layer, `causal convolution, ${layer.weight.shape[2]} wide; SiLU`, size)];
      case 'mamba':
        return this.#mamba(layer);
      case 'stateSpaceDual':
        return this.#stateSpaceDual(layer);
      case 'gatedDelta':
        return this.#gatedDelta(layer);
      case 'gatedConv':
        return [
          this.#linear(layer.inProj),
          this.#between(`${layer.name}.gated`, 'B · x', size),
          this.#step(layer.conv, `causal convolution, ${layer.conv.weight.shape[2]} wide`, size),
          this.#between(`${layer.name}.mixed`, 'C · convolution', size),
          this.#linear(layer.outProj),
        ];
      case 'rotary':
        return [this.#step(layer, rotaryText(layer), size)];
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

  #step(layer: Layer, operation: string, ...sizes: readonly number[]): UnplacedStep {
    return {
      name: layer.name,
      operation,
      shape: [...this.#lead, ...sizes],
      parameters: this.#parametersOf(layer),
    };
  }

  /** A step without its own layer. */
  #between(name: string, operation: string, ...sizes: readonly number[]): UnplacedStep {
    return { name, operation, shape: [...this.#lead, ...sizes], parameters: 0 };
  }

  /** Parameters of tensors not counted in an earlier step. */
  #parametersOf(layer: Layer): number {
    const fresh = tensorsOf(layer).filter((tensor) => !this.#listed.has(tensor));
    for (const tensor of fresh) this.#listed.add(tensor);
    return fresh.reduce(
      (sum, { role, elements }) => sum + (role === 'parameter' ? elements : 0),
      0,
    );
  }

  /** Layers applied in order. */
  #inTurn(layers: readonly Layer[], size: number): UnplacedStep[] {
    let width = size;
    return layers.flatMap((layer) => {
      const steps = this.#steps(layer, width);
      width = widthAfter(layer, width);
      return steps;
    });
  }

  #linear(layer: ProjectionLayer): UnplacedStep {
    const [from, to] = [inputWidth(layer), outputWidth(layer)];
    const again = this.#listed.has(layer.weight) ? `, with ${layer.weight.name}` : '';
    const bias = layer.bias ? ' + bias' : '';
    const stored = layer.kind === 'transposedLinear' ? ', stored [in, out]' : '';
    return this.#step(
      layer,
      `linear ${formatInteger(from)} → ${formatInteger(to)}${bias}${stored}${again}`,
      to,
    );
  }

  #fused({ name, projection, widths, groups }: FusedProjection): UnplacedStep[] {
    const parts = widths.map(formatInteger).join(', ');
    const interleaved = groups > 1 ? `, of each of ${formatInteger(groups)} groups its part` : '';
    return [
      ...this.#steps(projection, 0),
      this.#between(name, `cut into ${parts}${interleaved}`, ...new Set(widths)),
    ];
  }

  /** One step: the norms differ in nothing but their weights. */
  #headNorms(layer: HeadNorms, ...sizes: readonly number[]): UnplacedStep {
    const [first] = layer.norms;
    return this.#step(layer, `${first ? normText(first) : ''}, another for each head`, ...sizes);
  }

  #branches(layer: Residual | Sum, size: number, input: string): UnplacedStep[] {
    const { branches } = layer;
    const leaves = branches.map((branch) => branch.name.slice(branch.name.lastIndexOf('.') + 1));
    const width = branches[0] ? widthAfter(branches[0], size) : size;
    return [
      ...branches.flatMap((branch) => this.#steps(branch, size)),
      // What is stored and not read counts here.
      this.#step(layer, `${input}${leaves.join(' + ')}`, width),
    ];
  }

  #gatedMlp({ name, inputs, activation, down, ...rest }: GatedMlp): UnplacedStep[] {
    const { gateScale, cutoffDeviations: deviations } = rest;
    const scaled = gateScale === undefined ? 'gate' : `${gateScale} · gate`;
    const gate =
      deviations === undefined
        ? scaled
        : `max(${scaled} − mean − ${deviations.toFixed(3)} · deviation, 0)`;
    return [
      ...projectionLayers(inputs).flatMap((each) => this.#steps(each, 0)),
      this.#between(
        `${name}.gated`,
        `f(${gate}) · up, f = ${ACTIVATIONS[activation]}`,
        inputWidth(down),
      ),
      this.#linear(down),
    ];
  }

  #router(layer: Router): UnplacedStep[] {
    const { expertsPerToken, groups, scoring, nearness, renormalised, scale } = layer;
    const [experts = 0, size = 0] = layer.weight.shape;
    const operation = [
      `${scoring} of ${counted(experts, 'score')}${nearness === undefined ? '' : `, within ${nearness} of the best`}`,
      ...(groups ? [`${groups.kept} of ${groups.count} groups`] : []),
      `the best ${expertsPerToken}`,
      ...(renormalised ? ['divided by their sum'] : []),
      ...(scale === 1 ? [] : [`· ${scale}`]),
      ...(layer.expertScales ? ['· the factor of each'] : []),
    ];
    return [
      ...(layer.steps ?? []).flatMap((each) => this.#steps(each, size)),
      this.#step(layer, operation.join('; '), expertsPerToken),
    ];
  }

  /** Experts are equal, so one step covers all. */
  #mixture(layer: MixtureOfExperts, size: number): UnplacedStep[] {
    const { name, router, experts, shared, sharedGate } = layer;
    const all = expertLayers(experts);
    const [fn] = all.map(expertActivation);
    const width = expertWidth(layer);
    const widths = [width, expertInner(layer), width].map(formatInteger).join(' → ');
    const routed: UnplacedStep = {
      name: 'kind' in experts ? experts.name : blocksText(all.map((each) => each.name)),
      operation: `${router.expertsPerToken} of ${formatInteger(router.weight.shape[0] ?? 0)} experts ${widths}, f = ${fn ? ACTIVATIONS[fn] : 'none'}`,
      shape: [...this.#lead, router.expertsPerToken, width],
      parameters: all.reduce((sum, each) => sum + this.#parametersOf(each), 0),
    };
    const gate = sharedGate ? [this.#linear(sharedGate)] : [];
    const others = shared.length === 0 ? '' : sharedGate ? ' + σ(gate) · shared' : ' + shared';
    return [
      ...this.#router(router),
      ...(layer.expertNorm ? this.#steps(layer.expertNorm, size) : []),
      ...layer.latent.slice(0, 1).map((into) => this.#linear(into)),
      routed,
      ...layer.latent.slice(1).map((outOf) => this.#linear(outOf)),
      ...shared.flatMap((each) => this.#steps(each, size)),
      ...gate,
      this.#between(
        `${name}.sum`,
        layer.weighsInputs
          ? `experts, with their inputs by their weights${others}`
          : `experts by their weights${others}`,
        size,
      ),
    ];
  }

  #srte(layer: Srte, size: number): UnplacedStep {
    const known = tensorsOf(layer).every((tensor) => this.#listed.has(tensor));
    const rows = `rows 0 to ${this.#tokens - 1}`;
    const operation = known ? `${rows} again` : `${rows}: ${srteText(layer)}`;
    return { ...this.#step(layer, operation), shape: [1, this.#tokens, size] };
  }

  #hybridBlock(block: HybridBlock, size: number): UnplacedStep[] {
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

  #mamba(layer: Mamba): UnplacedStep[] {
    const { name, innerSize: inner, stateSize: state, stepRank } = layer;
    const own = [layer.stateLog, layer.skip].filter((tensor) => !this.#listed.has(tensor));
    for (const tensor of own) this.#listed.add(tensor);
    const scan = this.#between(
      `${name}.scan`,
      `h = h · exp(Δ · A) + Δ · B · x; y = C · h + D · x, state [${this.#batch}, ${inner}, ${state}]`,
      inner,
    );
    return [
      this.#linear(layer.inProj),
      this.#between(`${name}.split`, `x and residual, ${formatInteger(inner)} each`, inner),
      ...this.#steps(layer.conv, inner),
      this.#linear(layer.xProj),
      this.#between(`${name}.split`, `step ${stepRank}, B ${state}, C ${state}`, stepRank),
      ...layer.innerNorms.map((norm) => this.#step(norm, rmsText(norm), norm.size)),
      ...(layer.innerNormEps === undefined
        ? []
        : [
            this.#between(
              `${name}.norms`,
              `RMSNorm without weights of step, B and C, eps ${layer.innerNormEps}`,
              stepRank,
            ),
          ]),
      this.#linear(layer.dtProj),
      this.#between(
        `${name}.step`,
        layer.doubledStepBias ? 'Δ = softplus(dt_proj + its bias again)' : 'Δ = softplus(dt_proj)',
        inner,
      ),
      { ...scan, parameters: own.reduce((sum, { elements }) => sum + elements, 0) },
      this.#between(`${name}.gated`, 'y · SiLU(residual)', inner),
      this.#linear(layer.outProj),
    ];
  }

  #stateSpaceDual(layer: StateSpaceDual): UnplacedStep[] {
    const { name, heads, headDim, stateSize: state, groups, norm, activation } = layer;
    const [least, most] = layer.stepLimits;
    const inner = heads * headDim;
    const own = [layer.stepBias, layer.stateLog, layer.skip].filter(
      (tensor) => !this.#listed.has(tensor),
    );
    for (const tensor of own) this.#listed.add(tensor);
    const shared = `${groups} × ${state}`;
    const limits = least > 0 || most < Infinity ? `, from ${least} to ${most}` : '';
    const f = ACTIVATIONS[activation];
    return [
      this.#linear(layer.inProj),
      this.#between(
        `${name}.split`,
        `gate and x ${formatInteger(inner)}, B and C ${shared}, a step for each of ${counted(heads, 'head')}` +
          (layer.inputScales ? `, · ${layer.inputScales.join(', ')}` : ''),
        inner,
      ),
      this.#step(
        layer.conv,
        `causal convolution of x, B and C, ${layer.conv.weight.shape[2]} wide; ${f}`,
        inner + 2 * groups * state,
      ),
      this.#between(`${name}.step`, `Δ = softplus(step + dt_bias)${limits}`, heads),
      {
        ...this.#between(
          `${name}.scan`,
          `h = h · exp(Δ · A) + Δ · B ⊗ x; y = C · h + D · x, state [${this.#batch}, ${heads}, ${headDim}, ${state}]`,
          inner,
        ),
        parameters: own.reduce((sum, { elements }) => sum + elements, 0),
      },
      ...(norm
        ? this.#steps(norm, inner)
        : [this.#between(`${name}.gated`, 'y · SiLU(gate)', inner)]),
      this.#linear(layer.outProj),
    ];
  }

  #gatedDelta(layer: GatedDelta): UnplacedStep[] {
    const { name, inputs, convs, norm, outProj, keyHeads, keyDim, valueHeads, valueDim } = layer;
    const own = [layer.stepBias, layer.stateLog].filter((tensor) => !this.#listed.has(tensor));
    for (const tensor of own) this.#listed.add(tensor);
    const inner = valueHeads * valueDim;
    const scan = this.#between(
      `${name}.scan`,
      `S = a · S; S = S + k ⊗ β · (v − k · S); y = q · S, state [${this.#batch}, ${valueHeads}, ${keyDim}, ${valueDim}]`,
      inner,
    );
    return [
      ...inputs.flatMap((each) => this.#steps(each, 0)),
      ...convs.map((conv) =>
        this.#step(
          conv,
          `causal convolution, ${conv.weight.shape[2]} wide; ${ACTIVATIONS[layer.activation]}`,
          conv.weight.shape[0] ?? 0,
        ),
      ),
      this.#between(
        `${name}.lengths`,
        `q and k of ${counted(keyHeads, 'head')} divided by their length, q by √${keyDim}`,
        keyHeads * keyDim,
      ),
      { ...scan, parameters: own.reduce((sum, { elements }) => sum + elements, 0) },
      ...this.#steps(norm, inner),
      this.#linear(outProj),
    ];
  }

  #attention(layer: Attention): UnplacedStep[] {
    const { name, heads, keyValueHeads, headDim, spans, rotary, clip } = layer;
    const perHead = (operation: string, last: number, of = heads): UnplacedStep => ({
      ...this.#between(`${name}.heads`, operation),
      shape: [this.#batch, of, this.#tokens, last],
    });
    const norms = [
      ...this.#headNorm(layer.queryNorm, heads, headDim),
      ...this.#headNorm(layer.keyNorm, keyValueHeads, headDim),
      ...this.#headNorm(layer.valueNorm, keyValueHeads, headDim),
    ];
    const rotated = rotary ? [{ ...perHead(rotaryText(rotary), headDim), name: rotary.name }] : [];
    const isGrouped = keyValueHeads < heads;
    const grouped = isGrouped ? `; k and v of ${counted(keyValueHeads, 'head')}` : '';
    const repeats = heads / keyValueHeads;
    return [
      ...projectionLayers(layer.inputs).flatMap((each) => this.#steps(each, 0)),
      ...(typeof layer.sharing === 'object'
        ? [
            this.#between(
              `${name}.shared`,
              `keys and values of ${layer.sharing.from}`,
              keyValueHeads * headDim,
            ),
          ]
        : []),
      ...(layer.valuesAreKeys
        ? [this.#between(`${name}.values`, 'v = k', keyValueHeads * headDim)]
        : []),
      ...(layer.normsAfterRotation ? rotated : norms),
      ...(clip === undefined
        ? []
        : [this.#between(`${name}.clipped`, `q, k and v cut to ±${clip}`, heads * headDim)]),
      ...(layer.normsAfterRotation ? norms : rotated),
      ...(layer.temperature
        ? [
            this.#between(
              `${name}.temperature`,
              temperatureText(layer.temperature),
              heads * headDim,
            ),
          ]
        : []),
      ...(isGrouped
        ? [
            perHead(`k and v, ${counted(keyValueHeads, 'head')}`, headDim, keyValueHeads),
            perHead(
              `k and v repeated ${repeats} ×: query head j reads head ⌊j / ${repeats}⌋`,
              headDim,
            ),
          ]
        : []),
      perHead(
        `${scoresText(layer)}: ${spans.filter(hasHeads).map(spanText).join(', ')}${grouped}`,
        this.#tokens,
      ),
      perHead('· v', headDim),
      ...(layer.gate
        ? [
            this.#between(
              `${name}.gated`,
              `f(gate) · heads, f = ${ACTIVATIONS[layer.gate]}`,
              heads * headDim,
            ),
          ]
        : []),
      ...this.#steps(layer.out, 0),
    ];
  }

  /** Over each head, or over all of them, depending on the size of its weight. */
  #headNorm(norm: Attention['queryNorm'], heads: number, headDim: number): UnplacedStep[] {
    if (!norm) return [];
    if (norm.kind === 'headNorms') return [this.#headNorms(norm, heads, headDim)];
    const { size } = norm;
    const shape = size === headDim ? [heads, headDim] : [heads * headDim];
    return [this.#step(norm, normText(norm), ...shape)];
  }

  #latentAttention(layer: LatentAttention, size: number): UnplacedStep[] {
    const { name, heads, latentRank, nopeDim, valueDim, rotary, scale } = layer;
    const headDim = nopeDim + rotary.headDim;
    const perHead = (operation: string, last: number): UnplacedStep => ({
      ...this.#between(`${name}.heads`, operation),
      shape: [this.#batch, heads, this.#tokens, last],
    });
    return [
      ...this.#steps(layer.query, size),
      this.#linear(layer.keyValueDown),
      this.#between(
        `${name}.latent`,
        `latent ${formatInteger(latentRank)}, and a key of ${formatInteger(rotary.headDim)} for all heads`,
        latentRank,
      ),
      this.#step(layer.latentNorm, rmsText(layer.latentNorm), latentRank),
      this.#linear(layer.keyValueUp),
      {
        ...perHead(
          `the last ${formatInteger(rotary.headDim)} of q and k rotated by position`,
          headDim,
        ),
        name: rotary.name,
      },
      ...(layer.temperature
        ? [
            this.#between(
              `${name}.temperature`,
              temperatureText(layer.temperature),
              heads * headDim,
            ),
          ]
        : []),
      perHead(
        `softmax(${productText(scale, headDim)}): ${counted(heads, 'head')} global`,
        this.#tokens,
      ),
      perHead('· v', valueDim),
      this.#linear(layer.out),
    ];
  }

  #alignment({ name, net, residual }: Alignment, size: number): UnplacedStep[] {
    return [
      this.#between(`${name}.concat`, 'Mamba, attention', 2 * size),
      ...this.#steps(net, size),
      this.#linear(residual),
      this.#between(`${name}.sum`, 'net + residual_proj', size),
    ];
  }

  #gate({ name, up, down }: Gate): UnplacedStep[] {
    const [rank = 0, size = 0] = up.weight.shape;
    return [
      this.#linear(up),
      this.#between(`${name}.tanh`, 'tanh', rank),
      this.#linear(down),
      this.#between(`${name}.sigmoid`, 'sigmoid', size),
    ];
  }
}

const sumOf = (steps: readonly UnplacedStep[]) =>
  steps.reduce((sum, each) => sum + each.parameters, 0);

function likeOthers(blocks: readonly Repeated[]) {
  const models = [...new Set(blocks.map(({ like }) => like))];
  const like =
    models.length > 1 ? `, each like one of ${blocksText(models)}` : ` like ${models[0]}`;
  return {
    name: blocksText(blocks.map(({ name }) => name)),
    operation: `${counted(blocks.length, 'more block')}${like}`,
    parameters: blocks.reduce((sum, { parameters }) => sum + parameters, 0),
  };
}

function srteText(srte: Srte): string {
  switch (srte.kind) {
    case 'srteTable':
      return `a table of ${formatInteger(srte.table.shape[1] ?? 0)}`;
    case 'srteLowRank':
      return `${formatInteger(srte.lowRank.shape[1] ?? 0)} rows of rank ${srte.lowRank.shape[2]} · projection`;
    case 'srteSincos':
      return 'sines and cosines';
  }
}

const at = (depth: number, said: UnplacedStep): TraceStep => ({ ...said, depth });
const atDepth = (depth: number, said: readonly UnplacedStep[]) =>
  said.map((each) => at(depth, each));

const ALIBI = 'a penalty on every score: slope · distance, a slope for each head';

const rmsText = ({ eps, offset, weight }: RmsNorm) =>
  `RMSNorm, eps ${eps}${offset === 0 ? '' : `, weight + ${offset}`}${weight ? '' : ', no weight'}`;

const gatedNormText = ({ eps, groups, gated, activation }: GatedRmsNorm) => {
  const norm = `RMSNorm, eps ${eps}${groups === 1 ? '' : `, of each of ${groups} groups`}`;
  const gate = `f(gate), f = ${ACTIVATIONS[activation]}`;
  return gated === 'before' ? `x · ${gate}; ${norm}` : `${norm}; · ${gate}`;
};
const layerNormText = ({ eps, offset, weight, bias }: LayerNorm) =>
  `LayerNorm, eps ${eps}${offset === 0 ? '' : `, weight + ${offset}`}` +
  (bias ? '' : weight ? ', no bias' : ', no weight or bias');

const normText = (norm: NormLayer) =>
  norm.kind === 'rmsNorm' ? rmsText(norm) : layerNormText(norm);

const rotaryText = ({ base, headDim, rotatedDim, scaling }: Rotary) =>
  `q and k rotated by position, base ${base.toLocaleString('en-US')}` +
  `${rotatedDim < headDim ? `, ${rotatedDim} of ${headDim}` : ''}${scaling ? `, ${scaling.kind}` : ''}`;

const temperatureText = ({ tokens, strength, offset }: Temperature) =>
  `q · (1 + ${strength} · log(1 + floor(${offset === 0 ? 'position' : `(position + ${offset})`} / ${formatInteger(tokens)})))`;

const productText = (scale: number, headDim: number) =>
  scale === 1 / Math.sqrt(headDim) ? `q · kᵀ / √${headDim}` : `q · kᵀ · ${scale}`;

function scoresText({ scale, headDim, softcap, alibi, sinks }: Attention): string {
  const product = productText(scale, headDim);
  const capped = softcap === undefined ? product : `${softcap} · tanh(${product} / ${softcap})`;
  return `softmax(${capped}${alibi ? ' − slope · distance' : ''}${sinks ? ', sink' : ''})`;
}

const hasHeads = ({ heads }: HeadSpan) => heads > 0;
const spanText = ({ heads, window }: HeadSpan) =>
  `${counted(heads, 'head')} ${window === undefined ? 'global' : `${window.rule} (${formatInteger(window.tokens)})`}`;
