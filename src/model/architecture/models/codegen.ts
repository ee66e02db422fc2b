/** CodeGen (arXiv 2203.13474): GPT-J with one product for queries, values and keys, in four groups of heads. */
import { attention } from '../constructors/attention-layers.js';
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import { defineGpt } from '../transformer/define-gpt.js';
import { GPTJ, gptjDocument, gptjRotary } from './gptj.js';

/** Groups of the heads, once one for each chip of the training. */
const GROUPS = 4;

/** Places of queries, keys and values among the columns of the product. */
const PLACES = [0, 2, 1] as const;

// Without dimensions: a plan tries numbers of heads that the groups do not divide.
const { dimensions: _, ...family } = defineGpt({
  ...GPTJ,
  title: 'CodeGen',
  document: gptjDocument('codegen'),
  rules: [
    ...GPTJ.rules,
    {
      severity: 'error',
      reads: ['model.n_head'],
      check: ({ model: { n_head: heads } }) =>
        heads % GROUPS === 0
          ? undefined
          : {
              message: `the product of queries, values and keys has ${GROUPS} groups of heads, found ${heads} heads`,
              suggestion: `write a multiple of ${GROUPS} as n_head`,
            },
    },
  ],
  huggingFace: {
    ...GPTJ.huggingFace,
    harmless: { n_ctx: 'the class reads it without an effect' },
  },
  buffers: ['attn.causal_mask', 'attn.bias', 'attn.masked_bias'],
  attention({ name: block, config, layout, hidden, headDim }) {
    const name = `${block}.attn`;
    const plain = { bias: false };
    return attention(name, {
      ...layout,
      inputs: fusedProjection(
        linear(`${name}.qkv_proj`, hidden, 3 * hidden, plain),
        [hidden, hidden, hidden],
        GROUPS,
        PLACES,
      ),
      out: linear(`${name}.out_proj`, hidden, hidden, plain),
      rotary: gptjRotary(block, headDim, config),
    });
  },
});

export const codegen = family;
