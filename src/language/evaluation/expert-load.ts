/** How evenly the routers of a mixture send tokens to its experts. E experts, K of them for each token. */
import { sumOf } from '../../base/values.js';
import type { Program, RunInput, RunOutput } from '../../engine/engine.js';
import type { LanguageModel, Router } from '../../model/architecture/layer.js';
import { walk } from '../../model/architecture/walk.js';

/** How one router divided the tokens among its experts. */
export interface RouterLoad {
  /** Path of the router: `layers.0.mlp.gate`. */
  readonly router: string;
  /** Experts of each token. @integer @minimum 1 */
  readonly perToken: number;
  /** Tokens that each expert computed, by its number. */
  readonly sent: readonly number[];
  /** Tokens of each expert if all had the same number: K · tokens / E. @minimum 0 */
  readonly even: number;
  /** Number of the expert with the most tokens. @integer */
  readonly highest: number;
  /** Number of the expert with the fewest tokens. @integer */
  readonly lowest: number;
  /** Experts without a token. @integer */
  readonly unused: number;
  /** exp of the entropy of the loads: E when they are even, 1 when one expert has all tokens. @minimum 1 */
  readonly effective: number;
}

/** Tokens of each expert, by the path of the router. */
export type SentTokens = Readonly<Record<string, readonly number[]>>;

/** Sums of the tokens of each expert of a model. */
export class LoadFold {
  readonly #routers: readonly Router[];
  readonly #sums: ReadonlyMap<string, number[]>;

  constructor(model: LanguageModel) {
    const found = walk(model).map(({ layer }) => layer);
    this.#routers = found.filter((layer) => layer.kind === 'router');
    this.#sums = new Map(this.#routers.map(({ name, weight }) => [name, zeros(weight.shape[0])]));
  }

  /** Whether there is anything to count. */
  get hasRouters(): boolean {
    return this.#routers.length > 0;
  }

  /** @param sent Of the routers that it has, those of others are left out. */
  add(sent: (router: string) => ArrayLike<number> | undefined): void {
    for (const [router, sums] of this.#sums) {
      const counts = sent(router);
      for (const expert of sums.keys())
        sums[expert] = (sums[expert] ?? 0) + (counts?.[expert] ?? 0);
    }
  }

  /** Sums since the last call. */
  taken(): SentTokens {
    const found = Object.fromEntries([...this.#sums].map(([router, sums]) => [router, [...sums]]));
    for (const sums of this.#sums.values()) sums.fill(0);
    return found;
  }

  /** Null for a model without routers. */
  result(): readonly RouterLoad[] | null {
    if (!this.hasRouters) return null;
    return this.#routers.map(({ name, expertsPerToken }) =>
      routerLoad(name, expertsPerToken, this.#sums.get(name) ?? []),
    );
  }
}

const zeros = (count = 0): number[] => new Array<number>(count).fill(0);

/** A program that adds the tokens of experts to `loads`; it must have been loaded with `sent`. */
export const countingProgram = (
  program: Program,
  loads: LoadFold,
): Pick<Program, 'run' | 'rewind' | 'discard'> => ({
  async run(input: RunInput): Promise<RunOutput> {
    const output = await program.run(input);
    loads.add((router) => output.sent?.get(router)?.data);
    return output;
  },
  rewind: (state, position) => program.rewind?.(state, position),
  discard: (state) => program.discard?.(state),
});

/** @param sent Tokens of each expert. */
export function routerLoad(router: string, perToken: number, sent: readonly number[]): RouterLoad {
  const total = sumOf(sent, (each) => each);
  const extreme = (isBetter: (a: number, b: number) => boolean) =>
    sent.reduce((at, each, expert) => (isBetter(each, sent[at] ?? 0) ? expert : at), 0);
  const shares = sent.filter((each) => each > 0).map((each) => each / total);
  return {
    router,
    perToken,
    sent,
    even: total / sent.length,
    highest: extreme((a, b) => a > b),
    lowest: extreme((a, b) => a < b),
    unused: sent.length - shares.length,
    effective: Math.exp(-sumOf(shares, (share) => share * Math.log(share))),
  };
}
