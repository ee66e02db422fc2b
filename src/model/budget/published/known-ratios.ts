/**
 * Figures of a model other than parameter counts and their quotients: shapes, scores of a context, the work that a
 * cache saves, norms.
 */

import { formatInteger, percentText, significant } from '../../../base/text/units.js';
import { sumOf } from '../../../base/values.js';
import type { PublishedRatio } from '../../../config/parse-published.js';
import type { LanguageModel } from '../../architecture/layer.js';
import { walk } from '../../architecture/walk.js';
import type { KnownCount } from '../family-counts.js';
import { type GenerationSetting, generationFlopsOf } from '../flops.js';
import { normOperations } from '../norm-operations.js';
import type { ResolvedSetting } from '../profile-model.js';
import type { Explanation } from './explanations.js';

type KnownRatio = Explanation<number>;

const known = (id: string, text: string, value: number, weight: number): KnownRatio => ({
  value,
  reasons: [{ id, text, weight }],
});

/** Figures that publications print as a ratio, or as a percentage. */
export const knownRatios = (
  model: LanguageModel,
  setting: ResolvedSetting,
  unit: PublishedRatio['unit'],
): KnownRatio[] =>
  unit === 'ratio'
    ? [...shapeRatios(model), ...cachingRatios(model, setting)]
    : normShares(model.hidden);

/** Quotients of the sizes of a config. */
function shapeRatios(model: LanguageModel): KnownRatio[] {
  const { hidden, blocks } = model;
  const layers = walk(model).map(({ layer }) => layer);
  const groups = new Set(
    layers.flatMap((layer) =>
      layer.kind === 'attention' ? [layer.heads / layer.keyValueHeads] : [],
    ),
  );
  const widths = new Set(
    layers.flatMap((layer) =>
      layer.kind === 'gatedMlp' && layer.down.kind === 'linear'
        ? [layer.down.weight.elements / hidden]
        : [],
    ),
  );
  return [
    known(
      'width-layers',
      `width ÷ layers, ${hidden} ÷ ${blocks.length}`,
      hidden / blocks.length,
      1,
    ),
    ...[...groups].map((group) =>
      known(`group-${group}`, 'query heads of a key and value head', group, 1.1),
    ),
    ...[...widths].map((width) =>
      known(
        `feed-forward-${width}`,
        `feed-forward width ÷ width, ${width} ÷ ${hidden}`,
        width / hidden,
        1.2,
      ),
    ),
  ];
}

/** Prompts and answers of published examples. */
const PROMPTS = [64, 128, 256, 512, 1024, 2048, 4096] as const;
const ANSWERS = [10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024] as const;

/** Longest answer that is tried within a named context. */
const MOST_ANSWER = 8192;

/** Answers for a named context whose FLOPs are counted; more take too long. */
const MOST_GENERATED = 128;

/**
 * The work that a cache saves in an answer of N tokens to a prompt of P: without it each token reads all before again.
 * Often the pass over the prompt, which a cache needs too, is left out.
 */
function cachingRatios(
  model: LanguageModel,
  { inference, origins }: ResolvedSetting,
): KnownRatio[] {
  const { context } = inference;
  const isNamed = origins.context === 'flag';
  const named = isNamed
    ? Array.from({ length: Math.min(MOST_ANSWER, Math.max(0, context - 1)) }, (_, index) => ({
        prompt: context - index - 1,
        generated: index + 1,
      }))
    : [];
  const usual = [...PROMPTS, ...(isNamed ? [context] : [])].flatMap((prompt) =>
    ANSWERS.map((generated) => ({ prompt, generated })),
  );
  const distinct = new Map(
    [...usual, ...named].map((each) => [`${each.prompt}-${each.generated}`, each]),
  );
  return [...distinct.values()].flatMap(({ prompt, generated }) => {
    if (prompt + generated > model.positions) return [];
    const isUsual = (ANSWERS as readonly number[]).includes(generated);
    const fits = !isNamed || prompt + generated === context || prompt === context;
    const weight = (isUsual ? 1 : 1.3) + (fits ? 0 : 1);
    return passRatios(model, { prompt, generated }, weight);
  });
}

/** Counts of a named context: scores, and tokens read without a cache. */
export function contextCounts(
  model: LanguageModel,
  { inference: { context }, origins }: ResolvedSetting,
): KnownCount[] {
  if (origins.context !== 'flag') return [];
  const heads = sumOf(walk(model), ({ layer }) => (layer.kind === 'attention' ? layer.heads : 0));
  const tokens = formatInteger(context);
  const answers = ANSWERS.filter((generated) => generated < context).map((generated) => {
    const again = generated * (context - generated) + (generated * (generated - 1)) / 2;
    const text = `tokens read without a cache, for ${generated} tokens after a prompt of ${formatInteger(context - generated)}, no parameters`;
    return { id: `reads-${generated}`, text, value: BigInt(again), weight: 1.6 };
  });
  const scores = {
    id: 'scores',
    text: `scores of ${tokens} tokens, ${tokens}² in each of ${formatInteger(heads)} heads of all layers, no parameters`,
    value: BigInt(context) ** 2n * BigInt(heads),
    weight: 1.1,
  };
  return [scores, ...answers].map((each) => ({ ...each, isDimension: true }));
}

/** Tokens read with and without a cache, for each of the ways to count the prompt. */
function passRatios(
  model: LanguageModel,
  { prompt, generated }: GenerationSetting,
  weight: number,
): KnownRatio[] {
  const again = generated * prompt + (generated * (generated - 1)) / 2;
  const once = prompt + generated - 1;
  const what = `${formatInteger(generated)} tokens after a prompt of ${formatInteger(prompt)}`;
  const right = again / once;
  const flops = () =>
    generated <= MOST_GENERATED
      ? `, in FLOPs ${significant(generationFlopsOf(model, { prompt, generated }).ratio)} ×`
      : '';
  const found = [
    {
      id: 'cache',
      value: right,
      text: () =>
        `tokens read without a cache ÷ with one, ${formatInteger(again)} ÷ ${formatInteger(once)}, for ${what}`,
      weight,
    },
    {
      id: 'cache-without-prompt',
      value: again / generated,
      text: () =>
        `tokens read without a cache ÷ tokens of the answer, ${formatInteger(again)} ÷ ${formatInteger(generated)}, for ${what}; ` +
        `this leaves out the pass over the prompt: with it, the ratio is ${significant(right)} ×${flops()}`,
      weight: weight + 0.3,
    },
  ];
  return found.map(({ id, value, text, weight: each }) => ({
    value,
    reasons: [
      {
        id: `${id}-${prompt}-${generated}`,
        // The texts of thousands of candidates are not needed.
        get text() {
          return text();
        },
        weight: each,
      },
    ],
  }));
}

function normShares(width: number): KnownRatio[] {
  const { saved } = normOperations(width);
  const text = `operations of RMSNorm in place of LayerNorm on ${formatInteger(width)} values: the part saved`;
  const rule =
    'the rule of 5 operations a value for LayerNorm and 2 for RMSNorm: the part saved. ' +
    `Counted one by one it is ${percentText(saved)}`;
  return [known('norm', text, saved, 1.2), known('norm-rule', rule, 3 / 5, 1.5)];
}
