import { describe, expect, it } from 'vitest';
import { parseDtype } from '../../../src/base/tensor/dtype.js';
import { parsePublished } from '../../../src/config/parse-published.js';
import type { Family } from '../../../src/model/architecture/family.js';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { minigpt } from '../../../src/model/architecture/models/minigpt.js';
import { minimind } from '../../../src/model/architecture/models/minimind.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';
import { knownCounts } from '../../../src/model/budget/family-counts.js';
import { profileModel, resolveSetting } from '../../../src/model/budget/profile-model.js';
import { explainFigure } from '../../../src/model/budget/published/explain-figure.js';

const FAMILIES = { hybrid, minigpt, minimind } as const satisfies Record<string, Family>;
type Name = keyof typeof FAMILIES;

/** Named settings of the command line. */
interface Named {
  readonly context?: number;
  readonly batch?: number;
}

function reportOf(name: Name, preset: string, text: string, named: Named = {}) {
  const family: Family = FAMILIES[name];
  const document = family.schema.parse(presetDocument(name, preset));
  const model = family.build(document);
  const published = parsePublished(text);
  if (published === undefined) throw new Error(`cannot read ${text}`);
  const setting = resolveSetting(
    { ...named, dtype: 'bf16', causal: false, optimizer: 'adamw' },
    {},
    model.positions,
  );
  const dtype = published.unit === 'bytes' ? parseDtype(published.type ?? '') : undefined;
  const profile = profileModel(model, setting);
  return explainFigure({ family, document, model }, published, profile, setting, dtype);
}

type Explanations = ReturnType<typeof reportOf>['explanations'];

const shown = (explanations: Explanations = []) =>
  explanations.map(({ reasons, value }) => ({
    text: reasons.map((reason) => reason.text).join('; '),
    value: Number(value),
  }));

/** Explanations of a number in the syntax of the command line: the text of their reasons, and their values. */
const explained = (...[name, preset, text, named]: Parameters<typeof reportOf>) =>
  shown(reportOf(name, preset, text, named).explanations);

describe('a published count', () => {
  it.each<[string, Name, string, string, RegExp, number]>([
    ['a preset', 'hybrid', 'recommended', '22.144B', /preset hybrid\/original/, 22_143_967_232],
    [
      'several levers',
      'hybrid',
      'aggressive',
      '2.59475B',
      /one SRTE for all layers of rank 256, 16,384 positions/,
      2_594_754_560,
    ],
    [
      'one table alone',
      'hybrid',
      'recommended',
      '8.590B',
      /an SRTE for each layer, 65,536 positions, alone/,
      8_589_934_592,
    ],
    [
      'the body',
      'minigpt',
      'minigpt-small',
      '~25M',
      /embedding, tied to the head, left out/,
      25_666_944,
    ],
    [
      'the rule',
      'minigpt',
      'minigpt-tiny',
      '1.57M',
      /12 · L · d² with 8 layers and a width of 128/,
      12 * 8 * 128 ** 2,
    ],
    [
      'the rule with embeddings',
      'minimind',
      'minimind2-small',
      '28.4M',
      /12 · L · d².* and one embedding/,
      12 * 8 * 512 ** 2 + 6400 * 512,
    ],
    [
      'no shared heads',
      'minimind',
      'minimind2-small',
      '28,975,616',
      /key-value head for each query head/,
      28_975_616,
    ],
    ['bytes', 'minimind', 'minimind2-small', '51.7M', /bytes, 2 for each parameter/, 51_659_776],
  ])('is explained by %s', (_, family, preset, text, expected, value) => {
    expect(explained(family, preset, text)).toContainEqual({
      text: expect.stringMatching(expected),
      value,
    });
  });
});

describe('a published size', () => {
  it.each<[string, Name, string, string, RegExp, number]>([
    [
      'a cache',
      'hybrid',
      'original',
      '536MB',
      /^the KV cache of 1,024 tokens in 16 bits$/,
      536_870_912,
    ],
    [
      'values',
      'minimind',
      'minimind2-small',
      '16.8 MB fp16',
      /of 2,048 tokens in f16; the number of values, called bytes: it is 33.6 MB/,
      16_777_216,
    ],
    ['weights', 'minimind', 'minimind2-small', '51.7MB', /^the weights in 16 bits$/, 51_659_776],
    [
      'GiB',
      'hybrid',
      'original',
      '41.2GB',
      /the weights in 16 bits; a number of GiB, called GB: it is 44.3 GB/,
      41_246_353_149,
    ],
    [
      'training',
      'minimind',
      'minimind2-small',
      '413MB',
      /weights, gradients and optimizer/,
      413_278_208,
    ],
    [
      'an embedding',
      'minimind',
      'minimind2-small',
      '6.6MB',
      /the weights of embedding in 16 bits/,
      6_553_600,
    ],
  ])('is explained by %s', (_, family, preset, text, expected, value) => {
    const explanations = explained(family, preset, text);
    expect(explanations.map((each) => each.text).join('\n')).toMatch(new RegExp(expected, 'm'));
    expect(explanations.map((each) => each.value)).toContain(value);
  });

  it('has no explanation without a figure near it', () => {
    expect(explained('minimind', 'minimind2-small', '7.77TB')).toEqual([]);
  });
});

describe('a size with a named context', () => {
  const LATER: Named = { context: 2048 };
  it.each<[string, string, Named, RegExp]>([
    // 2.4 MB for a sequence, times 32: 612 · 4,096 bytes are 2.39 MiB.
    [
      'a rounded size, multiplied',
      '76.8MB',
      { context: 612, batch: 32 },
      /^the KV cache of 32 × 612 tokens in 16 bits; rounded before it was multiplied: 32 × 2.4 MiB.* all of them are 80.2 MB$/,
    ],
    [
      'values called bytes, for every query head',
      '16.8 MB fp16',
      LATER,
      /^a KV cache with keys and values for each query head of 2,048 tokens in f16; the number of values, called bytes: it is 33.6 MB$/,
    ],
    [
      'values called bytes, for one head',
      '2.1 MB fp16',
      LATER,
      /^a KV cache with one key and value head for all query heads of 2,048 tokens in f16; the number of values/,
    ],
    [
      'values called bytes',
      '4.2 MB fp16',
      LATER,
      /^the KV cache of 2,048 tokens in f16; the number of values, called bytes: it is 8.4 MB$/,
    ],
    [
      'values called bytes, of a batch',
      '134MB fp16',
      { context: 2048, batch: 32 },
      /^the KV cache of 32 × 2,048 tokens in f16; the number of values, called bytes: it is 268.4 MB$/,
    ],
    ['another context, where none is named', '16.8 MB fp16', {}, /^the KV cache of 4,096 tokens/],
  ])('is first explained by %s', (_, text, named, expected) =>
    expect(explained('minimind', 'minimind2-small', text, named)[0]?.text).toMatch(expected),
  );
});

describe('a published change', () => {
  it.each([
    // 2 · 93,600 · 512, and 93,600 · 512.
    [
      '+96M',
      /100,000 rows instead of 6,400, embedding and head; the head is tied, so .* \+47,923,200$/,
      95_846_400,
    ],
    ['+47.9M', /^a vocabulary of 100,000 rows instead of 6,400, one matrix of each$/, 47_923_200],
    // 2 · 1,000 · 512 − 6,400 · 512.
    [
      '−2.3M',
      /1,000 rows instead of 6,400, two matrices of the new against one of the old;.* −2,764,800$/,
      -2_252_800,
    ],
    ['+3.1M', /key-value head for each query head/, 3_145_728],
  ])('%s is explained', (text, expected, value) =>
    expect(explained('minimind', 'minimind2-small', text)).toContainEqual({
      text: expect.stringMatching(expected),
      value,
    }),
  );
});

describe('published operations', () => {
  it.each([
    ['30.7 GFLOP', /^a forward pass, 512 tokens$/],
    ['15.4 GMACs', /^the matrix products of a forward pass, 512 tokens$/],
    ['15.4 GFLOPs', /512 tokens; MACs, called FLOPs$/],
    ['26.4 GFLOP', /^the rule 2 · parameters · tokens, 512 tokens$/],
  ])('%s are explained', (text, expected) =>
    expect(
      explained('minimind', 'minimind2-small', text, { context: 512 })
        .map((each) => each.text)
        .join('\n'),
    ).toMatch(new RegExp(expected.source, 'm')),
  );
});

it.each<[Name, string, string, RegExp, number]>([
  // 13.822B − 13.563B, which a cut-off 0.268B would also print as.
  ['hybrid', 'original', '0.26B', /"shared, rank 128" saves against "shared"/, 259_522_560],
  ['minimind', 'minimind2-small', '51.2M', /an embedding of 100,000 rows of 512/, 51_200_000],
  ['minimind', 'minimind2-small', '0.5M', /an embedding of 1,000 rows of 512/, 512_000],
  // √25,829,888
  ['minimind', 'minimind2-small', '5100', /the square root of 25,829,888 .* 508,231/, 5082],
  ['minimind', 'minimind2-small', '1365', /8\/3 .*64 it is 1,408; this model has 1,408/, 1365],
])('%s/%s: %s is explained first', (family, preset, text, expected, value) =>
  expect(explained(family, preset, text)[0]).toEqual({
    text: expect.stringMatching(expected),
    value,
  }),
);

it.each([
  // 10² · 8 heads · 8 layers, and 100 · 512 + 0 + 1 + … + 99.
  ['6400', 10, /scores of 10 tokens, 10² in each of 64 heads/, 6400],
  ['56150', 612, /without a cache, for 100 tokens after a prompt of 512/, 56_150],
])('%s is a count of a context of %i tokens', (text, context, expected, value) =>
  expect(explained('minimind', 'minimind2-small', text, { context })[0]).toEqual({
    text: expect.stringMatching(expected),
    value,
  }),
);

it('a number that nothing gives is compared with the nearest figures', () => {
  const { explanations, nearest } = reportOf('hybrid', 'aggressive', '~7B');
  expect(explanations).toEqual([]);
  expect(shown(nearest)).toHaveLength(3);
});

describe('a published ratio', () => {
  it('is also computed at equal lengths', () => {
    const [best] = explained('hybrid', 'original', '57x');
    expect(best?.text).toContain('SRTE of "shared" ÷ SRTE of "recommended"');
    expect(best?.text).toContain('like for like 30.1 × at 65,536, 28.4 × at 32,768');
  });

  it.each<[Name, string, string, RegExp]>([
    ['hybrid', 'original', '96.9%', /^SRTE of "shared" in place of SRTE of "not shared"/],
    ['hybrid', 'original', '0.603x', /^parameters of "recommended" ÷ parameters of "not shared"$/],
    ['hybrid', 'original', '39.7%', /^parameters of "recommended" in place of/],
    ['minimind', 'minimind2-small', '4x', /^a KV cache with keys and values for each query head/],
    ['minimind', 'minimind2-small', '87.5%', /^a KV cache with 1 key and value head/],
    ['minimind', 'minimind2-small', '50-70%', /^.*: the part saved|÷/],
    ['hybrid', 'original', '25%', /^a KV cache with 8 key and value heads/],
    ['hybrid', 'original', '1.9%', /^the SRTE of "shared" ÷ all parameters of "shared"$/],
    [
      'hybrid',
      'original',
      '99.9%',
      /^SRTE of "(recommended|shared, rank 128)" in place of SRTE of "not shared"/,
    ],
    // 12.8M ÷ 111.1M, which is the rule and not the count.
    [
      'minigpt',
      'minigpt-medium',
      '11.5%',
      /^the parameters of the embedding ÷ the rule 12 · L · d² with one embedding, 111,104,000 instead of all 111,949,440/,
    ],
    ['minigpt', 'minigpt-medium', '50%', /^one matrix of the vocabulary/],
    ['minigpt', 'minigpt-tiny', '16:1', /^width ÷ layers, 128 ÷ 8$/],
    ['minigpt', 'minigpt-small', '32:1', /^width ÷ layers, 384 ÷ 12$/],
    ['minigpt', 'minigpt-medium', '60%', /5 operations a value .* one by one it is 42.8%/],
    // (100 · 512 + 0 + 1 + … + 99) ÷ 100; with the prompt, ÷ 611.
    [
      'minimind',
      'minimind2-small',
      '561.5x',
      /56,150 ÷ 100, for 100 tokens after a prompt of 512; .* with it, the ratio is 91.9 ×/,
    ],
    ['minimind', 'minimind2-small', '12.7%', /^the parameters of the embedding ÷ all parameters$/],
  ])('of %s %s is explained: %s', (family, preset, text, expected) => {
    expect(explained(family, preset, text)[0]?.text).toMatch(expected);
  });
});

it('an explanation tries few combinations', () => {
  const family: Family = hybrid;
  const document = family.schema.parse(presetDocument('hybrid', 'recommended'));
  expect(knownCounts(family, document, family.build(document)).length).toBeLessThan(150);
});
