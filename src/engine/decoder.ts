/** One sequence that grows: a program that decodes, its state, and the tokens so far. V is the size of the vocabulary. */
import type { Program, StateHandle, Values } from './engine.js';

/**
 * Maximum tokens of one call. A call blocks the process until it ends, so a long prompt is read in several calls,
 * between which Ctrl-C and progress are handled. The limit also bounds the memory of logits.
 */
const TOKENS_PER_CALL = 256;

/** A state after some tokens. */
interface Checkpoint {
  readonly position: number;
  readonly state: StateHandle | undefined;
}

/** Part of a program that a decoder needs. */
type DecodedProgram = Pick<Program, 'run' | 'rewind' | 'discard'>;

const START: Checkpoint = { position: 0, state: undefined };

/** A sequence of one program that was loaded with `decoding`. The owner of the program releases it. */
export class Decoder {
  readonly #program: DecodedProgram;
  readonly #tokens: number[] = [];
  /**
   * States from which `rewind` can recompute what the engine does not keep: the one before the last call, and the kept
   * one.
   */
  #before = START;
  #kept = START;
  #now = START;

  readonly #tokensPerCall: number;

  constructor(program: DecodedProgram, tokensPerCall = TOKENS_PER_CALL) {
    this.#program = program;
    this.#tokensPerCall = tokensPerCall;
  }

  /** Number of tokens so far. */
  get position(): number {
    return this.#now.position;
  }

  /** Tokens so far. */
  get tokens(): readonly number[] {
    return this.#tokens;
  }

  /**
   * Appends tokens.
   * @param lastTokens Number of last tokens whose logits are returned, at most those of this call.
   * @returns [lastTokens, V].
   * @throws UserError when the sequence becomes longer than the program was loaded for, or a token is not in the
   * vocabulary.
   */
  async append(tokens: readonly number[], lastTokens = 1): Promise<Values> {
    const parts: Values[] = [];
    for await (const part of this.appendInParts(tokens, lastTokens)) parts.push(part);
    return concatenatedRows(parts);
  }

  /** Appends tokens in calls of bounded size. Yields the logits of the last tokens of each, [n, V], in order. */
  async *appendInParts(
    tokens: readonly number[],
    lastTokens = tokens.length,
  ): AsyncGenerator<Values> {
    const from = this.position;
    const firstNeeded = tokens.length - lastTokens;
    for (let start = 0; start < tokens.length; start += this.#tokensPerCall) {
      const part = tokens.slice(start, start + this.#tokensPerCall);
      const needed = Math.min(part.length, start + part.length - firstNeeded);
      const output = await this.#run(part, Math.max(1, needed));
      if (needed > 0) yield output;
      // Lets signals and timers run.
      if (start + part.length < tokens.length) await new Promise(setImmediate);
    }
    if (this.position !== from + tokens.length) throw new Error('tokens were appended meanwhile');
  }

  /** Keeps the present state and drops the previously kept one. A later `rewind` computes only the tokens after it. */
  keep(): void {
    const held = this.#held();
    this.#kept = this.#now;
    this.#discard(held);
  }

  /**
   * Removes the tokens from `position` on. This is cheap if the engine keeps earlier states. If not, the tokens before
   * `position` are recomputed from the latest of three states: the start of the last call, the kept state and the
   * beginning.
   */
  async rewind(position: number): Promise<void> {
    if (position === this.position) return;
    const again = this.#tokens.slice(0, position);
    const { state } = this.#now;
    const kept = state && this.#program.rewind?.(state, position);
    const start = kept !== undefined ? { position, state: kept } : this.#latestUpTo(position);
    this.#tokens.length = start.position;
    const held = this.#held();
    this.#now = start;
    this.#before = start;
    if (this.#kept.position > start.position) this.#kept = START;
    this.#discard(held);
    const missing = again.slice(start.position);
    if (missing.length > 0) await this.append(missing);
  }

  #latestUpTo(position: number): Checkpoint {
    return [this.#before, this.#kept].reduce(
      (latest, each) =>
        each.position <= position && each.position > latest.position ? each : latest,
      START,
    );
  }

  /** States that the next calls can start from. */
  #held(): Set<StateHandle> {
    const states = [this.#before, this.#kept, this.#now].map(({ state }) => state);
    return new Set(states.filter((state) => state !== undefined));
  }

  /** Frees the states of `before` that `rewind` no longer needs. */
  #discard(before: ReadonlySet<StateHandle>): void {
    const held = this.#held();
    for (const state of before) if (!held.has(state)) this.#program.discard?.(state);
  }

  async #run(tokens: readonly number[], lastTokens: number): Promise<Values> {
    const ids = { batch: 1, tokens: tokens.length, data: Int32Array.from(tokens) };
    const { state: before } = this.#now;
    const { output, state } = await this.#program.run({ ids, state: before, lastTokens });
    if (state === undefined) throw new Error('the program was loaded without decoding');
    const held = this.#held();
    this.#before = this.#now;
    this.#now = { position: state.position, state };
    this.#discard(held);
    this.#tokens.push(...tokens);
    const [, count = 0, width = 0] = output.shape;
    return { shape: [count, width], data: output.data };
  }
}

function concatenatedRows(parts: readonly Values[]): Values {
  const [first, ...others] = parts;
  if (first && others.length === 0) return first;
  const width = first?.shape[1] ?? 0;
  const data = new Float32Array(parts.reduce((sum, part) => sum + part.data.length, 0));
  let end = 0;
  for (const part of parts) {
    data.set(part.data, end);
    end += part.data.length;
  }
  return { shape: [data.length / (width || 1), width], data };
}

/**
 * Continues a decoder so that its tokens are `tokens`, and returns the logits after the last of them, [1, V]. Tokens
 * that the decoder already has are not recomputed, except the last one.
 */
export async function advance(decoder: Decoder, tokens: readonly number[]): Promise<Values> {
  const known = decoder.tokens;
  let same = 0;
  while (same < tokens.length - 1 && same < known.length && known[same] === tokens[same]) same++;
  await decoder.rewind(same);
  return decoder.append(tokens.slice(same));
}

/** Row of logits [n, V]. */
export function rowValues({ shape, data }: Values, row: number): Float32Array {
  const width = shape.at(-1) ?? 0;
  return data.subarray(row * width, (row + 1) * width);
}
