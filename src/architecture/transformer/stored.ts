/** What is no choice of a model, but of who wrote its checkpoint. */
import * as z from 'zod';
import type { Ignored, ModelChange, Setting, StoredShapes } from '../family.js';

/** What stands before the names of the bare model in a checkpoint of the whole. */
export const storedPrefix = <Prefix extends string>(prefix: Prefix) =>
  z
    .literal([prefix, ''])
    .default(prefix)
    .describe(`Names begin with ${prefix}, or, in files of the bare model, without`);

/**
 * `model.stored_prefix` as a checkpoint has it: `prefix` before every name, or nothing.
 * @param name Of a tensor that every model has, without it.
 */
export function prefixStoredIn(
  stored: StoredShapes,
  prefix: string,
  name: string,
): readonly Setting[] {
  const value = [prefix, ''].find((each) => stored.shapeOf(`${each}${name}`) !== undefined);
  return value === undefined ? [] : [{ path: 'model.stored_prefix', value }];
}

/** Settings of a decoder with the usual names. */
export const decoderStored = (stored: StoredShapes): readonly Setting[] =>
  prefixStoredIn(stored, 'model.', 'embed_tokens.weight');

/** The same with experts in some of its layers. */
export const mixtureStored = (stored: StoredShapes): readonly Setting[] => [
  ...decoderStored(stored),
  ...expertsStoredIn(stored),
];

const PACKED = /\.experts\.gate_up_proj$/;
const SEPARATE = /\.experts\.(?:0|[1-9]\d*)\./;

/** `model.experts_stored` as a checkpoint has it: all experts in two tensors, or each in its own. */
function expertsStoredIn(stored: StoredShapes): readonly Setting[] {
  for (const name of stored.names()) {
    const value = PACKED.test(name) ? 'packed' : SEPARATE.test(name) ? 'separate' : undefined;
    if (value !== undefined) return [{ path: 'model.experts_stored', value }];
  }
  return [];
}

/** Buffers of old files that follow from the config: `**` and `*` are as in `Ignored`. */
export const oldBuffers = (patterns: readonly string[]): readonly Ignored[] =>
  patterns.map((pattern) => ({
    pattern,
    what: 'old files keep them, and they follow from the config',
  }));

/** What tying the head to the embedding changes in a config of transformers. */
export const tyingSettings = ({ tied }: ModelChange): readonly Setting[] =>
  tied === undefined ? [] : [{ path: 'model.tie_word_embeddings', value: tied }];
