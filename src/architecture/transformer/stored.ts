/** What is no choice of a model, but of who wrote its checkpoint. */
import * as z from 'zod';

/** What stands before the names of the bare model in a checkpoint of the whole. */
export const storedPrefix = <Prefix extends string>(prefix: Prefix) =>
  z
    .literal([prefix, ''])
    .default(prefix)
    .describe(`Names begin with ${prefix}, or, in files of the bare model, without`);
