/** A small model of the same structure, for when the model itself is too large for the machine. */
import type { FamilyName } from '../architecture/families.js';
import type { DocumentOf } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { type HybridConfig, hybrid } from '../architecture/models/hybrid.js';

/** A value of the configuration, before and after. */
export interface TwinChange {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

export interface Twin {
  readonly model: LanguageModel;
  readonly changes: readonly TwinChange[];
}

/**
 * The twin of a model.
 * @param document Of the family's schema, parsed.
 * @param tokens That it has to take.
 */
export function twinOf(family: FamilyName, document: unknown, tokens: number): Twin {
  const twin = (TWINS as Partial<Record<FamilyName, (typeof TWINS)['hybrid']>>)[family];
  if (!twin) throw new Error(`no twin for ${family}`);
  return twin(document, tokens);
}

const TWINS = {
  hybrid: (document, tokens) => hybridTwin(document as DocumentOf<typeof hybrid>, tokens),
} as const satisfies Partial<Record<FamilyName, (document: unknown, tokens: number) => Twin>>;

const HIDDEN = 256;
const LAYERS = 4;
const VOCABULARY = 1024;
const POSITIONS = 2048;

/** As many heads as before, each narrower; ranks in proportion to the width. */
function hybridTwin(document: DocumentOf<typeof hybrid>, tokens: number): Twin {
  const config = document.model;
  const { num_heads, hidden_size } = config;
  const headDim = Math.min(
    hidden_size / num_heads,
    Math.max(2, 2 * Math.floor(HIDDEN / num_heads / 2)),
  );
  const hidden = num_heads * headDim;
  const inProportion = (rank: number) =>
    Math.min(rank, Math.max(1, Math.round((rank * hidden) / hidden_size)));
  const smaller = {
    hidden_size: hidden,
    num_layers: Math.min(config.num_layers, LAYERS),
    vocab_size: Math.min(config.vocab_size, VOCABULARY),
    max_position_embeddings: Math.min(config.max_position_embeddings, Math.max(tokens, POSITIONS)),
    // So that the window's rule shows.
    window_size: Math.min(config.window_size, Math.max(1, Math.floor(tokens / 2))),
    gate_rank: inProportion(config.gate_rank),
    srte_factorized_rank: inProportion(config.srte_factorized_rank),
  } satisfies Partial<HybridConfig>;
  const changes = (Object.keys(smaller) as (keyof typeof smaller)[])
    .map((key) => ({ path: `model.${key}`, from: config[key], to: smaller[key] }))
    .filter(({ from, to }) => from !== to);
  return { model: hybrid.build({ ...document, model: { ...config, ...smaller } }), changes };
}
