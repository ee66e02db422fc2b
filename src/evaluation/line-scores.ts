/** Mean scores of the lines of a text, to find the worst. */

export interface LineScore {
  /** Number of the line, from 1. */
  readonly line: number;
  readonly text: string;
  /** Scored tokens of the line. */
  readonly tokens: number;
  /** Mean of their scores, in nats. */
  readonly mean: number;
}

/** Lines that are kept. */
const MOST_LINES = 5;

/** A line with fewer tokens says little. */
const FEWEST_TOKENS = 4;

/** The lines of one text, whose tokens are scored in their order. Only the worst lines are kept. */
export class LineTracker {
  readonly #lines: readonly string[];
  /** Line of each token, from 0. */
  readonly #lineOf: Uint32Array;
  readonly #worst: LineScore[] = [];
  #line = 0;
  #tokens = 0;
  #sum = 0;

  private constructor(lines: readonly string[], lineOf: Uint32Array) {
    this.#lines = lines;
    this.#lineOf = lineOf;
  }

  /**
   * @param newlines Number of line feeds in the text of each token, by its id.
   * @returns Undefined when the tokens do not have the line feeds of the text, as after a normalizer that removes them.
   */
  static of(
    text: string,
    ids: readonly number[],
    newlines: ReadonlyMap<number, number>,
  ): LineTracker | undefined {
    const lines = text.split('\n');
    const lineOf = new Uint32Array(ids.length);
    let line = 0;
    for (const [at, id] of ids.entries()) {
      lineOf[at] = line;
      line += newlines.get(id) ?? 0;
    }
    return line === lines.length - 1 ? new LineTracker(lines, lineOf) : undefined;
  }

  /** @param position Position of the token in the text; positions ascend. */
  add(position: number, score: number): void {
    const line = this.#lineOf[position] ?? 0;
    if (line !== this.#line) this.#close(line);
    this.#tokens++;
    this.#sum += score;
  }

  /** Lines with the highest means, highest first. */
  worst(): LineScore[] {
    this.#close(this.#line);
    return [...this.#worst];
  }

  #close(next: number): void {
    if (this.#tokens >= FEWEST_TOKENS) {
      const mean = this.#sum / this.#tokens;
      const text = this.#lines[this.#line] ?? '';
      this.#worst.push({ line: this.#line + 1, text, tokens: this.#tokens, mean });
      this.#worst.sort((a, b) => b.mean - a.mean);
      this.#worst.length = Math.min(this.#worst.length, MOST_LINES);
    }
    this.#line = next;
    this.#tokens = 0;
    this.#sum = 0;
  }
}
