/** Parameter counts of families' presets, and of other forms of a model. */
import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import type { Architecture, Family, FamilyDocument } from '../architecture/family.js';
import type { Component, LanguageModel } from '../architecture/layer.js';
import { COMPONENTS } from '../architecture/layer.js';
import { hybrid } from '../architecture/models/hybrid.js';
import { LimitError } from '../architecture/param.js';
import { presetsOf } from '../architecture/presets.js';
import type { SrteLayout } from '../architecture/srte-layout.js';
import { srteLayoutOf, srteParameters } from '../architecture/srte-layout.js';
import { walk } from '../architecture/walk.js';
import { countParameters, parameterFigures } from './parameters.js';
import { compareSrte, PUBLISHED_RANKS } from './srte-comparison.js';

export interface PresetSummary {
  /** Name without its family. */
  readonly name: string;
  /** Description for people. */
  readonly title: string;
  /** Parameters, shared tensors once. @count */
  readonly parameters: number;
  /** Name of the series of a published model: `Qwen3`. */
  readonly series?: string;
}

export interface FamilySummary {
  /** Name of the family. */
  readonly name: string;
  /** Description for people. */
  readonly title: string;
  readonly architecture: Architecture;
  /** Whether a `config.json` of Hugging Face is read. */
  readonly huggingFace: boolean;
  /** Ready models. */
  readonly presets: readonly PresetSummary[];
}

/**
 * Families with their presets.
 * @answer minimind list --json
 */
export interface FamilyList {
  readonly schema: 'minimind/list@1';
  /** Families, all or those that match. */
  readonly families: readonly FamilySummary[];
}

/** Every family with its presets and their counts. */
export async function describeFamilies(): Promise<FamilySummary[]> {
  const families = await Promise.all(FAMILY_NAMES.map(loadFamily));
  return families.map(
    ({ name, title, architecture = 'dense', schema, build, fromHuggingFace }) => ({
      name,
      title,
      architecture,
      huggingFace: fromHuggingFace !== undefined,
      presets: presetsOf(name).map(({ name: preset, title, document }) => ({
        name: preset,
        title,
        parameters: countParameters(build(schema.parse(document))).parameters,
      })),
    }),
  );
}

// Counts of other forms or parts of a model: rows of a published comparison

/** A number of parameters and its meaning. */
export interface KnownCount {
  /** Stable identifier for programs: `preset-recommended`. */
  readonly id: string;
  readonly text: string;
  readonly value: bigint;
  /** See `CountingError`; default 1.2. */
  readonly weight?: number;
  /** Set for a whole model, with which the described one can be compared. */
  readonly isWhole?: true;
  /** Set for a number that counts no parameters. */
  readonly isDimension?: true;
}

/**
 * Counts of the model's components and the family's presets, of the model with other settings, and by common rules.
 * Excludes the model's own total.
 */
export function knownCounts(
  family: Family,
  document: FamilyDocument,
  model: LanguageModel,
): KnownCount[] {
  const { parameters: own, byComponent } = countParameters(model);
  const all = [
    ...Object.entries(byComponent).map(([component, value]) =>
      known(
        `component-${component}`,
        `the parameters of ${COMPONENTS[component as Component]} alone`,
        value,
      ),
    ),
    ...presetCounts(family),
    ...srteCounts(family, document),
    ...bodyCounts(model),
    ...ruleCounts(model),
    ...dimensionCounts(model),
    ...srteLeverCounts(model),
    ...groupedCounts(family, document),
    ...bytesAsCounts(own),
  ];
  const others = all.filter(
    ({ id, value }) => value !== BigInt(own) && (value > 0n || id === NO_SRTE),
  );
  // Of several names for a count, the first.
  const byValue = new Map(others.toReversed().map((each) => [each.value, each]));
  return others.filter((each) => byValue.get(each.value) === each);
}

/** An SRTE without parameters is published as 0. */
const NO_SRTE = 'srte-shared-sincos-alone';

const known = (id: string, text: string, value: number, weight?: number): KnownCount => ({
  id,
  text,
  value: BigInt(value),
  ...(weight !== undefined && { weight }),
});

const whole = (...count: Parameters<typeof known>): KnownCount => ({
  ...known(...count),
  isWhole: true,
});

/** Parts of a model that publications print as its size. */
function bodyCounts(model: LanguageModel): KnownCount[] {
  const { active, activeWithoutEmbedding, body, nonEmbedding } = parameterFigures(model);
  return [
    known('body', 'the parameters of the body, without embeddings and head', Number(body.value)),
    known('non-embedding', 'the parameters without the embedding', Number(nonEmbedding.value)),
    known('active', 'the parameters active for a token', Number(active.value)),
    known(
      'active-non-embedding',
      'the parameters active for a token, without the embedding',
      Number(activeWithoutEmbedding.value),
    ),
  ];
}

/** The rule of 12 · layers · width² (arXiv 2001.08361), with 0 to 2 vocabulary matrices. */
function ruleCounts({ blocks, hidden, embedding }: LanguageModel): KnownCount[] {
  const body = 12 * blocks.length * hidden ** 2;
  const rule = `the rule 12 · L · d² with ${blocks.length} layers and a width of ${hidden}`;
  const matrix = embedding.weight.elements;
  return [
    known('rule-12', `${rule}, an estimate without embeddings`, body, RULE_WEIGHT),
    known('rule-12-embedding', `${rule}, and one embedding`, body + matrix, RULE_WEIGHT),
    known('rule-12-head', `${rule}, and embedding and head`, body + 2 * matrix, RULE_WEIGHT),
  ];
}

/** Numbers that do not count parameters: widths, and the square root that a rule for the vocabulary has. */
function dimensionCounts(model: LanguageModel): KnownCount[] {
  const { hidden, embedding } = model;
  const { parameters } = countParameters(model);
  const root = Math.sqrt(parameters);
  const widths = new Set(
    walk(model).flatMap(({ layer }) =>
      layer.kind === 'gatedMlp' && layer.down.kind === 'linear'
        ? [layer.down.weight.elements / hidden]
        : [],
    ),
  );
  const rule = (8 * hidden) / 3;
  const rounded = Math.ceil(Math.floor(rule) / 64) * 64;
  const found = [...widths].map((width) => width.toLocaleString('en-US')).join(' or ');
  const ruleText =
    `8/3 · the width of ${hidden}, a feed-forward width and no parameters: rounded up to a multiple of 64 it is ` +
    `${rounded.toLocaleString('en-US')}; this model has ${found || 'none'}`;
  const rootText = `the square root of ${parameters.toLocaleString('en-US')} parameters; 100 times that is ${Math.round(100 * root).toLocaleString('en-US')}`;
  return [
    known('root', rootText, Math.round(root), 2),
    known('eight-thirds', ruleText, Math.floor(rule), 2),
    known('vocabulary', 'rows of the embedding, no parameters', embedding.weight.shape[0] ?? 0, 2),
    known('width', 'the width, no parameters', hidden, 2),
    ...[...widths].map((width) =>
      known(`feed-forward-${width}`, 'the width of a feed-forward layer, no parameters', width, 2),
    ),
  ].map((each) => ({ ...each, isDimension: true }));
}

/** An estimate is less likely than a count. */
const RULE_WEIGHT = 1.6;

/** Bytes of the weights, published as parameters. */
const bytesAsCounts = (parameters: number): KnownCount[] =>
  [4, 2].map((width) =>
    known(
      `bytes-${width}`,
      `bytes, ${width} for each parameter, not parameters`,
      width * parameters,
      2,
    ),
  );

/** The model with a key-value head for each query head, where heads share them. */
function groupedCounts(
  { schema, build, dimensions }: Family,
  document: FamilyDocument,
): KnownCount[] {
  const keys = dimensions?.keyValueHeads;
  if (dimensions === undefined || keys === undefined) return [];
  const heads = document.model[dimensions.heads];
  const model = { ...document.model, [keys]: heads };
  const { data } = schema.safeParse({ ...document, model });
  if (heads === document.model[keys] || data === undefined) return [];
  const text = 'the parameters of this model with a key-value head for each query head';
  return [whole('not-grouped', text, countParameters(build(data)).parameters, 1.5)];
}

/** Positions that SRTE tables are published with. */
const PUBLISHED_POSITIONS = [65_536, 32_768, 16_384] as const;
const LEVER_RANKS = [32, 64, 128, 256] as const;

/** The model with another SRTE: sharing, rank, length and tie together. */
function srteLeverCounts(model: LanguageModel): KnownCount[] {
  const own = srteLayoutOf(model);
  if (own === undefined) return [];
  const { parameters } = countParameters(model);
  const matrix = model.embedding.weight.elements;
  const isTied = model.head.weight === model.embedding.weight;
  const without = parameters - srteParameters(own) + (isTied ? matrix : 0);
  const table = { ...own, form: 'table', rank: null } as const;
  const forms: readonly SrteLayout[] = [
    { ...table, sharing: 'per-layer' },
    { ...table, sharing: 'shared' },
    ...LEVER_RANKS.filter((rank) => rank < own.hidden).map(
      (rank): SrteLayout => ({ ...own, sharing: 'shared', form: 'low-rank', rank }),
    ),
    { ...own, sharing: 'shared', form: 'sincos', rank: null },
  ];
  const lengths = [...new Set([own.positions, ...PUBLISHED_POSITIONS])];
  return forms.flatMap((form) =>
    lengths.flatMap((positions) => {
      const layout = { ...form, positions };
      const srte = srteParameters(layout);
      const text = `${layoutText(layout)}, ${positions.toLocaleString('en-US')} positions`;
      const id = `srte-${form.sharing}-${form.rank ?? form.form}-${positions}`;
      const changes =
        Number(positions !== own.positions) +
        Number(form.sharing !== own.sharing || form.form !== own.form || form.rank !== own.rank);
      const total = (tied: boolean) =>
        whole(
          `${id}${tied ? '-tied' : ''}`,
          `the parameters of this model with ${text}${tied === isTied ? '' : tied ? ', tied head' : ', its head not tied'}`,
          without + srte - (tied ? matrix : 0),
          1.3 + 0.1 * (changes + Number(tied !== isTied)),
        );
      const alone = known(
        `${id}-alone`,
        `the parameters of ${text}, alone`,
        srte,
        1.4 + 0.1 * changes,
      );
      return changes === 0 && srte === 0 ? [total(!isTied)] : [total(false), total(true), alone];
    }),
  );
}

const layoutText = ({ sharing, form, rank }: SrteLayout): string =>
  form === 'sincos'
    ? 'a sincos SRTE'
    : `${sharing === 'shared' ? 'one SRTE for all layers' : 'an SRTE for each layer'}${rank === null ? '' : ` of rank ${rank}`}`;

export function presetCounts({ name: family, schema, build }: Family): KnownCount[] {
  return presetsOf(family).flatMap(({ name, document }) => {
    try {
      const { parameters } = countParameters(build(schema.parse(document)));
      return [
        whole(`preset-${name}`, `the parameters of the preset ${family}/${name}`, parameters),
      ];
    } catch (error) {
      if (error instanceof LimitError) return [];
      throw error;
    }
  });
}

function srteCounts(family: Family, document: FamilyDocument): KnownCount[] {
  if (family.name !== hybrid.name) return [];
  const { model: config } = hybrid.schema.parse(document);
  const { rows } = compareSrte(config, { dtype: 'bf16', ranks: PUBLISHED_RANKS });
  const shared = rows.find(({ id }) => id === 'shared')?.parameters;
  return rows.flatMap(({ id, label, parameters, srteParameters, savedParameters }) => [
    whole(`srte-${id}`, `the parameters of this model with the SRTE "${label}"`, parameters),
    known(`srte-${id}-alone`, `the SRTE of "${label}" alone`, srteParameters),
    known(
      `srte-${id}-saved`,
      `the parameters that "${label}" saves against the unshared model`,
      savedParameters ?? 0,
    ),
    known(
      `srte-${id}-saved-more`,
      `the parameters that "${label}" saves against "shared"`,
      (shared ?? parameters) - parameters,
      1.3,
    ),
  ]);
}
