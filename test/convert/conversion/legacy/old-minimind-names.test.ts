/** Files of MiniMind from before April 2025: see fixtures/README.md. */
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../../fixtures.js';
import { convertTo, digestOf, digests, numbersOf, refused, textOf } from '../convert.js';
import { type Made, made, torchFile } from '../files.js';

const OLD = inPackage('fixtures/old-minimind/old.pth');
const TODAY = inPackage('fixtures/old-minimind/today.pth');
const SCORES = inPackage('fixtures/old-minimind/scores.pt');
const HEADS = 4;
const KEY_VALUE_HEADS = 2;
const HEAD_DIM = 6;
const HIDDEN = 24;
const TOKENS = 5;

const OLD_DIALECT = { dialect: 'minimind', heads: HEADS } as const;

/** tokens · weightᵀ [tokens, rows of the weight], with each head rotated by RoPE in halves. */
function rotated(tokens: Float64Array, weight: Float64Array): number[][] {
  const rows = weight.length / HIDDEN;
  return Array.from({ length: TOKENS }, (_, token) => {
    const values = Array.from({ length: rows }, (_, row) =>
      weight
        .subarray(row * HIDDEN, (row + 1) * HIDDEN)
        .reduce((sum, value, at) => sum + value * (tokens[token * HIDDEN + at] ?? 0), 0),
    );
    return values.map((value, at) => {
      const half = HEAD_DIM / 2;
      const place = at % HEAD_DIM;
      const other = place < half ? -(values[at + half] ?? 0) : (values[at - half] ?? 0);
      const angle = token * 1e4 ** (-(place % half) / half);
      return value * Math.cos(angle) + other * Math.sin(angle);
    });
  });
}

describe('an old MiniMind file', () => {
  it.each(['out.pth', 'out.safetensors', 'out'])(
    'equals a current file after its conversion to %s',
    async (out) => {
      const { file } = await convertTo(out, OLD, OLD_DIALECT);
      expect(digests(file)).toEqual(digests(TODAY));
    },
  );

  it('has the same scores of attention after its conversion', async () => {
    const { file } = await convertTo('out.safetensors', OLD, OLD_DIALECT);
    const tokens = numbersOf(SCORES, 'tokens');
    for (const layer of [0, 1]) {
      const [queries, keys] = ['q', 'k'].map((name) =>
        rotated(tokens, numbersOf(file, `model.layers.${layer}.self_attn.${name}_proj.weight`)),
      );
      const expected = numbersOf(SCORES, `scores.${layer}`);
      for (const [at, expectedScore] of expected.entries()) {
        const [head, i, j] = [
          Math.floor(at / TOKENS ** 2),
          Math.floor(at / TOKENS) % TOKENS,
          at % TOKENS,
        ];
        const keyHead = Math.floor(head / (HEADS / KEY_VALUE_HEADS));
        let score = 0;
        for (let d = 0; d < HEAD_DIM; d++) {
          const query = queries?.[i]?.[head * HEAD_DIM + d] ?? Number.NaN;
          score += query * (keys?.[j]?.[keyHead * HEAD_DIM + d] ?? Number.NaN);
        }
        expect(score / Math.sqrt(HEAD_DIM)).toBeCloseTo(expectedScore, 10);
      }
    }
  });

  it('can be tied and cast in the same run', async () => {
    const { file } = await convertTo('out.safetensors', OLD, {
      ...OLD_DIALECT,
      tie: 'embed',
      dtype: 'F32',
    });
    expect(digestOf(file, 'lm_head.weight')).toBe(digestOf(file, 'model.embed_tokens.weight'));
    const query = 'model.layers.1.self_attn.q_proj.weight';
    expect(numbersOf(file, query)).toEqual(numbersOf(TODAY, query));
  });

  it('loses the prefix of a wrapper, and tables that the config determines', async () => {
    const weights = {
      'tok_embeddings.weight': made([3, 4], (at) => at),
      'layers.0.attention.wq.weight': made([4, 4], (at) => at),
      'layers.0.attention.wk.weight': made([2, 4], (at) => at),
      freqs_cos: made([2], [1, 1]),
    };
    const wrapped = Object.fromEntries(
      Object.entries(weights).map(([name, tensor]) => [`module.${name}`, tensor]),
    );
    const result = await convertTo('out.pt', await torchFile(wrapped), {
      dialect: 'minimind',
      heads: 2,
    });
    expect(Object.keys(digests(result.file))).toEqual([
      'model.embed_tokens.weight',
      'model.layers.0.self_attn.k_proj.weight',
      'model.layers.0.self_attn.q_proj.weight',
    ]);
    expect(result.leftOut.flatMap(({ names }) => names)).toEqual(['module.freqs_cos']);
  });

  it('may have experts', async () => {
    const one = () => made([2, 2], () => 1);
    const experts = ['gate', 'experts.0.w1', 'experts.11.w2', 'shared_experts.w3'];
    const weights = Object.fromEntries(
      experts.map((name) => [`layers.0.feed_forward.${name}.weight`, one()]),
    );
    const input = await torchFile({ 'layers.0.attention.wq.weight': one(), ...weights });
    const { file } = await convertTo('out', input, { dialect: 'minimind', heads: 1 });
    expect(Object.keys(digests(file))).toEqual([
      'model.layers.0.mlp.experts.0.gate_proj.weight',
      'model.layers.0.mlp.experts.11.down_proj.weight',
      'model.layers.0.mlp.gate.weight',
      'model.layers.0.mlp.shared_experts.0.up_proj.weight',
      'model.layers.0.self_attn.q_proj.weight',
    ]);
  });

  it.each([
    ['a fractional head size', {}, 5, /expected a query of 5 heads .*, found 24 rows/],
    ['an odd head size', {}, 8, /expected a query of 8 heads of an even size, found 24 rows/],
    [
      'keys of another head size',
      { 'layers.0.attention.wk.weight': made([12, 24], () => 0) },
      3,
      /has 12 rows, which is not a multiple of the head size 8/,
    ],
    [
      'a name of another model',
      { 'layers.0.srte.freqs': made([1, 2, 2], []) },
      HEADS,
      /expected names of an old MiniMind checkpoint, found "layers\.0\.srte\.freqs"/,
    ],
    ['a bias', { 'layers.0.attention.wq.bias': made([24], []) }, HEADS, /wq\.bias/],
  ] as const)('with %s is refused', async (_, more: Record<string, Made>, heads, message) => {
    const weights = { 'layers.0.attention.wq.weight': made([24, 24], () => 0), ...more };
    const error = await refused(await torchFile(weights), { dialect: 'minimind', heads });
    expect(textOf(error)).toMatch(message);
    expect(textOf(error)).toMatch(/--heads|--dialect/);
  });

  it('is refused if it is a current file', async () => {
    expect(textOf(await refused(TODAY, OLD_DIALECT))).toContain('leave --dialect out');
  });
});
