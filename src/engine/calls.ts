/** Checks the inputs of a program before an engine sees them, so that all engines reject the same. */

import { type UserError, usageError } from '../base/errors.js';
import { formatInteger } from '../base/text/units.js';
import type { Described, LanguageModel, Layer, Window } from '../model/architecture/layer.js';
import { firstCachedKey, firstVisibleKey, windowKey } from '../model/architecture/masks.js';
import { dependsOnLength } from '../model/architecture/rotary-scaling.js';
import { isAttention, walk } from '../model/architecture/walk.js';
import { primitivesOf } from '../model/operations/lower.js';
import type { Program, ProgramOptions, RunInput, StateHandle, TokenIds, Values } from './engine.js';

/** A valid call of a program. */
export interface CheckedCall<Kept> {
  readonly batch: number;
  readonly tokens: number;
  /** Position of the first token. */
  readonly start: number;
  /** Final number of tokens, when decoding. */
  readonly total: number | undefined;
  /** State left by the previous call; undefined for the first. */
  readonly kept: Kept | undefined;
}

class ProgramState<Kept> implements StateHandle {
  readonly owner: Program;
  readonly position: number;
  readonly batch: number;
  readonly kept: Kept;
  isDiscarded = false;

  constructor(
    owner: Program,
    { position, batch, kept }: Pick<ProgramState<Kept>, 'position' | 'batch' | 'kept'>,
  ) {
    this.owner = owner;
    this.position = position;
    this.batch = batch;
    this.kept = kept;
  }
}

/** The calls of one program. `Kept` is the engine's state between calls. */
export class Calls<Kept> {
  readonly #program: Program;
  readonly #layer: Layer;
  readonly #total: number | undefined;
  readonly #positions: number;

  constructor(program: Program, layer: Layer, { decoding }: ProgramOptions) {
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
    const { batch, tokens } = inputSizes(this.#layer, input);
    const before = this.#before(input.state, batch);
    const start = before?.position ?? 0;
    const end = start + tokens;
    if (end > this.#positions) {
      const message = `${formatInteger(end)} tokens are more than the model's ${formatInteger(this.#positions)} positions`;
      throw usageError(message, 'take a shorter context');
    }
    if (this.#total !== undefined && end > this.#total) {
      throw new RangeError(`${end} tokens where ${this.#total} were announced`);
    }
    return { batch, tokens, start, total: this.#total, kept: before?.kept };
  }

  /** State that the next call continues from. */
  stateAfter({ batch, start, tokens }: CheckedCall<Kept>, kept: Kept): StateHandle {
    return new ProgramState(this.#program, { position: start + tokens, batch, kept });
  }

  /**
   * State after the first `position` tokens of another.
   * @param rewind What is kept then; undefined when the engine does not keep it.
   */
  rewound(
    state: StateHandle,
    position: number,
    rewind: (kept: Kept) => Kept | undefined,
  ): StateHandle | undefined {
    const { batch, kept, position: end } = this.#own(state);
    if (position < 0 || position > end) throw new RangeError(`no position ${position} of ${end}`);
    if (position === end) return state;
    const before = rewind(kept);
    return before && new ProgramState(this.#program, { position, batch, kept: before });
  }

  /** Makes a state unusable. Returns what it kept. */
  discarded(state: StateHandle): Kept {
    const own = this.#own(state);
    own.isDiscarded = true;
    return own.kept;
  }

  #before(state: StateHandle | undefined, batch: number): ProgramState<Kept> | undefined {
    if (state === undefined) return undefined;
    const own = this.#own(state);
    if (own.batch !== batch) throw new RangeError(`a batch of ${batch} after one of ${own.batch}`);
    return own;
  }

  #own(state: StateHandle): ProgramState<Kept> {
    if (!(state instanceof ProgramState) || state.owner !== this.#program) {
      throw new Error('the state is that of another program');
    }
    if (state.isDiscarded) throw new Error('the state was discarded');
    return state;
  }
}

/** Values of the last `count` tokens of `values` [B, T, C], [B, count, C]. All when absent. */
export function ofLastTokens(values: Values, count: number | undefined): Values {
  const [batch = 1, tokens = 1, width = 1] = values.shape;
  if (count === undefined || count >= tokens) return values;
  const data = new Float32Array(batch * count * width);
  for (let row = 0; row < batch; row++) {
    const end = (row + 1) * tokens * width;
    data.set(values.data.subarray(end - count * width, end), row * count * width);
  }
  return { shape: [batch, count, width], data };
}

/** Maximum number of positions that the layer and its sublayers support. */
const positionsOf = (layer: Layer): number =>
  primitivesOf(layer).reduce(
    (least, each) =>
      each.kind === 'lookup' && each.by !== 'ids' ? Math.min(least, each.rows) : least,
    layer.kind === 'languageModel' ? layer.positions : Number.POSITIVE_INFINITY,
  );

interface InputSizes {
  readonly batch: number;
  readonly tokens: number;
}

/**
 * Sizes of a layer's input.
 * @throws UserError when there are no tokens, or one is not in the vocabulary; Error when the layer takes something
 * else.
 */
function inputSizes(layer: Layer, input: RunInput): InputSizes {
  const sizes = givenSizes(layer, input);
  if (sizes.batch < 1 || sizes.tokens < 1) {
    throw usageError('no tokens to run the model on');
  }
  return sizes;
}

function givenSizes(layer: Layer, { ids, inputs = [], tokens }: RunInput): InputSizes {
  switch (inputKindOf(layer)) {
    case 'ids':
      if (ids === undefined) throw takes(layer, 'token ids');
      checkIds(layer, ids);
      return ids;
    case 'nothing':
      if (tokens === undefined) throw takes(layer, 'a number of tokens');
      return { batch: 1, tokens };
    case 'a value':
      return valueSizes(layer, inputs, 1);
    case 'two values':
      return valueSizes(layer, inputs, 2);
  }
}

function valueSizes(
  layer: Layer,
  inputs: NonNullable<RunInput['inputs']>,
  count: number,
): InputSizes {
  const [batch, tokens, width] = inputs[0]?.shape ?? [];
  const fits = inputs.every(
    ({ shape, data }) =>
      shape.join() === `${batch},${tokens},${width}` &&
      data.length === shape.reduce((product, size) => product * size, 1),
  );
  if (inputs.length !== count || !fits || batch === undefined || tokens === undefined) {
    throw takes(layer, `${count === 1 ? 'one value' : `${count} values`} [B, T, C]`);
  }
  return { batch, tokens };
}

function checkIds(layer: Layer, { batch, tokens, data }: TokenIds): void {
  if (data.length !== batch * tokens) {
    throw new RangeError(`${data.length} token ids for ${batch} × ${tokens}`);
  }
  const vocabulary = layerVocabulary(layer);
  const wrong = data.findIndex((id) => id < 0 || id >= vocabulary);
  if (wrong >= 0) {
    const place = `row ${Math.floor(wrong / tokens)}, position ${wrong % tokens}`;
    throw usageError(
      `token ${data[wrong]} (${place}) is not in a vocabulary of ${vocabulary}`,
      `token ids go from 0 to ${vocabulary - 1}`,
    );
  }
}

function layerVocabulary(layer: Layer): number {
  const embedding = layer.kind === 'languageModel' ? layer.embedding : layer;
  return embedding.kind === 'embedding' ? (embedding.weight.shape[0] ?? 0) : 0;
}

const takes = ({ kind, name }: Layer, what: string) =>
  new Error(`the layer ${JSON.stringify(name)} (${kind}) takes ${what}`);

type InputKind = 'ids' | 'nothing' | 'a value' | 'two values';

/** Inputs of layers that do not take a value. */
const INPUTS: Readonly<Partial<Record<Layer['kind'], InputKind>>> = {
  languageModel: 'ids',
  embedding: 'ids',
  srteTable: 'nothing',
  srteLowRank: 'nothing',
  srteSincos: 'nothing',
  alignment: 'two values',
  gatedRmsNorm: 'two values',
};

/** Input of a layer: token ids [B, T], values [B, T, C], or nothing. */
export const inputKindOf = ({ kind }: Layer): InputKind => INPUTS[kind] ?? 'a value';

/** Tokens of one call; `total` is the final number when decoding. */
interface Extent {
  readonly start: number;
  readonly tokens: number;
  readonly total: number | undefined;
}

/** First visible key of each token of a call. */
export function firstKeys(
  { start, tokens, total }: Extent,
  window: Window | undefined,
): Int32Array {
  return total === undefined
    ? fullForwardKeys(tokens, window)
    : decodingKeys(start, tokens, window, total);
}

/** First visible key of each of `tokens` positions of a full forward. */
export function fullForwardKeys(tokens: number, window: Window | undefined): Int32Array {
  return Int32Array.from({ length: tokens }, (_, position) =>
    firstVisibleKey(position, tokens, window),
  );
}

/**
 * First visible key of each of `tokens` positions from `start` on, with a cache of the earlier ones. The original mask
 * of local heads depends on the length of the whole input, so decoding needs the final length. Up to the window's
 * length, the heads see everything; beyond it, the window slides. Above 2048 tokens the original moves its window in
 * blocks, which a cache cannot follow: here it still slides.
 * @param total Final number of tokens.
 */
export function decodingKeys(
  start: number,
  tokens: number,
  window: Window | undefined,
  total: number,
): Int32Array {
  if (window === undefined || total <= window.tokens) return new Int32Array(tokens);
  return Int32Array.from({ length: tokens }, (_, index) => firstCachedKey(start + index, window));
}

/** Distinct windows of a model's heads. */
export function attentionWindows({ blocks }: LanguageModel): Window[] {
  const windows = new Map<string, Window>();
  for (const { layer } of blocks.flatMap(walk)) {
    if (!isAttention(layer) || !('spans' in layer)) continue;
    for (const { heads, window } of layer.spans) {
      if (window !== undefined && heads > 0) windows.set(windowKey(window), window);
    }
  }
  return [...windows.values()];
}

/** Whether decoding a sequence of this length with a window hides the same keys as one forward pass over it. */
export function isFollowedByCache(tokens: number, window: Window): boolean {
  const keys = decodingKeys(0, tokens, window, tokens);
  return fullForwardKeys(tokens, window).every((first, position) => first === keys[position]);
}

/** Whether the output for a token depends on how many tokens follow it: by a window's rule, or rotary scaling. */
export const hasLengthRule = (model: LanguageModel): boolean =>
  attentionWindows(model).some(({ rule }) => rule === 'local') ||
  model.blocks.flatMap(walk).some(({ layer }) => layer.kind === 'rotary' && dependsOnLength(layer));

/** Refusal of a layer that is described and not run. */
export const describedOnly = ({ name, title }: Pick<Described, 'name' | 'title'>): UserError =>
  usageError(
    `${name || 'the model'} cannot run: ${title} is described, and no engine computes it`,
    'count it with profile and fit, and verify its tensors',
  );

/** Refusal of Doge's mixture, whose class in transformers 5.18 mixes the scores of all tokens of a call. */
export const mixesTokens = (layer: string): UserError =>
  usageError(
    `${layer} cannot run: in transformers, a token's experts depend on the other tokens of a batch, later ones too`,
    'count it with profile and verify its tensors; models without is_moe run',
  );
