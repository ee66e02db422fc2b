/** GPT-J: one norm for attention and feed-forward, rotated neighbours in a part of each head, a head with a bias. */
import { rotary } from '../constructors/attention-layers.js';
import { defineRules } from '../family.js';
import type { Layer, NormLayer, Rotary } from '../layer.js';
import { NO_ROTARY_KEYS, unreadBut } from '../transformer/config-keys.js';
import { parallelBranches, separateAttention } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument, gptMlp } from '../transformer/define-gpt.js';
import { rotationRules } from '../transformer/rules.js';
import { activationWord, count, GPT_NAMES, normEpsilon } from '../transformer/settings.js';

/** Base of its frequencies, fixed in the original code. */
const BASE = 10_000;

/** Document of a family with these keys. */
export const gptjDocument = <const Name extends string>(family: Name) =>
  gptDocument(
    family,
    {
      prefix: 'transformer.',
      tied: false,
      sizes: {
        vocabulary: ['vocab_size', 50_400],
        positions: ['n_positions', 2048],
        width: ['n_embd', 4096],
        depth: ['n_layer', 28],
        heads: ['n_head', 16],
        feedForward: ['n_inner', null],
      },
    },
    {
      rotary_dim: count(64, 'Rotated dimensions of each head'),
      activation_function: activationWord.default('gelu_new').describe('Activation'),
      layer_norm_epsilon: normEpsilon(1e-5),
    },
  );

interface Sizes {
  readonly rotary_dim: number;
  readonly n_embd: number;
  readonly n_head: number;
}

export const gptjRotary = (name: string, headDim: number, config: Sizes): Rotary =>
  rotary(`${name}.rotary`, {
    base: BASE,
    headDim,
    rotatedDim: config.rotary_dim,
    pairs: 'neighbours',
  });

/** Parts shared with CodeGen. */
export const GPTJ = {
  rules: [
    ...rotationRules({
      reads: ['model.rotary_dim'],
      of: ({ rotary_dim }: Sizes) => rotary_dim,
      suggestion: 'write another rotary_dim',
    }),
    ...defineRules<{ readonly model: Sizes }>([
      {
        severity: 'error',
        reads: ['model.rotary_dim', 'model.n_embd', 'model.n_head'],
        check: ({ model: { rotary_dim: rotated, n_embd: hidden, n_head: heads } }) =>
          rotated > hidden / heads
            ? {
                message: `rotary_dim ${rotated} is more than the head width ${hidden / heads}`,
                suggestion: `write at most ${hidden / heads}`,
              }
            : undefined,
      },
    ]),
  ],
  huggingFace: {
    names: GPT_NAMES,
    limited: {
      ...NO_ROTARY_KEYS,
      rotary: unreadBut([true]),
      rotary_dim: {
        allows: (width: unknown) => width !== null && width !== 0,
        why: 'positions get tables as wide as the whole model',
        severity: 'error',
      },
      scale_attn_weights: unreadBut([true]),
    },
  },
  names: { embedding: 'wte', blocks: 'h', norm: 'ln_f' },
  feedForward: gptMlp('fc_in', 'fc_out'),
  block: (
    { name, norm }: { readonly name: string; readonly norm: (name: string) => NormLayer },
    { attention, feedForward }: Readonly<Record<'attention' | 'feedForward', Layer>>,
  ) => parallelBranches(name, norm(`${name}.ln_1`), attention, feedForward),
  parts: () => ({ headBias: true }),
} as const;

export const gptj = defineGpt({
  ...GPTJ,
  title: 'GPT-J',
  document: gptjDocument('gptj'),
  buffers: ['attn.bias', 'attn.masked_bias'],
  attention: ({ name, config, layout, headDim }) =>
    separateAttention(`${name}.attn`, {
      ...layout,
      outName: 'out_proj',
      rotary: gptjRotary(name, headDim, config),
    }),
});
