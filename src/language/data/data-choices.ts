/** Choices of `minimind data`, without the code that reads data. */
import type { RecipeName } from './recipes.js';
import type { RecordKind } from './records.js';

export const RECIPE_NAMES = Object.keys({
  minimind3: true,
  minimind2: true,
  plain: true,
} satisfies Record<RecipeName, true>) as RecipeName[];

export const KIND_NAMES = Object.keys({
  text: true,
  chat: true,
  preference: true,
  plain: true,
  ids: true,
  uint16: true,
  uint32: true,
} satisfies Record<RecordKind, true>) as RecordKind[];

/** Smallest similarity of near duplicates by default. */
export const USUAL_SIMILARITY = 0.8;
