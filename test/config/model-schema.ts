import { z } from 'zod';
import { checkDocument, type Expectations } from '../../src/config/check-document.js';
import { parseDocument } from '../../src/config/document.js';
import { applyOverrides } from '../../src/config/overrides.js';
import { line } from './support.js';

const LAYER = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('attention'), heads: z.int().min(1) }),
  z.strictObject({ kind: z.enum(['mamba', 'mamba2']), state: z.int() }),
]);

/** Schema with a key for each kind of mistake. */
export const SCHEMA = z.strictObject({
  model: z.strictObject({
    num_layers: z.int().min(1),
    hidden_size: z.int().multipleOf(8).default(64),
    vocab_size: z.int().min(1).max(1e6).default(100),
    tie: z.boolean().default(true),
    rope: z.enum(['none', 'linear', 'yarn']).default('none'),
    dropout: z.number().gte(0).lt(1).default(0),
    layers: z.array(LAYER).min(1).optional(),
    window: z
      .union([z.int().min(1), z.literal('auto')])
      .nullable()
      .default(null),
    name: z.string().min(1).max(5).optional(),
    pattern: z.string().regex(/^a+$/).optional(),
    even: z
      .int()
      .refine((value) => value % 2 === 0, 'must be even')
      .optional(),
    pair: z.tuple([z.int(), z.int()]).optional(),
  }),
  notes: z.looseObject({ author: z.string().optional() }).optional(),
  tags: z.record(z.string(), z.int()).optional(),
  weights: z.partialRecord(z.enum(['q', 'k']), z.number()).optional(),
});
export type Config = z.infer<typeof SCHEMA>;

export const check = (
  text: string,
  sets: string[] = [],
  more: Partial<Expectations<Config>> = {},
) => checkDocument(applyOverrides(parseDocument(text, 'f'), sets), { schema: SCHEMA, ...more });
export const problemsOf = (...parameters: Parameters<typeof check>) =>
  check(...parameters).problems.map(line);
export const model = (text: string) =>
  problemsOf(`model: {num_layers: 1, ${text}}`).map((problem) => problem.replace(/^f:1:\d+ /, ''));
