import { describe, expect, it } from 'vitest';
import type { Family } from '../../src/architecture/family.js';
import { hybrid } from '../../src/architecture/models/hybrid.js';
import { minigpt } from '../../src/architecture/models/minigpt.js';
import { minimind } from '../../src/architecture/models/minimind.js';
import { knownCounts } from '../../src/budget/family-counts.js';
import type { ResolvedSetting } from '../../src/budget/profile-model.js';
import { profileModel, resolveSetting } from '../../src/budget/profile-model.js';
import { explainPublished } from '../../src/budget/published/explain-published.js';
import { explainBytes } from '../../src/budget/published/published-bytes.js';
import { explainRatio } from '../../src/budget/published/published-ratios.js';
import { parsePublished } from '../../src/config/parse-number.js';
import { parseDtype } from '../../src/tensor/dtype.js';

const SETTING: ResolvedSetting = resolveSetting(
  { dtype: 'bf16', causal: false, optimizer: 'adamw' },
  {},
  2048,
);

const FAMILIES = { hybrid, minigpt, minimind } as const satisfies Record<string, Family>;
type Name = keyof typeof FAMILIES;

/** Explanations of a number in the syntax of the command line: the text of their reasons, and their values. */
function explained(name: Name, preset: string, text: string) {
  const family: Family = FAMILIES[name];
  const document = family.schema.parse(family.presets[preset]?.document);
  const model = family.build(document);
  const published = parsePublished(text);
  if (published === undefined) throw new Error(`cannot read ${text}`);
  const report =
    published.unit === undefined
      ? explainPublished(model, published, { known: knownCounts(family, document, model) })
      : published.unit === 'bytes'
        ? explainBytes(
            model,
            published,
            profileModel(model, SETTING),
            SETTING,
            parseDtype(published.type ?? ''),
          )
        : explainRatio(family, document, model, published);
  return report.explanations.map(({ reasons, value }) => ({
    text: reasons.map((reason) => reason.text).join('; '),
    value: Number(value),
  }));
}

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
    ['minimind', 'minimind2-small', '12.7%', /^the parameters of the embedding ÷ all parameters$/],
  ])('of %s %s is explained: %s', (family, preset, text, expected) => {
    expect(explained(family, preset, text)[0]?.text).toMatch(expected);
  });
});

it('an explanation tries few combinations', () => {
  const family: Family = hybrid;
  const document = family.schema.parse(family.presets.recommended?.document);
  expect(knownCounts(family, document, family.build(document)).length).toBeLessThan(150);
});
