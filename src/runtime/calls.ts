/** What a program is called with, checked before an engine sees it: so all engines refuse the same. */
import type { Layer } from '../architecture/layer.js';
import { walk } from '../architecture/walk.js';
import { UserError } from '../errors.js';
import { sizesOf } from './call-sizes.js';
import type { LoadOptions, Program, RunInput, State } from './engine.js';

/** A call that a program can answer. */
export interface CheckedCall<Kept> {
  readonly batch: number;
  readonly tokens: number;
  /** Position of the first token. */
  readonly start: number;
  /** Tokens that there will be in the end, when decoding. */
  readonly total: number | undefined;
  /** What the call before left; undefined for the first. */
  readonly kept: Kept | undefined;
}

class ProgramState<Kept> implements State {
  readonly owner: Program;
  readonly position: number;
  readonly batch: number;
  readonly kept: Kept;

  constructor(owner: Program, { batch, start, tokens }: CheckedCall<Kept>, kept: Kept) {
    this.owner = owner;
    this.position = start + tokens;
    this.batch = batch;
    this.kept = kept;
  }
}

/** The calls of one program. `Kept` is what its engine hands from one to the next. */
export class Calls<Kept> {
  readonly #program: Program;
  readonly #layer: Layer;
  readonly #total: number | undefined;
  readonly #positions: number;

  constructor(program: Program, layer: Layer, { decoding }: LoadOptions) {
    this.#program = program;
    this.#layer = layer;
    this.#total = decoding?.totalTokens;
    this.#positions = positionsOf(layer);
  }

  /**
   * @throws UserError when there are no tokens, more than the model has positions, or one that is not in
   * the vocabulary; Error when the layer takes something else, or the state does not belong to the call.
   */
  check(input: RunInput): CheckedCall<Kept> {
    const { batch, tokens } = sizesOf(this.#layer, input);
    const before = this.#before(input.state, batch);
    const start = before?.position ?? 0;
    const end = start + tokens;
    if (end > this.#positions) {
      const message = `${end} tokens are more than the model's ${this.#positions} positions`;
      throw new UserError('usage', message, { suggestion: 'take a shorter context' });
    }
    if (this.#total !== undefined && end > this.#total) {
      throw new RangeError(`${end} tokens where ${this.#total} were announced`);
    }
    return { batch, tokens, start, total: this.#total, kept: before?.kept };
  }

  /** What the next call continues from. */
  stateAfter(call: CheckedCall<Kept>, kept: Kept): State {
    return new ProgramState(this.#program, call, kept);
  }

  #before(state: State | undefined, batch: number): ProgramState<Kept> | undefined {
    if (state === undefined) return undefined;
    if (!(state instanceof ProgramState) || state.owner !== this.#program) {
      throw new Error('the state is that of another program');
    }
    if (state.batch !== batch) {
      throw new RangeError(`a batch of ${batch} after one of ${state.batch}`);
    }
    return state;
  }
}

/** The most tokens that all layers have positions for. */
const positionsOf = (layer: Layer): number =>
  walk(layer).reduce(
    (least, visit) => Math.min(least, ownPositions(visit.layer)),
    Number.POSITIVE_INFINITY,
  );

function ownPositions(layer: Layer): number {
  switch (layer.kind) {
    case 'languageModel':
      return layer.positions;
    case 'learnedPositions':
      return layer.weight.shape[0] ?? 0;
    case 'srteTable':
      return layer.table.shape[1] ?? 0;
    case 'srteLowRank':
      return layer.lowRank.shape[1] ?? 0;
    case 'srteSincos':
    case 'rotary':
    case 'embedding':
    case 'linear':
    case 'layerNorm':
    case 'activation':
    case 'transposedLinear':
    case 'fusedProjection':
    case 'rmsNorm':
    case 'scale':
    case 'softcap':
    case 'residual':
    case 'gatedMlp':
    case 'router':
    case 'packedExperts':
    case 'mixtureOfExperts':
    case 'alibi':
    case 'latentAttention':
    case 'causalConv':
    case 'mamba':
    case 'attention':
    case 'alignment':
    case 'gate':
    case 'hybridBlock':
    case 'sequence':
      return Number.POSITIVE_INFINITY;
  }
}
