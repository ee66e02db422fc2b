/** Tensors that stand beside a model and are none of it. */
import type { Ignored } from '../architecture/family.js';
import { isLike } from '../checkpoint/name-patterns.js';

/** What a tensor is, in words; undefined when it is none that may be left aside. */
export const whatIs = (name: string, ignored: readonly Ignored[]): string | undefined =>
  ignored.find(({ pattern }) => isLike(name, pattern))?.what;
