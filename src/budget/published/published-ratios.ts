/** Explains a published ratio or percentage by pairs of counts of a family's models. */
import type { Family } from '../../architecture/family.js';
import type { LanguageModel } from '../../architecture/layer.js';
import { COMPONENTS } from '../../architecture/layer.js';
import { hybrid } from '../../architecture/models/hybrid.js';
import type { SrteLayout } from '../../architecture/srte-layout.js';
import { srteParameters } from '../../architecture/srte-layout.js';
import { walk } from '../../architecture/walk.js';
import type { PublishedRatio } from '../../config/parse-number.js';
import { sumOf } from '../../text/words.js';
import { presetCounts } from '../family-counts.js';
import { parameterFigures } from '../parameters.js';
import { compareSrte, PUBLISHED_RANKS, srteLayoutOfRow } from '../srte-comparison.js';
import type { CountingError, Explanation, PublishedReport } from './explain-published.js';
import { MOST_EXPLANATIONS, ranked } from './explain-published.js';

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

/** Tries the quotient of each two counts of a kind, and for a percentage also what one saves against the other. */
export function explainRatio(
  family: Family,
  document: unknown,
  model: LanguageModel,
  published: PublishedRatio,
): PublishedReport<number> {
  const compared = [
    ...parameterCounts(family, model),
    ...componentCounts(model),
    ...cacheCounts(model),
    ...srteCounts(family, document, model),
  ].filter(({ value }) => value > 0);
  const all = compared.flatMap((a) =>
    compared
      .filter(
        (b) => b !== a && b.group === a.group && b.value !== a.value && !(a.isPart && b.isPart),
      )
      .flatMap((b) => quotients(a, b, published.unit)),
  );
  const { value, tolerance, above = tolerance } = published;
  // The last bits of decimal digits are not exact in binary.
  const slack = value * 1e-9;
  const found = all.filter(
    (each) => each.value >= value - tolerance - slack && each.value <= value + above + slack,
  );
  return {
    unit: published.unit,
    value,
    tolerance,
    difference: null,
    explanations: ranked(found, value).slice(0, MOST_EXPLANATIONS),
    tried: all.length,
  };
}

function quotients(a: Compared, b: Compared, unit: PublishedRatio['unit']): Explanation<number>[] {
  const reason = (id: string, text: string, more = 0): CountingError => ({
    id: `${id}: ${a.id}, ${b.id}`,
    text,
    weight: a.weight + b.weight + more,
  });
  const others = lengthReasons(a, b);
  const quotient: Explanation<number> = {
    value: a.value / b.value,
    reasons: [reason('ratio', `${a.text} ÷ ${b.text}`), ...others],
  };
  if (unit === 'ratio') return [quotient];
  if (a.value > b.value) return [];
  const text = `${a.text} in place of ${b.text}: the part saved`;
  return [
    quotient,
    { value: 1 - a.value / b.value, reasons: [reason('saved', text, 0.1), ...others] },
  ];
}

/** Two tables of different lengths, and their ratio at either length. */
function lengthReasons({ layout: a }: Compared, { layout: b }: Compared): CountingError[] {
  if (a === undefined || b === undefined || a.positions === b.positions) return [];
  const at = (positions: number) =>
    `${(srteParameters({ ...a, positions }) / srteParameters({ ...b, positions })).toPrecision(3)} × at ${shown(positions)}`;
  const text =
    `this compares ${shown(a.positions)} with ${shown(b.positions)} positions: like for like ` +
    `${at(a.positions)}, ${at(b.positions)}`;
  return [{ id: 'lengths', text, weight: 0.3 }];
}

const shown = (count: number) => count.toLocaleString('en-US');

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
    ...components
      .filter(({ component }) => component !== 'embedding')
      .map(({ component, parameters: { value } }) =>
        part(component, `the parameters of ${COMPONENTS[component]}`, value, 0.6),
      )
      .map((each) => ({ ...each, isPart: true })),
  ];
}

/** Heads that share keys and values, and a cache without sharing. */
function cacheCounts(model: LanguageModel): Compared[] {
  const attentions = walk(model).flatMap(({ layer }) =>
    layer.kind === 'attention' && typeof layer.sharing !== 'object' ? [layer] : [],
  );
  const values = (heads: 'heads' | 'keyValueHeads') =>
    sumOf(attentions, (layer) => 2 * layer[heads] * layer.headDim);
  const cache = (id: string, text: string, value: number): Compared => ({
    group: 'cache',
    id,
    text,
    value,
    weight: 0.5,
  });
  return [
    cache('cache', 'this KV cache', values('keyValueHeads')),
    cache(
      'cache-all-heads',
      'a KV cache with keys and values for each query head',
      values('heads'),
    ),
  ];
}

/** Totals and tables of the published SRTE strategies. */
function srteCounts(family: Family, document: unknown, model: LanguageModel): Compared[] {
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
    ];
  });
}
