/** How evenly the routers of a mixture send tokens to its experts. E experts, K of them for each token. */
import type { Program, RunInput, RunOutput } from '../../engine/engine.js';
import type { LanguageModel, Router } from '../../model/architecture/layer.js';
import { walk } from '../../model/architecture/walk.js';

/** Tokens of the experts of one router. */
export interface RouterLoad {
  /** Path of the router: `layers.0.mlp.gate`. */
  readonly router: string;
  /** Experts of each token. @integer @minimum 1 */
  readonly perToken: number;
  /** Tokens that each expert computed, by its number. */
  readonly sent: readonly number[];
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
    return this.#routers.map(({ name, expertsPerToken }) => ({
      router: name,
      perToken: expertsPerToken,
      sent: this.#sums.get(name) ?? [],
    }));
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

/** How one router divides tokens among its experts. */
export interface LoadFacts {
  readonly router: string;
  /** E */
  readonly experts: number;
  readonly perToken: number;
  /** Load of each expert over the even load, K · tokens / E. */
  readonly shares: readonly number[];
  /** Number of the expert with the highest load, and of the one with the lowest. */
  readonly most: number;
  readonly least: number;
  /** Experts without a token. */
  readonly unused: number;
  /** exp of the entropy of the loads: E when even, 1 when one expert gets all. */
  readonly effective: number;
}

export function loadFacts({ router, perToken, sent }: RouterLoad): LoadFacts {
  const total = sent.reduce((sum, each) => sum + each, 0) || 1;
  const shares = sent.map((each) => (each * sent.length) / total);
  const extreme = (isBetter: (a: number, b: number) => boolean) =>
    sent.reduce((at, each, expert) => (isBetter(each, sent[at] ?? 0) ? expert : at), 0);
  const entropy = sent.reduce(
    (sum, each) => (each === 0 ? sum : sum - (each / total) * Math.log(each / total)),
    0,
  );
  return {
    router,
    experts: sent.length,
    perToken,
    shares,
    most: extreme((a, b) => a > b),
    least: extreme((a, b) => a < b),
    unused: sent.filter((each) => each === 0).length,
    effective: Math.exp(entropy),
  };
}
