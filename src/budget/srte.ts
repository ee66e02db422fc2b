/**
 * What each way of building the SRTE costs, for one configuration of the hybrid model: the comparison
 * that the published report prints. Every row is a real description, counted; there is no formula here.
 */
import {
  type HybridConfig,
  hybrid,
  PROPOSED_PRESETS,
  RECOMMENDED,
  srteRank,
} from '../architecture/models/hybrid.js';
import { bytesIn, type Dtype } from '../tensor/dtype.js';
import { countParameters } from './parameters.js';

/** The part of a configuration that the comparison varies. */
type Settings = ReturnType<typeof settingsOf>;

export interface SrteRow {
  /** Stable name for programs: `shared-rank-128`. */
  readonly id: string;
  /** What it is, for people. */
  readonly label: string;
  /** `strategy`: an SRTE setting; `lever`: one other key of the file changed; `preset`: a proposal. */
  readonly kind: 'strategy' | 'lever' | 'preset';
  /** True where this is what the file itself says. */
  readonly current: boolean;
  readonly settings: Settings;
  readonly parameters: number;
  readonly srteParameters: number;
  /** srteParameters / parameters. */
  readonly srteShare: number;
  /** Parameters fewer than the unshared model has; negative when there are more. */
  readonly savedParameters: number;
  /** savedParameters / parameters of the unshared model. */
  readonly savedShare: number;
  /** Of the parameters, in the chosen dtype; buffers are not in it. */
  readonly bytes: number;
}

export interface SrteComparison {
  readonly dtype: Dtype;
  readonly rows: readonly SrteRow[];
  /** What was left out or deserves a word. */
  readonly notes: readonly string[];
}

export interface SrteOptions {
  readonly dtype: Dtype;
  /** Ranks to compare, each a row. */
  readonly ranks: readonly number[];
  /** Numbers of positions to try on the file's own setting, each a row. */
  readonly maxPositions?: readonly number[];
  /** Vocabulary sizes to try on the file's own setting, each a row. */
  readonly vocabSizes?: readonly number[];
  /** Adds a row with the head tied, the rest as in the file. */
  readonly tie?: boolean;
  /** Adds the proposals of the published report. */
  readonly presets?: boolean;
}

interface Candidate extends Pick<SrteRow, 'id' | 'label' | 'kind'> {
  readonly config: HybridConfig;
}

const FULL_TABLE = { srte_encoding: 'learnable', srte_factorized_rank: 0 } as const;
const NOT_SHARED = { ...FULL_TABLE, srte_share_across_layers: false } as const;
const SHARED = { ...FULL_TABLE, srte_share_across_layers: true } as const;

const thousands = (value: number) => value.toLocaleString('en-US');

/**
 * One row per SRTE strategy for `config`, then the levers and proposals that are asked for. All is
 * compared with the unshared model of the same configuration, which is the first row.
 * @throws LimitError when a variant is beyond what can be counted exactly.
 */
export function compareSrte(config: HybridConfig, options: SrteOptions): SrteComparison {
  const notes: string[] = [];
  const strategies = strategyCandidates(config, options.ranks, notes);
  const candidates = [
    ...strategies,
    ...ownCandidate(config, strategies),
    ...leverCandidates(config, options),
    ...(options.presets ? presetCandidates() : []),
  ];
  const baseline = countParameters(describe({ ...config, ...NOT_SHARED })).parameters;
  const own = fingerprint(config);
  const rows = candidates.map(({ config: varied, ...row }): SrteRow => {
    const { parameters, byComponent } = countParameters(describe(varied));
    return {
      ...row,
      current: fingerprint(varied) === own,
      settings: settingsOf(varied),
      parameters,
      srteParameters: byComponent.srte,
      srteShare: byComponent.srte / parameters,
      savedParameters: baseline - parameters,
      savedShare: (baseline - parameters) / baseline,
      bytes: bytesIn(parameters, options.dtype),
    };
  });
  return { dtype: options.dtype, rows, notes };
}

function strategyCandidates(
  config: HybridConfig,
  ranks: readonly number[],
  notes: string[],
): Candidate[] {
  const { hidden_size: hidden, max_position_embeddings: rows } = config;
  const isLowRank = (rank: number, what: string) => {
    if (rank < hidden) return true;
    notes.push(
      `${what} is left out: ${rank} is not below hidden_size ${hidden}, so the full table would be built.`,
    );
    return false;
  };
  const strategy = (id: string, label: string, change: Partial<HybridConfig>): Candidate => ({
    id,
    label,
    kind: 'strategy',
    config: { ...config, ...change },
  });
  return [
    strategy('not-shared', 'not shared', NOT_SHARED),
    strategy('shared', 'shared', SHARED),
    ...[...new Set(ranks)]
      .filter((rank) => isLowRank(rank, `Rank ${rank}`))
      .map((rank) =>
        strategy(`shared-rank-${rank}`, `shared, rank ${rank}`, {
          ...SHARED,
          srte_factorized_rank: rank,
        }),
      ),
    strategy('shared-sincos', 'shared, sincos', { ...SHARED, srte_encoding: 'sincos' }),
    ...(isLowRank(RECOMMENDED.srte_factorized_rank, 'The recommended setting')
      ? [
          strategy('recommended', 'recommended', {
            ...RECOMMENDED,
            max_position_embeddings: Math.min(rows, RECOMMENDED.max_position_embeddings),
          }),
        ]
      : []),
  ];
}

/** The file's own setting, when it is none of the strategies. */
function ownCandidate(config: HybridConfig, strategies: readonly Candidate[]): Candidate[] {
  const own = fingerprint(config);
  return strategies.some((candidate) => fingerprint(candidate.config) === own)
    ? []
    : [{ id: 'file', label: 'as in the file', kind: 'strategy', config }];
}

function leverCandidates(config: HybridConfig, options: SrteOptions): Candidate[] {
  const lever = (id: string, label: string, change: Partial<HybridConfig>): Candidate => ({
    id,
    label,
    kind: 'lever',
    config: { ...config, ...change },
  });
  const { maxPositions = [], vocabSizes = [], tie = false } = options;
  return [
    ...maxPositions.map((rows) =>
      lever(`positions-${rows}`, `${thousands(rows)} positions`, { max_position_embeddings: rows }),
    ),
    ...vocabSizes.map((size) =>
      lever(`vocabulary-${size}`, `vocabulary ${thousands(size)}`, { vocab_size: size }),
    ),
    ...(tie ? [lever('tied', 'tied head', { tie_word_embeddings: true })] : []),
  ];
}

function presetCandidates(): Candidate[] {
  return PROPOSED_PRESETS.map((name) => ({
    id: `preset-${name}`,
    label: `preset ${name}`,
    kind: 'preset',
    config: hybrid.schema.parse(hybrid.presets[name]?.document).model,
  }));
}

const describe = (config: HybridConfig) => hybrid.build({ model: config });

function settingsOf(config: HybridConfig) {
  const { srte_encoding, srte_share_across_layers, srte_factorized_rank } = config;
  const { max_position_embeddings, vocab_size, tie_word_embeddings } = config;
  return {
    srte_encoding,
    srte_share_across_layers,
    srte_factorized_rank,
    max_position_embeddings,
    vocab_size,
    tie_word_embeddings,
  };
}

/** Equal for configurations that build the same model: a rank without effect makes no difference. */
function fingerprint(config: HybridConfig): string {
  return JSON.stringify({ ...config, srte_factorized_rank: srteRank(config) ?? 0 });
}
