/**
 * Cost of each SRTE strategy for one configuration of the hybrid model: the comparison in the published report.
 * Every row counts a real description, without formulas.
 */

import type { Dtype } from '../../base/tensor/dtype.js';
import { bytesIn } from '../../base/tensor/dtype.js';
import { joined } from '../../base/text/words.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { HybridConfig } from '../architecture/models/hybrid.js';
import { hybrid, srteRank } from '../architecture/models/hybrid.js';
import { LimitError } from '../architecture/param.js';
import { presetDocument } from '../architecture/presets.js';
import type { SrteLayout } from '../architecture/srte-layout.js';
import { srteParameters } from '../architecture/srte-layout.js';
import type { ParameterBudget } from './parameters.js';
import { countParameters } from './parameters.js';

/** The part of a configuration that the comparison varies. */
type Settings = ReturnType<typeof srteSettings>;

export interface SrteRow {
  /** Stable identifier for programs: `shared-rank-128`. */
  readonly id: string;
  /** Display name. */
  readonly label: string;
  /** `strategy`: an SRTE setting; `lever`: one other changed key; `preset`: a proposal. */
  readonly kind: 'strategy' | 'lever' | 'preset';
  /** Whether this is the file's own setting. */
  readonly current: boolean;
  /** Values of the config that the row has. */
  readonly settings: Settings;
  /** All parameters. @integer */
  readonly parameters: number;
  /** Parameters of the SRTE tables. @integer */
  readonly srteParameters: number;
  /** srteParameters / parameters. */
  readonly srteShare: number;
  /**
   * Parameters saved relative to the unshared model; negative for an increase. Null when the unshared model is too
   * large to count.
   * @integer
   */
  readonly savedParameters: number | null;
  /** savedParameters / parameters of the unshared model. */
  readonly savedShare: number | null;
  /** parameters / parameters of the unshared model. */
  readonly ratio: number | null;
  /** Part of the unshared model's SRTE parameters that the row saves. */
  readonly savedSrteShare: number | null;
  /** Parameters of one full table of the same length / srteParameters; null unless the row has a low rank. */
  readonly tableRatio: number | null;
  /** Bytes of the parameters in the chosen dtype, without buffers. @integer */
  readonly bytes: number;
}

export interface SrteComparison {
  /** Element type of the bytes. */
  readonly dtype: Dtype;
  /** The model, and its variants. */
  readonly rows: readonly SrteRow[];
  /** Omissions and remarks. */
  readonly notes: readonly string[];
}

/**
 * Sizes of a model with other settings of its SRTE.
 * @answer minimind compare-srte --json
 */
export interface SrteResult extends SrteComparison {
  readonly schema: 'minimind/compare-srte@1';
  /** Path of the config as the user wrote it. */
  readonly file: string;
}

export interface SrteOptions {
  readonly dtype: Dtype;
  /** Ranks to compare, one row each. */
  readonly ranks: readonly number[];
  /** Numbers of positions to try with the file's setting, one row each. */
  readonly maxPositions?: readonly number[];
  /** Vocabulary sizes to try with the file's setting, one row each. */
  readonly vocabSizes?: readonly number[];
  /** Adds a row with a tied head and the file's other settings. */
  readonly tie?: boolean;
  /** Adds the proposals of the published report. */
  readonly presets?: boolean;
  /** Training length of the file; rows that are too short for it get a note. */
  readonly trainedContext?: number | undefined;
}

interface SrteCandidate extends Pick<SrteRow, 'id' | 'label' | 'kind'> {
  readonly config: HybridConfig;
}

/** The three variants that the published report proposes. */
const PROPOSED_PRESETS = ['aggressive', 'memory', 'performance'] as const;

/** Ranks of the published comparison. */
export const PUBLISHED_RANKS = [128, 64] as const;

const FULL_TABLE = { srte_encoding: 'learnable', srte_factorized_rank: 0 } as const;
const NOT_SHARED = { ...FULL_TABLE, srte_share_across_layers: false } as const;
const SHARED = { ...FULL_TABLE, srte_share_across_layers: true } as const;

const distinct = (values: readonly number[]) => [...new Set(values)];

const thousands = (value: number) => value.toLocaleString('en-US');

/**
 * One row per SRTE strategy for `config`, then the requested levers and proposals. Each row is compared with the
 * first, the unshared model of the same configuration.
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
  const counted = candidates.flatMap(countCandidate(notes));
  // Each row is compared with the unshared model, if it can be built.
  const unshared = counted.find(({ id }) => id === 'not-shared')?.budget;
  const baseline = unshared?.parameters;
  const own = fingerprint(config);
  const rows = counted.map(({ config: varied, budget, ...row }): SrteRow => {
    const { parameters, byComponent } = budget;
    const saved = baseline === undefined ? null : baseline - parameters;
    return {
      ...row,
      current: fingerprint(varied) === own,
      settings: srteSettings(varied),
      parameters,
      srteParameters: byComponent.srte,
      srteShare: byComponent.srte / parameters,
      savedParameters: saved,
      savedShare: saved === null || baseline === undefined ? null : saved / baseline,
      ratio: baseline === undefined ? null : parameters / baseline,
      savedSrteShare: unshared ? 1 - byComponent.srte / unshared.byComponent.srte : null,
      tableRatio: tableRatioOf(varied),
      bytes: bytesIn(parameters, options.dtype),
    };
  });
  notes.push(...tooShort(rows, options.trainedContext));
  return { dtype: options.dtype, rows, notes };
}

/** SRTE layout of a row. @param model A model with the row's width and depth. */
export function srteLayoutOfRow(
  { settings }: Pick<SrteRow, 'settings'>,
  { hidden, blocks }: Pick<LanguageModel, 'hidden' | 'blocks'>,
): SrteLayout {
  const rank = srteRank({ ...settings, hidden_size: hidden });
  const table = rank === undefined ? 'table' : 'low-rank';
  return {
    sharing: settings.srte_share_across_layers ? 'shared' : 'per-layer',
    form: settings.srte_encoding === 'sincos' ? 'sincos' : table,
    positions: settings.max_position_embeddings,
    hidden,
    rank: rank ?? null,
    layers: blocks.length,
  };
}

function tableRatioOf(config: HybridConfig): number | null {
  const rank = srteRank(config);
  if (rank === undefined) return null;
  const { hidden_size: hidden, max_position_embeddings: positions } = config;
  const one = { sharing: 'shared', positions, hidden, layers: 1 } as const;
  return (
    srteParameters({ ...one, form: 'table', rank: null }) /
    srteParameters({ ...one, form: 'low-rank', rank })
  );
}

/** Counts candidates, equal models once; a candidate beyond the limits becomes a note instead of a row. */
function countCandidate(notes: string[]) {
  const known = new Map<string, ParameterBudget>();
  return (candidate: SrteCandidate): (SrteCandidate & { readonly budget: ParameterBudget })[] => {
    const key = fingerprint(candidate.config);
    try {
      const budget = known.get(key) ?? countParameters(hybrid.build({ model: candidate.config }));
      known.set(key, budget);
      return [{ ...candidate, budget }];
    } catch (error) {
      if (!(error instanceof LimitError)) throw error;
      notes.push(`Skipped "${candidate.label}": it ${error.message}.`);
      return [];
    }
  };
}

/** A setting with fewer positions than the training length cannot replace the file's as it is. */
function tooShort(rows: readonly SrteRow[], trainedContext: number | undefined): string[] {
  if (trainedContext === undefined) return [];
  return rows
    .filter(
      ({ kind, settings }) =>
        kind !== 'preset' && settings.max_position_embeddings < trainedContext,
    )
    .map(
      ({ label, settings }) =>
        `"${label}" has ${thousands(settings.max_position_embeddings)} positions, fewer than ` +
        `the ${thousands(trainedContext)} tokens of training.max_seq_length.`,
    );
}

function strategyCandidates(
  config: HybridConfig,
  ranks: readonly number[],
  notes: string[],
): SrteCandidate[] {
  const { hidden_size: hidden, max_position_embeddings: rows } = config;
  const skipped: string[] = [];
  const isLowRank = (rank: number, what: string) => {
    if (rank < hidden) return true;
    skipped.push(what);
    return false;
  };
  const strategy = (id: string, label: string, change: Partial<HybridConfig>): SrteCandidate => ({
    id,
    label,
    kind: 'strategy',
    config: { ...config, ...change },
  });
  const { vocab_size: _, ...recommended } = srteSettings(presetConfig('recommended'));
  const candidates = [
    strategy('not-shared', 'not shared', NOT_SHARED),
    strategy('shared', 'shared', SHARED),
    ...distinct(ranks)
      .filter((rank) => isLowRank(rank, `"shared, rank ${rank}"`))
      .map((rank) =>
        strategy(`shared-rank-${rank}`, `shared, rank ${rank}`, {
          ...SHARED,
          srte_factorized_rank: rank,
        }),
      ),
    strategy('shared-sincos', 'shared, sincos', { ...SHARED, srte_encoding: 'sincos' }),
    ...(isLowRank(recommended.srte_factorized_rank, '"recommended"')
      ? [
          strategy('recommended', 'recommended', {
            ...recommended,
            max_position_embeddings: Math.min(rows, recommended.max_position_embeddings),
          }),
        ]
      : []),
  ];
  if (skipped.length > 0) {
    notes.push(
      `Skipped ${joined(skipped)}: a rank from hidden_size ${hidden} on is the full table.`,
    );
  }
  return candidates;
}

/** The file's setting, if it is not one of the strategies. */
function ownCandidate(config: HybridConfig, strategies: readonly SrteCandidate[]): SrteCandidate[] {
  const own = fingerprint(config);
  return strategies.some((candidate) => fingerprint(candidate.config) === own)
    ? []
    : [{ id: 'file', label: 'as in the file', kind: 'strategy', config }];
}

function leverCandidates(config: HybridConfig, options: SrteOptions): SrteCandidate[] {
  const lever = (id: string, label: string, change: Partial<HybridConfig>): SrteCandidate => ({
    id,
    label,
    kind: 'lever',
    config: { ...config, ...change },
  });
  const { maxPositions = [], vocabSizes = [], tie = false } = options;
  return [
    ...distinct(maxPositions).map((rows) =>
      lever(`positions-${rows}`, `${thousands(rows)} positions`, { max_position_embeddings: rows }),
    ),
    ...distinct(vocabSizes).map((size) =>
      lever(`vocabulary-${size}`, `vocabulary ${thousands(size)}`, { vocab_size: size }),
    ),
    ...(tie ? [lever('tied', 'tied head', { tie_word_embeddings: true })] : []),
  ];
}

function presetCandidates(): SrteCandidate[] {
  return PROPOSED_PRESETS.map((name) => ({
    id: `preset-${name}`,
    label: `preset ${name}`,
    kind: 'preset',
    config: presetConfig(name),
  }));
}

const presetConfig = (name: string): HybridConfig =>
  hybrid.schema.parse(presetDocument(hybrid.name, name)).model;

function srteSettings(config: HybridConfig) {
  const { srte_encoding, srte_share_across_layers, srte_factorized_rank } = config;
  const { max_position_embeddings, vocab_size, tie_word_embeddings } = config;
  return {
    /** Whether tables are learned, or sine and cosine. */
    srte_encoding,
    /** Whether layers share their table. */
    srte_share_across_layers,
    /** Rank of a table; 0 for a full one. @integer */
    srte_factorized_rank,
    /** Positions of a table. @integer */
    max_position_embeddings,
    /** Size of the vocabulary. @integer */
    vocab_size,
    /** Whether the head is the embedding. */
    tie_word_embeddings,
  };
}

/** Equal for configurations that build the same model: a rank without effect makes no difference. */
function fingerprint(config: HybridConfig): string {
  return JSON.stringify({ ...config, srte_factorized_rank: srteRank(config) ?? 0 });
}
