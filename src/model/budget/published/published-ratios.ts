/** Explains a published ratio or percentage by pairs of counts of a family's models. */

import { percentText } from '../../../base/text/units.js';
import { sumOf } from '../../../base/values.js';
import type { PublishedRatio } from '../../../config/parse-published.js';
import type { Family, FamilyDocument } from '../../architecture/family.js';
import type { LanguageModel } from '../../architecture/layer.js';
import { COMPONENTS } from '../../architecture/layer.js';
import { hybrid } from '../../architecture/models/hybrid.js';
import type { SrteLayout } from '../../architecture/srte-layout.js';
import { srteParameters } from '../../architecture/srte-layout.js';
import { valueWidth, walk } from '../../architecture/walk.js';
import { presetCounts } from '../family-counts.js';
import { parameterFigures } from '../parameters.js';
import type { ResolvedSetting } from '../profile-model.js';
import { compareSrte, PUBLISHED_RANKS, srteLayoutOfRow } from '../srte-comparison.js';
import type { CountingError, Explanation, PublishedReport } from './explanations.js';
import { MOST_EXPLANATIONS, nearestOf, ranked } from './explanations.js';
import { knownRatios } from './known-ratios.js';

/** A count that others of its group are compared with. */
interface Compared {
  readonly group: string;
  readonly id: string;
  readonly text: string;
  readonly value: number;
  /** Implausibility of a pair with it. */
  readonly weight: number;
  readonly layout?: SrteLayout;
  /** Set for a part, which is compared only with wholes of its group. */
  readonly isPart?: boolean;
}

/** A model with the family and the document that it comes from. */
export interface RatioModel {
  readonly family: Family;
  readonly document: FamilyDocument;
  readonly model: LanguageModel;
}

/**
 * Tries the quotient of each two counts of a kind, for a percentage also the share that one saves of the other, and
 * quotients of other figures.
 */
export function explainRatio(
  { family, document, model }: RatioModel,
  published: PublishedRatio,
  setting: ResolvedSetting,
): PublishedReport<number> {
  const compared = [
    ...parameterCounts(family, model),
    ...componentCounts(model),
    ...vocabularyCounts(model),
    ...typeCounts(),
    ...cacheCounts(model),
    ...srteCounts(family, document, model),
  ].filter(({ value }) => value > 0);
  const { unit } = published;
  const all = [
    ...compared.flatMap((a) =>
      compared
        .filter(
          (b) => b !== a && b.group === a.group && b.value !== a.value && !(a.isPart && b.isPart),
        )
        .flatMap((b) => quotients(a, b, unit)),
    ),
    ...knownRatios(model, setting, unit),
  ];
  return { unit, difference: null, ...judgedRatios(all, published) };
}

/** The figures that a ratio covers, rounded or truncated, or the nearest. */
export function judgedRatios(
  all: readonly Explanation<number>[],
  { value, tolerance, above = tolerance }: PublishedRatio,
) {
  // The last bits of decimal digits are not exact in binary.
  const slack = value * 1e-9;
  const within = (least: number, most: number) =>
    all.filter((each) => each.value >= least - slack && each.value <= most + slack);
  const rounded = within(value - tolerance, value + above);
  const found =
    rounded.length > 0
      ? rounded
      : within(value, value + 2 * tolerance).map((each) => ({
          ...each,
          reasons: [
            ...each.reasons,
            { id: 'cut-off', text: 'cut off instead of rounded', weight: 0.3 },
          ],
        }));
  return {
    value,
    tolerance,
    ...(above > 2.001 * tolerance && { upTo: value + above - tolerance }),
    explanations: ranked(found, value).slice(0, MOST_EXPLANATIONS),
    ...(found.length === 0 && { nearest: nearestOf(all, value) }),
    tried: all.length,
  };
}

function quotients(a: Compared, b: Compared, unit: PublishedRatio['unit']): Explanation<number>[] {
  // A quotient of two variants says little without the model that both are compared with.
  const apart = a.weight > 0.5 && b.weight > 0.5 && a.group === b.group ? 0.3 : 0;
  const reason = (id: string, text: string, more = 0): CountingError => ({
    id: `${id}: ${a.id}, ${b.id}`,
    text,
    weight: a.weight + b.weight + apart + more,
  });
  const others = lengthReasons(a, b, unit);
  const quotient: Explanation<number> = {
    value: a.value / b.value,
    reasons: [reason('ratio', `${a.text} ÷ ${b.text}`), ...others],
  };
  if (unit === 'ratio') return [quotient];
  if (a.value > b.value) return [];
  const text = `${a.text} in place of ${b.text}: the part saved`;
  return [
    quotient,
    // All but a part is rarely meant.
    {
      value: 1 - a.value / b.value,
      reasons: [reason('saved', text, a.isPart ? 0.5 : 0.1), ...others],
    },
  ];
}

/** Two tables of different lengths, and their ratio at either length. */
function lengthReasons(
  { layout: a }: Compared,
  { layout: b }: Compared,
  unit: PublishedRatio['unit'],
): CountingError[] {
  if (a === undefined || b === undefined || a.positions === b.positions) return [];
  const ratio = (positions: number) =>
    srteParameters({ ...a, positions }) / srteParameters({ ...b, positions });
  const at = (positions: number) =>
    unit === 'ratio'
      ? `${ratio(positions).toPrecision(3)} × at ${groupedDigits(positions)}`
      : `${percentText(ratio(positions))}, or ${percentText(1 - ratio(positions))} saved, at ${groupedDigits(positions)}`;
  const text =
    `this compares ${groupedDigits(a.positions)} with ${groupedDigits(b.positions)} positions: like for like ` +
    `${at(a.positions)}, ${at(b.positions)}`;
  return [{ id: 'lengths', text, weight: unit === 'ratio' ? 0.3 : 0.1 }];
}

const groupedDigits = (count: number) => count.toLocaleString('en-US');

/** The model and the presets of its family. */
function parameterCounts(family: Family, model: LanguageModel): Compared[] {
  if (family.name === hybrid.name) return [];
  const own = Number(parameterFigures(model).total.value);
  const one = { group: 'parameters' };
  return [
    { ...one, id: 'own', text: 'this model', value: own, weight: 0.5 },
    ...presetCounts(family).map(({ id, text, value }) => ({
      ...one,
      id,
      text,
      value: Number(value),
      weight: 0.8,
    })),
  ];
}

/** Components and their sums, each a part of the total. */
function componentCounts(model: LanguageModel): Compared[] {
  const { total, body, embedding, nonEmbedding, active, components } = parameterFigures(model);
  const matrix = model.embedding.weight.elements;
  const rule = 12 * model.blocks.length * model.hidden ** 2 + matrix;
  const part = (id: string, text: string, value: number | bigint, weight: number): Compared => ({
    group: 'components',
    id,
    text,
    value: Number(value),
    weight,
  });
  return [
    part('total', 'all parameters', total.value, 0.5),
    part('body', 'the parameters of the body', body.value, 0.7),
    part('embedding', 'the parameters of the embedding', embedding.value, 0.6),
    part('non-embedding', 'the parameters without the embedding', nonEmbedding.value, 0.7),
    part('active', 'the parameters active for a token', active.value, 0.6),
    part(
      'rule-12',
      `the rule 12 · L · d² with one embedding, ${groupedDigits(rule)} instead of all ${groupedDigits(Number(total.value))} parameters`,
      rule,
      1.1,
    ),
    ...components
      .filter(({ component }) => component !== 'embedding')
      .map(({ component, parameters: { value } }) =>
        part(component, `the parameters of ${COMPONENTS[component]}`, value, 0.6),
      )
      .map((each) => ({ ...each, isPart: true })),
  ];
}

/** One and two matrices of the vocabulary, and the totals with each: what a tie saves. */
function vocabularyCounts(model: LanguageModel): Compared[] {
  const matrix = model.embedding.weight.elements;
  const isTied = model.head.weight === model.embedding.weight;
  const total = Number(parameterFigures(model).total.value);
  const one = isTied ? total : total - matrix;
  const count = (group: string, id: string, text: string, value: number): Compared => ({
    group,
    id,
    text,
    value,
    weight: 0.5,
  });
  return [
    count('matrices', 'tied', 'one matrix of the vocabulary', matrix),
    count('matrices', 'untied', 'two matrices of the vocabulary', 2 * matrix),
    count('tie', 'total-tied', 'all parameters with a tied head', one),
    count('tie', 'total-untied', 'all parameters with a head of its own', one + matrix),
  ];
}

/** Weights in each width. */
const typeCounts = (): Compared[] =>
  [32, 16, 8, 4].map((bits) => ({
    group: 'types',
    id: `bits-${bits}`,
    text: `weights of ${bits} bits`,
    value: bits,
    weight: bits === 16 ? 0.6 : 0.7,
  }));

/** Heads that share keys and values, and caches with other numbers of them. */
function cacheCounts(model: LanguageModel): Compared[] {
  const attentions = walk(model).flatMap(({ layer }) =>
    layer.kind === 'attention' && typeof layer.sharing !== 'object' ? [layer] : [],
  );
  const values = (heads: 'heads' | 'keyValueHeads') =>
    sumOf(attentions, (layer) => layer[heads] * (layer.headDim + valueWidth(layer)));
  const most = Math.min(...attentions.map(({ heads }) => heads));
  const counts = [1, 2, 4, 8, 16].filter(
    (keys) => keys < most && attentions.every(({ heads }) => heads % keys === 0),
  );
  const own = values('keyValueHeads');
  const others = counts
    .map((keys) => ({
      keys,
      value: sumOf(attentions, (layer) => keys * (layer.headDim + valueWidth(layer))),
    }))
    .filter(({ value }) => value !== own)
    .map(({ keys, value }) => ({
      ...cache(
        `cache-${keys}`,
        `a KV cache with ${keys} key and value ${keys === 1 ? 'head' : 'heads'} for all query heads`,
        value,
      ),
      weight: 0.7,
    }));
  return [
    cache('cache', 'this KV cache', own),
    cache(
      'cache-all-heads',
      'a KV cache with keys and values for each query head',
      values('heads'),
    ),
    ...others,
  ];
}

const cache = (id: string, text: string, value: number): Compared => ({
  group: 'cache',
  id,
  text,
  value,
  weight: 0.5,
});

/** Totals and tables of the published SRTE strategies. */
function srteCounts(family: Family, document: FamilyDocument, model: LanguageModel): Compared[] {
  if (family.name !== hybrid.name) return [];
  const { model: config } = hybrid.schema.parse(document);
  const { rows } = compareSrte(config, { dtype: 'bf16', ranks: PUBLISHED_RANKS });
  return rows.flatMap((row): Compared[] => {
    const { id, label, parameters, srteParameters: srte, current } = row;
    const weight = current || id === 'not-shared' ? 0.5 : 0.6;
    const layout = srteLayoutOfRow(row, model);
    return [
      { group: 'totals', id, text: `parameters of "${label}"`, value: parameters, weight },
      { group: 'srte', id: `srte-${id}`, text: `SRTE of "${label}"`, value: srte, weight, layout },
      // The share of a table in its own model.
      ...[
        { id: `whole-${id}`, text: `all parameters of "${label}"`, value: parameters },
        { id: `table-${id}`, text: `the SRTE of "${label}"`, value: srte, isPart: true },
      ].map((each) => ({ group: `row-${id}`, weight: 0.5, ...each })),
    ];
  });
}
